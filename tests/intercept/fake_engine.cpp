// SPDX-License-Identifier: BSD-3-Clause
// The functions of offload/api.hpp that generated handlers call, as records. See
// fake_engine.hpp.
#include "fake_engine.hpp"

#include <cstdlib>

#include "datatype/api.hpp"
#include "datatype/transfers.hpp"

#include "library/api.hpp"
#include "pipeline/api/calls_left.hpp"

namespace vecmpi {

namespace library {

thread_local constinit int blocking_calls = 0;
thread_local constinit int looking_calls = 0;
thread_local constinit bool is_announced = false;
void forget_armed() noexcept {}

RealFunctions real{};

}  // namespace library

namespace test {

FakeEngine fake;

namespace {

constexpr MPI_Request made_request = 0x2c000007;

Recorded recorded(const offload::Operation& operation, MPI_Status* status) {
    Recorded record;
    record.call = operation.call;
    record.issue = operation.issue;
    record.facts = operation.facts;
    record.status = status;
    std::memcpy(record.arguments, operation.arguments, operation.argument_bytes);
    return record;
}

int asked(const char* function) {
    fake.request_function = function;
    return fake.result;
}

}  // namespace
}  // namespace test

using test::asked;
using test::fake;

namespace offload {

int post(const offload::Operation& operation, MPI_Request* app_request) noexcept {
    fake.posted = test::recorded(operation, nullptr);
    if (fake.result == MPI_SUCCESS) *app_request = test::made_request;
    return fake.result;
}

bool caller_issues(Call, MPI_Count, MPI_Datatype) noexcept { return fake.caller_issues; }

int run_twin(const offload::Operation& operation, MPI_Status* status) noexcept {
    fake.run = test::recorded(operation, status);
    return fake.result;
}

std::optional<int> post_with_ending(Operation operation, std::unique_ptr<Ending> ending,
                                    MPI_Request* app_request) noexcept {
    if (!fake.has_slot) return std::nullopt;
    fake.has_ending = ending != nullptr;
    return post(operation, app_request);
}
std::atomic<uint32_t> freed_endings{0};
constinit PollsOwed polls_owed;
int look_again(uint64_t, const int*, int (*look)(const void* context),
               const void* context) noexcept {
    return look(context);
}
void look_after_freed() noexcept { ++fake.looks_after_freed; }

bool twin_serves(MPI_Comm) noexcept { return fake.twins; }
bool matched_twin_serves() noexcept { return fake.twins; }
bool collective_twin_serves(MPI_Comm) noexcept { return fake.collective_twins; }
bool is_reentrant() noexcept { return fake.reentrant; }
bool is_in_job() noexcept { return false; }
bool is_offload_thread() noexcept { return fake.on_offload_thread; }
bool engine_runs() noexcept { return fake.runs; }
void note_dynamic_processes() noexcept {}
void note_file_requests() noexcept { ++fake.files_noted; }

void issue_what_was_posted() noexcept { ++fake.waits_for_issue; }
DirectCall::DirectCall(Call call, Reentry) noexcept : marks_inside_(true) {
    fake.direct_calls.push_back(call);
    ++fake.open_direct_calls;
}
DirectCall::~DirectCall() noexcept { --fake.open_direct_calls; }

CommTraits comm_traits(MPI_Comm) noexcept {
    CommTraits traits;
    traits.size = fake.ranks;
    traits.inter = fake.between_groups;
    return traits;
}
MPI_Count size_of_derived(MPI_Datatype) noexcept { return 24; }

}  // namespace offload

namespace library {

bool in_one_object(const void*, const void*) noexcept { return fake.called_by_library; }

QuietErrors::QuietErrors() noexcept = default;
QuietErrors::~QuietErrors() {}
bool errors_can_be_quiet() noexcept { return fake.quiet; }

}  // namespace library

namespace offload {

void note_window_made() noexcept {}
void note_window_freed() noexcept {}

void note_persistent_requests() noexcept { ++fake.noted_persistent; }
void adopt_persistent(const CallFacts& facts, MPI_Request* app_request) noexcept {
    fake.adopted.emplace_back(facts.comm, *app_request);
}

int wait_one(MPI_Request*, MPI_Status*) noexcept { return asked("wait_one"); }
int test_one(MPI_Request*, int*, MPI_Status*) noexcept { return asked("test_one"); }
int wait_any(int, MPI_Request[], int*, MPI_Status*) noexcept { return asked("wait_any"); }
int test_any(int, MPI_Request[], int*, int*, MPI_Status*) noexcept { return asked("test_any"); }
int wait_all(int, MPI_Request[], MPI_Status[]) noexcept { return asked("wait_all"); }
int test_all(int, MPI_Request[], int*, MPI_Status[]) noexcept { return asked("test_all"); }
int wait_some(int, MPI_Request[], int*, int[], MPI_Status[]) noexcept { return asked("wait_some"); }
int test_some(int, MPI_Request[], int*, int[], MPI_Status[]) noexcept { return asked("test_some"); }
int request_get_status(MPI_Request, int*, MPI_Status*) noexcept {
    return asked("request_get_status");
}
int request_get_status_all(int, const MPI_Request[], int*, MPI_Status[]) noexcept {
    return asked("request_get_status_all");
}
int request_get_status_any(int, const MPI_Request[], int*, int*, MPI_Status*) noexcept {
    return asked("request_get_status_any");
}
int request_get_status_some(int, const MPI_Request[], int*, int[], MPI_Status[]) noexcept {
    return asked("request_get_status_some");
}
int request_is_complete(MPI_Request) noexcept { return asked("request_is_complete"); }
int request_free(MPI_Request*) noexcept { return asked("request_free"); }
int cancel(MPI_Request*) noexcept { return asked("cancel"); }
int start(MPI_Request*) noexcept { return asked("start"); }
int start_all(int, MPI_Request[]) noexcept { return asked("start_all"); }
int pready(int, MPI_Request) noexcept { return asked("pready"); }
int pready_range(int, int, MPI_Request) noexcept { return asked("pready_range"); }
int pready_list(int, const int[], MPI_Request) noexcept { return asked("pready_list"); }
int parrived(MPI_Request, int, int*) noexcept { return asked("parrived"); }

}  // namespace offload

namespace library {

bool is_mpi_library(uintptr_t) noexcept { return false; }

}  // namespace library

namespace {

std::optional<int> asked_in(const pipeline::CollectiveForm& form) noexcept {
    fake.form = form;
    return fake.pipeline;
}
std::optional<int> asked_on_node(const pipeline::CollectiveForm& form) noexcept {
    fake.asked_on_node.push_back(form.call);
    fake.form = form;
    return fake.intranode;
}

}  // namespace

namespace pipeline::node {

std::optional<int> barrier(const CollectiveForm& form, MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> allreduce(const CollectiveForm& form, const void*, void*, MPI_Count,
                             MPI_Datatype, MPI_Op, MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> reduce(const CollectiveForm& form, const void*, void*, MPI_Count, MPI_Datatype,
                          MPI_Op, int, MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> reduce_scatter(const CollectiveForm& form, const void*, void*,
                                  offload::RankArray, MPI_Datatype, MPI_Op, MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> reduce_scatter_block(const CollectiveForm& form, const void*, void*, MPI_Count,
                                        MPI_Datatype, MPI_Op, MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> allgather(const CollectiveForm& form, const void*, MPI_Count, MPI_Datatype,
                             void*, MPI_Count, MPI_Datatype, MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> bcast(const CollectiveForm& form, void*, MPI_Count, MPI_Datatype, int,
                         MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> gather(const CollectiveForm& form, const void*, MPI_Count, MPI_Datatype, void*,
                          MPI_Count, MPI_Datatype, int, MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> scatter(const CollectiveForm& form, const void*, MPI_Count, MPI_Datatype, void*,
                           MPI_Count, MPI_Datatype, int, MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> alltoall(const CollectiveForm& form, const void*, MPI_Count, MPI_Datatype, void*,
                            MPI_Count, MPI_Datatype, MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> gatherv(const CollectiveForm& form, const void*, MPI_Count, MPI_Datatype, void*,
                           offload::RankArray, offload::RankArray, MPI_Datatype, int,
                           MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> scatterv(const CollectiveForm& form, const void*, offload::RankArray,
                            offload::RankArray, MPI_Datatype, void*, MPI_Count, MPI_Datatype, int,
                            MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> allgatherv(const CollectiveForm& form, const void*, MPI_Count, MPI_Datatype,
                              void*, offload::RankArray, offload::RankArray, MPI_Datatype,
                              MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> alltoallv(const CollectiveForm& form, const void*, offload::RankArray,
                             offload::RankArray, MPI_Datatype, void*, offload::RankArray,
                             offload::RankArray, MPI_Datatype, MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> alltoallw(const CollectiveForm& form, const void*, offload::RankArray,
                             offload::RankArray, const MPI_Datatype*, void*, offload::RankArray,
                             offload::RankArray, const MPI_Datatype*, MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> neighbor_allgather(const CollectiveForm& form, const void*, MPI_Count,
                                      MPI_Datatype, void*, MPI_Count, MPI_Datatype,
                                      MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> neighbor_allgatherv(const CollectiveForm& form, const void*, MPI_Count,
                                       MPI_Datatype, void*, offload::RankArray, offload::RankArray,
                                       MPI_Datatype, MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> neighbor_alltoall(const CollectiveForm& form, const void*, MPI_Count,
                                     MPI_Datatype, void*, MPI_Count, MPI_Datatype,
                                     MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> neighbor_alltoallv(const CollectiveForm& form, const void*, offload::RankArray,
                                      offload::RankArray, MPI_Datatype, void*, offload::RankArray,
                                      offload::RankArray, MPI_Datatype, MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> neighbor_alltoallw(const CollectiveForm& form, const void*, offload::RankArray,
                                      offload::RankArray, const MPI_Datatype*, void*,
                                      offload::RankArray, offload::RankArray, const MPI_Datatype*,
                                      MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> scan(const CollectiveForm& form, const void*, void*, MPI_Count, MPI_Datatype,
                        MPI_Op, MPI_Comm) noexcept {
    return asked_on_node(form);
}
std::optional<int> exscan(const CollectiveForm& form, const void*, void*, MPI_Count, MPI_Datatype,
                          MPI_Op, MPI_Comm) noexcept {
    return asked_on_node(form);
}

}  // namespace pipeline::node

namespace pipeline {

constinit std::atomic<int> private_comms_wanted{0};

std::optional<int> barrier(const pipeline::CollectiveForm& form, MPI_Comm) noexcept {
    return asked_in(form);
}
std::optional<int> allreduce(const pipeline::CollectiveForm& form, const void*, void*, MPI_Count,
                             MPI_Datatype, MPI_Op, MPI_Comm) noexcept {
    return asked_in(form);
}
std::optional<int> reduce(const pipeline::CollectiveForm& form, const void*, void*, MPI_Count,
                          MPI_Datatype, MPI_Op, int, MPI_Comm) noexcept {
    return asked_in(form);
}
std::optional<int> reduce_scatter(const pipeline::CollectiveForm& form, const void*, void*,
                                  offload::RankArray, MPI_Datatype, MPI_Op, MPI_Comm) noexcept {
    return asked_in(form);
}
std::optional<int> reduce_scatter_block(const pipeline::CollectiveForm& form, const void*, void*,
                                        MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm) noexcept {
    return asked_in(form);
}
std::optional<int> bcast(const pipeline::CollectiveForm& form, void*, MPI_Count, MPI_Datatype, int,
                         MPI_Comm) noexcept {
    return asked_in(form);
}
std::optional<int> allgather(const pipeline::CollectiveForm& form, const void*, MPI_Count,
                             MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm) noexcept {
    return asked_in(form);
}
std::optional<int> allgatherv(const pipeline::CollectiveForm& form, const void*, MPI_Count,
                              MPI_Datatype, void*, offload::RankArray, offload::RankArray,
                              MPI_Datatype, MPI_Comm) noexcept {
    return asked_in(form);
}
std::optional<int> alltoall(const pipeline::CollectiveForm& form, const void*, MPI_Count,
                            MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm) noexcept {
    return asked_in(form);
}
std::optional<int> gather(const pipeline::CollectiveForm& form, const void*, MPI_Count,
                          MPI_Datatype, void*, MPI_Count, MPI_Datatype, int, MPI_Comm) noexcept {
    return asked_in(form);
}
std::optional<int> scatter(const pipeline::CollectiveForm& form, const void*, MPI_Count,
                           MPI_Datatype, void*, MPI_Count, MPI_Datatype, int, MPI_Comm) noexcept {
    return asked_in(form);
}

}  // namespace pipeline

// Datatypes: no plan is wanted, and messages of them are packed as the test says.
namespace datatype {

constinit std::atomic<unsigned> message_plans_wanted{0};
void make_message_plans() noexcept {}

PlanInUse::PlanInUse(MPI_Datatype) noexcept {}
MessageAsBytes::MessageAsBytes(kernels::Direction direction, const void* memory, MPI_Count count,
                               MPI_Datatype type, MPI_Comm comm, MPI_Count) noexcept
    : direction_(direction),
      memory_(const_cast<void*>(memory)),
      count_(count),
      type_(type),
      comm_(comm),
      ucx_packs_(false),
      gone_before_(0),
      used_(type),
      bytes_(fake.bytes_of_message),
      place_(bytes_ != 0 ? near_ : nullptr) {}
TypeInUse::~TypeInUse() = default;
MessageAsBytes::~MessageAsBytes() = default;
void MessageAsBytes::unpack(MPI_Count received) noexcept { fake.unpacked = received; }
void MessageAsBytes::note_moved_by_library() noexcept {
    ++(direction_ == kernels::Direction::pack ? fake.sent_by_library : fake.received_by_library);
}
PackMemory::~PackMemory() { std::free(place_); }

PackedRequest::PackedRequest(kernels::Direction direction, const void* memory, MPI_Count count,
                             MPI_Count bytes, const KeptPlan&, RowNumber row) noexcept
    : direction_(direction),
      memory_(const_cast<void*>(memory)),
      count_(count),
      bytes_(bytes),
      row_(row) {}
constinit thread_local LeftCall left_calls[left_places]
    __attribute__((tls_model("initial-exec"))){};
constinit std::atomic<uint64_t> handles_gone{0};
std::unique_ptr<PackedRequest> PackedRequest::of(kernels::Direction direction, Call,
                                                 const offload::CallFacts& message,
                                                 MPI_Count) noexcept {
    if (fake.bytes_of_message == 0) return nullptr;
    alignas(void*) static const char no_plan[1] = {};
    return std::unique_ptr<PackedRequest>(
        new PackedRequest(direction, message.sendbuf, message.count, fake.bytes_of_message,
                          reinterpret_cast<const KeptPlan&>(no_plan), RowNumber{}));
}
void PackedRequest::complete(const MPI_Status&, int) noexcept {}
TypeReference::~TypeReference() = default;

Transfer::Transfer(const TransferCall& call) noexcept
    : call_(call), sent_count_(fake.doubles_of_transfer), sent_type_(MPI_DOUBLE) {
    fake.transfer = call.way;
    if (fake.doubles_of_transfer != 0) transfer_.emplace_back();
}
Transfer::~Transfer() = default;
void* Transfer::place() const noexcept {
    static double packed[8];
    return packed;
}
void Transfer::end(int error) noexcept { fake.transfer_error = error; }

TransferCompletion::TransferCompletion(MPI_Win, int target) noexcept : target_(target) {}
TransferCompletion::~TransferCompletion() = default;
void TransferCompletion::end(int error, bool waits_for_others, Completes) noexcept {
    fake.completed = {error, target_, waits_for_others};
}

}  // namespace datatype
}  // namespace vecmpi
