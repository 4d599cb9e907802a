"""The registers of vector units: macros for how many bytes a vector has, and how much of a tile they hold."""

from __future__ import annotations

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
