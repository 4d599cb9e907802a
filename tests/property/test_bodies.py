"""A body over names means exactly its wiring: the same graph, so the same loops and C, and the same results."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from ilang.codegen.runtime.library import library
from ilang.codegen.targets import c
from ilang.core import pipeline
from ilang.core.ir.graph import Assignment, Graph, Node
from ilang.core.ir.syntax import same
from ilang.core.notation.layout import format_module
from ilang.core.notation.module import parse_module
from ilang.core.notation.printer import print_program
from ilang.core.record import replace
from ilang.core.source import Source
from tests.property.bodies import DEFINITIONS, twins

PROGRAMS = 150


def graph_of(text: str) -> Graph:
    return pipeline.module_graph(parse_module(Source("m.i", DEFINITIONS + text)), "f")


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


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_names_mean_their_wiring(seed: int) -> None:
    named, wired, outputs = twins(Random(seed))
    one, other = graph_of(named), graph_of(wired)
    other = replace(other, outputs=other.outputs[:outputs])
    assert same_graph(one, other), named
    if seed % 15 == 0:
        plain = (replace(graph, called=()) for graph in (one, other))
        texts = [c.emit(pipeline.lower(pipeline.infer(graph))) for graph in plain]
        assert texts[0] == texts[1], named


@pytest.mark.parametrize("seed", range(PROGRAMS, PROGRAMS + 20))
def test_text_survives(seed: int) -> None:
    named, _, _ = twins(Random(seed))
    source = Source("m.i", DEFINITIONS + named)
    module = parse_module(source)
    printed = print_program(module)
    again = parse_module(Source("m.i", printed))
    assert all(
        same(one.body, other.body)
        for one, other in zip(module.definitions, again.definitions, strict=True)
    )
    assert print_program(again) == printed
    tidy = format_module(source)
    assert format_module(Source("m.i", tidy)) == tidy


@pytest.mark.parametrize("seed", range(3))
def test_results_are_those_of_the_wiring(seed: int) -> None:
    named, wired, outputs = twins(Random(1_000 + seed))
    one, other = (
        library(parse_module(Source("m.i", DEFINITIONS + text)))["f"] for text in (named, wired)
    )
    arrays = np.random.default_rng(seed).random((one.takes(), 3, 4), np.float32)
    results, wanted = one(*arrays), other(*arrays)
    results = results if isinstance(results, tuple) else (results,)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for got, want in zip(results, wanted[:outputs], strict=True):
        np.testing.assert_array_equal(got, want)
