// SPDX-License-Identifier: BSD-3-Clause
// fork() amid communication, as data loaders do.
//   (none)  amid messages; the child asks whether MPI is initialised and leaves
//   node    amid collectives of all sizes, which ranks of a node may do through memory: between the
//           calls, and from a thread in the middle of one; children leave, become another program,
//           or live on
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
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

// ---- node

constexpr int most_ints = 40000;

// Of the stream; a child has copies of its own.
std::vector<int> in, out;

void resize_buffers() {
    in.resize(most_ints);
    out.resize(static_cast<size_t>(most_ints) * static_cast<size_t>(world.size));
}

void touch_memory() {
    std::fill(in.begin(), in.end(), -1);
    std::fill(out.begin(), out.end(), -1);
}

enum class Kind { leaves, becomes_another, lives_on };

[[noreturn]] void live(Kind kind, pid_t parent) {
    if (kind == Kind::becomes_another) {
        execl("/bin/true", "true", static_cast<char*>(nullptr));
        _exit(9);
    }
    do {
        touch_memory();
        usleep(2000);
    } while (kind == Kind::lives_on && getppid() == parent);
    _exit(0);
}

// Up to three at a time.
class Children {
  public:
    void add(Kind kind) {
        if (alive_.size() == 3) end_oldest();
        const pid_t parent = getpid(), pid = fork();
        if (pid == 0) live(kind, parent);
        check(pid > 0, "fork");
        alive_.emplace_back(pid, kind);
    }
    ~Children() {
        while (!alive_.empty()) end_oldest();
    }

  private:
    void end_oldest() {
        const auto [pid, kind] = alive_.front();
        alive_.erase(alive_.begin());
        if (kind == Kind::lives_on) kill(pid, SIGKILL);
        int status = -1;
        check(waitpid(pid, &status, 0) == pid, "the child ended");
        if (kind == Kind::lives_on)
            check(WIFSIGNALED(status), "the child lived on");
        else
            check_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0,
                        "exit status of the child");
    }
    std::vector<std::pair<pid_t, Kind>> alive_;
};

Kind any_kind(Random& own) {
    return std::vector{Kind::leaves, Kind::becomes_another,
                       Kind::lives_on}[static_cast<size_t>(own.below(3))];
}

int number(int call, int rank, int at) { return 3 * call + rank + at % 1000; }

void put_numbers(std::vector<int>& to, int count, int call) {
    for (int i = 0; i < count; ++i) to[static_cast<size_t>(i)] = number(call, world.rank, i);
}

// expected(i) -> what must be in out[i]
template <class Expected>
void check_result(int count, const Expected& expected) {
    for (int i = 0; i < count; ++i)
        check_equal(out[static_cast<size_t>(i)], expected(i), "result across fork");
}

int any_count(Random& common) {
    const int most = common.chance(40) ? 14 : common.chance(80) ? 4000 : most_ints;
    return common.between(1, most);
}

// A nonblocking one has a fork between the post and the wait.
void one_collective(int call, Random& common, Random& own, Children& children) {
    const int count = any_count(common), which = common.below(5), root = common.below(world.size);
    const auto sum = [&](int i) {
        return world.size * number(call, 0, i) + world.size * (world.size - 1) / 2;
    };
    put_numbers(which == 1 || which == 3 ? out : in, count, call);
    if (which == 0) MPI_Allreduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (which == 1)
        MPI_Allreduce(MPI_IN_PLACE, out.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (which == 2)
        MPI_Allgather(in.data(), count, MPI_INT, out.data(), count, MPI_INT, MPI_COMM_WORLD);
    if (which == 3) MPI_Bcast(out.data(), count, MPI_INT, root, MPI_COMM_WORLD);
    if (which == 4) {
        MPI_Request request;
        MPI_Iallreduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        children.add(any_kind(own));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (which == 2)
        check_result(count * world.size, [&](int i) { return number(call, i / count, i % count); });
    else if (which == 3)
        check_result(count, [&](int i) { return number(call, root, i); });
    else
        check_result(count, sum);
}

// What this process maps of memory that has a name, and would stay behind.
int files_of_shared_memory() {
    std::ifstream maps("/proc/self/maps");
    int files = 0;
    for (std::string line; std::getline(maps, line);)
        files += line.find(" /dev/shm/") != std::string::npos && !line.ends_with("(deleted)");
    return files;
}

void stream_with_forks() {
    resize_buffers();
    Random common = common_random(1), own = own_random(2), of_thread = own_random(3);
    const int files_before = files_of_shared_memory();
    std::atomic<bool> done = false;
    std::thread forker([&] {
        Children children;
        while (!done) {
            usleep(static_cast<unsigned>(of_thread.between(1000, 8000)));
            children.add(any_kind(of_thread));
        }
    });
    {
        Children children;
        for (int call = 0; call < 200; ++call) {
            if (own.chance(5)) children.add(any_kind(own));
            one_collective(call, common, own, children);
        }
    }
    done = true;
    forker.join();
    check_equal(files_of_shared_memory(), files_before, "files of shared memory");
    topic("forks").add(1);
}

}  // namespace

int main(int argc, char** argv) {
    read_arguments(argc, argv);
    const bool node = world.argument == "node";
    begin(argc, argv, node ? MPI_THREAD_FUNNELED : -1);
    if (node) {
        stream_with_forks();
        return end();
    }
    for (int round = 0; round < 6; ++round) communicate(round);
    return end();
}
