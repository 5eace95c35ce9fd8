// SPDX-License-Identifier: BSD-3-Clause
// fork() amid communication, as data loaders do. The child asks whether MPI is initialised and leaves.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

[[noreturn]] void child(bool by_exec) {
    int flag = -1;
    MPI_Initialized(&flag);
    if (by_exec) execl("/bin/true", "true", static_cast<char*>(nullptr));
    _exit(flag == 1 ? 0 : 9);
}

void communicate(int round) {
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    std::vector<int> in(20000, -1);
    const std::vector<int> out(20000, world.rank + round);
    MPI_Request requests[2];
    MPI_Irecv(in.data(), 20000, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out.data(), 20000, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[1]);
    const pid_t pid = fork();  // with both outstanding
    if (pid == 0) child(round % 2 == 1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    int status = -1;
    check(waitpid(pid, &status, 0) == pid, "the child ended");
    check_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0, "exit status of the child");
    for (const int value : in) check_equal(value, left + round, "element across fork");
    topic("forks").add_bytes(in.data(), in.size() * sizeof(int));
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    for (int round = 0; round < 6; ++round) communicate(round);
    return end();
}
