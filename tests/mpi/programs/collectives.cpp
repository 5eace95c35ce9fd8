// SPDX-License-Identifier: BSD-3-Clause
// Random collectives on several communicators. Argument: blocking, nonblocking, persistent or
// mixed.
#include <vector>

#include "collective.hpp"
#include "completion.hpp"
#include "operators.hpp"

using namespace battery;

namespace {

void run_blocking(const Groups& groups, Random& own) {
    for (uint64_t step = 0; step < 120; ++step) {
        const Group& group = groups.all()[step % groups.all().size()];
        Random shared = group.random(step);
        const CollectivePtr collective = random_collective(shared, own, group, Form::blocking);
        collective->fill();
        collective->issue();
        collective->judge(topic("blocking"));
    }
}

// Several outstanding on several communicators, in the same order on each of them.
void run_nonblocking(const Groups& groups, Random& own, bool mixed) {
    for (uint64_t batch = 0; batch < 12; ++batch) {
        std::vector<CollectivePtr> collectives;
        std::vector<MPI_Request> requests;
        for (uint64_t step = 0; step < 12; ++step) {
            const Group& group = groups.all()[step % groups.all().size()];
            Random shared = group.random(1000 + batch * 100 + step);
            const bool blocking = mixed && shared.chance(30);
            const Form form = blocking ? Form::blocking : Form::nonblocking;
            collectives.push_back(random_collective(shared, own, group, form));
            collectives.back()->fill();
            collectives.back()->issue();
            requests.push_back(collectives.back()->request);
        }
        complete(own, requests);
        for (const CollectivePtr& collective : collectives) collective->judge(topic("several"));
    }
}

// Testall, Waitany and Waitsome of MPICH 4.0.2 treat an inactive persistent collective as an active
// one.
void wait_for_active(Random& own, std::vector<MPI_Request>& requests) {
    if (own.chance(50)) {
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        return;
    }
    for (size_t i = requests.size(); i > 0; --i) {
        int flag = 0;
        if (own.chance(50))
            MPI_Wait(&requests[i - 1], MPI_STATUS_IGNORE);
        else
            while (!flag) MPI_Test(&requests[i - 1], &flag, MPI_STATUS_IGNORE);
    }
}

void run_persistent(const Groups& groups, Random& own) {
    std::vector<CollectivePtr> collectives;
    std::vector<MPI_Request> requests;
    for (uint64_t step = 0; step < 30; ++step) {
        const Group& group = groups.all()[step % groups.all().size()];
        Random shared = group.random(5000 + step);
        collectives.push_back(random_collective(shared, own, group, Form::persistent));
        collectives.back()->fill();
        collectives.back()->issue();
        requests.push_back(collectives.back()->request);
    }
    for (int repetition = 0; repetition < 4; ++repetition) {
        for (const CollectivePtr& collective : collectives) collective->fill();
        if (repetition % 2 == 0)
            MPI_Startall(static_cast<int>(requests.size()), requests.data());
        else
            for (MPI_Request& request : requests) MPI_Start(&request);
        wait_for_active(own, requests);
        for (const CollectivePtr& collective : collectives) collective->judge(topic("persistent"));
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    {
        const Groups groups;
        Random own = own_random(4);
        if (world.argument == "blocking") run_blocking(groups, own);
        if (world.argument == "nonblocking") run_nonblocking(groups, own, false);
        if (world.argument == "mixed") run_nonblocking(groups, own, true);
        if (world.argument == "persistent") run_persistent(groups, own);
    }
    free_operator_types();
    return end();
}
