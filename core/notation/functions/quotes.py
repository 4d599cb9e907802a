"""Texts in quotes inside tensor functions and routines: specifications, and what follows ``~``.

``"ij; jk => ik"``, ``~schedule:"| splits | order"``, ``~logic:"@"``
"""

from __future__ import annotations

from typing import Literal, cast

from ilang.core.diagnostic import NotationError
from ilang.core.ir.functions import Logic
from ilang.core.ir.spec import Spec
from ilang.core.ir.syntax import Schedule
from ilang.core.notation.einsum.specification import parse_spec
from ilang.core.notation.functions.tokens import expect, lexeme, lexeme_at, take, unexpected
from ilang.core.notation.index.schedule import parse_schedule
from ilang.core.notation.reader import Reader
from ilang.core.source import Span


def read_spec(reader: Reader, help_line: str, right: bool) -> Spec:
    """A specification in quotes; ``right``: tidy text has a space after it."""
    token = lexeme(reader)
    if token.kind != "string":
        raise unexpected(reader, "E0191", "a specification in quotes", help_line)
    span = take(reader, left=True, right=right)
    return parse_spec(reader.source, reader.span(span.start + 1, span.end - 1))


def read_schedule(reader: Reader) -> Schedule:
    """``~schedule:"| splits | order"`` at the cursor."""
    help_line = '`~schedule:"| i:8 | i i\' j"`'
    read_label(reader, "schedule")
    token = lexeme(reader)
    if token.kind != "string":
        raise unexpected(reader, "E0191", "a schedule in quotes", help_line)
    span = take(reader)
    inner = Reader(reader.source, span.start + 1, span.end - 1, reader.text, None, "schedule")
    if inner.skip() != "|":
        raise unexpected(inner, "E0120", "`|`")
    schedule = parse_schedule(inner, True)
    if inner.skip():
        raise unexpected(inner, "E0120", "the end of the schedule")
    return schedule


def at_label(reader: Reader, name: str) -> bool:
    """Whether ``~name`` stands at the cursor."""
    token = lexeme(reader)
    follows = lexeme_at(reader, token.end)
    return token.text == "~" and token.kind == "sign" and follows.text == name


def read_label(reader: Reader, name: str) -> Span:
    """``~name:``; gives the place of the first character."""
    span = expect(reader, "~", f"`~{name}`", "E0191", left=True)
    expect(reader, name, f"`{name}`", "E0191")
    expect(reader, ":", f"`:` after `~{name}`", "E0191")
    return span


def read_logic(part: Reader) -> Logic:
    """``~logic:"@"`` at the cursor."""
    part.skip()
    start = part.pos
    read_label(part, "logic")
    token = lexeme(part)
    help_line = '`~logic:"."` goes element by element, `"@"` contracts, `"T"` transposes; or a specification'
    if token.kind != "string":
        raise unexpected(part, "E0197", "a logic in quotes", help_line)
    span: Span = take(part)
    text = token.text[1:-1].strip()
    whole = part.span(start)
    if not text:
        raise NotationError("E0197", "this logic is empty", span, help_line)
    if text in (".", "@", "T"):
        return Logic(cast("Literal['.', '@', 'T']", text), None, whole)
    spec = parse_spec(part.source, part.span(span.start + 1, span.end - 1))
    return Logic("spec", spec, whole)
