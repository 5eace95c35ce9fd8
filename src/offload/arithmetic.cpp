// SPDX-License-Identifier: BSD-3-Clause
// The library's arithmetic with our kernels. Its algorithms stay as they are, whatever call they
// serve (blocking, nonblocking, persistent, RMA): only the functions change that they call for a
// predefined op. At the first use of an op on a type, its kernel is compared with the library's
// function bit for bit. It serves if they agree.
#include "arithmetic.hpp"

#include <algorithm>
#include <cfenv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "max_min_order.hpp"
#include "offload/api.hpp"

namespace vecmpi::offload {

namespace {

// The library refuses pairs that MPI does not define, MPI_MAX on MPI_BYTE for example.
enum class Accepted : uint8_t { unknown, yes, no };

// What is known of an op on a type.
struct Pair {
    // Null before the kernel has passed. Stored with release, after `to`.
    std::atomic<kernels::ReduceInto> into{nullptr};
    std::atomic<kernels::ReduceTo> to{nullptr};  // the same with a result of its own
    // What the type holds for this op, where that is not what reducible_types says. Written before
    // other threads may call.
    std::optional<kernels::ElementType> element;
    std::atomic<bool> is_compared{false};  // passed or not; stored with release after `into`
    std::atomic<Accepted> accepted{Accepted::unknown};  // relaxed: a late reader asks again
};
constinit Pair pairs[library::last_op + 1][library::type_indices]{};
constinit std::mutex comparing;

// op: a predefined one.
Pair& pair_of(MPI_Op op, MPI_Datatype type) noexcept {
    return pairs[library::op_index(op)][library::type_index(type)];
}

// None where no kernel knows the type.
const kernels::ElementType* element_of(MPI_Datatype type) noexcept {
    const size_t index = library::type_index(type);
    return reducible_types.type[index] == type ? &reducible_types.element[index] : nullptr;
}

// What VECMPI_ISA allows.
kernels::Isa cap_of(IsaChoice choice) noexcept {
    switch (choice) {
        case IsaChoice::scalar:
            return kernels::Isa::scalar;
        case IsaChoice::sse4:
            return kernels::Isa::sse4;
        case IsaChoice::avx2:
            return kernels::Isa::avx2;
        case IsaChoice::avx512:
            return kernels::Isa::avx512;
        case IsaChoice::neon:
            return kernels::Isa::neon;
        case IsaChoice::sve:
            return kernels::Isa::sve;
        default:
            return kernels::best_isa();
    }
}

// Written before other threads may call.
bool enabled = false;
kernels::Isa cap = kernels::Isa::scalar;
library::OpFunction
    library_functions[library::last_op + 1]{};  // its own, where its table was found

// Where the user named no set, the host's profile may lower the cap.
kernels::Isa cap_for(kernels::ReduceOp op, kernels::ElementType type) noexcept {
    const auto family = static_cast<size_t>(kernels::reduce_family(op, type));
    const IsaChoice measured = process_profile().profile.reduce[family];
    const bool counts = settings().isa == IsaChoice::automatic && measured != IsaChoice::automatic;
    return counts ? std::min(cap, cap_of(measured)) : cap;
}

void serve(Pair& pair, const kernels::ReduceKernel& kernel) noexcept {
    pair.to.store(kernel.to, std::memory_order_relaxed);
    pair.into.store(kernel.into, std::memory_order_release);
}

// op: a predefined one.
kernels::ReduceInto ready_kernel(MPI_Op op, MPI_Datatype type) noexcept {
    if (element_of(type) == nullptr) return nullptr;
    return pair_of(op, type).into.load(std::memory_order_acquire);
}

bool reduce_by_library(MPI_Op op, const void* in, void* inout, MPI_Aint count,
                       MPI_Datatype type) noexcept {
    const library::OpFunction own = library_functions[library::op_index(op)];
    if (own == nullptr)
        return real.Reduce_local(in, inout, static_cast<int>(count), type, op) == MPI_SUCCESS;
    own(const_cast<void*>(in), inout, &count, &type);
    return true;
}

bool agrees_in_mode(MPI_Op op, MPI_Datatype type, kernels::ReduceInto kernel,
                    int rounding) noexcept {
    constexpr size_t count = 1024;
    const size_t bytes = count * kernels::element_bytes(*element_of(type));
    const std::unique_ptr<char, decltype(&std::free)> memory(
        static_cast<char*>(std::malloc(3 * bytes)), std::free);
    if (!memory) return false;
    char* const in = memory.get();
    char* const expected = in + bytes;
    char* const inout = expected + bytes;
    // In the default environment. The program may have asked for traps, or for subnormal numbers to
    // be taken for zero: then the library's functions differ from its yaksa, whose bits a program
    // expects.
    std::fenv_t environment;
    std::feholdexcept(&environment);
    std::fesetenv(FE_DFL_ENV);
    std::fesetround(rounding);
    fill_with_probes(in, bytes, type, 1);
    fill_with_probes(expected, bytes, type, 2);
    std::memcpy(inout, expected, bytes);
    const bool computed = reduce_by_library(op, in, expected, count, type);
    kernel(in, inout, count);
    std::fesetenv(&environment);
    return computed && std::memcmp(expected, inout, bytes) == 0;
}

// Upward as well: a library that rounds twice may follow the mode in one of the two only.
bool agrees_with_library(MPI_Op op, MPI_Datatype type, kernels::ReduceInto kernel) noexcept {
    return agrees_in_mode(op, type, kernel, FE_TONEAREST) &&
           agrees_in_mode(op, type, kernel, FE_UPWARD);
}

// What a library rounds to that does not round as the table of types says; else the element itself.
kernels::ElementType rounded_otherwise(kernels::ElementType element) noexcept {
    return element == kernels::ElementType::bf16_half_up ? kernels::ElementType::bf16 : element;
}

// The kernel that gives the library's bits, or none.
kernels::ReduceKernel agreeing_kernel(MPI_Op op, MPI_Datatype type,
                                      kernels::ElementType element) noexcept {
    // Where a compiler's flags make Fortran's numbers wider, the library's type is.
    if (static_cast<size_t>(shape_of(type).extent) != kernels::element_bytes(element)) return {};
    for (const kernels::ElementType one : {element, rounded_otherwise(element)}) {
        const kernels::ReduceKernel kernel =
            kernels::reduce_kernel(kernel_op(op), one, cap_for(kernel_op(op), one));
        if (kernel.into != nullptr && agrees_with_library(op, type, kernel.into)) return kernel;
    }
    return {};
}

void log_that_library_serves(MPI_Op op, MPI_Datatype type) noexcept {
    log_line(LogLevel::info,
             "op %08llx on type %08llx stays with the library: other bits than ours",
             library::shown_bits(op), library::shown_bits(type));
}

bool has_kernel(MPI_Op op, kernels::ElementType element) noexcept {
    return kernels::reduce_kernel(kernel_op(op), element, kernels::Isa::scalar).into != nullptr;
}

// For an op and a type that the library accepts. All threads see the same kernel, or none: which of
// the two served a call must not depend on which thread came first.
void compare_once(MPI_Op op, MPI_Datatype type) noexcept {
    const kernels::ElementType* const known = element_of(type);
    if (known == nullptr) return;
    Pair& pair = pair_of(op, type);
    if (pair.is_compared.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(comparing);
    if (pair.is_compared.load(std::memory_order_relaxed)) return;
    const kernels::ElementType element = pair.element.value_or(*known);
    const kernels::ReduceKernel kernel = agreeing_kernel(op, type, element);
    if (kernel.into != nullptr)
        serve(pair, kernel);
    else if (has_kernel(op, element))
        log_that_library_serves(op, type);
    pair.is_compared.store(true, std::memory_order_release);
}

void keep_order(const OrderRow& row) noexcept {
    Pair& pair = pair_of(row.op, row.type);
    pair.is_compared.store(row.is_sure || !row.element, std::memory_order_relaxed);
    if (!row.element)
        log_that_library_serves(row.op, row.type);
    else if (row.is_sure)
        serve(pair, kernels::reduce_kernel(kernel_op(row.op), *row.element, cap));
    else
        pair.element = row.element;
}

// MPI_Reduce_local leaves its result in the right operand. Where that must stay as it is, parts of
// it are reduced in a buffer.
int reduce_elements_by_library(const void* left, const void* right, void* to, MPI_Count count,
                               MPI_Datatype type, MPI_Count extent, MPI_Op op) noexcept {
    constexpr MPI_Count part_bytes = 1 << 15;
    alignas(64) char on_stack[part_bytes];
    const MPI_Count most = to == right ? INT_MAX : std::max<MPI_Count>(part_bytes / extent, 1);
    std::unique_ptr<char, decltype(&std::free)> large(nullptr, std::free);
    if (extent > part_bytes) large.reset(static_cast<char*>(std::malloc(size_t(extent))));
    char* const part = extent > part_bytes ? large.get() : on_stack;
    if (part == nullptr) return MPI_ERR_NO_MEM;
    vecmpi::count(Counter::elements_by_library, static_cast<uint64_t>(count));
    for (MPI_Count done = 0; done < count;) {
        const MPI_Count number = std::min(most, count - done);
        const auto offset = static_cast<size_t>(done * extent);
        const auto bytes = static_cast<size_t>(number * extent);
        char* const result = static_cast<char*>(to) + offset;
        char* const inout = to == right ? result : part;
        if (to != right) kernels::copy_bytes(part, static_cast<const char*>(right) + offset, bytes);
        const int rc = real.Reduce_local(static_cast<const char*>(left) + offset, inout,
                                         static_cast<int>(number), type, op);
        if (rc != MPI_SUCCESS) return rc;
        if (to != right) kernels::copy_bytes(result, part, bytes);
        done += number;
    }
    return MPI_SUCCESS;
}

// What the library calls in place of its own function, after it has accepted op and type. Compared
// before the first use: under DAZ the library's function gives other bits than yaksa.
void reduce(MPI_Op op, void* in, void* inout, MPI_Aint* length, MPI_Datatype* type) {
    kernels::ReduceInto kernel = ready_kernel(op, *type);
    if (kernel == nullptr) [[unlikely]] {
        compare_once(op, *type);
        kernel = ready_kernel(op, *type);
    }
    if (kernel != nullptr) {
        count(Counter::elements_reduced, static_cast<uint64_t>(*length));
        return kernel(in, inout, static_cast<size_t>(*length));
    }
    count(Counter::elements_by_library, static_cast<uint64_t>(*length));
    library_functions[library::op_index(op)](in, inout, length, type);
}

template <size_t index>
void reduce_in_library(void* in, void* inout, MPI_Aint* length, MPI_Datatype* type) {
    reduce(library::predefined_op(index), in, inout, length, type);
}

template <size_t... indices>
void replace_functions(library::OpFunction* table, std::index_sequence<indices...>) noexcept {
    ((library_functions[library::first_op + indices] = table[library::first_op + indices]), ...);
    ((table[library::first_op + indices] = reduce_in_library<library::first_op + indices>), ...);
}

bool library_reduces(MPI_Op op, MPI_Datatype type) noexcept {
    alignas(16) unsigned char in[64] = {}, inout[64] = {};
    return real.Reduce_local(in, inout, 1, type, op) == MPI_SUCCESS;
}

// Where MPICH lacks an op on a float of 16 bits, a question ends the process. MPICH 5 has the sum
// of both types; of bfloat16 nothing else. Where its sum of float16 is right, that is the
// compiler's own type, and all ops are there.
bool library_reduces_halves(MPI_Op op, MPI_Datatype type) noexcept {
    if (!library::has_trait(library::Trait::half_sums)) return false;
    if (op != MPI_SUM && type == library::bfloat16) return false;
    return agreeing_kernel(MPI_SUM, type, *element_of(type)).into != nullptr &&
           library_reduces(op, type);
}

bool is_half(MPI_Datatype type) noexcept {
    return type == library::float16 || type == library::bfloat16;
}

// Asks once, where that raises no error.
bool library_accepts(MPI_Op op, MPI_Datatype type) noexcept {
    std::atomic<Accepted>& known = pair_of(op, type).accepted;
    Accepted answer = known.load(std::memory_order_relaxed);
    if (answer == Accepted::unknown && (is_half(type) || library::errors_can_be_quiet())) {
        const library::QuietErrors question;
        const bool yes =
            is_half(type) ? library_reduces_halves(op, type) : library_reduces(op, type);
        answer = yes ? Accepted::yes : Accepted::no;
        known.store(answer, std::memory_order_relaxed);
    }
    return answer != Accepted::no;
}

}  // namespace

void adopt_arithmetic(const library::BoundLibrary& library, bool others_are_inside) noexcept {
    if (enabled || settings().isa == IsaChoice::off || !library.found) return;
    if (others_are_inside) {
        count(Counter::decline_op_table);
        return log_line(LogLevel::info,
                        "arithmetic: the library's own, since a session came before MPI_Init");
    }
    if (gpu_runtime_is_loaded()) {
        count(Counter::decline_gpu);
        return log_line(LogLevel::info,
                        "arithmetic: the library's own, since a GPU runtime is loaded");
    }
    cap = cap_of(settings().isa);
    const char* where = "";
    const MaxMinOrder order(cap);
    library::reduce_by_op_functions();
    if (library::OpFunction* const table = library::find_op_table(library, &where)) {
        replace_functions(table, std::make_index_sequence<library::last_op>());
    } else {
        library::reduce_as_before();
        count(Counter::decline_op_table);
    }
    for (const OrderRow& row : order) keep_order(row);
    enabled = true;
    log_line(LogLevel::info, "arithmetic: %s, %s",
             kernels::isa_name(
                 kernels::reduce_kernel(kernels::ReduceOp::sum, kernels::ElementType::f32,
                                        cap_for(kernels::ReduceOp::sum, kernels::ElementType::f32))
                     .isa),
             where);
}

bool reduce_by_kernel(const void* in, void* inout, MPI_Count count, MPI_Datatype type,
                      MPI_Op op) noexcept {
    if (!library::is_predefined_op(op) || count <= 0) return false;
    if (in == inout || in == nullptr || inout == nullptr) return false;
    if (in == MPI_IN_PLACE || inout == MPI_IN_PLACE) return false;  // refused by the library
    const kernels::ReduceInto kernel = ready_kernel(op, type);
    if (kernel == nullptr) return false;
    vecmpi::count(Counter::elements_reduced, static_cast<uint64_t>(count));
    kernel(in, inout, static_cast<size_t>(count));
    return true;
}

bool is_reducible(MPI_Op op, MPI_Datatype type) noexcept {
    if (!library::is_predefined_op(op)) return false;
    const kernels::ElementType* const element = element_of(type);
    return element != nullptr && has_kernel(op, *element) && library_accepts(op, type);
}

int reduce_elements(const void* left, const void* right, void* to, MPI_Count count,
                    MPI_Datatype type, MPI_Count extent, MPI_Op op) noexcept {
    const bool predefined = enabled && library::is_predefined_op(op);
    if (predefined && ready_kernel(op, type) == nullptr) compare_once(op, type);
    if (predefined && ready_kernel(op, type) != nullptr) {
        vecmpi::count(Counter::elements_reduced, static_cast<uint64_t>(count));
        const kernels::ReduceTo kernel = pair_of(op, type).to.load(std::memory_order_relaxed);
        kernel(left, right, to, static_cast<size_t>(count));
        return MPI_SUCCESS;
    }
    return reduce_elements_by_library(left, right, to, count, type, extent, op);
}

void note_window_made() noexcept {
    library::note_windows(1);
    note_transfer_part(TransferPart::window);
}
void note_window_freed() noexcept { library::note_windows(-1); }

void note_reduced_by_library(MPI_Op op, MPI_Datatype type) noexcept {
    if (enabled && library::is_predefined_op(op)) compare_once(op, type);
}

}  // namespace vecmpi::offload
