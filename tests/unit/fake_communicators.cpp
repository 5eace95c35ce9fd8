// SPDX-License-Identifier: BSD-3-Clause
// Communicators, groups and error handlers of the fake MPI library, and its types. Holds no test.
#include <cstdlib>
#include <iterator>
#include <map>

#include "fake_table.hpp"

namespace fake {

using vecmpi::real;

namespace {

std::map<MPI_Comm, Communicator> communicators;
int questions = 0;
int references = 0;

constexpr unsigned group_bits =
    0x88000000u;  // a group is the number of its communicator in the map

Communicator copy_of(MPI_Comm comm) {
    const Locked lock;
    return communicators[comm];
}

int fake_Comm_test_inter(MPI_Comm comm, int* inter) {
    if (inside_question) inside_question();
    *inter = copy_of(comm).inter;
    const Locked lock;
    ++questions;
    return communicators[comm].freed ? MPI_ERR_COMM : MPI_SUCCESS;
}

int fake_Comm_size(MPI_Comm comm, int* size) {
    const Communicator facts = copy_of(comm);
    *size = facts.inter ? 1 : facts.size;
    return MPI_SUCCESS;
}

int fake_Comm_remote_size(MPI_Comm comm, int* size) {
    *size = copy_of(comm).size;
    return MPI_SUCCESS;
}

int fake_Comm_rank(MPI_Comm, int* rank) {
    *rank = 0;
    return MPI_SUCCESS;
}

int fake_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* handler) {
    *handler = comm == MPI_COMM_SELF ? MPI_ERRORS_ARE_FATAL : copy_of(comm).handler;
    const Locked lock;
    if (*handler == user_handler) ++references;
    return MPI_SUCCESS;
}

int fake_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
    const Locked lock;
    const auto found = communicators.find(comm);
    if (found != communicators.end()) found->second.handler = handler;
    return MPI_SUCCESS;
}

int fake_Errhandler_free(MPI_Errhandler* handler) {
    *handler = MPI_ERRHANDLER_NULL;
    const Locked lock;
    --references;
    return MPI_SUCCESS;
}

int fake_Comm_group(MPI_Comm comm, MPI_Group* group) {
    const Locked lock;
    const auto number = std::distance(communicators.begin(), communicators.find(comm));
    *group = static_cast<MPI_Group>(group_bits + static_cast<unsigned>(number));
    return MPI_SUCCESS;
}

int fake_Group_free(MPI_Group* group) {
    *group = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}

int fake_Group_translate_ranks(MPI_Group group, int n, const int ranks[], MPI_Group, int found[]) {
    const Locked lock;
    const Communicator& facts =
        std::next(communicators.begin(), static_cast<unsigned>(group) - group_bits)->second;
    for (int i = 0; i < n; ++i)
        found[i] = facts.foreign && ranks[i] == facts.size - 1 ? MPI_UNDEFINED : ranks[i];
    return MPI_SUCCESS;
}

int fake_Comm_get_attr(MPI_Comm comm, int key, void* value, int* flag) {
    static int tag_upper_bound = 268435455;
    *static_cast<int**>(value) = &tag_upper_bound;
    *flag = key == MPI_TAG_UB || copy_of(comm).marked;
    return MPI_SUCCESS;
}

int fake_Comm_call_errhandler(MPI_Comm, int) { return MPI_SUCCESS; }
int fake_Abort(MPI_Comm, int) { std::abort(); }

int fake_Type_size_x(MPI_Datatype type, MPI_Count* size) {
    *size = (static_cast<unsigned>(type) >> 8) & 0xff;
    return MPI_SUCCESS;
}

int fake_Type_get_extent_x(MPI_Datatype type, MPI_Count* lower_bound, MPI_Count* extent) {
    *lower_bound = 0;
    return fake_Type_size_x(type, extent);
}

}  // namespace

void reset_communicators() {
    {
        const Locked lock;
        communicators.clear();
        communicators[MPI_COMM_WORLD];
        questions = references = 0;
    }
    real.Comm_test_inter = fake_Comm_test_inter;
    real.Comm_size = fake_Comm_size;
    real.Topo_test = [](MPI_Comm, int* kind) { return *kind = MPI_UNDEFINED, int{MPI_SUCCESS}; };
    real.Comm_remote_size = fake_Comm_remote_size;
    real.Comm_rank = fake_Comm_rank;
    real.Comm_get_errhandler = fake_Comm_get_errhandler;
    real.Comm_set_errhandler = fake_Comm_set_errhandler;
    real.Errhandler_free = fake_Errhandler_free;
    real.Comm_group = fake_Comm_group;
    real.Comm_remote_group = fake_Comm_group;
    real.Group_free = fake_Group_free;
    real.Group_translate_ranks = fake_Group_translate_ranks;
    real.Comm_get_attr = fake_Comm_get_attr;
    real.Comm_call_errhandler = fake_Comm_call_errhandler;
    real.Abort = fake_Abort;
    real.Type_size_x = fake_Type_size_x;
    real.Type_get_extent_x = fake_Type_get_extent_x;
}

MPI_Comm communicator(int number) {
    if (number == 0) return MPI_COMM_WORLD;
    const auto comm = static_cast<MPI_Comm>(0x84000000u + static_cast<unsigned>(number));
    const Locked lock;
    communicators[comm];
    return comm;
}

Communicator& facts_of(MPI_Comm comm) {
    const Locked lock;
    return communicators[comm];
}

int communicator_questions() {
    const Locked lock;
    return questions;
}

int handler_references() {
    const Locked lock;
    return references;
}

}  // namespace fake
