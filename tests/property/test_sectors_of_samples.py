"""What default schedules of all samples read and write on a GPU: whole sectors, and banks that few threads meet in."""

from __future__ import annotations

import functools
import re
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang.codegen.emulator.program import load
from ilang.codegen.emulator.runtime import Traffic, emulator
from ilang.codegen.project.cases import inputs_of, limits_of
from ilang.codegen.targets import cuda
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import GPU
from ilang.core.pipeline import fit, lower
from ilang.core.record import replace
from tests.property import emulated
from tests.property.meaning import TYPES
from tests.property.schedules import unwritten
from tests.property.test_cuda import SAMPLES, sample

SECTORS = 1.1
"""What a statement may cost beside the least that so many bytes could."""
AXIS = {1: 64, 2: 64, 3: 16, 4: 8}
"""Elements along an axis that is not known, by the most dimensions of an input."""
ELEMENTS = {"05_diagonal": "x[i * n_n + i]", "17_fixed_index": "x[i * n_n]"}
"""What reads one element of each row, and so a sector for each: nothing else of it is used."""
BANKS = {
    **dict.fromkeys(
        ("14_multi_head", "21_rows", "22_online", "24_causal", "32_heads"), (1.05, 2.0)
    ),
    "19_pooling": (1.5, 2.0),
}
"""What banks may cost, all lines together and one, where threads meet in some: tiles of attention have two columns for
each thread, and windows move by two elements."""
KERNEL = re.compile(r"^s(\d+)_k\d+\w*\(")

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs g++")


def run_of(path: Path, number: int) -> tuple[Shaped, list[Any]]:
    """A sample without schedules, named by its number, and inputs for it: its own where they have to be in an order."""
    shaped, arrays = sample(path)
    shaped = replace(unwritten(shaped), name=f"s{number}")
    if path.stem == "28_permutation":
        return shaped, arrays
    each = AXIS[max(array.ndim for array in arrays)]
    dims = [shaped.tensors[value].dims for value in shaped.inputs]
    fixed = [size.fixed if size.fixed is not None else each for size in shaped.sizes]
    extents = fit(shaped, [tuple(fixed[n] for n in sizes) for sizes in dims])
    return shaped, inputs_of(shaped, extents, [0] * len(dims), limits_of(shaped, extents))


@functools.cache
def profiles() -> tuple[dict[str, list[Traffic]], list[str]]:
    """What each statement of each sample costs, and all lines: the samples are one text, whose kernels have numbers."""
    runs = [run_of(path, number) for number, path in enumerate(SAMPLES)]
    programs = [lower(shaped, GPU) for shaped, _ in runs]
    text = emulated.of_one_width(programs, cuda.emit_together(programs))
    text = emulated.whole_statements(text)
    loaded = load(text, "samples.cu", checked=True)
    with emulator().settings(profile=1):
        emulator().take_profile()
        for shaped, arrays in runs:
            extents = fit(shaped, [array.shape for array in arrays])
            results = [shaped.tensors[value] for value in shaped.outputs]
            outputs = [
                np.zeros(
                    [extents[n] for n in each.dims],
                    np.uint8 if each.dtype == "bool" else TYPES[each.dtype],
                )
                for each in results
            ]
            free = [n for size, n in zip(shaped.sizes, extents, strict=True) if size.is_argument()]
            sizes = np.array([*free, 0], np.int64)
            assert loaded.call(f"{shaped.name}_host", sizes, *arrays, *outputs) == 0
        traffic = emulator().take_profile()
    assert not emulator().take_findings()
    lines, owner, owners = text.splitlines(), "", list[str]()
    for line in lines:
        kernel = KERNEL.match(line)
        owner = SAMPLES[int(kernel[1])].stem if kernel else owner
        owners.append(owner)
    found = defaultdict[str, list[Traffic]](list)
    for each in traffic:
        found[owners[each.line - 1]].append(each)
    return found, lines


def test_every_sample_is_counted() -> None:
    """And what no sample has for itself: kernels that look at indices, and at arrays."""
    found, lines = profiles()
    assert found.keys() == {"", *(path.stem for path in SAMPLES)}
    for each in found[""]:
        assert each.ratio() <= SECTORS, lines[each.line - 1].strip()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_memory_is_read_and_written_in_whole_sectors(path: Path) -> None:
    found, lines = profiles()
    for each in found[path.stem]:
        line = lines[each.line - 1].strip()
        if each.space != "global":
            continue
        if each.access == "read" and ELEMENTS.get(path.stem, "none") in line:
            assert each.cost <= each.lanes, line
        else:
            assert each.ratio() <= SECTORS, line


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_threads_meet_in_few_banks(path: Path) -> None:
    found, lines = profiles()
    together, alone = BANKS.get(path.stem, (1.0, 1.0))
    shared = [each for each in found[path.stem] if each.space == "shared"]
    for each in shared:
        assert each.ratio() <= alone, lines[each.line - 1].strip()
    assert sum(each.cost for each in shared) <= together * sum(each.ideal for each in shared)
