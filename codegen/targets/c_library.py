"""The library of C programs: the headers, for every element type, and what they know of the machine."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from ilang.codegen.targets import c_variants
from ilang.codegen.targets.cfamily import C_TYPES
from ilang.codegen.targets.library import HeaderPart, header, parts_of
from ilang.core.machine import Machine
from ilang.core.record import replace

HEADERS = (
    *(
        "threads",
        "stop",
        "workspace",
        "elementary",
        "philox",
        "safetensors",
        "ranks",
        "sums",
        "numbers",
        "compilers",
    ),
    *("vectors", "lanes", "squares", "transposes"),
)
"""The headers, those before others that these include."""
FOR_EVERY_TYPE = frozenset({"squares", "transposes"})
"""Headers that are written for f32, and stand for the other types: those have the same names but for the type."""
LONGEST = {"f32": "f32x16", "f64": "f64x8", "i32": "i32x16", "i64": "i64x8"}
"""The longest vectors of those types."""


def parts(machine: Machine) -> tuple[HeaderPart, ...]:
    """The parts that the text of a program for a machine may name, each after those that it names itself."""
    return (*parts_of(machine_header(machine)), *parts_of(c_variants.header()), *_written())


@functools.cache
def _written() -> tuple[HeaderPart, ...]:
    return tuple(part for name in HEADERS for part in _typed(name))


def _typed(name: str) -> Iterator[HeaderPart]:
    """The parts of a header, and the same for the other types."""
    for dtype in LONGEST if name in FOR_EVERY_TYPE else ("f32",):
        yield from (_retyped(part, dtype) for part in header(f"{name}.h"))


def _retyped(part: HeaderPart, dtype: str) -> HeaderPart:
    """A part that is written for f32, for a type."""
    if dtype == "f32":
        return part

    def changed(text: str) -> str:
        text = text.replace(LONGEST["f32"], LONGEST[dtype]).replace("_f32", f"_{dtype}")
        return re.sub(rf"\b{C_TYPES['f32']}\b", C_TYPES[dtype], text)

    return replace(part, names=tuple(map(changed, part.names)), text=changed(part.text))


def machine_header(machine: Machine) -> str:
    """The text that the headers include as ``machine.h``: numbers of the machine that a program is for."""
    return "\n\n".join("\n".join(lines) for lines in _numbers(machine)) + "\n"


def _numbers(machine: Machine) -> Iterator[tuple[str, ...]]:
    """The lines of each part."""
    threads = machine.threads
    yield "/* bytes of a cache line */", f"#define LINE {machine.memory.line_bytes}"
    yield (
        "/* each thread of a parallel loop has scratch storage of its own in the workspace */",
        "#ifdef _OPENMP",
        f"#define MOST_THREADS {threads.most}",
        "#else",
        "#define MOST_THREADS 1",
        "#endif",
        f"#define MOST_SCRATCH ((size_t){threads.scratch_bytes >> 20} << 20)",
    )
    yield (
        "/* work that is worth several threads, in elements that one thread reads */",
        f"#define ENOUGH {threads.enough_work}",
    )
    yield (
        "/* the blocks that a reduction is computed in at most, and the terms that one has at least */",
        f"#define MOST_BLOCKS {threads.most_blocks}",
        f"#define BLOCK_WORK {threads.block_work}",
    )
    yield (
        "/* the terms of each element of a block at least, and the elements of all blocks at most */",
        f"#define BLOCK_TERMS {threads.block_terms}",
        f"#define BLOCK_ELEMENTS {machine.accumulators(-1)}",
    )
    yield tuple(_registers(machine))


def _registers(machine: Machine) -> Iterator[str]:
    """The macros VECTOR and HELD, by the instruction set that the compiler writes for."""
    yield "/* bytes of a vector, and of the elements of a tile that registers hold beside their operands */"
    for number, variant in enumerate(machine.variants):
        test = f"{'el' if number else ''}if defined({variant.macro})" if variant.macro else "else"
        yield f"#{test}"
        yield f"#define VECTOR {variant.vector_bytes}"
        yield f"#define HELD {variant.held_bytes}"
    yield "#endif"
