"""A program under names of no notation: two texts are one program where these are equal.

Example, of `einx.sum("a [b]")` as of `+ij~i`:
    in:   n1[a] = sum in0[a,b] over b   as `out`
    out:  y0[a] = sum x0[a,b] over b    where a stands for `a`, or `i`; b for `b`, or `j`; x0 for `in0`
"""

from __future__ import annotations

from collections import Counter

from ilang.core.ir.assignments import ordered
from ilang.core.ir.shaped import Assignment, Input, Node, Shaped, View
from ilang.core.names import LETTERS
from ilang.core.record import replace


def canonical(shaped: Shaped) -> tuple[Shaped, tuple[str, ...]]:
    """The program with names by the order in which values, axes and extents are met from its outputs on.

    Schedules that are written stay as they are.

    Returns:
        The program, and the names that axes and inputs had, in the order of those that they have instead.
    """
    program = ordered(replace(shaped, rows=(), counted=()))
    met: list[int] = []
    for node, tensor in zip(program.nodes, program.tensors, strict=True):
        met += tensor.dims if isinstance(node, Input) else (*tensor.dims, *node.sizes)
    order = list(dict.fromkeys(met))
    words = [*LETTERS[: len(order)], *(f"s{n}" for n in range(len(LETTERS), len(order)))]
    word = dict(zip(order, words, strict=True))
    place: dict[int, str] = {value: f"y{n}" for n, value in enumerate(program.outputs)}
    place |= {value: f"x{n}" for n, value in enumerate(program.inputs)}
    tensors = tuple(
        replace(
            tensor, name=place.get(value, f"t{value}"), definition="", part="", named=False, of=""
        )
        for value, tensor in enumerate(program.tensors)
    )
    sizes = tuple(replace(size, name=word.get(n, f"u{n}")) for n, size in enumerate(program.sizes))
    nodes = tuple(_renamed(node, word) for node in program.nodes)
    names = [program.sizes[n].name for n in order]
    names += [program.tensors[value].name for value in program.inputs]
    renamed = replace(program, name="program", nodes=nodes, tensors=tensors, sizes=sizes)
    return renamed, tuple(names)


def _renamed(node: Node, word: dict[int, str]) -> Node:
    """A node without its text, whose axes are called as their extents; a second axis of one extent has a number."""
    if not isinstance(node, Assignment | View):
        return node
    seen: Counter[int] = Counter()
    axes = []
    for axis, size in zip(node.axes, node.sizes, strict=True):
        axes.append(replace(axis, name=f"{word[size]}{seen[size] or ''}"))
        seen[size] += 1
    return replace(node, axes=tuple(axes), text="")
