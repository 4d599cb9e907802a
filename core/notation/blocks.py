"""Blocks of tensor functions and routines, cut into statements, so that a mistake in one hides none of another.

In:  ``{ m = x ++ "...|... => 0"; x -. m *. 0.5 }``
Out: ``Body((Bound("m", ...),), ...)``

``"mean" =: EXPR`` among them says what a tensor has in the next run.
A statement ends with its line, unless a bracket is open or the line ends in an operator or a comma; ``;`` divides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from ilang.core.diagnostic import Error, NotationError, gathered
from ilang.core.ir.functions import Body, Mark, NameBinding, StateUpdate, Term
from ilang.core.ir.syntax import DISCARD
from ilang.core.notation.lookahead import past_bracket
from ilang.core.notation.reader import BLANKS, UNFINISHED, Reader
from ilang.core.notation.tokens import Context, lexeme, take, unexpected
from ilang.core.record import replace

BINDS = re.compile(r"[A-Za-z_]\w*\s*=(?!=)", re.ASCII)
"""The beginning of a statement that binds a name."""
KEEPS = re.compile(r'"[^"]*"[^"]*=:')
"""The beginning of a statement that says what a tensor has in the next run."""
ASSIGN = re.compile(r"=(?:(:)(\*\*|@\^|@-|&&|\|\||\?/|[-+*/])?|(\*\*|@\^|@-|&&|\|\||\?/|[-+*/]))")
"""An operator of assignment; `=` alone binds."""
BLOCK_HELP = "a block is `{ name = expression; expression }`: what it ends in is its value"
KEPT_HELP = 'what a tensor has in the next run is written `"mean" 0.0 =: expression`'
Result = TypeVar("Result")


def read_block(reader: Reader, context: Context) -> Body:
    """The block at the cursor: bindings, and the expression that it ends in.

    Raises:
        NotationError: E0110, E0132, those of expressions, all of them together.
    """
    from ilang.core.notation.terms import read_whole_term

    start = reader.pos
    parts = statements(reader)
    if not parts or binds(parts[-1]) or KEEPS.match(parts[-1].text, parts[-1].pos, parts[-1].end):
        span = reader.span(reader.pos - 1)
        raise NotationError("E0132", "the block ends in no expression", span, BLOCK_HELP)
    *above, last = parts
    refused: list[Error] = []
    bindings = collected(above, lambda part: _statement(part, context), refused)
    results = collected([last], lambda part: read_whole_term(part, context), refused)
    if refused:
        raise gathered(refused)
    return Body(tuple(bindings), results[0], reader.span(start))


def collected(
    parts: Sequence[Reader], read: Callable[[Reader], Result], refused: list[Error]
) -> list[Result]:
    """The results of reading each part; errors of parts that are refused go to ``refused``."""
    results: list[Result] = []
    for part in parts:
        try:
            results.append(read(part))
        except Error as error:
            others, error.others = error.others, ()
            refused += (error, *others)
    return results


def statements(reader: Reader) -> list[Reader]:
    """The statements of the block at the cursor, a reader each; the cursor then stands after it."""
    start = reader.pos
    close = past_bracket(reader, start) - 1
    if close < 0:
        place = reader.span(start, start + 1)
        raise NotationError("E0110", "this brace is never closed", place, "close it with `}`")
    reader.take(start + 1, left=True, right=True)
    parts = divided(reader, close, by_lines=True)
    reader.take(close + 1, left=True)
    return parts


def divided(reader: Reader, close: int, by_lines: bool) -> list[Reader]:
    """The text from the cursor to ``close``, divided by ``;``, and by lines; the ``;`` are taken."""
    bounds: list[tuple[int, int]] = []
    begin, depth, quote = reader.pos, 0, ""
    for at in range(reader.pos, close + 1):
        c = reader.text[at]
        if quote:
            quote = "" if c == quote else quote
            continue
        quote = c if c == '"' and at < close else ""
        ends = at == close or (not depth and (c == ";" or (c == "\n" and by_lines)))
        depth += (c in "([{") - (c in ")]}")
        code = reader.text[begin:at].strip(BLANKS) if ends else ""
        if not ends or (c == "\n" and re.search(UNFINISHED, code)):
            continue
        if code:
            first = reader.past(BLANKS, begin)
            bounds.append((first, first + len(code)))
        if c == ";" and at < close:
            reader.pos = at
            reader.take(at + 1, right=True)
        begin = at + 1
    reader.pos = close
    return [reader.part(first, end, "statement") for first, end in bounds]


def binds(part: Reader) -> bool:
    """Whether a statement binds a name."""
    return BINDS.match(part.text, part.pos, part.end) is not None


def _statement(part: Reader, context: Context) -> NameBinding | StateUpdate:
    """A binding, or ``"name" =: EXPR``, which fills a reader."""
    from ilang.core.notation.terms import read_declared, read_whole_term

    start = part.pos
    if lexeme(part).kind != "string":
        name = BINDS.match(part.text, start, part.end)
        if name is not None and part.text.startswith(":", name.end()):
            message = (
                f"`{name.group()}:` assigns, and what lasts from run to run is named by a string"
            )
            raise NotationError("E0132", message, part.span(start, name.end() + 1), KEPT_HELP)
        return read_binding(part, context)
    target = replace(read_declared(part, context), kept=True)
    part.skip()
    sign = ASSIGN.match(part.text, part.pos, part.end)
    if sign is None or sign.group() != "=:":
        raise unexpected(part, "E0132", f"`=:` after `{target.span.text()}`", KEPT_HELP)
    part.take(sign.end(), left=True, right=True)
    return StateUpdate(target, read_whole_term(part, context), part.span(start))


def read_binding(part: Reader, context: Context) -> NameBinding:
    """``name = EXPR``, which fills a reader."""
    from ilang.core.notation.terms import read_whole_term

    start = part.pos
    if not binds(part):
        message = "a statement above the last one binds a name, and this one does not"
        raise NotationError("E0132", message, part.span(start, part.end), BLOCK_HELP)
    place = take(part, lexeme(part))
    take(part, lexeme(part), left=True, right=True)
    term: Term = read_whole_term(part, context)
    name = None if place.text() == DISCARD else place.text()
    return NameBinding(name, term, Mark(place), part.span(start))


def refuse_brace(reader: Reader, help_line: str) -> None:
    """Refuse what is no brace, where a block begins."""
    if lexeme(reader).text != "{":
        raise unexpected(reader, "E0197", "`{` and the statements", help_line)
