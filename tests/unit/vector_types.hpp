// SPDX-License-Identifier: BSD-3-Clause
// A fake library whose only derived types are vectors of ints.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>

#include "datatype/plan_making.hpp"
#include "datatype/plans_by_handle.hpp"
#include "running_engine.hpp"

namespace vector_types {

using namespace vecmpi;

struct Vector {
    int count, stride;     // of single ints
    MPI_Count extent = 0;  // 0: as the library makes it
};
inline std::map<MPI_Datatype, Vector> types;  // written before threads run
inline std::atomic<int> envelopes{0};
// Whether each int is a char, a short and a char.
inline std::atomic<bool> has_several_sizes{false};
inline const auto mixed_int = static_cast<MPI_Datatype>(0x8c0000ffu);

constexpr MPI_Count int_bytes = sizeof(int);

inline MPI_Count extent_of(const Vector& v) {
    return v.extent != 0 ? v.extent : ((v.count - 1) * v.stride + 1) * int_bytes;
}

inline int fake_envelope(MPI_Datatype type, MPI_Count* integers, MPI_Count* addresses,
                         MPI_Count* counts, MPI_Count* inner, int* combiner) {
    ++envelopes;
    if (type == mixed_int) {
        *integers = 4;
        *addresses = *inner = 3;
        *counts = 0;
        *combiner = MPI_COMBINER_STRUCT;
        return MPI_SUCCESS;
    }
    const bool is_named = !types.contains(type);
    *integers = is_named ? 0 : 3;
    *addresses = *counts = 0;
    *inner = is_named ? 0 : 1;
    *combiner = is_named ? MPI_COMBINER_NAMED : MPI_COMBINER_VECTOR;
    return MPI_SUCCESS;
}
inline int fake_contents(MPI_Datatype type, MPI_Count, MPI_Count, MPI_Count, MPI_Count,
                         int integers[], MPI_Aint addresses[], MPI_Count[], MPI_Datatype inner[]) {
    if (type == mixed_int) {
        integers[0] = 3;
        integers[1] = integers[2] = integers[3] = 1;
        addresses[0] = 0;
        addresses[1] = 1;
        addresses[2] = 3;
        inner[0] = inner[2] = MPI_CHAR;
        inner[1] = MPI_SHORT;
        return MPI_SUCCESS;
    }
    const Vector v = types.at(type);
    integers[0] = v.count;
    integers[1] = 1;
    integers[2] = v.stride;
    inner[0] = has_several_sizes ? mixed_int : MPI_INT;
    return MPI_SUCCESS;
}
inline MPI_Count bytes_of_inner(MPI_Datatype type) {
    return type == MPI_CHAR ? 1 : type == MPI_SHORT ? 2 : int_bytes;
}
inline int fake_size(MPI_Datatype type, MPI_Count* size) {
    *size = types.contains(type) ? types.at(type).count * int_bytes : bytes_of_inner(type);
    return MPI_SUCCESS;
}
inline int fake_extent(MPI_Datatype type, MPI_Count* low, MPI_Count* extent) {
    *low = 0;
    *extent = types.contains(type) ? extent_of(types.at(type)) : bytes_of_inner(type);
    return MPI_SUCCESS;
}
inline int fake_name(MPI_Datatype type, char* name, int* length) {
    *length = std::snprintf(name, MPI_MAX_OBJECT_NAME, "%s", type == MPI_INT ? "MPI_INT" : "");
    return MPI_SUCCESS;
}
inline int fake_free(MPI_Datatype* type) {
    *type = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}
inline int fake_true_extent(MPI_Datatype type, MPI_Count* low, MPI_Count* extent) {
    *low = 0;
    const Vector v = types.at(type);
    *extent = ((v.count - 1) * v.stride + 1) * int_bytes;
    return MPI_SUCCESS;
}

inline MPI_Datatype handle(int number) {
    return static_cast<MPI_Datatype>(0x8c000100u + static_cast<unsigned>(number));
}

// The fake library with these types, and no plan before and after.
struct Library {
    explicit Library(const std::map<int, Vector>& wanted) : engine(Mode::alone) {
        datatype::forget_plans();
        types.clear();
        for (const auto& [number, vector] : wanted) types[handle(number)] = vector;
        real.Type_get_envelope_c = fake_envelope;
        real.Type_get_contents_c = fake_contents;
        real.Type_size_x = fake_size;
        real.Type_get_extent_x = fake_extent;
        real.Type_get_true_extent_x = fake_true_extent;
        real.Type_free = fake_free;
        real.Type_get_name = fake_name;
        envelopes = 0;
        has_several_sizes = false;
    }
    ~Library() {
        datatype::forget_plans();
        CHECK(datatype::plans_alive() == 0);
    }
    FreshLibrary fresh;
    RunningEngine engine;
};

// Byte `at` of the stream of such elements: where it lies.
inline MPI_Count place_of(const Vector& v, MPI_Count at) {
    const MPI_Count element_bytes = v.count * int_bytes;
    const MPI_Count in_element = at % element_bytes;
    return at / element_bytes * extent_of(v) + in_element / int_bytes * v.stride * int_bytes +
           in_element % int_bytes;
}

inline int fake_pack(const void* memory, MPI_Count count, MPI_Datatype type, void* packed,
                     MPI_Count, MPI_Count* position, MPI_Comm) {
    const Vector v = types.at(type);
    for (MPI_Count at = 0; at < count * v.count * int_bytes; ++at)
        static_cast<char*>(packed)[(*position)++] =
            static_cast<const char*>(memory)[place_of(v, at)];
    return MPI_SUCCESS;
}
inline int fake_unpack(const void* packed, MPI_Count, MPI_Count* position, void* memory,
                       MPI_Count count, MPI_Datatype type, MPI_Comm) {
    const Vector v = types.at(type);
    for (MPI_Count at = 0; at < count * v.count * int_bytes; ++at)
        static_cast<char*>(memory)[place_of(v, at)] =
            static_cast<const char*>(packed)[(*position)++];
    return MPI_SUCCESS;
}

// It packs, too.
struct PackingLibrary : Library {
    explicit PackingLibrary(const std::map<int, Vector>& wanted) : Library(wanted) {
        real.Pack_c = fake_pack;
        real.Unpack_c = fake_unpack;
    }
};

// Of the whole of b.packed; Buffers: has vectors of ints, `memory` and `packed`.
template <class Buffers>
datatype::PackCall pack_call(Buffers& b, int number, MPI_Count count = 1) {
    return {.direction = kernels::Direction::pack,
            .memory = b.memory.data(),
            .count = count,
            .type = handle(number),
            .packed = b.packed.data(),
            .packed_bytes = static_cast<MPI_Count>(b.packed.size() * int_bytes),
            .position = 0,
            .comm = MPI_COMM_WORLD};
}

}  // namespace vector_types
