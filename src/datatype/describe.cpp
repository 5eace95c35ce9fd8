// SPDX-License-Identifier: BSD-3-Clause
// Asks the library what a datatype is made of. Gives every handle back that it gets.
#include "decode.hpp"
#include "envelope.hpp"

namespace vecmpi::datatype {

namespace {

constexpr int deepest = 64;

// Handles of the types within a type, given back with this.
class InnerTypes {
  public:
    explicit InnerTypes(size_t number) : handles_(number, MPI_DATATYPE_NULL) {}
    ~InnerTypes() {
        for (const MPI_Datatype handle : handles_) give_back(handle);
    }
    InnerTypes(const InnerTypes&) = delete;
    InnerTypes& operator=(const InnerTypes&) = delete;
    MPI_Datatype* data() noexcept { return handles_.data(); }
    const std::vector<MPI_Datatype>& handles() const noexcept { return handles_; }

  private:
    std::vector<MPI_Datatype> handles_;
};

Described describe(MPI_Datatype type, TypeTree& tree, size_t& room, int depth);

Described describe_contents(MPI_Datatype type, const Envelope& envelope, TypeTree& tree,
                            size_t& room, int depth) {
    std::vector<int> integers(static_cast<size_t>(envelope.integers));
    std::vector<MPI_Aint> addresses(static_cast<size_t>(envelope.addresses));
    std::vector<MPI_Count> counts(static_cast<size_t>(envelope.counts));
    InnerTypes inner(static_cast<size_t>(envelope.types));
    if (real.Type_get_contents_c(type, envelope.integers, envelope.addresses, envelope.counts,
                                 envelope.types, integers.data(), addresses.data(), counts.data(),
                                 inner.data()) != MPI_SUCCESS)
        return Described::unknown;
    tree.integers.assign(integers.begin(), integers.end());
    tree.addresses.assign(addresses.begin(), addresses.end());
    tree.counts.assign(counts.begin(), counts.end());
    for (const MPI_Datatype handle : inner.handles()) {
        const Described described = describe(handle, tree.types.emplace_back(), room, depth + 1);
        if (described != Described::fully) return described;
    }
    return Described::fully;
}

Described describe(MPI_Datatype type, TypeTree& tree, size_t& room, int depth) {
    Envelope envelope;
    MPI_Count size = 0, extent = 0;
    if (!read_envelope(type, envelope) || !read_size(type, &size, &extent))
        return Described::unknown;
    if (may_have_padding(envelope.combiner, size)) return Described::unknown;
    tree.combiner = envelope.combiner;
    tree.size = size;
    tree.extent = extent;
    if (is_predefined(envelope.combiner)) {
        tree.combiner = MPI_COMBINER_NAMED;
        tree.named = type;
        return Described::fully;
    }
    const auto entries = static_cast<size_t>(envelope.integers + envelope.addresses +
                                             envelope.counts + envelope.types) +
                         1;
    if (depth == deepest) return Described::unknown;
    if (entries > room) {
        tree.unread = entries - 1 - static_cast<size_t>(envelope.types);
        return Described::too_large;
    }
    room -= entries;
    return describe_contents(type, envelope, tree, room, depth);
}

}  // namespace

Described describe(MPI_Datatype type, TypeTree& tree, size_t room) {
    return describe(type, tree, room, 0);
}

}  // namespace vecmpi::datatype
