"""Operations in einx notation as `i explain` tells them: what each stage made of the expressions, and its sizes.

Example:
    einx.sum("a (b [c])", c=2)
      in full       a (b [c]) -> a (b)
      equations     dimension 0 of in0 = a; dimension 1 of in0 = b·c; c = 2
      solution      a is dimension 0 of in0; b = bc / 2; c = 2
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.core.einx_ops import EINX_OPS
from ilang.core.explain.expression import size_text
from ilang.core.explain.reasons import formula
from ilang.core.explain.story import StoryRow
from ilang.core.ir import einx
from ilang.core.ir.graph import Einx, Graph
from ilang.core.ir.shaped import Shaped
from ilang.core.names import LETTERS
from ilang.core.ops import BETWEEN, OPS
from ilang.core.passes.einx.fusing import FusedOperation
from ilang.core.passes.einx.orders import order_of_pieces
from ilang.core.passes.einx_to_graph import operations
from ilang.core.record import record

WORDS = {
    einx.Axis: "axis",
    einx.UnnamedAxis: "number",
    einx.Composition: "composition",
    einx.Concatenation: "concatenation",
    einx.Bracket: "bracket",
    einx.Repetition: "ellipsis",
}


@record
class OperationRow:
    """An operation, and its stages in order, each with what it left of the operation."""

    text: str
    stages: tuple[StoryRow, ...]


def operation_rows(graph: Graph, shaped: Shaped, verbose: bool) -> tuple[OperationRow, ...]:
    """The operations of a graph, in its order.

    Args:
        graph: in which they stand.
        shaped: the same program, its sizes solved.
        verbose: say also how each expression was read, node by node.
    """
    ranks = [len(shaped.tensors[value].dims) for value in shaped.inputs]
    return tuple(
        OperationRow(node.text, tuple(_stages(node, solved, names, shaped, verbose)))
        for node, solved, names in operations(graph, ranks)
    )


def _stages(
    node: Einx, solved: FusedOperation, names: Sequence[str], shaped: Shaped, verbose: bool
) -> Iterator[StoryRow]:
    """The rows on one operation: in full, its ellipses, its axes, and what it becomes."""
    form = node.form
    yield StoryRow("in full", einx.form_text(form))
    if verbose:
        for expression in form.expressions():
            for depth, item in _nodes(expression):
                at = f"{item.span.start - form.span.start}..{item.span.end - form.span.start}"
                words = f"{'  ' * depth}{einx.item_text(item)}"
                yield StoryRow("tree", f"{words:24}  {WORDS[type(item)]} {at}")
    yield from (StoryRow("ellipsis", line) for line in solved.repeated.counts)
    repeated = (*solved.repeated.inputs, *solved.repeated.outputs)
    if solved.repeated.counts:
        yield StoryRow("repeated", _sides(repeated, len(form.inputs)))
    whole = solved.expressions
    if {_name(p.leaf) for each in repeated for p in einx.places(each)} != {
        _name(p.leaf) for each in whole for p in einx.places(each)
    }:
        yield StoryRow("fused", _sides(whole, len(form.inputs)))
    yield StoryRow("equations", "; ".join(_equations(solved, names)) or "none")
    yield StoryRow("solution", "; ".join(_solution(solved, shaped)) or "no axes")
    if node.body is not None:
        yield StoryRow("op", f"{node.body.text}   for each {_along(whole) or 'tensor'}")
    order = order_of_pieces(form)
    if order is not None:
        yield StoryRow("order", order)
    index = _index_expression(form, solved)
    if index is not None:
        yield StoryRow("the same", index)


def _along(expressions: Sequence[einx.Expression]) -> str:
    """The axes outside brackets."""
    leaves = (p.leaf for each in expressions for p in einx.places(each) if not p.marked)
    return " ".join(dict.fromkeys(map(_name, leaves)))


def _nodes(expression: einx.Expression) -> Iterator[tuple[int, einx.Item]]:
    """The items of an expression, each with how deep it stands."""
    todo = [(0, item) for item in reversed(expression.items)]
    while todo:
        depth, item = todo.pop()
        yield depth, item
        todo += [(depth + 1, each) for each in reversed(einx.inside(item))]


def _sides(expressions: Sequence[einx.Expression], inputs: int) -> str:
    sides = (
        ", ".join(map(einx.expression_text, side))
        for side in (expressions[:inputs], expressions[inputs:])
    )
    return " -> ".join(sides).strip()


def _name(leaf: einx.Axis | einx.UnnamedAxis) -> str:
    return leaf.name if isinstance(leaf, einx.Axis) else str(leaf.size)


def _equations(solved: FusedOperation, names: Sequence[str]) -> Iterator[str]:
    """The equations of dimensions that the expressions write, and the sizes that are written."""
    for expression, name in zip(solved.inputs, names, strict=True):
        for number, item in enumerate(einx.unbracketed(expression.items)):
            yield f"dimension {number} of {name} = {_amount(item)}"
    for name, size in solved.sizes.items():
        yield f"{name} = {size}"


def _amount(item: einx.Item) -> str:
    """``b·c``, ``a + 1``."""
    match item:
        case einx.Axis():
            return item.name
        case einx.UnnamedAxis():
            return str(item.size)
        case einx.Concatenation():
            return " + ".join(map(_amount, item.items))
        case _:
            return "·".join(map(_amount, einx.unbracketed(einx.inside(item)))) or "1"


def _solution(solved: FusedOperation, shaped: Shaped) -> Iterator[str]:
    """The size of each axis: a number, a dimension of an input, or a formula."""
    rules = {rule.size: rule for rule in shaped.derived}
    number = {size.name: n for n, size in enumerate(shaped.sizes)}
    names = [shaped.tensors[value].name for value in shaped.inputs]
    axes = dict.fromkeys(
        place.leaf.name
        for each in solved.expressions
        for place in einx.places(each)
        if isinstance(place.leaf, einx.Axis)
    )
    for axis in axes:
        size = number.get(axis)
        if axis in solved.sizes:
            yield f"{axis} = {solved.sizes[axis]}"
        elif size is None:
            continue
        elif shaped.sizes[size].fixed is not None:
            yield f"{axis} = {shaped.sizes[size].fixed}"
        elif size in rules:
            yield f"{axis} = {formula(rules[size], lambda n: size_text(shaped.sizes[n]))}"
        elif shaped.sizes[size].places:
            place = shaped.sizes[size].places[0]
            yield f"{axis} is dimension {place.dim} of {names[place.number]}"


def _index_expression(form: einx.Form, solved: FusedOperation) -> str | None:
    """The program in index expressions that means the same, where one is short."""
    op = EINX_OPS[form.op]
    if len(solved.outputs) != 1 or solved.sizes:
        return None
    letters: dict[str, str] = {}
    patterns = []
    for expression in solved.expressions:
        items = list(einx.unbracketed(expression.items))
        names = [item.name for item in items if isinstance(item, einx.Axis)]
        if len(names) < len(items):
            return None
        for name in names:
            letters.setdefault(name, LETTERS[len(letters) % len(LETTERS)])
        patterns.append("".join(letters[name] for name in names) or ".")
    if len(letters) > len(LETTERS):
        return None
    *given, output = patterns
    kept = set(output) <= set("".join(given))
    if op.kind == "id" and len(given) == 1 and set(output) == set(given[0]):
        return f"{given[0]}~{output}"
    if op.kind == "reduce" and op.meaning in OPS and kept and len(output) < len(given[0]):
        return f"{op.meaning}{given[0]}~{output}"
    if op.kind == "elementwise" and len(given) == 2 and op.meaning in BETWEEN and kept:
        return f"{given[0]}{BETWEEN[op.meaning]}{given[1]}~{output}"
    if op.kind == "dot" and len(given) == 2 and kept:
        both = "".join(dict.fromkeys(given[0].strip(".") + given[1].strip(".")))
        if len(output) < len(both):
            return f"{given[0]}*{given[1]}~{both} >> +{both}~{output}"
    return None
