"""Sizes of axes alone: what expressions and the shapes of tensors say of them, and nothing computed.

Example:
    in:   (a b) c, a + 1 with shapes (6, 5), a=2
    out:  a=2 b=3 c=5

The engine of all inference solves them. A size that it leaves open, since it never guesses, is searched where few
numbers are possible: divisors of a product, parts of a sum. One solution is an answer; two are none, unless any will
do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ilang.core.diagnostic import DataError, Label, ShapeError, counted
from ilang.core.infer.scopes import Scopes
from ilang.core.infer.solver import solve
from ilang.core.ir import einx, rows
from ilang.core.passes.einx.ellipses import repeat
from ilang.core.passes.einx.fusing import FusedOperation, fuse
from ilang.core.source import Span, whole

MOST_TRIED = 10_000
"""Numbers that are tried at most before sizes count as open."""
OPEN = ("E0521", "E0578")
"""Codes of refusals since nothing gives a size."""
Shape = tuple[int, ...]
Fresh = Callable[[str], rows.Var]
"""Gives a new variable."""


def form_of(
    expressions: tuple[einx.Expression, ...], parameters: Sequence[einx.Parameter], span: Span
) -> einx.Form:
    """Expressions alone, as a form without an operation."""
    given = tuple(parameters)
    return einx.Form("solve", span.text(), expressions, (), given, given, (), span)


def solve_sizes(
    form: einx.Form,
    shapes: Sequence[Shape | None],
    names: Sequence[str],
    fused: bool,
    any_will_do: bool = False,
) -> FusedOperation:
    """Expressions without ellipses, and the size of every axis of them.

    Args:
        form: has the expressions of tensors as inputs, and perhaps outputs; its parameters are sizes.
        shapes: of the inputs, None of one that is not known.
        names: what messages call them.
        fused: whether axes that always stand together are one, whose parts have no sizes.
        any_will_do: whether one of several solutions is an answer.

    Raises:
        DataError: E0701 (another number of shapes).
        ShapeError: E05 (sizes that contradict each other, or that nothing gives).
    """
    if len(shapes) != len(form.inputs):
        message = f"there are {counted(len(form.inputs), 'expression')}, and {counted(len(shapes), 'tensor')}"
        raise DataError("E0701", message, form.span, "give a tensor for each expression")
    ranks = [None if shape is None else len(shape) for shape in shapes]
    repeated = repeat(form, ranks, names)
    sizes = repeated.written()
    every = (*repeated.inputs, *repeated.outputs)
    if fused:
        every = fuse(repeated.inputs, repeated.outputs, sizes)
    system = _System(every, shapes, names, sizes)
    count = len(repeated.inputs)
    return FusedOperation(every[:count], every[count:], system.solved(any_will_do), repeated)


def shape_of(expression: einx.Expression, sizes: Mapping[str, int]) -> Shape:
    """The shape of a tensor whose axes have these sizes."""
    return tuple(_size(item, sizes) for item in einx.unbracketed(expression.items))


def _size(item: einx.Item, sizes: Mapping[str, int]) -> int:
    if isinstance(item, einx.Axis):
        return sizes[item.name]
    if isinstance(item, einx.UnnamedAxis):
        return item.size
    if isinstance(item, einx.Concatenation):
        return sum(_size(part, sizes) for part in item.items)
    total = 1
    for each in einx.inside(item):
        total *= _size(each, sizes)
    return total


class _System:
    """The equations of expressions and shapes, and a search of the sizes that these leave open."""

    def __init__(
        self,
        expressions: Sequence[einx.Expression],
        shapes: Sequence[Shape | None],
        names: Sequence[str],
        sizes: Mapping[str, int],
    ) -> None:
        self.expressions = expressions
        self.shapes = shapes
        self.names = names
        self.sizes = dict(sizes)
        self.tried = 0
        self.is_open = False
        self.axes = {
            place.leaf.name: place.leaf
            for each in expressions
            for place in einx.places(each)
            if isinstance(place.leaf, einx.Axis)
        }

    def solved(self, any_will_do: bool) -> dict[str, int]:
        """The size of every axis. Raises ShapeError E05."""
        try:
            return self._run(self.sizes)
        except ShapeError as error:
            if error.code not in OPEN:
                raise
            solutions: list[dict[str, int]] = []
            for one in self._search(self.sizes):
                if one not in solutions:
                    solutions.append(one)
                if any_will_do or len(solutions) > 1:
                    break
            if len(solutions) == 1 and self.tried <= MOST_TRIED:
                return solutions[0]
            if not solutions and 0 < self.tried <= MOST_TRIED and not self.is_open:
                raise self._unfit() from None
            raise

    def _run(self, sizes: Mapping[str, int]) -> dict[str, int]:
        count = 0

        def fresh(_name: str) -> rows.Var:
            nonlocal count
            count += 1
            return rows.Var(count - 1)

        scopes = Scopes(fresh)
        constraints: list[rows.Constraint] = []
        for name, axis in self.axes.items():
            var = scopes.name(0, name, axis.span)
            constraints += scopes.determined(0, name, whole(axis.span.source))
            if name in sizes:
                given = rows.Origin(f"the parameter {name}", None, "", "written")
                known = rows.Known(sizes[name], given)
                says = rows.Origin(f"axis {name}", axis.span)
                constraints.append(rows.DimEqual(var, known, says))
        for item, known in self._known():
            origin = rows.Origin(f"`{item.span.text()}`", item.span)
            constraints += _equation(item, known, origin, scopes, fresh)
        solution = solve(count, 0, constraints, dict(_named(scopes)))
        return {
            name: solution.size(scopes.name(0, name, axis.span)) for name, axis in self.axes.items()
        }

    def _known(self) -> Iterator[tuple[einx.Item, rows.Known]]:
        """The dimensions of tensors whose shapes are known, and what they are made of."""
        tensors = zip(self.expressions, self.shapes, self.names, strict=False)
        for expression, shape, tensor in tensors:
            pairs = zip(einx.unbracketed(expression.items), shape or (), strict=False)
            for number, (item, size) in enumerate(pairs):
                says = rows.Origin(f"dimension {number} of {tensor}", item.span)
                yield item, rows.Known(size, says)

    def _search(self, sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """The solutions for each number that an open axis may have, the one of the fewest; and so on."""
        if self.tried > MOST_TRIED:
            return
        opened = {name: self._possible(name) for name in self.axes if name not in sizes}
        choices = {name: candidates for name, candidates in opened.items() if candidates}
        if not choices:
            self.is_open = True
            return
        name = min(choices, key=lambda each: len(choices[each]))
        for number in choices[name]:
            self.tried += 1
            if self.tried > MOST_TRIED:
                return
            tried = {**sizes, name: number}
            try:
                yield self._run(tried)
            except ShapeError as error:
                if error.code in OPEN:
                    yield from self._search(tried)

    def _unfit(self) -> ShapeError:
        known = [(item, rows.extent_of(size)) for item, size in self._known()]
        composed = [
            (item, size)
            for item, size in known
            if not isinstance(item, einx.Axis | einx.UnnamedAxis)
        ]
        says = " and ".join(f"`{item.span.text()}` be {size}" for item, size in composed)
        labels = [Label(item.span, str(size)) for item, size in known]
        help_line = "compare the extents with the expression"
        return ShapeError(
            "E0544", f"no sizes of axes let {says}", labels[0].span, help_line, labels
        )

    def _possible(self, name: str) -> list[int]:
        """The sizes that an axis may have by the dimensions in which it stands; empty where none of these is known."""
        best: list[int] = []
        for item, known in self._known():
            within = list(_within(item))
            if not any(isinstance(each, einx.Axis) and each.name == name for each in within):
                continue
            size = rows.extent_of(known)
            if any(isinstance(each, einx.Concatenation) for each in within):
                sizes = list(range(min(size, MOST_TRIED) + 1))
            elif size == 0:
                continue
            else:
                sizes = [n for n in range(1, min(size, MOST_TRIED) + 1) if size % n == 0]
            if not best or len(sizes) < len(best):
                best = sizes
        return best


def _within(item: einx.Item) -> Iterator[einx.Item]:
    yield item
    for each in einx.inside(item):
        yield from _within(each)


def _named(scopes: Scopes) -> Iterator[tuple[int, str]]:
    for (_, name), var in scopes.names.items():
        yield var.number, "the axes of `...`" if name == einx.HIDDEN else f"axis {name}"


def _equation(
    item: einx.Item, known: rows.Dim, says: rows.Origin, scopes: Scopes, fresh: Fresh
) -> list[rows.Constraint]:
    """The constraint that a dimension has the size of what it is made of."""
    constraints: list[rows.Constraint] = []
    dim = _made(item, says, scopes, fresh, constraints)
    return [*constraints, rows.DimEqual(dim, known, says)]


def _word(item: einx.Item) -> str:
    """The name of a part in messages: an axis by its name, which says of which repetition it is."""
    return (
        item.name if isinstance(item, einx.Axis) and item.name != einx.HIDDEN else item.span.text()
    )


def _made(
    item: einx.Item,
    says: rows.Origin,
    scopes: Scopes,
    fresh: Fresh,
    constraints: list[rows.Constraint],
) -> rows.Dim:
    match item:
        case einx.Axis():
            return scopes.name(0, item.name, item.span)
        case einx.UnnamedAxis():
            written = rows.Origin(f"`{item.span.text()}`", item.span, "", "written")
            return rows.Known(item.size, written)
        case einx.Concatenation():
            parts = [(1, _made(part, says, scopes, fresh, constraints)) for part in item.items]
            return rows.weighted(parts, 0, says)
        case _:
            inner = [each for part in einx.inside(item) for each in einx.unbracketed((part,))]
            dims = tuple(_made(each, says, scopes, fresh, constraints) for each in inner)
            whole = fresh(item.span.text())
            words = tuple(_word(each) for each in inner)
            constraints.append(rows.Composed(whole, dims, words, says))
            return whole
