"""The data-flow graph of a program, as data: its values, what each is computed from, and which share a kernel.

Example, ``ik*kj~ijk >> +ijk~ij``:
    in0, in1             inputs
    product, out         in kernel k0: product is computed where out needs it, and not stored
    in0 -> product, in1 -> product, product -> out

A graph gives it before anything is inferred, a shaped program with types and formulas, a schedule with kernels, too.
``dataflow_text.py`` and ``dataflow_svg.py`` draw it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from ilang.core.explain.expression import extents_of
from ilang.core.explain.formulas import Formulas, sources_of
from ilang.core.explain.graph import node_text
from ilang.core.explain.page import signature
from ilang.core.ir.graph import Graph, Input, operands
from ilang.core.ir.operation import Terminal
from ilang.core.ir.schedule import Scheduled
from ilang.core.ir.shaped import Input as ShapedInput
from ilang.core.ir.shaped import Shaped
from ilang.core.record import record, replace

Kind = Literal["input", "output", "value"]


@record
class FlowNode:
    """A value: its name, element type and extents (empty before inference), and its formula (empty for an input).

    ``value`` is its number in the program; a value that several kernels compute has a node in each. A value that
    is not ``stored`` is never an array in memory. ``tensor`` is its name in loops and in C.
    """

    value: int
    kind: Kind
    name: str
    type: str
    formula: str
    stored: bool
    tensor: str


@record
class FlowGraph:
    """The nodes, sources first.

    ``edges`` are pairs of them by number, from a value to one that reads it; ``kernels`` has the nodes of each kernel.
    """

    title: str
    nodes: tuple[FlowNode, ...]
    edges: tuple[tuple[int, int], ...]
    kernels: tuple[tuple[int, ...], ...] = ()

    def sources(self, node: int) -> list[int]:
        """The nodes that one node reads, in order."""
        return [source for source, target in self.edges if target == node]

    def inside(self) -> set[int]:
        """The nodes of kernels."""
        return {node for nodes in self.kernels for node in nodes}


def flow_of_graph(graph: Graph) -> FlowGraph:
    """The nodes of a graph, as ``--emit graph`` lists them."""
    names = graph.value_names()
    nodes, edges = list[FlowNode](), dict[tuple[int, int], None]()
    for value, node in enumerate(graph.nodes):
        is_leaf = isinstance(node, Input | Terminal)
        kind: Kind = "input" if is_leaf else "output" if value in graph.outputs else "value"
        called = f" {names[value]}" if value in names else ""
        text = " ".join(node_text(graph, value).split())
        nodes.append(FlowNode(value, kind, f"n{value}{called}", "", text, True, ""))
        edges.update(dict.fromkeys((source, value) for source in operands(node)))
    return FlowGraph(graph.name, *_in_order(nodes, edges, ()))


def flow_of_shaped(shaped: Shaped) -> FlowGraph:
    """The values of a shaped program, with their formulas."""
    values = _told_values(shaped)
    nodes = [values[value] for value in sorted(values)]
    number = {node.value: n for n, node in enumerate(nodes)}
    edges = _edges(shaped, nodes, number, range(len(nodes)))
    return FlowGraph(signature(shaped), *_in_order(nodes, edges, ()))


def flow_of_schedule(scheduled: Scheduled) -> FlowGraph:
    """The values of a scheduled program, each in the kernels that compute it, in the order in which these run."""
    shaped = scheduled.shaped
    values, whole = _told_values(shaped), {*scheduled.whole()}
    placed = [
        sorted({each.value for each in group.plan.instances} & values.keys())
        for group in scheduled.groups
    ]
    inside = {value for group in placed for value in group}
    nodes = [node for value, node in sorted(values.items()) if value not in inside]
    blocks = [range(len(nodes))]
    for group in placed:
        blocks.append(range(len(nodes), len(nodes) + len(group)))
        nodes += [replace(values[value], stored=value in whole) for value in group]
    memory = {node.value: n for n, node in enumerate(nodes) if node.stored}
    edges = list[tuple[int, int]]()
    for block in blocks:
        local = {nodes[n].value: n for n in block}
        edges += _edges(shaped, nodes, {**memory, **local}, block)
    return FlowGraph(signature(shaped), *_in_order(nodes, edges, list(map(tuple, blocks[1:]))))


def _told_values(shaped: Shaped) -> dict[int, FlowNode]:
    """The inputs, and every value that results need."""
    formulas = Formulas(shaped)
    formulas_of = formulas.every()
    nodes = {}
    for value in sorted({*formulas_of, *shaped.inputs}):
        tensor = shaped.tensors[value]
        is_input = isinstance(shaped.nodes[value], ShapedInput)
        kind: Kind = "input" if is_input else "output" if value in shaped.outputs else "value"
        formula = formulas_of[value].text if value in formulas_of else ""
        name = formulas.names[value]
        typed = f"{tensor.dtype}[{','.join(extents_of(shaped, value))}]"
        nodes[value] = FlowNode(value, kind, name, typed, formula, True, tensor.origin())
    return nodes


def _edges(
    shaped: Shaped, nodes: Sequence[FlowNode], number: Mapping[int, int], block: Iterable[int]
) -> list[tuple[int, int]]:
    """The edges to the nodes of a block; ``number`` has the node of each value that they read."""
    return [
        (number[source], at)
        for at in block
        for source in dict.fromkeys(sources_of(shaped.nodes[nodes[at].value]))
        if source in number
    ]


def _in_order(
    nodes: Sequence[FlowNode], edges: Iterable[tuple[int, int]], kernels: Sequence[tuple[int, ...]]
) -> tuple[tuple[FlowNode, ...], tuple[tuple[int, int], ...], tuple[tuple[int, ...], ...]]:
    """Nodes with sources first, those of a kernel together.

    Inputs stand before the first kernel that reads them, views after the one that gives what they are of.
    """
    needs: dict[int, list[int]] = {}
    for source, target in edges:
        needs.setdefault(target, []).append(source)
    inside = {node for block in kernels for node in block}
    leaves = {node for node in range(len(nodes)) if node not in inside and node not in needs}
    waiting: list[tuple[int, ...]] = [(n,) for n in range(len(nodes)) if n not in inside | leaves]
    waiting += kernels
    order = dict[int, None]()
    while waiting:
        known = leaves | order.keys()
        ready = next(
            block
            for block in waiting
            if all(known.union(block) >= {*needs[node]} for node in block if node in needs)
        )
        waiting.remove(ready)
        read = {source for node in ready for source in needs.get(node, ())}
        order.update(dict.fromkeys(sorted(read & leaves)))
        order.update(dict.fromkeys(ready))
    order.update(dict.fromkeys(sorted(leaves)))
    place = {node: at for at, node in enumerate(order)}
    moved = sorted(((place[source], place[target]) for source, target in edges), key=_target)
    renumbered = [tuple(place[node] for node in block) for block in kernels]
    return tuple(nodes[node] for node in order), tuple(moved), tuple(renumbered)


def _target(edge: tuple[int, int]) -> tuple[int, int]:
    """The key by which edges to one node stand together, in the order of nodes."""
    return edge[1], edge[0]
