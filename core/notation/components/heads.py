"""The inputs in the heads of components: ``(q: f64[m, 64], k)``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from ilang.core.diagnostic import ModuleError
from ilang.core.ir.syntax import NamedInput
from ilang.core.notation.naming import refuse_again, refuse_reserved, refuse_type
from ilang.core.notation.reader import DIGITS, TYPES, WORD, Reader, brief_number, number_below
from ilang.core.source import Span

LARGEST_EXTENT = 2**63 - 1
Item = TypeVar("Item")


def read_parameters(reader: Reader) -> tuple[NamedInput, ...]:
    """``(q: f64[m,d], k)``."""
    names: dict[str, Span] = {}
    return tuple(_listed(reader, ")", lambda: _parameter(reader, names)))


def _listed(reader: Reader, close: str, read: Callable[[], Item]) -> Iterator[Item]:
    """Items between commas, from the bracket at the cursor to the one that closes it."""
    reader.take(reader.pos + 1)
    c = "," if reader.skip() != close else close
    while c != close:
        yield read()
        c = reader.skip()
        if c not in (",", close):
            raise _bad_list(reader, f"`,` or `{close}`")
        if c == ",":
            reader.take(reader.pos + 1, right=close == ")")
    reader.take(reader.pos + 1)


def _bad_list(reader: Reader, wanted: str) -> ModuleError:
    message = f"expected {wanted} before {reader.found()}"
    help_line = "inputs are listed like `(q: f64[m,d], k[n,64], scale[])`"
    return ModuleError("E0407", message, reader.here(), help_line)


def _word(reader: Reader, wanted: str) -> Span:
    name = reader.take_name()
    if name is None:
        raise _bad_list(reader, wanted)
    return name


def _parameter(reader: Reader, names: dict[str, Span]) -> NamedInput:
    """One input, whose name is none of ``names``."""
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
        dims = tuple(_listed(reader, "]", lambda: _dim(reader)))
        stop = reader.pos
    refuse_again(name.text(), name, names)
    return NamedInput(name.text(), dtype, dims, reader.span(name.start, stop))


def _dim(reader: Reader) -> str | int:
    if reader.skip() in DIGITS:
        return _extent(reader)
    return _dimension(_word(reader, "the name or the size of a dimension"))


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
    if stop < reader.end and reader.text[stop] in WORD | {"."}:
        reader.pos = stop
        raise _bad_list(reader, "`,` or `]`")
    digits = reader.text[start:stop]
    number = number_below(digits, LARGEST_EXTENT + 1)
    if number is None:
        message = f"the extent {brief_number(digits.lstrip('0'))} is more than {LARGEST_EXTENT}"
        help_line = "a name leaves the extent open: `x[n]`"
        raise ModuleError("E0411", message, reader.span(start, stop), help_line)
    reader.take(stop)
    return number
