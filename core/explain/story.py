"""The story of an inference: what fixed each axis and each element type, and what each result is written with.

axis k    one extent: dimension 1 of in0, dimension 0 of in1
axis y    follows from the index (y+u-1): yu + 2 - (u - 1) = 10 + 2 - (3 - 1) = 10
out       f32: k is reduced, so elements are written more than once: they start from 0, in f64
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ilang.core.explain.expression import number_text, size_text
from ilang.core.ir.graph import Claim
from ilang.core.ir.shaped import Assignment, Bound, Counted, Derivation, Rows, Shaped
from ilang.core.ops import OPS
from ilang.core.record import record
from ilang.core.source import Span


@record
class StoryRow:
    """One thing that was inferred: of what (an axis, an input, a result), and why."""

    subject: str
    says: str


def tell(shaped: Shaped, claims: Sequence[Claim] = (), given: bool = False) -> tuple[StoryRow, ...]:
    """The story of a shaped program: axes, then results in the order in which they are computed.

    Args:
        shaped: the program.
        claims: what definitions write of inputs.
        given: whether the extents of the inputs are those of ``--shape``.
    """
    written = _written(shaped, claims)
    rows = [StoryRow(f"row {each.variable}", _counted(each)) for each in shaped.counted]
    facts = _Facts(shaped)
    rows += [
        StoryRow(f"axis {size.name}", _axis(shaped, n, written.get(n), given, facts))
        for n, size in enumerate(shaped.sizes)
    ]
    for each in shaped.rows:
        said = f"rows {rows_text(each)}, extents {extents_text(shaped, each)}"
        rows.append(StoryRow(shaped.tensors[each.value].name, said))
    for value, node in enumerate(shaped.nodes):
        if isinstance(node, Assignment):
            rows.append(StoryRow(shaped.tensors[value].name, _result(shaped, value, node)))
    return tuple(rows)


def _written(shaped: Shaped, claims: Sequence[Claim]) -> dict[int, str]:
    """The sizes whose number is in the text, and what is written where."""
    found: dict[int, str] = {}
    for node in shaped.nodes:
        if isinstance(node, Assignment):
            for axis, size in zip(node.axes, node.sizes, strict=True):
                if axis.extent is not None:
                    found.setdefault(size, _place(axis.span, axis.extent))
    for claim in claims:
        if len(shaped.inputs) <= claim.value:
            continue  # the wiring numbers inputs first: this is the result of another definition
        dims = shaped.tensors[shaped.inputs[claim.value]].dims
        for size, number in zip(dims, claim.dims or (), strict=False):
            if isinstance(number, int):
                found.setdefault(size, _place(claim.span, number))
    return found


def _place(span: Span, number: int) -> str:
    """``written as 3, column 5``; the line as well where the text has several."""
    line = f"line {span.line_number()}, " if "\n" in span.source.text.strip() else ""
    return f"written as {number}, {line}column {span.column()}"


class _Facts:
    """What is known of the sizes of a program, by size: looked through once."""

    def __init__(self, shaped: Shaped) -> None:
        self.inputs = [shaped.tensors[value].name for value in shaped.inputs]
        self.guessed = frozenset(shaped.guessed)
        self.derived: dict[int, list[Derivation]] = {}
        self.bounds: dict[int, list[Bound]] = {}
        for each in shaped.derived:
            self.derived.setdefault(each.size, []).append(each)
        for bound in shaped.bounds:
            self.bounds.setdefault(bound.size, []).append(bound)


def _axis(shaped: Shaped, number: int, written: str | None, given: bool, facts: _Facts) -> str:
    """What fixes an extent: dimensions, the text, ``--shape``, or a rule."""
    size = shaped.sizes[number]
    places = [f"dimension {place.dim} of {facts.inputs[place.number]}" for place in size.places]
    derived = facts.derived.get(number, [])
    reasons = []
    if places:
        one = "one extent: " if len(places) > 1 else ""
        reasons.append(one + ", ".join(places))
    if number in facts.guessed:
        reasons.append(f"nothing gives it: the least it can be, {size.fixed}")
    elif written:
        reasons.append(written)
    elif size.fixed is not None and places and given:
        reasons.append(f"`--shape` gives {size.fixed}")
    elif size.fixed is not None and not derived:
        reasons.append(f"written as {size.fixed} in a definition")
    reasons += [_derived(shaped, d) for d in derived]
    bounds = facts.bounds.get(number, ())
    reasons += [f"read at {b.position}, so more than that" for b in bounds if b.part is None]
    return "; ".join(reasons)


def _derived(shaped: Shaped, derived: Derivation) -> str:
    """The formula of a derived extent: in names, with the numbers that are known put in, and the result."""
    formula = _equation if derived.pad is None else _window
    steps = [formula(derived, lambda number: shaped.sizes[number].name)]
    steps.append(formula(derived, lambda number: size_text(shaped.sizes[number])))
    result = shaped.sizes[derived.size].fixed
    if result is not None:
        steps.append(str(result))
    index = "" if derived.pad is None else "the index "
    return f"follows from {index}{derived.span.text()}: {' = '.join(dict.fromkeys(steps))}"


def _window(derived: Derivation, spelled: Callable[[int], str]) -> str:
    """The steps that a window takes inside its dimension."""
    (_, walked), *windows = derived.terms
    text = spelled(walked)
    if derived.pad:
        text += f" {'+' if derived.pad > 0 else '-'} {abs(2 * derived.pad)}"
    for step, window in windows:
        reach = f"({spelled(window)} - 1)"
        text += f" - {reach if step == -1 else f'{-step}·{reach}'}"
    return text if derived.divisor == 1 else f"⌊({text} - 1) / {derived.divisor}⌋ + 1"


def _equation(derived: Derivation, spelled: Callable[[int], str]) -> str:
    """An extent as a sum of others, divided."""
    text = ""
    for coefficient, size in derived.terms:
        sign = " - " if coefficient < 0 else (" + " if text else "")
        times = "" if abs(coefficient) == 1 else f"{abs(coefficient)}·"
        text += f"{sign.strip() if not text else sign}{times}{spelled(size)}"
    if derived.offset or not text:
        text += (
            f" {'-' if derived.offset < 0 else '+'} {abs(derived.offset)}"
            if text
            else str(derived.offset)
        )
    if derived.divisor == 1:
        return text
    text = text if text.isidentifier() else f"({text})"
    return f"{text} / {derived.divisor}" if derived.exact else f"⌊{text} / {derived.divisor}⌋"


def _counted(counted: Counted) -> str:
    """How many axes a row variable stands for, and why."""
    many = f"{counted.length or 'no'} ax{'is' if counted.length == 1 else 'es'}"
    return f"{many}: {counted.because}"


def rows_text(rows: Rows) -> str:
    """The axes of a value as a specification has them: ``b0 | k -> m``."""
    return _divided(rows, rows.axes)


def extents_text(shaped: Shaped, rows: Rows) -> str:
    """The extents of a value, divided in the same way."""
    return _divided(rows, [size_text(shaped.sizes[n]) for n in shaped.tensors[rows.value].dims])


def _divided(rows: Rows, words: Sequence[str]) -> str:
    inner = len(words) - rows.inner
    text = " ".join(words[rows.batch : inner]) or "·"
    if rows.inner:
        text = f"{' '.join(words[inner:])} -> {text}"
    return f"{' '.join(words[: rows.batch])} | {text}" if rows.batch else text


def _onto(shaped: Shaped, value: int, node: Assignment) -> str:
    """How an assignment that takes the place of another writes."""
    dtype = shaped.tensors[value].dtype
    if node.acc is None:
        return f"{dtype}: each of its elements is written once, and not all of them are: the others stay as they are"
    op = OPS[node.acc]
    return f"{dtype}: several iterations may write one element: {op.name} to what is there"


def _result(shaped: Shaped, value: int, node: Assignment) -> str:
    """How a result is written: once, or from the neutral element on."""
    if node.base is not None:
        return _onto(shaped, value, node)
    reduced = [node.axes[axis].name for axis in node.reduced_axes()]
    dtype = shaped.tensors[value].dtype
    if node.acc is None or not reduced:
        return f"{dtype}: every element is written once, and all of them are"
    op = OPS[node.acc]
    assert op.identity is not None
    neutral = number_text(op.identity)
    inner = f", in {node.acc_dtype}" if node.acc_dtype != dtype else ""
    plural = "are" if len(reduced) > 1 else "is"
    return (
        f"{dtype}: {' '.join(reduced)} {plural} reduced, so elements are written more than once: "
        f"they start from {neutral}{inner}"
    )
