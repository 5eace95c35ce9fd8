// SPDX-License-Identifier: BSD-3-Clause
// vecmpi-info --explain: what each algorithm of a collective is predicted to take, which path is
// chosen, and why. Pure; the times are the model's, nothing is measured here.
#pragma once

#include <string>
#include <vector>

#include "pipeline/choice.hpp"

namespace vecmpi::info {

struct ExplainRequest {
    pipeline::ChoiceFacts facts;
    bool as_json = false;
};

// The words behind --explain. One line that says what is wrong with them; empty: nothing.
std::string read_explain(const std::vector<std::string>& words, ExplainRequest& request);

std::string explain_text(const ExplainRequest& request, const Settings& settings);
std::string explain_json(const ExplainRequest& request, const Settings& settings);

}  // namespace vecmpi::info
