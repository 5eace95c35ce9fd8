// SPDX-License-Identifier: BSD-3-Clause
// UCX's datatypes, its endpoints and its environment. MPICH's ch4:ucx gives UCX functions that pack
// and unpack messages of datatypes with gaps.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vecmpi::library {

// ucp_generic_dt_ops_t, ucs_status_t (0: done) and two functions of ucp/api/ucp.h.
using UcxStatus = signed char;
struct UcxOps {
    void* (*start_pack)(void* context, const void* buffer, size_t count);
    void* (*start_unpack)(void* context, void* buffer, size_t count);
    size_t (*packed_size)(void* state);
    size_t (*pack)(void* state, size_t offset, void* to, size_t most);  // returns bytes
    UcxStatus (*unpack)(void* state, size_t offset, const void* from, size_t bytes);
    void (*finish)(void* state);
    bool operator==(const UcxOps&) const = default;
};
using UcxCreate = UcxStatus (*)(const UcxOps* ops, void* context, uint64_t* ucx_type);
using UcxDestroy = void (*)(uint64_t ucx_type);

// What is called in place of UCX's functions.
struct UcxTypeAnswers {
    UcxStatus (*create)(UcxCreate create, const UcxOps& ops, void* context,
                        uint64_t* ucx_type) noexcept;
    void (*destroy)(UcxDestroy destroy, uint64_t ucx_type) noexcept;
};
// Commits a type in the library, and looks whether UCX is shown it. In MPI_Init.
bool library_shows_types() noexcept;
// came_without_polls: so messages of the node did, as far as was seen in MPI_Init.
void prove_own_memory(bool came_without_polls) noexcept;
// Until this the library's calls go on to UCX as they are. answers must stay valid.
void answer_ucx_types(const UcxTypeAnswers& answers) noexcept;

// off: from now on the MPI library's endpoints end with their worker. Only in MPI_Finalize, on all
// ranks, and once all they owe each other is with the network: a rank makes no more progress.
// Until the library initialises UCX again.
void disconnect_endpoints(bool on) noexcept;

// While it lives, UCX finds a higher rendezvous threshold in its environment, unless the user set
// one. UCX reads it once, in MPI_Init. 64 KiB by Allreduce (messages of 32 and 16 KiB) on 4 ranks
// on 2 CPUs take 36 us in place of 80. It is no higher, since eager messages that nobody waits for
// fill memory.
class EagerUcx {
  public:
    explicit EagerUcx(bool wanted) noexcept;
    ~EagerUcx();
    EagerUcx(const EagerUcx&) = delete;
    EagerUcx& operator=(const EagerUcx&) = delete;

  private:
    bool set_;
};

}  // namespace vecmpi::library
