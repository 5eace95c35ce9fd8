# SPDX-License-Identifier: BSD-3-Clause
"""Spack recipe (Spack 1.0 or later). scripts/release.sh fills in what stands between @ signs."""

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Vecmpi(CMakePackage):
    """libvecmpi.so is preloaded into an unmodified MPI program of the MPICH family and makes its communication faster:
    SIMD reductions, derived datatypes packed by plans, collectives as pipelined schedules and through the memory of a
    node, communication on a thread of its own."""

    url = "@URL@/vecmpi-@VERSION@.tar.gz"

    license("BSD-3-Clause")

    version("@VERSION@", sha256="@SHA256@")

    variant("tools", default=True, description="Build vecmpi-info, vecmpi-bench and vecmpi-tune")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("python@3.9:", type=("build", "run"))
    depends_on("highway@1.0.3:", type="build")
    depends_on("xxhash@0.8:", type="build")
    depends_on("boost@1.74:+context+pic", type="build")  # its static library goes into libvecmpi.so
    depends_on("numactl")
    depends_on("mpich@3.4:")

    conflicts("%gcc@:11", msg="vecmpi is written in C++20")

    def cmake_args(self):
        return [
            self.define("CMAKE_INSTALL_LIBDIR", "lib"),
            self.define("VECMPI_MPICC", self.spec["mpich"].prefix.bin.mpicc),
            self.define("VECMPI_TESTS", False),
            self.define_from_variant("VECMPI_TOOLS", "tools"),
        ]
