"""Products whose rows stand along memory, packed in strips: exact for every extent, in every text of a tile.

Numbers are small integers, so that sums are exact in any order; a tile also has several runs of terms, and several
blocks of those.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ilang.codegen.targets.c import emit
from ilang.core.ir.kernel import Program
from ilang.core.pipeline import graph_of, text_component
from tests.property import native
from tests.property.test_fills import call_of, lowered
from tests.property.test_fuzz import needs_compiler
from tests.shares import share

Shape = tuple[int, ...]

MODES = ((0, "sanitized"), (1, "fast"), (2, "avx2"), (3, "baseline"), (4, "threads"))
PRODUCTS: dict[str, tuple[str, Sequence[tuple[Shape, Shape]]]] = {
    "bo*bk~obk >> +obk~ok": (
        "bo,bk->ok",
        [
            ((1, 1), (1, 256)),
            ((7, 5), (7, 257)),
            ((8, 6), (8, 256)),
            ((9, 7), (9, 300)),
            ((130, 13), (130, 256)),
            ((515, 16), (515, 256)),
            ((1030, 19), (1030, 259)),
            ((0, 6), (0, 256)),
            ((5, 0), (5, 256)),
        ],
    ),
    "nbo*nbk~nobk >> +nobk~nok": ("nbo,nbk->nok", [((2, 17, 13), (2, 17, 256))]),
    "nbo*nbk~onbk >> +onbk~ok": (
        "nbo,nbk->ok",
        [((3, 17, 13), (3, 17, 256)), ((3, 130, 8), (3, 130, 270)), ((3, 9, 24), (3, 9, 256))],
    ),
    "bho*bk~hobk >> +hobk~hok": ("bho,bk->hok", [((19, 3, 13), (19, 256))]),
    "bo*bhk~ohbk >> +ohbk~ohk": ("bo,bhk->ohk", [((19, 13), (19, 4, 64)), ((9, 9), (9, 6, 50))]),
    # the same rows for every batch
    "bik*kj~bijk >> +bijk~bij": ("bik,kj->bij", [((3, 13, 130), (130, 70)), ((2, 1, 9), (9, 9))]),
    "bik*jk~bijk >> +bijk~bij": ("bik,jk->bij", [((3, 13, 600), (70, 600)), ((4, 7, 8), (64, 8))]),
}


@needs_compiler
@pytest.mark.parametrize(("number", "mode"), MODES)
def test_every_extent(number: int, mode: str) -> None:
    """Known extents, for which strips are packed, and the same extents at run time.

    All of them sanitized, a share in each other mode; a text has one program for all extents at run time.
    """
    if not native.runs_here(mode):
        pytest.skip(f"programs of the mode {mode} cannot run on this machine")
    numbers = np.random.default_rng(0)
    batch: list[Program] = []
    calls: list[native.Call] = []
    wanted = []
    every = [(text, pair) for text, (_, shapes) in PRODUCTS.items() for pair in shapes]
    at_run_time: dict[str, int] = {}
    for text, pair in every if mode == "sanitized" else share(every, number):
        graph = graph_of(text_component(text), "f")
        arrays = [numbers.integers(-3, 4, shape).astype(np.float32) for shape in pair]
        result = np.einsum(PRODUCTS[text][0], *arrays)
        shaped, program = lowered(graph, arrays, True, f"p{len(batch)}")
        calls.append(call_of(len(batch), shaped, arrays))
        batch.append(program)
        shaped, program = lowered(graph, arrays, False, f"p{len(batch)}")
        if text not in at_run_time:
            at_run_time[text] = len(batch)
            batch.append(program)
        calls.append(call_of(at_run_time[text], shaped, arrays))
        wanted += [(text, pair, result)] * 2
    for answer, (text, pair, right) in zip(native.run(batch, calls, mode), wanted, strict=True):
        assert not answer.trouble, (text, pair)
        np.testing.assert_array_equal(answer.outputs[0], right, f"{text} {pair}")


def test_what_is_packed_in_strips() -> None:
    """Whole strips have loops without ends of their own, and rows are taken some at a time."""
    graph = graph_of(text_component("bo*bk~obk >> +obk~ok"), "f")
    arrays = [np.zeros(shape, np.float32) for shape in ((130, 13), (130, 256))]
    _, program = lowered(graph, arrays, True, "f")
    assert "in0_copy[(o * 130 + 8 * b + b1) * 14 + o1]" in emit(program)
