// SPDX-License-Identifier: BSD-3-Clause
// Floats of 16 bits are few enough to try all of them. See battery.hpp.
#include <cfenv>
#include <cstring>
#include <random>
#include <vector>

#include "battery.hpp"
#include "twin.hpp"

using namespace vecmpi;

namespace battery {
namespace {

using Halves = std::vector<uint16_t>;
constexpr size_t all = 65536;

struct Format {
    kernels::ElementType type;
    int fraction_bits;
    uint16_t one;
};
constexpr Format formats[] = {{kernels::ElementType::f16, 10, 0x3C00},
                              {kernels::ElementType::bf16, 7, 0x3F80},
                              {kernels::ElementType::bf16_half_up, 7, 0x3F80}};

// Zero, the least and largest numbers of each kind, infinity, NaNs of both kinds; numbers near 1,
// beside which others tie; and any.
Halves second_operands(const Format& format, const Options& options) {
    const int least_normal = 1 << format.fraction_bits;
    const int infinity = 0x8000 - least_normal;
    Halves values;
    for (const int bits : {0, 1, least_normal - 1, least_normal, int{format.one}, infinity - 1,
                           infinity, infinity + 5, infinity + least_normal / 2 + 3})
        values.push_back(static_cast<uint16_t>(bits));
    std::mt19937_64 random(options.seed + 4);
    for (int i = 0; i < (options.quick ? 1 : 4); ++i) {
        values.push_back(static_cast<uint16_t>(format.one + random() % (2u * least_normal)));
        values.push_back(static_cast<uint16_t>(random()));
    }
    const size_t positive = values.size();
    for (size_t i = 0; i < positive && !options.quick; ++i)
        values.push_back(static_cast<uint16_t>(values[i] ^ 0x8000));
    return values;
}

std::string first_difference(kernels::ReduceOp op, kernels::ElementType type,
                             const kernels::ReduceKernel& kernel, const Halves& in,
                             const Halves& inout) {
    Halves got(all);
    kernel.to(in.data(), inout.data(), got.data(), all);
    for (size_t i = 0; i < all; ++i) {
        unsigned char expected[2], given[2], taken[2];
        std::memcpy(given, &in[i], 2);
        std::memcpy(taken, &inout[i], 2);
        twin::reduce_element(op, type, given, taken, expected);
        if (std::memcmp(expected, &got[i], 2) == 0) continue;
        return std::string(twin::name_of(op)) + " " + twin::name_of(type) + " " +
               kernels::isa_name(kernel.isa) + ": inout " + std::to_string(inout[i]) + " in " +
               std::to_string(in[i]) + " gave " + std::to_string(got[i]) + " in rounding mode " +
               std::to_string(std::fegetround()) + "\n";
    }
    return "";
}

}  // namespace

Tally check_halves(kernels::Isa isa, const Options& options) {
    Tally tally;
    Halves each(all);
    for (size_t i = 0; i < all; ++i) each[i] = static_cast<uint16_t>(i);
    for (const Format& format : formats)
        for (const kernels::ReduceOp op : {kernels::ReduceOp::sum, kernels::ReduceOp::prod,
                                           kernels::ReduceOp::max, kernels::ReduceOp::min}) {
            const kernels::ReduceKernel kernel = kernels::reduce_kernel(op, format.type, isa);
            if (kernel.isa != isa) continue;
            std::string complaint;
            for (const int mode : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
                std::fesetround(mode);
                for (const uint16_t second : second_operands(format, options)) {
                    const Halves same(all, second);
                    if (complaint.empty())
                        complaint = first_difference(op, format.type, kernel, each, same) +
                                    first_difference(op, format.type, kernel, same, each);
                }
                std::fesetround(FE_TONEAREST);
            }
            ++(complaint.empty() ? tally.passed : tally.failed);
            tally.complaints += complaint;
        }
    return tally;
}

}  // namespace battery
