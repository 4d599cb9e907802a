"""Products on matrix units: right and the same on all machines, in whole sectors and banks, within registers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang.codegen.emulator.program import load
from ilang.codegen.emulator.runtime import emulator
from ilang.codegen.targets import cuda
from ilang.core.ir.gpu import MatrixProduct
from ilang.core.ir.kernel import Program, statements_within
from ilang.core.machine import GPU
from ilang.core.notation.files.module import parse_module
from ilang.core.pipeline import fit, graph_of, infer, lower, module_graph, text_component
from ilang.core.reference import evaluate
from ilang.core.source import Source
from tests.property import emulated
from tests.property.batch import Batch
from tests.property.unit_products import draw, failures, lowered
from tests.shares import share

SEEDS = range(6)
"""Of each batch; every other one is a product in bf16."""

PRODUCT = "{0}*{1}~ijk | i:2:32,j:2:32,k:4:16 | i j k k' 0 1 k'' i' j' i'' j'' | 0:s2,1:s2"
SUM = "+ijk~ij | i:2:32,j:2:32,k:4:16 | i j k k' k'' i' j' i'' j'' 0 | i:p,j:p,i':t,j':t,i'':{0},j'':{0},k'':{0}"
ROUNDED = {"m": "TF32", "m16": "bf16"}
"""What the units round to, by role."""
HELD = re.compile(r"_copy_held.* = in|const ushort2 loaded_\d = \(\(const ushort2 \*\)in\d_copy")
"""A statement that reads what a lane holds of a copy."""
LAYOUTS = ("ik", "kj"), ("ki", "kj"), ("ik", "jk"), ("ki", "jk")
"""Of both factors: with terms in rows or down columns."""

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs g++")
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")


def product_of(left: str, right: str, unit: str, name: str = "f") -> Program:
    """A product of blocks of 64 rows and columns, by four warps."""
    text = f"{PRODUCT.format(left, right)} >> {SUM.format(unit)}"
    return lower(infer(graph_of(text_component(text), name)), GPU)


@needs_compiler
@pytest.mark.batches(1)
def test_random_products(batch: int) -> None:
    start = len(SEEDS) * batch
    seeds = range(start, start + len(SEEDS))
    count, found = failures(seeds, ("cuda-checked", "fast"))
    plain, others = failures([*share(seeds), *share(seeds, 1)], ("cuda",))
    assert not found + others, "\n".join(found + others)
    assert count >= len(SEEDS) // 2
    assert plain


TEXT = """
terms = ik*kj~ijk | i:2:16,j:2:8,k:2:16 | i j k k' 0 1 k'' i' j' i'' j'' | 0:s2,1:s2
turned = ik*jk~ijk | i:2:16,j:2:8,k:2:16 | i j k k' 0 1 k'' i' j' i'' j''
copied = ik*kj~ijk | i:2:16,j:2:8,k:2:16 | i j k k' 0 1 k'' i' j' i'' j'' | 0:c2,1:c
ending = ik*kj~ijk | i:2:16,j:2:8,k:2:16 | i j 1 k k' 0 k'' i' j' i'' j''
sums = +ijk~ij | i:2:16,j:2:8,k:2:16 | i j k k' k'' i' j' i'' j'' 0 | i:p,j:p,i':t,j':t,i'':m,j'':m,k'':m
sums16 = +ijk~ij | i:2:16,j:2:8,k:2:16 | i j k k' k'' i' j' i'' j'' 0 | i:p,j:p,i':t,j':t,i'':m16,j'':m16,k'':m16
negative = -ik~ik | i:2:16,k:2:16 | i k k' k'' i' i''
two(a[m,k], b[k,n], c[k,n]) = { x = sums(terms(a, b))
  y = sums16(terms(a, c))
  x, y }
squared(a[m,k]) = sums16(turned(a, a))
staged(a[m,k], b[k,n]) = sums16(terms(negative(a), b))
before(a[m,k], b[k,n]) = sums(copied((-ik~ik)(a), b))
short(a[m,20], b[20,n]) = sums(ending(a, b))
short16(a[m,20], b[20,n]) = sums16(ending(a, b))
after(a[m,k], b[k,n], s[n]) = (ij+j~ij)(sums16(terms(a, b)), s)
"""
"""Two by two units in one kernel, of one array twice, of what is computed where it is copied or before, of copies that
have fewer terms than the tiles that read them, and a sum that something else reads."""


@needs_compiler
def test_products_of_and_for_others() -> None:
    module = parse_module(Source("<text>", TEXT))
    batch, numbers = Batch("cuda-checked"), np.random.default_rng(7)
    for name in ("two", "squared", "staged", "before", "short", "short16", "after"):
        shaped = infer(module_graph(module, name))
        sizes = {"m": 37, "k": 20, "n": 19}
        extents = [sizes.get(size.name, size.fixed or 0) for size in shaped.sizes]
        dims = [shaped.tensors[value].dims for value in shaped.inputs]
        shapes = [tuple(extents[size] for size in each) for each in dims]
        kernels = [kernel.body for kernel in batch.add(shaped).kernels]
        assert any(
            isinstance(s, MatrixProduct) for body in kernels for s in statements_within(body)
        )
        batch.call(shaped, [numbers.normal(size=shape).astype(np.float32) for shape in shapes])
    batch.agree(1e-5)


def test_random_products_are_on_matrix_units() -> None:
    """Staged in shared memory or not, several matrices of a warp or one, whole blocks or ragged ones."""
    kept = 0
    for seed in range(24):
        made = lowered(draw(seed), "f", GPU)
        if made is None:
            continue
        kept += 1
        kernel = made[1].kernels[0]
        assert any(isinstance(s, MatrixProduct) for s in statements_within(kernel.body))
    assert kept >= 16


def patterns(bits: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Floats of both signs and all exponents, NaN and subnormal ones among them, at and beside halves of ``bits``."""
    unit = 1 << 24 - bits
    half, last = unit // 2, (1 << 23) - unit
    ends = [0, 1, half - 1, half, half + 1, unit, unit + half - 1, unit + half, unit + half + 1]
    ends += [last, last + half - 1, last + half, (1 << 23) - 1]
    upper = np.arange(512, dtype=np.uint32)[:, None] << np.uint32(23)
    return (upper | np.array(ends, np.uint32)).reshape(-1).view(np.float32)


def nearest(x: np.ndarray[Any, np.dtype[np.float32]], unit: str) -> np.ndarray[Any, Any]:
    """The nearest numbers of TF32 or bf16, whose exponents are those of f32, by arithmetic in f64."""
    bits = 11 if unit == "m" else 8
    wide = x.astype(np.float64)
    _, exponents = np.frexp(wide)
    step = np.ldexp(
        1.0, np.maximum(exponents, -125) - bits
    )  # subnormal ones are as far apart as the least others
    whole = wide / step
    away = np.trunc(whole + np.copysign(0.5, whole))
    return np.asarray((away if unit == "m" else np.rint(whole)) * step, np.float32)


@needs_compiler
@pytest.mark.parametrize(("unit", "bits"), [("m", 11), ("m16", 8)])
def test_factors_become_the_nearest_numbers(unit: str, bits: int) -> None:
    """NaN stays one, infinities stay, and what is too large becomes one, alike on all machines."""
    column = patterns(bits)[:, None]
    arrays = column, np.ones((1, 2), np.float32)
    text = "ik*kj~ijk | i:64,j:8,k:16 | i j k 0 1 k' i' j' >> "
    text += f"+ijk~ij | i:64,j:8,k:16 | i j k k' i' j' 0 | i':{unit},j':{unit},k':{unit}"
    shaped = infer(graph_of(text_component(text), "f"))
    extents = fit(shaped, [array.shape for array in arrays])
    (want,) = evaluate(shaped, arrays, extents)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(want, np.repeat(nearest(column, unit), 2, axis=1))
    for mode in ("cuda", "fast"):
        batch = Batch(mode)
        batch.add(shaped)
        batch.call(shaped, arrays, [want])
        batch.agree(0)


@needs_compiler
def test_lanes_meet_in_no_bank_and_move_whole_sectors() -> None:
    """Whatever way around factors are stored; each lane reads a factor once for all of its matrices.

    There are four products for each byte of shared memory that lanes read of f32, eight of bf16.
    """
    every = [(*layout, "m", 4) for layout in LAYOUTS]
    every += [(*layout, "m16", 8) for layout in LAYOUTS[::3]]
    programs = [
        product_of(left, right, unit, f"f{n}") for n, (left, right, unit, _) in enumerate(every)
    ]
    text = emulated.whole_statements(cuda.emit_together(programs))
    loaded = load(text, "units.cu", checked=True)
    lines = text.splitlines()
    for program, (left, right, _, products) in zip(programs, every, strict=True):
        extents = {"i": 64, "j": 64, "k": 64}
        arrays = [np.ones([extents[axis] for axis in each], np.float32) for each in (left, right)]
        with emulator().settings(profile=1):
            sizes = np.array([64, 64, 64, 0], np.int64)
            out = np.zeros((64, 64), np.float32)
            assert loaded.call(f"{program.name}_host", sizes, *arrays, out) == 0
            found = emulator().take_profile()
        reads = [each for each in found if HELD.search(lines[each.line - 1])]
        assert all(each.ratio() == 1 for each in reads), left + right
        assert all(each.ratio() == 1 for each in found if each.space == "global")
        assert sum(each.bytes for each in reads) * products == 64**3
        assert (out == 64).all()


@needs_nvcc
def test_registers_hold_what_a_lane_has(tmp_path: Path) -> None:
    """For each unit, of indices of both widths, without a warning."""
    programs = [product_of(*LAYOUTS[0], unit, unit) for unit in ROUNDED]
    (tmp_path / "all.cu").write_text(cuda.emit_together(programs), "ascii")
    command = ["nvcc", "-std=c++17", "--fmad=false", "-O3", "-fatbin"]
    command += ["-gencode=arch=compute_80,code=[sm_80,sm_90]"]
    command += ["-Xptxas", "-v", "-Xcompiler", "-Wall", "-o", "all.out", "all.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "warning" not in done.stderr
    spilled = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
    assert len(spilled) == 8
    assert {number for pair in spilled for number in pair} == {"0"}


@needs_nvcc
def test_a_device_without_units_is_told(tmp_path: Path) -> None:
    programs = [product_of(*LAYOUTS[0], unit, unit) for unit in ROUNDED]
    (tmp_path / "all.cu").write_text(cuda.emit_together(programs), "ascii")
    command = ["nvcc", "-std=c++17", "-arch=sm_75", "-cubin", "-o", "all.out", "all.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    for name in ROUNDED.values():
        assert f"matrix units multiply {name} from sm_80 on" in done.stderr
