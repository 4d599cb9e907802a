"""Parts that an operation in einx notation leaves out: outputs, brackets, second operands; and what it must not say.

Example:
    in:   mean, b (s [r])... c               out:  b (s [r])... c -> b (s)... c
    in:   sum, a b -> a                      out:  a [b] -> a
    in:   dot, a [b] -> a [c]                out:  a [b], b c -> a c, brackets on b
    in:   add, a b, b                        out:  a b, b -> a b
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from ilang.core.diagnostic import Label, MeaningError, NotationError, counted
from ilang.core.einx_ops import EINX_OPS, EinxOp
from ilang.core.ir.einx import (
    HIDDEN,
    Axis,
    Bracket,
    Concatenation,
    Expression,
    Form,
    Item,
    Parameter,
    Repetition,
    Sizes,
    UnnamedAxis,
    expression_text,
    inside,
    item_text,
    named,
    places,
    rebuilt,
)
from ilang.core.notation.einx.op_argument import NEEDED
from ilang.core.notation.einx.operation import Written
from ilang.core.record import replace
from ilang.core.source import Span
from ilang.core.suggestion import did_you_mean

COORDINATES = "coordinates"
"""The axis of the coordinates that argmax gives, where no output is written; one of this name is another."""

Expressions = tuple[Expression, ...]
Sides = tuple[Expressions, Expressions]
"""The expressions of the inputs of an operation, and those of its outputs."""


class _Operation(NamedTuple):
    """An operation as it is written: its expressions before `->`, those after it, if there are any, and its text."""

    op: EinxOp
    inputs: Expressions
    outputs: Expressions | None
    span: Span

    def output(self) -> Expression | None:
        """The one expression after `->`, if any is written. Raises MeaningError E0221."""
        if self.outputs is None:
            return None
        if len(self.outputs) != 1:
            count = counted(len(self.outputs), "expression")
            message = f"{self.op.name} gives one tensor, and the operation has {count} after `->`"
            raise MeaningError("E0221", message, self.span, "write one expression after `->`")
        return self.outputs[0]

    def miscounted(self, takes: str, help_line: str) -> MeaningError:
        """The error for another number of inputs."""
        count, verb = (
            counted(len(self.inputs), "expression"),
            "is" if len(self.inputs) == 1 else "are",
        )
        message = f"{self.op.name} takes {takes}, and there {verb} {count} before `->`"
        return MeaningError("E0221", message, self.span, help_line)

    def no_output(self, reason: str, help_line: str, labels: Sequence[Label] = ()) -> MeaningError:
        """The error for outputs that are not written and do not follow."""
        return MeaningError("E0222", f"{self.op.name} needs {reason}", self.span, help_line, labels)

    def refuse_marks(self, expressions: Expressions, side: str) -> None:
        """Refuse brackets where the operation has none. Raises MeaningError E0226."""
        for expression in expressions:
            for leaf in marks(expression):
                message = f"{self.op.name} has no brackets{side}, and {_leaf(leaf)} is in some"
                raise MeaningError("E0226", message, leaf.span, "leave the brackets out")


def complete(
    name: str, written: Written, parameters: Sequence[Parameter], at: Span, has_op: bool = False
) -> Form:
    """The whole of an operation.

    Args:
        name: of the operation.
        written: its expressions.
        parameters: as they are given.
        at: where its name stands.
        has_op: whether its ``op`` is a component, which goes along the axes outside brackets.

    Raises:
        NotationError: E0165, E0166 (an unknown operation, an unknown parameter).
        MeaningError: E0220 to E0229.
    """
    op = operation(name, at)
    if op.kind == "map" and not has_op:
        raise MeaningError("E0229", f"{op.name} needs an op", at, NEEDED)
    options, sizes = _divided(op, parameters, at)
    inputs, outputs = written.sides[0], written.sides[1] if len(written.sides) > 1 else None
    if op.kind in ("dot", "elementwise") and len(inputs) == 1 and op.arity != 1:
        inputs, outputs = _second(op, inputs[0], outputs)
    _check_marks((*inputs, *(outputs or ())))
    if outputs is None and any(p.name == "keepdims" and p.value for p in options):
        outputs = tuple(map(_with_units, inputs))
    given = _Operation(op, inputs, outputs, written.span)
    if op.arity is not None and len(inputs) != op.arity:
        raise given.miscounted(counted(op.arity, "tensor"), "divide them by `,`")
    inputs, outputs = _COMPLETED[op.kind](given)
    form = Form(
        name,
        " ".join(written.span.text().split()),
        inputs,
        outputs,
        tuple(parameters),
        sizes,
        options,
        written.span,
    )
    _check_outputs(form)
    _check_options(op, form)
    check_parameters(form)
    return form


def operation(name: str, at: Span) -> EinxOp:
    """The operation of a name. Raises NotationError E0165."""
    op = EINX_OPS.get(name)
    if op is None:
        known = did_you_mean(name, list(EINX_OPS), f"there are {', '.join(EINX_OPS)}", "`{}`")
        raise NotationError("E0165", f"einx has no operation `{name}`", at, known)
    return op


def _divided(
    op: EinxOp, parameters: Sequence[Parameter], at: Span
) -> tuple[tuple[Parameter, ...], tuple[Parameter, ...]]:
    """The options, and the sizes of axes."""
    known = {option.rstrip("!") for option in op.options}
    options = tuple(p for p in parameters if p.name in known)
    for option in op.options:
        if option[-1] == "!" and option[:-1] not in {p.name for p in options}:
            message = f"{op.name} needs a {option[:-1]}"
            raise MeaningError("E0229", message, at, f"add `{option[:-1]}=1`")
    return options, tuple(p for p in parameters if p.name not in known)


def _check_options(op: EinxOp, form: Form) -> None:
    """No axis has the name of an option: a parameter would mean both."""
    known = {option.rstrip("!") for option in op.options}
    for expression in form.expressions() if known else ():
        for name, axis in named(expression).items():
            if name in known:
                message = f"axis {name} has the name of an option of {op.name}"
                raise MeaningError("E0229", message, axis.span, "give the axis another name")


def check_parameters(form: Form) -> None:
    """Every size is that of an axis."""
    if not form.parameters:
        return
    axes = {name for each in form.expressions() for name in named(each)}
    for parameter in form.parameters:
        if parameter.name not in axes:
            known = sorted(axes - {HIDDEN, COORDINATES})
            listed = f"the axes are: {', '.join(known) or 'none'}"
            help_line = did_you_mean(parameter.name, known, listed, "`{}`")
            message = f"{parameter.name} is given as a size, and no axis has that name"
            labels = [Label(form.span, "")]
            raise NotationError("E0166", message, parameter.span, help_line, labels)
        if _least(parameter.value) < 0:
            message = f"the size {parameter.name} is given as {parameter.value}"
            raise NotationError("E0166", message, parameter.span, "a size is 0 or more")


def _least(value: Sizes) -> int:
    return min(map(_least, value), default=0) if isinstance(value, tuple) else value


def marks(expression: Expression) -> Iterator[Axis | UnnamedAxis]:
    """The axes in brackets."""
    return (place.leaf for place in places(expression) if place.marked)


def _has_marks(expression: Expression) -> bool:
    return any(True for _ in marks(expression))


def _check_marks(expressions: Sequence[Expression]) -> None:
    """A name is in brackets everywhere, or nowhere."""
    seen: dict[str, tuple[bool, Axis]] = {}
    for expression in expressions:
        for place in places(expression):
            if not isinstance(place.leaf, Axis):
                continue
            marked, first = seen.setdefault(place.leaf.name, (place.marked, place.leaf))
            if marked != place.marked:
                inner, outer = (first, place.leaf) if marked else (place.leaf, first)
                subject = (
                    "the axes of `...` are" if inner.name == HIDDEN else f"axis {inner.name} is"
                )
                labels = [Label(inner.span, "in brackets"), Label(outer.span, "not in brackets")]
                message = f"{subject} in brackets in one place and not in another"
                help_line = (
                    "an axis is in brackets everywhere, or nowhere: use two names for two axes"
                )
                raise MeaningError("E0220", message, place.leaf.span, help_line, labels)


def _second(
    op: EinxOp, first: Expression, outputs: Expressions | None
) -> tuple[Expressions, Expressions | None]:
    """The operands of an operation that writes one of two: what is in brackets is the other."""
    if not any(map(_has_marks, (first, *(outputs or ())))):
        return (first,), outputs
    if op.kind == "elementwise":
        shown = tuple(_only_marked(item) for item in first.items)
        other = Expression(tuple(each for items in shown for each in items), first.span)
        return (_unmarked(first), other), outputs
    if outputs is None or len(outputs) != 1:
        return (first,), outputs
    by_name: dict[str, Item] = {}
    for expression in (first, outputs[0]):
        for place in places(expression):
            if not place.marked:
                continue
            if isinstance(place.leaf, UnnamedAxis):
                if place.leaf.size != 1:
                    message = f"the second operand of dot has no name for an axis of size {place.leaf.size}"
                    raise MeaningError("E0226", message, place.leaf.span, "name the axis")
                continue
            item: Item = place.leaf
            for ellipsis in reversed(place.around):
                item = Repetition((item,), ellipsis.place, ellipsis.span)
            by_name.setdefault(place.leaf.name, item)
    summed = set(named(first)) - set(named(_unmarked(outputs[0])))
    second = Expression(tuple(by_name.values()), first.span)
    operands = (_marked(_unmarked(first), summed), _marked(second, summed))
    return operands, (_unmarked(outputs[0]),)


def _only_marked(item: Item) -> tuple[Item, ...]:
    """The parts of an item that are in brackets, with the compositions around them."""
    if isinstance(item, Bracket):
        return item.items
    inner = tuple(each for below in inside(item) for each in _only_marked(below))
    if isinstance(item, Axis | UnnamedAxis) or not inner:
        return ()
    return (replace(item, items=inner),)


def _unmarked(expression: Expression) -> Expression:
    def bare(item: Item) -> tuple[Item, ...] | None:
        if not isinstance(item, Bracket):
            return None
        return rebuilt(Expression(item.items, item.span), bare).items

    return rebuilt(expression, bare)


def _marked(expression: Expression, names: set[str]) -> Expression:
    """An expression with brackets around the axes of some names."""

    def bracketed(item: Item) -> tuple[Item, ...] | None:
        if _single(item) in names:
            return (Bracket((item,), item.span),)
        return None

    return rebuilt(expression, bracketed)


def _single(item: Item) -> str | None:
    """The name of an axis; of an ellipsis alone that of the axis that it repeats."""
    if isinstance(item, Repetition) and len(item.items) == 1:
        (inner,) = item.items
        return HIDDEN if isinstance(inner, Axis) and inner.name == HIDDEN else None
    return item.name if isinstance(item, Axis) else None


def _leaf(leaf: Axis | UnnamedAxis) -> str:
    return f"axis {leaf.name}" if isinstance(leaf, Axis) else f"the axis of size {leaf.size}"


def _id(given: _Operation) -> Sides:
    if given.outputs is None and len(given.inputs) > 1:
        message = f"{given.op.name} of several tensors needs its outputs after `->`"
        raise MeaningError("E0222", message, given.span, "write `->` and the outputs")
    outputs = given.inputs if given.outputs is None else given.outputs
    given.refuse_marks((*given.inputs, *outputs), "")
    return given.inputs, outputs


def _reduce(given: _Operation) -> Sides:
    (whole,), output = given.inputs, given.output()
    if output is None:
        return given.inputs, (_without_brackets(whole),)
    given.refuse_marks((output,), " in its output")
    return (whole if _has_marks(whole) else reduced(whole, output),), (output,)


def _with_units(given: Expression) -> Expression:
    """An expression with an axis of size 1 in place of each that is in brackets."""

    def unit(item: Item) -> tuple[Item, ...] | None:
        if not isinstance(item, Bracket):
            return None
        return tuple(each for below in item.items for each in _as_unit(below, new))

    new = count(1)  # below 0 are numbers that no token writes
    return rebuilt(given, unit)


def _as_unit(item: Item, new: Iterator[int]) -> tuple[Item, ...]:
    if isinstance(item, Repetition):
        inner = tuple(each for below in item.items for each in _as_unit(below, new))
        return (replace(item, items=inner),)
    return (UnnamedAxis(1, -next(new), item.span),)


def reduced(given: Expression, output: Expression) -> Expression:
    """An expression with brackets around the axes that an output lacks, those of numbers among them."""
    kept = named(output)
    copied = {place.leaf.place for place in places(output) if isinstance(place.leaf, UnnamedAxis)}

    def bracketed(item: Item) -> tuple[Item, ...] | None:
        name = _single(item)
        lacks = name is not None and name not in kept
        if lacks or (isinstance(item, UnnamedAxis) and item.size != 1 and item.place not in copied):
            return (Bracket((item,), item.span),)
        return None

    return rebuilt(given, bracketed)


def _dot(given: _Operation) -> Sides:
    inputs, output = given.inputs, given.output()
    if output is None:
        reason = "its output after `->`: nothing else says which axes are summed"
        raise given.no_output(reason, "write `->` and the axes that are kept")
    if len(inputs) < 2:
        help_line = "write `a [b], [b] c -> a c`, or `a [b->c]`"
        raise given.miscounted("2 tensors or more", help_line)
    given.refuse_marks((output,), " in its output")
    if not any(map(_has_marks, inputs)):
        kept = set(named(output))
        inputs = tuple(_marked(each, set(named(each)) - kept) for each in inputs)
    for each in inputs:
        seen: dict[str, Axis] = {}
        for leaf in marks(each):
            if isinstance(leaf, Axis) and seen.setdefault(leaf.name, leaf) is not leaf:
                labels = [Label(seen[leaf.name].span, "and here")]
                message = f"axis {leaf.name} is in brackets twice in one tensor"
                help_line = "dot sums an axis of one tensor against that of another"
                raise MeaningError("E0226", message, leaf.span, help_line, labels)
    return inputs, (output,)


def _elementwise(given: _Operation) -> Sides:
    inputs = given.inputs
    given.refuse_marks((*inputs, *(given.outputs or ())), "")
    output = given.output()
    if output is None:
        every = {name for each in inputs for name in named(each)}
        whole = {_without_ones(each): each for each in inputs if set(named(each)) == every}
        if len(whole) != 1:
            how = "no operand has all axes" if not whole else "several operands have all axes"
            help_line = f"write `-> {' '.join(sorted(every - {HIDDEN}))}`, in the order you want"
            labels = [Label(each.span, "") for each in inputs]
            raise given.no_output(f"its output after `->`: {how}", help_line, labels)
        (output,) = whole.values()
    return inputs, (output,)


def _without_ones(expression: Expression) -> str:
    def bare(item: Item) -> tuple[Item, ...] | None:
        return () if isinstance(item, UnnamedAxis) and item.size == 1 else None

    return expression_text(rebuilt(expression, bare))


def _preserve(given: _Operation) -> Sides:
    """The output has the axes in brackets that the first input has. Raises MeaningError E0226."""
    first = given.inputs[0]
    output = given.output() or first
    before, after = (list(map(item_text, marks(each))) for each in (first, output))
    if sorted(before) == sorted(after):
        return given.inputs, (output,)
    message = f"{given.op.name} gives the axes that it takes, and `[{' '.join(before)}]` is not `[{' '.join(after)}]`"
    labels = [Label(first.span, ""), Label(output.span, "")]
    help_line = "the same axes are in brackets on both sides; without an output they are"
    raise MeaningError("E0226", message, output.span, help_line, labels)


def _argument(given: _Operation) -> Sides:
    (whole,), output = given.inputs, given.output()
    if output is not None:
        return given.inputs, (output,)
    brackets = list(_brackets(whole, False))
    if len(brackets) != 1 or brackets[0][1]:
        how = f"its input has {counted(len(brackets), 'bracket')}"
        if len(brackets) == 1:
            how = "the bracket of its input is repeated"
        kept = expression_text(_without_brackets(whole))
        labels = [Label(item.span, "") for item, _ in brackets]
        help_line = f"write where the coordinates are: `-> {kept} [n]`"
        raise given.no_output(f"its output after `->`: {how}", help_line, labels)
    bracket = brackets[0][0]
    axis = Bracket((Axis(COORDINATES, bracket.span),), bracket.span)
    return given.inputs, (rebuilt(whole, lambda item: (axis,) if item is bracket else None),)


def _brackets(item: Item | Expression, repeated: bool) -> Iterator[tuple[Bracket, bool]]:
    """The brackets of an expression, and whether an ellipsis repeats them."""
    for below in inside(item):
        if isinstance(below, Bracket):
            yield below, repeated
        else:
            yield from _brackets(below, repeated or isinstance(below, Repetition))


def _get(given: _Operation) -> Sides:
    output = given.output()
    if output is None:
        raise given.no_output("its output after `->`", "write `->` and its axes")
    if len(given.inputs) < 2:
        takes = "a tensor and its coordinates"
        raise given.miscounted(takes, "write `[h w] c, p [2] -> p c`")
    given.refuse_marks((output,), " in its output")
    return given.inputs, (output,)


def _set(given: _Operation) -> Sides:
    if len(given.inputs) < 3:
        takes = "a tensor, its coordinates and updates"
        raise given.miscounted(takes, "write `[h w], p [2], p -> [h w]`")
    given.output()  # there is one at most
    given.refuse_marks((given.inputs[-1],), " in its updates")
    return _preserve(given)


def _map(given: _Operation) -> Sides:
    if given.outputs is not None:
        return given.inputs, given.outputs
    if given.op.name == "elementwise":
        return _elementwise(given)
    if given.op.name == "reduce" and len(given.inputs) == 1:
        return _reduce(given)
    raise given.no_output("its outputs after `->`", "write `->` and the axes of each output")


_COMPLETED = {
    "id": _id,
    "reduce": _reduce,
    "elementwise": _elementwise,
    "dot": _dot,
    "preserve": _preserve,
    "argument": _argument,
    "get": _get,
    "set": _set,
    "map": _map,
}


def _check_outputs(form: Form) -> None:
    """Every axis of an output stands there once, unless in brackets, and something gives its size."""
    given = {name for each in form.inputs for name in named(each)}
    given |= {parameter.name for parameter in form.parameters}
    computed = EINX_OPS[form.op].kind in ("argument", "map")
    for output in form.outputs:
        for axis in _twice(_without_brackets(output)):
            message = f"axis {axis.name} stands twice in one output"
            raise MeaningError("E0225", message, axis.span, "an output has each axis once")
        for place in places(output):
            leaf = place.leaf
            if not isinstance(leaf, Axis) or leaf.name in given or (computed and place.marked):
                continue
            if leaf.name == HIDDEN:
                message, help_line = "no input says which axes `...` stands for", "name the axes"
            else:
                message = f"nothing gives the size of axis {leaf.name}, which no input has"
                help_line = f"add `{leaf.name}=2`"
            raise MeaningError("E0223", message, leaf.span, help_line)


def _without_brackets(expression: Expression) -> Expression:
    return rebuilt(expression, lambda item: () if isinstance(item, Bracket) else None)


def _twice(item: Expression | Item) -> Iterator[Axis]:
    """The axes that stand twice in one dimension, or in several; the parts of a concatenation are apart."""
    seen: set[str] = set()
    for below in inside(item):
        yield from (axis for axis in _once(below, seen))


def _once(item: Item, seen: set[str]) -> Iterator[Axis]:
    if isinstance(item, Axis):
        if item.name in seen:
            yield item
        seen.add(item.name)
        return
    if isinstance(item, Concatenation):
        before = frozenset(seen)
        for part in item.items:
            apart = set(before)
            yield from _once(part, apart)
            seen |= apart
        return
    for below in inside(item):
        yield from _once(below, seen)
