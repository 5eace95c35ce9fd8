// SPDX-License-Identifier: BSD-3-Clause
// The text of a profile becomes values. Pure; reads no file.
#include "base/api/profile.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>

#include "setting_values.hpp"

namespace vecmpi::base {
namespace {

constexpr std::string_view version = "1";
constexpr size_t most_node_rows = 1024;  // a file is 64 KiB at most
constexpr int most_ranks = 1 << 20;

// Each in the order of its enum.
constexpr std::string_view kernel_words[] = {"pack.permute",  "unpack.permute", "pack.gather",
                                             "unpack.gather", "move.masked",    "move.columns"};
constexpr std::string_view block_words[] = {"1", "2", "4", "8", "16", "32", "long"};
constexpr std::string_view distance_words[] = {"dense", "open", "sparse", "far"};
constexpr std::string_view verdict_words[] = {"", "yes", "no"};
constexpr std::string_view family_words[] = {"arithmetic", "half", "logical", "complex", "pairs"};
constexpr std::string_view transport_words[] = {"rounds", "copy", "library"};
constexpr std::string_view server_words[] = {"schedule", "segments", "library"};  // over nodes
static_assert(std::size(kernel_words) == number_of_pack_kernels);
static_assert(std::size(block_words) == number_of_block_classes);
static_assert(std::size(distance_words) == number_of_distances);
static_assert(std::size(family_words) == number_of_reduce_families);
static_assert(std::size(transport_words) == number_of_transports);
static_assert(std::size(server_words) == number_of_transports);

template <size_t number>
bool find_word(std::string_view word, const std::string_view (&words)[number], size_t& index) {
    index = static_cast<size_t>(std::find(words, words + number, word) - words);
    return index < number && !word.empty();
}

// Cuts off what stands behind the last point, and returns it.
std::string_view take_last_part(std::string_view& key) {
    const size_t point = key.rfind('.');
    if (point == std::string_view::npos) return {};
    const std::string_view last = key.substr(point + 1);
    key = key.substr(0, point);
    return last;
}

std::string word_of(Collective collective) {
    std::string word = mpi_name_of(collective);
    word[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(word[0])));
    return word;
}

// Among the first `number` collectives.
bool find_collective(std::string_view word, size_t number, Collective& collective) {
    for (size_t c = 0; c < number; ++c) {
        collective = static_cast<Collective>(c);
        if (word == word_of(collective)) return true;
    }
    return false;
}

// 02 would be a second key for the row of 2.
bool read_amount(std::string_view text, int least, int& amount) {
    return !text.starts_with('0') && read_number(text, amount) && amount >= least &&
           amount <= most_ranks;
}

// ---- rows: each returns null, or what would have been accepted ---------------------------------

const char* read_pack_row(std::string_view key, std::string_view value, Profile& profile) {
    size_t kernel = 0, block = 0, distance = 0, verdict = 0;
    const std::string_view distance_word = take_last_part(key), block_word = take_last_part(key);
    if (!find_word(key, kernel_words, kernel) || !find_word(block_word, block_words, block) ||
        !find_word(distance_word, distance_words, distance))
        return "accepted are pack. and unpack. with permute or gather, move. with masked or "
               "columns, then a length (1, 2, 4, 8, 16, 32, long) and a distance (dense, open, "
               "sparse, far)";
    if (!find_word(value, verdict_words, verdict)) return "accepted are yes and no";
    profile.pack.entry(static_cast<PackKernel>(kernel), block, static_cast<Distance>(distance)) =
        static_cast<PackVerdict>(verdict);
    return nullptr;
}

const char* read_reduce_row(std::string_view key, std::string_view value, Profile& profile) {
    size_t family = 0;
    IsaChoice isa = IsaChoice::automatic;
    const std::string_view word = take_last_part(key);
    if (key != "reduce" || !find_word(word, family_words, family))
        return "accepted are reduce.arithmetic, half, logical, complex and pairs";
    if (!read_isa(value, isa) || isa == IsaChoice::automatic || isa == IsaChoice::off)
        return "accepted are scalar, sse4, avx2, avx512, neon, sve";
    profile.reduce[family] = isa;
    return nullptr;
}

bool read_transports(std::string_view value, TransportsBySize& transports) {
    size_t number = 0;
    const bool are_words = take_items(value, ",", [&](std::string_view item) {
        size_t transport = 0;
        if (number == transports.size() || !find_word(item, transport_words, transport))
            return false;
        transports[number++] = static_cast<Transport>(transport);
        return true;
    });
    return are_words && number == transports.size();
}

const char* read_node_row(std::string_view key, std::string_view value, Profile& profile) {
    NodeTransports row;
    const std::string_view name = take_last_part(key), ranks = take_last_part(key);
    if (!read_amount(ranks, 2, row.ranks) || key != "node" ||
        !find_collective(name, number_of_settable_collectives, row.collective) ||
        profile.transports.size() == most_node_rows)
        return "accepted are node., the number of ranks, and .allreduce, .reduce, .reduce_scatter, "
               ".bcast, .allgather or .alltoall";
    if (!read_transports(value, row.at))
        return "accepted are three of rounds, copy, library: from 64K, 256K and 1M on";
    profile.transports.push_back(row);
    return nullptr;
}

constexpr const auto& words_for(const CommShape& shape) noexcept {
    return shape.nodes == 1 ? transport_words : server_words;
}

// "RANKS" or "RANKS.NODES.MOST".
bool read_shape(std::string_view text, CommShape& shape) {
    if (text.ends_with('.') || text.find("..") != std::string_view::npos) return false;
    const std::string_view most = take_last_part(text);
    if (most.empty()) {
        shape.most_ranks_on_a_node = 0;
        return read_amount(text, 2, shape.ranks);
    }
    const std::string_view nodes = take_last_part(text);
    return read_amount(text, 2, shape.ranks) && read_amount(nodes, 2, shape.nodes) &&
           read_amount(most, 1, shape.most_ranks_on_a_node);
}

// "64K:copy".
bool read_winner(std::string_view item, const CommShape& shape, LearnedWinner& winner) {
    const size_t colon = item.find(':');
    size_t word = 0;
    if (colon == std::string_view::npos ||
        !parse_bytes(trim(item.substr(0, colon)), winner.from_bytes) ||
        !find_word(trim(item.substr(colon + 1)), words_for(shape), word) ||
        (winner.from_bytes & (winner.from_bytes - 1)) != 0)
        return false;
    winner.candidate = static_cast<uint8_t>(word);
    return true;
}

const char* read_learned_row(std::string_view key, std::string_view value, Profile& profile) {
    LearnedRow row;
    key.remove_prefix(std::string_view("learned.").size());
    const std::string_view name = take_last_part(key);
    if (!read_shape(key, row.shape) ||
        !find_collective(name, number_of_collectives, row.collective))
        return "accepted are learned., the number of ranks, with several nodes . and their number "
               "and . and the most ranks on one, and . and a collective";
    const bool are_winners = take_items(value, ",", [&](std::string_view item) {
        return read_winner(item, row.shape, row.winners.emplace_back());
    });
    std::sort(row.winners.begin(), row.winners.end());
    const auto same_size = [](const LearnedWinner& a, const LearnedWinner& b) {
        return a.from_bytes == b.from_bytes;
    };
    if (!are_winners ||
        std::adjacent_find(row.winners.begin(), row.winners.end(), same_size) != row.winners.end())
        return "accepted are powers of two, each once, with rounds, copy, library, or over nodes "
               "schedule, segments, library, as in 64:rounds,128K:copy";
    profile.learned.push_back(std::move(row));
    return nullptr;
}

const char* read_text(std::string_view value, std::string& text) {
    text = value;
    return nullptr;
}

const char* read_row(std::string_view key, std::string_view value, Profile& profile) {
    if (value.empty()) return "accepted is key = value";
    if (key == "cpu") return read_text(value, profile.cpu);
    if (key == "isa") return read_text(value, profile.isa);
    if (key == "mpi") return read_text(value, profile.mpi);
    ++profile.entries;
    if (key == "network")
        return read_network(value, profile.network) ? nullptr
                                                    : "accepted is what VECMPI_NETWORK takes";
    if (key.starts_with("reduce.")) return read_reduce_row(key, value, profile);
    if (key.starts_with("node.")) return read_node_row(key, value, profile);
    if (key.starts_with("learned.")) return read_learned_row(key, value, profile);
    for (const char* prefix : {"pack.", "unpack.", "move."})
        if (key.starts_with(prefix)) return read_pack_row(key, value, profile);
    return "accepted keys are version, cpu, isa, mpi, network, reduce., node., learned., pack., "
           "unpack., move.";
}

// Takes the next line, without its end.
std::string_view next_line(std::string_view& rest) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return trim(line);
}

bool says_nothing(std::string_view line) noexcept { return line.empty() || line.starts_with('#'); }

std::string_view key_of(std::string_view line) noexcept {
    return says_nothing(line) ? std::string_view{} : trim(line.substr(0, line.find('=')));
}

// ---- learned rows as text ----------------------------------------------------------------------

std::string key_of(const LearnedRow& row) {
    std::string key = "learned." + std::to_string(row.shape.ranks);
    if (row.shape.nodes != 1)
        key += '.' + std::to_string(row.shape.nodes) + '.' +
               std::to_string(row.shape.most_ranks_on_a_node);
    return key + '.' + word_of(row.collective);
}

// As parse_bytes() reads it.
std::string text_of_bytes(size_t bytes) {
    constexpr const char* units[] = {"", "K", "M", "G"};
    size_t unit = 0;
    for (; unit + 1 < std::size(units) && bytes != 0 && bytes % 1024 == 0; ++unit) bytes /= 1024;
    return std::to_string(bytes) + units[unit];
}

std::string value_of(const LearnedRow& row) {
    std::string text;
    for (const LearnedWinner& winner : row.winners) {
        if (!text.empty()) text += ',';
        text += text_of_bytes(winner.from_bytes) + ':';
        text += words_for(row.shape)[winner.candidate];
    }
    return text;
}

// Size by size the new one's winner, else the old one's.
LearnedRow merged(const LearnedRow* old, const LearnedRow& row) {
    std::map<size_t, uint8_t> winners;
    for (const LearnedWinner& winner : row.winners)
        winners.emplace(winner.from_bytes, winner.candidate);
    if (old != nullptr)
        for (const LearnedWinner& winner : old->winners)
            winners.emplace(winner.from_bytes, winner.candidate);
    LearnedRow both{row.shape, row.collective, {}};
    for (const auto& [bytes, candidate] : winners) both.winners.push_back({bytes, candidate});
    return both;
}

}  // namespace

const TransportsBySize* Profile::transports_of(Collective collective, int ranks) const noexcept {
    for (const NodeTransports& row : transports)
        if (row.collective == collective && row.ranks == ranks) return &row.at;
    return nullptr;
}

const LearnedRow* Profile::learned_of(const CommShape& shape,
                                      Collective collective) const noexcept {
    for (const LearnedRow& row : learned)
        if (row.is_for(shape, collective)) return &row;
    return nullptr;
}

std::string add_learned(std::string_view old_text, const Profile& of_this_host,
                        const std::vector<LearnedRow>& rows) {
    const Profile old = parse_profile(old_text).profile;
    std::map<std::string, std::string> learned;
    for (const LearnedRow& row : rows)
        learned[key_of(row)] = value_of(merged(old.learned_of(row.shape, row.collective), row));
    std::string text;
    const auto add = [&text](const std::string& key, const std::string& value) {
        text += key + " = " + value + '\n';
    };
    if (old_text.empty()) {
        text =
            "# A profile of vecmpi, begun by VECMPI_PROFILE=learn; tuning.md says what the "
            "lines mean.\n";
        add("version", std::string(version));
        add("cpu", of_this_host.cpu);
        add("isa", of_this_host.isa);
    }
    while (!old_text.empty()) {
        const std::string_view line = next_line(old_text);
        if (learned.count(std::string(key_of(line))) == 0) text += std::string(line) + '\n';
    }
    if (old.mpi.empty()) add("mpi", of_this_host.mpi);
    for (const auto& [key, value] : learned) add(key, value);
    return text;
}

ParsedProfile parse_profile(std::string_view text) {
    ParsedProfile parsed;
    std::vector<std::string_view> keys;
    const auto refuse = [&parsed](size_t line, std::string why) {
        parsed.line = line;
        parsed.problem = std::move(why);
        return parsed;
    };
    for (size_t number = 1; !text.empty(); ++number) {
        const std::string_view line = next_line(text);
        if (says_nothing(line)) continue;
        const size_t equals = line.find('=');
        const std::string_view key = key_of(line);
        const std::string_view value =
            equals == std::string_view::npos ? std::string_view{} : trim(line.substr(equals + 1));
        if (keys.empty() && (key != "version" || value.empty()))
            return refuse(number, printable(line) + ": accepted is version = 1 as the first line");
        if (keys.empty() && value != version)
            return refuse(number, printable(line) + ": accepted is version = 1");
        if (std::find(keys.begin(), keys.end(), key) != keys.end())
            return refuse(number, printable(line) + ": accepted is each key once");
        const char* const accepted = keys.empty() ? nullptr : read_row(key, value, parsed.profile);
        if (accepted != nullptr) return refuse(number, printable(line) + ": " + accepted);
        keys.push_back(key);
    }
    if (keys.empty()) return refuse(0, "empty: accepted is what vecmpi-tune writes");
    if (parsed.profile.cpu.empty() || parsed.profile.isa.empty())
        return refuse(0, "no cpu or no isa: accepted is what vecmpi-tune writes");
    return parsed;
}

uint64_t hash_of_collective_part(const Profile& profile) {
    if (profile.network == NetworkSetting{} && profile.transports.empty() &&
        profile.learned.empty())
        return 0;
    uint64_t hash = hash_of_nothing;
    add_to_hash(hash, canonical(profile.network));
    std::vector<std::string> rows;
    for (const NodeTransports& row : profile.transports) {
        std::string text =
            std::to_string(row.ranks) + "." + std::to_string(static_cast<int>(row.collective));
        for (const Transport transport : row.at)
            text += ',' + std::to_string(static_cast<int>(transport));
        rows.push_back(std::move(text));
    }
    for (const LearnedRow& row : profile.learned) rows.push_back(key_of(row) + value_of(row));
    std::sort(rows.begin(), rows.end());  // in whatever order they stand
    for (const std::string& row : rows) {
        add_to_hash(hash, ";");
        add_to_hash(hash, row);
    }
    return hash;
}

}  // namespace vecmpi::base
