// SPDX-License-Identifier: BSD-3-Clause
// Settings as control variables of the MPI tool information interface (MPI 4.0, 15.3.6), among the
// library's. Callable before MPI_Init and after MPI_Finalize.
#include <string>

#include "intercept/mpi_handlers.hpp"
#include "tool_kinds.hpp"

namespace vecmpi::intercept {

namespace {

#define VECMPI_SETTING(...) +1  // NOLINT(bugprone-macro-parentheses): a row of a sum
constexpr int number_of_settings = 0
#include "base/api/settings.def"
    ;
#undef VECMPI_SETTING

const SettingText& setting(int number) { return setting_texts()[static_cast<size_t>(number)]; }

// As it was when the process began, or the default where there was no memory to keep it.
std::string_view value_of_setting(int number) {
    const std::vector<std::string>& values = process_settings().values;
    const auto i = static_cast<size_t>(number);
    return i < values.size() ? std::string_view(values[i]) : setting(number).default_value;
}

// The address of one of these is the handle of that setting: there is nothing to keep.
constinit char cvar_handles[number_of_settings] = {};

// -1: the library's.
int setting_of(MPI_T_cvar_handle handle) noexcept {
    const auto offset =
        reinterpret_cast<uintptr_t>(handle) - reinterpret_cast<uintptr_t>(cvar_handles);
    return offset < sizeof cvar_handles ? static_cast<int>(offset) : -1;
}

}  // namespace

constinit ToolKind tool_cvars{&library::RealFunctions::T_cvar_get_num, number_of_settings, {}};

int serve_T_cvar_get_num(int* num_cvar) noexcept { return get_number(tool_cvars, num_cvar); }

int serve_T_cvar_get_info(int cvar_index, char* name, int* name_len, int* verbosity,
                          MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len,
                          int* bind, int* scope) noexcept {
    return by_index(
        tool_cvars, cvar_index,
        [=](int number) noexcept {
            give_name(setting(number).field, name, name_len);
            give_text(setting(number).text, desc, desc_len);
            give<int>(MPI_T_VERBOSITY_USER_BASIC, verbosity);
            give<MPI_Datatype>(MPI_CHAR, datatype);
            give<MPI_T_enum>(MPI_T_ENUM_NULL, enumtype);
            give<int>(MPI_T_BIND_NO_OBJECT, bind);
            give<int>(MPI_T_SCOPE_CONSTANT, scope);
            return MPI_SUCCESS;
        },
        [=](int index) noexcept {
            return real.T_cvar_get_info(index, name, name_len, verbosity, datatype, enumtype, desc,
                                        desc_len, bind, scope);
        });
}

int serve_T_cvar_get_index(const char* name, int* cvar_index) noexcept {
    return index_of(
        tool_cvars, name, cvar_index,
        [](std::string_view wanted) {
            return number_named(wanted, number_of_settings,
                                [](int number) { return setting(number).field; });
        },
        [=]() noexcept { return real.T_cvar_get_index(name, cvar_index); });
}

int serve_T_cvar_handle_alloc(int cvar_index, void* obj_handle, MPI_T_cvar_handle* handle,
                              int* count) noexcept {
    return by_index(
        tool_cvars, cvar_index,
        [=](int number) noexcept {
            if (handle == nullptr) return MPI_T_ERR_INVALID;
            *handle = reinterpret_cast<MPI_T_cvar_handle>(&cvar_handles[number]);
            give(static_cast<int>(value_of_setting(number).size()) + 1, count);
            return MPI_SUCCESS;
        },
        [=](int index) noexcept {
            return real.T_cvar_handle_alloc(index, obj_handle, handle, count);
        });
}

int serve_T_cvar_handle_free(MPI_T_cvar_handle* handle) noexcept {
    if (handle == nullptr || setting_of(*handle) < 0) return real.T_cvar_handle_free(handle);
    ToolIndices unused{};
    const int rc = find_indices(tool_cvars, &unused);
    if (rc == MPI_SUCCESS) *handle = MPI_T_CVAR_HANDLE_NULL;
    return rc;
}

int serve_T_cvar_read(MPI_T_cvar_handle handle, void* buf) noexcept {
    const int number = setting_of(handle);
    if (number < 0) return real.T_cvar_read(handle, buf);
    ToolIndices unused{};
    const int rc = find_indices(tool_cvars, &unused);
    if (rc != MPI_SUCCESS) return rc;
    if (buf == nullptr) return MPI_T_ERR_INVALID;
    const std::string_view value = value_of_setting(number);
    std::memcpy(buf, value.data(), value.size());
    static_cast<char*>(buf)[value.size()] = '\0';
    return MPI_SUCCESS;
}

int serve_T_cvar_write(MPI_T_cvar_handle handle, const void* buf) noexcept {
    if (setting_of(handle) < 0) return real.T_cvar_write(handle, buf);
    ToolIndices unused{};
    const int rc = find_indices(tool_cvars, &unused);
    return rc != MPI_SUCCESS ? rc : MPI_T_ERR_CVAR_SET_NEVER;
}

}  // namespace vecmpi::intercept
