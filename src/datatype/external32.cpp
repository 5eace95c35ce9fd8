// SPDX-License-Identifier: BSD-3-Clause
#include "external32.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <utility>

#include "library/api.hpp"
#include "offload/api.hpp"
#include "plan_making.hpp"

namespace vecmpi::datatype {

// Relaxed: whoever asks gets the same answer.
struct ExternalValue {
    static constexpr unsigned char unasked = 0xff;
    const MPI_Datatype type;
    mutable std::atomic<unsigned char> width{unasked};
    // Owned; release and acquire: who reads it sees all of the plan.
    mutable std::atomic<const KeptPlan*> plan{nullptr};
};

namespace {

// Left out: what takes another size than in memory (MPI_LONG), what is padded (MPI_LONG_DOUBLE),
// and what ends the program (MPI_WCHAR, pairs). A type that a library lacks is MPI_DATATYPE_NULL.
constexpr MPI_Datatype types[] = {MPI_CHAR,
                                  MPI_SIGNED_CHAR,
                                  MPI_UNSIGNED_CHAR,
                                  MPI_BYTE,
                                  MPI_PACKED,
                                  MPI_INT8_T,
                                  MPI_UINT8_T,
                                  MPI_C_BOOL,
                                  MPI_CXX_BOOL,
                                  MPI_CHARACTER,
                                  MPI_INTEGER1,
                                  MPI_SHORT,
                                  MPI_UNSIGNED_SHORT,
                                  MPI_INT16_T,
                                  MPI_UINT16_T,
                                  MPI_INTEGER2,
                                  MPI_INT,
                                  MPI_UNSIGNED,
                                  MPI_INT32_T,
                                  MPI_UINT32_T,
                                  MPI_INTEGER,
                                  MPI_INTEGER4,
                                  MPI_LOGICAL,
                                  MPI_LONG_LONG,
                                  MPI_UNSIGNED_LONG_LONG,
                                  MPI_INT64_T,
                                  MPI_UINT64_T,
                                  MPI_INTEGER8,
                                  MPI_AINT,
                                  MPI_OFFSET,
                                  MPI_COUNT,
                                  MPI_FLOAT,
                                  MPI_REAL,
                                  MPI_REAL4,
                                  MPI_DOUBLE,
                                  MPI_DOUBLE_PRECISION,
                                  MPI_REAL8,
                                  MPI_C_COMPLEX,
                                  MPI_C_DOUBLE_COMPLEX,
                                  MPI_CXX_FLOAT_COMPLEX,
                                  MPI_CXX_DOUBLE_COMPLEX,
                                  MPI_COMPLEX,
                                  MPI_COMPLEX8,
                                  MPI_DOUBLE_COMPLEX,
                                  MPI_COMPLEX16};

template <size_t... i>
constexpr std::array<ExternalValue, sizeof...(i)> values_of(std::index_sequence<i...>) {
    return {{{types[i]}...}};
}
constinit const auto values = values_of(std::make_index_sequence<std::size(types)>());
constexpr size_t widest = 16;

// By type_index(): where the type's row is, counted from 1.
constexpr auto rows = [] {
    std::array<uint8_t, library::type_indices> by_index{};
    uint8_t row = 0;
    for (const MPI_Datatype type : types) by_index[library::type_index(type)] = ++row;
    return by_index;
}();

// Bytes that differ from each other show the width, and what is unpacked again that the library
// reverses both ways.
size_t ask(MPI_Datatype type) noexcept {
    constexpr int count = 2;
    constexpr MPI_Aint room = 128;  // more than any library needs
    unsigned char memory[room], packed[room], unpacked[room];
    for (size_t i = 0; i < room; ++i) memory[i] = static_cast<unsigned char>(i + 1);
    const auto bytes = static_cast<MPI_Aint>(count * library::builtin_type_bytes(type));
    MPI_Aint end = 0, read = 0;
    if (bytes == 0 || bytes > static_cast<MPI_Aint>(count * widest) ||
        real.Pack_external("external32", memory, count, type, packed, room, &end) != MPI_SUCCESS ||
        end != bytes ||
        real.Unpack_external("external32", packed, end, &read, unpacked, count, type) !=
            MPI_SUCCESS ||
        read != bytes || std::memcmp(unpacked, memory, static_cast<size_t>(bytes)) != 0)
        return 0;
    for (size_t width = 1; width <= library::builtin_type_bytes(type); width *= 2)
        if (is_reversed(packed, memory, static_cast<size_t>(bytes), width)) return width;
    return 0;
}

std::unique_ptr<const KeptPlan> dense_plan(const ExternalValue& value) {
    const auto bytes = static_cast<int64_t>(library::builtin_type_bytes(value.type));
    Counter why{};
    auto steps =
        make_steps(dense(bytes), bytes, pack_limits(settings().pack, settings().isa), &why);
    if (steps == nullptr) return nullptr;
    auto plan = std::make_unique<KeptPlan>(std::move(steps), TypeDigest{});
    plan->external_value = &value;
    if (!is_weighed()) plan->award_all(Packer::plan);
    return plan;
}

}  // namespace

const ExternalValue* external_value(MPI_Datatype predefined) noexcept {
    const uint8_t row = rows[library::type_index(predefined)];
    if (row == 0 || !library::is_builtin_type(predefined)) return nullptr;
    const ExternalValue& found = values[row - 1];
    return found.type == predefined ? &found : nullptr;
}

size_t reversed_width(const ExternalValue& value) noexcept {
    unsigned char width = value.width.load(std::memory_order_relaxed);
    if (width == ExternalValue::unasked) {
        width = static_cast<unsigned char>(ask(value.type));
        value.width.store(width, std::memory_order_relaxed);
    }
    return width;
}

const KeptPlan* plan_of_value(const ExternalValue& value) noexcept {
    return value.plan.load(std::memory_order_acquire);
}

void make_plan_of_value(const ExternalValue& value) noexcept {
    if (offload::gpu_runtime_is_loaded() || reversed_width(value) == 0) return;
    try {
        std::unique_ptr<const KeptPlan> plan = dense_plan(value);
        const KeptPlan* none = nullptr;
        if (plan != nullptr &&
            value.plan.compare_exchange_strong(none, plan.get(), std::memory_order_acq_rel)) {
            plan.release();  // NOLINT(bugprone-unused-return-value): the value has the pointer
            count(Counter::plans);
        }
    } catch (const std::exception&) {  // no memory
    }
}

void forget_external_values() noexcept {
    for (const ExternalValue& value : values) {
        delete value.plan.exchange(nullptr);
        value.width.store(ExternalValue::unasked);
    }
}

bool is_reversed(const unsigned char* packed, const unsigned char* memory, size_t bytes,
                 size_t width) noexcept {
    for (size_t i = 0; i < bytes; ++i)
        if (packed[i] != memory[i / width * width + width - 1 - i % width]) return false;
    return true;
}

}  // namespace vecmpi::datatype
