// SPDX-License-Identifier: BSD-3-Clause
// Hand-written handlers of datatypes: packing by plans of ours, and what makes a plan stale.
#include <cstring>

#include "datatype/api.hpp"
#include "intercept/mpi_handlers.hpp"
#include "offload/api.hpp"

namespace vecmpi::intercept {

namespace {

// Number: int, or MPI_Count in the large-count form. Where the library calls us, its types come and
// go without us: they have no plans.
template <class Number, class ByLibrary>
int packing(Call name, const datatype::PackCall& call, Number* position,
            ByLibrary by_library) noexcept {
    if (offload::is_reentrant() || datatype::is_left(call.as_typed())) return by_library();
    MPI_Count end = 0;
    uint64_t timed_since_ns = 0;
    if (position != nullptr && datatype::pack_by_plan(call, &end, &timed_since_ns)) {
        count_call(static_cast<size_t>(name), Path::own_pack,
                   static_cast<uint64_t>(end - call.position));
        *position = static_cast<Number>(end);
        return MPI_SUCCESS;
    }
    const int rc = by_library();
    if (rc == MPI_SUCCESS) datatype::note_packed_by_library(call, *position, timed_since_ns);
    return rc;
}

template <class Number>
datatype::PackCall pack_call(const void* inbuf, MPI_Count incount, MPI_Datatype datatype,
                             void* outbuf, MPI_Count outsize, const Number* position, MPI_Comm comm,
                             datatype::DataForm form = datatype::DataForm::native) noexcept {
    return {.direction = kernels::Direction::pack,
            .memory = const_cast<void*>(inbuf),
            .count = incount,
            .type = datatype,
            .packed = outbuf,
            .packed_bytes = outsize,
            .position = position != nullptr ? *position : -1,
            .comm = comm,
            .form = form};
}

template <class Number>
datatype::PackCall unpack_call(const void* inbuf, MPI_Count insize, const Number* position,
                               void* outbuf, MPI_Count outcount, MPI_Datatype datatype,
                               MPI_Comm comm,
                               datatype::DataForm form = datatype::DataForm::native) noexcept {
    return {.direction = kernels::Direction::unpack,
            .memory = outbuf,
            .count = outcount,
            .type = datatype,
            .packed = const_cast<void*>(inbuf),
            .packed_bytes = insize,
            .position = position != nullptr ? *position : -1,
            .comm = comm,
            .form = form};
}

// The only representation of the standard's. What others there are, the library knows.
bool is_external32(const char* datarep) noexcept {
    return datarep != nullptr && std::strcmp(datarep, "external32") == 0;
}

}  // namespace

// ---- packing (MPI 4.0, 5.2) ---------------------------------------------------------------------

int serve_Pack(const void* inbuf, int incount, MPI_Datatype datatype, void* outbuf, int outsize,
               int* position, MPI_Comm comm) noexcept {
    if (library::is_builtin_type(datatype))
        return real.Pack(inbuf, incount, datatype, outbuf, outsize, position, comm);
    return packing(Call::Pack, pack_call(inbuf, incount, datatype, outbuf, outsize, position, comm),
                   position, [=]() noexcept {
                       return real.Pack(inbuf, incount, datatype, outbuf, outsize, position, comm);
                   });
}

int serve_Pack_c(const void* inbuf, MPI_Count incount, MPI_Datatype datatype, void* outbuf,
                 MPI_Count outsize, MPI_Count* position, MPI_Comm comm) noexcept {
    if (library::is_builtin_type(datatype))
        return real.Pack_c(inbuf, incount, datatype, outbuf, outsize, position, comm);
    return packing(
        Call::Pack_c, pack_call(inbuf, incount, datatype, outbuf, outsize, position, comm),
        position, [=]() noexcept {
            return real.Pack_c(inbuf, incount, datatype, outbuf, outsize, position, comm);
        });
}

int serve_Unpack(const void* inbuf, int insize, int* position, void* outbuf, int outcount,
                 MPI_Datatype datatype, MPI_Comm comm) noexcept {
    if (library::is_builtin_type(datatype))
        return real.Unpack(inbuf, insize, position, outbuf, outcount, datatype, comm);
    return packing(
        Call::Unpack, unpack_call(inbuf, insize, position, outbuf, outcount, datatype, comm),
        position, [=]() noexcept {
            return real.Unpack(inbuf, insize, position, outbuf, outcount, datatype, comm);
        });
}

int serve_Unpack_c(const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf,
                   MPI_Count outcount, MPI_Datatype datatype, MPI_Comm comm) noexcept {
    if (library::is_builtin_type(datatype))
        return real.Unpack_c(inbuf, insize, position, outbuf, outcount, datatype, comm);
    return packing(
        Call::Unpack_c, unpack_call(inbuf, insize, position, outbuf, outcount, datatype, comm),
        position, [=]() noexcept {
            return real.Unpack_c(inbuf, insize, position, outbuf, outcount, datatype, comm);
        });
}

// The same in external32 (MPI 4.0, 5.3).

int serve_Pack_external(const char* datarep, const void* inbuf, int incount, MPI_Datatype datatype,
                        void* outbuf, MPI_Aint outsize, MPI_Aint* position) noexcept {
    const auto by_library = [=]() noexcept {
        return real.Pack_external(datarep, inbuf, incount, datatype, outbuf, outsize, position);
    };
    if (!is_external32(datarep)) return by_library();
    return packing(Call::Pack_external,
                   pack_call(inbuf, incount, datatype, outbuf, outsize, position, MPI_COMM_NULL,
                             datatype::DataForm::external32),
                   position, by_library);
}

int serve_Unpack_external(const char* datarep, const void* inbuf, MPI_Aint insize,
                          MPI_Aint* position, void* outbuf, int outcount,
                          MPI_Datatype datatype) noexcept {
    const auto by_library = [=]() noexcept {
        return real.Unpack_external(datarep, inbuf, insize, position, outbuf, outcount, datatype);
    };
    if (!is_external32(datarep)) return by_library();
    return packing(Call::Unpack_external,
                   unpack_call(inbuf, insize, position, outbuf, outcount, datatype, MPI_COMM_NULL,
                               datatype::DataForm::external32),
                   position, by_library);
}

int serve_Pack_external_c(const char* datarep, const void* inbuf, MPI_Count incount,
                          MPI_Datatype datatype, void* outbuf, MPI_Count outsize,
                          MPI_Count* position) noexcept {
    const auto by_library = [=]() noexcept {
        return real.Pack_external_c(datarep, inbuf, incount, datatype, outbuf, outsize, position);
    };
    if (!is_external32(datarep)) return by_library();
    return packing(Call::Pack_external_c,
                   pack_call(inbuf, incount, datatype, outbuf, outsize, position, MPI_COMM_NULL,
                             datatype::DataForm::external32),
                   position, by_library);
}

int serve_Unpack_external_c(const char* datarep, const void* inbuf, MPI_Count insize,
                            MPI_Count* position, void* outbuf, MPI_Count outcount,
                            MPI_Datatype datatype) noexcept {
    const auto by_library = [=]() noexcept {
        return real.Unpack_external_c(datarep, inbuf, insize, position, outbuf, outcount, datatype);
    };
    if (!is_external32(datarep)) return by_library();
    return packing(Call::Unpack_external_c,
                   unpack_call(inbuf, insize, position, outbuf, outcount, datatype, MPI_COMM_NULL,
                               datatype::DataForm::external32),
                   position, by_library);
}

// ---- handles that come and go ------------------------------------------------------------------

// Another thread may get the handle as soon as it is free. The program's delete callbacks run in
// there and may pack with it once more: what they do makes no plan (is_reentrant()).
int serve_Type_free(MPI_Datatype* datatype) {
    if (datatype != nullptr && datatype::free_after_use(*datatype)) {
        *datatype = MPI_DATATYPE_NULL;
        return MPI_SUCCESS;
    }
    const offload::DirectCall scope(Call::Type_free);
    if (datatype != nullptr) datatype::forget_plan(*datatype);
    return real.Type_free(datatype);
}

int serve_Type_commit(MPI_Datatype* datatype) noexcept {
    datatype::MakingMessageType making;
    const int rc = real.Type_commit(datatype);
    if (rc != MPI_SUCCESS) return rc;
    datatype::meet_type(*datatype, making.belongs_to(*datatype));
    return rc;
}

int serve_Type_dup(MPI_Datatype oldtype, MPI_Datatype* newtype) {
    const int rc = real.Type_dup(oldtype, newtype);
    if (rc == MPI_SUCCESS) datatype::meet_copy(*newtype);
    return rc;
}

}  // namespace vecmpi::intercept
