// SPDX-License-Identifier: BSD-3-Clause
// How a datatype was made, in one short line for people. Two types may have the same line.
#include <algorithm>
#include <cstdlib>

#include "base/api.hpp"
#include "decode.hpp"

namespace vecmpi::datatype {

namespace {

constexpr std::string_view inner = " of ", more = "...";

// The arguments of the function that made it, lists of lengths before those of places.
class Numbers {
  public:
    explicit Numbers(const TypeTree& tree) : tree_(tree) {}
    size_t size() const noexcept {
        return tree_.integers.size() + tree_.addresses.size() + tree_.counts.size();
    }
    // 0 where there is none.
    int64_t operator[](size_t i) const noexcept {
        for (const auto* list : {&tree_.integers, &tree_.addresses, &tree_.counts}) {
            if (i < list->size()) return (*list)[i];
            i -= list->size();
        }
        return 0;
    }
    // "8x4x1": some of them.
    std::string extents(size_t first, int64_t number) const {
        constexpr int64_t most = 4;
        std::string text;
        for (int64_t i = 0; i < std::min(number, most); ++i)
            text.append(i == 0 ? "" : "x")
                .append(std::to_string((*this)[first + static_cast<size_t>(i)]));
        return number > most ? text.append("x").append(more) : text;
    }
    // "(1, 2, 3)": the first ones.
    std::string arguments(size_t number) const {
        std::string text = "(";
        for (size_t i = 0; i < number; ++i)
            text.append(i == 0 ? "" : ", ").append(std::to_string((*this)[i]));
        return text + ")";
    }

  private:
    const TypeTree& tree_;
};

// Of an indexed type or a struct: their number is known though they were not read.
size_t number_of_blocks(const TypeTree& tree) noexcept {
    const size_t numbers = tree.unread != 0 ? tree.unread : Numbers(tree).size();
    const bool have_one_length =
        tree.combiner == MPI_COMBINER_INDEXED_BLOCK || tree.combiner == MPI_COMBINER_HINDEXED_BLOCK;
    return have_one_length ? numbers - std::min<size_t>(numbers, 2) : numbers / 2;
}

// Are its places addresses, for MPI_BOTTOM? A distance between parts of a buffer may be as large,
// but hardly that of each part from the buffer.
bool has_addresses(const TypeTree& tree) noexcept {
    constexpr int64_t far = int64_t{1} << 30;
    const auto& list = tree.counts.empty() ? tree.addresses : tree.counts;
    const size_t blocks = std::min(number_of_blocks(tree), list.size());
    return blocks != 0 && std::all_of(list.end() - static_cast<ptrdiff_t>(blocks), list.end(),
                                      [](int64_t place) { return std::abs(place) >= far; });
}

std::string blocks(const char* name, const TypeTree& tree, bool may_have_addresses = true) {
    return std::string(name) + "(" + std::to_string(number_of_blocks(tree)) +
           (may_have_addresses && has_addresses(tree) ? ", absolute)" : ")");
}

// In the description of a large-count function the sizes stand behind all integers.
std::string subarray(const TypeTree& tree) {
    const Numbers numbers(tree);
    const int64_t dimensions = numbers[0];
    const size_t sizes = tree.counts.empty() ? 1 : tree.integers.size();
    return std::string("subarray(") +
           numbers.extents(sizes + static_cast<size_t>(dimensions), dimensions) + " in " +
           numbers.extents(sizes, dimensions) + ")";
}

std::string darray(const TypeTree& tree) {
    const Numbers numbers(tree);
    return std::string("darray(") +
           numbers.extents(tree.counts.empty() ? 3 : tree.integers.size(), numbers[2]) + " over " +
           std::to_string(numbers[0]) + ")";
}

std::string head(const TypeTree& tree) {
    const Numbers numbers(tree);
    switch (tree.combiner) {
        case MPI_COMBINER_DUP:
            return "dup";
        case MPI_COMBINER_CONTIGUOUS:
            return "contiguous" + numbers.arguments(1);
        case MPI_COMBINER_VECTOR:
            return "vector" + numbers.arguments(3);
        case MPI_COMBINER_HVECTOR:
        case MPI_COMBINER_HVECTOR_INTEGER:
            return "hvector" + numbers.arguments(3);
        case MPI_COMBINER_INDEXED:
            return blocks("indexed", tree, false);
        case MPI_COMBINER_INDEXED_BLOCK:
            return blocks("indexed_block", tree, false);
        case MPI_COMBINER_HINDEXED:
        case MPI_COMBINER_HINDEXED_INTEGER:
            return blocks("hindexed", tree);
        case MPI_COMBINER_HINDEXED_BLOCK:
            return blocks("hindexed_block", tree);
        case MPI_COMBINER_STRUCT:
        case MPI_COMBINER_STRUCT_INTEGER:
            return blocks("struct", tree);
        case MPI_COMBINER_SUBARRAY:
            return subarray(tree);
        case MPI_COMBINER_DARRAY:
            return darray(tree);
        case MPI_COMBINER_RESIZED:
            return "resized" + numbers.arguments(2);
        default:
            return "combiner " + std::to_string(tree.combiner);
    }
}

// Texts for so many letters; what has no room is "...".
class Line {
  public:
    explicit Line(NameOfType name_of) : name_of_(name_of) {}

    std::string of(const TypeTree& tree, size_t room) const {
        const bool is_named = tree.combiner == MPI_COMBINER_NAMED;
        std::string text = is_named ? name_of_(tree) : head(tree).append(inner);
        if (text.size() + (is_named ? 0 : more.size()) > room)
            return room < longest_made_as ? std::string(more)
                                          : text.substr(0, room - more.size()).append(more);
        return is_named ? text : text.append(parts(tree, room - text.size()));
    }

  private:
    // The types that it is made of, each once.
    std::string parts(const TypeTree& tree, size_t room) const {
        constexpr size_t most = 8;
        std::vector<std::string> texts;
        const size_t number = std::min(tree.types.size(), most);
        for (size_t i = 0; i < number; ++i) {
            std::string text = of(tree.types[i], room);
            if (std::find(texts.begin(), texts.end(), text) == texts.end())
                texts.push_back(std::move(text));
        }
        // Of a description that is too long, the types behind that were not looked at.
        const bool is_whole =
            tree.combiner != MPI_COMBINER_STRUCT || tree.types.size() == number_of_blocks(tree);
        if (texts.empty() || !is_whole || tree.types.size() > most) texts.emplace_back(more);
        return texts.size() == 1 ? texts[0] : list(texts, room);
    }

    static std::string list(const std::vector<std::string>& texts, size_t room) {
        constexpr std::string_view end = ", ...}";
        std::string text = "{";
        for (size_t i = 0; i < texts.size(); ++i) {
            const bool is_last = i + 1 == texts.size();
            if (i != 0) text += ", ";
            if (text.size() + texts[i].size() + (is_last ? 1 : end.size()) > room)
                return i == 0 ? std::string(more) : text.append(more).append("}");
            text += texts[i];
        }
        return text.append("}");
    }

    NameOfType name_of_;
};

}  // namespace

std::string made_as(const TypeTree& tree, NameOfType name_of) {
    return Line(name_of).of(tree, longest_made_as);
}

}  // namespace vecmpi::datatype
