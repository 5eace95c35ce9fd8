/* SPDX-License-Identifier: BSD-3-Clause
 * One import, called through the procedure linkage table or without it: see CMakeLists.txt. */
#define _DEFAULT_SOURCE
#include <unistd.h>

int vecmpi_test_page_size(void);
int vecmpi_test_page_size(void) { return getpagesize(); }
