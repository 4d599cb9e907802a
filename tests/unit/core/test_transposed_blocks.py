"""The blocks of transposed work: long ones where operands come from memory, short ones where a cache holds them."""

from __future__ import annotations

import pytest

from ilang import i


@pytest.mark.parametrize(
    ("text", "extent", "length"),
    [
        ("ij~ji", 4096, 256),
        ("ij+ji~ij", 4096, 256),
        ("ij+ji~ij", 2000, 256),
        ("ij+ji~ij", 200, 32),
        ("ij+ji~ij", 100, 32),
    ],
)
def test_length(text: str, extent: int, length: int) -> None:
    shapes = ((extent, extent),) * (1 if text == "ij~ji" else 2)
    (priced,) = i(text).why(*shapes).priced
    assert f":{length}" in priced.candidates[0].schedule
