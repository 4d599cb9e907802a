"""The reader of operations in einx notation inside programs: ``einx.mean("b (s [r])... c", r=4)``.

call  = "einx" "." name "(" quoted { "," name "=" value } ")"
value = [ "-" ] number | "True" | "False" | "(" [ value { "," value } ] ")"

Of ``einx.reduce``, ``einx.elementwise`` and ``einx.vmap``, ``op`` is no size but an operation or a component:

op    = quoted | "einx" "." name | component        a component is what may stand before `(`: f, (+i~.), i("+i~.")

In:  einx.reduce("a [b]", op="sum")
Out: einx.sum("a [b]"), an operation by its name
In:  einx.vmap("a [b], [b] c -> a c", op=(i*i~i >> +i~.))
Out: the operation vmap, whose ``op`` is the component in parentheses
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from ilang.core.diagnostic import Error, ModuleError, NotationError
from ilang.core.einx_ops import EINX_OPS
from ilang.core.ir.einx import Parameter, Sizes
from ilang.core.ir.syntax import Einx, Tree
from ilang.core.notation.einx.forms import complete
from ilang.core.notation.einx.op_argument import op_name
from ilang.core.notation.einx.operation import LARGEST, read_einx
from ilang.core.notation.index.lookahead import (
    matches_form,
    opens_schedule,
    past_member,
    past_pattern,
)
from ilang.core.notation.lines import past_bracket
from ilang.core.notation.reader import (
    BLANKS,
    DIGITS,
    QUOTES,
    WORD_START,
    Reader,
    number_below,
    unclosed,
)
from ilang.core.source import Span
from ilang.core.suggestion import did_you_mean

DEEPEST = 20
"""Tuples inside each other, at most."""
CALL_HELP = 'an operation is written `einx.mean("b (s [r])... c", r=4)`'
OP_HELP = 'an operation stands in quotes, `op="sum"`, a program in parentheses, `op=(+i~.)`, or has a name'
ComponentReader = Callable[[Reader, Container[str], Callable[[str, Span], Error]], Tree]
"""A reader of the component of an ``op``, over names that have a meaning; it has the error for another word."""
TRUTH = {"True": 1, "False": 0}


def read_call(reader: Reader, names: Container[str], read_component: ComponentReader) -> Einx:
    """The operation at the cursor, and the schedule after it, checked where its axes are known.

    Args:
        reader: at the word ``einx``.
        names: the definitions that a component may use.
        read_component: reads the component of an ``op``.

    Raises:
        NotationError: E0110, E0112, E0160 to E0166.
        MeaningError: E022.
        ModuleError: E0401.
    """
    start = reader.pos
    reader.take_name()
    name = _member(reader)
    opened = reader.skip() == "("
    bracket = reader.here()
    if not opened:
        raise reader.unexpected("E0112", "`(` and the axes in quotes", CALL_HELP)
    reader.take(reader.pos + 1)
    quoted = _quoted(reader)
    parameters: list[Parameter] = []
    op, body = name, None
    kind = EINX_OPS[name.text()].kind if name.text() in EINX_OPS else ""
    while reader.skip() == ",":
        reader.take(reader.pos + 1, right=True)
        if reader.skip() == ")":
            break
        if kind == "map" and _is_op(reader):
            if op is not name or body is not None:
                raise _given_twice("op", reader.here())
            op, body = _op(reader, name, names, read_component)
        else:
            parameters.append(_parameter(reader, parameters))
    if reader.skip() != ")":
        if not reader.peek():
            raise unclosed(bracket, "write the `)` that is missing")
        raise reader.unexpected("E0112", "`,` or `)`", CALL_HELP if body is None else OP_HELP)
    reader.take(reader.pos + 1)
    written = read_einx(reader.source, quoted)
    form = complete(op.text(), written, parameters, op, body is not None)
    schedule = None
    if opens_schedule(reader, True):
        from ilang.core.notation.index.schedule import parse_schedule

        schedule = parse_schedule(reader, True)
    return Einx(form, reader.span(start), schedule, body)


def _member(reader: Reader) -> Span:
    """Take ``.mean``; the name in it."""
    _expect(reader, ".", "`.` and the name of an operation")
    return _name(reader, "E0112", "the name of an operation")


def _name(reader: Reader, code: str, wanted: str) -> Span:
    name = reader.take_name()
    if name is None:
        raise reader.unexpected(code, wanted, CALL_HELP)
    return name


def _quoted(reader: Reader, wanted: str = "the axes in quotes", help_line: str = CALL_HELP) -> Span:
    """Take a text in quotes; what stands between them."""
    mark = reader.skip()
    if mark not in QUOTES:
        raise reader.unexpected("E0112", wanted, help_line)
    close = reader.text.find(mark, reader.pos + 1, reader.end)
    if close < 0:
        message = f"this quote is not closed by another `{mark}`"
        help_line = f"close it behind the axes: `einx.sum({mark}a [b]{mark})`"
        raise NotationError("E0112", message, reader.here(), help_line)
    quoted = reader.span(reader.pos + 1, close)
    reader.take(close + 1)
    return quoted


def _is_op(reader: Reader) -> bool:
    """Whether ``op =`` stands at the cursor."""
    word = reader.word()
    return word == "op" and reader.at("=", reader.past(BLANKS, reader.pos + len(word)))


def _op(
    reader: Reader, name: Span, names: Container[str], read_component: ComponentReader
) -> tuple[Span, Tree | None]:
    """``op=...``: the name of the operation that is meant, and the component, if it is one."""
    reader.take_name()
    _expect(reader, "=", "`=` after op")
    c = reader.skip()
    if c in QUOTES:
        return _named(_quoted(reader, "an operation", OP_HELP), name), None
    start = reader.pos
    stop = start + len(reader.word())
    if reader.text[start:stop] == "einx":
        after = past_member(reader, stop)
        if not reader.text.startswith("(", after, reader.end):
            reader.take(stop)
            return _named(_member(reader), name), None
    if matches_form(reader) or c not in WORD_START | {"("}:
        raise _no_op(reader)
    if c == "(" and past_bracket(reader, start) < 0:
        raise unclosed(reader.span(start, start + 1), OP_HELP)

    def unknown(word: str, span: Span) -> ModuleError:
        quoted = f'did you mean `op="{word}"`?' if word in EINX_OPS else OP_HELP
        known = list(names) if isinstance(names, Iterable) else []
        help_line = did_you_mean(word, known, quoted, "`{}`")
        return ModuleError("E0401", f"there is no definition named `{word}`", span, help_line)

    body = read_component(reader, names, unknown)
    if reader.skip() and reader.combinator(reader.pos):
        message = "expected `,` or `)`, found a combinator"
        whole = reader.text[start : reader.pos].strip(BLANKS)
        help_line = (
            f"a program stands in parentheses: `op=({whole} {reader.combinator(reader.pos)} ...)`"
        )
        raise NotationError("E0112", message, reader.here(), help_line)
    return name, body


def _named(quoted: Span, name: Span) -> Span:
    """The name of an operation, checked. Raises NotationError E0165."""
    op_name(name.text(), quoted.text(), quoted)
    return quoted


def _no_op(reader: Reader) -> NotationError:
    """The error for whatever stands after ``op=``; a program without parentheses is shown with them."""
    if matches_form(reader):
        bare = reader.text[reader.pos : reader.end].partition("~")
        stop = past_pattern(reader, reader.pos + len(bare[0]) + 1)
        shown = reader.span(reader.pos, stop)
        text = shown.text().strip(BLANKS)
        message = "the program after `op=` stands in parentheses"
        return NotationError("E0112", message, shown, f"write `op=({text})`")
    return reader.unexpected("E0112", "an operation or a component", OP_HELP)


def _given_twice(name: str, span: Span) -> NotationError:
    return NotationError("E0166", f"{name} is given twice", span, "give it once")


def _expect(reader: Reader, sign: str, wanted: str) -> None:
    if reader.skip() != sign:
        raise reader.unexpected("E0112", wanted, CALL_HELP)
    reader.take(reader.pos + 1)


def _parameter(reader: Reader, before: list[Parameter]) -> Parameter:
    """``r=4``."""
    name = _name(reader, "E0166", "a parameter")
    if any(each.name == name.text() for each in before):
        raise _given_twice(name.text(), name)
    if reader.skip() in (",", ")"):
        help_line = f'arrays stand behind the operation: `einx.id("a b -> b a")({name.text()})`'
        raise reader.unexpected("E0112", f"`=` after {name.text()}", help_line)
    _expect(reader, "=", f"`=` after {name.text()}")
    value = _value(reader, 0)
    return Parameter(name.text(), value, reader.span(name.start))


def _value(reader: Reader, depth: int) -> Sizes:
    """``4``, ``-1``, ``(4, 2)``."""
    c = reader.skip()
    if c == "(" and depth < DEEPEST:
        return _tuple(reader, depth)
    word = reader.word()
    if word in TRUTH:
        reader.take(reader.pos + len(word))
        return TRUTH[word]
    begin = reader.pos + (c == "-")
    stop = reader.past(DIGITS, begin)
    if stop == begin:
        raise reader.unexpected("E0166", "a whole number, or several in parentheses", CALL_HELP)
    number = number_below(reader.text[begin:stop], LARGEST)
    span = reader.take(stop)
    if number is None:
        raise NotationError("E0166", "this number is too large", span, "no array is as long")
    return -number if c == "-" else number


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
