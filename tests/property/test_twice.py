"""Each sample beside itself in one program, on other arrays: its kernels are called twice, on either machine."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.notation.files.module import exports, parse_module
from ilang.core.pipeline import fit, infer, lower, module_graph
from ilang.core.record import replace
from ilang.core.reference import evaluate
from ilang.core.source import Source
from tests.property import emulated, native
from tests.property.native import Answer, Call
from tests.property.test_cuda import SAMPLES, sample
from tests.shares import share

MACHINES = {"c": CPU, "cuda": GPU}
TOLERANCE = 1e-5
APART = {"05_diagonal", "18_convolution", "19_pooling", "21_rows", "32_heads"}
"""Samples some of whose axes have no name in their head, or follow from others: open, each of both has its own."""
INPUT = re.compile(r"(\w+)((?:: ?\w+)?(?:\[[^\]]*\])?)")


def beside_itself(path: Path, known: bool) -> tuple[Shaped, list[Any]]:
    """A sample and the same on reversed arrays, as one program of shared axes, with inputs; extents may be known."""
    text = path.read_text("utf-8")
    (definition,) = exports(parse_module(Source(path.name, text)))
    name = definition.name
    head = re.search(rf"^{name}\((.*?)\) =", text, re.MULTILINE)
    assert head is not None
    inputs = [found.groups() for found in INPUT.finditer(head[1])]
    listed = ", ".join(f"{turn}_{each}{rest}" for turn in ("a", "b") for each, rest in inputs)
    both = f"{text}\nbeside({listed}) = {name} | {name}\n"
    graph = module_graph(parse_module(Source(path.name, both)), "beside")
    single, arrays = sample(path)
    dtypes = [single.tensors[value].dtype for value in single.inputs]
    arrays += [np.flip(array) for array in arrays]
    shapes = [array.shape for array in arrays]
    shaped = infer(graph, dtypes * 2, [array.ndim for array in arrays], shapes if known else None)
    return shaped, arrays


def program_of(path: Path, known: bool, machine: Machine, number: int = 0) -> tuple[Program, Call]:
    shaped, arrays = beside_itself(path, known)
    extents = fit(shaped, [array.shape for array in arrays])
    free = [n for size, n in zip(shaped.sizes, extents, strict=True) if size.is_argument()]
    shapes = [tuple(extents[n] for n in shaped.tensors[value].dims) for value in shaped.outputs]
    call = Call(number, tuple(free), tuple(arrays), tuple(shapes))
    return lower(replace(shaped, name=f"s{number}"), machine), call


def agree(path: Path, known: bool, answer: Answer) -> None:
    assert not answer.trouble, f"{path.name}: {answer.trouble}"
    shaped, arrays = beside_itself(path, known)
    wanted = evaluate(shaped, arrays, fit(shaped, [array.shape for array in arrays]))
    for got, want in zip(answer.outputs, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=TOLERANCE, err_msg=path.name)


@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("known", [False, True], ids=["open", "known"])
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_kernels_of_a_sample_are_called_again(path: Path, known: bool, target: str) -> None:
    program, _ = program_of(path, known, MACHINES[target])
    again = len(program.kernels) < len(program.launched())
    assert again == (known or path.stem not in APART)


@pytest.mark.parametrize("known", [False, True], ids=["open", "known"])
def test_values_in_c(known: bool) -> None:
    pairs = [program_of(path, known, CPU, number) for number, path in enumerate(SAMPLES)]
    answers = native.run([p for p, _ in pairs], [call for _, call in pairs], "sanitized")
    for path, answer in zip(SAMPLES, answers, strict=True):
        agree(path, known, answer)


@pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs g++")
@pytest.mark.parametrize("known", [False, True], ids=["open", "known"])
def test_values_in_cuda(known: bool) -> None:
    paths = share(SAMPLES, known)
    pairs = [program_of(path, known, GPU, number) for number, path in enumerate(paths)]
    answers = emulated.run([p for p, _ in pairs], [call for _, call in pairs], "cuda-checked")
    for path, answer in zip(paths, answers, strict=True):
        agree(path, known, answer)
