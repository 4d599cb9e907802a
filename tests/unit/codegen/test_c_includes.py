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
