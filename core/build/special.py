"""Primitives that are no functions of elements: over rows, of gradients, and constants (docs/functions.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ilang.core.build.values import Computed, Custom, Measured, Tensor, constant
from ilang.core.diagnostic import MeaningError, counted
from ilang.core.ir import functions as ast
from ilang.core.ir.scalar import Apply, Operand
from ilang.core.notation.einsum.specification import parse_spec
from ilang.core.source import Span

if TYPE_CHECKING:
    from ilang.core.build.functions import Functions
    from ilang.core.build.settings import Evaluation


def special(build: Functions, frame: Evaluation, name: str, call: ast.Called) -> Tensor:
    """The tensor that a call of one of ``primitives.SPECIAL`` gives."""
    arguments, span = call.arguments, call.span
    match name:
        case "interleave":
            pair = [build.tensor(frame, each) for each in arguments]
            both = Apply("add", (Operand(0), Operand(1)))
            return build.operation(both, "+", "interleave", pair, span)
        case "transpose":
            value = build.tensor(frame, arguments[0])
            return build.operation(Operand(0), "+", "transpose", [value], span)
        case "stop_gradient" | "track":
            value = build.tensor(frame, arguments[0])
            return Custom(value, name, span, tracked=name == "track")
        case "square":
            return _square(build, build.tensor(frame, arguments[0]), span)
        case "einmax":
            _text(name, arguments[0])
            quoted = arguments[0].span
            inner = Span(quoted.source, quoted.start + 1, quoted.end - 1)
            spec = parse_spec(quoted.source, inner)
            if len(spec.operands) != 1:
                operands = counted(len(spec.operands), "operand")
                message = f"the specification has {operands}, and is that of one tensor"
                help_line = "operands are separated by `;`: `ij; jk => ik`"
                raise MeaningError("E0442", message, spec.span, help_line)
            value = build.tensor(frame, arguments[1])
            return build.operation(Operand(0), ">", spec, [value], span)
        case "dim":
            value = build.tensor(frame, arguments[0])
            initial = Measured(value, _text(name, arguments[1]), span)
            return constant(f"dim {initial.axis}", ((), (), ((1, None),)), initial, span)
        case "fill":
            number = build.number(frame, arguments[0])
            return constant(f"fill {number}", (None, None, None), float(number), span)
        case "range":
            return constant("range", (None, None, None), "range", span)
        case "values":
            numbers = [build.number(frame, each) for each in arguments]
            return constant("values", (None, None, None), numbers, span)
        case "file":
            path = _text(name, arguments[0])
            return constant(path, (None, None, None), build.load(path, span), span)
        case _:
            raise AssertionError(name)


def _square(build: Functions, value: Tensor, span: Span) -> Tensor:
    """The tensor, of which the input and the output row are one.

    Raises: MeaningError E0450 (it is computed element by element, so its rows would only be repeated).
    """
    if isinstance(value, Computed) and value.logic == "pointwise":
        message = "`square` says that the rows of a matrix are equal, and computes no power"
        help_line = (
            "the second power of x is `x *. x`; of `square(w + b)`, say it of one: `square(w) + b`"
        )
        raise MeaningError("E0450", message, span, help_line)
    batch, both = (ast.RowNote((), name, ()) for name in ("batch", "square"))
    build.scopes += 1
    build.callers.notes.append(
        (value, "square", ast.ShapeNote((batch, both, both), span), build.scopes)
    )
    return value


def _text(name: str, term: ast.Term) -> str:
    match term:
        case ast.Text():
            return term.text
        case ast.Declared(extents=None, initial=None):
            return term.name
        case _:
            message = f"{name} takes a string here"
            raise MeaningError("E0262", message, term.span, 'write it in quotes: "w"')
