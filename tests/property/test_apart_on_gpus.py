"""Attention on a GPU: no matrix is stored, and what blocks compute tile by tile is what the evaluator computes."""

from __future__ import annotations

import functools
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ilang.codegen.targets import cuda
from ilang.core.machine import GPU
from ilang.core.notation.files.module import parse_module
from ilang.core.pipeline import graph_of, infer, lower, module_graph, text_component
from ilang.core.record import replace
from ilang.core.source import Source
from ilang.core.transform.reverse import gradient
from tests.property import emulated
from tests.property.batch import Batch
from tests.property.emulated import of_one_width
from tests.property.meaning import TYPES
from tests.property.test_apart import ATTENTION, LONG, fixed, heads, shaped_of, stored
from tests.property.test_online import difference
from tests.shares import share
from tests.unit.codegen.test_cuda import INFORMED, TARGETS, compiled, needs_nvcc

SHAPES = ((70, 45), (64, 64), (3, 0), (1, 130))
"""Queries and keys: parts of tiles, whole ones, none, and several of columns."""
RUN = (
    *("plain", "causal, scaled", "all of columns", "columns of scores", "mask of keys"),
    *("causal", "band"),
)
"""The ways that are compiled."""
WIDE = {**LONG, "i": 1 << 16, "j": 1 << 16}


@pytest.mark.parametrize(("way", "middle"), share([*product(ATTENTION, (None, False, True))], 4))
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
    """They are stored, by a kernel each; of attention all is in one kernel."""
    shaped = infer(module_graph(parse_module(Source("divided.i", DIVIDED)), "attention"))
    assert stored(shaped, GPU) == []
    ways = ("plain", "causal", "band")
    counts = [
        len(lower(each, GPU).kernels)
        for each in (shaped, *(shaped_of(ATTENTION[way]) for way in ways))
    ]
    assert counts == [4, 1, 1, 1]


@pytest.mark.parametrize("mode", emulated.MODES)
def test_attention(mode: str) -> None:
    """In several orders of threads, with every load and store checked; a share backwards."""
    batch = Batch(mode)
    backwards = share(RUN, 3 if mode == "cuda" else 0)
    for n, way in [*enumerate(RUN)] if mode == "cuda-checked" else share([*enumerate(RUN)], 3):
        forward = shaped_of(heads(ATTENTION[way], middle=True) if n % 3 == 1 else ATTENTION[way])
        both = [gradient(forward, range(len(forward.inputs)))] if way in backwards else []
        for shaped in (forward, *both):
            batch.add(shaped)
            for rows, columns in SHAPES[n % 2 :: 2]:
                extents = {"h": 2, "i": rows, "j": columns, "k": 20, "d": 9}
                noise = np.random.default_rng(len(batch.calls))
                dims = [shaped.tensors[value].dims for value in shaped.inputs]
                shapes = [[extents.get(shaped.sizes[n].name, 1) for n in each] for each in dims]
                arrays = [noise.normal(size=each).astype(np.float32) / 2 for each in shapes]
                batch.call(shaped, arrays)
    batch.agree(1e-5)


BEHIND = {
    "causal": ("j<=i", "", "j<=i", "j<=i", ""),
    "band": ("j<=i,j>=i-8", "", "j<=i,j>=i-8", "j<=i,j>=i-8", ""),
    "product": ("j<=i,j>=i-8", "", "j<=i,j>=i-8", "", "j<=i,j>=i-8"),
    "sum": ("", "", "j>=i", "j>=i", ""),
    "all": ("j>=i", "j>=i", "j>=i", "j>=i", "j>=i"),
}
"""Guards of a maximum, of what it is subtracted from, of the sum, of the quotient and of the product."""


def behind(way: str) -> str:
    """Attention with the guards of a way."""
    most, less, total, quotient, product = (f"[{each}]" if each else "" for each in BEHIND[way])
    return (
        f"ik*jk~ijk >> +ijk~ij >> (I & >ij{most}~i) >> ij{less}-i~ij >> ^ij~ij"
        f" >> (I & +ij{total}~i) >> ij{quotient}/i~ij >> ij{product}*jd~ijd >> +ijd~id"
    )


@functools.cache
def guarded(dtype: str, mode: str) -> Batch:
    """Attention with guards, of numbers that are far apart, of infinities and of NaN."""
    batch = Batch(mode)
    for way in BEHIND if dtype == "f32" else share([*BEHIND], 1):
        shaped = infer(graph_of(text_component(heads(behind(way), middle=True)), "a"), [dtype] * 3)
        assert len(batch.add(shaped).kernels) == 1
        noise = np.random.default_rng(len(batch.programs))
        for i, j in ((70, 45), (20, 64), (1, 1), (3, 0)):
            for odd in (False, True):
                q, k, v = ((i, 2, 3), (j, 2, 3), (j, 2, 5))
                arrays = [noise.integers(-8, 9, shape).astype(TYPES[dtype]) for shape in (q, k, v)]
                if way == "sum":  # the numerators are not far below the maximum of all
                    arrays[0] /= 16
                if odd and j > 3:
                    arrays[1][noise.integers(j, size=3), 0, 0] = np.inf, -np.inf, np.nan
                    arrays[0][i // 2] = 0
                batch.call(shaped, arrays)
    return batch


@pytest.mark.parametrize(("dtype", "mode"), [("f32", "cuda-checked"), ("f64", "cuda")])
def test_what_guards_leave_out_is_in_no_sum(dtype: str, mode: str) -> None:
    """Its exponential may be infinite; rows may have nothing inside all guards, or only later tiles."""
    for says, answer, (want,) in guarded(dtype, mode).answers():
        wrong = answer.trouble or difference(answer.outputs[0], want)
        assert not wrong, f"{says}: {wrong}"


@needs_nvcc
def test_nvcc_spills_nothing_of_guarded_attention(tmp_path: Path) -> None:
    ways = (("f32", "cuda-checked"), ("f64", "cuda"))
    programs = [each for way in ways for each in guarded(*way).programs[:2]]
    programs = [replace(each, name=f"p{n}") for n, each in enumerate(programs)]
    for number, (names, options) in enumerate(TARGETS):
        chosen = share(programs, number)
        (tmp_path / "all.cu").write_text(of_one_width(chosen, cuda.emit_together(chosen)), "ascii")
        lines = compiled(tmp_path, *options, "-Xptxas", "-v").splitlines()
        assert [line for line in lines if not INFORMED.match(line)] == [], names
