// SPDX-License-Identifier: BSD-3-Clause
// Blocking calls of MPI-IO whose memory type is derived, where they go packed. Not a door:
// src/intercept only.
#pragma once

#include <type_traits>

#include "datatype/api.hpp"
#include "files.hpp"
#include "typed_messages.hpp"

namespace vecmpi::intercept {

// by_library(memory, count, type, status) makes the call.
template <datatype::FileAccess access, class Memory, class Count, class ByLibrary>
[[gnu::always_inline]] inline int move_file_data(MPI_File file, Memory* memory, Count count,
                                                 MPI_Datatype type, MPI_Status* status,
                                                 ByLibrary by_library) {
    if (library::is_builtin_type(type)) [[likely]]
        return by_library(memory, count, type, status);
    constexpr bool writes = std::is_const_v<Memory>;
    constexpr auto direction = writes ? kernels::Direction::pack : kernels::Direction::unpack;
    if (datatype::is_left(datatype::FileData::as_typed(direction, access, count, type)))
        return by_library(memory, count, type, status);
    datatype::FileData data(direction, access, memory, count, type);
    if (!data.is_chosen() || !has_native_view(file) || !data.begin()) {
        const int error = by_library(memory, count, type, status);
        if (error == MPI_SUCCESS) data.note_moved_by_library();
        return error;
    }
    MPI_Status own{};
    MPI_Status* const filled = !writes && status == MPI_STATUS_IGNORE ? &own : status;
    const int error = by_library(data.packed(), 1, data.packed_type(), filled);
    if (error == MPI_SUCCESS) data.end(writes ? data.bytes() : bytes_received(*filled));
    return error;
}

// Words `file_data` and `file_data_of_all` of a row of class direct.
template <class Class, datatype::FileAccess access>
struct MovingFileData : Class {
    template <class Memory, class Count>
    [[gnu::always_inline]] static int serve(MPI_File file, MPI_Offset offset, Memory* memory,
                                            Count count, MPI_Datatype type, MPI_Status* status) {
        return move_file_data<access>(
            file, memory, count, type, status,
            [=](Memory* from, Count number, MPI_Datatype of, MPI_Status* filled) {
                return Class::serve(file, offset, from, number, of, filled);
            });
    }
    template <class Memory, class Count>
    [[gnu::always_inline]] static int serve(MPI_File file, Memory* memory, Count count,
                                            MPI_Datatype type, MPI_Status* status) {
        return move_file_data<access>(
            file, memory, count, type, status,
            [=](Memory* from, Count number, MPI_Datatype of, MPI_Status* filled) {
                return Class::serve(file, from, number, of, filled);
            });
    }
};

}  // namespace vecmpi::intercept
