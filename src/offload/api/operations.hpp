// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking calls with their arguments, and blocking ones that run as their nonblocking twins.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

#include "library/api.hpp"

namespace vecmpi::offload {

using IssueFunction = int (*)(const void* arguments, MPI_Request* mpi_request) noexcept;
constexpr size_t max_argument_bytes = 128;

// There is no communicator argument. No handle, and not MPI_COMM_NULL, which a program may pass.
constexpr MPI_Comm no_comm_argument = static_cast<MPI_Comm>(library::no_handle);

// A call's arguments, as far as paths look at them. Arguments that a call lacks keep their
// defaults.
struct CallFacts {
    MPI_Comm comm = no_comm_argument;
    MPI_Count count = 0;  // of the buffer; of the send side where there are two
    MPI_Count other_count = 0;
    MPI_Datatype type = MPI_BYTE;
    MPI_Datatype other_type = MPI_BYTE;
    int peer = MPI_PROC_NULL;  // destination or source
    int other_peer = MPI_PROC_NULL;
    int tag = 0;
    int other_tag = 0;
    int root = 0;
    MPI_Op op = MPI_SUM;
    const void* sendbuf = nullptr;  // or the only buffer
    const void* recvbuf = nullptr;
    bool collective = false;
    bool reduces = false;      // op is given
    bool vector_form = false;  // counts come in arrays: not looked at
    // Datatypes come in arrays. The mpi_f08 bindings pass copies that end with the call.
    bool type_arrays = false;
};

// What is left to do when the library has completed an operation, before the program sees it
// complete.
class Ending {
  public:
    virtual ~Ending() = default;
    // Called once, inside the library, by the thread that found it complete, with the library's
    // status. It makes no call that waits or calls back.
    virtual void complete(const MPI_Status& status, int error) noexcept = 0;

  protected:
    Ending() = default;
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;
};

struct Operation {
    Call call;
    IssueFunction issue;
    const void* arguments;  // copied; trivially copyable
    uint16_t argument_bytes;
    CallFacts facts;
    Ending* ending = nullptr;  // by post_with_ending()
};

template <class Arguments>
Operation make_operation(Call call, IssueFunction issue, const Arguments& arguments,
                         const CallFacts& facts) noexcept {
    static_assert(std::is_trivially_copyable_v<Arguments>);
    static_assert(sizeof(Arguments) <= max_argument_bytes);
    return {call, issue, &arguments, sizeof(Arguments), facts, nullptr};
}

// Nonblocking call: issues it or queues it. *app_request is real or virtual (MPI 4.0, 3.7
// and 6.12).
int post(const Operation& operation, MPI_Request* app_request) noexcept;

// Asked before a message of `number` values is made an operation: true where the caller makes the
// library's call at once, as post() would, because nobody needs the engine. Counts it.
bool caller_issues(Call call, MPI_Count number, MPI_Datatype type) noexcept;

// The same as post() for a message of which something is left to do when it is complete.
// *app_request is virtual, or real where a send was complete at once. Nothing where no slot is
// left: nothing was done.
std::optional<int> post_with_ending(Operation operation, std::unique_ptr<Ending> ending,
                                    MPI_Request* app_request) noexcept;
// False: the library may refuse the message, or completes it in a way of its own, so that
// post_with_ending() must not be called. (Of the buffer it looks at nothing but `facts`.)
bool may_have_ending(Call call, const CallFacts& facts) noexcept;

// The program has freed requests whose ending is still to come: one look at them. In a call that
// may show the program that such a message is complete.
extern std::atomic<uint32_t> freed_endings;
void look_after_freed() noexcept;
inline void look_after_freed_requests() noexcept {
    if (freed_endings.load(std::memory_order_relaxed) != 0) [[unlikely]]
        look_after_freed();
}

// Blocking call as its nonblocking twin: returns when it is complete. Waits on the ladder.
int run_twin(const Operation& operation, MPI_Status* status) noexcept;

// True where a blocking point-to-point call on this communicator may run as its twin. Else the
// caller uses the real blocking function. Declines re-entrant calls, communicators with an error
// handler function, and everything where the library waits as well as we do.
bool twin_serves(MPI_Comm comm) noexcept;
// The same of the receive of a matched message, which does not name its communicator.
bool matched_twin_serves() noexcept;

// True where the library surely takes the arguments; does not ask it. For calls of several parts:
// none is begun where one might be refused. twin_serves() the communicator.
bool library_surely_takes(const Operation& operation) noexcept;
// The same of a type that is known to be committed, if it is a derived one.
bool library_takes_committed(const Operation& operation) noexcept;

// True where blocking collectives on this communicator run as their nonblocking twins. Equal on all
// ranks of it: MPI does not match a blocking collective with a nonblocking one (MPI 4.0, 6.12). So
// also in a callback, where the library does not hold its lock. False only on the offload thread,
// which cannot wait for itself.
bool collective_twin_serves(MPI_Comm comm) noexcept;

}  // namespace vecmpi::offload
