"""Neighbors that move together on a GPU: right wherever arrays begin, however long rows are, and few instructions."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang.codegen.call.native import Address, Native
from ilang.codegen.emulator.program import emulated, load
from ilang.codegen.emulator.runtime import emulator
from ilang.codegen.targets import cuda
from ilang.codegen.targets.identifiers import function_identifier
from ilang.core.ir.gpu import ThreadLoop, VectorAccess
from ilang.core.ir.kernel import Program, statements_within
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import GPU
from ilang.core.pipeline import fit, graph_of, infer, loops_text, lower, text_component
from ilang.core.reference import evaluate
from tests.property.emulated import of_widths

SOFTMAX = "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"
NORM = "(I & (+ij~i >> (I | 0.5) >> i*.~i)) >> ij-i~ij >> (I & ((I & I) >> ij*ij~ij >> +ij~i)) >> ij/i~ij"
SAME = (((5, 8), (5, 8)), ((3, 70), (3, 70)), ((1, 1), (1, 1)), ((0, 4), (0, 4)), ((300, 4),) * 2)
ROWS = (((5, 700),), ((3, 1031),), ((2, 4),), ((4, 1),), ((4, 0),), ((0, 4),))
LINES = (((1024,), (1024,)), ((1031,), (1031,)), ((3,), (3,)), ((0,), (0,)))
PROGRAMS: dict[str, tuple[str, tuple[str, ...], tuple[Any, ...]]] = {
    "product": ("ij*ij~ij", (), SAME),
    "line": ("v*v~v", (), LINES),
    "doubles": ("ij+ij~ij", ("f64", "f64"), SAME),
    "mixed": ("ij+ij~ij", ("f32", "f64"), SAME),
    "integers": ("ij*ij~ij", ("i32", "i32"), SAME),
    "long_integers": ("ij*ij~ij", ("i64", "i64"), SAME),
    "bools": ("v&&v~v", ("bool", "bool"), LINES),
    "chosen": ("v>=v~v", ("i32", "i32"), LINES),
    "converted": ("ij~ij >> f64", (), (((3, 64),), ((3, 7),))),
    "columns": ("ij+j~ij", (), (((3, 8), (8,)), ((3, 7), (7,)), ((1, 1), (1,)))),
    "scaled": ("ij*i~ij", (), (((3, 8), (3,)), ((3, 7), (3,)))),
    "triangle": ("ij[j<=i]*ij~ij", (), SAME),
    "masked": ("ij[j<=i]*ij~ij >> (I & >ij~i) >> ij-i~ij", (), SAME),
    "both": ("(ij+ij~ij & ij*ij~ij)", (), SAME[:2]),
    "sums": ("+ij~i", (), ROWS),
    "largest": (">ij~i", ("i32",), ROWS),
    "total": ("+ij~.", (), (((50, 700),), ((3, 1031),), ((1, 1),), ((0, 4),))),
    "inner": ("v*v~v >> +v~.", (), (*LINES, ((20000,), (20000,)))),
    "lanes": ("v*v~v >> +v~. || v 0 | v:l", (), (((70,), (70,)), ((64,), (64,)), ((0,), (0,)))),
    "softmax": (SOFTMAX, (), ROWS),
    "norm": (NORM, (), ROWS[:3]),
    "rows": ("bt@vd~btd", ("i64", "f32"), (((2, 3), (5, 8)), ((2, 3), (5, 7)), ((0, 3), (5, 8)))),
    "shifted": ("i(j+1)~ij", (), (((3, 9),), ((3, 8),))),
    "padded": ("i(j+k-1)*k~ijk >> +ijk~ij", (), (((3, 8), (3,)),)),
    "named": ("ij+ij~ij || i j | i:y,j:x", (), SAME[:2]),
    "parts": (
        "ij+ij~ij | i:3 | i i' j | i:p,i':p,j:p",
        (),
        SAME,
    ),  # rows past the end have no neighbors
}
"""Texts, the types of their inputs where these are not f32, and shapes."""
TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "bool": np.bool_}
BYTES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8, "bool": 1}

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs g++")


@functools.cache
def shaped_of(name: str) -> Shaped:
    """One of the programs above."""
    text, dtypes, _ = PROGRAMS[name]
    return infer(graph_of(text_component(text), name), dtypes or None)


@functools.cache
def lowered(name: str) -> Program:
    """The same as kernels."""
    return lower(shaped_of(name), GPU)


@functools.cache
def compiled(*, checked: bool) -> Native:
    """All of them."""
    text = cuda.emit_together([lowered(name) for name in PROGRAMS])
    return load(text, "neighbors.cu", checked=checked)


def several(name: str) -> list[VectorAccess]:
    """What the kernels of a program have several at a time."""
    inside = (s for kernel in lowered(name).kernels for s in statements_within(kernel.body))
    return [s.vectors for s in inside if isinstance(s, ThreadLoop) and s.vectors is not None]


def drawn(name: str, shapes: tuple[tuple[int, ...], ...]) -> list[Any]:
    """Arrays of these shapes; indices are below 5, which is the extent that they are of."""
    numbers = np.random.default_rng(7)
    dtypes = PROGRAMS[name][1] or ("f32",) * len(shapes)
    return [
        numbers.integers(0, 5, shape).astype(TYPES[dtype])
        if dtype in ("i32", "i64")
        else numbers.integers(0, 2, shape).astype(np.bool_)
        if dtype == "bool"
        else numbers.normal(size=shape).astype(TYPES[dtype])
        for shape, dtype in zip(shapes, dtypes, strict=True)
    ]


def ran(name: str, arrays: list[Any], offset: int, *, checked: bool) -> tuple[list[Any], list[Any]]:
    """What a program gives for arrays that begin so many elements after where memory does, and what it should give."""
    device, shaped = emulated(checked=checked), shaped_of(name)
    extents = fit(shaped, [array.shape for array in arrays])
    wanted = evaluate(shaped, arrays, extents, exact=True)
    program, given, kept = lowered(name), [], []
    for array in arrays:
        plain = array.view(np.uint8) if array.dtype == np.bool_ else array
        kept.append(device.allocate(plain.nbytes + 256))
        given.append(kept[-1] + offset * plain.itemsize)
        device.write(given[-1], plain)
    results: list[Any] = []
    for number, want in zip(program.outputs, wanted, strict=True):
        dtype = program.buffers[number].dtype
        kept.append(device.allocate(want.size * BYTES[dtype] + 256))
        given.append(kept[-1] + offset * BYTES[dtype])
        results.append(np.zeros(want.shape, np.uint8 if dtype == "bool" else TYPES[dtype]))
    free = [n for size, n in zip(shaped.sizes, extents, strict=True) if size.is_argument()]
    sizes = np.array([*free, 0], np.int64)
    loaded = compiled(checked=checked)
    count = int(loaded.call(f"{function_identifier(name)}_work", sizes, gives="size"))
    kept.append(device.allocate(count))
    words = [Address(address) for address in given]
    assert loaded.call(function_identifier(name), sizes, *words, Address(kept[-1]), Address(1)) == 0
    device.wait()
    for address, result in zip(given[len(arrays) :], results, strict=True):
        device.read(address, result)
    for address in kept:
        device.free(address)
    return results, wanted


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_arrays_begin_anywhere(name: str, *, checked: bool) -> None:
    """At a multiple of 16 bytes, and up to three elements after one; each load and store is looked at, too."""
    for shapes in PROGRAMS[name][2]:
        arrays = drawn(name, shapes)
        for offset in (0, 1, 2) if checked else (0, 1, 2, 3, 4):
            results, wanted = ran(name, arrays, offset, checked=checked)
            assert not emulator().take_findings(), (shapes, offset)
            for result, want in zip(results, wanted, strict=True):
                np.testing.assert_allclose(result, want, 1e-5, 1e-6, err_msg=f"{shapes} {offset}")


def test_which_elements_are_neighbors() -> None:
    """Four of 4 bytes or less, two of 8; none where rows begin between, or a kernel writes along other dimensions."""
    counts = {name: {each.count for each in several(name)} for name in PROGRAMS}
    assert {name for name, found in counts.items() if found == {2}} == {
        *("doubles", "mixed", "long_integers", "converted")
    }
    assert {name for name, found in counts.items() if not found} == {"shifted", "padded", "named"}
    assert all(found <= {2, 4} for found in counts.values())
    (some,) = several("columns")
    program = lowered("columns")
    assert [program.buffers[n].name for n in some.moved] == ["in0", "in1", "out"]
    assert "4 of in0 in1 out together where rows are aligned" in " ".join(
        loops_text(program).split()
    )


@functools.cache
def counted(name: str, shapes: tuple[tuple[int, ...], ...], offset: int) -> tuple[float, float]:
    """How many requests of warps a program makes for 128 bytes of global memory, and the worst cost of a line."""
    with emulator().settings(profile=1):
        emulator().take_profile()
        ran(name, drawn(name, shapes), offset, checked=True)
        traffic = [each for each in emulator().take_profile() if each.space == "global"]
    requests, moved = sum(t.requests for t in traffic), sum(t.bytes for t in traffic)
    return requests * 128 / moved, max(t.ratio() for t in traffic)


@pytest.mark.parametrize(
    ("name", "shapes", "fewer"),
    [
        ("product", ((64, 128), (64, 128)), 4),
        ("line", ((8192,), (8192,)), 4),
        ("integers", ((64, 128), (64, 128)), 4),
        ("columns", ((64, 128), (128,)), 4),
        ("doubles", ((64, 128), (64, 128)), 2),
        ("bools", ((8192,), (8192,)), 4),
        ("sums", ((16, 1024),), 3.6),
        ("softmax", ((16, 1024),), 4),
        ("norm", ((16, 1024),), 3.9),
        ("inner", ((8192,), (8192,)), 3.7),
    ],
)
def test_few_instructions_move_whole_sectors(
    name: str, shapes: tuple[tuple[int, ...], ...], fewer: float
) -> None:
    """As many times fewer as elements are moved at a time, beside arrays that begin an element further on."""
    aligned, cost = counted(name, shapes, 0)
    others, _ = counted(name, shapes, 1)
    assert cost <= 1.1
    assert fewer <= others / aligned <= 4.2


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
def test_registers_hold_all_neighbors(tmp_path: Path, architecture: str) -> None:
    """Nothing is spilled, and nvcc moves 16 bytes by one instruction where the text does."""
    names = ("product", "doubles", "long_integers", "softmax", "norm", "both", "rows")
    programs = [lowered(name) for name in names]
    text = of_widths(programs, cuda.emit_together(programs))
    (tmp_path / "f.cu").write_text(text, "ascii")
    words = ["nvcc", "-std=c++17", "--fmad=false", "-O3", f"-arch={architecture}", "--keep"]
    done = subprocess.run(
        [*words, "-Xptxas", "-v", "-cubin", "f.cu"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    spilled = re.findall(r"(\d+) bytes spill (?:stores|loads)", done.stdout + done.stderr)
    assert len(spilled) > len(names)
    assert set(spilled) == {"0"}
    ptx = (tmp_path / "f.ptx").read_text("ascii")
    for kind in ("v4.f32", "v2.f64", "v2.u64"):
        assert f"ld.global.nc.{kind}" in ptx, kind
        assert f"st.global.{kind}" in ptx, kind
