"""The reader of definitions of tensor functions and routines: ``op NAME(x; hid) = EXPR``, ``cd NAME(x) { ... }``.

In:  ``op layer(x[b|i]; hid = 64) = ?/("w" * x + "b" hid)``
Out: ``Function(Head("layer", (x,), (hid,)), Body((), Unary("?/", ...)))``
"""

from __future__ import annotations

from ilang.core.ir import functions as ast
from ilang.core.notation.functions import tokens
from ilang.core.notation.functions.annotations import read_shape
from ilang.core.notation.functions.quotes import at_label, read_logic
from ilang.core.notation.functions.routines import read_statements
from ilang.core.notation.functions.terms import read_block, read_value, read_whole_term
from ilang.core.notation.naming import refuse_again, refuse_reserved, refuse_type
from ilang.core.notation.reader import Reader, unclosed
from ilang.core.source import Span

OP_HELP = "a tensor function is `op f(x; n = 2) = EXPRESSION`, or `op f(x; n = 2) { ... }`"
CD_HELP = "a routine is `cd f(x; n = 2) { ... }`"
HEAD_HELP = "tensors stand before a `;` and configuration after it: `op f(x, y[b|t]; n, k = 2)`"
SLOTS = {
    **{f"t{n}": f"v{n}" for n in ("", 1, 2, 3)},
    **{f"rhs{n}": f"v{n}" for n in (1, 2, 3)},
    "lhs": "v",
}
"""Other spellings of the slots of an operation with its own gradient."""


def read_head(reader: Reader) -> tuple[str, ast.Head]:
    """``op NAME(tensors; configuration)`` at the cursor: its first word, and what it says.

    Raises:
        NotationError: E0190, E0195. ModuleError: E0404, E0408, E0412.
    """
    start = reader.pos
    kind = tokens.take(reader, right=True).text()
    name = tokens.take(reader)
    refuse_reserved(name.text(), name)
    if tokens.sign(reader) != "(":
        help_line = OP_HELP if kind == "op" else CD_HELP
        raise tokens.unexpected(
            reader, "E0190", f"`(` and the inputs of `{name.text()}`", help_line
        )
    bracket = tokens.take(reader)
    named: dict[str, Span] = {}
    tensors = tokens.listed(reader, (")", ";"), lambda: _tensor(reader, named))
    configuration = _configuration(reader, named) if tokens.sign(reader) == ";" else None
    wanted = "`,`, `;` or `)`" if configuration is None else "`,` or `)`"
    if tokens.lexeme(reader).kind != "end" and tokens.sign(reader) != ")":
        raise tokens.unexpected(reader, "E0190", wanted, HEAD_HELP)
    tokens.closing(reader, ")", bracket, "E0190", wanted)
    return kind, ast.Head(name.text(), tuple(tensors), configuration, reader.span(start))


def _named(reader: Reader, wanted: str, named: dict[str, Span]) -> Span:
    if not tokens.word(reader):
        raise tokens.unexpected(reader, "E0190", wanted, HEAD_HELP)
    span = tokens.take(reader)
    name = span.text()
    refuse_again(name, span, named)
    refuse_reserved(name, span, tokens.WORDS | tokens.PARTS)
    return span


def _tensor(reader: Reader, named: dict[str, Span]) -> ast.TensorParameter:
    """``x: i64[b|t]``."""
    span = _named(reader, "the name of a tensor", named)
    stop = reader.pos
    dtype: str | None = None
    if tokens.sign(reader) == ":":
        tokens.take(reader, right=True)
        dtype = _dtype(reader)
        stop = reader.pos
    shape: ast.ShapeNote | None = None
    if tokens.sign(reader) in ("[", "[|"):
        shape = _shape(reader)
        stop = reader.pos
    return ast.TensorParameter(span.text(), dtype, shape, reader.span(span.start, stop))


def _dtype(reader: Reader) -> str:
    name = tokens.word(reader)
    if not name:
        raise tokens.unexpected(reader, "E0190", "an element type", HEAD_HELP)
    span = tokens.take(reader)
    refuse_type(name, span)
    return name


def _shape(reader: Reader) -> ast.ShapeNote:
    """``[b|i->o, p]``."""
    start = reader.pos
    close = reader.text.find("]", start, reader.end)
    if close < 0:
        raise unclosed(reader.span(start, start + 1))
    reader.take(start + 1)
    shape = read_shape(reader.source, reader.span(start + 1, close))
    while tokens.lexeme(reader).end <= close:
        token = tokens.lexeme(reader)
        tokens.take(reader, right=token.text == "," or token.kind == "label")
    reader.skip()
    if reader.pos < close:  # `|]` is one lexeme, of which the bar belongs to the shape
        reader.take(close)
    reader.pos = close
    reader.take(close + 1)
    return shape


def _configuration(reader: Reader, named: dict[str, Span]) -> tuple[ast.Configured, ...]:
    """``; hid, out = 10``."""
    tokens.take(reader, right=True)

    def configured() -> ast.Configured:
        span = _named(reader, "the name of a configuration value", named)
        stop, default = reader.pos, None
        if tokens.sign(reader) == "=":
            tokens.take(reader, left=True, right=True)
            default = read_value(reader, tokens.Context(()))
            stop = reader.pos
        return ast.Configured(span.text(), default, reader.span(span.start, stop))

    return tuple(tokens.listed(reader, (")",), configured))


def read_definition(
    reader: Reader, kind: str, head: ast.Head, context: tokens.Context
) -> ast.Function | ast.Routine:
    """The definition that follows a head.

    Raises:
        Error: NotationError and ModuleError, one that brings all of them.
    """
    if kind == "cd":
        if tokens.sign(reader) != "{":
            raise tokens.unexpected(
                reader, "E0190", f"`{{` and the statements of `{head.name}`", CD_HELP
            )
        context.code = True
        statements = read_statements(reader, context)
        tokens.finished(reader, "E0190", "a routine ends with its brace")
        return ast.Routine(head, statements, reader.span(head.span.start))
    if tokens.sign(reader) == "{":
        block = read_block(reader, context)
        tokens.finished(reader, "E0190", "a tensor function ends with its brace")
        return ast.Function(head, block, reader.span(head.span.start))
    if tokens.sign(reader) != "=":
        raise tokens.unexpected(
            reader, "E0190", f"`=` or `{{` after the inputs of `{head.name}`", OP_HELP
        )
    tokens.take(reader, left=True, right=True)
    if tokens.sign(reader) == "{":
        help_line = f"leave out the `=`: `op {head.name}(…) {{ … }}`"
        raise tokens.unexpected(reader, "E0190", "an expression", help_line)
    body: ast.Body | ast.CustomOperation
    if tokens.word(reader) == "prim":
        body = _primitive(reader, tokens.Context(context.definitions, True, dict(SLOTS)))
        tokens.finished(reader, "E0190", "an operation ends with its last brace")
    else:
        term = read_whole_term(reader, context)
        body = ast.Body((), term, term.span)
    return ast.Function(head, body, reader.span(head.span.start))


def _primitive(reader: Reader, context: tokens.Context) -> ast.CustomOperation:
    """``prim ~logic:"." { ... } grad { ... }``."""
    help_line = 'it is written `prim ~logic:"." { v =: exp(v1) } grad { g1 =+ g * v }`'
    reader.skip()
    start = reader.pos
    tokens.take(reader)
    if not at_label(reader, "logic"):
        raise tokens.unexpected(reader, "E0190", "`~logic` after `prim`", help_line)
    logic = read_logic(reader)
    if tokens.sign(reader) != "{":
        raise tokens.unexpected(reader, "E0190", "`{` and the forward code", help_line)
    forward = read_statements(reader, context)
    backward = None
    if tokens.word(reader) == "grad":
        tokens.take(reader, left=True)
        if tokens.sign(reader) != "{":
            raise tokens.unexpected(reader, "E0190", "`{` and the backward code", help_line)
        backward = read_statements(reader, context)
    return ast.CustomOperation(logic, forward, backward, reader.span(start))
