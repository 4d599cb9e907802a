"""The inputs in the heads of components: ``(q: f64[m, 64], k)``."""

from __future__ import annotations

from ilang.core.diagnostic import ModuleError
from ilang.core.ir.syntax import NamedInput
from ilang.core.notation.naming import refuse_again, refuse_reserved, refuse_type
from ilang.core.notation.reader import (
    DIGITS,
    TYPES,
    WORD,
    WORD_START,
    Reader,
)
from ilang.core.source import Span

LARGEST_EXTENT = 2**63 - 1


def read_parameters(reader: Reader) -> tuple[NamedInput, ...]:
    """``(q: f64[m,d], k)``."""
    reader.take(reader.pos + 1)
    parameters: list[NamedInput] = []
    names: dict[str, Span] = {}
    if reader.skip() == ")":
        reader.take(reader.pos + 1)
        return ()
    while True:
        span, parameter = _parameter(reader)
        refuse_again(parameter.name, span, names)
        parameters.append(parameter)
        c = reader.skip()
        if c not in (",", ")"):
            raise _bad_list(reader, "`,` or `)`")
        reader.take(reader.pos + 1, right=c == ",")
        if c == ")":
            return tuple(parameters)


def _bad_list(reader: Reader, wanted: str) -> ModuleError:
    message = f"expected {wanted} before {reader.found()}"
    help_line = "inputs are listed like `(q: f64[m,d], k[n,64], scale[])`"
    return ModuleError("E0407", message, reader.here(), help_line)


def _word(reader: Reader, wanted: str) -> Span:
    c = reader.skip()
    if not c or c not in WORD_START:
        raise _bad_list(reader, wanted)
    return reader.take(reader.past(WORD, reader.pos))


def _parameter(reader: Reader) -> tuple[Span, NamedInput]:
    """One input, and the span of its name."""
    name = _word(reader, "the name of an input")
    refuse_reserved(name.text(), name)
    dtype: str | None = None
    if reader.skip() == ":":
        reader.take(reader.pos + 1, right=True)
        span = _word(reader, "an element type")
        dtype = span.text()
        refuse_type(dtype, span)
    dims: tuple[str | int, ...] | None = None
    stop = reader.pos
    if reader.skip() == "[":
        dims = _dims(reader)
        stop = reader.pos
    return name, NamedInput(name.text(), dtype, dims, reader.span(name.start, stop))


def _dims(reader: Reader) -> tuple[str | int, ...]:
    """``[m,64]``."""
    reader.take(reader.pos + 1)
    dims: list[str | int] = []
    if reader.skip() == "]":
        reader.take(reader.pos + 1)
        return ()
    while True:
        c = reader.skip()
        if c and c in DIGITS:
            dims.append(_extent(reader))
        else:
            dims.append(_dimension(_word(reader, "the name or the size of a dimension")))
        c = reader.skip()
        if c not in (",", "]"):
            raise _bad_list(reader, "`,` or `]`")
        reader.take(reader.pos + 1)
        if c == "]":
            return tuple(dims)


def _dimension(span: Span) -> str:
    """The name of a dimension: also `i`, which pages call the first axis of an input."""
    name = span.text()
    if name in TYPES:
        message = f"`{name}` is a word of the language and cannot name anything"
        help_line = f"an element type stands before the dimensions: `x: {name}[m]`"
        raise ModuleError("E0404", message, span, help_line)
    if name != "i":
        refuse_reserved(name, span)
    return name


def _extent(reader: Reader) -> int:
    start = reader.pos
    stop = reader.past(DIGITS, start)
    if stop < reader.end and reader.text[stop] in WORD + ".":
        reader.pos = stop
        raise _bad_list(reader, "`,` or `]`")
    digits = reader.text[start:stop].lstrip("0") or "0"
    if len(digits) > 19 or int(digits) > LARGEST_EXTENT:
        shown = digits if len(digits) < 40 else digits[:20] + "…"
        message = f"the extent {shown} is more than {LARGEST_EXTENT}"
        help_line = "a name leaves the extent open: `x[n]`"
        raise ModuleError("E0411", message, reader.span(start, stop), help_line)
    reader.take(stop)
    return int(digits)
