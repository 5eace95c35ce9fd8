#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks x86-64 objects: instructions that not every CPU has occur only in the code that is chosen at run time.

    check_vector_code.py FILE...     objects, archives or libraries with symbols; prints one line a violation
    check_vector_code.py --selftest  shows that each rule bites (needs a C++ compiler: $CXX or c++)

A function belongs to an instruction set by its namespace, vecmpi::kernels::N_AVX2 or hwy::N_AVX2. Such a function must
be a local symbol: the linker keeps one copy of a weak one and may give it to code that runs everywhere (this happened
to Open MPI, pull request 7419).
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SETS = ["baseline", "SSE4", "AVX2", "AVX3"]  # each includes those before it
BASELINE, SSE4, AVX2, AVX3 = range(4)

OWNER = re.compile(r"_Z+N[KVRO]*(?:6vecmpi7kernels|3hwy)6N_(SSE4|AVX2|AVX3)")
FUNCTION = re.compile(r"[0-9a-f]+ <(.+)>:$")
INSTRUCTION = re.compile(r"\s*[0-9a-f]+:\s+(.+)$")
PREFIXES = {"rep", "repz", "repnz", "lock", "data16", "cs", "ds", "es", "fs", "gs", "ss", "bnd", "notrack", "{vex}"}

# Virtualisation and segments: the only ones with a v that are not AVX.
NOT_AVX = re.compile(r"v(err|erw|m(call|launch|resume|xo|ptr|read|write|clear|func|run|load|save|mcall).*)$")
AVX512 = re.compile(r"%zmm|%[xy]mm(1[6-9]|2[0-9]|3[01])|%k[0-7]|\{evex\}")
# SSE3, SSSE3, SSE4 and POPCNT, which x86-64 does not promise.
SSE4_NAMES = re.compile(
    r"(add|h)sub?p[sd]|haddp[sd]|lddqu|mov(s[hl]|d)dup|pshufb|ph(add|sub)(w|d|sw)|pmaddubsw|pmulhrsw|psign[bwd]|pabs[bwd]"
    r"|palignr|pblend(w|vb)|blendv?p[sd]|dpp[sd]|extractps|insertps|movntdqa|mpsadbw|packusdw|pcmp(eq|gt)q|pextr[bdq]"
    r"|pinsr[bdq]|phminposuw|pm(ax|in)(sb|sd|ud|uw)|pmov[sz]x\w\w|pmuldq|pmulld|ptest|round[ps][sd]|pcmp[ei]str[im]"
    r"|crc32[bwlq]?|popcnt[wlq]?"
)


def needs(instruction):
    """The set that an instruction needs, as objdump writes it."""
    words = instruction.split()
    while words and words[0] in PREFIXES:
        words.pop(0)
    if not words:
        return BASELINE
    if AVX512.search(instruction):
        return AVX3
    name = words[0]
    if name.startswith("v") and not NOT_AVX.match(name):
        return AVX2
    return SSE4 if SSE4_NAMES.fullmatch(name) else BASELINE


def belongs_to(function):
    match = OWNER.match(function)
    return SETS.index(match[1]) if match else BASELINE


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def shared_functions(path):
    """Names of functions that other objects see."""
    names = set()
    for line in run("nm", str(path)).splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "TWVui":
            names.add(words[2])
    return names


def most_demanding(path):
    """For each function the set that it needs, and the first instruction that needs it."""
    found = {}
    function = "(no function)"
    for line in run("objdump", "-d", "--no-show-raw-insn", str(path)).splitlines():
        header = FUNCTION.match(line)
        if header:
            function = header[1]
            continue
        match = INSTRUCTION.match(line)
        if match is None:
            continue
        needed = needs(match[1])
        if needed > found.get(function, (BASELINE, ""))[0]:
            found[function] = (needed, " ".join(match[1].split()))
    return found


def check(path):
    if "x86-64" not in run("objdump", "-f", str(path)):
        raise SystemExit(f"{path}: not an x86-64 object")
    shared = shared_functions(path)
    for function, (needed, instruction) in sorted(most_demanding(path).items()):
        owner = belongs_to(function)
        if needed > owner:
            yield f"{path}: {function}: {SETS[needed]} instruction in {SETS[owner]} code: {instruction}"
        elif function in shared:
            yield f"{path}: {function}: {SETS[owner]} code that other objects may be linked to"


# ---- self-test -----------------------------------------------------------------------------------------

HEAD = "#include <immintrin.h>\n"
# what, source, a word of the complaint or None
CASES = [
    ("baseline code", "float add(float a, float b) { return a + b; }", None),
    (
        "local code of a target",
        """namespace vecmpi::kernels::N_AVX2 { namespace {
        __attribute__((target("avx2"), noinline)) void twice(float* p) {
            _mm256_storeu_ps(p, _mm256_add_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p))); } } }
        void (*const table[])(float*) = {vecmpi::kernels::N_AVX2::twice};
        void call(float* p) { table[0](p); }""",
        None,
    ),
    (
        "AVX in a function of its own",
        """__attribute__((target("avx2"))) void twice(float* p) {
            _mm256_storeu_ps(p, _mm256_add_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p))); }""",
        "AVX2 instruction in baseline code",
    ),
    (
        "one VEX instruction on 128 bits",
        """__attribute__((target("avx"))) void twice(float* p) {
            _mm_storeu_ps(p, _mm_add_ps(_mm_loadu_ps(p), _mm_loadu_ps(p))); }""",
        "AVX2 instruction in baseline code",
    ),
    (
        "a weak function of a target",
        """namespace vecmpi::kernels::N_AVX2 {
        template <class T> __attribute__((target("avx2"), noinline)) void twice(T* p) {
            _mm256_storeu_ps(p, _mm256_add_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p))); } }
        void call(float* p) { vecmpi::kernels::N_AVX2::twice(p); }""",
        "that other objects may be linked to",
    ),
    (
        "AVX-512 in AVX2 code",
        """namespace vecmpi::kernels::N_AVX2 { namespace {
        __attribute__((target("avx512f"), noinline)) void twice(float* p) {
            _mm512_storeu_ps(p, _mm512_add_ps(_mm512_loadu_ps(p), _mm512_loadu_ps(p))); } } }
        void call(float* p) { vecmpi::kernels::N_AVX2::twice(p); }""",
        "AVX3 instruction in AVX2 code",
    ),
    (
        "SSSE3 in baseline code",
        """__attribute__((target("ssse3"))) __m128i swap(__m128i a, __m128i b) {
            return _mm_shuffle_epi8(a, b); }""",
        "SSE4 instruction in baseline code",
    ),
]


def selftest():
    failures = 0
    compiler = os.environ.get("CXX", "c++").split()
    with tempfile.TemporaryDirectory() as folder:
        for number, (what, source, expected) in enumerate(CASES):
            text = Path(folder) / f"{number}.cpp"
            text.write_text(HEAD + source, encoding="utf-8")
            made = text.with_suffix(".o")
            run(*compiler, "-std=c++20", "-O2", "-w", "-c", str(text), "-o", str(made))
            problems = list(check(made))
            as_expected = len(problems) == 1 and expected in problems[0] if expected else not problems
            if not as_expected:
                failures += 1
                print(f"FAIL {what}: expected {expected}, found {problems}")
    print(f"selftest: {len(CASES) - failures} of {len(CASES)} cases")
    return failures


def main():
    if sys.argv[1:] == ["--selftest"]:
        sys.exit(1 if selftest() else 0)
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    problems = [problem for path in sys.argv[1:] for problem in check(path)]
    print("\n".join(problems) if problems else "vector instructions stay where they are chosen at run time.")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
