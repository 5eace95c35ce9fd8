// SPDX-License-Identifier: BSD-3-Clause
// What rank 0 prints: one JSON object a line, each beginning {"bench": so that the driver can tell
// it from output of others. Not a general JSON writer.
#pragma once

#include <string>
#include <vector>

#include "timing.hpp"

namespace vecmpi::bench {

class JsonLine {
  public:
    explicit JsonLine(const char* kind);
    JsonLine& text(const char* name, const std::string& value);
    JsonLine& number(const char* name, double value);
    JsonLine& raw(const char* name, const std::string& json);
    // One write, so that lines stay whole between the ranks' outputs.
    void print() const;

  private:
    std::string line_;
};

std::string json_quoted(const std::string& text);
std::string json_list(const std::vector<std::string>& texts);

// The threads of this process and where they may run, as a record; taken at the end because a
// library may start them late.
void print_threads();

struct Figure {
    const char* name;    // of the call or the quantity
    double at;           // bytes, threads or ranks: what the measurement varies
    const char* unit;    // ns, MiB, %, M/s
    const char* better;  // lower or higher
};

// Prints one figure from rank 0; the other ranks return. `subtract` is the clock overhead where it
// counts.
void print_figure(const Figure& figure, const Samples& samples, double subtract = 0);
void print_figure(const Figure& figure, double value, const std::string& detail_json = {});

}  // namespace vecmpi::bench
