"""The comments at the beginning of generated files: how to call them, their program, and the formulas of functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ilang.codegen.project.extents import settled_extents, spread
from ilang.codegen.targets.c_session import SessionsText
from ilang.codegen.targets.cfamily import comment
from ilang.codegen.targets.identifiers import identifier, initializer
from ilang.codegen.targets.session import ExportedFunction
from ilang.core.explain.first_page import ascii_formulas
from ilang.core.explain.meaning import meaning

LONGEST_COMMENT = 2000
"""Lines of the program's text that are repeated in a file."""
WIDTH = 100
"""Columns of a formula."""
MOST_LINES = 48
"""Lines of formulas of a file."""
MOST_NAMES = 12
"""Names of definitions that a line lists."""
MARK = "written by `i build`"
"""Stands in the first lines of every file."""
ON_DEVICE = (
    "It enqueues work on a stream and returns; what fails later shows where the stream is waited for.",
    "What ends in _host takes arrays of the host instead, and waits.",
)
HOW_TO_CALL = """\
Arrays are row-major and contiguous, and outputs overlap nothing. A call allocates nothing, keeps nothing between
calls and never exits; it may run in several threads at once, each with a workspace of its own."""


def header_comment(
    functions: Sequence[ExportedFunction],
    sessions: SessionsText,
    stem: str,
    inlined: Sequence[str] = (),
) -> Iterator[str]:
    """The comment of a header: how to call what it declares, and which definitions are ``inlined``."""
    on_device = functions[0].program.machine.device is not None
    ending, memory = ("cu", "memory of the device") if on_device else ("c", "memory")
    yield f"/* {stem}.h: how to call what is in {stem}.{ending}. {MARK.capitalize()}."
    yield " *"
    lines = (*HOW_TO_CALL.split("\n"), *(ON_DEVICE if on_device else ()))
    yield from (f" * {line}".rstrip() for line in lines)
    example = example_call(functions[0])
    if sessions.texts:
        example = sessions.texts[0].example()
        yield f" * What lasts from run to run is in {memory} that the caller of NAME_init gives."
    if inlined:
        line = f"Without a function here, as part of what uses them: {some_of(inlined)}."
        yield from (f" * {row}" for row in wrap(line, WIDTH))
    yield " *"
    yield from (f" *     {line}" for line in example)
    yield " */"
    yield ""


def some_of(names: Sequence[str]) -> str:
    """The first of some names."""
    return ", ".join([*names[:MOST_NAMES], "..."] if MOST_NAMES < len(names) else names)


def example_call(function: ExportedFunction) -> Iterator[str]:
    """A call of a function, in C: its sizes, its workspace, and the call itself."""
    name, program = function.name(), function.program
    several = spread(function, range(8, 80, 8), (3, 2), 0)
    extents = settled_extents(function, several) or several
    given = [*function.arguments(extents).items()][:8]
    arrays = [identifier(program.buffers[n].name) for n in (*program.inputs, *program.outputs)]
    if given:
        yield f"{name}_sizes sizes = {initializer(dict(given))};"
    sizes = "&sizes" if given else "NULL"
    words = [sizes, *(arrays if len(arrays) <= 12 else [*arrays[:11], "..."]), "work"]
    if program.machine.device is None:
        yield f"void *work = malloc({name}_work({sizes}));"
    else:
        yield "void *work;"
        yield f"cudaMalloc(&work, {name}_work({sizes}));"
        words.append("stream")
    yield f"int status = {name}({', '.join(words)});"


def source_comment(text: str, file: str) -> Iterator[str]:
    """The text of the program, harmless in a comment."""
    lines = [line.expandtabs(4).rstrip() for line in text.strip("\r\n").split("\n")]
    yield f"/* {file}: {MARK} from this program:"
    yield " *"
    yield from (comment(f" *     {line}") for line in lines[:LONGEST_COMMENT])
    if LONGEST_COMMENT < len(lines):
        yield f" *     ... and {len(lines) - LONGEST_COMMENT} lines more"
    yield " */"
    yield ""


def formula_comment(functions: Sequence[ExportedFunction], stem: str) -> Iterator[str]:
    """The formulas of functions, and the include of the support header."""
    yield from formula_lines(functions)
    yield " *"
    yield f" * {stem}.c: {MARK} from the program in {stem}_support.h."
    yield " */"
    yield ""
    yield f'#include "{stem}_support.h"'
    yield ""


def whole_comment(functions: Sequence[ExportedFunction], text: str, file: str) -> Iterator[str]:
    """The formulas of functions, and the text of the program."""
    yield from formula_lines(functions)
    yield " *"
    first, *others = source_comment(text, file)
    yield f" * {first.removeprefix('/* ')}"
    yield from others


def formula_lines(functions: Sequence[ExportedFunction]) -> Iterator[str]:
    """The formulas of functions, as the first lines of a comment."""
    lines = [line for function in functions for line in formulas_of(function, function.name())]
    if MOST_LINES < len(lines):
        lines = [*lines[:MOST_LINES], f"... and {len(lines) - MOST_LINES} lines more"]
    for number, line in enumerate(lines):
        yield f"{' *' if number else '/*'} {comment(line)}".rstrip()


def formulas_of(function: ExportedFunction, name: str) -> list[str]:
    """The formulas of a function after a name; one that is short stands beside it."""
    lines = ascii_formulas(meaning(function.shaped).formulas, WIDTH)
    if len(lines) == 1 and len(name) + len(lines[0]) < WIDTH:
        return [f"{name}: {lines[0]}"]
    return [f"{name}:", *(f"    {line}" for line in lines)]
