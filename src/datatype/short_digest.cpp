// SPDX-License-Identifier: BSD-3-Clause
// The digest of a type that is made anew each step, without its tree: MPI_Type_commit asks for it.
#include <algorithm>

#include "digest.hpp"
#include "envelope.hpp"

namespace vecmpi::datatype {

namespace {

class ShortDescription {
  public:
    bool read(MPI_Datatype type, int depth = 0) noexcept {
        Envelope envelope;
        MPI_Count size = 0, extent = 0;
        if (!read_size(type, &size, &extent)) return false;
        if (library::is_builtin_type(type)) return add_predefined(type, size, extent);
        if (!read_envelope(type, envelope)) return false;
        if (is_predefined(envelope.combiner))
            return !may_have_padding(envelope.combiner, size) && add_predefined(type, size, extent);
        return depth < deepest && is_short(envelope) &&
               read_contents(type, envelope, size, extent, depth);
    }
    TypeDigest digest() const noexcept { return digest_of_words({words_, number_}); }

  private:
    static constexpr int deepest = 4;
    static constexpr MPI_Count longest_list = 32, most_types = 8;
    static constexpr size_t most_words = 192;

    static bool is_short(const Envelope& envelope) noexcept {
        return envelope.integers <= longest_list && envelope.addresses <= longest_list &&
               envelope.counts <= longest_list && envelope.types <= most_types;
    }

    bool add(const auto* values, MPI_Count number) noexcept {
        if (number_ + static_cast<size_t>(number) > most_words) return false;
        for (MPI_Count i = 0; i < number; ++i) words_[number_++] = values[i];
        return true;
    }

    bool add(const DigestHead& head) noexcept {
        const int64_t words[] = {head.combiner, head.named,     head.size,   head.extent,
                                 head.integers, head.addresses, head.counts, head.types};
        static_assert(sizeof words == sizeof head);
        return add(words, std::size(words));
    }

    bool add_predefined(MPI_Datatype type, MPI_Count size, MPI_Count extent) noexcept {
        return add({.combiner = MPI_COMBINER_NAMED,
                    .named = static_cast<int64_t>(type),
                    .size = size,
                    .extent = extent});
    }

    bool read_contents(MPI_Datatype type, const Envelope& envelope, MPI_Count size,
                       MPI_Count extent, int depth) noexcept {
        int integers[longest_list];
        MPI_Aint addresses[longest_list];
        MPI_Count counts[longest_list];
        MPI_Datatype types[most_types];
        std::fill_n(types, envelope.types, MPI_DATATYPE_NULL);
        const int error =
            real.Type_get_contents_c(type, envelope.integers, envelope.addresses, envelope.counts,
                                     envelope.types, integers, addresses, counts, types);
        bool is_read = error == MPI_SUCCESS &&
                       add({.combiner = envelope.combiner,
                            .named = static_cast<int64_t>(MPI_DATATYPE_NULL),
                            .size = size,
                            .extent = extent,
                            .integers = envelope.integers,
                            .addresses = envelope.addresses,
                            .counts = envelope.counts,
                            .types = envelope.types}) &&
                       add(integers, envelope.integers) && add(addresses, envelope.addresses) &&
                       add(counts, envelope.counts);
        for (MPI_Count i = 0; i < envelope.types; ++i) {
            is_read = is_read && read(types[i], depth + 1);
            give_back(types[i]);
        }
        return is_read;
    }

    int64_t words_[most_words];
    size_t number_ = 0;
};

}  // namespace

std::optional<TypeDigest> digest_of_short(MPI_Datatype type) noexcept {
    ShortDescription description;
    if (!description.read(type)) return std::nullopt;
    return description.digest();
}

}  // namespace vecmpi::datatype
