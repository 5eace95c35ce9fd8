# SPDX-License-Identifier: BSD-3-Clause
"""Spack recipe: put this folder into a repository of recipes as packages/vecmpi."""

from spack.package import *


class Vecmpi(CMakePackage):
    """libvecmpi.so is preloaded into an unmodified MPI program of the MPICH family and makes its communication faster:
    SIMD reductions, derived datatypes packed by plans, collectives as pipelined schedules and through the memory of a
    node, communication on a thread of its own."""

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("tools", default=True, description="Build vecmpi-info, vecmpi-bench and the examples")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("python@3.9:", type=("build", "run"))
    depends_on("boost+context")
    depends_on("highway@1.0.3:")
    depends_on("numactl")
    depends_on("mpich@3.4:")

    def cmake_args(self):
        return [
            self.define("VECMPI_MPICC", self.spec["mpich"].prefix.bin.mpicc),
            self.define("VECMPI_TESTS", False),
            self.define_from_variant("VECMPI_TOOLS", "tools"),
        ]
