// SPDX-License-Identifier: BSD-3-Clause
// vecmpi_kernel_check: the battery as a program of its own, on every instruction set of this CPU.
//
//     vecmpi_kernel_check [--quick] [--seed N] [--expect ISA]
//
// --expect: fails unless the best instruction set is that one (sve-512: SVE of 512 bits). The last
// line is "N passed, N failed".
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#if defined(__aarch64__)
#include <sys/prctl.h>
#endif

#include "battery.hpp"

using vecmpi::kernels::Isa;

namespace {

// Name of the best instruction set; of SVE with the length of its vectors in bits.
std::string best_set() {
    std::string name = vecmpi::kernels::isa_name(vecmpi::kernels::best_isa());
#if defined(__aarch64__)
    if (vecmpi::kernels::best_isa() == Isa::sve)
        name += "-" + std::to_string(8 * (prctl(PR_SVE_GET_VL) & PR_SVE_VL_LEN_MASK));
#endif
    return name;
}

struct Arguments {
    battery::Options options;
    const char* expected = nullptr;
};

Arguments parse(int argc, char** argv) {
    Arguments arguments;
    arguments.options.seed = std::random_device()();
    for (int i = 1; i < argc; ++i) {
        const bool has_value = i + 1 < argc;
        if (std::strcmp(argv[i], "--quick") == 0)
            arguments.options.quick = true;
        else if (std::strcmp(argv[i], "--seed") == 0 && has_value)
            arguments.options.seed = std::strtoull(argv[++i], nullptr, 0);
        else if (std::strcmp(argv[i], "--expect") == 0 && has_value)
            arguments.expected = argv[++i];
        else {
            std::fprintf(stderr, "usage: %s [--quick] [--seed N] [--expect ISA]\n", argv[0]);
            std::exit(2);
        }
    }
    return arguments;
}

class Sum {
  public:
    void add(const char* name, const battery::Tally& tally) {
        std::printf("%s: %zu passed, %zu failed\n%s", name, tally.passed, tally.failed,
                    tally.complaints.c_str());
        std::fflush(stdout);
        passed_ += tally.passed;
        failed_ += tally.failed;
    }
    int finish() const {
        std::printf("%zu passed, %zu failed\n", passed_, failed_);
        return failed_ == 0 ? 0 : 1;
    }

  private:
    size_t passed_ = 0, failed_ = 0;
};

battery::Tally check_expectation(const char* expected) {
    battery::Tally tally;
    const bool holds = best_set() == expected;
    (holds ? tally.passed : tally.failed) = 1;
    if (!holds) tally.complaints = std::string("expected ") + expected + "\n";
    return tally;
}

}  // namespace

int main(int argc, char** argv) {
    const Arguments arguments = parse(argc, argv);
    std::printf("seed %llu, best instruction set %s\n",
                static_cast<unsigned long long>(arguments.options.seed), best_set().c_str());
    Sum sum;
    if (arguments.expected != nullptr)
        sum.add("expectation", check_expectation(arguments.expected));
    sum.add("table", battery::check_table());
    sum.add("scalar scattered blocks", battery::check_blocks(Isa::scalar, arguments.options));
    for (Isa isa : {Isa::scalar, Isa::sse4, Isa::avx2, Isa::avx512, Isa::neon, Isa::sve}) {
        const bool runs = vecmpi::kernels::reduce_kernel(vecmpi::kernels::ReduceOp::band,
                                                         vecmpi::kernels::ElementType::u8, isa)
                              .isa == isa;
        if (!runs) continue;
        sum.add(vecmpi::kernels::isa_name(isa), battery::check_kernels(isa, arguments.options));
        sum.add("  scattered blocks", battery::check_blocks(isa, arguments.options));
        sum.add("  all floats of 16 bits", battery::check_halves(isa, arguments.options));
        sum.add("  16 MiB", battery::check_huge(isa, arguments.options));
        sum.add("  floating-point environments",
                battery::check_environments(isa, arguments.options));
    }
    return sum.finish();
}
