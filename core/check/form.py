"""What a well written index expression may say: the rules on its letters and its operator.

- an output letter stands in an input, and stands in the output once
- a binary expression is pointwise: it drops no letter
- a unary expression may drop letters (reduce) only with a reducible operator
- an axis of a guard stands in an input
- ``!!`` has no binary form
"""

from __future__ import annotations

from ilang.core.diagnostic import Label, MeaningError
from ilang.core.ir.syntax import Axis, Expression, Group, Operand
from ilang.core.ops import ARGUMENTS, OPS


def check_expression(e: Expression) -> None:
    """Refuse an expression that breaks a rule of its form."""
    if e.op in ARGUMENTS:
        _check_argument(e)
        return
    op = OPS[e.op or "+"]
    if e.right is not None and op.binary is None:
        message = f"`{op.symbol}` takes one input, and two are written"
        example = f"{op.symbol}{_text(e.left)}~{_text(e.left)}"
        raise MeaningError("E0204", message, e.span, f"its form is `{example}`")
    inputs = tuple(axis for operand in e.operands() for axis in operand.axes())
    _check_guards(e, {axis.letter for axis in inputs})
    _check_output(e, {axis.letter for axis in inputs})
    kept = set(e.output.letters())
    dropped = tuple(axis for axis in inputs if axis.letter not in kept)
    if dropped and e.right is not None:
        raise _drops(e, e.right, dropped)
    if dropped and op.identity is None:
        raise _cannot_reduce(e, dropped)


def _check_argument(e: Expression) -> None:
    """An argmax or argmin reduces one axis of an input that is read whole; its result is a position along it."""
    (pattern,) = e.inputs()
    inputs = pattern.axes()
    _check_output(e, {axis.letter for axis in inputs})
    dropped = "".join(dict.fromkeys(a.letter for a in inputs if a.letter not in e.output.letters()))
    if len(dropped) != 1:
        message = f"`{e.op}` gives a position along one axis, and {_axes(dropped) if dropped else 'none is'}"
        message += " missing from the output" if not dropped else ""
        help_line = "leave one letter out of the output: `>@ij~i`"
        raise MeaningError("E0209", message, e.span, help_line)
    group = next((index for index in pattern.indices if isinstance(index, Group)), None)
    if group is not None or pattern.guards:
        span = pattern.guards[0].span if group is None else group.span
        message = f"`{e.op}` reads whole axes: where nothing counts there is no position"
        raise MeaningError("E0209", message, span, "take it of the result: `... >> >@ij~i`")


def _check_output(e: Expression, known: set[str]) -> None:
    """Output indices are plain letters of the inputs, each once."""
    seen: dict[str, Axis] = {}
    for axis in e.output.indices:
        if not isinstance(axis, Axis):
            message = "an output has plain letters, and this index is not one"
            help_line = "read with affine and fixed indices, and write whole axes: `(2i+k)*k~ik`"
            raise MeaningError("E0206", message, axis.span, help_line)
        letter = axis.letter
        if letter in seen:
            once = "".join(dict.fromkeys(e.output.letters()))
            labels = (Label(axis.span, "again here"), Label(seen[letter].span, "first here"))
            message = f"axis {letter} stands twice in the output"
            raise MeaningError("E0205", message, axis.span, f"write it once: `~{once}`", labels)
        seen[letter] = axis
        if letter not in known:
            owner = "the input has no" if e.right is None else "neither input has an"
            help_line = "a scalar output is written `.`"
            if known:
                help_line = f"the output may use {', '.join(sorted(known))}"
            message = f"axis {letter} is in the output, but {owner} axis {letter}"
            raise MeaningError("E0201", message, axis.span, help_line)


def _check_guards(e: Expression, known: set[str]) -> None:
    """The axes of a guard are axes of an input."""
    patterns = e.inputs()
    guards = [guard for pattern in patterns for guard in pattern.guards]
    for pattern in patterns:
        if pattern.guards and not pattern.indices:
            message = "this guard is that of a scalar"
            raise MeaningError("E0208", message, pattern.span, "guard the operand with indices")
    for axis in (axis for guard in guards for axis in guard.axes()):
        if axis.letter not in known:
            owner = "the input has no" if e.right is None else "neither input has an"
            message = f"axis {axis.letter} is in a guard, but {owner} axis {axis.letter}"
            help_line = f"a guard may use {', '.join(sorted(known))}" if known else None
            raise MeaningError("E0208", message, axis.span, help_line or "leave the guard out")


def _drops(e: Expression, right: Operand, dropped: tuple[Axis, ...]) -> MeaningError:
    """A binary form that drops letters: the help shows the two expressions it stands for."""
    letters = _distinct(dropped)
    message = f"{_axes(letters)} missing from the output, and `{e.op}` between two inputs keeps "
    message += "every axis"
    whole = e.output.letters() + letters
    spelling = f"{_text(e.left)}{e.op}{_text(right)}~{whole} >> +{whole}~{_text(e.output)}"
    help_line = f"to sum over {', '.join(letters)}, write two expressions: `{spelling}`"
    return MeaningError("E0202", message, dropped[0].span, help_line)


def _cannot_reduce(e: Expression, dropped: tuple[Axis, ...]) -> MeaningError:
    """A reduction by an operator that has no neutral element."""
    letters = _distinct(dropped)
    message = f"{_axes(letters)} missing from the output, and `{e.op}` cannot reduce"
    able = " ".join(symbol for symbol, op in OPS.items() if op.identity is not None)
    help_line = f"the operators that reduce are {able}"
    if e.op is not None:
        whole = "".join(dict.fromkeys(e.left.letters()))
        spelling = f"{e.op}{_text(e.left)}~{whole} >> +{whole}~{_text(e.output)}"
        help_line += f"; to sum over {', '.join(letters)} afterwards: `{spelling}`"
    return MeaningError("E0203", message, dropped[0].span, help_line)


def _distinct(axes: tuple[Axis, ...]) -> str:
    return "".join(dict.fromkeys(axis.letter for axis in axes))


def _axes(letters: str) -> str:
    return f"axes {', '.join(letters)} are" if len(letters) > 1 else f"axis {letters} is"


def _text(pattern: Operand) -> str:
    return pattern.span.text()
