// SPDX-License-Identifier: BSD-3-Clause
// Error handlers that leave a collective by longjmp: more of them than vecmpi can stand before, so
// they are called in the middle of the library's call. The ranks that had no error go on.
#include <array>
#include <csetjmp>
#include <cstring>
#include <vector>

#include "battery.hpp"

using namespace battery;

namespace {

std::jmp_buf back;

template <int number>
void leave(MPI_Comm*, int*, ...) {
    std::longjmp(back, 1);
}

constexpr int handlers = 140;
using Handler = void(MPI_Comm*, int*, ...);
template <int... number>
constexpr std::array<Handler*, sizeof...(number)> make(std::integer_sequence<int, number...>) {
    return {leave<number>...};
}

// True where the call was left.
bool bcast(std::vector<int>& data, int count) {
    if (setjmp(back) != 0) return true;
    MPI_Bcast(data.data(), count, MPI_INT, 0, MPI_COMM_WORLD);
    return false;
}

// Intel MPI's own MPI_Bcast says nothing of data that are cut off; ours gives the standard's error.
bool reports_truncation() {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    return std::strstr(version, "Intel") == nullptr;
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Errhandler last = MPI_ERRHANDLER_NULL;
    for (Handler* handler : make(std::make_integer_sequence<int, handlers>()))
        MPI_Comm_create_errhandler(handler, &last);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, last);
    constexpr int count = 100, too_few = 90, calls = 2500;
    int left = 0;
    for (int i = 0; i < calls; ++i) {
        const bool is_wrong = i % 37 == 36 && world.rank == world.size - 1;
        std::vector<int> data(count, -1);
        if (world.rank == 0)
            for (int k = 0; k < count; ++k) data[static_cast<size_t>(k)] = 3 * i + k;
        if (bcast(data, is_wrong ? too_few : count))
            ++left;
        else if (!is_wrong)
            check_equal(data[count - 1], 3 * i + count - 1, "last element of a Bcast");
        int sum = -1;
        if (i % 10 == 0) {
            MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            check_equal(sum, i * world.size, "sum of equal values");
        }
    }
    if (reports_truncation()) topic("calls left").add(static_cast<uint64_t>(left));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return end();
}
