"""Statements that the threads of a block, or the lanes of a warp, run together, as CUDA text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from ilang.codegen.targets.braces import braced
from ilang.codegen.targets.cfamily import INDENT, Spelling, combined
from ilang.codegen.targets.identifiers import identifier
from ilang.core.ir.gpu import CombineThreads, MatrixProduct, SwapBuffers
from ilang.core.machine import MatrixUnit


def lines(
    s: CombineThreads | SwapBuffers | MatrixProduct, spelling: Spelling, thread: str, lanes: int
) -> Iterator[str]:
    """A statement; ``thread`` is the number of a thread among those of a worker, ``lanes`` those of one in a warp."""
    device = spelling.program.machine.gpu()
    match s:
        case CombineThreads():
            return _combining(s, spelling, thread, (device.warp, lanes))
        case SwapBuffers():
            return _swapping(s, spelling)
        case MatrixProduct():
            return _multiplying(s, spelling, device.unit(s.rounding))
        case _:
            assert_never(s)


def meeting(lanes: int, warp: int) -> str:
    """The lanes of a group, as a mask of those of its warp."""
    every = f"{hex((1 << lanes) - 1)}u"
    return every if lanes == warp else f"{every} << threadIdx.x % {warp} / {lanes} * {lanes}"


def _combining(
    s: CombineThreads, spelling: Spelling, thread: str, of_warp: tuple[int, int]
) -> Iterator[str]:
    """One value of what all threads have: within each warp by shuffles, then of one warp after the other.

    Where a worker is a part of a warp, its lanes alone meet: other ones may have no iteration.
    """
    warp, lanes = of_warp
    group = min(s.threads, warp)
    name, kind = spelling.local(s.variable), spelling.kind(s.variable, s.dtype)
    update = combined(s.primitive, s.dtype, name, "given")
    given = (
        f"const {kind} given = __shfl_xor_sync({meeting(min(group, lanes), warp)}, {name}, half);"
    )
    yield from braced(f"for (int half = {group // 2}; half > 0; half /= 2)", (given, update))
    if s.threads <= warp:
        return
    warps = s.threads // warp
    given = f"const {kind} given = partials[warp];"
    lines_of_warps = (
        f"__shared__ {kind} partials[{warps}];",
        "__syncthreads();",
        f"if ({thread} % {warp} == 0) partials[{thread} / {warp}] = {name};",
        "__syncthreads();",
        f"{name} = partials[0];",
        *braced(f"for (int warp = 1; warp < {warps}; ++warp)", (given, update)),
    )
    yield from braced("", lines_of_warps)


def _swapping(s: SwapBuffers, spelling: Spelling) -> Iterator[str]:
    """Two pointers to what a block shares are exchanged."""
    buffers = spelling.program.buffers
    first, second = (identifier(buffers[number].name) for number in (s.first, s.second))
    other = f"{spelling.element_kind(s.first)} *const other = {first};"
    return braced("", (other, f"{first} = {second};", f"{second} = other;"))


def _multiplying(s: MatrixProduct, spelling: Spelling, unit: MatrixUnit) -> Iterator[str]:
    """The product of matrices that the lanes of a warp have, added to one; registers hold terms side by side."""
    yield f"add_product_{unit.rows}x{unit.columns}x{unit.terms}("
    sides = [[*map(spelling.expression, side)] for side in (s.sums, s.left, s.right)]
    if 1 < unit.packed:
        sides[1:] = (_packed(side, unit) for side in sides[1:])
    ends = (",", ",", ");")
    yield from (f"{INDENT}{', '.join(side)}{end}" for side, end in zip(sides, ends, strict=True))


def _packed(side: Sequence[str], unit: MatrixUnit) -> list[str]:
    """Elements as registers that hold several of them."""
    several = (side[n : n + unit.packed] for n in range(0, len(side), unit.packed))
    return [f"pair_{unit.dtype}({', '.join(some)})" for some in several]
