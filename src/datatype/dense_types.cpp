// SPDX-License-Identifier: BSD-3-Clause
// Finds out which types need no packing, and remembers the last ones of each thread.
#include "dense_types.hpp"

#include <algorithm>
#include <exception>

#include "envelope.hpp"
#include "offload/api.hpp"
#include "plan_making.hpp"
#include "plans_by_handle.hpp"

namespace vecmpi::datatype {

namespace {

// So many calls with few bytes are worth a description: the first turns of a trial then have it.
// Later, and a trial was lost by packing (64 B: in 4 of 8 runs). Where handles go all the time it
// has to be asked for again: after twice as many calls each time.
constexpr uint8_t worth_short_calls = 2, most_short_calls = 32;

// It stays so while no handle goes. A call from a callback may be there because the handle goes.
struct Known {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    uint64_t gone_before = 0;
    bool is_looked_at = false;
    uint8_t short_calls = 0, worth_calls = worth_short_calls;  // before that
    std::optional<DenseStream> stream{};
};
constexpr unsigned places = 16;
constinit thread_local Known known_types[places] __attribute__((tls_model("initial-exec"))){};

// A longer description, such as that of scattered blocks, seldom is of a dense type.
constexpr size_t most_entries = 64;

// Cheap.
bool has_gaps(MPI_Datatype type) noexcept {
    MPI_Count size = 0, low = 0, extent = 0;
    real.Type_size_x(type, &size);
    real.Type_get_true_extent_x(type, &low, &extent);
    return size != extent;
}

// Most dense types are one contiguous one: told without memory of the heap.
bool is_contiguous(MPI_Datatype type) noexcept {
    Envelope envelope;
    if (!read_envelope(type, envelope) || envelope.combiner != MPI_COMBINER_CONTIGUOUS ||
        envelope.integers + envelope.counts != 1 || envelope.types != 1)
        return false;
    int integer = 0;
    MPI_Aint address = 0;
    MPI_Count count = 0, low = 0, extent = 0;
    MPI_Datatype inner = MPI_DATATYPE_NULL;
    if (real.Type_get_contents_c(type, envelope.integers, 0, envelope.counts, 1, &integer, &address,
                                 &count, &inner) != MPI_SUCCESS)
        return false;
    const bool is_of_values = library::is_builtin_type(inner);
    give_back(inner);
    real.Type_get_true_extent_x(type, &low, &extent);
    return is_of_values && low == 0;
}

std::optional<DenseStream> stream_of(MPI_Datatype type) noexcept {
    if (has_gaps(type)) return std::nullopt;
    if (is_contiguous(type)) return DenseStream{0, true};
    try {
        TypeTree tree;
        if (describe(type, tree, most_entries) != Described::fully) return std::nullopt;
        const std::optional<TypeMap> map = decode(tree);
        if (!map || !agrees_with_library(*map, type)) return std::nullopt;
        return dense_stream(*map, tree.extent);
    } catch (const std::exception&) {  // no memory
        return std::nullopt;
    }
}

}  // namespace

std::optional<DenseStream> dense_stream(const TypeMap& map, int64_t extent) noexcept {
    if (map.kind != TypeMap::Kind::dense) return std::nullopt;
    return DenseStream{map.offset, extent == map.bytes};
}

unsigned char* place_of_stream(const void* buffer, MPI_Count count, MPI_Datatype type,
                               MPI_Count bytes) noexcept {
    const uint64_t gone_before = handles_gone.load(std::memory_order_relaxed);
    Known& known = known_types[library::key_of_handle(type) % places];
    if (offload::is_reentrant() && !offload::is_in_job()) return nullptr;
    const bool is_short = bytes < least_described_bytes;
    if (known.type != type || known.gone_before != gone_before) {
        // A description is not given up for a type with few bytes.
        if (is_short && known.is_looked_at && known.gone_before == gone_before) return nullptr;
        const bool is_again = known.type == type && known.is_looked_at;
        const int worth_calls = is_again ? 2 * known.worth_calls : worth_short_calls;
        known = {.type = type, .gone_before = gone_before};
        known.worth_calls = static_cast<uint8_t>(std::min<int>(worth_calls, most_short_calls));
    }
    if (!known.is_looked_at) {
        if (settings().pack == PackMode::off || !offload::engine_runs()) return nullptr;
        if (is_short && ++known.short_calls < known.worth_calls) return nullptr;
        known.is_looked_at = true;
        known.stream = stream_of(type);
    }
    if (!known.stream || (count != 1 && !known.stream->is_of_elements)) return nullptr;
    return reinterpret_cast<unsigned char*>(reinterpret_cast<uintptr_t>(buffer) +
                                            static_cast<uintptr_t>(known.stream->low));
}

}  // namespace vecmpi::datatype
