"""Recipes to compile the emulator and emulated programs: by g++, against headers that stand in for CUDA's.

A program is compiled fast, or with every load and store checked: ``-fsanitize=thread`` makes g++ call a function for
each, which the emulator's runtime answers in place of the library that belongs to the flag.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

from ilang.codegen.compile import cache
from ilang.codegen.compile.compilers import Language
from ilang.codegen.compile.toolchain import Recipe

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
RUNTIME = HERE / "cpp"

CPP = Language(
    "C++",
    "CXX",
    ("g++", "c++"),
    (),
    "program.cpp",
    "the emulator needs one that takes the flags of g++: apt install g++",
)

STANDARD = ("-std=c++17", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off", f"-I{INCLUDE}")
UNIQUE = "-fno-gnu-unique"
"""Programs of one process keep their shared variables apart; compilers other than g++ do so by themselves."""
LINES = ("-g1", "-gdwarf-4", "-fno-var-tracking", "-fno-var-tracking-assignments")
"""Lines of the text for findings, in a form that every addr2line reads; not where variables are, which takes long."""
RUNTIME_SPEED = ("-O2",)
FAST = ("-Og",)
"""Of programs, which are compiled more often than they run for long."""
CHECKED = (
    *("-O0", "-DEMULATOR_CHECK", "-fno-tree-loop-distribute-patterns", "-fno-tree-sra"),
    "-fsanitize=thread",
    "-fsanitize=alignment,bounds,shift,signed-integer-overflow,integer-divide-by-zero",
)
WITHOUT_SANITIZERS = ("-nodefaultlibs", "-lstdc++", "-lm", "-lgcc_s", "-lgcc", "-lc")
"""Libraries in place of g++'s own choice, to which those of sanitizers belong."""
SYSTEM = ("-ldl", "-lpthread")
OBJECT = "runtime.o"
ALONE = "-Wl,--defsym=emulator_runs_alone=1"
"""By which a program that runs by itself tells the runtime that it fails where something was found."""


@functools.lru_cache(maxsize=1)
def identity() -> str:
    """A hash of the emulator's own files: what was compiled with others is not used."""
    files = sorted(path for path in (*_files(INCLUDE), *_files(RUNTIME)))
    return cache.digest(b"\0".join(path.read_bytes() for path in files))[:16]


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.suffix in (".h", ".cpp"))


def heading() -> str:
    """A line that tells the emulator apart from any other, which every text of it begins with."""
    return f"// {identity()}\n"


def runtime_text() -> str:
    """All of the runtime as one text."""
    parts = sorted(path.name for path in RUNTIME.glob("*.cpp"))
    return heading() + "".join(f'#include "{part}"\n' for part in parts)


def runtime_name() -> str:
    """The file name of the runtime as programs know it; one that is loaded is found by it."""
    return f"libi_emulator-{identity()}.so"


def runtime_object() -> bytes:
    """The runtime, compiled once for the library and for programs that run by themselves.

    Raises:
        ToolError: E0901 to E0909 (no C++ compiler, or it fails).
    """
    return cache.library(runtime_text(), object_recipe(), cache.content_of)


def object_recipe(ucontext: bool = False) -> Recipe:
    """The recipe of the runtime as an object; with ``ucontext`` its fibers are those of the C library."""
    fibers = ("-DEMULATOR_UCONTEXT",) if ucontext else ()
    return Recipe(CPP, (*STANDARD, *RUNTIME_SPEED, f"-I{RUNTIME}", "-c", *fibers))


def runtime_recipe(runtime: bytes) -> Recipe:
    """The recipe of the runtime as a library, for programs that this process loads: its object and nothing else.

    Functions of the runtime call each other, whatever the process has of the same names.
    """
    flags = (*STANDARD, "-shared", "-Wl,-Bsymbolic", f"-Wl,-soname,{runtime_name()}")
    return Recipe(CPP, flags, (OBJECT, *SYSTEM), ((OBJECT, runtime),))


def program_recipe(runtime: bytes, checked: bool = False) -> Recipe:
    """The recipe of a translated program, fast or checked, linked with the runtime that was loaded before it."""
    mode = CHECKED if checked else FAST
    flags = (*STANDARD, UNIQUE, *LINES, "-shared", "-Wl,-Bsymbolic", *mode)
    libraries = (runtime_name(), *(WITHOUT_SANITIZERS if checked else ()))
    return Recipe(CPP, flags, libraries, ((runtime_name(), runtime),))
