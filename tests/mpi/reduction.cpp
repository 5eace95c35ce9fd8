// SPDX-License-Identifier: BSD-3-Clause
// Reduce, Allreduce, Reduce_scatter(_block), Scan and Exscan with exact values, so that any order
// of summation is right.
#include <algorithm>
#include <vector>

#include "collective.hpp"
#include "operators.hpp"

namespace battery {
namespace {

enum class Kind { reduce, allreduce, reduce_scatter, reduce_scatter_block, scan, exscan };

template <class T>
class Reduction : public Collective {
  public:
    Reduction(Random& shared, const Group& group, Form form)
        : Collective(group, form, shared.next()),
          kind_(static_cast<Kind>(shared.below(6))),
          root_(shared.below(group.size)),
          in_place_(shared.chance(30)),
          choice_(shared.below(static_cast<int>(operators<T>().size()))),
          elements_(random_size(shared)) {
        if (kind_ == Kind::reduce_scatter_block) elements_ -= elements_ % group.size;
        // MPI_Reduce of MPICH 4.0.2 crashes in place at another root above 2 KiB.
        if (in_place_) root_ = 0;
        share();
        in_.resize(static_cast<size_t>(elements_));
        out_.resize(static_cast<size_t>(elements_) + 1);
    }

    void fill() override {
        for (int i = 0; i < elements_; ++i) in_[static_cast<size_t>(i)] = input(group_.rank, i);
        std::fill(out_.begin(), out_.end(), T{});
        if (in_place_) std::copy(in_.begin(), in_.end(), out_.begin());
    }

    void issue() override {
        const Operator<T> chosen = operators<T>()[static_cast<size_t>(choice_)];
        MPI_Op op = chosen.op;
        if (chosen.user) MPI_Op_create(chosen.user, chosen.commutative, &op);
        make_call(op);
        if (chosen.user && form_ != Form::persistent) MPI_Op_free(&op);  // also while active
        op_ = chosen.user && form_ == Form::persistent ? op : MPI_OP_NULL;
    }

    ~Reduction() override {
        if (op_ != MPI_OP_NULL) MPI_Op_free(&op_);
    }

    void judge(Digest& digest) override {
        if (kind_ == Kind::reduce && group_.rank != root_) return;
        if (kind_ == Kind::exscan && group_.rank == 0) return;  // undefined there
        const int last = kind_ == Kind::scan     ? group_.rank
                         : kind_ == Kind::exscan ? group_.rank - 1
                                                 : group_.size - 1;
        const int first = scatters() ? first_ : 0;
        const int count = scatters() ? counts_[static_cast<size_t>(group_.rank)] : elements_;
        for (int i = 0; i < count; ++i)
            check(out_[static_cast<size_t>(i)] == expected(last, first + i), "reduced element");
        digest.add_bytes(out_.data(), static_cast<size_t>(count) * sizeof(T));
    }

  private:
    bool scatters() const {
        return kind_ == Kind::reduce_scatter || kind_ == Kind::reduce_scatter_block;
    }

    static int random_size(Random& random) {
        const int size = random.below(20);
        return size == 0 ? 0 : size < 14 ? random.below(50) : random.below(12000);
    }

    // The pieces of Reduce_scatter, some of them empty; where this rank's piece begins.
    void share() {
        int left = elements_;
        for (int rank = 0; rank < group_.size; ++rank) {
            const uint64_t hash = mix(id_ + static_cast<uint64_t>(rank));
            int count = std::min(left, static_cast<int>(hash % 3) * (elements_ / 2 + 1) / 3);
            if (kind_ == Kind::reduce_scatter_block)
                count = elements_ / group_.size;
            else if (rank == group_.size - 1)
                count = left;
            counts_.push_back(count);
            if (rank == group_.rank) first_ = elements_ - left;
            left -= count;
        }
    }

    T input(int rank, int i) const {
        return make_value<T>(mix(id_ + static_cast<uint64_t>(rank * 100000 + i)));
    }

    T expected(int last, int i) const {
        const auto apply = operators<T>()[static_cast<size_t>(choice_)].apply;
        T result = input(0, i);
        for (int rank = 1; rank <= last; ++rank) result = apply(result, input(rank, i));
        return result;
    }

    void make_call(MPI_Op op) {
        const bool root = group_.rank == root_;
        const bool place = in_place_ && (kind_ != Kind::reduce || root);
        const void* in = place ? MPI_IN_PLACE : static_cast<const void*>(in_.data());
        const MPI_Datatype type = type_of<T>();
        const MPI_Comm comm = group_.comm;
        T* out = out_.data();
        if (kind_ == Kind::reduce)
            call<MPI_Reduce, MPI_Ireduce, MPI_Reduce_init>(
                form_, &request, in, root ? out : nullptr, elements_, type, op, root_, comm);
        if (kind_ == Kind::allreduce)
            call<MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init>(form_, &request, in, out,
                                                                    elements_, type, op, comm);
        if (kind_ == Kind::reduce_scatter)
            call<MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_Reduce_scatter_init>(
                form_, &request, in, out, counts_.data(), type, op, comm);
        if (kind_ == Kind::reduce_scatter_block)
            call<MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block,
                 MPI_Reduce_scatter_block_init>(form_, &request, in, out, counts_[0], type, op,
                                                comm);
        if (kind_ == Kind::scan)
            call<MPI_Scan, MPI_Iscan, MPI_Scan_init>(form_, &request, in, out, elements_, type, op,
                                                     comm);
        if (kind_ == Kind::exscan)
            call<MPI_Exscan, MPI_Iexscan, MPI_Exscan_init>(form_, &request, in, out, elements_,
                                                           type, op, comm);
    }

    Kind kind_;
    int root_;
    bool in_place_;
    int choice_;
    int elements_;
    std::vector<int> counts_;
    int first_ = 0;
    std::vector<T> in_;
    std::vector<T> out_;
    MPI_Op op_ = MPI_OP_NULL;
};

template <class T>
CollectivePtr make(Random& shared, const Group& group, Form form) {
    return std::make_unique<Reduction<T>>(shared, group, form);
}

}  // namespace

CollectivePtr random_reduction(Random& shared, Random&, const Group& group, Form form) {
    constexpr decltype(&make<int>) makers[] = {make<int>,    make<int64_t>, make<uint8_t>,
                                               make<float>,  make<double>,  make<double>,
                                               make<Matrix>, make<Located>};
    return makers[shared.below(8)](shared, group, form);
}

}  // namespace battery
