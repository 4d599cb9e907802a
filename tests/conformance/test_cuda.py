"""The index cases in CUDA: one text of all programs, run on the emulator in orders of threads and both builds."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from ilang import Error, I, i
from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.device import gpu
from ilang.core.ir.kernel import Program
from ilang.core.machine import GPU
from ilang.core.pipeline import fit, infer, lower
from ilang.core.record import replace
from tests.conformance.test_index import (
    BASE,
    BINARY,
    COMBINED,
    LEFT,
    PATTERNS,
    POWER,
    REDUCED,
    RIGHT,
    TYPED,
    UNARY,
    agree,
    f32,
)
from tests.property import emulated
from tests.property.meaning import TYPES
from tests.property.native import Call

ROWS = f32(1, -2, 3, 0, 0.5, 2, 0, 0, 0, 4, 5, np.nan).reshape(4, 3)
MANY = 300

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs g++")

Case = tuple[str, list[Any], Any]


def cases() -> Iterator[Case]:
    """Every program of the tables with its inputs and what it gives."""
    with np.errstate(all="ignore"):
        for op, call in BINARY.items():
            yield f'i("i{op}i~i")', [LEFT, RIGHT], call(LEFT, RIGHT)
        for op, one in UNARY.items():
            yield f'i("{op}i~i")', [LEFT], one(LEFT)
        yield 'i("i^i~i")', [BASE, POWER], BASE**POWER
        for op, fold in REDUCED.items():
            yield f'i("{op}ij~i")', [ROWS], fold(ROWS)
            yield f'i("{op}ij~i")', [many()], fold(many())
    yield from (*PATTERNS, *COMBINED, *TYPED)


def many() -> Any:
    """Rows longer than a block has threads."""
    values = np.ones((3, MANY), np.float32)
    values[1, 7], values[2, MANY - 1] = 3, 0
    return values


@pytest.mark.cuda
@pytest.mark.parametrize("compiler", ["nvcc", "nvrtc"])
def test_cases_on_a_gpu(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, by the public door; compiled by as many processes as there are processors."""
    monkeypatch.setenv("NVCC", os.environ.get("NVCC", "") if compiler == "nvcc" else compiler)
    gpu.gpu.cache_clear()
    try:
        gpu.capability()
        find_compiler(gpu.CUDA)
    except Error as none:
        pytest.skip(none.message)

    def run(case: Case) -> str:
        text, inputs, expected = case
        component = eval(text, {"__builtins__": {}, "i": i, "I": I})
        try:
            agree(component(*inputs, target="cuda"), expected)
        except (AssertionError, Error) as wrong:
            return f"{text}: {wrong}"
        return ""

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        wrong = [said for said in pool.map(run, cases()) if said]
    gpu.gpu.cache_clear()
    assert not wrong


@functools.cache
def batch(mode: str) -> tuple[list[Program], list[Call], list[tuple[str, Any]]]:
    """The programs of the cases of a mode, a call of each, and what it gives."""
    programs: list[Program] = []
    calls: list[Call] = []
    wanted: list[tuple[str, Any]] = []
    for text, inputs, expected in emulated.of_mode([*cases()], mode):
        arrays = tuple(np.array(each, order="C") for each in inputs)
        component = eval(text, {"__builtins__": {}, "i": i, "I": I})
        dtypes = [next(name for name, kind in TYPES.items() if kind == a.dtype) for a in arrays]
        shaped = infer(component.graph(), dtypes, [a.ndim for a in arrays])
        extents = fit(shaped, [a.shape for a in arrays])
        outputs = expected if isinstance(expected, tuple) else (expected,)
        free = (n for size, n in zip(shaped.sizes, extents, strict=True) if size.is_argument())
        shapes = tuple(np.shape(each) for each in outputs)
        calls.append(Call(len(programs), tuple(free), arrays, shapes))
        programs.append(lower(replace(shaped, name=f"c{len(programs)}"), GPU))
        wanted.append((text, outputs))
    return programs, calls, wanted


@pytest.mark.parametrize("mode", ["cuda", pytest.param("cuda-checked", marks=pytest.mark.deep)])
def test_index_cases(mode: str) -> None:
    programs, calls, wanted = batch(mode)
    answers = emulated.run(programs, calls, mode, in_all_modes=True)
    for (text, outputs), answer in zip(wanted, answers, strict=True):
        assert not answer.trouble, f"{text}: {answer.trouble}"
        got = tuple(
            result.astype(np.bool_) if np.asarray(want).dtype == np.bool_ else result
            for result, want in zip(answer.outputs, outputs, strict=True)
        )
        agree(got, outputs)
