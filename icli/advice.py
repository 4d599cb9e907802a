"""The likely meaning of a line of the REPL that failed: a better diagnostic than the language has, where one is known.

The language knows no arrays by name, so to it ``+ij~i zz`` goes wrong before ``zz``, and ``x*2`` before ``2``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError, Error, ModuleError
from ilang.core.notation.reader import COMBINATORS, DEFINITION_HELP, RESERVED
from ilang.core.source import Source, Span
from ilang.core.suggestion import nearest
from ilang.icli.arrays import arrays_of, not_an_array
from ilang.icli.filled import call_of
from ilang.icli.foreign import UnknownNameError, spelled, value_names
from ilang.icli.lines import BINDS, CALLS, WHERE, array_in_program, split_words

if TYPE_CHECKING:
    from ilang.icli.session import ReplSession

FAMILIES = ("E01", "E02", "E04", "E072")
"""Errors that a line may give only because it is in another spelling."""

STATEMENT = re.compile(
    r"\s*(?:import|from|for|while|def|class|with|return|del|if|elif|else)\b[ :](?!.*~)"
)
MODULES = ("np", "numpy", "torch")
"""Names that are no arrays in an expression of Python."""
MOST_NAMES = 8
"""Arrays that a help line lists."""


def advised(session: ReplSession, line: str, error: Error) -> Error:
    """The error to show for a line without comments that gave ``error``."""
    if not error.code.startswith(FAMILIES):
        return error
    binds = BINDS.match(line)
    start = binds.start(2) if binds is not None else 0
    value = line[start:]
    shapes = {name: array.shape for name, array in session.arrays.items()}
    try:
        lines = spelled(value, shapes)
    except UnknownNameError as unknown:
        return _unknown_array(session, line, unknown.args[0], start)
    if lines is not None and "".join(value.split()) != "".join(lines[0].split()):
        return _in_python(value, lines, "" if binds is None else f"{binds.group(1)} = ")
    name = _missing_operand(session, value)
    if name is not None:
        return _unknown_array(session, line, name, start)
    if value.strip().isidentifier() and error.code == "E0401":
        return _unknown_name(session, line, value.strip(), error)
    if error.code == "E0401" and error.span is not None and error.span.text() in session.arrays:
        return array_in_program(error.span)
    if error.help == DEFINITION_HELP:
        return _renewed(error)
    if STATEMENT.match(line):
        message = f"`{line.strip()}` is a statement of Python; a line here is a program, or gives a name to one"
        words = line.split()
        hint = f"`:drop {words[1]}`" if words[0] == "del" and len(words) == 2 else ""
        return CommandError("E0821", message, help=hint or "`:help` lists what can be typed")
    if call_of(value.strip()) is not None:
        return not_an_array(value.strip())
    return error


def typed_in_repl(text: str, operands: Sequence[str]) -> str | None:
    """The lines of the REPL that do what Python's spelling means of arrays; None where it is none, or nothing does.

    Names of arrays are those of the text that no call has, in the order in which they stand there.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names = [name for name in value_names(tree) if name not in MODULES]
    if not names or len(names) != len(operands) or "-" in operands:
        return None
    try:
        arrays = dict(zip(names, arrays_of([None] * len(names), operands), strict=True))
        lines = spelled(text, {name: array.shape for name, array in arrays.items()})
    except (Error, UnknownNameError):
        return None
    given = [f"{name} = {operand}" for name, operand in zip(names, operands, strict=True)]
    return None if lines is None else ", then ".join(f"`{line}`" for line in (*given, *lines))


def _in_python(value: str, lines: list[str], binding: str) -> CommandError:
    """The error for a line in the spelling of Python, with the lines that do the same."""
    written = [*lines[:-1], binding + lines[-1]]
    return CommandError(
        "E0821",
        f"`{value.strip()}` is spelled as in Python; here a program is an index expression, "
        "and its arrays stand after it",
        help=f"write {', then '.join(f'`{each}`' for each in written)}",
    )


def _missing_operand(session: ReplSession, value: str) -> str | None:
    """The last name after a program that is no array, or None where no program is followed by such a name."""
    call = CALLS.fullmatch(value)
    if call is not None and call.group(1) in session.texts:
        return next((w for w in split_words(call.group(2), ",") if _is_free(session, w)), None)
    words, head, missing = split_words(value), value.rstrip(), None
    while 1 < len(words) and (_is_free(session, words[-1]) or session.is_array(words[-1])):
        word = words.pop()
        missing = word if _is_free(session, word) else missing
        head = head[: head.rindex(word)].rstrip()
    if missing is None or head.endswith(COMBINATORS):
        return None
    try:
        session.program(head)
    except Error:
        return None
    return missing


def _is_free(session: ReplSession, word: str) -> bool:
    """Whether a word could name an array, and names nothing."""
    return word.isidentifier() and word not in session.names() and word not in RESERVED


def _unknown_array(session: ReplSession, line: str, name: str, start: int) -> CommandError:
    """The error for a name that stands where an array belongs."""
    at = line.rfind(name, start)
    kind = "a definition, and an array belongs here" if name in session.texts else ""
    message = f"`{name}` is {kind}" if kind else f"there is no array named `{name}`"
    return CommandError(
        "E0820", message, Span(Source(WHERE, line), at, at + len(name)), _how_to_bind(session, name)
    )


def _unknown_name(session: ReplSession, line: str, name: str, error: Error) -> ModuleError:
    """The error for a line that is one name, which nothing has."""
    at = line.rindex(name)
    return ModuleError(
        error.code,
        f"there is no array and no definition named `{name}`",
        Span(Source(WHERE, line), at, at + len(name)),
        error.help if _is_spelled(error) else _how_to_bind(session, name),
    )


def _is_spelled(error: Error) -> bool:
    """Whether the help on an unknown name is the program that it means elsewhere: ``softmax``."""
    return "~" in error.help and error.help.startswith("`")


def _how_to_bind(session: ReplSession, name: str) -> str:
    """The name that was meant, or the names there are, and how an array gets one."""
    guess = nearest(name, sorted(session.names()))
    if guess is not None and guess != name:
        return f"did you mean `{guess}`?"
    bound = list(session.arrays)[:MOST_NAMES]
    listed = f"there {'are' if 1 < len(bound) else 'is'} {', '.join(bound)}; " if bound else ""
    free = name if name.isascii() and name.isidentifier() and name not in session.texts else "x"
    return f"{listed}bind one: `{free} = rand:2x3`, `{free} = [[1,2],[3,4]]` or `{free} = file.npy`"


def _renewed(error: Error) -> Error:
    """The error with a help line that is true in the REPL, where definitions are typed."""
    help_line = (
        "after `name =` stands a program, an array (`[1,2]`, `rand:3`, `x.npy`), or a program and "
        "its arrays; `equal` is written `==`"
    )
    return type(error)(error.code, error.message, error.span, help_line, error.labels)
