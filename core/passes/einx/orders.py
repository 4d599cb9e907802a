"""Hints where an operation in einx notation is refused, and its names or its arrays suggest another order.

Tensors and pieces of concatenations go by position. An earlier release of the original matched them by name.

Example:
    einx.id("(a + b) c -> b c, a c", x, a=1)    pieces go by position: write `-> a c, b c`
    einx.add("a b, b", y, x)                    arrays go by position: in1, in0 would fit
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations, product

from ilang.core.diagnostic import Error, ShapeError
from ilang.core.ir import einx
from ilang.core.ir.graph import Einx, Graph
from ilang.core.passes.einx.solving import solve_sizes
from ilang.core.record import replace

MOST_ARRAYS = 4
"""Arrays whose other orders are tried."""
Shape = Sequence[int]


def with_order(error: ShapeError, graph: Graph, shapes: Sequence[Shape] | None) -> ShapeError:
    """An error, its help line with the order that an operation of the graph suggests, where one does.

    Args:
        error: what refuses a program, or its arrays.
        graph: the program.
        shapes: of the arrays, where there are some.
    """
    for node in graph.nodes:
        if not isinstance(node, Einx) or error.span is None:
            continue
        inside_it = error.span.source is node.form.span.source
        start, end = node.form.span.start, node.form.span.end
        if not (inside_it and start <= error.span.start and error.span.end <= end):
            continue
        hint = order_of_pieces(node.form)
        if hint is None and shapes is not None and node.operands == graph.inputs:
            hint = _order_of_arrays(node.form, shapes, [graph.input_name(n) for n in graph.inputs])
        if hint is not None and hint not in error.help:
            return error.with_help(f"{error.help}; {hint}" if error.help else hint)
    return error


def order_of_pieces(form: einx.Form) -> str | None:
    """The text to write where the pieces of ``einx.id`` have the names of its outputs, in another order."""
    if form.op != "id" or len(form.outputs) < 2:
        return None
    given = [names for each in form.inputs for names in _pieces(each)]
    wanted = [list(_pieces(each)) for each in form.outputs]
    if any(len(names) != 1 for names in wanted) or len(given) != len(wanted):
        return None
    outputs = [names[0] for names in wanted]
    if given == outputs or Counter(given) != Counter(outputs):
        return None
    left = list(form.outputs)
    order = []
    for names in given:
        match = next(each for each in left if next(_pieces(each)) == names)
        left.remove(match)
        order.append(einx.expression_text(match))
    return f"pieces go by position, and their names suggest `-> {', '.join(order)}`"


def _pieces(expression: einx.Expression) -> Iterator[frozenset[str]]:
    """The names of each piece of an expression: one of each concatenation, in every combination."""
    for items in product(*map(_parts, expression.items)):
        yield frozenset(name for names in items for name in names)


def _parts(item: einx.Item) -> Iterator[frozenset[str]]:
    if isinstance(item, einx.Concatenation):
        for part in item.items:
            yield from _parts(part)
    elif isinstance(item, einx.Composition):
        for parts in product(*map(_parts, item.items)):
            yield frozenset().union(*parts)
    else:
        leaves = (each for each in (item, *einx.inside(item)) if isinstance(each, einx.Axis))
        yield frozenset(leaf.name for leaf in leaves)


def _order_of_arrays(form: einx.Form, shapes: Sequence[Shape], names: Sequence[str]) -> str | None:
    """The one other order in which arrays would fit."""
    if not 1 < len(shapes) <= MOST_ARRAYS:
        return None
    whole = replace(form, outputs=())
    fits = []
    for order in permutations(range(len(shapes))):
        try:
            solve_sizes(whole, [tuple(shapes[n]) for n in order], names, True, any_will_do=True)
        except Error:
            continue
        fits.append(order)
    if len(fits) != 1 or fits[0] == tuple(range(len(shapes))):
        return None
    return f"arrays go by position, and {', '.join(names[n] for n in fits[0])} would fit"
