"""Full tiles without conditions (``passes/gpu/full_tiles.py``): what they ask, and what they do not."""

from __future__ import annotations

import pytest

from ilang.core.calculus.affine import Within
from ilang.core.ir.kernel import For, If, Program, Vectors, statements_within
from ilang.core.ir.rewriting import chosen_loads
from ilang.core.machine import GPU
from ilang.core.notation.files.module import parse_module
from ilang.core.pipeline import infer, lower, module_graph
from ilang.core.source import Source


def asked(program: Program) -> list[Within]:
    """The conditions of a program's statements."""
    return [
        each
        for kernel in program.kernels
        for s in statements_within(kernel.body)
        if isinstance(s, If)
        for each in s.within
    ]


@pytest.mark.parametrize(("terms", "asks"), [("2", 2), ("15", 2), ("16", 2), ("40", 3), ("k", 3)])
def test_no_block_asks_for_more_than_a_dimension_has(terms: str, asks: int) -> None:
    """Tiles of a product have 16 terms: where there are fewer, blocks ask for whole rows and columns alone."""
    text = f"f(a[m,{terms}], b[{terms},n]) = ik*kj~ijk >> +ijk~ij"
    program = lower(infer(module_graph(parse_module(Source("<text>", text)), "f")), GPU)
    blocks = [each for each in asked(program) if each.index.offset and each.size is not None]
    assert len({each.size for each in blocks}) == asks
    extents = [(each, program.sizes[each.size or 0].fixed) for each in blocks]
    assert all(extent is None or each.index.offset < extent for each, extent in extents)


@pytest.mark.parametrize("rows", ["48", "10", "k"])
def test_vectors_are_read_whatever_holds(rows: str) -> None:
    """Of a factor with fewer rows than a tile, a block that is whole otherwise tests each row as it reads elements."""
    text = f"f(x[n,64], w[{rows},64]) = bi*oi~boi >> +boi~bo"
    program = lower(infer(module_graph(parse_module(Source("<text>", text)), "f")), GPU)
    moved = [
        (s, s.manner.buffers)
        for kernel in program.kernels
        for s in statements_within(kernel.body)
        if isinstance(s, For) and isinstance(s.manner, Vectors)
    ]
    assert moved
    assert not any(
        load.buffer in wide for s, wide in moved for x in s.body for load in chosen_loads(x)
    )
