"""How many blocks a multiprocessor runs at a time: known answers. What nvcc takes: ``test_cuda.py`` of codegen."""

from __future__ import annotations

import re
import shutil

import pytest

from ilang.codegen.device.registers import registers_of
from ilang.core.machine import GPU, MULTIPROCESSORS
from ilang.core.occupancy import Resources, occupancy_of, resources_of
from ilang.core.pipeline import explain, graph_of, infer, lower, text_component
from tests.unit.codegen.test_cuda import program

DEVICE = GPU.device
NAMED = {each.name: each for each in MULTIPROCESSORS}


@pytest.mark.parametrize(
    ("name", "taken", "blocks", "share", "limit"),
    [
        ("H100", Resources(256, 32, 0), 8, 1.0, "threads"),
        ("H100", Resources(1024, 32, 0), 2, 1.0, "threads"),
        ("H100", Resources(1024, 64, 0), 1, 0.5, "registers"),
        ("H100", Resources(256, 110, 8704), 2, 0.25, "registers"),
        ("H100", Resources(128, 255, 0), 2, 0.125, "registers"),
        ("H100", Resources(32, 16, 0), 32, 0.5, "blocks"),
        ("H100", Resources(256, 32, 48 << 10), 4, 0.5, "shared memory"),
        ("A100", Resources(256, 32, 48 << 10), 3, 0.375, "shared memory"),
        ("T4", Resources(256, 32, 0), 4, 1.0, "threads"),
        ("T4", Resources(256, 32, 48 << 10), 1, 0.25, "shared memory"),
    ],
)
def test_known_answers(name: str, taken: Resources, blocks: int, share: float, limit: str) -> None:
    assert DEVICE is not None
    found = occupancy_of(taken, NAMED[name], DEVICE)
    assert (found.blocks, found.share, found.limit) == (blocks, share, limit)


def test_a_page_for_a_gpu_says_it() -> None:
    graph = graph_of(text_component("ij~ji | i:32,j:8 | j i 0 j' i' | i':tx,j':ty"), "f")
    page = str(explain(graph, machine=GPU))
    assert re.search(r"^on H100 +threads +registers", page, re.MULTILINE)
    assert re.search(r"^k0 +256 +~\d+ +1,152 +\d+ +\d+%", page, re.MULTILINE)
    assert "on H100" not in str(explain(graph))


def test_warps_share_apart() -> None:
    kernel = lower(
        infer(graph_of(text_component("ij~ji | i:32,j:8 | j i 0 j' i' | i':l"), "f")), GPU
    )
    assert resources_of(kernel, kernel.kernels[0]).shared == 8 * 36 * 8 * 4


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_nvcc_says_the_registers_of_a_program() -> None:
    assert (registers_of(program("ij~ji")) or {}).keys() == {"k0"}
