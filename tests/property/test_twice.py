"""Each sample beside itself in one program, on other arrays: its kernels are called twice, on either machine."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang.core.ir.shaped import Shaped
from ilang.core.machine import CPU, GPU
from ilang.core.notation.files.module import exports, parse_module
from ilang.core.pipeline import infer, lower, module_graph
from ilang.core.source import Source
from tests.property.batch import Batch
from tests.property.test_cuda import SAMPLES, sample
from tests.shares import share

MACHINES = {"c": CPU, "cuda": GPU}
TOLERANCE = 1e-5
NEEDS_GXX = pytest.param(
    "cuda-checked",
    marks=pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs g++"),
)
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


@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("known", [False, True], ids=["open", "known"])
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_kernels_of_a_sample_are_called_again(path: Path, known: bool, target: str) -> None:
    program = lower(beside_itself(path, known)[0], MACHINES[target])
    again = len(program.kernels) < len(program.launched())
    assert again == (known or path.stem not in APART)


@pytest.mark.parametrize("known", [False, True], ids=["open", "known"])
@pytest.mark.parametrize("mode", ["sanitized", NEEDS_GXX])
def test_values(mode: str, known: bool) -> None:
    batch = Batch(mode)
    for path in share(SAMPLES, known) if mode == "cuda-checked" else SAMPLES:
        shaped, arrays = beside_itself(path, known)
        batch.add(shaped)
        batch.call(shaped, arrays, exact=False)
    batch.agree(TOLERANCE, 0)
