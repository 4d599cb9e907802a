"""Texts in C include the headers whose names they use, and no others."""

from __future__ import annotations

import pytest

from ilang import i


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("ik*kj~ijk >> +ijk~ij", []),
        ("i+i~i", []),
        ("^i~i", ["math.h"]),
        (">ij~i", ["math.h"]),  # begins at -INFINITY
    ],
)
def test_headers(text: str, headers: list[str]) -> None:
    c = i(text).source("c")
    included = [line.split("<")[1][:-1] for line in c.splitlines() if line.startswith("#include <")]
    assert sorted(included) == sorted([*headers, "stddef.h", "stdint.h", "omp.h"])


def test_bytes_of_known_extents_are_numbers() -> None:
    assert "bytes[2] = {120, 20};" in i(">ij~i").source("c", (5, 6))
    assert "il_measure(&plan->bytes[0], " in i(">ij~i").source("c")


@pytest.mark.parametrize("target", ["c", "cuda"])
def test_formulas_stand_above(target: str) -> None:
    text = i("ik*kj~ijk >> +ijk~ij").source(target)
    assert text.startswith("/* program: out[i,j] = sum_k in0[i,k]*in1[k,j]\n */\n")


@pytest.mark.parametrize("target", ["c", "cuda"])
def test_status_3_names_small_extents_where_windows_need_some(target: str) -> None:
    window = i("(i+k)*k~ik >> +ik~i").source(target)
    assert "returns 3: an extent is negative or too small, or" in window
    assert "too small" not in i("+ij~i").source(target)


def test_the_second_kernel_of_a_split_reduction_combines_parts() -> None:
    first, second = i("+i~.").source("cuda").split("program_k0_0(")
    told = " * combines the parts in out_parts\n"
    assert told not in first
    assert second.index(told) < second.index("program_k0_1(")
