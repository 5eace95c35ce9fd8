#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the recipes for Spack and conda say, without either tool: they are no packages of Debian or PyPI.

    check_recipes.py spack PACKAGE.py VERSION CMAKE_CACHE   runs the recipe; its definitions must be CMake's options
    check_recipes.py conda META.yaml VERSION                renders the recipe for Linux; prints its test commands
"""

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace


class Problem(Exception):
    pass


def demand(holds, what):
    if not holds:
        raise Problem(what)


# ---- Spack: its directives are recorded -------------------------------------------------------------------


class Recipe:
    """Stands for CMakePackage: a definition becomes (name, value)."""

    def __init__(self):
        self.spec = {"mpich": SimpleNamespace(prefix=SimpleNamespace(bin=SimpleNamespace(mpicc="mpicc")))}

    def define(self, name, value):
        return name, value

    def define_from_variant(self, name, variant):
        demand(variant in DIRECTIVES["variant"], f"{variant}: no such variant")
        return name, variant


DIRECTIVES = {name: {} for name in ("license", "version", "variant", "depends_on", "conflicts")}


def recorder(directive):
    def record(what, **options):
        DIRECTIVES[directive][what] = options

    return record


def spack_modules():
    package = ModuleType("spack.package")
    for directive in DIRECTIVES:
        setattr(package, directive, recorder(directive))
    cmake = ModuleType("spack_repo.builtin.build_systems.cmake")
    cmake.CMakePackage = Recipe
    modules = {package.__name__: package, cmake.__name__: cmake}
    for name in list(modules):
        while name := name.rpartition(".")[0]:
            modules.setdefault(name, ModuleType(name))
    return modules


def check_spack(path, version, cache):
    sys.modules.update(spack_modules())
    names = {}
    exec(compile(path.read_text("utf-8"), str(path), "exec"), names)
    recipe = names["Vecmpi"]
    demand(re.search(r"^.{1,120}$", recipe.__doc__, re.MULTILINE), "no description")
    demand(recipe.url.endswith(f"/vecmpi-{version}.tar.gz"), f"{recipe.url}: not the archive")
    demand(list(DIRECTIVES["version"]) == [version], f"versions are {list(DIRECTIVES['version'])}")
    demand(re.fullmatch("[0-9a-f]{64}", DIRECTIVES["version"][version]["sha256"]), "no checksum")
    for definition, _ in recipe().cmake_args():
        demand(re.search(rf"^{definition}:", cache.read_text("utf-8"), re.MULTILINE), f"{definition}: not CMake's")
    needed = {re.match(r"[\w-]+", name)[0] for name in DIRECTIVES["depends_on"]}
    wanted = {"c", "cxx", "cmake", "python", "highway", "xxhash", "boost", "numactl", "mpich"}
    demand(needed == wanted, f"depends on {sorted(needed)}, not {sorted(wanted)}")


# ---- conda: rendered by Jinja, read as YAML -----------------------------------------------------------------

SECTIONS = {
    "package": {"name", "version"},
    "source": {"url", "sha256"},
    "build": {"number"},
    "requirements": {"build", "host", "run"},
    "test": {"requires", "commands"},
    "about": {"home", "license", "license_family", "license_file", "summary", "description"},
    "extra": {"recipe-maintainers"},
}


def for_linux(text):
    """A line that ends with a selector in brackets stays where that holds."""
    platforms = {"linux": True, "unix": True, "osx": False, "win": False}
    for line in text.splitlines():
        selector = re.search(r"#\s*\[([\w ]+)\]\s*$", line)
        if not selector or eval(selector[1], {}, platforms):
            yield line


def check_conda(path, version):
    import jinja2
    import yaml

    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(
        "\n".join(for_linux(path.read_text("utf-8")))
    )
    recipe = yaml.safe_load(template.render(compiler="{}_compiler".format, stdlib="{}_stdlib".format))
    demand({name: set(keys) for name, keys in recipe.items()} == SECTIONS, "other sections or keys than wanted")
    demand(str(recipe["package"]["version"]) == version, f"version {recipe['package']['version']}")
    demand(recipe["source"]["url"].endswith(f"/vecmpi-{version}.tar.gz"), "not the archive")
    demand(re.fullmatch("[0-9a-f]{64}", recipe["source"]["sha256"]), "no checksum")
    needed = recipe["requirements"]["host"]
    wanted = ["libboost-devel", "libhwy", "libnuma", "mpich", "xxhash"]
    demand(needed == wanted, f"host is {needed}, not {wanted}")
    variants = yaml.safe_load((path.parent / "conda_build_config.yaml").read_text("utf-8"))
    demand(variants["c_stdlib"] == ["sysroot"], "stdlib('c') is no package of conda-forge")
    print(*recipe["test"]["commands"], sep="\n")


def main():
    kind, path, version, *rest = sys.argv[1:]
    try:
        if kind == "spack":
            check_spack(Path(path), version, Path(rest[0]))
        else:
            check_conda(Path(path), version)
    except Problem as problem:
        sys.exit(f"{path}: {problem}")


if __name__ == "__main__":
    main()
