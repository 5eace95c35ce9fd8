// SPDX-License-Identifier: BSD-3-Clause
#include "child_output.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace vecmpi::info {
namespace {

constexpr unsigned most_seconds = 30;

std::string read_all(int pipe) {
    std::string text;
    char block[4096];
    for (;;) {
        const ssize_t length = read(pipe, block, sizeof block);
        if (length < 0 && errno == EINTR) continue;
        if (length <= 0) return text;
        text.append(block, static_cast<size_t>(length));
    }
}

[[noreturn]] void run_command(const std::vector<std::string>& command,
                              const std::vector<std::string>& added, int pipe) {
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    dup2(pipe, STDOUT_FILENO);
    // NOLINTBEGIN(concurrency-mt-unsafe): a child has one thread
    unsetenv("LD_PRELOAD");
    for (const std::string& variable : added) putenv(const_cast<char*>(variable.c_str()));
    // NOLINTEND(concurrency-mt-unsafe)
    execv(words[0], words.data());
    _exit(EXIT_FAILURE);
}

}  // namespace

std::string output_of_child(const std::function<void(int pipe)>& work, unsigned seconds) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return {};
    const pid_t child = fork();
    if (child == 0) {
        alarm(seconds);  // what hangs must not hang us; it outlives exec
        const int null_device = open("/dev/null", O_WRONLY);
        if (null_device >= 0) dup2(null_device, STDERR_FILENO);
        work(ends[1]);
        _exit(EXIT_SUCCESS);
    }
    close(ends[1]);
    std::string answer = child > 0 ? read_all(ends[0]) : std::string();
    close(ends[0]);
    if (child > 0) waitpid(child, nullptr, 0);
    return answer;
}

std::string output_of_child(const std::vector<std::string>& command,
                            const std::vector<std::string>& added) {
    return output_of_child([&](int pipe) { run_command(command, added, pipe); }, most_seconds);
}

}  // namespace vecmpi::info
