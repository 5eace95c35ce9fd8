// SPDX-License-Identifier: BSD-3-Clause
// Runs another program, or code that may hang or end the process, in a child, and reads what it
// writes.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace vecmpi::info {

// What `work` writes to the descriptor that it is given. It runs in a child that never returns from
// it, with standard error at /dev/null, and is ended after `seconds`.
std::string output_of_child(const std::function<void(int pipe)>& work, unsigned seconds);

// Standard output of a command (the first word is a path). added: variables NAME=VALUE of its
// environment; LD_PRELOAD is unset where it is none of them.
std::string output_of_child(const std::vector<std::string>& command,
                            const std::vector<std::string>& added = {});

}  // namespace vecmpi::info
