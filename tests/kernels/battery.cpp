// SPDX-License-Identifier: BSD-3-Clause
// See battery.hpp. A kernel is run on windows of a pool of operands whose results the twin has
// computed once, at many counts and offsets, between canaries.
#include "battery.hpp"

#include <algorithm>
#include <cfenv>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>
#if defined(__x86_64__)
#include <cpuid.h>
#include <xmmintrin.h>
#endif

#include "samples.hpp"
#include "twin.hpp"

using namespace vecmpi;

namespace battery {
namespace {

constexpr size_t pool_count = 1021;  // a prime, so that windows fall differently on vectors
constexpr size_t canary_bytes = 64;
constexpr unsigned char canary = 0xA5;

using Bytes = std::vector<unsigned char>;

// Operands, and what the twin makes of them. Longer than where windows start, which need not wrap.
struct Pool {
    kernels::ReduceOp op;
    kernels::ElementType type;
    Bytes in, inout, expected;
};

void compute_expected(Pool& pool) {
    const size_t bytes = twin::bytes_of(pool.type);
    for (size_t at = 0; at != pool.in.size(); at += bytes)
        twin::reduce_element(pool.op, pool.type, &pool.in[at], &pool.inout[at], &pool.expected[at]);
}

Pool make_pool(samples::Random& random, kernels::ReduceOp op, kernels::ElementType type,
               size_t count) {
    Pool pool{op, type, samples::draw(random, type, count), samples::draw(random, type, count), {}};
    pool.expected.resize(pool.in.size());
    compute_expected(pool);
    return pool;
}

enum class Form { into, to, to_in, to_inout, same_inputs };
constexpr Form forms[] = {Form::into, Form::to, Form::to_in, Form::to_inout, Form::same_inputs};
const char* name_of(Form form) {
    switch (form) {
        case Form::into:
            return "inout = inout op in";
        case Form::to:
            return "out = inout op in";
        case Form::to_in:
            return "out is in";
        case Form::to_inout:
            return "out is inout";
        case Form::same_inputs:
            return "in is inout";
    }
    return "?";
}

struct Offsets {
    size_t in, inout, out;  // bytes past a 64-byte boundary
};

// A 64-byte aligned area with canaries around a window of it.
class Area {
  public:
    unsigned char* place(const unsigned char* from, size_t bytes, size_t offset) {
        if (storage_.size() < bytes + 4 * canary_bytes) storage_.resize(bytes + 4 * canary_bytes);
        const auto address = reinterpret_cast<uintptr_t>(storage_.data());
        window_ = storage_.data() + (canary_bytes - address % 64) + canary_bytes + offset;
        bytes_ = bytes;
        std::memset(window_ - canary_bytes, canary, canary_bytes);
        std::memset(window_ + bytes, canary, canary_bytes);
        if (from != nullptr && bytes != 0) std::memcpy(window_, from, bytes);
        return window_;
    }
    bool holds(const unsigned char* expected) const {
        return bytes_ == 0 || std::memcmp(window_, expected, bytes_) == 0;
    }
    bool canaries_live() const {
        for (size_t i = 0; i != canary_bytes; ++i)
            if (*(window_ - 1 - i) != canary || window_[bytes_ + i] != canary) return false;
        return true;
    }
    const unsigned char* window() const { return window_; }

  private:
    Bytes storage_;
    unsigned char* window_ = nullptr;
    size_t bytes_ = 0;
};

std::string hexadecimal(const unsigned char* from, size_t bytes) {
    std::string text;
    char digits[3];
    for (size_t i = bytes; i-- != 0;) {  // most significant first
        std::snprintf(digits, sizeof digits, "%02x", from[i]);
        text += digits;
    }
    return text;
}

class Runner {
  public:
    Runner(const kernels::ReduceKernel& kernel, const Pool& pool)
        : kernel_(kernel), pool_(pool), bytes_(twin::bytes_of(pool.type)) {}

    // Runs one form on `count` elements from `start`; on a failure keeps the first complaint.
    void run(Form form, size_t start, size_t count, Offsets offsets) {
        const unsigned char* in = pool_.in.data() + start * bytes_;
        const unsigned char* inout = pool_.inout.data() + start * bytes_;
        const size_t size = count * bytes_;
        unsigned char* in_at = in_.place(in, size, offsets.in);
        unsigned char* inout_at = inout_.place(inout, size, offsets.inout);
        switch (form) {
            case Form::into:
                kernel_.into(in_at, inout_at, count);
                return compare(form, inout_, start, count, offsets, in_.holds(in));
            case Form::to:
                kernel_.to(in_at, inout_at, out_.place(nullptr, size, offsets.out), count);
                return compare(form, out_, start, count, offsets,
                               in_.holds(in) && inout_.holds(inout));
            case Form::to_in:
                kernel_.to(in_at, inout_at, in_at, count);
                return compare(form, in_, start, count, offsets, inout_.holds(inout));
            case Form::to_inout:
                kernel_.to(in_at, inout_at, inout_at, count);
                return compare(form, inout_, start, count, offsets, in_.holds(in));
            case Form::same_inputs:
                return run_same(count, start, offsets);
        }
    }

    bool failed() const { return !complaint_.empty(); }
    const std::string& complaint() const { return complaint_; }

  private:
    // Both operands the same memory: inout = inout op inout.
    void run_same(size_t count, size_t start, Offsets offsets) {
        const unsigned char* from = pool_.inout.data() + start * bytes_;
        unsigned char* at = inout_.place(from, count * bytes_, offsets.inout);
        kernel_.into(at, at, count);
        Bytes expected(count * bytes_ + 1);
        for (size_t i = 0; i != count; ++i)
            twin::reduce_element(pool_.op, pool_.type, from + i * bytes_, from + i * bytes_,
                                 &expected[i * bytes_]);
        if (!inout_.holds(expected.data()) || !inout_.canaries_live())
            complain(Form::same_inputs, count, offsets, "differs");
    }

    void compare(Form form, const Area& result, size_t start, size_t count, Offsets offsets,
                 bool inputs_live) {
        const unsigned char* expected = pool_.expected.data() + start * bytes_;
        if (!result.holds(expected))
            complain(form, count, offsets, first_difference(result.window(), start, count));
        else if (!result.canaries_live() || !inputs_live)
            complain(form, count, offsets, "wrote outside of its output");
    }

    std::string first_difference(const unsigned char* got, size_t start, size_t count) const {
        for (size_t i = 0; i != count; ++i) {
            const size_t at = (start + i) * bytes_;
            if (std::memcmp(got + i * bytes_, &pool_.expected[at], bytes_) == 0) continue;
            return "element " + std::to_string(i) + ": inout " +
                   hexadecimal(&pool_.inout[at], bytes_) + " in " +
                   hexadecimal(&pool_.in[at], bytes_) + " gave " +
                   hexadecimal(got + i * bytes_, bytes_) + " not " +
                   hexadecimal(&pool_.expected[at], bytes_);
        }
        return "no difference";
    }

    void complain(Form form, size_t count, Offsets offsets, const std::string& what) {
        if (failed()) return;
        complaint_ = std::string(twin::name_of(pool_.op)) + " " + twin::name_of(pool_.type) + " " +
                     kernels::isa_name(kernel_.isa) + " (" + name_of(form) + ", count " +
                     std::to_string(count) + ", offsets " + std::to_string(offsets.in) + " " +
                     std::to_string(offsets.inout) + " " + std::to_string(offsets.out) +
                     "): " + what;
    }

    const kernels::ReduceKernel kernel_;
    const Pool& pool_;
    const size_t bytes_;
    Area in_, inout_, out_;
    std::string complaint_;
};

Offsets any_offsets(samples::Random& random) {
    return {random() % 64, random() % 64, random() % 64};
}

void run_counts(Runner& runner, samples::Random& random, const Options& options) {
    const size_t last = options.quick ? 80 : 300;
    const size_t rounds = options.quick ? 1 : 2;
    for (size_t count = 0; count <= last && !runner.failed(); ++count)
        for (size_t round = 0; round != rounds; ++round)
            for (Form form : forms)
                runner.run(form, random() % pool_count, count, any_offsets(random));
    if (!options.quick) return;
    for (size_t count : {127, 128, 129, 255, 257, 299, 300})
        for (Form form : forms) runner.run(form, random() % pool_count, count, any_offsets(random));
}

void run_offsets(Runner& runner, samples::Random& random, const Options& options) {
    const size_t step = options.quick ? 7 : 1;
    for (size_t offset = 0; offset < 64 && !runner.failed(); offset += step)
        for (size_t count : {5, 37, 260}) {
            const size_t start = random() % pool_count;
            runner.run(Form::to, start, count, {offset, 0, 0});
            runner.run(Form::to, start, count, {0, offset, 0});
            runner.run(Form::to, start, count, {0, 0, offset});
            runner.run(Form::into, start, count, {offset, 0, 0});
            runner.run(Form::into, start, count, {0, offset, 0});
        }
}

// More than fits the pool: its elements over and over.
std::string run_large(const kernels::ReduceKernel& kernel, const Pool& pool,
                      samples::Random& random, const Options& options) {
    const size_t count = options.quick ? 5003 : 70001;
    const size_t bytes = twin::bytes_of(pool.type);
    Pool large{pool.op, pool.type, {}, {}, {}};
    for (size_t at = 0; at < count * bytes; at += pool.in.size()) {
        large.in.insert(large.in.end(), pool.in.begin(), pool.in.end());
        large.inout.insert(large.inout.end(), pool.inout.begin(), pool.inout.end());
        large.expected.insert(large.expected.end(), pool.expected.begin(), pool.expected.end());
    }
    Runner runner(kernel, large);
    for (Form form : {Form::into, Form::to, Form::to_in})
        runner.run(form, 0, count, any_offsets(random));
    return runner.complaint();
}

// What is left to the whole from the pieces that a kernel computes in the cache.
std::string run_huge(const kernels::ReduceKernel& kernel, kernels::ReduceOp op,
                     kernels::ElementType type, samples::Random& random) {
    constexpr size_t huge = (size_t{16} << 20) + 4096, piece = 1000, canary = 64;
    const size_t bytes = twin::bytes_of(type), count = huge / bytes;
    const auto repeated = [&](const Bytes& some) {
        Bytes all;
        while (all.size() < huge) all.insert(all.end(), some.begin(), some.end());
        return all;
    };
    const Bytes in = repeated(samples::draw(random, type, pool_count));
    const Bytes inout = repeated(samples::draw(random, type, pool_count));
    Bytes expected = inout;
    for (size_t i = 0; i < count; i += piece)
        kernel.into(in.data() + i * bytes, expected.data() + i * bytes, std::min(piece, count - i));
    for (const size_t offset : {random() % 8 * bytes, random() % 64}) {
        Bytes out(canary + offset + count * bytes + canary, 0xA5);
        kernel.to(in.data(), inout.data(), out.data() + canary + offset, count);
        const bool same =
            std::memcmp(out.data() + canary + offset, expected.data(), count * bytes) == 0;
        const auto untouched = [](unsigned char byte) { return byte == 0xA5; };
        if (!same || !std::all_of(out.begin(), out.begin() + canary + offset, untouched) ||
            !std::all_of(out.end() - canary, out.end(), untouched))
            return std::string(twin::name_of(op)) + " " + twin::name_of(type) + " on " +
                   kernels::isa_name(kernel.isa) + ": 16 MiB differ from small pieces, offset " +
                   std::to_string(offset);
    }
    return "";
}

void add_result(Tally& tally, const std::string& complaint) {
    if (complaint.empty()) {
        ++tally.passed;
    } else {
        ++tally.failed;
        tally.complaints += complaint + "\n";
    }
}

void expect(Tally& tally, bool holds, const std::string& what) {
    add_result(tally, holds ? "" : what);
}

template <class Visit>
void for_each_pair(const Visit& visit) {
    for (size_t op = 0; op != kernels::number_of_reduce_ops; ++op)
        for (size_t type = 0; type != kernels::number_of_element_types; ++type)
            visit(static_cast<kernels::ReduceOp>(op), static_cast<kernels::ElementType>(type));
}

// ---- floating-point environments -------------------------------------------------------

void flush_subnormals(bool flush) {
#if defined(__x86_64__)
    constexpr unsigned ftz_daz = 0x8040;
    _mm_setcsr(flush ? _mm_getcsr() | ftz_daz : _mm_getcsr() & ~ftz_daz);
#elif defined(__aarch64__)
    constexpr uint64_t fz = 1U << 24;
    uint64_t control = 0;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    control = flush ? control | fz : control & ~fz;
    asm volatile("msr fpcr, %0" : : "r"(control));
#else
    (void)flush;
#endif
}

// VCVTPH2PS pays no attention to DAZ (Intel 64 and IA-32 Architectures Software Developer's Manual,
// volume 1, 14.4.1). QEMU's flushes; it calls itself TCG.
bool is_qemu() {
#if defined(__x86_64__)
    constexpr unsigned hypervisor_leaf = 0x40000000;
    unsigned a = 0, name[3] = {};
    __cpuid(hypervisor_leaf, a, name[0], name[1], name[2]);
    return std::memcmp(name, "TCGTCGTCGTCG", sizeof name) == 0;
#else
    return false;
#endif
}
bool is_as_on_hardware(kernels::ElementType type, kernels::Isa isa) {
    const bool widens = isa == kernels::Isa::avx2 || isa == kernels::Isa::avx512;
    return type != kernels::ElementType::f16 || !widens || !is_qemu();
}

struct Environment {
    int rounding;
    bool flush;
};

std::string run_in(const Environment& environment, const kernels::ReduceKernel& kernel, Pool& pool,
                   samples::Random& random) {
    std::fesetround(environment.rounding);
    flush_subnormals(environment.flush);
    compute_expected(pool);
    Runner runner(kernel, pool);
    for (size_t count : {1, 3, 16, 67, 300})
        runner.run(Form::into, random() % 100, count, any_offsets(random));
    flush_subnormals(false);
    std::fesetround(FE_TONEAREST);
    return runner.complaint();
}

// Nothing says how MAX and MIN of bfloat16 take subnormal numbers that are to be flushed.
bool follows_environment(kernels::ReduceOp op, kernels::ElementType type) {
    const bool is_bfloat16 =
        type == kernels::ElementType::bf16 || type == kernels::ElementType::bf16_half_up;
    return type >= kernels::ElementType::f16 && !(is_bfloat16 && op <= kernels::ReduceOp::min);
}

}  // namespace

Tally check_kernels(kernels::Isa isa, const Options& options) {
    Tally tally;
    samples::Random random(options.seed);
    for_each_pair([&](kernels::ReduceOp op, kernels::ElementType type) {
        const kernels::ReduceKernel kernel = kernels::reduce_kernel(op, type, isa);
        if (kernel.into == nullptr || kernel.isa != isa) return;
        const Pool pool = make_pool(random, op, type, 2 * pool_count);
        Runner runner(kernel, pool);
        run_counts(runner, random, options);
        run_offsets(runner, random, options);
        std::string complaint = runner.complaint();
        if (complaint.empty()) complaint = run_large(kernel, pool, random, options);
        add_result(tally, complaint);
    });
    return tally;
}

Tally check_huge(kernels::Isa isa, const Options& options) {
    Tally tally;
    samples::Random random(options.seed + 2);
    constexpr std::pair<kernels::ReduceOp, kernels::ElementType> pairs[] = {
        {kernels::ReduceOp::max, kernels::ElementType::i8},
        {kernels::ReduceOp::sum, kernels::ElementType::f32},
        {kernels::ReduceOp::bxor, kernels::ElementType::u64},
        {kernels::ReduceOp::prod, kernels::ElementType::c64},
        {kernels::ReduceOp::minloc, kernels::ElementType::i32_i32},
        {kernels::ReduceOp::maxloc, kernels::ElementType::f64_i32}};
    for (const auto& [op, type] : pairs) {
        const kernels::ReduceKernel kernel = kernels::reduce_kernel(op, type, isa);
        if (kernel.isa == isa) add_result(tally, run_huge(kernel, op, type, random));
    }
    return tally;
}

Tally check_environments(kernels::Isa isa, const Options& options) {
    Tally tally;
    samples::Random random(options.seed + 1);
    for_each_pair([&](kernels::ReduceOp op, kernels::ElementType type) {
        const kernels::ReduceKernel kernel = kernels::reduce_kernel(op, type, isa);
        if (kernel.into == nullptr || kernel.isa != isa || !follows_environment(op, type)) return;
        Pool pool = make_pool(random, op, type, 400);
        for (int rounding : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO})
            for (bool flush : {false, true}) {
                if (flush && !is_as_on_hardware(type, isa)) continue;
                const std::string complaint = run_in({rounding, flush}, kernel, pool, random);
                if (complaint.empty()) continue;
                add_result(tally, complaint + " (rounding " + std::to_string(rounding) +
                                      (flush ? ", flushing)" : ")"));
                return;
            }
        add_result(tally, "");
    });
    return tally;
}

Tally check_table() {
    Tally tally;
    for_each_pair([&](kernels::ReduceOp op, kernels::ElementType type) {
        const std::string name = std::string(twin::name_of(op)) + " " + twin::name_of(type) + ": ";
        const kernels::ReduceKernel best = kernels::reduce_kernel(op, type, kernels::best_isa());
        const kernels::ReduceKernel scalar = kernels::reduce_kernel(op, type, kernels::Isa::scalar);
        const bool legal = twin::is_legal(op, type);
        expect(tally, (best.into != nullptr) == legal && (best.to != nullptr) == legal,
               name + "the kernel should be there exactly where MPI has the pair");
        expect(tally, (scalar.into != nullptr) == legal && scalar.isa == kernels::Isa::scalar,
               name + "the scalar kernel");
        expect(tally, best.isa <= kernels::best_isa(), name + "a kernel above this CPU");
    });
    for (size_t i = 0; i != kernels::number_of_element_types; ++i) {
        const auto type = static_cast<kernels::ElementType>(i);
        expect(tally, kernels::element_bytes(type) == twin::bytes_of(type),
               std::string("element_bytes of ") + twin::name_of(type));
    }
    const kernels::Isa foreign =
        kernels::best_isa() >= kernels::Isa::neon ? kernels::Isa::sse4 : kernels::Isa::neon;
    expect(tally,
           kernels::reduce_kernel(kernels::ReduceOp::sum, kernels::ElementType::f32, foreign).isa ==
               kernels::best_isa(),
           "a cap of another architecture caps nothing");
    expect(tally, std::string_view(kernels::isa_name(kernels::Isa::avx512)) == "avx512",
           "isa_name");
    return tally;
}

}  // namespace battery
