"""The first page of ``i explain`` on each sample, 80 columns wide."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ilang.core import pipeline
from ilang.core.explain.explanation import Explanation
from ilang.core.explain.first_page import WIDTH, first_page, loops_page
from ilang.core.ir.graph import UNNAMED
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.notation.files.module import exports, parse_module
from ilang.core.source import Source
from tests.rewritten import settle

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "samples").glob("[0-9]*.i"))
PAGES = Path(__file__).with_name("explain")
ATTENTION_LINES = 24


def told(sample: Path, machine: Machine = CPU) -> list[Explanation]:
    """What is said of what a sample exports."""
    module = parse_module(Source(sample.name, sample.read_text("utf-8")))
    graphs = (pipeline.module_graph(module, each.name) for each in exports(module))
    return [pipeline.explain(graph, machine=machine) for graph in graphs]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_pages(sample: Path, update: bool) -> None:
    """The first page, whose names are words, and the loops that run, which fit for a GPU, too."""
    said = told(sample)
    first, loops = ("\n".join(map(page, said)) for page in (first_page, loops_page))
    settle(PAGES / f"{sample.stem}.txt", first, update)
    settle(PAGES / f"{sample.stem}.loops.txt", loops, update)
    assert not re.search(r"\bt\d+\b", first)
    lines = [first, loops, *map(loops_page, told(sample, GPU))]
    assert max(len(line) for page in lines for line in page.splitlines()) <= WIDTH
    if sample.stem == "13_attention":
        assert len(first.splitlines()) <= ATTENTION_LINES


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('einx.max("b i i -> b")', "for j in 0..i"),
        ("ik*kj~ijk >> +ijk~ij", "product[i,j,k] = in0[i,k]·in1[k,j]"),
        ("^i~i >> /i~i >> (I | 2) >> i*.~i", "out[i] = 2 / exp(in0[i])"),
        (">ij~i & +ij~i", "runs as  maxima and 16 sums in vectors"),
        ("<@ij~i", "runs as  minima in vectors"),
        ("*ij~i", "runs as  16 products in vectors"),
        ("+(i+k:2)~i", "note     ik = i+1"),
        ("(i+2k-1)*k~ik >> +ik~i", "note     ik = i+2k-4"),
        ("+(2i+k:3-1)~i", "note     i = floor((ik+1)/2)"),
        ("~(+ij~i & *ij~i)", "for i\n    out0[i] = Π_j in0[i,j]\n  for i\n    out1[i] = Σ_j"),
    ],
)
def test_lines(text: str, line: str) -> None:
    graph = pipeline.graph_of(pipeline.text_component(text), UNNAMED)
    assert line in first_page(pipeline.explain(graph))


def test_a_long_program_has_lines_of_its_own() -> None:
    graph = pipeline.graph_of(pipeline.text_component(" >> ".join(["^i~i"] * 400)), UNNAMED)
    page = loops_page(pipeline.explain(graph))
    assert "for i" in page
    assert max(map(len, page.splitlines())) <= WIDTH
