// SPDX-License-Identifier: BSD-3-Clause
// Counters as performance variables of the MPI tool information interface (MPI 4.0, 15.3.7), among
// the library's, and the interface's begin and end. Callable before MPI_Init and after
// MPI_Finalize.
#include <dlfcn.h>

#include <mutex>
#include <string>

#include "intercept/mpi_handlers.hpp"
#include "tool_kinds.hpp"

namespace vecmpi::intercept {

constinit std::atomic<int> tools_initialised{0};

namespace {

constexpr int number_of_our_counters = static_cast<int>(Counter::number_of_counters);

const CounterText& counter(int number) noexcept { return text_of(static_cast<Counter>(number)); }

// ---- handles ------------------------------------------------------------------------------------

struct CounterHandle {
    MPI_T_pvar_session session;  // null: free
    Counter counter;
    CounterView view;
};
// Zero pages until tools come. A handle is told from the library's by its address.
constexpr size_t most_handles = 1024;
constinit CounterHandle pvar_handles[most_handles] = {};
constinit std::mutex handles_lock;  // of all of them

bool is_ours(MPI_T_pvar_handle handle) noexcept {
    return reinterpret_cast<uintptr_t>(handle) - reinterpret_cast<uintptr_t>(pvar_handles) <
           sizeof pvar_handles;
}

void start(CounterHandle& handle) noexcept {
    if (handle.view.runs()) return;
    count_for_tools(true);
    handle.view.start(counted_for_tools(handle.counter));
}

void stop(CounterHandle& handle) noexcept {
    if (!handle.view.runs()) return;
    handle.view.stop(counted_for_tools(handle.counter));
    count_for_tools(false);
}

void reset(CounterHandle& handle) noexcept {
    handle.view.write(0, counted_for_tools(handle.counter));
}

void release(CounterHandle& handle) noexcept {
    stop(handle);
    handle = {};
}

// The caller holds handles_lock.
template <class Work>
void for_all_of(MPI_T_pvar_session session, Work work) noexcept {
    for (CounterHandle& handle : pvar_handles)
        if (handle.session != nullptr && (session == nullptr || handle.session == session))
            work(handle);
}

// work(handle) where it is one of ours and of this session. The session is of the library's, which
// alone could tell a bad one.
template <class Work>
int with_handle(MPI_T_pvar_session session, MPI_T_pvar_handle handle, Work work) noexcept {
    ToolIndices unused{};
    const int rc = find_indices(tool_pvars, &unused);
    if (rc != MPI_SUCCESS) return rc;
    if (session == MPI_T_PVAR_SESSION_NULL) return MPI_T_ERR_INVALID_SESSION;
    const auto offset =
        reinterpret_cast<uintptr_t>(handle) - reinterpret_cast<uintptr_t>(pvar_handles);
    if (offset % sizeof(CounterHandle) != 0) return MPI_T_ERR_INVALID_HANDLE;
    CounterHandle& ours = pvar_handles[offset / sizeof(CounterHandle)];
    const std::lock_guard lock(handles_lock);
    if (ours.session != session) return MPI_T_ERR_INVALID_HANDLE;
    work(ours);
    return MPI_SUCCESS;
}

int allocate_handle(MPI_T_pvar_session session, int number, MPI_T_pvar_handle* handle,
                    int* count) noexcept {
    if (session == MPI_T_PVAR_SESSION_NULL) return MPI_T_ERR_INVALID_SESSION;
    if (handle == nullptr) return MPI_T_ERR_INVALID;
    const std::lock_guard lock(handles_lock);
    for (CounterHandle& free : pvar_handles) {
        if (free.session != nullptr) continue;
        free = {session, static_cast<Counter>(number), {}};
        *handle = reinterpret_cast<MPI_T_pvar_handle>(&free);
        give(1, count);
        return MPI_SUCCESS;
    }
    return MPI_T_ERR_OUT_OF_HANDLES;
}

// Outside the standard ABI the library's constant is a variable of its own: nothing here may refer
// to it by name, since this library must load where there is no MPI.
bool means_all(MPI_T_pvar_handle handle) noexcept {
#if defined(VECMPI_STANDARD_ABI)
    return handle == MPI_T_PVAR_ALL_HANDLES;
#else
    const void* all = dlsym(library::bind_real_functions().handle, "MPI_T_PVAR_ALL_HANDLES");
    return all != nullptr && handle == *static_cast<const MPI_T_pvar_handle*>(all);
#endif
}

// Start, stop and reset: of one handle, or of all in a session, ours and the library's.
template <class Library>
int change(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
           void (*work)(CounterHandle& handle) noexcept, Library library) noexcept {
    if (is_ours(handle)) return with_handle(session, handle, work);
    const int rc = library(session, handle);
    if (session != MPI_T_PVAR_SESSION_NULL && means_all(handle)) {
        const std::lock_guard lock(handles_lock);
        for_all_of(session, work);
    }
    return rc;
}

}  // namespace

constinit ToolKind tool_pvars{&library::RealFunctions::T_pvar_get_num, number_of_our_counters, {}};

// ---- performance variables (MPI 4.0, 15.3.7) ----------------------------------------------------

int serve_T_pvar_get_num(int* num_pvar) noexcept { return get_number(tool_pvars, num_pvar); }

int serve_T_pvar_get_info(int pvar_index, char* name, int* name_len, int* verbosity, int* var_class,
                          MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len,
                          int* bind, int* readonly, int* continuous, int* atomic) noexcept {
    return by_index(
        tool_pvars, pvar_index,
        [=](int number) noexcept {
            const bool declines = counter(number).kind == CounterKind::decline;
            give_name(counter(number).name, name, name_len);
            give_text(std::string(declines ? "declined: " : "") + counter(number).text, desc,
                      desc_len);
            give<int>(MPI_T_VERBOSITY_USER_DETAIL, verbosity);
            give<int>(MPI_T_PVAR_CLASS_COUNTER, var_class);
            give<MPI_Datatype>(MPI_UNSIGNED_LONG_LONG, datatype);
            give<MPI_T_enum>(MPI_T_ENUM_NULL, enumtype);
            give<int>(MPI_T_BIND_NO_OBJECT, bind);
            give(0, readonly);
            give(0, continuous);
            give(1, atomic);
            return MPI_SUCCESS;
        },
        [=](int index) noexcept {
            return real.T_pvar_get_info(index, name, name_len, verbosity, var_class, datatype,
                                        enumtype, desc, desc_len, bind, readonly, continuous,
                                        atomic);
        });
}

int serve_T_pvar_get_index(const char* name, int var_class, int* pvar_index) noexcept {
    return index_of(
        tool_pvars, name, pvar_index,
        [=](std::string_view wanted) {
            if (var_class != MPI_T_PVAR_CLASS_COUNTER) return -1;
            return number_named(wanted, number_of_our_counters,
                                [](int number) { return counter(number).name; });
        },
        [=]() noexcept { return real.T_pvar_get_index(name, var_class, pvar_index); });
}

int serve_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void* obj_handle,
                              MPI_T_pvar_handle* handle, int* count) noexcept {
    return by_index(
        tool_pvars, pvar_index,
        [=](int number) noexcept { return allocate_handle(session, number, handle, count); },
        [=](int index) noexcept {
            return real.T_pvar_handle_alloc(session, index, obj_handle, handle, count);
        });
}

int serve_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) noexcept {
    if (handle == nullptr || !is_ours(*handle)) return real.T_pvar_handle_free(session, handle);
    const int rc = with_handle(session, *handle, release);
    if (rc == MPI_SUCCESS) *handle = MPI_T_PVAR_HANDLE_NULL;
    return rc;
}

// The library first: it knows whether the session is one. Under the lock: another thread's next
// session may get the address as soon as it is free, and must not get handles before ours are gone.
int serve_T_pvar_session_free(MPI_T_pvar_session* session) noexcept {
    const std::lock_guard lock(handles_lock);
    const MPI_T_pvar_session freed = session != nullptr ? *session : MPI_T_PVAR_SESSION_NULL;
    const int rc = real.T_pvar_session_free(session);
    if (rc == MPI_SUCCESS && freed != MPI_T_PVAR_SESSION_NULL) for_all_of(freed, release);
    return rc;
}

int serve_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) noexcept {
    return change(session, handle, start, real.T_pvar_start);
}

int serve_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) noexcept {
    return change(session, handle, stop, real.T_pvar_stop);
}

int serve_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) noexcept {
    return change(session, handle, reset, real.T_pvar_reset);
}

int serve_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) noexcept {
    if (!is_ours(handle)) return real.T_pvar_read(session, handle, buf);
    if (buf == nullptr) return MPI_T_ERR_INVALID;
    return with_handle(session, handle, [=](const CounterHandle& ours) noexcept {
        *static_cast<unsigned long long*>(buf) = ours.view.read(counted_for_tools(ours.counter));
    });
}

int serve_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                           void* buf) noexcept {
    if (!is_ours(handle)) return real.T_pvar_readreset(session, handle, buf);
    if (buf == nullptr) return MPI_T_ERR_INVALID;
    return with_handle(session, handle, [=](CounterHandle& ours) noexcept {
        const uint64_t now = counted_for_tools(ours.counter);
        *static_cast<unsigned long long*>(buf) = ours.view.read(now);
        ours.view.write(0, now);
    });
}

int serve_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                       const void* buf) noexcept {
    if (!is_ours(handle)) return real.T_pvar_write(session, handle, buf);
    if (buf == nullptr) return MPI_T_ERR_INVALID;
    return with_handle(session, handle, [=](CounterHandle& ours) noexcept {
        ours.view.write(*static_cast<const unsigned long long*>(buf),
                        counted_for_tools(ours.counter));
    });
}

// ---- begin and end (MPI 4.0, 15.3.4) ------------------------------------------------------------

int serve_T_init_thread(int required, int* provided) noexcept {
    const std::lock_guard lock(handles_lock);  // not while the last T_finalize drops handles
    const int rc = real.T_init_thread(required, provided);
    if (rc == MPI_SUCCESS) tools_initialised.fetch_add(1, std::memory_order_relaxed);
    return rc;
}

// With the last one the handles end too.
int serve_T_finalize() noexcept {
    const std::lock_guard lock(handles_lock);
    if (tools_initialised.load(std::memory_order_relaxed) == 0) return MPI_T_ERR_NOT_INITIALIZED;
    const int rc = real.T_finalize();
    if (rc == MPI_SUCCESS && tools_initialised.fetch_sub(1, std::memory_order_relaxed) == 1)
        for_all_of(MPI_T_PVAR_SESSION_NULL, release);
    return rc;
}

}  // namespace vecmpi::intercept
