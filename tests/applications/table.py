# SPDX-License-Identifier: BSD-3-Clause
"""The programs: where each comes from, how it is built and run, which times it prints, and how it is known to be right.

A row for each. Runs nothing. In commands $SOURCE is the folder of the program's source, $HERE this folder, $CACHE the
cache of scripts/clients.sh, $RANKS the number of ranks.
"""
from __future__ import annotations

import dataclasses
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))

import compare  # noqa: E402
import mumps_grid  # noqa: E402
import programs as clients  # noqa: E402
from judgement import Figure, as_plain, at_most, contains, found, lacks, losses_as_plain  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Build:
    """What has to be there before a program can run."""

    product: str  # the file that shows that it was built; * stands for any name
    package: str = ""  # Debian's source package, name=version
    original: bool = False  # without Debian's patches
    own: str = ""  # a source file of this folder; newer than the product: it is built again
    client: str = ""  # the name of a client that scripts/clients.sh builds
    commands: str = ""  # for bash, in the folder of the source


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    what: str
    build: str  # a name of BUILDS
    command: tuple[str, ...]
    figures: tuple[Figure, ...]
    checks: tuple  # of judgement.py
    sizes: dict  # its own variables of the command: normal, with more ranks than CPUs, and with --quick
    files: object = None  # (sizes, ranks) -> {name: text}, in the folder where it runs
    output: str = ""  # the file that it prints into, where that is not the standard output
    environment: dict = dataclasses.field(default_factory=dict)


CLIENT_PYTHON = "$CACHE/venv/bin/python"

BUILDS = {
    "mpi4py": Build("$CACHE/venv/lib/python3*/site-packages/mpi4py", client="mpi4py"),
    "horovod": Build("$CACHE/venv/bin/horovodrun", client="horovod"),
    "lammps": Build("$CACHE/lammps/src/lmp_mpi", client="cxx"),
    "mumps": Build("$CACHE/mumps/examples/dsimpletest", client="fortran"),
    "fftw": Build(
        "$SOURCE/mpi/vecmpi-bench",
        package="fftw3=3.3.10-1",
        # The serial library is Debian's; of the source only its MPI part and its benchmark are compiled.
        commands="""
            ./configure --enable-mpi --disable-fortran --disable-doc --enable-sse2 --enable-avx MPICC=mpicc.mpich
            make -j2 -C libbench2
            mpicc.mpich -O2 -DHAVE_CONFIG_H -I. -Ikernel -Iapi -Idft -Irdft -Ilibbench2 -Itests -o mpi/vecmpi-bench \
                $(ls mpi/*.c | grep -vE 'testsched|f03-wrap') tests/fftw-bench.c tests/hook.c libbench2/libbench2.a \
                -lfftw3 -lm
        """,
    ),
    "scalapack": Build(
        "$SOURCE/scalapack_solve",
        own="scalapack_solve.c",
        commands="""
            mpicc.mpich -O2 -Wall -o scalapack_solve $HERE/scalapack_solve.c -lscalapack-mpich -llapack -lblas -lm
        """,
    ),
    "hpcc": Build(
        "$SOURCE/hpcc",
        package="hpcc=1.5.0-3",
        original=True,
        commands="""
            cp hpl/setup/Make.Linux_ATHLON_FBLAS hpl/Make.vecmpi
            make arch=vecmpi CC=mpicc.mpich LINKER=mpicc.mpich MPinc= MPlib= LAlib=-lblas RANLIB=true \
                CCFLAGS='$(HPL_DEFS) -O3 -w' LINKFLAGS=-O3
        """,
    ),
    "hypre": Build(
        "$SOURCE/src/test/ij",
        package="hypre=2.26.0-3",
        commands="""
            cd src
            [[ -f config/Makefile.config ]] ||
                ./configure --with-MPI --disable-fortran CC=mpicc.mpich CXX=mpicxx.mpich CFLAGS=-O2 CXXFLAGS=-O2
            make -j2
            make -C test ij
        """,
    ),
    "hdf5": Build(
        "$SOURCE/tools/src/h5perf/h5perf",
        package="hdf5=1.10.8+repack1-1",
        # The library is Debian's, with MPI-IO of MPICH.
        commands="""
            cd tools/src/h5perf
            h5pcc.mpich -O2 -w -DSTANDALONE -I. -I../../test/perform -I../../lib -o h5perf pio_perf.c \
                pio_engine.c ../../test/perform/pio_standalone.c ../../lib/io_timer.c -I../../../src
        """,
    ),
}


def hpcc_input(sizes: dict, ranks: int) -> dict[str, str]:
    columns = next(q for q in range(1, ranks + 1) if ranks % q == 0 and q * q >= ranks)
    n, grid = sizes["N"], f"{ranks // columns}\n{columns}"
    values = ("HPL.out", 6, 1, n, 1, 96, 0, 1, *grid.split(), "16.0")
    values += (1, 2, 1, 4, 1, 2, 1, 1, 1, 1, 1, 0, 2, 64, 0, 0, 1, 8)  # as HPCC's own example, but for broadcasts
    transposed = ("", 0, "1200", 0, "40")
    text = "\n".join(map(str, ("input", "of HPCC", *values, *transposed)))
    return {"hpccinf.txt": text + "\n"}


def mumps_input(sizes: dict, ranks: int) -> dict[str, str]:
    return {"stdin": "\n".join(mumps_grid.lines(int(sizes["N"]))) + "\n"}


def mumps_solution(text: str, plain: str) -> str:
    """The solution is known, whatever the number of unknowns."""
    taken = found(clients.MUMPS_SOLUTION)(text).split()[2:]
    wrong = next((i for i, word in enumerate(taken) if abs(float(word) - mumps_grid.solution(i)) > 1e-6), None)
    if not taken:
        return "it prints no solution"
    return "" if wrong is None else f"unknown {wrong} is {taken[wrong]}, not {mumps_grid.solution(wrong)}"


def lammps_input(names: tuple[str, ...]):
    def files(sizes: dict, ranks: int) -> dict[str, str]:
        folder = pathlib.Path(sizes["CACHE"]) / "lammps" / "bench"
        return {name: (folder / name).read_text() for name in names}

    return files


def lammps(name: str, what: str, files: tuple[str, ...], sizes: dict) -> Program:
    """The first file is the input; x, y and z repeat its atoms."""
    repeated = ("-var", "x", "$X", "-var", "y", "$X", "-var", "z", "1")
    return Program(
        f"lammps-{name}",
        what,
        "lammps",
        ("$CACHE/lammps/src/lmp_mpi", "-in", files[0], "-log", "none", *repeated),
        (Figure("loop", r"^Loop time of ([\d.e+-]+) on"),),
        (as_plain(lambda text: compare.mask(text, clients.LAMMPS_TIMES)),),
        sizes,
        lammps_input(files),
    )


def training(model: str, what: str, sizes: dict, *options: str) -> Program:
    """Horovod fuses gradients as time has it: three ranks or more add them in another order in each run."""
    script = str(HERE.parent / "clients" / "horovod_training.py")
    options += ("--steps", "$STEPS", "--learning-rate", "0.001")
    return Program(
        f"horovod-{model}",
        what,
        "horovod",
        (CLIENT_PYTHON, script, "--model", model, *options),
        (Figure("step", r"^result step_s ([\d.]+)$"),),
        (contains("^check passed$"), losses_as_plain(1e-5)),
        sizes,
    )


PROGRAMS = (
    Program(
        "jacobi",
        "mpi4py: Jacobi's method, halos of a block, an Allreduce a step",
        "mpi4py",
        (CLIENT_PYTHON, "$HERE/jacobi.py", "$N", "$STEPS"),
        (Figure("solve", r"^time ([\d.]+) s$"),),
        (contains("^check passed$"), as_plain(found(r"^result .*"))),
        {"N": (1500, 1000, 200), "STEPS": (300, 150, 50)},
    ),
    Program(
        "alltoall",
        "mpi4py: Fourier transforms by rows, Alltoall of numpy arrays",
        "mpi4py",
        (CLIENT_PYTHON, "$HERE/alltoall.py", "$N", "$STEPS", "$CALLS"),
        (Figure("transforms", r"^time of transforms ([\d.]+) s$"), Figure("counts", r"^time of counts ([\d.]+) s$")),
        (contains("^check passed$"),),
        {"N": (1024, 1024, 256), "STEPS": (20, 4, 1), "CALLS": (50000, 500, 200)},
    ),
    training(
        "resnet50",
        "Horovod 0.28 with PyTorch: ResNet-50, 2 pictures of 64 x 64 a rank",
        {"STEPS": (6, 4, 1)},
        *("--batch", "2", "--pixels", "64", "--warm-up", "1"),
    ),
    training(
        "transformer",
        "Horovod 0.28 with PyTorch: a transformer of 3.7 million parameters, 4 texts of 64 tokens a rank",
        {"STEPS": (20, 12, 2)},
    ),
    Program(
        "fftw",
        "FFTW 3.3.10's MPI benchmark: a complex transform in three dimensions, and its own check",
        "fftw",
        ("$SOURCE/mpi/vecmpi-bench", "-oestimate", "--time-min=0.1", "--verbose=1", "--verify", "$CHECKED",
         "--speed", "$N"),
        (Figure("transform", r"^Problem: \S+ setup: .* time: ([\d.]+) (s|ms|us|ns),"),),
        (at_most(r"^[\dx]+ ([\d.e+-]+) ([\d.e+-]+) ([\d.e+-]+)", 1e-10),),
        {"N": ("128x128x128", "32x32x32", "32x32x32"), "CHECKED": ("32x32x32", "16x16x16", "16x16x16")},
    ),
    Program(
        "scalapack",
        "ScaLAPACK 2.2: a linear system by LU and the eigenvalues of a symmetric matrix",
        "scalapack",
        ("$SOURCE/scalapack_solve", "$N", "$EIGEN"),
        (Figure("LU", r"^time of LU ([\d.]+) s$"), Figure("eigenvalues", r"^time of eigenvalues ([\d.]+) s$")),
        (contains("^check passed$"),),
        {"N": (4000, 500, 400), "EIGEN": (800, 50, 50)},
    ),
    Program(
        "hpcc",
        "HPC Challenge 1.5: HPL, PTRANS, RandomAccess, FFT",
        "hpcc",
        ("$SOURCE/hpcc",),
        (
            Figure("HPL", r"^HPL_time=([\d.e+-]+)$"),
            Figure("PTRANS", r"^PTRANS_GBs=([\d.e+-]+)$", is_rate=True),
            Figure("RandomAccess", r"^MPIRandomAccess_GUPs=([\d.e+-]+)$", is_rate=True),
            Figure("FFT", r"^MPIFFT_Gflops=([\d.e+-]+)$", is_rate=True),
        ),
        (
            contains(r"^Success=1$", r"^HPL_Tflops=", r"^.*1 tests completed and passed residual checks"),
            at_most(r"^PTRANS_residual=([\d.e+-]+)$", 16),
            at_most(r"^MPIRandomAccess_ErrorsFraction=([\d.e+-]+)$", 0.01),
            at_most(r"^MPIFFT_maxErr=([\d.e+-]+)$", 1e-10),
        ),
        {"N": (4000, 300, 300)},
        hpcc_input,
        "hpccoutf.txt",
    ),
    lammps("lj", "LAMMPS' benchmark of a Lennard-Jones liquid", ("in.lj",), {"X": (2, 1, 1)}),
    lammps("chain", "LAMMPS' benchmark of bead-spring chains", ("in.chain.scaled", "data.chain"), {"X": (2, 1, 1)}),
    Program(
        "mumps",
        "MUMPS 5.5.1: a sparse system of a three-dimensional grid",
        "mumps",
        ("sh", "-c", 'exec "$@" <stdin', "sh", "$CACHE/mumps/examples/dsimpletest"),
        (Figure("factorization", r"(?i)^ *elapsed time in factorization driver *= *([\d.]+)"),),
        (mumps_solution,),
        {"N": (32, 20, 12)},
        mumps_input,
        environment={"LD_LIBRARY_PATH": "$CACHE/mumps/lib"},
    ),
    Program(
        "hypre",
        "hypre 2.26: conjugate gradients with algebraic multigrid (its driver ij)",
        "hypre",
        ("$SOURCE/src/test/ij", "-n", "$N", "$N", "$N", "-solver", "1", "-tol", "1e-8"),
        (
            Figure("setup", r"^ *PCG Setup:\s+wall clock time = ([\d.]+) seconds"),
            Figure("solve", r"^ *PCG Solve:\s+wall clock time = ([\d.]+) seconds"),
        ),
        (at_most(r"^Final Relative Residual Norm = ([\d.e+-]+)", 1e-8), contains(r"^Iterations = [1-9]")),
        {"N": (80, 40, 20)},
    ),
    Program(
        "hdf5",
        "HDF5 1.10.8's h5perf: MPI-IO and parallel HDF5, interleaved and collective, verified",
        "hdf5",
        ("$SOURCE/tools/src/h5perf/h5perf", "-A", "mpiio,phdf5", "-C", "-I", "-D", "v", "-e", "$EACH",
         "-x", "$BUFFER", "-X", "$BUFFER", "-B", "4K", "-i", "3", "-p", "$RANKS", "-P", "$RANKS"),
        (
            Figure("write", r"Write \(.*\n.*Maximum Throughput: *([\d.]+) MB/s", is_rate=True),
            Figure("read", r"Read \(.*\n.*Maximum Throughput: *([\d.]+) MB/s", is_rate=True),
        ),
        (lacks(r"read data error|[Ff]ailed"), contains(r"IO API = MPIO", r"IO API = PHDF5")),
        {"EACH": ("64M", "2M", "2M"), "BUFFER": ("2M", "256K", "256K")},
    ),
)  # fmt: skip
