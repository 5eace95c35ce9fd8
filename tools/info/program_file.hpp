// SPDX-License-Identifier: BSD-3-Clause
// What the file of a program says of itself, and what the loader would load for it. Nothing of the
// program is run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vecmpi::info {

struct NeededLibrary {
    std::string soname;
    std::string path;                 // empty: the loader does not find it
    std::vector<std::string> needed;  // sonames
};

struct ProgramFile {
    enum class Kind : uint8_t {
        missing,        // no such file, or none in PATH
        unreadable,     // a folder, a device, no permission
        unknown,        // no ELF file and no script
        other_machine,  // an ELF file of another processor, of 32 bits, or without glibc's loader
        linked_statically,
        linked_dynamically,
        library  // a shared library, such as a module of Python
    } kind = Kind::missing;
    std::string path;         // of the ELF file; of a script that is its interpreter's
    std::string script;       // that was asked for; empty: none
    bool is_secure = false;   // setuid or setgid to another one, or file capabilities: no preloads
    bool loads_more = false;  // it, or a library that is no part of glibc, loads or starts others
    bool has_sessions = false, has_init = false;  // calls that it or its libraries import
    std::vector<std::string> needed;              // sonames
    std::vector<NeededLibrary> libraries;         // in the loader's order
};

// program: a path, or a name that is looked for in PATH.
ProgramFile look_at_program(const std::string& program);

}  // namespace vecmpi::info
