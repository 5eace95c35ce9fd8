// SPDX-License-Identifier: BSD-3-Clause
#include "large_counts.hpp"

#include <algorithm>
#include <climits>
#include <new>
#include <vector>

namespace vecmpi::library {
namespace {

constexpr bool fits(MPI_Count number) noexcept { return number <= INT_MAX; }

// Elements of a type one behind the other, so many at once that their bytes fit an int.
// move(first, elements, bytes): of so many elements, of which the first lies there.
template <class Move>
int in_pieces(MPI_Count count, MPI_Datatype type, const Move& move) noexcept {
    MPI_Count size = 0, low = 0, extent = 0;
    if (const int error = real.Type_size_x(type, &size); error != MPI_SUCCESS) return error;
    if (const int error = real.Type_get_extent_x(type, &low, &extent); error != MPI_SUCCESS)
        return error;
    if (!fits(size)) return MPI_ERR_COUNT;
    const MPI_Count most = size > 0 ? INT_MAX / size : INT_MAX;
    for (MPI_Count done = 0; done < count; done += most) {
        const auto elements = static_cast<int>(std::min(count - done, most));
        if (const int error = move(done * extent, elements); error != MPI_SUCCESS) return error;
    }
    return MPI_SUCCESS;
}

int room_of(MPI_Count bytes) noexcept {
    return static_cast<int>(std::min<MPI_Count>(bytes, INT_MAX));
}

int pack(const void* memory, MPI_Count count, MPI_Datatype type, void* packed, MPI_Count bytes,
         MPI_Count* position, MPI_Comm comm) noexcept {
    return in_pieces(count, type, [=](MPI_Count first, int elements) noexcept {
        int end = 0;
        const int error = real.Pack(static_cast<const char*>(memory) + first, elements, type,
                                    static_cast<char*>(packed) + *position,
                                    room_of(bytes - *position), &end, comm);
        *position += end;
        return error;
    });
}

int unpack(const void* packed, MPI_Count bytes, MPI_Count* position, void* memory, MPI_Count count,
           MPI_Datatype type, MPI_Comm comm) noexcept {
    return in_pieces(count, type, [=](MPI_Count first, int elements) noexcept {
        int end = 0;
        const int error =
            real.Unpack(static_cast<const char*>(packed) + *position, room_of(bytes - *position),
                        &end, static_cast<char*>(memory) + first, elements, type, comm);
        *position += end;
        return error;
    });
}

// A library without large counts makes no types that have them.
int type_get_envelope(MPI_Datatype type, MPI_Count* integers, MPI_Count* addresses,
                      MPI_Count* counts, MPI_Count* types, int* combiner) noexcept {
    int number_of_integers = 0, number_of_addresses = 0, number_of_types = 0;
    const int error = real.Type_get_envelope(type, &number_of_integers, &number_of_addresses,
                                             &number_of_types, combiner);
    *integers = number_of_integers;
    *addresses = number_of_addresses;
    *counts = 0;
    *types = number_of_types;
    return error;
}

int type_get_contents(MPI_Datatype type, MPI_Count integers, MPI_Count addresses, MPI_Count,
                      MPI_Count types, int integer[], MPI_Aint address[], MPI_Count[],
                      MPI_Datatype inner[]) noexcept {
    return real.Type_get_contents(type, static_cast<int>(integers), static_cast<int>(addresses),
                                  static_cast<int>(types), integer, address, inner);
}

int type_create_hindexed(MPI_Count blocks, const MPI_Count lengths[],
                         const MPI_Count displacements[], MPI_Datatype type,
                         MPI_Datatype* made) noexcept {
    if (!fits(blocks) || !std::all_of(lengths, lengths + blocks, fits)) return MPI_ERR_COUNT;
    try {
        const std::vector<int> short_lengths(lengths, lengths + blocks);
        const std::vector<MPI_Aint> addresses(displacements, displacements + blocks);
        return real.Type_create_hindexed(static_cast<int>(blocks), short_lengths.data(),
                                         addresses.data(), type, made);
    } catch (const std::bad_alloc&) {
        return MPI_ERR_NO_MEM;
    }
}

// MPI_Get_count cannot say that there were more than an int holds.
int get_count(const MPI_Status* status, MPI_Datatype type, MPI_Count* count) noexcept {
    MPI_Count bytes = 0, size = 0;
    if (const int error = real.Get_elements_x(status, MPI_BYTE, &bytes); error != MPI_SUCCESS)
        return error;
    if (const int error = real.Type_size_x(type, &size); error != MPI_SUCCESS) return error;
    *count = MPI_UNDEFINED;
    if (bytes == 0)
        *count = 0;
    else if (size != 0 && bytes % size == 0)
        *count = bytes / size;
    return MPI_SUCCESS;
}

}  // namespace

void complete_with_large_counts(RealFunctions& functions) noexcept {
    const auto complete = [](auto& member, auto ours) noexcept {
        if (member == nullptr) member = ours;
    };
    complete(functions.Pack_c, pack);
    complete(functions.Unpack_c, unpack);
    complete(functions.Type_get_envelope_c, type_get_envelope);
    complete(functions.Type_get_contents_c, type_get_contents);
    complete(functions.Type_create_hindexed_c, type_create_hindexed);
    complete(functions.Get_count_c, get_count);
}

}  // namespace vecmpi::library
