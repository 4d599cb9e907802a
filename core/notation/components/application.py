"""Bodies over names: applications, ``f(x, g(y))``, and blocks, ``{ n = norm(x, g); y, n }``.

A body over names means exactly the wiring that it replaces; here its text becomes syntax. A block is cut into its
statements first, so that a mistake in one of them hides none of another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TypeVar

from ilang.core.diagnostic import Error, ModuleError, NotationError, keep
from ilang.core.ir import syntax
from ilang.core.notation.components.combinator import (
    DEEPEST,
    parse_program,
    read_component,
    read_number,
)
from ilang.core.notation.components.values import BodyNames
from ilang.core.notation.index.lookahead import CALLED, applied, begins_application, matches_form
from ilang.core.notation.lines import marks, statements
from ilang.core.notation.reader import BLANKS, DIGITS, WORD_START, Reader, unclosed
from ilang.core.source import Span

NAMES = re.compile(r"[A-Za-z_]\w*")
BINDS = re.compile(r"[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*\s*=(?!=)", re.ASCII)
"""The beginning of a statement that binds names."""
UNFINISHED = r"[-+*/<>^$=!&|~,]$"
"""The end of a line whose statement goes on."""
STATEMENT_HELP = "a statement is `name = f(x)`, and the last one lists the outputs: `name, g(x)`"
ARGUMENT_HELP = "an argument is a value, a number, or an application: `f(x, 2, g(y))`"
WIRED_HELP = "hand its result on as an argument: `g(f(x))`; or wire programs before: `(f >> g)(x)`"

Result = TypeVar("Result")


def read_body(
    reader: Reader,
    definitions: Collection[str],
    parameters: tuple[syntax.NamedInput, ...],
    refused: list[Error],
) -> syntax.Application | syntax.Block | None:
    """The body over names that fills a reader.

    The errors of the body go to ``refused``, all of them; the body is then what can be read, or None.
    """
    inputs = {p.name: p.span.begin(len(p.name)) for p in parameters}
    scope = BodyNames(definitions, inputs)
    for name, span in inputs.items():
        try:
            scope.refuse_definition(name, span)
        except ModuleError as error:
            refused.append(error)
    reader.skip()
    end = reader.span(max(reader.pos, reader.end - 1), reader.end)
    body = read_whole(reader, scope, refused)
    if scope.complete:
        refused += scope.unused(end)
    return body


def read_whole(
    reader: Reader, scope: BodyNames, refused: list[Error]
) -> syntax.Application | syntax.Block | None:
    """The application, or the block, that fills a reader; what is wrong goes to ``refused``."""
    if reader.skip() == "{":
        return _statement(reader, scope, refused, lambda r, names: _block(r, names, refused))
    return _statement(reader, scope, refused, read_application)


def _statement(
    reader: Reader,
    scope: BodyNames,
    refused: list[Error],
    read: Callable[[Reader, BodyNames], Result],
) -> Result | None:
    """The statement that fills a reader; None where it is refused: then not all values of the scope are known."""
    start = reader.pos
    try:
        result = read(reader, scope)
        if reader.skip():
            help_line = WIRED_HELP if reader.combinator(reader.pos) else STATEMENT_HELP
            raise _unexpected(reader, "E0109", f"the end of the {reader.unit}", help_line)
    except (NotationError, ModuleError) as error:
        from ilang.core.notation.advice import advised

        scope.complete = False
        keep(refused, advised(error, reader, start, parse_program))
        return None
    return result


# -- applications --------------------------------------------------------------------------------------------------


class _Open:
    """An application whose arguments are being read."""

    def __init__(self, start: int, component: syntax.Tree, bracket: Span) -> None:
        self.start = start
        self.component = component
        self.bracket = bracket
        self.arguments: list[syntax.Argument] = []


def read_application(reader: Reader, scope: BodyNames) -> syntax.Application:
    """One application, with those inside it."""
    argument = read_argument(reader, scope, only=True)
    assert isinstance(argument, syntax.Application)
    return argument


def read_argument(reader: Reader, scope: BodyNames, *, only: bool = False) -> syntax.Argument:
    """An argument, or an output of a block; ``only`` an application is one at the top.

    Raises:
        Error: NotationError E0110, E0114, E0130; ModuleError E0401, E0424, E0425; those of components.
    """
    waiting: list[_Open] = []
    while True:
        reader.skip()
        if begins_application(reader, scope.definitions) >= 0 and _spelled(reader, scope) is None:
            waiting.append(_opened(reader, scope, len(waiting)))
            if reader.skip() != ")":
                continue
            argument: syntax.Argument = _closed(reader, waiting.pop())
        elif only and not waiting:
            raise _no_application(reader)
        else:
            argument = _leaf(reader, scope, bool(waiting))
        while waiting:
            waiting[-1].arguments.append(argument)
            c = reader.skip()
            if c == ",":
                reader.take(reader.pos + 1, right=True)
                break
            if c != ")":
                raise _no_comma(reader, waiting[-1].bracket)
            argument = _closed(reader, waiting.pop())
        else:
            return argument


def _opened(reader: Reader, scope: BodyNames, depth: int) -> _Open:
    """Take a component and the parenthesis after it."""
    start = reader.pos
    if depth == DEEPEST:
        message = f"more than {DEEPEST} applications are open"
        raise NotationError("E0114", message, reader.here(), "give some of them a name in a block")
    component = read_component(reader, scope.definitions, scope.component)
    reader.skip()
    return _Open(start, component, reader.take(reader.pos + 1))


def _closed(reader: Reader, application: _Open) -> syntax.Application:
    reader.take(reader.pos + 1)
    arguments = tuple(application.arguments)
    return syntax.Application(application.component, arguments, reader.span(application.start))


def _spelled(reader: Reader, scope: BodyNames) -> str | None:
    """The name of the argument at the cursor, where it is one that the scope knows by its spelling."""
    return scope.spelled(reader.text[reader.pos : _past_argument(reader)].rstrip(BLANKS))


def _leaf(reader: Reader, scope: BodyNames, inside: bool) -> syntax.Argument:
    """An argument that is no application; ``inside`` parentheses others may follow it."""
    c = reader.peek()
    stop = _past_argument(reader)
    name = _spelled(reader, scope)
    if name is not None:
        return scope.read(name, reader.take(stop))
    if matches_form(reader):
        shown = reader.span(reader.pos, stop)
        message = "a program stands where a value belongs"
        text = " ".join(shown.text().split())
        help_line = f"apply it: `{applied(text)}`" if len(text) < 40 else ARGUMENT_HELP
        raise NotationError("E0130", message, shown, help_line)
    digit = reader.peek(1) if c == "-" else c
    if digit in DIGITS:
        number = read_number(reader)
        assert isinstance(number, syntax.Number)  # whatever else begins so is refused there
        return number
    span = reader.take_name()
    if span is not None:
        return scope.read(span.text(), span)
    wanted = "an argument" if inside else "an output"
    raise _unexpected(reader, "E0130", wanted, ARGUMENT_HELP)


def _unexpected(reader: Reader, code: str, wanted: str, help_line: str) -> NotationError:
    """An error at the cursor; braces and `;` are no characters of programs, but of blocks."""
    if reader.peek() in ("{", "}", ";"):
        message = f"expected {wanted} before {reader.found()}"
        return NotationError(code, message, reader.here(), help_line)
    return reader.unexpected(code, wanted, help_line)


def _past_argument(reader: Reader) -> int:
    """The end of an argument: at a comma or a bracket that is not its own."""
    ahead = marks(reader.text, reader.pos, reader.end, 1)
    return next((at for at, c, depth in ahead if depth < (2 if c == "," else 1)), reader.end)


def _no_comma(reader: Reader, bracket: Span) -> NotationError:
    if not reader.peek():
        return unclosed(bracket, "write the `)` that is missing")
    help_line = ARGUMENT_HELP
    if reader.combinator(reader.pos):
        help_line = WIRED_HELP
    elif reader.operator(reader.pos):
        help_line = "components compute with values: `(ij+ij~ij)(x, y)`"
    return reader.unexpected("E0130", "`,` or `)`", help_line)


def _no_application(reader: Reader) -> NotationError:
    c = reader.peek()
    if c in WORD_START and not matches_form(reader):
        help_line = "apply a component to it, `f(x)`, or write the value itself where it is read"
    elif c and matches_form(reader):
        called = reader.matches(CALLED)
        help_line = f"apply it: `name = {applied(called[0] if called else '+ij~i')}`"
    else:
        help_line = STATEMENT_HELP
    return reader.unexpected("E0131", "an application", help_line)


# -- blocks --------------------------------------------------------------------------------------------------------


def _block(reader: Reader, scope: BodyNames, refused: list[Error]) -> syntax.Block:
    """The statements of a block, without those that are refused."""
    start = reader.pos
    parts = statements(reader, "a block ends in `}`: `{ y = f(x); y }`", UNFINISHED)
    if not parts or parts[-1].matches(BINDS):
        span = reader.span(reader.pos - 1)
        raise NotationError("E0132", "the block gives no output", span, STATEMENT_HELP)
    *above, last = parts
    heads = [(part, _targets(part, scope, refused)) for part in above]
    bindings = [_binding(part, targets, scope, refused) for part, targets in heads]
    outputs = _statement(last, scope, refused, _outputs)
    read = tuple(binding for binding in bindings if binding is not None)
    return syntax.Block(read, outputs or (), reader.span(start))


def _targets(
    part: Reader, scope: BodyNames, refused: list[Error]
) -> tuple[syntax.Value, ...] | None:
    """The names that a statement binds, which later statements may read; None where they cannot be told."""
    match = part.matches(BINDS)
    if match is None:
        refused.append(_no_binding(part, scope))
        return None
    targets = []
    while part.peek() != "=":
        if part.peek() == ",":
            part.take(part.pos + 1, right=True)
            part.skip()
        span = part.take(part.pos + len(part.word()))
        name = span.text()
        targets.append(syntax.Value(name, span))
        part.skip()
        if name == syntax.DISCARD:
            continue
        try:
            scope.bind(name, span, part.end)
        except ModuleError as error:
            refused.append(error)
    part.take(part.pos + 1, left=True, right=True)
    return tuple(targets)


def _no_binding(part: Reader, scope: BodyNames) -> NotationError:
    """The error for a statement above the last that binds nothing; the words before its ``=`` count as values."""
    scope.complete = False
    text, equals, _ = part.text[part.pos : part.end].partition("=")
    for name in NAMES.findall(text) if equals else ():
        scope.values.setdefault(name, part.span(part.pos, part.end))
    message = "a statement above the last one binds names, and this one does not"
    return NotationError("E0132", message, part.span(part.pos, part.end), STATEMENT_HELP)


def _binding(
    part: Reader, targets: tuple[syntax.Value, ...] | None, scope: BodyNames, refused: list[Error]
) -> syntax.Binding | None:
    """A statement whose names are read already."""
    if targets is None:
        return None
    application = _statement(part, scope, refused, read_application)
    if application is None:
        return None
    return syntax.Binding(targets, application, targets[0].span.to(application.span))


def _outputs(reader: Reader, scope: BodyNames) -> tuple[syntax.Argument, ...]:
    """``y, f(x)``."""
    outputs = [read_argument(reader, scope)]
    while reader.skip() == ",":
        reader.take(reader.pos + 1, right=True)
        outputs.append(read_argument(reader, scope))
    return tuple(outputs)
