"""The registers of vector units: how many bytes a vector has, and how much of a tile they hold."""

from __future__ import annotations

from ilang.core.dtype import BYTES

VECTOR_BYTES = 64
"""Bytes of the widest vectors."""

REGISTERS = (
    "/* bytes of a vector, and of the elements of a tile that registers hold beside their operands */",
    "#if defined(__AVX512F__)",
    "#define VECTOR 64",
    "#define HELD 1536",
    "#elif defined(__AVX__)",
    "#define VECTOR 32",
    "#define HELD 384",
    "#elif defined(__aarch64__)",
    "#define VECTOR 16",
    "#define HELD 384",
    "#else",
    "#define VECTOR 16",
    "#define HELD 192",
    "#endif",
    "",
)
HELD = ((1536, 64), (384, 32), (192, 16))
"""The values of the macro of this name, and bytes of a vector beside each."""


def lanes_of(dtype: str, extent: int) -> int:
    """The lanes of the vectors that a loop of this extent divides into; 1 where it does not."""
    lanes = VECTOR_BYTES // BYTES[dtype]
    while lanes > 1 and extent % lanes:
        lanes //= 2
    return lanes
