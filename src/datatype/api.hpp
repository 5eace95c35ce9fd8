// SPDX-License-Identifier: BSD-3-Clause
// Door of src/datatype: derived datatypes, packed and unpacked by plans of ours
// (docs/datatypes.md).
//
// Glossary
//   stream   the packed bytes of a buffer, in the order of its type map; MPI_Pack writes no more
//   element  one copy of the datatype; a buffer has `count` of them
//   plan     what moves the blocks of a datatype: made once, kept until its handle is given back
#pragma once

#include <mpi.h>

#include <atomic>
#include <climits>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "base/api/datatype_rows.hpp"
#include "base/api/memory.hpp"
#include "base/api/trial.hpp"
#include "kernels/api.hpp"
#include "library/api.hpp"
#include "offload/api/operations.hpp"

namespace vecmpi::datatype {

struct PlanSteps;
struct KeptPlan;
struct HeldPlan;
struct HeldTransfer;
class WindowTransfers;
using PlanReference = std::shared_ptr<const KeptPlan>;

// The plan of one datatype; knows no handle. Any thread may use it.
class PackPlan {
  public:
    explicit PackPlan(std::unique_ptr<const PlanSteps> steps) noexcept;
    ~PackPlan();
    PackPlan(const PackPlan&) = delete;
    PackPlan& operator=(const PackPlan&) = delete;

    MPI_Count bytes() const noexcept { return bytes_; }  // of an element in the stream
    // From the buffer's address to the first byte of the type map: MPI_Type_get_true_extent's
    // true_lb.
    MPI_Count lowest() const noexcept;
    // How many elements may be unpacked at once: more might overlap each other.
    MPI_Count most_to_unpack() const noexcept { return most_to_unpack_; }

    // Copies bytes [first, first + bytes) of the stream of `count` elements at `memory` to or from
    // `part`, which begins with byte `first`.
    void copy(kernels::Direction direction, void* part, void* memory, MPI_Count count,
              MPI_Count first, MPI_Count bytes) const noexcept;
    // Copies the whole stream, and counts it for the kernel that moves it.
    void copy_all(kernels::Direction direction, void* packed, void* memory,
                  MPI_Count count) const noexcept;
    // The same with each `width` bytes of the stream reversed, of which an element has a multiple.
    void copy_all_reversed(kernels::Direction direction, void* packed, void* memory,
                           MPI_Count count, size_t width) const noexcept;
    void reverse(void* to, const void* from, MPI_Count bytes, size_t width) const noexcept;

  private:
    void count_moved(kernels::Direction direction, MPI_Count count) const noexcept;
    std::unique_ptr<const PlanSteps> steps_;
    MPI_Count bytes_, most_to_unpack_;
};

// How the stream has the values: as memory has them, or by MPI_Pack_external (MPI 4.0, 5.3).
enum class DataForm : uint8_t { native, external32 };
constexpr size_t number_of_data_forms = 2;

// A call whose memory is of a derived datatype.
struct TypedCall {
    enum class Way : uint8_t {
        send,
        receive,
        post_send,
        post_receive,
        put,
        accumulate,
        get,
        write,
        read,
        write_all,
        read_all,
        pack,
        unpack,
        pack_external,
        unpack_external
    };
    Way way{};
    MPI_Datatype type = MPI_DATATYPE_NULL;
    // Number of the communicator or window; 0: of a file, or of MPI_Pack.
    library::HandleNumber object = 0;
    MPI_Count count = 0;
    bool operator==(const TypedCall&) const = default;
};

// One of this thread's last that the library has served, and would serve again: to find that out
// anew takes 50 ns and more.
struct LeftCall {
    TypedCall call{};
    uint64_t gone_before = 0;  // handles_gone before it was looked at
};
constexpr unsigned left_places = 16;
extern thread_local constinit LeftCall left_calls[left_places]
    __attribute__((tls_model("initial-exec")));
// Changes whenever a handle goes: what was known for good of a handle is asked anew.
extern std::atomic<uint64_t> handles_gone;

inline LeftCall& place_of(const TypedCall& call) noexcept {
    constexpr unsigned spread = 5;
    return left_calls[(library::key_of_handle(call.type) +
                       spread * static_cast<unsigned>(call.way)) %
                      left_places];
}
inline bool is_left(const TypedCall& call) noexcept {
    const LeftCall& left = place_of(call);
    return left.call == call && left.gone_before == handles_gone.load(std::memory_order_relaxed);
}

// The arguments of MPI_Pack or MPI_Unpack (MPI 4.0, 5.2), or of their external forms.
struct PackCall {
    kernels::Direction direction;
    void* memory;  // never written when packing
    MPI_Count count;
    MPI_Datatype type;
    void* packed;  // never written when unpacking
    MPI_Count packed_bytes;
    MPI_Count position;
    MPI_Comm comm;  // of the native form
    DataForm form = DataForm::native;
    // A PackedBuffer's: a null `memory` is MPI_BOTTOM, whatever the library thinks of it, and the
    // communicator is one, which may be freed already.
    bool is_ours = false;

    TypedCall as_typed() const noexcept {
        using Way = TypedCall::Way;
        constexpr Way ways[][2] = {{Way::unpack, Way::pack},
                                   {Way::unpack_external, Way::pack_external}};
        const bool packs = direction == kernels::Direction::pack;
        return {
            .way = ways[static_cast<size_t>(form)][packs ? 1 : 0], .type = type, .count = count};
    }
};

// True: done, and *end is the position behind it. False: nothing was done, and the library is to
// serve the call; *timed_since_ns is for note_packed_by_library() then.
bool pack_by_plan(const PackCall& call, MPI_Count* end, uint64_t* timed_since_ns) noexcept;
// After the library has served the call without an error. A datatype on which it has spent four
// times what a plan costs gets one. The plan must give the bytes that the library gave. Then
// library and plan share the calls until one is known to be faster (pack_trial.hpp).
void note_packed_by_library(const PackCall& call, MPI_Count end, uint64_t timed_since_ns) noexcept;
// The same for a type whose plan the caller keeps, and arguments that are in order.
bool pack_by_plan(const PackCall& call, const KeptPlan& kept, MPI_Count* end,
                  uint64_t* timed_since_ns) noexcept;
void note_packed_by_library(const PackCall& call, const KeptPlan& kept, MPI_Count end,
                            uint64_t timed_since_ns) noexcept;

// ---- memory for packed bytes --------------------------------------------------------------------

// Of one message or collective. What has ended leaves its memory to the next: new pages take longer
// than most messages. It is given up where plans need it.
class PackMemory {
  public:
    PackMemory() = default;
    PackMemory(PackMemory&& other) noexcept
        : place_(std::exchange(other.place_, nullptr)),
          size_class_(other.size_class_),
          counted_(other.counted_) {}
    PackMemory& operator=(PackMemory&&) = delete;
    ~PackMemory();
    // False: so much of VECMPI_PACK_MEMORY is not left. Each once at most.
    bool take(size_t bytes) noexcept;
    // For a collective that cannot be declined any more: beyond the setting where need be. False:
    // out of memory.
    bool take_anyhow(size_t bytes) noexcept;
    unsigned char* place() const noexcept { return place_; }

  private:
    unsigned char* place_ = nullptr;
    unsigned size_class_ = 0;
    size_t counted_ = 0;  // that go with it; of a kept piece 0
};

// ---- buffers of collectives --------------------------------------------------------------------

// While it lives, a collective of ours uses the type. The program may free the type
// meanwhile in another thread, and "any communication that is currently using this datatype will
// complete normally" (MPI 4.0, 5.1.9). Then the destructor gives the handle back.
class TypeInUse {
  public:
    explicit TypeInUse(MPI_Datatype type) noexcept;
    TypeInUse(TypeInUse&& other) noexcept
        : type_(other.type_), is_noted_(std::exchange(other.is_noted_, false)) {}
    TypeInUse& operator=(TypeInUse&&) = delete;
    ~TypeInUse();

  private:
    MPI_Datatype type_;
    bool is_noted_ = false;
};
// MPI_Type_free of it: true where a TypeInUse will do it.
bool free_after_use(MPI_Datatype type) noexcept;

// How often a collective packs: a persistent one at each start.
enum class Uses : uint8_t { one, many };

// A handle of our own for the program's type, which the program may free: for a collective that
// goes on after its call. It has no attributes, so that none of the program's functions is called.
// It keeps the plan of the type.
class TypeReference {
  public:
    TypeReference(MPI_Datatype of, Uses uses) noexcept;
    TypeReference(TypeReference&& other) noexcept
        : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)),
          of_(other.of_),
          plan_(std::move(other.plan_)) {}
    TypeReference& operator=(TypeReference&&) = delete;
    ~TypeReference();
    MPI_Datatype get() const noexcept { return type_; }  // MPI_DATATYPE_NULL: out of memory
    MPI_Datatype of() const noexcept { return of_; }     // the program's, which it may have freed
    const PlanReference& plan() const noexcept { return plan_; }  // null: none

  private:
    MPI_Datatype type_, of_;
    PlanReference plan_;
};

// Where the stream of `count` elements of a derived type, of so many bytes, lies in the buffer as
// it is: there it need not be packed. Null: it does not, or nobody knows. The type is the program's
// own handle, which the caller holds.
unsigned char* place_of_stream(const void* buffer, MPI_Count count, MPI_Datatype type,
                               MPI_Count bytes) noexcept;
// Shorter ones are packed for some calls before a type is described, which takes 1 to 3 us.
constexpr MPI_Count least_described_bytes = 16 << 10;

// A program's buffer of any datatype, in a collective of ours, which moves packed bytes. A buffer
// of a type without gaps holds these itself; others are packed as MPI_Pack and MPI_Unpack do it, by
// a plan or by the library. MPI_BOTTOM may be the buffer. Functions return MPI error codes.
class PackedBuffer {
  public:
    // The type must stay valid: the caller holds it (TypeInUse).
    PackedBuffer(const void* buffer, MPI_Count count, MPI_Datatype type, MPI_Comm comm) noexcept;
    // By the plan that the reference keeps.
    PackedBuffer(const void* buffer, MPI_Count count, const TypeReference& type,
                 MPI_Comm comm) noexcept;

    // 0 also where the arguments are wrong, more than PTRDIFF_MAX, or MPI_Pack_c is missing: such a
    // buffer is the library's to serve.
    MPI_Count bytes() const noexcept { return bytes_; }
    // Holds its packed bytes itself.
    bool is_dense() const noexcept {
        if (form_ == Form::unknown) [[unlikely]]
            find_form();
        return form_ == Form::dense;
    }

    // Where pack() and unpack() have the packed bytes: in the buffer itself, or in memory that the
    // first call allocates. Null: out of memory.
    unsigned char* place() noexcept {
        if (is_dense()) return stream_;
        if (memory_.place() == nullptr) memory_.take_anyhow(static_cast<size_t>(bytes_));
        return memory_.place();
    }
    int pack() const noexcept { return is_dense() ? MPI_SUCCESS : pack_to(memory_.place()); }
    int unpack() const noexcept { return is_dense() ? MPI_SUCCESS : unpack_from(memory_.place()); }

    // The same with memory of the caller, of bytes() bytes.
    int pack_to(void* to) const noexcept {
        if (!is_dense()) return move(kernels::Direction::pack, to);
        kernels::copy_bytes(to, stream_, static_cast<size_t>(bytes_));
        return MPI_SUCCESS;
    }
    int unpack_from(const void* from) const noexcept {
        if (!is_dense()) return move(kernels::Direction::unpack, const_cast<void*>(from));
        kernels::copy_bytes(stream_, from, static_cast<size_t>(bytes_));
        return MPI_SUCCESS;
    }

  private:
    enum class Form : uint8_t { unknown, dense, packed };
    void find_form() const noexcept;
    int move(kernels::Direction direction, void* packed) const noexcept;

    unsigned char* buffer_;
    MPI_Count count_, bytes_ = 0;
    MPI_Datatype type_;
    MPI_Comm comm_;
    mutable Form form_;
    mutable unsigned char* stream_;             // if it is dense
    bool may_use_plan_;                         // of the handle
    PlanReference plan_;                        // else this one, if there is one
    MPI_Datatype tallied_ = MPI_DATATYPE_NULL;  // else what the library takes is counted for it
    PackMemory memory_;
};

// ---- messages ----------------------------------------------------------------------------------
// MPICH's ch4:ucx gives UCX functions that pack and unpack messages of datatypes with gaps. Ours
// come first.

// From now on the library's calls of ucp_dt_create_generic and ucp_dt_destroy come to the next two.
void serve_message_types() noexcept;
// Calls `create` with the library's ops and context, or with ours in their place.
library::UcxStatus create_message_type(library::UcxCreate create, const library::UcxOps& ops,
                                       void* context, uint64_t* ucx_type) noexcept;
void destroy_message_type(library::UcxDestroy destroy, uint64_t ucx_type) noexcept;

// Lives during a call in which the library may show one datatype to UCX, and which calls no
// function of the program. Only types shown then get plans for messages: their handle is known, and
// who gives it back.
class MakingMessageType {
  public:
    MakingMessageType() noexcept;
    ~MakingMessageType();
    MakingMessageType(const MakingMessageType&) = delete;
    MakingMessageType& operator=(const MakingMessageType&) = delete;
    // The call has succeeded, and the program holds this handle. Returns the type as UCX has it; 0
    // where it was not shown.
    uint64_t belongs_to(MPI_Datatype handle) noexcept;

  private:
    friend library::UcxStatus create_message_type(library::UcxCreate create,
                                                  const library::UcxOps& ops, void* context,
                                                  uint64_t* ucx_type) noexcept;
    uint64_t ucx_type_ = 0;
    unsigned shown_ = 0;
};

// Makes plans for datatypes whose messages are worth one. In a call of the program, while this
// thread is not within the library.
extern std::atomic<unsigned> message_plans_wanted;
void make_message_plans() noexcept;
inline void make_wanted_message_plans() noexcept {
    if (message_plans_wanted.load(std::memory_order_relaxed) != 0) [[unlikely]]
        make_message_plans();
}

// Only one thread at a time makes calls (MPI 4.0, 11.2.1): then to use a plan takes no atomic
// exchange, and to make a type no lock. Until it is said, and once there is a session, which may
// have a level of its own, several may.
void expect_one_caller(bool one) noexcept;

// The plan of a handle, if it has one. It stays while this lives, whatever becomes of the handle.
// At most 64 of these at a time find a plan.
class PlanInUse {
  public:
    explicit PlanInUse(MPI_Datatype type) noexcept;
    ~PlanInUse() {
        if (reader_ != nullptr) reader_->store(nullptr, std::memory_order_release);
    }
    PlanInUse(const PlanInUse&) = delete;
    PlanInUse& operator=(const PlanInUse&) = delete;
    const KeptPlan* get() const noexcept { return kept_; }  // null: none

  private:
    const KeptPlan* kept_ = nullptr;
    std::atomic<const HeldPlan*>* reader_ = nullptr;
};

// ---- messages sent and received as bytes --------------------------------------------------------

// A message of a derived datatype in a blocking call, moved by the library as bytes: packed by a
// plan before it is sent, unpacked by one when it has come. A packed message matches a typed one
// (MPI 4.0, 5.2). Short ones, since UCX, where the library has it, takes six calls to pack a
// message; without UCX also longer ones, in memory of VECMPI_PACK_MEMORY.
class MessageAsBytes {
  public:
    // Packs at once. most_bytes: that the call's count can say.
    MessageAsBytes(kernels::Direction direction, const void* memory, MPI_Count count,
                   MPI_Datatype type, MPI_Comm comm, MPI_Count most_bytes) noexcept;
    ~MessageAsBytes();
    MessageAsBytes(const MessageAsBytes&) = delete;
    MessageAsBytes& operator=(const MessageAsBytes&) = delete;

    // False: the library moves the message by its type, and nothing was done.
    explicit operator bool() const noexcept { return place_ != nullptr; }
    void* place() const noexcept { return place_; }
    MPI_Count bytes() const noexcept { return bytes_; }
    // What the library sends: so many of these.
    MPI_Datatype sent_type() const noexcept { return sent_type_; }
    MPI_Count sent_count() const noexcept { return bytes_ / sent_type_bytes_; }
    // The first `received` bytes of place() have come.
    void unpack(MPI_Count received) noexcept;
    // Where the library has moved the message, it may show what its packing takes.
    void note_moved_by_library() noexcept;

  private:
    static constexpr MPI_Count near_bytes = 8 << 10;

    bool is_chosen() noexcept;
    void leave_if_settled() const noexcept;
    bool is_chosen_with_ucx() noexcept;
    bool is_chosen_without_ucx() noexcept;
    bool can_unpack(const KeptPlan& kept) const noexcept;
    bool take_place() noexcept;
    void count_by_type() const noexcept;  // for the report

    const kernels::Direction direction_;
    void* const memory_;
    const MPI_Count count_;
    const MPI_Datatype type_;
    const MPI_Comm comm_;
    const bool ucx_packs_;
    const uint64_t gone_before_;
    const PlanInUse used_;
    MPI_Count bytes_ = 0;
    unsigned char* place_ = nullptr;
    bool is_decided_ = false;          // the plan moves it, for good
    std::optional<TypeInUse> in_use_;  // else the type itself is needed after the library's call
    MPI_Datatype sent_type_ = MPI_BYTE;
    MPI_Count sent_type_bytes_ = 1;
    PackMemory far_;
    alignas(64) unsigned char near_[near_bytes];
};

// The same of a nonblocking message, where the library packs it itself: without UCX. Its bytes are
// in memory of VECMPI_PACK_MEMORY until it is complete. It keeps its plan, so that the program may
// free the type meanwhile.
class PackedRequest final : public offload::Ending {
  public:
    // Packs at once. Null: the library moves the message by its type. Then what its packing takes
    // may have been measured.
    static std::unique_ptr<PackedRequest> of(kernels::Direction direction, Call call,
                                             const offload::CallFacts& message,
                                             MPI_Count most_bytes) noexcept;
    void* place() const noexcept { return packed_.place(); }
    // What the library sends or receives: so many of these.
    MPI_Datatype sent_type() const noexcept { return sent_as_.type; }
    MPI_Count sent_count() const noexcept { return bytes_ / sent_as_.bytes; }

    void complete(const MPI_Status& status, int error) noexcept override;  // unpacks

  private:
    struct SentAs {
        MPI_Datatype type = MPI_BYTE;
        MPI_Count bytes = 1;
    };
    PackedRequest(kernels::Direction direction, const void* memory, MPI_Count count,
                  MPI_Count bytes, const KeptPlan& kept, RowNumber row) noexcept;
    bool begin(MPI_Datatype type, MPI_Comm comm) noexcept;

    const kernels::Direction direction_;
    void* const memory_;
    const MPI_Count count_, bytes_;
    const RowNumber row_;
    const PlanReference plan_;
    std::optional<TypeReference> tried_;  // of a receive whose unpacking is a turn of the trial
    SentAs sent_as_;
    PackMemory packed_;
};

// What a call sends that replaces its buffer (MPI 4.0, 3.10): packed before, as the library does it
// too, by a plan or by the library, in memory of VECMPI_PACK_MEMORY.
class PackedCopy {
  public:
    // Packs at once. most_bytes: that the call's count can say.
    PackedCopy(const void* memory, MPI_Count count, MPI_Datatype type, MPI_Comm comm,
               MPI_Count most_bytes) noexcept;

    // False: the call is the library's.
    explicit operator bool() const noexcept { return is_packed_; }
    const void* place() const noexcept { return memory_.place(); }
    MPI_Count bytes() const noexcept { return bytes_; }

  private:
    bool is_packed_ = false;
    MPI_Count bytes_ = 0;
    PackMemory memory_;
};

// ---- files -------------------------------------------------------------------------------------

enum class FileAccess : uint8_t { independent, collective };

// A buffer of a derived datatype in a blocking call of MPI-IO. ROMIO copies its blocks one by one.
// A plan packs it before it is written, or unpacks it after it was read, and the library moves one
// block. To ROMIO that block still is memory with gaps: so locks, the file pointer, the status at
// the end of a file and what ranks must agree on are those of the call as the program made it.
// Where is_chosen() or begin() is false, the library moves the buffer by its type.
class FileData {
  public:
    FileData(kernels::Direction direction, FileAccess access, const void* memory, MPI_Count count,
             MPI_Datatype type) noexcept;
    ~FileData();
    FileData(const FileData&) = delete;
    FileData& operator=(const FileData&) = delete;

    static TypedCall as_typed(kernels::Direction direction, FileAccess access, MPI_Count count,
                              MPI_Datatype type) noexcept {
        using Way = TypedCall::Way;
        const bool writes = direction == kernels::Direction::pack;
        const Way way = access == FileAccess::collective ? (writes ? Way::write_all : Way::read_all)
                        : writes                         ? Way::write
                                                         : Way::read;
        return {.way = way, .type = type, .object = 0, .count = count};
    }

    bool is_chosen() const noexcept { return state_ == State::chosen; }
    // Takes memory, and a turn in the trial. Packs what is to be written.
    bool begin() noexcept;
    // What the library moves then: one element of this type, from this address.
    void* packed() const noexcept;
    MPI_Datatype packed_type() const noexcept { return packed_type_; }
    MPI_Count bytes() const noexcept { return bytes_; }
    // It has moved so many bytes. Unpacks what was read.
    void end(MPI_Count moved) noexcept;
    // It has moved the buffer by its type without an error, and may show what that takes.
    void note_moved_by_library() noexcept;

  private:
    // library: there is nothing to find out. left: and it would be the library's again.
    // without_plan: its time is counted. unproved: a plan is there, which must be compared.
    enum class State : uint8_t {
        library,
        left,
        without_plan,
        unproved,
        chosen,
        in_turn_of_library
    };

    State first_state() noexcept;
    bool is_in_order() const noexcept;
    MPI_Datatype value_type() const noexcept;
    MPI_Count values() const noexcept;
    bool make_packed_type() noexcept;
    base::Trial& trial() const noexcept;
    void tally() const noexcept;
    void compare() const noexcept;
    void count_by_type() const noexcept;  // for the report

    const kernels::Direction direction_;
    const FileAccess access_;
    void* const memory_;
    const MPI_Count count_;
    const MPI_Datatype type_;
    const uint64_t gone_before_;
    const PlanInUse used_;
    MPI_Count bytes_ = 0;  // 0: without a plan
    State state_;
    uint64_t timed_since_ns_ = 0;  // 0: nobody wants to know
    PackMemory place_;
    MPI_Datatype packed_type_ = MPI_DATATYPE_NULL;
};

// ---- one-sided transfers ------------------------------------------------------------------------

// The arguments of MPI_Put, MPI_Get or MPI_Accumulate (MPI 4.0, 12.3) that matter here.
struct TransferCall {
    TypedCall::Way way;
    void* origin;  // only a get writes it
    MPI_Count count;
    MPI_Datatype type;     // derived
    MPI_Count most_count;  // that the call's count can say
    int target;            // not MPI_PROC_NULL
    bool has_dense_target;
    MPI_Win win;
    MPI_Count target_count;
    MPI_Datatype target_type;
    TypedCall as_typed() const noexcept {
        return {.way = way, .type = type, .object = library::number_of_handle(win), .count = count};
    }
};

// A one-sided transfer whose origin is a derived datatype. The library may be given packed bytes in
// its place: packed at once, or unpacked when a call of the program completes the transfer. Target
// and its datatype stay. The program may free the type after the call.
class Transfer {
  public:
    explicit Transfer(const TransferCall& call) noexcept;
    ~Transfer();
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    // False: the library serves it by the origin's type.
    explicit operator bool() const noexcept { return !transfer_.empty(); }
    void* place() const noexcept;
    MPI_Datatype sent_type() const noexcept { return sent_type_; }
    MPI_Count sent_count() const noexcept { return sent_count_; }
    // After the library's call, which has returned `error`.
    void end(int error) noexcept;

  private:
    bool is_served() noexcept;
    enum class Turn : uint8_t { tried, over };  // over: the library has won, for this window
    Turn take_turn();

    const TransferCall call_;
    PlanReference plan_;
    std::shared_ptr<WindowTransfers> window_;
    std::list<HeldTransfer> transfer_;  // at most one
    MPI_Count bytes_ = 0, sent_count_ = 0;
    MPI_Datatype sent_type_ = MPI_BYTE;
    uint64_t since_ns_ = 0;  // 0: not timed
};

// Lives during a call that completes transfers of the window at their origin.
constexpr int all_targets = INT_MIN;  // no rank, nor MPI_PROC_NULL, which completes nothing
enum class Completes : uint8_t { at_origin, fully };
class TransferCompletion {
  public:
    TransferCompletion(MPI_Win win, int target) noexcept;
    ~TransferCompletion();
    TransferCompletion(const TransferCompletion&) = delete;
    TransferCompletion& operator=(const TransferCompletion&) = delete;
    // A call that completes transfers at their origin only does not do.
    bool needs_full_flush() const noexcept { return needs_full_flush_; }
    // After the library's call. Where that has failed nothing is complete.
    void end(int error, bool waits_for_others, Completes what) noexcept;

  private:
    const int target_;
    std::shared_ptr<WindowTransfers> window_;
    uint64_t last_ = 0, since_ns_ = 0;
    bool needs_full_flush_ = false;
};

// Lives during MPI_Win_free: another thread may get the handle before that returns.
class FreedWindow {
  public:
    explicit FreedWindow(MPI_Win win) noexcept;
    void was_refused() noexcept;

  private:
    const MPI_Win win_;
    std::shared_ptr<WindowTransfers> transfers_;
};

// After MPI_Finalize.
void forget_transfers() noexcept;

// ---- handles -----------------------------------------------------------------------------------

// Before a handle is given back to the library, and after it has given out a new one.
void forget_plan(MPI_Datatype type) noexcept;
// After MPI_Type_dup: for the report.
void meet_copy(MPI_Datatype type) noexcept;
// After MPI_Type_commit, be it the first of this handle or not. A type that was made before, under
// whatever handle, gets its plan at once; the plan of another type is forgotten. ucx_type: as the
// library has just shown it to UCX, or 0.
void meet_type(MPI_Datatype type, uint64_t ucx_type) noexcept;
// After MPI_Finalize.
void forget_plans() noexcept;

// In MPI_Init: there is a report. Then types are described when they are committed, and what moves
// them is counted in the rows of base/api/datatype_rows.hpp. forget_plans() ends that.
void report_types(bool on) noexcept;

}  // namespace vecmpi::datatype
