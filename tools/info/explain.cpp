// SPDX-License-Identifier: BSD-3-Clause
// Asks the functions that the library itself chooses by (src/pipeline/choice.hpp), and puts their
// answers into words.
#include "explain.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace vecmpi::info {
namespace {

struct Name {
    const char* word;
    const char* call;
    const char* setting;
};
// In the order of enum Collective.
constexpr Name names[] = {{"allreduce", "MPI_Allreduce", "VECMPI_ALLREDUCE"},
                          {"reduce", "MPI_Reduce", "VECMPI_REDUCE"},
                          {"reduce_scatter", "MPI_Reduce_scatter", "VECMPI_REDUCE_SCATTER"},
                          {"bcast", "MPI_Bcast", "VECMPI_BCAST"},
                          {"allgather", "MPI_Allgather", "VECMPI_ALLGATHER"},
                          {"alltoall", "MPI_Alltoall", "VECMPI_ALLTOALL"}};
static_assert(std::size(names) == number_of_settable_collectives);

const Name& words_of(Collective collective) { return names[static_cast<size_t>(collective)]; }

constexpr int most_ranks = 1000000;

bool read_number(const std::string& text, int& value) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && rest == end && value >= 1 && value <= most_ranks;
}

bool read_op(const std::string& text, pipeline::ChoiceFacts& facts) {
    facts.user_op = text != "sum";
    facts.commutative = text != "noncommutative";
    return text == "sum" || text == "user" || text == "noncommutative";
}

struct Option {
    const char* name;
    const char* accepted;
    bool (*read)(const std::string& text, pipeline::ChoiceFacts& facts);
};
constexpr Option options[] = {
    {"--bytes", "a size such as 64K or 4M",
     [](const std::string& text, pipeline::ChoiceFacts& facts) {
         size_t bytes = 0;
         const bool is_size = parse_bytes(text, bytes) && bytes <= uint64_t{1} << 50;
         facts.bytes = bytes;
         return is_size;
     }},
    {"--ranks", "a number from 1 to 1000000",
     [](const std::string& text, pipeline::ChoiceFacts& facts) {
         return read_number(text, facts.ranks);
     }},
    {"--nodes", "a number from 1 to 1000000",
     [](const std::string& text, pipeline::ChoiceFacts& facts) {
         return read_number(text, facts.nodes);
     }},
    {"--op", "sum, user (commutative) or noncommutative", read_op},
};

std::string read_option(const std::string& name, const std::string& value,
                        pipeline::ChoiceFacts& facts) {
    for (const Option& option : options)
        if (name == option.name)
            return option.read(value, facts)
                       ? std::string()
                       : name + " " + value + ": accepted is " + option.accepted;
    return "--explain: unknown option " + name;
}

bool read_collective(const std::string& word, Collective& collective) {
    for (size_t i = 0; i < number_of_settable_collectives; ++i)
        if (word == names[i].word) {
            collective = static_cast<Collective>(i);
            return true;
        }
    return false;
}

// Ranks as evenly on the nodes as can be.
void fill_nodes(pipeline::ChoiceFacts& facts) {
    facts.most_ranks_on_a_node = (facts.ranks + facts.nodes - 1) / facts.nodes;
    facts.uniform = facts.ranks % facts.nodes == 0;
    const bool is_typed = reduces(facts.collective);
    uint64_t bytes = facts.bytes;
    if (facts.collective == Collective::reduce_scatter)
        bytes /= static_cast<uint64_t>(facts.ranks);  // a block is what is cut
    facts.elements = static_cast<int64_t>(is_typed ? (bytes + 3) / 4 : bytes);
}

struct Line {
    CollectivePath path;
    unsigned segments;
    double us;
};

std::vector<Line> lines_of(const pipeline::ChoiceFacts& facts, const Settings& settings) {
    std::vector<Line> lines;
    for (CollectivePath path : schedule_paths) {
        if (!pipeline::is_algorithm_of(facts.collective, path)) continue;
        const unsigned segments = pipeline::segments_for(path, facts, settings);
        lines.push_back({path, segments,
                         pipeline::predicted_us(path, facts, {segments, facts.lanes},
                                                pipeline::network_constants(settings.network))});
    }
    return lines;
}

std::string printed(const char* format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string time_text(double us) {
    if (us >= 1e6) return printed("%.3g s", us / 1e6);
    return us >= 1000 ? printed("%.3g ms", us / 1000) : printed("%.3g us", us);
}

std::string why_text(const pipeline::ChoiceFacts& facts, const pipeline::Choice& choice,
                     const Settings& settings) {
    const Name& name = words_of(facts.collective);
    const std::string tried = choice.is_open && settings.trials != TrialMode::off
                                  ? "; blocking calls try it and the library"
                                  : "";
    if (choice.path == CollectivePath::mpi) return text_of(choice.why).text + tried;
    if (choice.path == CollectivePath::segmented)
        return std::string("as ") + name.setting + " says";
    if (reduces(facts.collective) && settings.reproducible)
        return "VECMPI_REPRODUCIBLE: its order of summation rests on bytes and ranks only";
    const std::string times =
        printed("%.3g", choice.library_us / choice.predicted_us) + " times as fast as the library";
    const bool is_named = settings.paths_of(facts.collective).at(facts.bytes) == choice.path;
    return is_named ? std::string("as ") + name.setting + " says, predicted " + times
                    : "predicted " + times + tried;
}

std::string padded(std::string text, size_t width) {
    text.resize(std::max(width, text.size()), ' ');
    return text;
}

std::string network_text(const pipeline::NetworkConstants& network) {
    return "latency " + printed("%.4g", network.latency_us) + " us, " +
           printed("%.6g", network.bytes_per_us) + " MB/s each way, overhead " +
           printed("%.4g", network.overhead_us) + " us a message and side";
}

std::string json_line(const char* path, unsigned segments, double us) {
    return "{\"path\": " + quote_json(path) + ", \"segments\": " + std::to_string(segments) +
           ", \"predicted_us\": " + printed("%.6g", us) + "}";
}

}  // namespace

std::string read_explain(const std::vector<std::string>& words, ExplainRequest& request) {
    pipeline::ChoiceFacts& facts = request.facts;
    if (words.empty() || !read_collective(words[0], facts.collective))
        return "--explain: accepted are allreduce, reduce, reduce_scatter, bcast, allgather, "
               "alltoall";
    facts.bytes = 1 << 20;
    facts.ranks = 16;
    facts.nodes = 0;
    for (size_t i = 1; i < words.size(); ++i) {
        if (words[i] == "--json") {
            request.as_json = true;
            continue;
        }
        const std::string& name = words[i];
        if (std::string problem = read_option(name, ++i < words.size() ? words[i] : "", facts);
            !problem.empty())
            return problem;
    }
    if (facts.nodes == 0) facts.nodes = facts.ranks;
    if (facts.nodes > facts.ranks) return "--nodes: more nodes than ranks";
    fill_nodes(facts);
    return {};
}

std::string explain_text(const ExplainRequest& request, const Settings& settings) {
    const pipeline::ChoiceFacts& facts = request.facts;
    const pipeline::NetworkConstants network = pipeline::network_constants(settings.network);
    const pipeline::Choice choice = pipeline::choose(facts, settings);
    const pipeline::LibraryCost library = pipeline::library_cost(facts, network);
    std::string text = std::string(words_of(facts.collective).call) + ", " +
                       format_bytes(facts.bytes) + ", " + std::to_string(facts.ranks) +
                       " ranks on " + std::to_string(facts.nodes) + " nodes\n" +
                       "between nodes: " + network_text(network) + "\n" +
                       "times are of the model, not measured\n\n" + padded("path", 22) +
                       padded("segments", 10) + "predicted\n";
    for (const Line& line : lines_of(facts, settings))
        text += padded(name_of(line.path), 22) + padded(std::to_string(line.segments), 10) +
                time_text(line.us) + "\n";
    text += padded("mpi", 22) + padded("1", 10) + time_text(library.us) + "  (" +
            library.algorithm + ")\n\n";
    const bool is_schedule = choice.path > CollectivePath::segmented;
    return text + "chosen: " + name_of(choice.path) +
           (is_schedule && choice.segments > 1
                ? ", " + std::to_string(choice.segments) + " segments"
                : std::string()) +
           ": " + why_text(facts, choice, settings) + "\n";
}

std::string explain_json(const ExplainRequest& request, const Settings& settings) {
    const pipeline::ChoiceFacts& facts = request.facts;
    const pipeline::NetworkConstants network = pipeline::network_constants(settings.network);
    const pipeline::Choice choice = pipeline::choose(facts, settings);
    const pipeline::LibraryCost library = pipeline::library_cost(facts, network);
    std::string rows;
    for (const Line& line : lines_of(facts, settings))
        rows += (rows.empty() ? "\n    " : ",\n    ") +
                json_line(name_of(line.path), line.segments, line.us);
    return "{\n  \"collective\": " + quote_json(words_of(facts.collective).word) +
           ",\n  \"bytes\": " + std::to_string(facts.bytes) +
           ",\n  \"ranks\": " + std::to_string(facts.ranks) +
           ",\n  \"nodes\": " + std::to_string(facts.nodes) +
           ",\n  \"network\": {\"latency_us\": " + printed("%.9g", network.latency_us) +
           ", \"bytes_per_us\": " + printed("%.9g", network.bytes_per_us) +
           ", \"overhead_us\": " + printed("%.9g", network.overhead_us) + "}" +
           ",\n  \"algorithms\": [" + rows + "\n  ]" +
           ",\n  \"library\": {\"algorithm\": " + quote_json(library.algorithm) +
           ", \"predicted_us\": " + printed("%.6g", library.us) +
           "},\n  \"chosen\": " + quote_json(name_of(choice.path)) +
           ",\n  \"segments\": " + std::to_string(choice.segments) +
           ",\n  \"why\": " + quote_json(why_text(facts, choice, settings)) + "\n}\n";
}

}  // namespace vecmpi::info
