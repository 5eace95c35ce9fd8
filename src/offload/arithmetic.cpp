// SPDX-License-Identifier: BSD-3-Clause
// The library's arithmetic with our kernels: its algorithms stay as they are, whatever call they
// serve (blocking, nonblocking, persistent, RMA), since only the functions change that they call
// for a predefined op. A kernel serves an op and a type from the second use on: at the first the
// library's own function runs, which says that the pair is legal, and the two are compared bit for
// bit.
#include "arithmetic.hpp"

#include <cfenv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace vecmpi {

namespace {

// ---- kernels in place of the library's functions ------------------------------------------------

using Ready = std::atomic<ReduceInto>;

// Kernels that passed, by op and type; null before. Stored with release after the comparison.
constinit Ready ready[last_op + 1][type_indices]{};
// Pairs that were compared, passed or not: not compared again.
constinit std::atomic<bool> compared[last_op + 1][type_indices]{};

// What VECMPI_ISA allows.
Isa cap_of(IsaChoice choice) noexcept {
    switch (choice) {
        case IsaChoice::scalar:
            return Isa::scalar;
        case IsaChoice::sse4:
            return Isa::sse4;
        case IsaChoice::avx2:
            return Isa::avx2;
        case IsaChoice::avx512:
            return Isa::avx512;
        case IsaChoice::neon:
            return Isa::neon;
        case IsaChoice::sve:
            return Isa::sve;
        default:
            return best_isa();
    }
}

bool enabled = false;  // written before other threads may call
Isa cap = Isa::scalar;
OpFunction library_functions[last_op + 1]{};  // the library's own, where its table was found

// op: a predefined one.
ReduceInto ready_kernel(MPI_Op op, MPI_Datatype type) noexcept {
    const size_t index = type_index(type);
    if (reducible_types.type[index] != type) return nullptr;
    return ready[op_index(op)][index].load(std::memory_order_acquire);
}

bool reduce_by_library(MPI_Op op, const void* in, void* inout, MPI_Aint count,
                       MPI_Datatype type) noexcept {
    const OpFunction own = library_functions[op_index(op)];
    if (own == nullptr)
        return real.Reduce_local(in, inout, static_cast<int>(count), type, op) == MPI_SUCCESS;
    own(const_cast<void*>(in), inout, &count, &type);
    return true;
}

bool agrees_with_library(MPI_Op op, MPI_Datatype type, ReduceInto kernel) noexcept {
    constexpr size_t count = 1024;
    const size_t bytes = count * element_bytes(reducible_types.element[type_index(type)]);
    const std::unique_ptr<char, decltype(&std::free)> memory(
        static_cast<char*>(std::malloc(3 * bytes)), std::free);
    if (!memory) return false;
    char* const in = memory.get();
    char* const expected = in + bytes;
    char* const inout = expected + bytes;
    fill_with_probes(in, bytes, type, 1);
    fill_with_probes(expected, bytes, type, 2);
    std::memcpy(inout, expected, bytes);
    std::fenv_t environment;
    std::feholdexcept(&environment);  // the program may have asked for traps
    const bool computed = reduce_by_library(op, in, expected, count, type);
    kernel(in, inout, count);
    std::fesetenv(&environment);
    return computed && std::memcmp(expected, inout, bytes) == 0;
}

// After the library's own function accepted this op and type.
void compare_once(MPI_Op op, MPI_Datatype type) noexcept {
    const size_t index = type_index(type);
    if (reducible_types.type[index] != type) return;
    if (compared[op_index(op)][index].exchange(true, std::memory_order_relaxed)) return;
    const auto reduce_op = static_cast<ReduceOp>(op_index(op) - first_op);
    const ReduceKernel kernel = reduce_kernel(reduce_op, reducible_types.element[index], cap);
    if (kernel.into == nullptr) return;
    if (agrees_with_library(op, type, kernel.into)) {
        ready[op_index(op)][index].store(kernel.into, std::memory_order_release);
        return;
    }
    log_line(LogLevel::info, "op %08x on type %08x stays with the library: other bits than ours",
             static_cast<unsigned>(op), static_cast<unsigned>(type));
}

void reduce(MPI_Op op, void* in, void* inout, MPI_Aint* length, MPI_Datatype* type) {
    if (const ReduceInto kernel = ready_kernel(op, *type)) [[likely]] {
        count(Counter::elements_reduced, static_cast<uint64_t>(*length));
        return kernel(in, inout, static_cast<size_t>(*length));
    }
    count(Counter::elements_by_library, static_cast<uint64_t>(*length));
    library_functions[op_index(op)](in, inout, length, type);
    compare_once(op, *type);
}

template <size_t index>
void reduce_in_library(void* in, void* inout, MPI_Aint* length, MPI_Datatype* type) {
    reduce(static_cast<MPI_Op>(0x58000000u + index), in, inout, length, type);
}

template <size_t... indices>
void replace_functions(OpFunction* table, std::index_sequence<indices...>) noexcept {
    ((library_functions[first_op + indices] = table[first_op + indices]), ...);
    ((table[first_op + indices] = reduce_in_library<first_op + indices>), ...);
}

}  // namespace

void adopt_arithmetic(const BoundLibrary& library) noexcept {
    if (enabled || settings().isa == IsaChoice::off) return;
    cap = cap_of(settings().isa);
    const char* why_not = nullptr;
    OpFunction* const table = find_op_table(library, &why_not);
    if (table != nullptr)
        replace_functions(table, std::make_index_sequence<last_op>());
    else
        count(Counter::decline_op_table);
    enabled = true;
    log_line(LogLevel::info, "arithmetic: %s, %s",
             isa_name(reduce_kernel(ReduceOp::sum, ElementType::f32, cap).isa),
             table != nullptr ? "wherever the library reduces" : why_not);
}

bool reduce_by_kernel(const void* in, void* inout, MPI_Count count, MPI_Datatype type,
                      MPI_Op op) noexcept {
    if (!is_predefined_op(op) || count <= 0) return false;
    if (in == inout || in == nullptr || inout == nullptr || in == MPI_IN_PLACE) return false;
    const ReduceInto kernel = ready_kernel(op, type);
    if (kernel == nullptr) return false;
    vecmpi::count(Counter::elements_reduced, static_cast<uint64_t>(count));
    kernel(in, inout, static_cast<size_t>(count));
    return true;
}

void note_reduced_by_library(MPI_Op op, MPI_Datatype type) noexcept {
    if (enabled && is_predefined_op(op)) compare_once(op, type);
}

}  // namespace vecmpi
