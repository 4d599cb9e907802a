"""Bodies over names against their wiring: the same graph, and text that survives printing and laying out."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from ilang.core import pipeline
from ilang.core.ir.graph import Assignment, Graph, Node
from ilang.core.ir.syntax import Module, same
from ilang.core.notation.files.layout import format_module
from ilang.core.notation.files.module import parse_module
from ilang.core.notation.functions.printing import print_program
from ilang.core.record import replace
from ilang.core.source import Source
from tests.property.bodies import DEFINITIONS, twins
from tests.property.tally import Tally


def module_of(text: str) -> Module:
    """A text after the definitions that it uses."""
    return parse_module(Source("m.i", DEFINITIONS + text))


def graph_of(text: str) -> Graph:
    """The graph of the definition `f` of such a text."""
    return pipeline.module_graph(module_of(text), "f")


def placeless(node: Node) -> Node:
    """The node without the places of its indices."""
    if not isinstance(node, Assignment):
        return node
    return replace(node, reads=tuple(replace(read, spans=()) for read in node.reads))


def same_graph(named: Graph, wired: Graph) -> bool:
    """Whether two graphs are one, but for what values are called."""
    nodes = [tuple(map(placeless, graph.nodes)) for graph in (named, wired)]
    ends = [(graph.inputs, graph.outputs, graph.annotations) for graph in (named, wired)]
    return nodes[0] == nodes[1] and ends[0] == ends[1]


def graphs(seed: int) -> tuple[str, Graph, Graph]:
    """A random program over names, its graph, and that of its wiring with the same outputs."""
    named, wired, outputs = twins(Random(seed))
    twin = graph_of(wired)
    return named, graph_of(named), replace(twin, outputs=twin.outputs[:outputs])


def survives(named: str) -> bool:
    """Whether a program is the same after it was printed, and its layout after it was laid out."""
    module = module_of(named)
    printed = print_program(module)
    again = parse_module(Source("m.i", printed))
    pairs = zip(module.definitions, again.definitions, strict=True)
    tidy = format_module(Source("m.i", DEFINITIONS + named))
    return (
        all(same(one.body, other.body) for one, other in pairs)
        and print_program(again) == printed
        and format_module(Source("m.i", tidy)) == tidy
    )


def check(seeds: Iterable[int]) -> Tally:
    """Compare the programs of some seeds with their wiring."""
    tally = Tally()
    for seed in seeds:
        tally.count(programs=1)
        named = twins(Random(seed))[0]
        with tally.noting(seed, [named]):
            _, one, other = graphs(seed)
            assert same_graph(one, other), "another graph"
            assert survives(named), "another text"
    return tally
