"""The registers of vector units: macros for how many bytes a vector has, and how much of a tile they hold."""

from __future__ import annotations

from collections.abc import Iterator

from ilang.core.machine import Machine


def registers(machine: Machine) -> Iterator[str]:
    """The macros VECTOR and HELD, by the instruction set that the compiler writes for."""
    yield "/* bytes of a vector, and of the elements of a tile that registers hold beside their operands */"
    for number, variant in enumerate(machine.variants):
        test = f"{'el' if number else ''}if defined({variant.macro})" if variant.macro else "else"
        yield f"#{test}"
        yield f"#define VECTOR {variant.vector_bytes}"
        yield f"#define HELD {variant.held_bytes}"
    yield "#endif"
    yield ""
