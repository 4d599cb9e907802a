"""Data-flow graphs: what they hold, and how they are drawn."""

import itertools
import random
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import pytest

from ilang.core import pipeline
from ilang.core.explain.dataflow import (
    FlowGraph,
    FlowNode,
    flow_of_graph,
    flow_of_schedule,
    flow_of_shaped,
)
from ilang.core.explain.dataflow_svg import Layers, svg_text
from ilang.core.explain.dataflow_text import dot_text, mermaid_text, plain_text
from ilang.core.ir.graph import Graph
from ilang.core.machine import CPU, GPU, Machine

PROGRAMS = (
    "ik*kj~ijk >> +ijk~ij",
    "(I & +ij~i) >> ij/i~ij",
    "ij>ij~ij",
    'einx.softmax("s h [t]")',
    'einx.id("(a b) c -> a (b c)", a=2)',
    'elementwise("f: x[i,j], y[j] -> x * y; sum: x + y")',
    'einsum("ij,jk->ik")',
)


def graph(text: str) -> Graph:
    return pipeline.program_graph(pipeline.text_program(text))


def scheduled(text: str, machine: Machine = CPU) -> FlowGraph:
    return flow_of_schedule(pipeline.schedule(pipeline.infer(graph(text)), machine))


def names(flow: FlowGraph) -> set[tuple[str, str]]:
    return {(flow.nodes[a].name, flow.nodes[b].name) for a, b in flow.edges}


def test_a_product_of_matrices() -> None:
    flow = scheduled("ik*kj~ijk >> +ijk~ij")
    assert names(flow) == {("in0", "product"), ("in1", "product"), ("product", "out")}
    assert [node.kind for node in flow.nodes] == ["input", "input", "value", "output"]
    assert [node.type for node in flow.nodes] == ["f32[i,k]", "f32[k,j]", "f32[i,j,k]", "f32[i,j]"]
    assert [node.stored for node in flow.nodes] == [True, True, False, True]
    assert flow.kernels == ((2, 3),)


def test_a_value_that_two_kernels_compute_has_a_node_in_each() -> None:
    text = "(^ij~ij >> +ij~i) & (^ij~ij >> +ij~j)"
    flow = scheduled(text, GPU)
    assert len(flow.kernels) == 2
    inside = [{flow.nodes[n].value for n in nodes} for nodes in flow.kernels]
    both = set.intersection(*inside)
    for value in both:
        nodes = [n for n, node in enumerate(flow.nodes) if node.value == value]
        assert len(nodes) == 2
        assert not any(flow.nodes[n].stored for n in nodes)
        for n in nodes:
            (kernel,) = [nodes for nodes in flow.kernels if n in nodes]
            assert {b for a, b in flow.edges if a == n} <= {*kernel}


def test_stages() -> None:
    before = flow_of_graph(graph("(I & +ij~i) >> ij/i~ij"))
    assert [node.name for node in before.nodes] == ["n0", "n1", "n2"]
    assert [node.type for node in before.nodes] == [""] * 3
    shaped = flow_of_shaped(pipeline.infer(graph("(I & +ij~i) >> ij/i~ij")))
    assert names(shaped) == {("in0", "sum"), ("in0", "out"), ("sum", "out")}
    assert shaped.kernels == ()
    assert shaped.nodes[-1].formula == "out[i,j] = in0[i,j] / sum[i]"


@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("stage", ["graph", "shapes", "schedule"])
def test_sources_come_first_and_every_drawing_has_every_edge(text: str, stage: str) -> None:
    wired = graph(text)
    flow = (
        flow_of_graph(pipeline.einx_to_graph(wired))
        if stage == "graph"
        else flow_of_shaped(pipeline.infer(wired))
        if stage == "shapes"
        else scheduled(text)
    )
    assert all(a < b for a, b in flow.edges)
    root = ET.fromstring(svg_text(flow))
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f".//{space}g[@class='node']")) == len(flow.nodes)
    assert len(root.findall(f".//{space}path[@marker-end]")) == len(flow.edges)
    for written, arrow in ((mermaid_text(flow), "-->"), (dot_text(flow), "->")):
        pairs = re.findall(rf"^  v(\d+) {arrow} v(\d+);?$", written, re.MULTILINE)
        assert [(int(a), int(b)) for a, b in pairs] == list(flow.edges)
        assert written.count("subgraph") == len(flow.kernels)
        assert len(re.findall(r"^ +v\d+[\[(]| +v\d+ \[", written, re.MULTILINE)) == len(flow.nodes)


@pytest.mark.parametrize("text", PROGRAMS)
def test_lines_of_the_text_lead_from_sources_to_readers(text: str) -> None:
    """Followed character by character, the columns give back the edges."""
    flow = scheduled(text)
    rows = [line for line in plain_text(flow).split("\n")[2:] if line]
    columns: dict[int, int] = {}
    edges, node = [], -1
    for row in rows:
        if "kernel k" in row or not re.search(r"\[", row):
            assert all(row[2 * at] == "│" for at in columns)
            continue
        node += 1
        rail = row[: row.index(flow.nodes[node].name)]
        for at, source in list(columns.items()):
            if rail[2 * at] in "├┼└┴":
                edges.append((source, node))
            else:
                assert rail[2 * at] == "│"
            if rail[2 * at] in "└┴":
                del columns[at]
        columns |= {at // 2: node for at, c in enumerate(rail) if c == "┬"}
    assert sorted(edges) == sorted(flow.edges)
    assert columns == {}


def test_ascii_and_width() -> None:
    flow = scheduled("ik*kj~ijk >> +ijk~ij")
    assert plain_text(flow, ascii_only=True).isascii()
    assert "sum_k" in plain_text(flow, ascii_only=True)
    assert max(map(len, plain_text(flow, width=50).split("\n"))) <= 50
    assert "not stored" in plain_text(flow, width=50)


def test_labels_hold_what_programs_hold() -> None:
    label = 'a < b && "c" # \\'
    flow = FlowGraph(label, (FlowNode(0, "output", label, "", "", True, label),), ())
    assert '[["a #lt; b #amp;#amp; #quot;c#quot; #35; \\"]]' in mermaid_text(flow)
    assert r'[label="a < b && \"c\" # \\", style=bold]' in dot_text(flow)
    assert label in "".join(ET.fromstring(svg_text(flow)).itertext())


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("text", PROGRAMS)
def test_graphviz_reads_it(text: str) -> None:
    given = dot_text(scheduled(text))
    done = subprocess.run(
        ["dot", "-Tplain"], input=given, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(re.findall("^node", done.stdout, re.MULTILINE)) == len(scheduled(text).nodes)


@pytest.mark.parametrize("seed", range(20))
def test_layers(seed: int) -> None:
    """Boxes of a layer stand apart, every edge goes down, and no line goes through a box."""
    draw = random.Random(seed)
    count = draw.randrange(2, 24)
    boxes = [(draw.randrange(20, 200), draw.randrange(10, 90)) for _ in range(count)]
    pairs = list(itertools.combinations(range(count), 2))
    edges = draw.sample(pairs, min(len(pairs), draw.randrange(1, 40)))
    layout = Layers(boxes, edges, 10, 20)
    rectangles = [
        (x, y, x + width, y + height)
        for (x, y), (width, height) in zip(layout.places, boxes, strict=True)
    ]
    for a, b in itertools.combinations(rectangles, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    for (source, target), points in zip(edges, layout.waypoints, strict=True):
        heights = [layout.spans[source][1], *(y for _, y in points), layout.spans[target][0]]
        assert heights == sorted(heights)
        for (x, top), (_, bottom) in zip(points[::2], points[1::2], strict=True):
            assert not any(l < x < r and t < bottom and top < u for l, t, r, u in rectangles)  # noqa: E741
    assert all(0 <= l and r <= layout.width + 1e-6 for l, _, r, _ in rectangles)  # noqa: E741
