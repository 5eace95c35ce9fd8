// SPDX-License-Identifier: BSD-3-Clause
// The MPI tool information interface and MPI_Pcontrol. What the library shows must be there
// whatever else a preloaded library adds (names that begin with "vecmpi" are left out of the
// topics), and an index keeps its meaning from before MPI_Init to after MPI_Finalize. Argument:
// none, or threads (several at once ask).
#include <climits>
#include <string>
#include <thread>
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

struct Variable {
    std::string name;
    int var_class = 0;  // of a performance variable
    int bind = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    bool operator==(const Variable&) const = default;
};

bool is_added(const std::string& name) { return name.starts_with("vecmpi"); }

int number_of(int (*get_num)(int*)) {
    int number = -1;
    check_equal(get_num(&number), MPI_SUCCESS, "get_num");
    return number;
}

Variable control_variable(int index) {
    char name[256], text[4];
    int name_length = sizeof name, text_length = sizeof text, verbosity = 0, scope = 0;
    MPI_T_enum values;
    Variable found;
    check_equal(MPI_T_cvar_get_info(index, name, &name_length, &verbosity, &found.type, &values,
                                    text, &text_length, &found.bind, &scope),
                MPI_SUCCESS, "cvar_get_info");
    found.name = name;
    check_equal(name_length, static_cast<int64_t>(found.name.size()) + 1, "length of a name");
    int again = -1;
    check_equal(MPI_T_cvar_get_index(name, &again), MPI_SUCCESS, "cvar_get_index");
    check_equal(again, index, "index of a control variable");
    return found;
}

Variable performance_variable(int index) {
    char name[256];
    int length = sizeof name, none = 0, verbosity, readonly, continuous, atomic;
    MPI_T_enum values;
    Variable found;
    check_equal(
        MPI_T_pvar_get_info(index, name, &length, &verbosity, &found.var_class, &found.type,
                            &values, nullptr, &none, &found.bind, &readonly, &continuous, &atomic),
        MPI_SUCCESS, "pvar_get_info");
    found.name = name;
    int again = -1;
    check_equal(MPI_T_pvar_get_index(name, found.var_class, &again), MPI_SUCCESS, "pvar_get_index");
    check_equal(again, index, "index of a performance variable");
    return found;
}

std::vector<Variable> all(int (*get_num)(int*), Variable (*variable)(int)) {
    std::vector<Variable> found;
    for (int i = 0; i < number_of(get_num); ++i) found.push_back(variable(i));
    return found;
}

// What was there keeps its index.
void check_grown(const std::vector<Variable>& before, const std::vector<Variable>& now) {
    check(before.size() <= now.size(), "variables went");
    for (size_t i = 0; i < before.size(); ++i)
        check(before[i] == now[i], "an index has another meaning");
}

void show(const char* title, const std::vector<Variable>& variables) {
    for (const Variable& variable : variables)
        if (!is_added(variable.name))
            topic(title).add_bytes(variable.name.data(), variable.name.size());
}

void show_members(const std::string& category, const std::vector<int>& members, int index,
                  const std::vector<Variable>& variables, int (*list)(int, int, int*)) {
    std::vector<int> indices(members.size(), -1);
    check_equal(list(index, static_cast<int>(indices.size()), indices.data()), MPI_SUCCESS,
                "members");
    for (int member : indices) {
        check(member >= 0 && static_cast<size_t>(member) < variables.size(), "no such member");
        const std::string& name = variables[static_cast<size_t>(member)].name;
        check(is_added(name) == is_added(category), "a member of another's category");
        if (!is_added(category)) topic("members").add_bytes(name.data(), name.size());
    }
}

void categories(const std::vector<Variable>& cvars, const std::vector<Variable>& pvars) {
    for (int i = 0; i < number_of(MPI_T_category_get_num); ++i) {
        char name[256];
        int length = sizeof name, none = 0, of_cvars = -1, of_pvars = -1, of_categories = -1,
            again = -1;
        check_equal(MPI_T_category_get_info(i, name, &length, nullptr, &none, &of_cvars, &of_pvars,
                                            &of_categories),
                    MPI_SUCCESS, "category_get_info");
        check_equal(MPI_T_category_get_index(name, &again), MPI_SUCCESS, "category_get_index");
        check_equal(again, i, "index of a category");
        show_members(name, std::vector<int>(static_cast<size_t>(of_cvars)), i, cvars,
                     MPI_T_category_get_cvars);
        show_members(name, std::vector<int>(static_cast<size_t>(of_pvars)), i, pvars,
                     MPI_T_category_get_pvars);
    }
}

// Every control variable that belongs to nothing can be read.
void read_all(const std::vector<Variable>& cvars) {
    for (size_t i = 0; i < cvars.size(); ++i) {
        if (cvars[i].bind != MPI_T_BIND_NO_OBJECT) continue;
        MPI_T_cvar_handle handle;
        int count = 0, bytes = 0;
        check_equal(MPI_T_cvar_handle_alloc(static_cast<int>(i), nullptr, &handle, &count),
                    MPI_SUCCESS, "alloc");
        MPI_Type_size(cvars[i].type, &bytes);
        std::vector<char> value(static_cast<size_t>(count) * static_cast<size_t>(bytes) + 1);
        check_equal(MPI_T_cvar_read(handle, value.data()), MPI_SUCCESS, "cvar_read");
        if (is_added(cvars[i].name))
            check_equal(MPI_T_cvar_write(handle, value.data()), MPI_T_ERR_CVAR_SET_NEVER,
                        "cvar_write");
        check_equal(MPI_T_cvar_handle_free(&handle), MPI_SUCCESS, "cvar_handle_free");
        check(handle == MPI_T_CVAR_HANDLE_NULL, "a handle that was freed");
    }
}

void communicate() {
    std::vector<float> in(300, 1.5f), inout(300, 2.0f);
    MPI_Reduce_local(in.data(), inout.data(), 300, MPI_FLOAT, MPI_SUM);
    check(inout[299] == 3.5f, "Reduce_local");
    int sum = -1;
    MPI_Allreduce(&world.rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check_equal(sum, world.size * (world.size - 1) / 2, "Allreduce");
    MPI_Barrier(MPI_COMM_WORLD);
}

unsigned long long read(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    unsigned long long values[64] = {};
    check_equal(MPI_T_pvar_read(session, handle, values), MPI_SUCCESS, "pvar_read");
    return values[0];
}

// Of one kind, started and stopped together, the library's and others.
void count_with_all(const std::vector<Variable>& pvars) {
    MPI_T_pvar_session session, other;
    check_equal(MPI_T_pvar_session_create(&session), MPI_SUCCESS, "session_create");
    check_equal(MPI_T_pvar_session_create(&other), MPI_SUCCESS, "session_create");
    std::vector<MPI_T_pvar_handle> handles;
    std::vector<size_t> added;
    for (size_t i = 0; i < pvars.size(); ++i) {
        if (pvars[i].bind != MPI_T_BIND_NO_OBJECT) continue;
        int count = 0;
        MPI_T_pvar_handle handle;
        check_equal(MPI_T_pvar_handle_alloc(session, static_cast<int>(i), nullptr, &handle, &count),
                    MPI_SUCCESS, "pvar_handle_alloc");
        if (is_added(pvars[i].name)) added.push_back(handles.size());
        handles.push_back(handle);
    }
    for (size_t i : added)
        check_equal(static_cast<int64_t>(read(session, handles[i])), 0, "before the start");
    check_equal(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS, "start of all");
    communicate();
    check_equal(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS, "stop of all");
    std::vector<unsigned long long> counted;
    for (size_t i : added) counted.push_back(read(session, handles[i]));
    communicate();
    for (size_t i = 0; i < added.size(); ++i) {
        const MPI_T_pvar_handle handle = handles[added[i]];
        unsigned long long value = 5;
        check(read(session, handle) == counted[i], "it counts after the stop");
        check_equal(MPI_T_pvar_readreset(session, handle, &value), MPI_SUCCESS, "readreset");
        check(value == counted[i] && read(session, handle) == 0, "readreset");
        check_equal(MPI_T_pvar_write(session, handle, &value), MPI_SUCCESS, "pvar_write");
        check(read(session, handle) == counted[i], "pvar_write");
        check_equal(MPI_T_pvar_reset(session, handle), MPI_SUCCESS, "reset");
        check_equal(MPI_T_pvar_read(other, handle, &value), MPI_T_ERR_INVALID_HANDLE,
                    "another session");
        check_equal(MPI_T_pvar_start(session, handle), MPI_SUCCESS, "start");
    }
    for (size_t i = 0; i + 1 < handles.size(); i += 2) {
        check_equal(MPI_T_pvar_handle_free(session, &handles[i]), MPI_SUCCESS, "pvar_handle_free");
        check(handles[i] == MPI_T_PVAR_HANDLE_NULL, "a handle that was freed");
    }
    check_equal(MPI_T_pvar_session_free(&other), MPI_SUCCESS, "session_free");
    check_equal(MPI_T_pvar_session_free(&session), MPI_SUCCESS,
                "session_free");  // with the other handles
}

void refusals() {
    int index = -1;
    MPI_T_cvar_handle handle;
    int count = 0;
    check_equal(MPI_T_cvar_get_index("vecmpi_no_such_variable", &index), MPI_T_ERR_INVALID_NAME,
                "name");
    check_equal(MPI_T_pvar_get_index("no_such_variable", MPI_T_PVAR_CLASS_COUNTER, &index),
                MPI_T_ERR_INVALID_NAME, "name");
    check_equal(MPI_T_category_get_index("no_such_category", &index), MPI_T_ERR_INVALID_NAME,
                "name");
    for (int beyond : {-1, number_of(MPI_T_cvar_get_num), INT_MAX})
        check_equal(MPI_T_cvar_handle_alloc(beyond, nullptr, &handle, &count),
                    MPI_T_ERR_INVALID_INDEX, "index");
}

// Levels of MPI 4.0, 14.2.4, and one of nobody's; arguments that only other tools understand.
void sections() {
    for (int level : {0, 1, 2, 7, 0, 0, 2}) {
        check_equal(MPI_Pcontrol(level, 1.5, "text", 3L), MPI_SUCCESS, "Pcontrol");
        communicate();
    }
}

void ask(std::vector<Variable>& cvars, std::vector<Variable>& pvars) {
    const std::vector<Variable> cvars_now = all(MPI_T_cvar_get_num, control_variable);
    const std::vector<Variable> pvars_now = all(MPI_T_pvar_get_num, performance_variable);
    check_grown(cvars, cvars_now);
    check_grown(pvars, pvars_now);
    cvars = cvars_now;
    pvars = pvars_now;
}

// Several threads ask for the first time.
void ask_together() {
    std::vector<std::thread> threads;
    std::vector<std::vector<Variable>> cvars(4), pvars(4);
    for (size_t i = 0; i < 4; ++i) threads.emplace_back([&, i] { ask(cvars[i], pvars[i]); });
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 1; i < 4; ++i)
        check(cvars[i] == cvars[0] && pvars[i] == pvars[0], "threads see the same");
}

}  // namespace

int main(int argc, char** argv) {
    read_arguments(argc, argv);
    const bool threads = world.argument == "threads";
    int provided = -1, number = -1;
    check_equal(MPI_T_cvar_get_num(&number), MPI_T_ERR_NOT_INITIALIZED, "asked before the start");
    check_equal(MPI_T_init_thread(threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided),
                MPI_SUCCESS, "init");
    if (threads && provided == MPI_THREAD_MULTIPLE) ask_together();
    std::vector<Variable> cvars, pvars;
    ask(cvars, pvars);
    begin(argc, argv, threads ? MPI_THREAD_MULTIPLE : -1);
    ask(cvars, pvars);
    if (threads) ask_together();
    show("control", cvars);
    show("performance", pvars);
    categories(cvars, pvars);
    read_all(cvars);
    refusals();
    count_with_all(pvars);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_finalize();
    count_with_all(pvars);
    sections();
    const int status = end();
    ask(cvars, pvars);
    MPI_T_finalize();
    check_equal(MPI_T_cvar_get_num(&number), MPI_T_ERR_NOT_INITIALIZED, "asked after the end");
    return status;
}
