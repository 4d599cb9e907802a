"""Which indices of a GPU are of 32 bits: all, those of small arrays, or those of loops that are known."""

from __future__ import annotations

import pytest

from ilang.core import pipeline
from ilang.core.ir.kernel import Program
from ilang.core.machine import GPU
from ilang.core.notation.files.module import parse_module
from ilang.core.source import Source


def lowered(text: str) -> Program:
    """The last kernels of a component or a definition."""
    if text.startswith("f("):
        graph = pipeline.module_graph(parse_module(Source("f.i", text)), "f")
    else:
        graph = pipeline.graph_of(pipeline.text_component(text), "f")
    return pipeline.lower(pipeline.infer(graph), GPU)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("ij+ij~ij", ("n_ij",)),
        ("+ij~i", ("n_i n_j", "n_i n_j_1024_parts")),
        ("ij+j~ij", ("n_i n_j",)),
        ("ik*kj~ijk >> +ijk~ij", ("n_i n_k", "n_i n_j n_k_128_parts", "n_k_128_strips", "n_k n_j")),
        ("(2i+k)*k~ik >> +ik~i", ("n_ik", "n_i", "n_k")),
        ("f(x[300,200]) = -ij~ij", ()),
        ("f(x[300,2000000]) = -ij~ij", None),  # more elements than 32 bits number
        ("(5i+k)*k~ik >> +ik~i", None),  # five times as far as any array
        ("bt@vd~btd", None),  # indices that are values
    ],
)
def test_products_that_are_small(text: str, spans: tuple[str, ...] | None) -> None:
    program = lowered(text)
    kernel = program.kernels[0]
    if spans is None:
        assert kernel.spans is None
        return
    assert kernel.spans is not None
    names = {" ".join(f"n_{program.sizes[n].name}" for n in span) for span in kernel.spans}
    assert names == set(spans)
