// SPDX-License-Identifier: BSD-3-Clause
// Reductions whose rounding depends on the order of the operands: all ranks must end with the same
// bits. Rounded results enter a topic only with the argument `rounded`, because another order of
// summation is legal.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "completion.hpp"

using namespace battery;

namespace {

constexpr int counts[] = {0, 1, 3, 17, 1000, 70000};

enum class Way { allreduce, iallreduce, reduce_bcast, scatter_gather };
constexpr Way ways[] = {Way::allreduce, Way::iallreduce, Way::reduce_bcast, Way::scatter_gather};

// `count` elements of `type`, each of `parts` scalars: the parts of a complex number add up
// independently.
struct Work {
    MPI_Datatype type;
    int parts;
    MPI_Op op;
    int count;
    Way way;
    uint64_t id;
    bool in_place;
    int root;
};

// Integers of all bits, whose arithmetic wraps. Other numbers of both signs over many powers of
// two; products of a few of them neither overflow nor become denormal.
template <class S>
S input(const Work& work, int rank, size_t i) {
    const uint64_t hash = mix(work.id + static_cast<uint64_t>(rank) * 0x100000001b3u + i);
    if constexpr (std::is_integral_v<S>) {
        return static_cast<S>(hash | 1);  // odd: a product does not decay to 0
    } else {
        const int spread = work.op == MPI_SUM ? 30 : 100 / world.size;
        const int exponent =
            static_cast<int>(hash % static_cast<uint64_t>(2 * spread + 1)) - spread;
        const S mantissa = 1 + std::ldexp(static_cast<S>(mix(hash)), -64);
        return std::ldexp(hash >> 63 != 0 ? -mantissa : mantissa, exponent);
    }
}

// x86's long double has 10 bytes of value in 16.
template <class S>
constexpr size_t value_bytes =
    std::numeric_limits<S>::digits == 64 && !std::is_integral_v<S> ? 10 : sizeof(S);

template <class S>
uint64_t hash_values(const std::vector<S>& values, size_t length) {
    uint64_t hash = length;
    for (size_t i = 0; i < length; ++i)
        hash = mix(hash ^ hash_bytes(&values[i], value_bytes<S>)) + 1;
    return hash;
}

class Trial {
  public:
    explicit Trial(const Work& work) : work_(work) {}
    virtual ~Trial() = default;
    virtual void issue() = 0;
    virtual void judge() = 0;
    MPI_Request request = MPI_REQUEST_NULL;

  protected:
    Work work_;
};

template <class S>
class TrialOf : public Trial {
  public:
    explicit TrialOf(const Work& work)
        : Trial(work),
          block_((work.count + world.size - 1) / world.size),
          length_(static_cast<size_t>(work.count * work.parts)),
          in_(static_cast<size_t>(block_ * world.size * work.parts)),
          out_(in_.size()) {
        for (size_t i = 0; i < length_; ++i) in_[i] = input<S>(work_, world.rank, i);
        if (work_.in_place) out_ = in_;
    }

    void issue() override {
        const void* in = work_.in_place ? MPI_IN_PLACE : in_.data();
        if (work_.way == Way::allreduce)
            MPI_Allreduce(in, out_.data(), work_.count, work_.type, work_.op, MPI_COMM_WORLD);
        if (work_.way == Way::iallreduce)
            MPI_Iallreduce(in, out_.data(), work_.count, work_.type, work_.op, MPI_COMM_WORLD,
                           &request);
        if (work_.way == Way::reduce_bcast) reduce_and_bcast();
        if (work_.way == Way::scatter_gather) scatter_and_gather();
    }

    void judge() override {
        const uint64_t mine = hash_values(out_, length_);
        std::vector<uint64_t> all(static_cast<size_t>(world.size));
        MPI_Allgather(&mine, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD);
        for (size_t rank = 0; rank < all.size(); ++rank)
            if (all[rank] != mine)
                check_equal(static_cast<int>(rank), world.rank, "rank with these bits");
        // All have the same bits: each rank judges its share of them.
        for (auto i = static_cast<size_t>(world.rank); i < length_;
             i += static_cast<size_t>(world.size))
            if (!is_right(i)) check_equal(static_cast<int64_t>(i), -1, "wrong element (index)");
        topic("compared").add(length_);
        if (std::is_integral_v<S>)
            topic("integers").add(mine);
        else if (world.argument == "rounded")
            topic("rounded").add(mine);
    }

  private:
    // MPI_Reduce of MPICH 4.0.2 crashes in place at a root other than 0 above 2 KiB, so never in
    // place.
    void reduce_and_bcast() {
        const bool root = world.rank == work_.root;
        MPI_Reduce(in_.data(), root ? out_.data() : nullptr, work_.count, work_.type, work_.op,
                   work_.root, MPI_COMM_WORLD);
        MPI_Bcast(out_.data(), work_.count, work_.type, work_.root, MPI_COMM_WORLD);
    }

    void scatter_and_gather() {
        const std::vector<int> blocks(static_cast<size_t>(world.size), block_);
        std::vector<S> part(static_cast<size_t>(block_ * work_.parts));
        MPI_Reduce_scatter(in_.data(), part.data(), blocks.data(), work_.type, work_.op,
                           MPI_COMM_WORLD);
        MPI_Allgather(part.data(), block_, work_.type, out_.data(), block_, work_.type,
                      MPI_COMM_WORLD);
    }

    bool is_right(size_t i) const {
        if constexpr (std::is_integral_v<S>)
            return out_[i] == exact(i);
        else
            return std::abs(static_cast<long double>(out_[i]) - rounded(i)) <= tolerance(i);
    }

    S exact(size_t i) const {
        uint64_t result = input<S>(work_, 0, i);
        for (int rank = 1; rank < world.size; ++rank) {
            const uint64_t value = input<S>(work_, rank, i);
            result = work_.op == MPI_SUM ? result + value : result * value;
        }
        return static_cast<S>(result);
    }

    long double rounded(size_t i) const {
        long double result = input<S>(work_, 0, i);
        for (int rank = 1; rank < world.size; ++rank) {
            const long double value = input<S>(work_, rank, i);
            result = work_.op == MPI_SUM ? result + value : result * value;
        }
        return result;
    }

    // One rounding a step, each relative to a partial result, in the twin too.
    long double tolerance(size_t i) const {
        long double magnitude = std::abs(rounded(i));
        if (work_.op == MPI_SUM) magnitude = 0;
        for (int rank = 0; rank < world.size && work_.op == MPI_SUM; ++rank)
            magnitude += std::abs(input<S>(work_, rank, i));
        return 2 * world.size * static_cast<long double>(std::numeric_limits<S>::epsilon()) *
               magnitude;
    }

    int block_;
    size_t length_;
    std::vector<S> in_;  // padded to equal blocks
    std::vector<S> out_;
};

using Make = std::unique_ptr<Trial> (*)(const Work&);
template <class S>
std::unique_ptr<Trial> make(const Work& work) {
    return std::make_unique<TrialOf<S>>(work);
}

struct Kind {
    Make make;
    MPI_Datatype type;
    int parts;
    MPI_Op op;
};

// All counts of a kind; those of Iallreduce are outstanding together.
void run(const Kind& kind, Way way, Random& common, Random& own) {
    std::vector<std::unique_ptr<Trial>> trials;
    std::vector<MPI_Request> requests;
    for (const int count : counts) {
        const bool in_place =
            common.chance(30) && (way == Way::allreduce || way == Way::iallreduce);
        const Work work{kind.type, kind.parts,    kind.op,  count,
                        way,       common.next(), in_place, common.below(world.size)};
        trials.push_back(kind.make(work));
        trials.back()->issue();
        if (way == Way::iallreduce) requests.push_back(trials.back()->request);
    }
    complete(own, requests);
    for (const std::unique_ptr<Trial>& trial : trials) trial->judge();
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    const Kind kinds[] = {{make<float>, MPI_FLOAT, 1, MPI_SUM},
                          {make<float>, MPI_FLOAT, 1, MPI_PROD},
                          {make<double>, MPI_DOUBLE, 1, MPI_SUM},
                          {make<double>, MPI_DOUBLE, 1, MPI_PROD},
                          {make<long double>, MPI_LONG_DOUBLE, 1, MPI_SUM},
                          {make<long double>, MPI_LONG_DOUBLE, 1, MPI_PROD},
                          {make<float>, MPI_C_FLOAT_COMPLEX, 2, MPI_SUM},
                          {make<double>, MPI_C_DOUBLE_COMPLEX, 2, MPI_SUM},
                          {make<uint8_t>, MPI_UINT8_T, 1, MPI_SUM},
                          {make<uint32_t>, MPI_UINT32_T, 1, MPI_SUM},
                          {make<uint32_t>, MPI_UINT32_T, 1, MPI_PROD},
                          {make<uint64_t>, MPI_UINT64_T, 1, MPI_SUM},
                          {make<uint64_t>, MPI_UINT64_T, 1, MPI_PROD}};
    Random common = common_random(71);
    Random own = own_random(72);
    for (const Kind& kind : kinds)
        for (const Way way : ways) run(kind, way, common, own);
    return end();
}
