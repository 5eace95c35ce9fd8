// SPDX-License-Identifier: BSD-3-Clause
// What was sent before a collective that makes all ranks wait for each other is found by one look
// after it: by each call that looks once, after collectives of several sizes. MPI promises no such
// thing. MPICH 4.0 over UCX keeps it, since its collectives poll, and programs rely on it.
// Collectives of other libraries go through memory themselves: there nothing is checked.
#include <array>
#include <cstring>
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

constexpr int tag = 4;
constexpr int ahead = 5;  // messages that lie before the one that is looked for

class Partners {
  public:
    explicit Partners(MPI_Comm of) : comm(of) {
        MPI_Group all;
        MPI_Comm_group(comm, &all);
        MPI_Group_incl(all, 1, &left, &sources);
        MPI_Group_incl(all, 1, &right, &targets);
        MPI_Group_free(&all);
        MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, comm, &memory, &window);
        MPI_Precv_init(&received, 1, 1, MPI_INT, left, tag, comm, MPI_INFO_NULL, &parted[0]);
        MPI_Psend_init(&sent, 1, 1, MPI_INT, right, tag, comm, MPI_INFO_NULL, &parted[1]);
    }
    Partners(const Partners&) = delete;
    Partners& operator=(const Partners&) = delete;
    ~Partners() {
        MPI_Request_free(&parted[0]);
        MPI_Request_free(&parted[1]);
        MPI_Win_free(&window);
        MPI_Group_free(&sources);
        MPI_Group_free(&targets);
    }

    void send(int which = tag) const { MPI_Send(&sent, 1, MPI_INT, right, which, comm); }
    void receive(int which = tag) {
        MPI_Recv(&received, 1, MPI_INT, left, which, comm, MPI_STATUS_IGNORE);
    }

    const MPI_Comm comm;
    const int left = (world.rank + world.size - 1) % world.size;
    const int right = (world.rank + 1) % world.size;
    int sent = world.rank, received = -1;
    MPI_Group sources{}, targets{};
    MPI_Win window{};
    int* memory = nullptr;
    std::array<MPI_Request, 2> parted{};
};

// ---- collectives in which each rank waits for all -----------------------------------------------

template <int elements>
void sum(MPI_Comm comm) {
    static std::array<int, elements> numbers;
    MPI_Allreduce(MPI_IN_PLACE, numbers.data(), elements, MPI_INT, MPI_MAX, comm);
}
template <int elements>
void exchange(MPI_Comm comm) {
    static std::vector<int> numbers(static_cast<size_t>(elements * world.size));
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, numbers.data(), elements, MPI_INT, comm);
}
void barrier(MPI_Comm comm) { MPI_Barrier(comm); }
void nonblocking_barrier(MPI_Comm comm) {
    MPI_Request request;
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
constexpr std::array collectives{barrier,   barrier,    nonblocking_barrier, sum<1>,
                                 sum<1000>, sum<20000>, exchange<1>,         exchange<1000>};

// ---- looks: each sends, runs the collective, and says whether the look found what was sent ------

using Collective = void (*)(MPI_Comm);
using Look = bool (*)(Partners&, Collective);

bool probe(Partners& of, Collective collective) {
    int found = 0;
    for (int i = 1; i <= ahead; ++i) of.send(tag + i);
    of.send();
    collective(of.comm);
    MPI_Iprobe(of.left, tag, of.comm, &found, MPI_STATUS_IGNORE);
    for (int i = 1; i <= ahead; ++i) of.receive(tag + i);
    of.receive();
    return found != 0;
}

bool probe_any(Partners& of, Collective collective) {
    int found = 0;
    of.send();
    collective(of.comm);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, of.comm, &found, MPI_STATUS_IGNORE);
    of.receive();
    return found != 0;
}

bool probe_matched(Partners& of, Collective collective) {
    MPI_Message message = MPI_MESSAGE_NULL;
    int found = 0;
    of.send();
    collective(of.comm);
    MPI_Improbe(of.left, tag, of.comm, &found, &message, MPI_STATUS_IGNORE);
    if (found)
        MPI_Mrecv(&of.received, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    else
        of.receive();
    return found != 0;
}

// look(request) -> found. It need not complete the request.
template <class TestRequest>
bool test(Partners& of, Collective collective, TestRequest look) {
    MPI_Request request;
    MPI_Irecv(&of.received, 1, MPI_INT, of.left, tag, of.comm, &request);
    of.send();
    collective(of.comm);
    const bool found = look(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return found;
}

bool test_one(Partners& of, Collective collective) {
    return test(of, collective, [](MPI_Request* request) {
        int flag = 0;
        MPI_Test(request, &flag, MPI_STATUS_IGNORE);
        return flag != 0;
    });
}

bool test_any(Partners& of, Collective collective) {
    return test(of, collective, [](MPI_Request* request) {
        int flag = 0, index = -1;
        MPI_Testany(1, request, &index, &flag, MPI_STATUS_IGNORE);
        return flag != 0;
    });
}

bool test_all(Partners& of, Collective collective) {
    return test(of, collective, [](MPI_Request* request) {
        int flag = 0;
        MPI_Testall(1, request, &flag, MPI_STATUSES_IGNORE);
        return flag != 0;
    });
}

bool test_some(Partners& of, Collective collective) {
    return test(of, collective, [](MPI_Request* request) {
        int found = 0, index = -1;
        MPI_Testsome(1, request, &found, &index, MPI_STATUSES_IGNORE);
        return found == 1;
    });
}

bool get_status(Partners& of, Collective collective) {
    return test(of, collective, [](MPI_Request* request) {
        int flag = 0;
        MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE);
        return flag != 0;
    });
}

bool has_arrived(Partners& of, Collective collective) {
    int found = 0;
    MPI_Startall(2, of.parted.data());
    MPI_Barrier(of.comm);
    MPI_Barrier(of.comm);  // the partners know each other's requests
    MPI_Pready(0, of.parted[1]);
    MPI_Test(&of.parted[1], &found, MPI_STATUS_IGNORE);
    found = 0;
    collective(of.comm);
    MPI_Parrived(of.parted[0], 0, &found);
    MPI_Waitall(2, of.parted.data(), MPI_STATUSES_IGNORE);
    return found != 0;
}

bool test_window(Partners& of, Collective collective) {
    int found = 0;
    MPI_Win_post(of.sources, 0, of.window);
    MPI_Win_start(of.targets, 0, of.window);
    MPI_Win_complete(of.window);
    collective(of.comm);
    MPI_Win_test(of.window, &found);
    if (!found) MPI_Win_wait(of.window);
    return found != 0;
}

// MPICH 4.3 and 5.0, whose barriers go through memory, do not.
bool library_keeps_it() {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    return std::strstr(version, "4.0.") != nullptr && std::strstr(version, "ch4:ucx\n") != nullptr;
}

struct NamedLook {
    const char* name;
    Look look;
};
constexpr NamedLook looks[] = {{"Iprobe", probe},          {"Iprobe of any message", probe_any},
                               {"Improbe", probe_matched}, {"Test", test_one},
                               {"Testany", test_any},      {"Testall", test_all},
                               {"Testsome", test_some},    {"Request_get_status", get_status},
                               {"Parrived", has_arrived},  {"Win_test", test_window}};

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 30; ++i) MPI_Barrier(comm);
    {
        Partners partners(comm);
        for (const NamedLook& one : looks)
            for (const Collective collective : collectives) {
                int missed = 0;
                for (int i = 0; i < 50; ++i) missed += !one.look(partners, collective);
                if (library_keeps_it()) check_equal(missed, 0, one.name);
            }
    }
    MPI_Comm_free(&comm);
    return end();
}
