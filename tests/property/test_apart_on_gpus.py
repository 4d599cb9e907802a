"""Attention on a GPU: no matrix is stored, and what blocks compute tile by tile is what the evaluator computes."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import GPU
from ilang.core.notation.module import parse_module
from ilang.core.pipeline import fit, infer, lower, module_graph
from ilang.core.record import replace
from ilang.core.reference import evaluate
from ilang.core.source import Source
from ilang.core.transform.reverse import gradient
from tests.property import emulated
from tests.property.native import Array, Call
from tests.property.test_apart import ATTENTION, LONG, fixed, heads, shaped_of, stored

SHAPES = ((70, 45), (64, 64), (3, 0), (1, 130))
"""Queries and keys: parts of tiles, whole ones, none, and several of columns."""
RUN = ("plain", "causal, scaled", "all of columns", "columns of scores", "mask of keys")
"""The ways that are compiled."""
WIDE = {**LONG, "i": 8192, "j": 8192}


@pytest.mark.parametrize("middle", [None, False, True], ids=["one", "heads", "middle"])
@pytest.mark.parametrize("way", ATTENTION)
def test_attention_stores_no_matrix(way: str, middle: bool | None) -> None:
    """Neither forwards nor backwards, where extents are not known or the matrix is too large."""
    text = ATTENTION[way]
    shaped = shaped_of(text if middle is None else heads(text, middle))
    for program in (shaped, gradient(shaped, range(len(shaped.inputs)))):
        assert stored(program, GPU) == []
        assert stored(fixed(program, WIDE), GPU) == []


def test_small_matrices_are_stored() -> None:
    """Of known extents, where that is quicker and takes little memory."""
    shaped = shaped_of(ATTENTION["plain"])
    assert stored(fixed(shaped, {**LONG, "i": 512, "j": 512}), GPU)


DIVIDED = """
attention(q[i,k], key[j,k], v[j,d]) = {
  a = (ik*jk~ijk >> +ijk~ij)(q, key)
  m = (>ij~i)(a)
  w = (ij-i~ij >> ^ij~ij)(a, m)
  n = (+ij~i)(w)
  o = (ij*jd~ijd >> +ijd~id)(w, v)
  (id/i~id)(o, n)
}
"""


def test_sums_that_something_else_reads_do_not_run() -> None:
    """They are stored, by a kernel each; of plain attention all is in one kernel, and of causal in three."""
    shaped = infer(module_graph(parse_module(Source("divided.i", DIVIDED)), "attention"))
    assert stored(shaped, GPU) == []
    counts = {
        way: len(lower(shaped_of(ATTENTION[way]), GPU).kernels) for way in ("plain", "causal")
    }
    assert (len(lower(shaped, GPU).kernels), counts) == (4, {"plain": 1, "causal": 3})


@functools.cache
def programs() -> tuple[list[Program], list[Call], list[list[Array]]]:
    """Some ways to write attention, forwards and backwards by turns, at several extents."""
    lowered: list[Program] = []
    calls: list[Call] = []
    wanted: list[list[Array]] = []
    for n, way in enumerate(RUN):
        forward = shaped_of(heads(ATTENTION[way], middle=True) if n % 3 == 1 else ATTENTION[way])
        for shaped in (forward, gradient(forward, range(len(forward.inputs)))):
            lowered.append(lower(replace(shaped, name=f"a{len(lowered)}"), GPU))
            for rows, columns in SHAPES[n % 2 :: 2]:
                _call(shaped, {"h": 2, "i": rows, "j": columns, "k": 20, "d": 9}, lowered, calls)
                arrays = [*calls[-1].inputs]
                extents = fit(shaped, [array.shape for array in arrays])
                wanted.append([*evaluate(shaped, arrays, extents, exact=True)])
    return lowered, calls, wanted


def _call(
    shaped: Shaped, extents: dict[str, int], lowered: list[Program], calls: list[Call]
) -> None:
    """Add a call of the last program."""
    noise = np.random.default_rng(len(calls))
    dims = [
        tuple(extents.get(shaped.sizes[size].name, 1) for size in tensor.dims)
        for tensor in shaped.tensors
    ]
    arrays = tuple(noise.normal(size=dims[v]).astype(np.float32) / 2 for v in shaped.inputs)
    every = fit(shaped, [array.shape for array in arrays])
    free = (n for size, n in zip(shaped.sizes, every, strict=True) if size.is_argument())
    results = tuple(dims[v] for v in shaped.outputs)
    calls.append(Call(len(lowered) - 1, tuple(free), arrays, results))


@pytest.mark.parametrize("mode", emulated.MODES)
def test_attention(mode: str) -> None:
    """In three orders of threads, and with every load and store checked."""
    lowered, calls, wanted = programs()
    emulated.agree(lowered, calls, wanted, mode, 1e-5)
