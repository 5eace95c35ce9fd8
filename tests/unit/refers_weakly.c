/* SPDX-License-Identifier: BSD-3-Clause
 * Weak references to two functions of whoever loads this, in code and in data. */
extern int vecmpi_test_one(void) __attribute__((weak));
extern int vecmpi_test_other(void) __attribute__((weak));

static int (*const volatile in_data[])(void) = {vecmpi_test_one, vecmpi_test_other};

int vecmpi_test_finds(int which);
int vecmpi_test_finds(int which) {
    int (*volatile const in_code[])(void) = {vecmpi_test_one, vecmpi_test_other};
    return (in_code[which] != 0) + (in_data[which] != 0);
}
