"""The reader of operations in einx notation inside programs: ``einx.mean("b (s [r])... c", r=4)``.

call  = "einx" "." name "(" quoted { "," name "=" value } ")"
value = [ "-" ] number | "True" | "False" | "(" [ value { "," value } ] ")"
"""

from __future__ import annotations

from ilang.core.diagnostic import NotationError
from ilang.core.ir.einx import Parameter, Sizes
from ilang.core.ir.syntax import Einx
from ilang.core.notation.einx import LARGEST, read_einx
from ilang.core.notation.einx_forms import complete
from ilang.core.notation.lookahead import opens_schedule
from ilang.core.notation.reader import BLANKS, DIGITS, WORD, WORD_START, Reader

DEEPEST = 20
"""Tuples inside each other, at most."""
CALL_HELP = 'an operation is written `einx.mean("b (s [r])... c", r=4)`'
TRUTH = {"True": 1, "False": 0}


def read_call(reader: Reader) -> Einx:
    """The operation at the cursor, and the schedule after it, checked where its axes are known.

    Raises:
        NotationError: E0112, E0160 to E0166.
        MeaningError: E022.
    """
    start = reader.pos
    reader.take(reader.past(WORD, start))
    _expect(reader, ".", "`.` and the name of an operation")
    c = reader.skip()
    if not c or c not in WORD_START:
        raise reader.unexpected("E0112", "the name of an operation", CALL_HELP)
    name = reader.take(reader.past(WORD, reader.pos))
    opened = reader.skip() == "("
    bracket = reader.here()
    if not opened:
        raise reader.unexpected("E0112", "`(` and the axes in quotes", CALL_HELP)
    reader.take(reader.pos + 1)
    mark = reader.skip()
    if not mark or mark not in "'\"":
        raise reader.unexpected("E0112", "the axes in quotes", CALL_HELP)
    close = reader.text.find(mark, reader.pos + 1, reader.end)
    if close < 0:
        message = f"this quote is not closed by another `{mark}`"
        raise NotationError("E0112", message, reader.here())
    quoted = reader.span(reader.pos + 1, close)
    reader.take(close + 1)
    parameters: list[Parameter] = []
    while reader.skip() == ",":
        reader.take(reader.pos + 1, right=True)
        if reader.skip() == ")":
            break
        parameters.append(_parameter(reader, parameters))
    if reader.skip() != ")":
        if not reader.peek():
            raise NotationError("E0110", "this parenthesis is never closed", bracket)
        raise reader.unexpected("E0112", "`,` or `)`", CALL_HELP)
    reader.take(reader.pos + 1)
    written = read_einx(reader.source, quoted)
    form = complete(name.text(), written, parameters, name)
    schedule = None
    if opens_schedule(reader, True):
        from ilang.core.notation.schedule import parse_schedule

        schedule = parse_schedule(reader, True)
    return Einx(form, reader.span(start), schedule)


def _expect(reader: Reader, sign: str, wanted: str) -> None:
    if reader.skip() != sign:
        raise reader.unexpected("E0112", wanted, CALL_HELP)
    reader.take(reader.pos + 1)


def _parameter(reader: Reader, before: list[Parameter]) -> Parameter:
    """``r=4``."""
    c = reader.skip()
    start = reader.pos
    if not c or c not in WORD_START:
        raise reader.unexpected("E0166", "a parameter", CALL_HELP)
    name = reader.take(reader.past(WORD, start))
    if any(each.name == name.text() for each in before):
        raise NotationError("E0166", f"{name.text()} is given twice", name, "give it once")
    _expect(reader, "=", f"`=` after {name.text()}")
    value = _value(reader, 0)
    return Parameter(name.text(), value, reader.span(start))


def _value(reader: Reader, depth: int) -> Sizes:
    """``4``, ``-1``, ``(4, 2)``."""
    c = reader.skip()
    if c == "(" and depth < DEEPEST:
        return _tuple(reader, depth)
    stop = reader.past(WORD, reader.pos)
    word = reader.text[reader.pos : stop]
    if word in TRUTH:
        reader.take(stop)
        return TRUTH[word]
    begin = reader.pos + (c == "-")
    stop = reader.past(DIGITS, begin)
    if stop == begin:
        raise reader.unexpected("E0166", "a whole number, or several in parentheses", CALL_HELP)
    digits = reader.text[begin:stop].lstrip("0") or "0"
    span = reader.take(stop)
    if len(digits) > 20 or int(digits) >= LARGEST:
        raise NotationError("E0166", "this number is too large", span)
    return -int(digits) if c == "-" else int(digits)


def _tuple(reader: Reader, depth: int) -> Sizes:
    reader.take(reader.pos + 1)
    values: list[Sizes] = []
    while reader.skip() != ")":
        values.append(_value(reader, depth + 1))
        if reader.skip() != ",":
            break
        reader.take(reader.pos + 1, right=reader.text[reader.past(BLANKS, reader.pos + 1)] != ")")
    _expect(reader, ")", "`,` or `)`")
    return tuple(values)
