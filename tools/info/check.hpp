// SPDX-License-Identifier: BSD-3-Clause
// vecmpi-info --check: would vecmpi serve this program, what of it, and what should the user do?
// All but check_program() is pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "library_traits.hpp"
#include "mpi_libraries.hpp"
#include "program_file.hpp"

namespace vecmpi::info {

// Exit statuses.
enum class Verdict : uint8_t {
    served = 0,
    not_served = 1,
    no_program = 2,
    unknown = 3  // loads MPI while it runs, if at all
};

struct CheckFacts {
    std::string name;  // as the user gave it
    ProgramFile program;
    std::vector<MpiLibrary> mpi;       // that it is linked with, in the loader's order
    std::vector<LibraryTrait> traits;  // of the first of them; empty: not asked
    std::string offload;               // whether a rank that is started like this has the thread
    bool is_on = true;                 // not VECMPI=off
};

struct Judgement {
    Verdict verdict;
    std::string sentence;  // goes on after the program's name and ": "
    std::string next;      // what to do
};
Judgement judge(const CheckFacts& facts);

// That the program is linked with it: libmpi.so.12, Cray's libmpi_gnu_91.so.12, libmpi.so.40 and
// their like.
bool is_mpi_library(const std::string& soname);
// One that is loaded beside MPI by programs for GPUs.
bool is_gpu_runtime(const std::string& soname);

std::string format_check(const CheckFacts& facts);
// The sentence, and in a second line the file of the MPI library, where there is one.
std::string format_brief_check(const CheckFacts& facts);

// Prints one of both; returns the exit status.
int check_program(const std::string& name, bool is_brief);

}  // namespace vecmpi::info
