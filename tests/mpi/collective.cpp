// SPDX-License-Identifier: BSD-3-Clause
// Chooses a family of collectives; Bcast and Barrier, the simplest ones. Must not communicate
// beyond the call.
#include "collective.hpp"

#include "layout.hpp"

namespace battery {
namespace {

// Root and others describe the same elements by different types and counts.
class Bcast : public Collective {
  public:
    Bcast(Random& shared, Random& own, const Group& group, Form form)
        : Collective(group, form, shared.next()),
          root_(shared.below(group.size)),
          kind_(shared.below(3)),
          elements_(random_size(shared)),
          layout_(own, element_of(kind_), elements_) {}

    void fill() override { layout_.fill(group_.rank == root_ ? id_ : id_ + 1, elements_); }

    void issue() override {
        call<MPI_Bcast, MPI_Ibcast, MPI_Bcast_init>(form_, &request, layout_.address(),
                                                    layout_.count(), layout_.type(), root_,
                                                    group_.comm);
        layout_.free_type();
    }

    void judge(Digest& digest) override {
        layout_.check_content(id_, elements_, "element of Bcast (index)");
        digest.add(layout_.hash(elements_));
    }

  private:
    static int random_size(Random& random) {
        const int size = random.below(10);
        return size == 0 ? 0 : size < 6 ? random.below(100) : random.below(30000);
    }

    int root_;
    int kind_;
    int elements_;
    Layout layout_;
};

class Barrier : public Collective {
  public:
    using Collective::Collective;
    void fill() override {}
    void issue() override {
        call<MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init>(form_, &request, group_.comm);
    }
    void judge(Digest& digest) override { digest.add(id_); }
};

}  // namespace

CollectivePtr random_bcast(Random& shared, Random& own, const Group& group, Form form) {
    return std::make_unique<Bcast>(shared, own, group, form);
}

CollectivePtr random_collective(Random& shared, Random& own, const Group& group, Form form) {
    const int family = shared.below(10);
    if (family == 0) return std::make_unique<Barrier>(group, form, shared.next());
    if (family < 3) return random_bcast(shared, own, group, form);
    if (family < 6) return random_movement(shared, own, group, form);
    return random_reduction(shared, own, group, form);
}

}  // namespace battery
