// SPDX-License-Identifier: BSD-3-Clause
// Interposes ucp_dt_create_generic and ucp_dt_destroy. By these MPICH's ch4:ucx gives UCX the
// functions that pack and unpack messages of a datatype with gaps: when the type is committed, and
// when its last user has gone.
#include <atomic>

#include "callers_choices.hpp"

namespace vecmpi::library {
namespace {

constinit CallersChoices create_functions("ucp_dt_create_generic"),
    destroy_functions("ucp_dt_destroy");

constexpr UcxTypeAnswers as_they_are{
    [](UcxCreate create, const UcxOps& ops, void* context, uint64_t* ucx_type) noexcept {
        return create(&ops, context, ucx_type);
    },
    [](UcxDestroy destroy, uint64_t ucx_type) noexcept { destroy(ucx_type); }};
constinit std::atomic<const UcxTypeAnswers*> answers_to_types{&as_they_are};  // with release

constinit std::atomic<unsigned> types_shown{0};

const UcxTypeAnswers& answers() noexcept {
    return *answers_to_types.load(std::memory_order_acquire);
}

}  // namespace

bool library_shows_types() noexcept {
    const unsigned before = types_shown.load(std::memory_order_relaxed);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    if (real.Type_vector(2, 1, 2, MPI_BYTE, &type) == MPI_SUCCESS) {
        real.Type_commit(&type);
        real.Type_free(&type);
    }
    return note_trait(Trait::message_types, types_shown.load(std::memory_order_relaxed) != before);
}

// In MPICH 4.0, too, a message may come within the call that waits for it.
void prove_own_memory(bool came_without_polls) noexcept {
    note_trait(Trait::own_memory, came_without_polls && has_trait(Trait::polls) &&
                                      has_trait(Trait::message_types) && !library_is_mpich("4.0"));
}

void answer_ucx_types(const UcxTypeAnswers& given) noexcept {
    answers_to_types.store(&given, std::memory_order_release);
}

}  // namespace vecmpi::library

// UCX's prototypes: ucs_status_t ucp_dt_create_generic(const ucp_generic_dt_ops_t*, void*,
// ucp_datatype_t*) and void ucp_dt_destroy(ucp_datatype_t). Whoever calls was linked to UCX, so
// there is a definition.
extern "C" __attribute__((visibility("default"))) vecmpi::library::UcxStatus ucp_dt_create_generic(
    const vecmpi::library::UcxOps* ops, void* context, uint64_t* ucx_type) noexcept {
    const auto caller = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
    const auto create = reinterpret_cast<vecmpi::library::UcxCreate>(
        vecmpi::library::create_functions.for_caller(caller).address);
    vecmpi::library::types_shown.fetch_add(1, std::memory_order_relaxed);
    return vecmpi::library::answers().create(create, *ops, context, ucx_type);
}

// What is not the MPI library's is left alone: other threads than those of MPI may call for it.
extern "C" __attribute__((visibility("default"))) void ucp_dt_destroy(uint64_t ucx_type) noexcept {
    const auto caller = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
    const vecmpi::library::CallersChoice choice =
        vecmpi::library::destroy_functions.for_caller(caller);
    const auto destroy = reinterpret_cast<vecmpi::library::UcxDestroy>(choice.address);
    if (!vecmpi::library::is_of_mpi_library(choice)) return destroy(ucx_type);
    vecmpi::library::answers().destroy(destroy, ucx_type);
}
