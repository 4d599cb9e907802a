"""nvcc's command line, building for the CPU: Makefiles of CUDA projects then need no GPU and no CUDA toolkit.

    make NVCC="python -m ilang.codegen.emulator.nvcc" test

``I_EMULATOR_CHECK=1`` builds with every load and store checked. A program that is linked has the emulator inside, and
its NCCL; a program in which something was found ends with status 9, whatever it thinks of its results. As for nvcc
``-ccbin`` names the compiler, ``mpicxx`` for ranks.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ilang.codegen.compile.compiler_process import failure, run_compiler
from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.emulator import recipes
from ilang.codegen.emulator.translate import translate
from ilang.codegen.system.folders import temporary_folder
from ilang.core.diagnostic import Error, ToolError
from ilang.core.record import record

SOURCES = (".cu", ".cpp", ".cc", ".c")
OBJECTS = (".o", ".a", ".so")
COMPILES = {"-c", "-dc"}
SHARES = {"-shared", "--shared"}
PASSED_ON = {"-o", "-ccbin", "-I", "-D", "-L", "-l", "-isystem", "-Xcompiler", "-Xlinker"}
"""Options with a value that means something here."""
WITH_VALUE = {
    *("-arch", "-gencode", "-code", "-maxrregcount", "-cudart", "-t", "--threads"),
    *("-Xptxas", "-Werror", "-diag-suppress", "-std", "-x"),
}
"""Options whose value is the next argument, and which mean nothing here."""
NOTHING_HERE = re.compile(
    r"-(O.*|g|G|lineinfo|w|m64|rdc=.*|std=.*|arch=.*|gencode=.*|code=.*|cudart=.*|maxrregcount=.*"
    r"|Werror=.*|Wno-deprecated-gpu-targets|Xptxas=.*|use_fast_math|restrict|t=?\d+|lcudart.*|lcuda|lnccl"
    r"|-(expt-.*|fmad=.*|use_fast_math|std=.*|threads=.*|extended-lambda|generate-.*|gpu-.*))"
)
"""Options that choose what a GPU or nvcc itself does."""


@record
class CompilerCommand:
    """A command line of nvcc."""

    sources: tuple[str, ...]
    objects: tuple[str, ...]
    flags: tuple[str, ...]
    links: tuple[str, ...]
    output: str | None
    compiler: str | None
    compiles_only: bool
    is_shared: bool


def read(arguments: Sequence[str]) -> CompilerCommand:
    """Arguments of nvcc, sorted; paths in them become absolute.

    Raises:
        ToolError: E0921 (an argument that the emulator does not know).
    """
    flags: list[str] = []
    links: list[str] = []
    files: list[str] = []
    output: str | None = None
    compiler: str | None = None
    for name, value in _pairs(arguments):
        if name == "-ccbin":
            compiler = value
        elif name in ("-I", "-D", "-isystem"):
            flags += _placed(name, value)
        elif name == "-Xcompiler":
            flags += value.split(",")
        elif name in ("-L", "-l"):
            links += _placed(name, value)
        elif name == "-Xlinker":
            links.append(f"-Wl,{value}")
        elif name == "-o":
            output = value
        elif not name.startswith("-") and name.endswith((*SOURCES, *OBJECTS)):
            files.append(str(Path(name).absolute()))
        elif name not in (*COMPILES, *SHARES, *WITH_VALUE) and not NOTHING_HERE.fullmatch(name):
            raise ToolError(
                "E0921",
                f"the emulator does not know the argument {name} of nvcc",
                help="build with nvcc itself, or leave the argument out",
            )
    return CompilerCommand(
        sources=tuple(file for file in files if file.endswith(SOURCES)),
        objects=tuple(file for file in files if file.endswith(OBJECTS)),
        flags=tuple(flags),
        links=tuple(links),
        output=output,
        compiler=compiler,
        compiles_only=not COMPILES.isdisjoint(arguments),
        is_shared=not SHARES.isdisjoint(arguments),
    )


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each argument with its value, attached or the next one; "" for those that have none."""
    words = iter(arguments)
    for word in words:
        if word.startswith("-ccbin="):
            yield "-ccbin", word.partition("=")[2]
        elif word in PASSED_ON or word in WITH_VALUE:
            value = next(words, None)
            if value is None:
                raise ToolError("E0921", f"{word} needs a value", help=f"{word} VALUE")
            yield word, value
        elif word[:2] in PASSED_ON and not NOTHING_HERE.fullmatch(word):
            yield word[:2], word[2:]
        else:
            yield word, ""


def _placed(name: str, value: str) -> tuple[str, ...]:
    """An option with its value, which is made absolute where it is a folder."""
    if name in ("-I", "-L", "-isystem"):
        value = str(Path(value).absolute())
    return (name, value) if name == "-isystem" else (name + value,)


def build(command: CompilerCommand, *, checked: bool) -> str:
    """Do what a command line asks for; what the compiler said.

    Raises:
        ToolError: E0901 to E0909 (the C++ compiler), E0920, E0921.
    """
    output = ""
    with temporary_folder() as folder:
        objects = []
        for number, source in enumerate(command.sources):
            object_file = str(folder / f"{number}.o")
            if command.compiles_only:
                object_file = str(Path(command.output or f"{Path(source).stem}.o").absolute())
            output += _compiled(command, source, object_file, folder, checked=checked)
            objects.append(object_file)
        if not command.compiles_only:
            output += _linked(command, objects, folder)
    return output


def _compiled(
    command: CompilerCommand, source: str, object_file: str, folder: Path, *, checked: bool
) -> str:
    path = Path(source)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise ToolError("E0921", f"{source} cannot be read: {error}", help="name a file") from None
    is_c = path.suffix == ".c"
    included: tuple[str, ...] = ()
    if path.suffix == ".cu":
        text, included = translate(text, path.name), ("-include", "cuda_runtime.h")
    copy = folder / f"{Path(object_file).stem}-source{'.c' if is_c else '.cpp'}"
    copy.write_text(text, "utf-8")
    mode = recipes.CHECKED if checked and not is_c else recipes.FAST
    standard = (*recipes.STANDARD[1:], "-x", "c") if is_c else (*recipes.STANDARD, recipes.UNIQUE)
    flags = (*standard, *included, *recipes.LINES, *mode, *command.flags, f"-I{path.parent}")
    return _run(command, [*flags, "-c", str(copy), "-o", object_file], folder)


def _linked(command: CompilerCommand, objects: Sequence[str], folder: Path) -> str:
    runtime = folder / recipes.OBJECT
    runtime.write_bytes(recipes.runtime_object())
    kind = ("-shared", "-Wl,-Bsymbolic") if command.is_shared else ()
    linked = str(Path(command.output or "a.out").absolute())
    # Objects initialise in this order, and checked programs call the runtime where they do.
    inputs = (str(runtime), *objects, *command.objects)
    return _run(
        command,
        [*kind, recipes.ALONE, *inputs, "-o", linked, *command.links, *recipes.SYSTEM],
        folder,
    )


def _run(command: CompilerCommand, arguments: Sequence[str], folder: Path) -> str:
    chosen = (command.compiler,) if command.compiler else find_compiler(recipes.CPP).command
    line = [*chosen, *arguments]
    status, output = run_compiler(line, folder, recipes.CPP)
    if status > 0 and output:
        sys.stderr.write(output)
        message = f"{recipes.CPP.name} refuses the program, as it says above"
        raise ToolError(
            "E0921", message, help="this is the compiler of the emulator; nvcc may refuse more"
        )
    if status:
        raise failure(line, folder, status, output, recipes.CPP)
    return output


def main(arguments: Sequence[str]) -> int:
    """Run the command line; its exit status."""
    if not arguments or "--help" in arguments or "-h" in arguments:
        sys.stdout.write(f"{__doc__}\n")
        return 0
    if "--version" in arguments or "-V" in arguments:
        sys.stdout.write("nvcc of the CUDA emulator: builds for the CPU\n")
        return 0
    checked = os.environ.get("I_EMULATOR_CHECK", "0") not in ("", "0")
    try:
        sys.stderr.write(build(read(arguments), checked=checked))
    except Error as error:
        sys.stderr.write(f"{error}\n")
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
