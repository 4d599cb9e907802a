"""A share of the matrix of types, conversions, operators, axes and extents; all of it is `make matrix`."""

from __future__ import annotations

import re

import pytest

from ilang.codegen.targets import c
from tests import shares
from tests.property import matrix
from tests.property.test_fuzz import needs_compiler
from tests.shares import share

SHARE = 180
"""Parts of which each mode runs one; as many times fewer as the option says."""
COUNTS = tuple(
    cell
    for cell in matrix.cells()
    if cell.dtypes == ("bool",) and re.match(r"i(32|64) >> \+ij~[i.]$", cell.text)
)


@needs_compiler
@pytest.mark.parametrize(("number", "mode"), [*enumerate(matrix.modes())])
def test_truth_values_are_counted_right(number: int, mode: str) -> None:
    counts = share(COUNTS, number)
    compared, wrong = matrix.check(counts, mode)
    assert not wrong, "\n".join(wrong)
    assert compared >= 2 * len(counts)


@needs_compiler
def test_small_nested_loops_are_right() -> None:
    """GCC 12.2 with -O3 -march=native took the wrong of two values, and lost factors of products."""
    chosen = list(matrix.nested())
    compared, wrong = matrix.check(chosen, "fast")
    assert not wrong, "\n".join(wrong)
    assert compared == 2 * len(chosen)


@needs_compiler
@pytest.mark.parametrize(
    ("number", "mode"), [(7 + 13 * n, mode) for n, mode in enumerate(matrix.modes())]
)
def test_a_share_of_the_matrix(number: int, mode: str) -> None:
    compared, wrong = matrix.check(matrix.part(number, -(-SHARE // shares.fuzz)), mode)
    assert not wrong, "\n".join(wrong)
    assert compared


def test_the_matrix_has_everything() -> None:
    found = list(matrix.cells())
    text = "\n".join(cell.text for cell in found)
    assert {d for cell in found for d in cell.dtypes} == set(matrix.DTYPES)
    assert all(f"{op}ij~{to}" in text for op in matrix.REDUCTIONS for to in "ij.")
    assert all(f"ij{op}j~ij" in text for op in matrix.COMPARISONS)
    assert {n for cell in found for run in cell.runs for n in run[0]} >= set(matrix.EXTENTS)
    assert {cell.fixed for cell in found} == {True, False}


@pytest.mark.parametrize("dtype", ["i32", "i64", "bool"])
@pytest.mark.parametrize("op", ["+", "*", "&&", "||", "^^"])
@pytest.mark.parametrize("to", ["i", "j", "."])
def test_no_step_of_a_reduction_converts_what_it_reduces(dtype: str, op: str, to: str) -> None:
    """GCC 12 before 12.3 loses terms of such reductions (its bug 107212)."""
    if dtype == "bool" and op in "+*":
        dtype, before = "i32", "i32 >> "
    else:
        before = ""
    pair = matrix.lowered(matrix.Cell(f"{before}{op}ij~{to}", (dtype,), (((5, 33),),)), "f")
    assert pair is not None
    text = c.emit(pair[1])
    assert re.search(r"(\w*acc\w*|\w*part_)(\[\w+\])? [-+*&|^]= ", text)
    assert not re.search(r"(\w*acc\w*|\w*part_)(\[\w+\])? = .*\b\1\b.*[-+*&|^!]", text)
