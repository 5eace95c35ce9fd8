// SPDX-License-Identifier: BSD-3-Clause
// Settings that are words, numbers or lists of them. Pure; knows no variable by name.
#include "setting_values.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace vecmpi::base {
namespace {

template <typename Value>
struct Word {
    const char* text;
    Value value;
};

template <typename Value, size_t number_of_words>
bool read_word(std::string_view text, const Word<Value> (&words)[number_of_words], Value& value) {
    for (const Word<Value>& word : words) {
        if (!same_word(text, word.text)) continue;
        value = word.value;
        return true;
    }
    return false;
}

template <class Mode>
bool read_auto_on_off(std::string_view text, Mode& value) {
    static constexpr Word<Mode> words[] = {
        {"auto", Mode::automatic}, {"on", Mode::on}, {"off", Mode::off}};
    return read_word(text, words, value);
}

}  // namespace

bool read_on_off(std::string_view text, bool& value) {
    static constexpr Word<bool> words[] = {{"on", true}, {"off", false}};
    return read_word(text, words, value);
}

bool read_offload(std::string_view text, OffloadMode& value) {
    return read_auto_on_off(text, value);
}
bool read_intranode(std::string_view text, IntranodeMode& value) {
    return read_auto_on_off(text, value);
}

bool read_cpus(std::string_view text, CpuChoice& value) {
    static constexpr Word<CpuChoice::Kind> words[] = {{"auto", CpuChoice::Kind::automatic},
                                                      {"none", CpuChoice::Kind::none}};
    CpuChoice choice;
    if (!read_word(text, words, choice.kind)) {
        choice.kind = CpuChoice::Kind::list;
        const bool are_numbers = take_items(text, ",", [&](std::string_view item) {
            constexpr unsigned most_cpus = 1 << 20;  // a typing error must not ask for much memory
            unsigned cpu = 0;
            if (!read_number(item, cpu) || cpu >= most_cpus) return false;
            choice.cpus.push_back(static_cast<int>(cpu));
            return true;
        });
        if (!are_numbers) return false;
    }
    value = std::move(choice);
    return true;
}

bool read_wait(std::string_view text, WaitMode& value) {
    static constexpr Word<WaitMode> words[] = {{"auto", WaitMode::automatic},
                                               {"spin", WaitMode::spin},
                                               {"yield", WaitMode::yield},
                                               {"sleep", WaitMode::sleep}};
    return read_word(text, words, value);
}

bool read_trials(std::string_view text, TrialMode& value) {
    static constexpr Word<TrialMode> words[] = {{"auto", TrialMode::automatic},
                                                {"off", TrialMode::off},
                                                {"check", TrialMode::check},
                                                {"shuffle", TrialMode::shuffle}};
    return read_word(text, words, value);
}

bool read_isa(std::string_view text, IsaChoice& value) {
    static constexpr Word<IsaChoice> words[] = {
        {"auto", IsaChoice::automatic}, {"off", IsaChoice::off},   {"scalar", IsaChoice::scalar},
        {"sse4", IsaChoice::sse4},      {"avx2", IsaChoice::avx2}, {"avx512", IsaChoice::avx512},
        {"neon", IsaChoice::neon},      {"sve", IsaChoice::sve}};
    return read_word(text, words, value);
}

bool read_pack(std::string_view text, PackMode& value) {
    static constexpr Word<PackMode> words[] = {
        {"auto", PackMode::automatic},  {"off", PackMode::off},
        {"on", PackMode::on},           {"block", PackMode::block},
        {"permute", PackMode::permute}, {"gather", PackMode::gather}};
    return read_word(text, words, value);
}

bool read_count(std::string_view text, unsigned& value) {
    static constexpr Word<unsigned> words[] = {{"auto", 0}};
    if (read_word(text, words, value)) return true;
    unsigned number = 0;
    if (!read_number(text, number) || number < 1 || number > 64) return false;
    value = number;
    return true;
}

bool read_bytes(std::string_view text, size_t& value) {
    static constexpr Word<size_t> words[] = {{"auto", 0}};
    if (read_word(text, words, value)) return true;
    size_t bytes = 0;
    if (!parse_bytes(text, bytes) || bytes < 1024 || bytes == SIZE_MAX) return false;
    value = bytes;
    return true;
}

bool read_single_copy(std::string_view text, size_t& value) {
    static constexpr Word<size_t> words[] = {{"off", SIZE_MAX}};
    return read_word(text, words, value) || read_bytes(text, value);
}

bool read_profile_choice(std::string_view text, ProfileChoice& value) {
    static constexpr Word<ProfileChoice::Kind> words[] = {{"auto", ProfileChoice::Kind::automatic},
                                                          {"off", ProfileChoice::Kind::off},
                                                          {"learn", ProfileChoice::Kind::learn}};
    ProfileChoice choice;
    if (!read_word(text, words, choice.kind)) {
        constexpr std::string_view learn = "learn:";
        const bool learns = same_word(text.substr(0, learn.size()), learn);
        choice.kind = learns ? ProfileChoice::Kind::learn : ProfileChoice::Kind::file;
        choice.file = learns ? trim(text.substr(learn.size())) : text;
        if (choice.file.empty()) return false;
    }
    value = std::move(choice);
    return true;
}

bool read_report(std::string_view text, ReportTarget& value) {
    static constexpr Word<ReportTarget::Kind> words[] = {{"off", ReportTarget::Kind::off},
                                                         {"summary", ReportTarget::Kind::summary}};
    ReportTarget target;
    if (!read_word(text, words, target.kind)) {
        constexpr std::string_view summary = "summary,", json = "json:";
        const bool has_both = same_word(text.substr(0, summary.size()), summary);
        if (has_both) text = trim(text.substr(summary.size()));
        if (!same_word(text.substr(0, json.size()), json)) return false;
        target.kind = has_both ? ReportTarget::Kind::summary_and_json : ReportTarget::Kind::json;
        target.file = trim(text.substr(json.size()));
        if (target.file.empty() || target.file.ends_with(",summary")) return false;
    }
    value = std::move(target);
    return true;
}

bool read_level(std::string_view text, LogLevel& value) {
    static constexpr Word<LogLevel> words[] = {{"error", LogLevel::error},
                                               {"warn", LogLevel::warn},
                                               {"info", LogLevel::info},
                                               {"debug", LogLevel::debug}};
    return read_word(text, words, value);
}

bool read_traits(std::string_view text, unsigned& value) {
    static constexpr const char* names[] = {
#define VECMPI_TRAIT(name, promise, proof, without) #name,
#include "base/api/traits.def"
#undef VECMPI_TRAIT
    };
    const bool is_all = same_word(text, "all");
    unsigned traits = is_all ? (1u << std::size(names)) - 1 : 0;
    const auto add = [&](std::string_view item) {
        const auto* const found = std::find_if(std::begin(names), std::end(names),
                                               [&](auto* name) { return same_word(item, name); });
        if (found == std::end(names)) return false;
        traits |= 1u << (found - std::begin(names));
        return true;
    };
    if (!is_all && !same_word(text, "none") && !take_items(text, ",;", add)) return false;
    value = traits;
    return true;
}

std::string canonical(uint64_t value) { return std::to_string(value); }

std::string canonical(IntranodeMode value) { return canonical(static_cast<uint64_t>(value)); }

std::string canonical(TrialMode value) { return canonical(static_cast<uint64_t>(value)); }

std::string canonical(const ReportTarget& value) {
    return std::to_string(static_cast<int>(value.kind)) + value.file;
}

void add_to_hash(uint64_t& hash, std::string_view text) noexcept {
    for (unsigned char letter : text) hash = (hash ^ letter) * 0x100000001b3ULL;
}

std::string printable(std::string_view value) {
    constexpr size_t longest = 80;
    std::string text(value.substr(0, longest));
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
    return value.size() > longest ? text + "..." : text;
}

}  // namespace vecmpi::base
