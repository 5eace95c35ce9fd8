// SPDX-License-Identifier: BSD-3-Clause
// The library's arithmetic with our kernels: its algorithms stay as they are, whatever call they
// serve (blocking, nonblocking, persistent, RMA), since only the functions change that they call
// for a predefined op. At the first use of an op on a type its kernel is compared with the
// library's function bit for bit; it serves if they agree.
#include "arithmetic.hpp"

#include <algorithm>
#include <cfenv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

namespace vecmpi::offload {

namespace {

// ---- kernels in place of the library's functions ------------------------------------------------

using Ready = std::atomic<kernels::ReduceInto>;

// Kernels that passed, by op and type; null before. Stored with release after the comparison.
constinit Ready ready[library::last_op + 1][library::type_indices]{};
// The same with a result of its own; stored before `ready`.
constinit std::atomic<kernels::ReduceTo> ready_to[library::last_op + 1][library::type_indices]{};
// What a type holds for an op, where that is not what reducible_types says; written before other
// threads may call.
constinit std::optional<kernels::ElementType> other_element[library::last_op + 1]
                                                           [library::type_indices]{};
// Pairs that were compared, passed or not: not compared again. Stored with release after `ready`.
constinit std::atomic<bool> compared[library::last_op + 1][library::type_indices]{};
constinit std::mutex comparing;

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

bool enabled = false;  // written before other threads may call
kernels::Isa cap = kernels::Isa::scalar;
library::OpFunction
    library_functions[library::last_op + 1]{};  // the library's own, where its table was found

// What this host's profile allows of it, where the user named no set.
kernels::Isa cap_for(kernels::ReduceOp op, kernels::ElementType type) noexcept {
    const auto family = static_cast<size_t>(kernels::reduce_family(op, type));
    const IsaChoice measured = process_profile().profile.reduce[family];
    const bool counts = settings().isa == IsaChoice::automatic && measured != IsaChoice::automatic;
    return counts ? std::min(cap, cap_of(measured)) : cap;
}

kernels::ReduceOp kernel_op(MPI_Op op) noexcept {
    return static_cast<kernels::ReduceOp>(library::op_index(op) - library::first_op);
}

void store_ready(MPI_Op op, size_t index, const kernels::ReduceKernel& kernel) noexcept {
    ready_to[library::op_index(op)][index].store(kernel.to, std::memory_order_relaxed);
    ready[library::op_index(op)][index].store(kernel.into, std::memory_order_release);
}

// op: a predefined one.
kernels::ReduceInto ready_kernel(MPI_Op op, MPI_Datatype type) noexcept {
    const size_t index = library::type_index(type);
    if (reducible_types.type[index] != type) return nullptr;
    return ready[library::op_index(op)][index].load(std::memory_order_acquire);
}

bool reduce_by_library(MPI_Op op, const void* in, void* inout, MPI_Aint count,
                       MPI_Datatype type) noexcept {
    const library::OpFunction own = library_functions[library::op_index(op)];
    if (own == nullptr)
        return real.Reduce_local(in, inout, static_cast<int>(count), type, op) == MPI_SUCCESS;
    own(const_cast<void*>(in), inout, &count, &type);
    return true;
}

bool agrees_with_library(MPI_Op op, MPI_Datatype type, kernels::ReduceInto kernel) noexcept {
    constexpr size_t count = 1024;
    const size_t bytes =
        count * kernels::element_bytes(reducible_types.element[library::type_index(type)]);
    const std::unique_ptr<char, decltype(&std::free)> memory(
        static_cast<char*>(std::malloc(3 * bytes)), std::free);
    if (!memory) return false;
    char* const in = memory.get();
    char* const expected = in + bytes;
    char* const inout = expected + bytes;
    // The program may have asked for traps, or for subnormal numbers to be taken for zero, under
    // which the library's functions differ from its yaksa, whose bits a program expects.
    std::fenv_t environment;
    std::feholdexcept(&environment);
    std::fesetenv(FE_DFL_ENV);
    fill_with_probes(in, bytes, type, 1);
    fill_with_probes(expected, bytes, type, 2);
    std::memcpy(inout, expected, bytes);
    const bool computed = reduce_by_library(op, in, expected, count, type);
    kernel(in, inout, count);
    std::fesetenv(&environment);
    return computed && std::memcmp(expected, inout, bytes) == 0;
}

// For an op and a type that the library accepts. A kernel that all threads see is the right one for
// all: which of two served a call must not depend on who came first.
void compare_once(MPI_Op op, MPI_Datatype type) noexcept {
    const size_t index = library::type_index(type);
    if (reducible_types.type[index] != type) return;
    std::atomic<bool>& done = compared[library::op_index(op)][index];
    if (done.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(comparing);
    if (done.load(std::memory_order_relaxed)) return;
    const kernels::ElementType element =
        other_element[library::op_index(op)][index].value_or(reducible_types.element[index]);
    const kernels::ReduceKernel kernel =
        kernels::reduce_kernel(kernel_op(op), element, cap_for(kernel_op(op), element));
    if (kernel.into != nullptr && agrees_with_library(op, type, kernel.into))
        store_ready(op, index, kernel);
    else if (kernel.into != nullptr)
        log_line(LogLevel::info,
                 "op %08x on type %08x stays with the library: other bits than ours",
                 static_cast<unsigned>(op), static_cast<unsigned>(type));
    done.store(true, std::memory_order_release);
}

// MPI_Reduce_local leaves its result in the right operand. Where that must stay as it is, a part at
// a time is reduced elsewhere.
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

// The library has accepted op and type. Compared before the first use: under DAZ the library's
// function gives other bits than yaksa.
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

// ---- where the library does otherwise than its op functions say ---------------------------------

// MPICH 4.0.2 with yaksa compares unsigned numbers as signed ones: MPI_MAX of 5 and 4000000000
// is 5. A program gets the same from us: these pairs have the signed kernel from the first use on.
class SignedOrder {
  public:
    SignedOrder() noexcept {
        for (const Unsigned& row : unsigned_types) {
            uint64_t large = ~uint64_t{0}, one = 1;
            const bool asked = real.Reduce_local(&large, &one, 1, row.type, MPI_MAX) == MPI_SUCCESS;
            seen_[&row - unsigned_types] = asked && one == 1;
        }
    }
    void keep() const noexcept {
        for (const Unsigned& row : unsigned_types) {
            if (!seen_[&row - unsigned_types]) continue;
            for (const MPI_Op op : {MPI_MAX, MPI_MIN}) keep(op, row);
        }
    }

  private:
    struct Unsigned {
        MPI_Datatype type;
        kernels::ElementType as_signed;
    };
    static constexpr Unsigned unsigned_types[] = {
        {MPI_UNSIGNED_CHAR, kernels::ElementType::i8},
        {MPI_UNSIGNED_SHORT, kernels::ElementType::i16},
        {MPI_UNSIGNED, kernels::ElementType::i32},
        {MPI_UNSIGNED_LONG, kernels::ElementType::i64},
        {MPI_UNSIGNED_LONG_LONG, kernels::ElementType::i64},
        {MPI_UINT8_T, kernels::ElementType::i8},
        {MPI_UINT16_T, kernels::ElementType::i16},
        {MPI_UINT32_T, kernels::ElementType::i32},
        {MPI_UINT64_T, kernels::ElementType::i64}};

    static void keep(MPI_Op op, const Unsigned& row) noexcept {
        const size_t index = library::type_index(row.type);
        const kernels::ReduceKernel kernel =
            kernels::reduce_kernel(kernel_op(op), row.as_signed, cap);
        compared[library::op_index(op)][index].store(true, std::memory_order_relaxed);
        store_ready(op, index, kernel);
    }

    bool seen_[std::size(unsigned_types)];
};

// Under DAZ, which a program may ask for at any time, MAX and MIN of two subnormal numbers give one
// of them, or zero: by the instructions that the library's compiler chose. Asked of the plain
// library, type by type; where no kernel of ours does likewise, the pair stays with the library.
class SubnormalOrder {
  public:
    SubnormalOrder() noexcept {
        const FloatEnvironment environment = float_environment();
        set_float_environment(flushing(environment));
        for (const Float& row : float_types)
            for (const MPI_Op op : {MPI_MAX, MPI_MIN}) found(op, row) = find(op, row);
        set_float_environment(environment);
    }
    void keep() noexcept {
        for (const Float& row : float_types)
            for (const MPI_Op op : {MPI_MAX, MPI_MIN}) {
                const size_t index = library::type_index(row.type);
                other_element[library::op_index(op)][index] = found(op, row);
                if (!found(op, row).has_value())
                    compared[library::op_index(op)][index].store(true, std::memory_order_relaxed);
            }
    }

  private:
    struct Float {
        MPI_Datatype type;
        kernels::ElementType elements[2];  // by likelihood
    };
    static constexpr Float float_types[] = {
        {MPI_FLOAT, {kernels::ElementType::f32, kernels::ElementType::f32_flushed}},
        {MPI_REAL, {kernels::ElementType::f32, kernels::ElementType::f32_flushed}},
        {MPI_REAL4, {kernels::ElementType::f32, kernels::ElementType::f32_flushed}},
        {MPI_DOUBLE, {kernels::ElementType::f64, kernels::ElementType::f64_fortran}},
        {MPI_DOUBLE_PRECISION, {kernels::ElementType::f64_fortran, kernels::ElementType::f64}},
        {MPI_REAL8, {kernels::ElementType::f64_fortran, kernels::ElementType::f64}}};

    // Nothing traps either.
    static FloatEnvironment flushing(FloatEnvironment environment) noexcept {
#if defined(__x86_64__)
        environment.vector |= 0x8040u | 0x1f80u;
#else
        environment.vector = (environment.vector | 1u << 24) & ~0x9f00u;
#endif
        return environment;
    }

    std::optional<kernels::ElementType>& found(MPI_Op op, const Float& row) noexcept {
        return found_[op == MPI_MIN][&row - float_types];
    }

    // Every pair of some subnormal numbers and zero, one pair at a time.
    template <class Bits>
    static bool agrees(MPI_Op op, MPI_Datatype type, kernels::ReduceInto kernel) noexcept {
        constexpr Bits minus = Bits{1} << (8 * sizeof(Bits) - 1);
        constexpr Bits numbers[] = {0, 3, 7, minus | 5, minus | 9};
        for (const Bits in : numbers)
            for (const Bits second : numbers) {
                Bits expected = second, inout = second;
                if (real.Reduce_local(&in, &expected, 1, type, op) != MPI_SUCCESS) return true;
                kernel(&in, &inout, 1);
                if (expected != inout) return false;
            }
        return true;
    }

    static std::optional<kernels::ElementType> find(MPI_Op op, const Float& row) noexcept {
        const bool is_fortran = row.type != MPI_FLOAT && row.type != MPI_DOUBLE;
        // A library may have been built without Fortran, and refuse it.
        if (is_fortran && !library::errors_can_be_quiet()) return row.elements[0];
        const library::QuietErrors question;
        for (const kernels::ElementType element : row.elements) {
            const kernels::ReduceInto kernel =
                kernels::reduce_kernel(kernel_op(op), element, cap).into;
            if (kernels::element_bytes(element) == sizeof(uint32_t)
                    ? agrees<uint32_t>(op, row.type, kernel)
                    : agrees<uint64_t>(op, row.type, kernel))
                return element;
        }
        log_line(LogLevel::info,
                 "op %08x on type %08x stays with the library: other bits than ours",
                 static_cast<unsigned>(op), static_cast<unsigned>(row.type));
        return std::nullopt;
    }

    std::optional<kernels::ElementType> found_[2][std::size(float_types)];
};

// The library refuses pairs that MPI does not define, MPI_MAX on MPI_BYTE for example. It is asked
// once, where that raises no error. Relaxed: who finds nothing asks again.
enum class Accepted : uint8_t { unknown, yes, no };
constinit std::atomic<Accepted> accepted[library::last_op + 1][library::type_indices]{};

bool library_accepts(MPI_Op op, MPI_Datatype type) noexcept {
    std::atomic<Accepted>& known = accepted[library::op_index(op)][library::type_index(type)];
    Accepted answer = known.load(std::memory_order_relaxed);
    if (answer == Accepted::unknown && library::errors_can_be_quiet()) {
        alignas(16) unsigned char in[64] = {}, inout[64] = {};
        const library::QuietErrors question;
        answer =
            real.Reduce_local(in, inout, 1, type, op) == MPI_SUCCESS ? Accepted::yes : Accepted::no;
        known.store(answer, std::memory_order_relaxed);
    }
    return answer != Accepted::no;
}

bool has_gpu_runtime(const std::vector<LoadedLibrary>& libraries) noexcept {
    for (const LoadedLibrary& library : libraries)
        for (const char* name : {"libcuda.so", "libcudart.so", "libamdhip64.so", "libze_loader.so"})
            if (library.path.find(name) != std::string::npos) return true;
    return false;
}

}  // namespace

// The list of libraries costs tens of us, and is read again only where the loader has loaded one.
bool gpu_runtime_is_loaded() noexcept {
    // The number of loads and the answer. Relaxed: one word, and threads that come here at once
    // find the same.
    static constinit std::atomic<uint64_t> known{0};
    const uint64_t loads = libraries_ever_loaded();
    const uint64_t last = known.load(std::memory_order_relaxed);
    if (last >> 1 == loads && loads != 0) return (last & 1) != 0;
    try {
        const bool is_loaded = has_gpu_runtime(loaded_libraries());
        known.store(loads << 1 | (is_loaded ? 1 : 0), std::memory_order_relaxed);
        return is_loaded;
    } catch (const std::bad_alloc&) {
        return true;
    }
}

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
    const SignedOrder signed_order;
    SubnormalOrder subnormal_order;
    library::reduce_by_op_functions();
    if (library::OpFunction* const table = library::find_op_table(library, &where)) {
        replace_functions(table, std::make_index_sequence<library::last_op>());
    } else {
        library::reduce_as_before();
        count(Counter::decline_op_table);
    }
    signed_order.keep();
    subnormal_order.keep();
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
    const size_t index = library::type_index(type);
    return reducible_types.type[index] == type &&
           kernels::reduce_kernel(kernel_op(op), reducible_types.element[index],
                                  kernels::Isa::scalar)
                   .into != nullptr &&
           library_accepts(op, type);
}

int reduce_elements(const void* left, const void* right, void* to, MPI_Count count,
                    MPI_Datatype type, MPI_Count extent, MPI_Op op) noexcept {
    const bool predefined = enabled && library::is_predefined_op(op);
    if (predefined && ready_kernel(op, type) == nullptr) compare_once(op, type);
    if (predefined && ready_kernel(op, type) != nullptr) {
        vecmpi::count(Counter::elements_reduced, static_cast<uint64_t>(count));
        const kernels::ReduceTo kernel =
            ready_to[library::op_index(op)][library::type_index(type)].load(
                std::memory_order_relaxed);
        kernel(left, right, to, static_cast<size_t>(count));
        return MPI_SUCCESS;
    }
    return reduce_elements_by_library(left, right, to, count, type, extent, op);
}

void note_window_made() noexcept { library::note_windows(1); }
void note_window_freed() noexcept { library::note_windows(-1); }

void note_reduced_by_library(MPI_Op op, MPI_Datatype type) noexcept {
    if (enabled && library::is_predefined_op(op)) compare_once(op, type);
}

}  // namespace vecmpi::offload
