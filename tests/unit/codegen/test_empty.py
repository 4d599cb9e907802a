"""Arrays without elements whose other dimensions are long: loops around what is empty are left at once.

Each of them would take from twenty seconds to hours, one iteration after the other.
"""

from __future__ import annotations

import numpy as np
import pytest

from ilang import i

LONG = 2**34
CASES = [
    ("+ij~.", [(LONG, 0)], 0),
    ("*ij~.", [(LONG, 0)], 1),
    ("+ijk~i", [(2, LONG, 0)], 0),
    ("+ijk~k", [(LONG, 0, 2)], 0),
    ("+ijk~j", [(LONG, 2, 0)], 0),
    ("+ijkl~il", [(2, LONG, 0, 3)], 0),
    ("ij*ij~ij", [(LONG, 0), (LONG, 0)], None),
    ("ij~ji", [(LONG, 0)], None),
    ("^ij~ij >> ij~ji", [(LONG, 0)], None),
    ("ij*ij~ij >> +ij~.", [(LONG, 0), (LONG, 0)], 0),
    ("ik*kj~ijk >> +ijk~ij", [(LONG, 0), (0, 0)], None),
    ("ik*kj~ijk >> +ijk~.", [(LONG, 0), (0, 2)], 0),
    ("ikl*klj~iklj >> +iklj~ij", [(7, LONG, 0), (LONG, 0, 70)], 0),
    ("(I & >ij~j) >> ij-j~ij >> ^ij~ij >> +ij~.", [(LONG, 0)], 0),
]


@pytest.mark.deep
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("text", "shapes", "value"), CASES)
def test_loops_around_nothing_are_left_at_once(
    text: str, shapes: list[tuple[int, ...]], value: int | None, threads: int
) -> None:
    out = i(text)(*(np.empty(shape, np.float32) for shape in shapes), threads=threads)
    assert np.all(out == value)
    assert (out.size == 0) == (value is None)


def test_blocks_of_a_gpu_leave_them_too() -> None:
    shapes = [(LONG, 0), (2, LONG, 0), (LONG, 0, 2), (LONG, 0), (LONG, 0)]
    program = i("+ij~. | +ijk~i | *ijk~k | ij~ji | (^ij~ij >> (I & >ij~j) >> ij-j~ij)")
    arrays = [np.empty(shape, np.float32) for shape in shapes]
    total, rows, product, turned, less = program(*arrays, target="cuda-emulated")
    assert total == 0
    assert not rows.any()
    assert (product == 1).all()
    assert (turned.shape, less.shape) == ((0, LONG), (LONG, 0))


def test_a_kernel_that_nothing_is_left_of_is_called() -> None:
    """Loops over the same elements are fused, and what nothing reads is not stored: the first kernel is empty."""
    text = "!!hoch~hoc >> ((I & I) >> qcb^^qcb~qcb | q:64:1 | q q'' b q' 0 c | q'':q)"
    x = np.arange(2 * 3 * 4 * 2, dtype=np.int32).reshape(2, 3, 4, 2) % 3
    program = i(text).dynamic()
    assert "_k0();" in program.source("c")
    assert np.array_equal(program(x), i(text)(x, target="numpy"))
