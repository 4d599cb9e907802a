"""What the page of a program says of who computes it: cores, blocks, threads."""

import pytest

from ilang import i
from ilang.core.machine import GPU
from ilang.core.pipeline import explain, graph_of, text_component


@pytest.mark.parametrize(
    ("text", "shape", "line"),
    [
        ("+ij~j | i:32 | i j i' | i:p", (4096, 300), "cores share i"),
        ("+ij~j", (4096, 300), "cores share parts of the sum"),
        ("+ij~j", (64, 20000), "tiles of 64 in registers; cores share j"),
        ("+ij~j", (2, 3), "plain loops, one element after the other"),
    ],
)
def test_loops_that_cores_share(text: str, shape: tuple[int, int], line: str) -> None:
    assert i(text).explain(shape).runs == line


def test_cores_share_loops_of_open_extents() -> None:
    assert i("+ij~j").explain().runs == "cores share parts of the sum and j"


def test_dimensions_of_copies_are_no_axes() -> None:
    runs = i("ik*kj~ijk >> +ijk~ij").explain().runs
    assert "_" not in runs


@pytest.mark.parametrize(
    ("text", "line"), [("+ij~i || i j | i:tx", "one block of 256 threads"), ("1~.", "one thread")]
)
def test_one_block(text: str, line: str) -> None:
    assert explain(graph_of(text_component(text), "f"), machine=GPU).runs == line
