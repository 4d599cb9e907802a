"""Rules of index expressions: on their letters and their operators.

- an output letter stands in an input, and stands in the output once
- a binary expression is pointwise: it drops no letter
- a unary expression may drop letters (reduce) only with a reducible operator
- an axis of a guard stands in an input
- an extent is that of an axis of an input
- a lookup looks up one axis, which no place has; that of an output has its extent written
- ``!!`` has no binary form
"""

from __future__ import annotations

from ilang.core.diagnostic import Label, MeaningError
from ilang.core.ir.syntax import Axis, Expression, Index, Linear, Lookup, Operand, Position
from ilang.core.ops import ARGUMENTS, OPS, REDUCING
from ilang.core.source import Span


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
    _check_extents(e, {axis.letter for axis in inputs})
    _check_lookups(e)
    looked = e.looked_up()
    _check_output(e, {axis.letter for axis in inputs} | looked)
    kept = set(e.output.letters()) | looked
    dropped = tuple(axis for axis in inputs if axis.letter not in kept)
    if not dropped and op.identity is None and looked & set(e.output.letters()):
        raise _cannot_scatter(e)
    if dropped and e.right is not None:
        raise _drops(e, e.right, dropped)
    if dropped and op.identity is None:
        raise _cannot_reduce(e, dropped)


def _check_argument(e: Expression) -> None:
    """An argmax or argmin reduces one axis of an input that is read whole; its result is a position along it."""
    if e.lookups():
        message = f"`{e.op}` reads an input, and `{_text(e.left)}` is looked up"
        help_line = "take it of the result: `... >> >@ij~i`"
        raise MeaningError("E0209", message, e.left.span, help_line)
    (pattern,) = e.inputs()
    inputs = pattern.axes()
    _check_output(e, {axis.letter for axis in inputs})
    dropped = "".join(dict.fromkeys(a.letter for a in inputs if a.letter not in e.output.letters()))
    if len(dropped) != 1:
        message = f"`{e.op}` gives a position along one axis, and {_axes(dropped) if dropped else 'none is'}"
        message += " missing from the output" if not dropped else ""
        help_line = "leave one letter out of the output: `>@ij~i`"
        raise MeaningError("E0209", message, e.span, help_line)
    group = next((index for index in pattern.indices if isinstance(index, Linear)), None)
    if group is not None or pattern.guards:
        span = pattern.guards[0].span if group is None else group.span
        message = f"`{e.op}` reads whole axes: where nothing counts there is no position"
        raise MeaningError("E0209", message, span, "take it of the result: `... >> >@ij~i`")


def _check_output(e: Expression, known: set[str]) -> None:
    """Output indices are plain letters of the inputs, each once."""
    seen: dict[str, Axis] = {}
    looked = e.looked_up()
    for index in e.output.indices:
        axis = _looked_axis(index, looked)
        if not isinstance(axis, Axis):
            letters = (
                {each.axis.letter for each in axis.terms} if isinstance(axis, Linear) else set()
            )
            if looked and letters and not known & letters:
                raise _writes_no_axis(looked, letters, axis.span)
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


def _check_extents(e: Expression, known: set[str]) -> None:
    """An extent is that of an axis of an input."""
    for leaf in e.leaves():
        extent = leaf.extent if isinstance(leaf, Position) else None
        if extent is not None and extent.letter not in known:
            letter = extent.letter
            message = (
                f"`:{letter}` is the extent of axis {letter}, but no input has an axis {letter}"
            )
            help_line = f"an extent may be that of {', '.join(sorted(known))}" if known else None
            help_line = (
                help_line or "an extent is written beside an input that has the axis: `ij/:j~ij`"
            )
            raise MeaningError("E0211", message, leaf.span, help_line)


def _looked_axis(index: Index, looked: frozenset[str]) -> Index:
    """The axis that ``(v:10)`` is, where it is looked up; any other index as it is."""
    if not isinstance(index, Linear) or index.offset or len(index.terms) > 1:
        return index
    (term,) = index.terms
    plain = term.coefficient == 1 and term.axis.letter in looked
    return term.axis if plain else index


def _check_lookups(e: Expression) -> None:
    """Each lookup looks up one axis of its own, that is an index somewhere and has an extent."""
    known: set[str] = set()
    for lookup in e.lookups():
        letters = e.lookup_axes(lookup)
        if len(letters) != 1:
            raise _looks_up(e, lookup, letters)
        (letter,) = letters
        places = {axis for other in e.lookups() for axis in other.place.letters()}
        if letter in known or letter in places:
            fault = "looked up again" if letter in known else "an axis of a place"
            message = f"axis {letter} is looked up, and is {fault}"
            help_line = "write another letter for one of them"
            raise MeaningError("E0210", message, lookup.span, help_line)
        known.add(letter)
        if letter in e.output.letters() and e.right is not None:
            message = f"axis {letter} of the output is looked up, and `{e.op}` has two inputs"
            help_line = (
                "the operand that is scattered is one input: compute it in an expression before"
            )
            raise MeaningError("E0210", message, lookup.span, help_line)
        if isinstance(lookup.table, Position) and letter in lookup.table.letters():
            message = f"axis {letter} is looked up in a position, which is the number itself"
            help_line = f"leave the lookup out: `{_text(lookup.place)}` is the position"
            raise MeaningError("E0210", message, lookup.table.span, help_line)
        if Axis(letter, e.span) in e.output.indices:
            message = f"axis {letter} is looked up, and nothing says what extent it has"
            help_line = f"write its extent in the output: `({letter}:10)`"
            raise MeaningError("E0210", message, e.output.span, help_line)


def _looks_up(e: Expression, lookup: Lookup, letters: tuple[str, ...]) -> MeaningError:
    """A lookup of no axis, or of several."""
    text = f"{_text(lookup.place)}@{_text(lookup.table)}"
    if letters:
        message = f"`{text}` could look up axis {' or '.join(letters)}"
        help_line = "one axis is looked up, and each other one stands in an input"
        read = {letter for operand in e.operands() for letter in operand.letters()}
        if read >= set(e.output.letters()):
            kept = e.output.letters() + lookup.place.letters() + "".join(letters[1:])
            help_line = f"one axis is looked up; keep the others: `{_in_two_steps(e, kept)}`"
        return MeaningError("E0210", message, lookup.span, help_line)
    message = (
        f"`{text}` looks up no axis: all of them stand in `{_text(lookup.place)}` or in the output"
    )
    shared = set(lookup.place.letters()) & set(lookup.table.letters()) - set(e.output.letters())
    help_line = "read at an axis of its own, `bt@vd~btd`, or write to one, `i@i~(v:10)`"
    if shared and e.right is None:
        whole = "".join(dict.fromkeys(e.output.letters() + lookup.letters()))
        product = f"{_text(lookup.place)}*{_text(lookup.table)}~{whole}"
        help_line = f"a matrix product is `{product} >> +{whole}~{_text(e.output)}`"
    return MeaningError("E0210", message, lookup.span, help_line)


def _in_two_steps(e: Expression, letters: str) -> str:
    """An expression that keeps some letters, and the reduction that drops them."""
    op = e.op or ""
    folds = e.right is None and OPS[op or "+"].identity is not None
    form = _text(e.left) if e.right is None else f"{_text(e.left)}{op}{_text(e.right)}"
    kept = "".join(dict.fromkeys(letters))
    first = form if folds or e.right is not None else op + form
    return f"{first}~{kept} >> {op if folds and op else '+'}{kept}~{_text(e.output)}"


def _writes_no_axis(looked: frozenset[str], written: set[str], span: Span) -> MeaningError:
    """Axes of the output alone, where an axis of what is read is looked up instead."""
    read = ", ".join(sorted(looked))
    message = f"axis {', '.join(sorted(written))} is in the output alone, but what is looked up is axis {read}"
    help_line = f"keep axis {read} in the output, and reduce it in a second expression"
    return MeaningError("E0210", message, span, help_line)


def _cannot_scatter(e: Expression) -> MeaningError:
    """The error of an operator that does not reduce where several values meet in one element."""
    message = f"elements that are looked up in the output may meet, and `{e.op}` cannot reduce"
    able = " ".join(op.symbol for op in REDUCING.values())
    return MeaningError("E0203", message, e.span, f"the operators that reduce are {able}")


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
    from ilang.core.notation.guidance import no_number

    letters = _distinct(dropped)
    message = f"{_axes(letters)} missing from the output, and `{e.op}` between two inputs keeps "
    message += "every axis"
    if (help_line := no_number(_text(right)) or no_number(_text(e.left))) is not None:
        return MeaningError("E0202", message, dropped[0].span, help_line)
    whole = e.output.letters() + letters
    spelling = f"{_text(e.left)}{e.op}{_text(right)}~{whole} >> +{whole}~{_text(e.output)}"
    help_line = f"to sum over {', '.join(letters)}, write two expressions: `{spelling}`"
    return MeaningError("E0202", message, dropped[0].span, help_line)


def _cannot_reduce(e: Expression, dropped: tuple[Axis, ...]) -> MeaningError:
    """A reduction by an operator that has no neutral element."""
    letters = _distinct(dropped)
    message = f"{_axes(letters)} missing from the output, and `{e.op}` cannot reduce"
    able = " ".join(op.symbol for op in REDUCING.values())
    help_line = f"the operators that reduce are {able}"
    looked = e.looked_up()
    if e.op is not None and not looked & set(e.output.letters()):
        whole = "".join(letter for letter in e.left.letters() if letter not in looked)
        spelling = _in_two_steps(e, whole)
        help_line += f"; to sum over {', '.join(letters)} afterwards: `{spelling}`"
    return MeaningError("E0203", message, dropped[0].span, help_line)


def _distinct(axes: tuple[Axis, ...]) -> str:
    return "".join(dict.fromkeys(axis.letter for axis in axes))


def _axes(letters: str) -> str:
    return f"axes {', '.join(letters)} are" if len(letters) > 1 else f"axis {letters} is"


def _text(pattern: Operand) -> str:
    return pattern.span.text()
