"""Contractions that meet in rows: block of rows by block of rows, or not."""

import re
from pathlib import Path

import pytest

from ilang import load
from ilang.core.explain.kernel import loops_text
from ilang.core.pipeline import graph_of, infer, lower, text_component
from tests.unit.core.test_choose import nests_of

ROWS = "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"


def schedules(text: str) -> list[str]:
    """The chosen schedule of each assignment of a program."""
    return nests_of(infer(graph_of(text_component(text), "program")))


def kernels(text: str) -> int:
    """How many kernels a program has."""
    return len(lower(infer(graph_of(text_component(text), "program"))).kernels)


def outermost(schedule: str) -> str:
    """The loops of a schedule, outermost first, without the digits of operands."""
    return " ".join(
        word for word in schedule.rsplit("|", maxsplit=1)[-1].split() if not word.isdigit()
    )


ATTENTION = f"((id*jd~ijd >> +ijd~ij >> {ROWS}) | I) >> ij*jd~ijd >> +ijd~id"


def test_attention_is_one_kernel_of_blocks_of_rows() -> None:
    assert kernels(ATTENTION) == 1
    chosen = schedules(ATTENTION)
    assert all(outermost(text).startswith("i ") for text in chosen)


@pytest.mark.parametrize("keys", [48, 64, 100])
def test_lanes_are_along_rows_of_which_a_block_has_few(keys: int) -> None:
    """A block has 6 rows, which would fill a third of a vector's lanes."""
    shapes = [(96, 8), (keys, 8), (keys, 8)]
    text = loops_text(lower(infer(graph_of(text_component(ATTENTION), "program"), shapes=shapes)))
    assert f"for j in 0..{keys} in 16 lanes" in text
    assert " = exp(" in text[text.index("in 16 lanes") :]


@pytest.mark.parametrize("keys", [8, 12, 16, 20])
def test_rows_of_few_keys_are_stored_for_lanes_across_all(keys: int) -> None:
    """A block of 6 rows fills no vector across them, and few keys none along them."""
    shapes = [(256, 32), (keys, 32), (keys, 32)]
    program = lower(infer(graph_of(text_component(ATTENTION), "program"), shapes=shapes))
    assert "for i1 in 0..64" in loops_text(program)
    assert 1 < len(program.kernels)


def test_what_runs_along_the_lanes_is_packed_before_the_rows() -> None:
    packs = [text for text in schedules(ATTENTION) if text.split("|")[-1].split()[0].isdigit()]
    assert len(packs) == 2


def test_a_chain_without_work_on_rows_is_not() -> None:
    """Two layers: the second needs no whole rows of the first at once."""
    chosen = schedules("((ik*kj~ijk >> +ijk~ij >> (I | 0) >> ij>.~ij) | I) >> ij*jd~ijd >> +ijd~id")
    assert any(outermost(text).startswith("j ") for text in chosen)


def test_products_alone_are_no_work_on_rows(tmp_path: Path) -> None:
    """A layer that its gradient reads, too: products sum over it, and nothing else reduces its rows."""
    path = tmp_path / "layers.i"
    path.write_text("""
    op net(x) = "v" * ?/("w" * x + "b" 96) + "c" 96
    cd step(x) {
      y = net(x)
      loss = y *. y ++ "...|... => 0"
      backprop(loss)
      for p in params(loss) { p =- p.grad }
    }""")
    solved = load(path).session("step", shapes={"x": "80|96"})._solved
    chosen = [text for text in nests_of(solved.shaped()) if re.search(r"b0:\d+,o0:\d+", text)]
    assert len(chosen) == 7
    assert all(outermost(text).startswith("o0 b0 ") for text in chosen)
