// SPDX-License-Identifier: BSD-3-Clause
// What vecmpi-info knows, and the forms in which it prints it. Every function is pure.
#pragma once

#include <string>
#include <vector>

#include "base/api.hpp"
#include "base/api/profile.hpp"
#include "machine.hpp"
#include "mpi_libraries.hpp"

namespace vecmpi::info {

struct SettingRow {
    SettingText setting;
    std::string value;
    std::string origin;  // "default" or "environment"
};

struct Info {
    std::string version;
    Machine machine;
    HostView host;
    OffloadPlan plan;
    bool is_oversubscribed = false;
    std::string waiting;  // how a blocked call waits here
    std::vector<MpiLibrary> mpi_libraries;
    LoadedProfile profile;
    std::string profile_origin;               // "off", "auto", or "environment"
    std::vector<std::string> profile_places;  // where auto looks
    std::vector<SettingRow> settings;
    std::string problem;
    std::vector<std::string> warnings;
};

// Words for what wait_policy() chose.
std::string describe_waiting(const WaitPolicy& policy);

std::string format_text(const Info& info);
std::string format_settings(const Info& info);
std::string format_json(const Info& info);
// docs/settings.md: from the table alone, the same on every machine.
std::string format_markdown();

}  // namespace vecmpi::info
