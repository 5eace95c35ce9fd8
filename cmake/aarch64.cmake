# SPDX-License-Identifier: BSD-3-Clause
# Toolchain file: cross-compiles for 64-bit Arm with Debian's g++-aarch64-linux-gnu; programs run under qemu-user.
# Headers of libraries (Highway, Boost, MPICH's mpi.h) are taken from this machine: they are the same on both.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_ASM_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;/usr/aarch64-linux-gnu)
