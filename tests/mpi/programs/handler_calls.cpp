// SPDX-License-Identifier: BSD-3-Clause
// What programs do in their error handlers below MPI_THREAD_MULTIPLE: call MPI, leave by longjmp,
// throw. Afterwards messages and collectives must go on as if nothing had been. Each rank errs
// alone. Argument: calls, jumps, throws, objects, many, abort.
#include <unistd.h>
#include <csetjmp>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

// Communicator with a handler function; the handler is freed while it is set.
MPI_Comm with_handler(MPI_Comm_errhandler_function* function) {
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(function, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    return comm;
}

void set_on_world(MPI_Comm_errhandler_function* function) {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(function, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Errhandler_free(&handler);
}

// The job is whole: a ring of large messages, collectives that may be cut, a new communicator.
void goes_on(MPI_Comm comm, const char* where) {
    const int count = 30000;
    std::vector<int> out(count, world.rank + 1), in(count, 0);
    const int right = (world.rank + 1) % world.size;
    const int left = (world.rank + world.size - 1) % world.size;
    MPI_Request requests[2];
    MPI_Irecv(in.data(), count, MPI_INT, left, 1, comm, &requests[0]);
    MPI_Isend(out.data(), count, MPI_INT, right, 1, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check_equal(in[count - 1], left + 1, where);
    MPI_Allreduce(out.data(), in.data(), count, MPI_INT, MPI_SUM, comm);
    check_equal(in[count - 1], world.size * (world.size + 1) / 2, where);
    MPI_Bcast(in.data(), count, MPI_INT, 0, comm);
    MPI_Comm copy;
    MPI_Comm_dup(comm, &copy);
    MPI_Barrier(copy);
    MPI_Comm_free(&copy);
    topic(where).add(static_cast<uint64_t>(in[0]));
}

// ---- calls --------------------------------------------------------------------------------------

int times = 0;
int depth = 0;

// With an error of its own inside, once.
void calls_mpi(MPI_Comm* comm, int* code, ...) {
    ++times;
    ++depth;
    char text[MPI_MAX_ERROR_STRING];
    char name[MPI_MAX_OBJECT_NAME];
    int length = 0, name_length = 0, in = 0, sum = 0;
    const int out = 5;
    MPI_Error_string(*code, text, &length);
    MPI_Comm_get_name(*comm, name, &name_length);
    MPI_Sendrecv(&out, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Allreduce(&out, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    MPI_Datatype type;
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&type);
    check_equal(in + sum, 10, "messages in the handler");
    if (depth == 1) {
        const int rc = MPI_Send(&out, 1, MPI_INT, 0, -7, *comm);
        check_class(rc, MPI_ERR_TAG, "an error in the handler");
    }
    topic("in the handler").add_bytes(name, static_cast<size_t>(name_length));
    topic("in the handler").add(static_cast<uint64_t>(error_class(*code) * 10 + depth));
    --depth;
}

// called: how often, the handler's own error among them.
void expect(int rc, int expected_class, const char* what) {
    check_class(rc, expected_class, what);
    check_equal(times, 2, what);
    times = 0;
}

void truncated(MPI_Comm comm, bool nonblocking) {
    const int out[4] = {1, 2, 3, 4};
    int in = 0;
    MPI_Request send, request;
    MPI_Isend(out, 4, MPI_INT, world.rank, 3, comm, &send);
    if (nonblocking) {
        MPI_Irecv(&in, 1, MPI_INT, world.rank, 3, comm, &request);
        expect(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "Wait");
    } else {
        expect(MPI_Recv(&in, 1, MPI_INT, world.rank, 3, comm, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE,
               "Recv");
    }
    MPI_Wait(&send, MPI_STATUS_IGNORE);
}

void makes_another_code(MPI_Comm*, int* code, ...) { *code = MPI_ERR_TAG; }

// A handle of nothing is an error of the call only, not of a question before it.
void of_freed_communicator() {
    MPI_Comm comm = with_handler(calls_mpi);
    const MPI_Comm freed = comm;
    MPI_Comm_free(&comm);
    int value = 0;
    MPI_Request request;
    expect(MPI_Send(&value, 1, MPI_INT, 0, 0, freed), MPI_ERR_COMM, "Send on a freed one");
    expect(MPI_Irecv(&value, 1, MPI_INT, 0, 0, freed, &request), MPI_ERR_COMM,
           "Irecv on a freed one");
    expect(MPI_Bcast(&value, 1, MPI_INT, 0, freed), MPI_ERR_COMM, "Bcast on a freed one");
}

void call_in_handlers() {
    const MPI_Comm comm = with_handler(calls_mpi);
    MPI_Comm first = comm, other;
    MPI_Comm_set_name(comm, "the first");
    set_on_world(calls_mpi);
    int value = 0;
    MPI_Request request;
    MPI_Datatype type = MPI_INT, none = MPI_DATATYPE_NULL;
    expect(MPI_Send(&value, 1, MPI_INT, 99, 0, comm), MPI_ERR_RANK, "Send");
    expect(MPI_Isend(&value, 1, MPI_INT, 99, 0, comm, &request), MPI_ERR_RANK, "Isend");
    expect(MPI_Bcast(&value, 1, MPI_INT, -1, comm), MPI_ERR_ROOT, "Bcast");
    expect(
        MPI_Sendrecv(&value, 1, MPI_INT, 99, 0, &value, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE),
        MPI_ERR_RANK, "Sendrecv");
    expect(MPI_Probe(99, 0, comm, MPI_STATUS_IGNORE), MPI_ERR_RANK, "Probe");
    expect(MPI_Send_init(&value, 1, MPI_INT, 99, 0, comm, &request), MPI_ERR_RANK, "Send_init");
    expect(MPI_Type_free(&type), MPI_ERR_TYPE, "Type_free");
    expect(MPI_Type_commit(&none), MPI_ERR_TYPE, "Type_commit");  // left to the library
    expect(MPI_Comm_set_name(comm, nullptr), MPI_ERR_ARG, "Comm_set_name");
    expect(MPI_Comm_create(comm, MPI_GROUP_NULL, &other), MPI_ERR_GROUP, "Comm_create");
    truncated(comm, false);
    truncated(comm, true);
    expect(MPI_Comm_call_errhandler(comm, MPI_ERR_IO), MPI_SUCCESS, "Comm_call_errhandler");
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(comm, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Errhandler_free(&handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    of_freed_communicator();
    goes_on(comm, "after calls");
    MPI_Comm changing = with_handler(makes_another_code);
    check_class(MPI_Comm_call_errhandler(changing, MPI_SUCCESS), MPI_SUCCESS, "code of no error");
    check_class(MPI_Send(&value, 1, MPI_INT, 99, 0, changing), MPI_ERR_TAG, "code of the handler");
    MPI_Comm_free(&changing);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&first);
}

// ---- in callbacks: what the handler does must be seen there -------------------------------------

MPI_Comm used_in_callbacks;
int caught = 0;

// errs(): a call that fails and is left by its handler, within it.
template <void (*errs)()>
int copies_attribute(MPI_Comm, int, void*, void*, void* copy, int* flag) {
    errs();
    *static_cast<void**>(copy) = nullptr;
    *flag = 1;
    return MPI_SUCCESS;
}
template <void (*errs)()>
int deletes_attribute(MPI_Comm, int, void*, void*) {
    errs();
    return MPI_SUCCESS;
}
template <void (*errs)()>
void computes(void*, void*, int*, MPI_Datatype*) {
    errs();
}

template <void (*errs)()>
void err_in_callbacks(MPI_Comm_errhandler_function* function) {
    used_in_callbacks = with_handler(function);
    MPI_Comm comm, copy;
    MPI_Op op;
    int key, a = 1, b = 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_keyval(copies_attribute<errs>, deletes_attribute<errs>, &key, nullptr);
    MPI_Comm_set_attr(comm, key, nullptr);
    MPI_Comm_dup(comm, &copy);
    check_equal(caught, 1, "caught in a copy function");
    MPI_Comm_free(&copy);
    check_equal(caught, 2, "caught in a delete function");
    MPI_Op_create(computes<errs>, 1, &op);
    MPI_Reduce_local(&a, &b, 1, MPI_INT, op);
    check_equal(caught, 3, "caught in an operator");
    MPI_Op_free(&op);
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_free(&used_in_callbacks);
}

// ---- jumps --------------------------------------------------------------------------------------

std::jmp_buf back;
void jumps(MPI_Comm*, int* code, ...) {
    topic("jumps").add(static_cast<uint64_t>(error_class(*code)));
    std::longjmp(back, 1);
}

template <class Call>
void jump_out_of(const char* what, Call call) {
    if (setjmp(back) != 0) return;
    call();
    check(false, what);
}

void jumps_in_callback() {
    if (setjmp(back) != 0)
        ++caught;
    else
        MPI_Send(&caught, 1, MPI_INT, 99, 0, used_in_callbacks);
}

void jump_out_of_handlers() {
    err_in_callbacks<jumps_in_callback>(jumps);
    MPI_Comm comm = with_handler(jumps);
    set_on_world(jumps);
    static MPI_Comm copy;
    static int value;
    static const int out[4] = {1, 2, 3, 4};
    static MPI_Request send, request;
    // Some ranks only: what remains of a call must not make them decide otherwise than the others.
    if (world.rank % 2 == 0) {
        jump_out_of("Type_free", [] {
            MPI_Datatype type = MPI_INT;
            MPI_Type_free(&type);
        });
        jump_out_of("Comm_create", [&] { MPI_Comm_create(comm, MPI_GROUP_NULL, &copy); });
        jump_out_of("Type_commit", [] {
            MPI_Datatype type = MPI_DATATYPE_NULL;
            MPI_Type_commit(&type);
        });
    }
    goes_on(MPI_COMM_WORLD, "after jumps out of calls of objects");
    if (world.rank % 2 == 0)
        jump_out_of("Send", [&] { MPI_Send(&value, 1, MPI_INT, 99, 0, comm); });
    jump_out_of("Isend", [&] { MPI_Isend(&value, 1, MPI_INT, 99, 0, comm, &request); });
    jump_out_of("Allreduce", [&] { MPI_Allreduce(&value, &value, 1, MPI_INT, MPI_OP_NULL, comm); });
    jump_out_of("Bcast", [&] { MPI_Bcast(&value, 1, MPI_INT, -1, comm); });
    MPI_Isend(out, 4, MPI_INT, world.rank, 3, comm, &send);
    MPI_Irecv(&value, 1, MPI_INT, world.rank, 3, comm, &request);
    jump_out_of("Wait", [] { MPI_Wait(&request, MPI_STATUS_IGNORE); });
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    goes_on(comm, "after jumps");
    goes_on(MPI_COMM_WORLD, "after jumps, world");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
}

// ---- exceptions ---------------------------------------------------------------------------------

void throws(MPI_Comm*, int* code, ...) {
    throw std::runtime_error(std::to_string(error_class(*code)));
}

template <class Call>
void catch_from(const char* what, Call call) {
    try {
        call();
    } catch (const std::runtime_error& error) {
        topic("exceptions").add(static_cast<uint64_t>(std::stoi(error.what())));
        return;
    }
    check(false, what);
}

void throws_in_callback() {
    try {
        MPI_Send(&caught, 1, MPI_INT, 99, 0, used_in_callbacks);
    } catch (const std::runtime_error&) {
        ++caught;
    }
}

// Not caught in the callback: it passes the library, whose frames at this level hold nothing.
void throws_past_callback() { MPI_Send(&caught, 1, MPI_INT, 99, 0, used_in_callbacks); }

void throw_out_of_callback() {
    used_in_callbacks = with_handler(throws);
    MPI_Comm comm;
    int key;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deletes_attribute<throws_past_callback>, &key,
                           nullptr);
    MPI_Comm_set_attr(comm, key, nullptr);
    catch_from("Comm_free", [&] { MPI_Comm_free(&comm); });
    goes_on(MPI_COMM_WORLD, "after an exception out of a callback");
    MPI_Comm_free(&used_in_callbacks);
}

void throw_from_handlers() {
    err_in_callbacks<throws_in_callback>(throws);
    throw_out_of_callback();
    MPI_Comm comm = with_handler(throws);
    set_on_world(throws);
    int value = 0;
    MPI_Datatype type = MPI_INT, none = MPI_DATATYPE_NULL;
    MPI_Request request;
    if (world.rank % 2 == 0) {
        catch_from("Type_free", [&] { MPI_Type_free(&type); });
        catch_from("Type_commit", [&] { MPI_Type_commit(&none); });
        catch_from("Send", [&] { MPI_Send(&value, 1, MPI_INT, 99, 0, comm); });
    }
    catch_from("Isend", [&] { MPI_Isend(&value, 1, MPI_INT, 99, 0, comm, &request); });
    catch_from("Gather",
               [&] { MPI_Gather(&value, 1, MPI_INT, &value, 1, MPI_INT, world.size, comm); });
    goes_on(comm, "after exceptions");
    goes_on(MPI_COMM_WORLD, "after exceptions, world");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
}

// ---- windows and files --------------------------------------------------------------------------

MPI_Win expected_window;
MPI_File expected_file;
int object_calls = 0;

void of_window(MPI_Win* window, int* code, ...) {
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    check(*window == expected_window, "window of the handler");
    MPI_Win_get_name(*window, name, &length);
    topic("window").add(static_cast<uint64_t>(error_class(*code)));
    topic("window").add_bytes(name, static_cast<size_t>(length));
    ++object_calls;
}

void of_file(MPI_File* file, int* code, ...) {
    MPI_Offset size = 0;
    check(*file == expected_file, "file of the handler");
    MPI_File_get_size(*file, &size);
    topic("file").add(static_cast<uint64_t>(error_class(*code)));
    topic("file").add(static_cast<uint64_t>(size));
    ++object_calls;
}

void window_handler() {
    int memory[4] = {}, value = 1;
    MPI_Errhandler handler;
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &expected_window);
    MPI_Win_create_errhandler(of_window, &handler);
    MPI_Win_set_errhandler(expected_window, handler);
    MPI_Errhandler_free(&handler);
    MPI_Win_set_name(expected_window, "glass");
    MPI_Win_fence(0, expected_window);
    check_class(MPI_Put(&value, 1, MPI_INT, 99, 0, 1, MPI_INT, expected_window), MPI_ERR_RANK,
                "Put");
    MPI_Win_call_errhandler(expected_window, MPI_ERR_OTHER);
    check_equal(object_calls, 2, "calls for the window");
    object_calls = 0;
    MPI_Win_fence(0, expected_window);
    MPI_Win_free(&expected_window);
}

void file_handler() {
    const std::string name =
        "/tmp/vecmpi_handler_calls_" + std::to_string(getppid()) + "_" + std::to_string(getpid());
    MPI_Errhandler handler;
    MPI_File_open(MPI_COMM_SELF, name.c_str(),
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                  &expected_file);
    MPI_File_write_at(expected_file, 0, "12345", 5, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_create_errhandler(of_file, &handler);
    MPI_File_set_errhandler(expected_file, handler);
    MPI_Errhandler_free(&handler);
    char byte = 0;
    check_class(MPI_File_write_at(expected_file, -4, &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE),
                MPI_ERR_ARG, "File_write_at");
    MPI_File_call_errhandler(expected_file, MPI_ERR_OTHER);
    check_equal(object_calls, 2, "calls for the file");
    object_calls = 0;
    MPI_File_close(&expected_file);
}

// ---- many handlers ------------------------------------------------------------------------------

int last_called = -1;
template <int number>
void numbered(MPI_Comm*, int*, ...) {
    last_called = number;
}

template <int number>
void use_numbered(MPI_Comm comm) {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(numbered<number>, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    int value = 0;
    MPI_Send(&value, 1, MPI_INT, 99, 0, comm);
    check_equal(last_called, number, "which handler");
    if constexpr (number > 0) use_numbered<number - 1>(comm);
}

// The same functions again and again, then more than anybody keeps apart.
void many_handlers() {
    const MPI_Comm first = with_handler(numbered<3>);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 100; ++i) use_numbered<5>(comm);
    use_numbered<300>(comm);
    use_numbered<5>(comm);
    int value = 0;
    last_called = -1;
    MPI_Send(&value, 1, MPI_INT, 99, 0, first);
    check_equal(last_called, 3, "a handler that was freed long ago");
    goes_on(comm, "after many handlers");
    MPI_Comm kept = first;
    MPI_Comm_free(&kept);
    MPI_Comm_free(&comm);
}

// ---- the usual body -----------------------------------------------------------------------------

void aborts(MPI_Comm* comm, int* code, ...) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(*code, text, &length);
    std::fprintf(stderr, "handler: %.*s\n", length, text);
    MPI_Abort(*comm, 42);
}

void abort_in_handler() {
    const MPI_Comm comm = with_handler(aborts);
    int value = 0;
    MPI_Barrier(comm);
    if (world.rank == world.size - 1) MPI_Send(&value, 1, MPI_INT, 99, 0, comm);
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, MPI_STATUS_IGNORE);
}

// The names of MPI 1; MPICH makes the new calls in them. The standard ABI lacks them.
#if defined(MPICH_NUMVERSION)
int old_calls = 0;
void old_function(MPI_Comm*, int*, ...) { ++old_calls; }
void old_names() {
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Errhandler_create(old_function, &handler);
    MPI_Errhandler_set(comm, handler);
    for (int i = 1; i <= 3; ++i) {
        MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
        check_equal(old_calls, i, "calls of a handler made by MPI_Errhandler_create");
    }
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
}
#else
void old_names() {}
#endif

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    if (world.argument == "calls") call_in_handlers();
    if (world.argument == "jumps") jump_out_of_handlers();
    if (world.argument == "throws") throw_from_handlers();
    if (world.argument == "objects") {
        window_handler();
        file_handler();
        old_names();
    }
    if (world.argument == "many") many_handlers();
    if (world.argument == "abort") abort_in_handler();
    return end();
}
