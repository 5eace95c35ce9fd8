// SPDX-License-Identifier: BSD-3-Clause
// What vecmpi-info says of the machine. For people to read: the library decides on none of it.
#pragma once

#include <string>
#include <vector>

namespace vecmpi::info {

struct Machine {
    std::string cpu_model;
    std::vector<std::string> instruction_sets;  // those that vector kernels care for
    std::vector<std::string> caches;            // "L1 data 48 KiB", of the first CPU
    std::string numa_nodes;                     // as the kernel lists them: "0-1"
};

Machine look_at_machine();

// "0-3,8" from 0, 1, 2, 3, 8.
std::string cpu_list(const std::vector<int>& cpus);

}  // namespace vecmpi::info
