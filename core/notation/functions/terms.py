"""The reader of expressions of tensor functions: ``?/("w" * x + "b" hid)``, and of blocks of them.

In:  ``-x **. 2 + f(x; 64) @| 0``
Out: ``Binary("+", Unary("-", Binary("**.", x, 2)), Sliced(Called(f), 0))``

Operators are read by how tightly they bind (``tokens.BINDING``): one loop for what leans left, and one call deeper for
each bracket and prefix.
"""

from __future__ import annotations

from itertools import count
from typing import cast

from ilang.core.diagnostic import Error, NotationError, gathered
from ilang.core.ir import functions as ast
from ilang.core.ir.primitives import TEXTS
from ilang.core.ir.syntax import DISCARD, Tree
from ilang.core.notation.components.combinator import named_component, read_parenthesis, read_quoted
from ilang.core.notation.functions import tokens
from ilang.core.notation.functions.numbers import is_literal, number_of, read_literal, read_unit
from ilang.core.notation.functions.quotes import at_label, read_schedule, read_spec
from ilang.core.notation.index.lookahead import CALLED, applied, matches_form
from ilang.core.notation.lines import collected, past_bracket, statements
from ilang.core.notation.reader import BLANKS, QUOTED, TYPES, Lexeme, Reader
from ilang.core.record import replace
from ilang.core.source import Span

BLOCK_HELP = "a block is `{ name = expression; expression }`: what it ends in is its value"
KEPT_HELP = 'what a tensor has in the next run is written `"mean" 0.0 =: expression`'
TERM_HELP = "an expression is like `?/(w * x + b)`, and every operator has its operands"
PARTS_HELP = "the parts are `.value`, `.grad`, `.merge` and `.grad.merge`"
STRING_HELP = (
    'what follows a parameter is an extent, `"b" 16` or `"b" (2, 3)`, or where it starts: `"b" 0.5`'
)


def read_whole_term(reader: Reader, context: tokens.Context) -> ast.Term:
    """The expression that fills a reader.

    Raises:
        NotationError: E0102, E0110, E0112, E0114, E0116, E0191 to E0194, E0196, those of components.
    """
    term = read_term(reader, context)
    tokens.finished(reader, "E0191", usual=TERM_HELP)
    return term


def read_term(reader: Reader, context: tokens.Context, least: int = 0) -> ast.Term:
    """An expression of operators that bind at least so tightly."""
    start = reader.pos = reader.past(BLANKS, reader.pos)
    left = _prefixed(reader, context)
    compared = powered = False
    while True:
        token = tokens.lexeme(reader)
        level = tokens.BINDING.get(token.text, -1) if token.kind == "sign" else -1
        if level < least or level < 0:
            return left
        if (level == tokens.COMPARISON and compared) or (level == tokens.POWER and powered):
            raise _chained(reader, token, left)
        compared, powered = level == tokens.COMPARISON, level == tokens.POWER
        place = tokens.take(reader, left=True, right=True)
        tokens.refuse_joined(reader, token.text, place)
        reader.count(place)
        if token.text in ("++", "*+"):
            left = _einsum(reader, context, left, token.text, start)
        elif token.text == "@|":
            left = ast.Sliced(left, _position(reader, context), reader.span(start))
        else:
            right = (
                _exponent(reader, context)
                if level == tokens.POWER
                else read_term(reader, context, level + 1)
            )
            operator = cast("ast.Infix", token.text)
            refuse_number(operator, left, right, place)
            left = ast.Binary(operator, left, right, place, reader.span(start))


def _chained(reader: Reader, token: Lexeme, left: ast.Term) -> NotationError:
    """The error for a second comparison, or a second power."""
    span = reader.span(reader.pos, token.end)
    if token.text == "**.":
        help_line = "group with parentheses: `(x **. 2) **. 3`"
        return NotationError("E0194", "powers do not chain", span, help_line)
    shown = left.right.span.text() if isinstance(left, ast.Binary) else "b"
    shown = " ".join(shown.split())
    shown = shown if len(shown) < 40 else "b"
    help_line = f"compare twice: `… && {shown} {token.text} …`; or group with parentheses"
    return NotationError("E0194", "comparisons do not chain", span, help_line)


def refuse_number(operator: str, left: ast.Term, right: ast.Term, place: Span) -> None:
    """Refuse a number beside a contraction.

    Raises:
        NotationError: E0192.
    """
    if operator not in ("*", "/"):
        return
    for each in (left, right):
        if isinstance(each, ast.Number | ast.Unary) and _is_number(each):
            effect = "contracts axes" if operator == "*" else "divides along axes"
            message = f"`{operator}` {effect}, and {each.span.text()} is a number"
            texts = [side.span.text().strip() for side in (left, right)]
            help_line = f"write `{operator}.`"
            if sum(map(len, texts)) < 60 and "\n" not in "".join(texts):
                help_line += f": `{texts[0]} {operator}. {texts[1]}`"
            raise NotationError("E0192", message, place, help_line)


def _is_number(term: ast.Term) -> bool:
    while isinstance(term, ast.Unary) and term.operator in ("-", "!.", "!.."):
        term = term.operand
    return isinstance(term, ast.Number)


def _prefixed(reader: Reader, context: tokens.Context) -> ast.Term:
    token = tokens.lexeme(reader)
    is_prefix = token.text in ("-", "?/", "!.", "!..") and token.kind == "sign"
    if not is_prefix and token.text != "not":
        return _primary(reader, context)
    start = reader.pos
    operator = cast("ast.Prefix", token.text)
    follows = tokens.lexeme_at(reader, token.end)
    apart = operator == "not" or (operator.startswith("!") and follows.kind == "number")
    apart = apart or (operator == "-" and follows.text == "?/")
    span = tokens.take(reader, right=apart)
    tokens.refuse_joined(reader, token.text, span)
    context.enter(span)
    operand = read_term(reader, context, tokens.POWER if operator == "-" else tokens.CALL)
    context.leave()
    return ast.Unary(operator, operand, reader.span(start))


def _exponent(reader: Reader, context: tokens.Context) -> ast.Term:
    """The term right of ``**.``: a number, perhaps with a sign, or configuration."""
    token = tokens.lexeme(reader)
    if token.text != "-":
        return _primary(reader, context)
    start = reader.pos
    tokens.take(reader)
    return ast.Unary("-", _primary(reader, context), reader.span(start))


def _position(reader: Reader, context: tokens.Context) -> ast.Term:
    """The term right of ``@|``."""
    if tokens.sign(reader) == "-":
        help_line = "positions count from 0: `x @| 0` is the first"
        raise tokens.unexpected(reader, "E0191", "a position", help_line)
    return _primary(reader, context)


def _einsum(
    reader: Reader, context: tokens.Context, left: ast.Term, text: str, start: int
) -> ast.Term:
    """The term that ``++`` or ``*+`` makes of the one before it and of what follows."""
    help_line = f'`{text}` is followed by a specification: `x {text} "..."`'
    spec = read_spec(reader, help_line, text == "*+")
    if text == "++":
        return ast.EinsumTerm((left,), spec, reader.span(start))
    right = read_term(reader, context, tokens.BINDING["*+"] + 1)
    return ast.EinsumTerm((left, right), spec, reader.span(start))


# -- operands --------------------------------------------------------------------------------------------------------


def _primary(reader: Reader, context: tokens.Context) -> ast.Term:
    """A name, a number, a string, a literal, a call, or an expression in parentheses."""
    token = tokens.lexeme(reader)
    match token.kind:
        case "number":
            return tokens.take_number(reader)
        case "string":
            return _part(reader, context, read_declared(reader, context))
        case "label":
            return read_unit(reader)
        case "word":
            return _word(reader, context, token)
        case _:
            return _bracketed(reader, context, token)


def _bracketed(reader: Reader, context: tokens.Context, token: Lexeme) -> ast.Term:
    if token.text == "(":
        return _parenthesis(reader, context)
    if token.text in ("[", "[|"):
        return read_literal(reader, reader.pos)
    if token.text == "**":
        raise tokens.unexpected(reader, "E0191", "an operand", "the pointwise power is `**.`")
    if token.text == ".":
        help_line = "a number begins with a digit: `0.5`"
        raise tokens.unexpected(reader, "E0191", "an operand", help_line)
    raise _no_operand(reader)


def _no_operand(reader: Reader) -> NotationError:
    """The error for what is no operand; a bare program may stand there."""
    called = reader.matches(CALLED)
    stop = reader.pos if called is None else called.end()
    while stop < reader.end and reader.text[stop] not in BLANKS + ",;)":
        stop += 1
    if matches_form(reader) and stop - reader.pos < 40:
        shown = reader.span(reader.pos, stop)
        message = "a program stands where a value belongs"
        return NotationError("E0191", message, shown, f"apply it: `{applied(shown.text())}`")
    return tokens.unexpected(reader, "E0191", "an operand", usual=TERM_HELP)


def _word(reader: Reader, context: tokens.Context, token: Lexeme) -> ast.Term:
    start = reader.pos
    text = token.text
    follows = tokens.lexeme_at(reader, token.end).text
    if text in tokens.CONSTANTS:
        return ast.Number(text, tokens.CONSTANTS[text], True, tokens.take(reader))
    if text == "repeat":
        return _repeat(reader, context)
    if text in QUOTED and follows in ("(", "."):
        return _call(reader, context, read_quoted(reader, context.definitions), start)
    if text in TYPES or text == "I":
        return _call(reader, context, named_component(text, tokens.take(reader)), start)
    if text in tokens.WORDS or text == "not":
        message = f"`{text}` is a word of the language, and an operand belongs here"
        span = reader.span(start, token.end)
        raise NotationError("E0191", message, span, tokens.WORDS_INSTEAD.get(text, TERM_HELP))
    name = ast.Reference(context.slots.get(text, text), tokens.take(reader))
    return _call(reader, context, name, start) if follows == "(" else _part(reader, context, name)


def read_tensor(
    reader: Reader, context: tokens.Context
) -> ast.Reference | ast.Access | ast.Declared:
    """A name, or a string that declares one, and perhaps a part of it; a word or a string stands at the cursor."""
    token = tokens.lexeme(reader)
    span = tokens.take(reader)
    if token.kind == "string":
        return _part(reader, context, ast.Declared(token.text[1:-1], None, None, span))
    return _part(reader, context, ast.Reference(context.slots.get(token.text, token.text), span))


def read_operand(reader: Reader, context: tokens.Context, signed: bool = False) -> ast.Term | None:
    """An operand of an assignment: a name, a part, a number, a call, or an expression in parentheses; else None.

    ``signed``: a number may have a minus.
    """
    token = tokens.lexeme(reader)
    follows = tokens.lexeme_at(reader, token.end)
    if token.text in ("!.", "!..") or (signed and token.text == "-" and follows.kind == "number"):
        return _prefixed(reader, context)
    if token.text in ("repeat", "not") or (
        token.kind not in ("word", "number") and token.text != "("
    ):
        return None
    return _primary(reader, context)


def _part(
    reader: Reader, context: tokens.Context, tensor: ast.Reference | ast.Declared
) -> ast.Reference | ast.Access | ast.Declared:
    """A tensor, or a part of it: ``x.grad``."""
    if not reader.at(".") or tokens.lexeme(reader).text != ".":
        return tensor
    dot = tokens.take(reader)
    parts = [_part_name(reader, dot)]
    while reader.at("."):
        dot = tokens.take(reader)
        parts.append(_part_name(reader, dot))
    span = reader.span(tensor.span.start)
    if not context.code:
        message = f"`{span.text()}` is a part of a tensor, and those belong in routines"
        raise NotationError("E0198", message, span, "write the tensor itself")
    text = ".".join(parts).removeprefix("value.")
    if text not in ("value", "grad", "merge", "grad.merge"):
        message = f"a tensor has no part `.{'.'.join(parts)}`"
        raise NotationError("E0198", message, span, PARTS_HELP)
    return ast.Access(tensor, cast("ast.Part", text), span)


def _part_name(reader: Reader, dot: Span) -> str:
    token = tokens.lexeme(reader)
    if token.text not in tokens.PARTS:
        span = dot.to(reader.span(reader.pos, token.end))
        message = f"a tensor has no part `{span.text()}`"
        help_line = tokens.part_instead(token.text) or PARTS_HELP
        raise NotationError("E0198", message, span, help_line)
    return tokens.take(reader).text()


def _parenthesis(reader: Reader, context: tokens.Context) -> ast.Term:
    """A program before its arguments, numbers along an input axis, or an expression."""
    start = reader.pos
    stop = past_bracket(reader, start)
    if stop > 0 and tokens.lexeme_at(reader, stop).text == "(":
        return _call(reader, context, read_parenthesis(reader, context.definitions), start)
    if stop > 0 and is_literal(reader.text[start:stop]):
        return read_literal(reader, start)
    bracket = tokens.take(reader)
    context.enter(bracket)
    term = read_term(reader, context)
    context.leave()
    if tokens.sign(reader) == ",":
        message = "an expression in parentheses is one value"
        help_line = (
            "numbers in parentheses have an input axis: `(1, 2)`; `[ 1; 2 ]` has an output axis"
        )
        raise NotationError("E0191", message, reader.here(), help_line)
    tokens.closing(reader, ")", bracket, "E0191")
    if at_label(reader, "schedule"):
        return ast.ScheduledExpression(term, read_schedule(reader), reader.span(start))
    return term


def read_declared(reader: Reader, context: tokens.Context) -> ast.Declared:
    """A string, and what follows it."""
    start = reader.pos
    span = tokens.take(reader)
    name = span.text()[1:-1]
    token = tokens.lexeme(reader)
    extents: tuple[ast.Term, ...] | None = None
    initial: ast.Number | ast.Nested | None = None
    if token.kind == "number":
        number = tokens.take_number(reader, left=True)
        extents, initial = ((number,), None) if number.whole else (None, number)
    elif token.kind == "word" and token.text not in tokens.WORDS and token.text != "not":
        extents = (ast.Reference(token.text, tokens.take(reader, left=True)),)
    elif token.text == "(":
        extents, initial = _extents(reader, context)
    elif token.text in ("[", "[|"):
        initial = read_literal(reader, reader.pos, left=True)
    end = span.end if extents is None and initial is None else reader.pos
    reader.pos = end
    return ast.Declared(name, extents, initial, reader.span(start, end))


def _extents(
    reader: Reader, context: tokens.Context
) -> tuple[tuple[ast.Term, ...] | None, ast.Number | None]:
    """``(2, hid)``, ``(2 *. hid)``, or one number that a parameter starts from: ``(-0.5)``."""
    bracket = tokens.take(reader, left=True)
    context.enter(bracket)
    terms = tokens.listed(reader, (), lambda: read_term(reader, context))
    context.leave()
    tokens.closing(reader, ")", bracket, "E0196", "`,` or `)`")
    for each in terms:
        number, negative = number_of(each)
        if number is None or (number.whole and not negative):
            continue
        if len(terms) == 1 and not number.whole:
            value = -number.value if negative else number.value
            text = f"-{number.text}" if negative else number.text
            return None, ast.Number(text, value, False, each.span)
        message = f"the extent of an axis is a whole number, and this is {each.span.text()}"
        raise NotationError("E0196", message, each.span, STRING_HELP)
    return tuple(terms), None


# -- calls -----------------------------------------------------------------------------------------------------------


def _call(
    reader: Reader, context: tokens.Context, component: ast.Reference | Tree, start: int
) -> ast.Called:
    """A component whose arguments follow: ``layer(x; 64)``."""
    if tokens.sign(reader) != "(":
        help_line = "a component is applied to its arguments: `(+ij~i)(x)`"
        raise tokens.unexpected(reader, "E0191", "`(` and the arguments", help_line)
    bracket = tokens.take(reader)
    context.enter(bracket)
    name = component.name if isinstance(component, ast.Reference) else ""
    text_at = -1 if name in context.definitions else TEXTS.get(name, -1)
    number = count()
    arguments = tokens.listed(
        reader, (")", ";"), lambda: _argument(reader, context, next(number) == text_at)
    )
    settings = read_settings(reader, context) if tokens.sign(reader) == ";" else None
    wanted = "`,`, `;` or `)`" if settings is None else "`,` or `)`"
    tokens.closing(reader, ")", bracket, "E0191", wanted)
    context.leave()
    reader.count(reader.span(start))
    return ast.Called(component, tuple(arguments), settings, reader.span(start))


def _argument(reader: Reader, context: tokens.Context, is_text: bool) -> ast.Term:
    token = tokens.lexeme(reader)
    if is_text and token.kind == "string":
        return ast.Text(token.text[1:-1], tokens.take(reader))
    return read_term(reader, context)


def read_settings(reader: Reader, context: tokens.Context) -> tuple[ast.Setting, ...]:
    """``; 64, momentum = 0.9`` at the cursor."""
    tokens.take(reader, right=True)
    return tuple(tokens.listed(reader, (")",), lambda: _setting(reader, context)))


def _setting(reader: Reader, context: tokens.Context) -> ast.Setting:
    """``64``, ``momentum = 0.9``."""
    token = tokens.lexeme(reader)
    start = reader.pos
    name: str | None = None
    follows = tokens.lexeme_at(reader, token.end)
    if token.kind == "word" and follows.text == "=":
        name = tokens.take(reader).text()
        tokens.take(reader, left=True, right=True)
    return ast.Setting(name, read_value(reader, context), reader.span(start))


def read_value(reader: Reader, context: tokens.Context) -> ast.Term:
    """A configuration value: an expression, a list of them, or a string."""
    if tokens.sign(reader) != "[":
        return _argument(reader, context, True)
    start = reader.pos
    stop = past_bracket(reader, start)
    if stop > 0 and ";" in reader.text[start:stop]:
        message = "a list of numbers is divided by commas"
        raise NotationError("E0191", message, reader.span(start, stop), "for example `[64, 32]`")
    bracket = tokens.take(reader)
    context.enter(bracket)
    items = tokens.listed(reader, ("]",), lambda: read_term(reader, context))
    tokens.closing(reader, "]", bracket, "E0191", "`,` or `]`")
    context.leave()
    return ast.Listed(tuple(items), reader.span(start))


def _repeat(reader: Reader, context: tokens.Context) -> ast.Repeated:
    """``repeat(x; h in hids) { ... }``."""
    help_line = "it is written `repeat(x; h in hids) { layer(x; h) }`"
    start = reader.pos
    tokens.take(reader)
    bracket = tokens.expect(reader, "(", "`(` after `repeat`", "E0191")
    carried = _name(reader, "the name of what each turn takes", help_line)
    begins: ast.Term = ast.Reference(carried.text(), carried)
    if tokens.sign(reader) == "=":
        tokens.take(reader, left=True, right=True)
        begins = read_term(reader, context)
    tokens.expect(reader, ";", "`;` after what each turn takes", "E0191", right=True)
    variable = _name(reader, "a name for the number of each turn", help_line)
    tokens.expect(reader, "in", "`in`", "E0191", left=True, right=True)
    over = read_value(reader, context)
    tokens.closing(reader, ")", bracket, "E0191")
    context.enter(bracket)
    if tokens.sign(reader) != "{":
        raise tokens.unexpected(reader, "E0191", "`{` and what each turn computes", help_line)
    body = read_block(reader, context)
    context.leave()
    span = reader.span(start)
    return ast.Repeated(
        carried.text(), begins, variable.text(), over, body, carried, variable, span
    )


def _name(reader: Reader, wanted: str, help_line: str) -> Span:
    if not tokens.word(reader):
        raise tokens.unexpected(reader, "E0191", wanted, help_line)
    return tokens.take(reader)


def read_block(reader: Reader, context: tokens.Context) -> ast.Body:
    """The block at the cursor: bindings, and the expression that it ends in.

    Raises:
        NotationError: E0110, E0132, those of expressions, all of them together.
    """
    start = reader.pos
    parts = statements(reader)
    if not parts or parts[-1].matches(tokens.BINDS) or parts[-1].matches(tokens.KEEPS):
        span = reader.span(reader.pos - 1)
        raise NotationError("E0132", "the block ends in no expression", span, BLOCK_HELP)
    *above, last = parts
    refused: list[Error] = []
    bindings = collected(above, lambda part: _statement(part, context), refused)
    results = collected([last], lambda part: read_whole_term(part, context), refused)
    if refused:
        raise gathered(refused)
    return ast.Body(tuple(bindings), results[0], reader.span(start))


def _statement(part: Reader, context: tokens.Context) -> ast.NameBinding | ast.StateUpdate:
    """A binding, or ``"name" =: EXPR``, which fills a reader."""
    start = part.pos
    if tokens.lexeme(part).kind != "string":
        name = part.matches(tokens.BINDS)
        if name is not None and part.text.startswith(":", name.end()):
            message = (
                f"`{name.group()}:` assigns, and what lasts from run to run is named by a string"
            )
            raise NotationError("E0132", message, part.span(start, name.end() + 1), KEPT_HELP)
        return read_binding(part, context)
    target = replace(read_declared(part, context), kept=True)
    part.skip()
    sign = part.matches(tokens.ASSIGN)
    if sign is None or sign.group() != "=:":
        raise tokens.unexpected(part, "E0132", f"`=:` after `{target.span.text()}`", KEPT_HELP)
    part.take(sign.end(), left=True, right=True)
    return ast.StateUpdate(target, read_whole_term(part, context), part.span(start))


def read_binding(part: Reader, context: tokens.Context) -> ast.NameBinding:
    """``name = EXPR``, which fills a reader."""
    start = part.pos
    if not part.matches(tokens.BINDS):
        message = "a statement above the last one binds a name, and this one does not"
        raise NotationError("E0132", message, part.span(start, part.end), BLOCK_HELP)
    place = tokens.take(part)
    tokens.take(part, left=True, right=True)
    term: ast.Term = read_whole_term(part, context)
    name = None if place.text() == DISCARD else place.text()
    return ast.NameBinding(name, term, place, part.span(start))
