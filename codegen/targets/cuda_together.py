"""Statements that the threads of a block, or the lanes of a warp, run together, as CUDA text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from ilang.codegen.targets.cfamily import INDENT, Spelling, combined
from ilang.codegen.targets.identifiers import identifier
from ilang.core.ir.gpu import CombineThreads, MatrixProduct, SwapBuffers
from ilang.core.machine import MatrixUnit


def lines(
    s: CombineThreads | SwapBuffers | MatrixProduct,
    spelling: Spelling,
    thread: str,
    lanes: int,
    indent: str,
) -> Iterator[str]:
    """A statement; ``thread`` is the number of a thread among those of a worker, ``lanes`` those of one in a warp."""
    device = spelling.program.machine.device
    assert device is not None
    match s:
        case CombineThreads():
            return _combining(s, spelling, thread, (device.warp, lanes), indent)
        case SwapBuffers():
            return _swapping(s, spelling, indent)
        case MatrixProduct():
            return _multiplying(s, spelling, device.unit(s.rounding), indent)
        case _:
            assert_never(s)


def meeting(lanes: int, warp: int) -> str:
    """The lanes of a group, as a mask of those of its warp."""
    every = f"{hex((1 << lanes) - 1)}u"
    return every if lanes == warp else f"{every} << threadIdx.x % {warp} / {lanes} * {lanes}"


def _combining(
    s: CombineThreads, spelling: Spelling, thread: str, of_warp: tuple[int, int], indent: str
) -> Iterator[str]:
    """One value of what all threads have: within each warp by shuffles, then of one warp after the other.

    Where a worker is a part of a warp, its lanes alone meet: other ones may have no iteration.
    """
    warp, lanes = of_warp
    name, kind = spelling.local(s.variable), spelling.kind(s.variable, s.dtype)
    update = combined(s.primitive, s.dtype, name, "given")
    group = min(s.threads, warp)
    yield f"{indent}for (int half = {group // 2}; half > 0; half /= 2) {{"
    yield f"{indent}{INDENT}const {kind} given = __shfl_xor_sync({meeting(lanes, warp)}, {name}, half);"
    yield f"{indent}{INDENT}{update}"
    yield f"{indent}}}"
    if s.threads <= warp:
        return
    inside, warps = indent + INDENT, s.threads // warp
    yield f"{indent}{{"
    yield f"{inside}__shared__ {kind} partials[{warps}];"
    yield f"{inside}__syncthreads();"
    yield f"{inside}if ({thread} % {warp} == 0) partials[{thread} / {warp}] = {name};"
    yield f"{inside}__syncthreads();"
    yield f"{inside}{name} = partials[0];"
    yield f"{inside}for (int part = 1; part < {warps}; ++part) {{"
    yield f"{inside}{INDENT}const {kind} given = partials[part];"
    yield f"{inside}{INDENT}{update}"
    yield f"{inside}}}"
    yield f"{indent}}}"


def _swapping(s: SwapBuffers, spelling: Spelling, indent: str) -> Iterator[str]:
    """Two pointers to what a block shares are exchanged."""
    buffers = spelling.program.buffers
    first, second = (identifier(buffers[number].name) for number in (s.first, s.second))
    yield f"{indent}{{"
    yield f"{indent}{INDENT}{spelling.element_kind(s.first)} *const other = {first};"
    yield f"{indent}{INDENT}{first} = {second};"
    yield f"{indent}{INDENT}{second} = other;"
    yield f"{indent}}}"


def _multiplying(
    s: MatrixProduct, spelling: Spelling, unit: MatrixUnit, indent: str
) -> Iterator[str]:
    """The product of matrices that the lanes of a warp have, added to one; registers hold terms side by side."""
    yield f"{indent}add_product_{unit.rows}x{unit.columns}x{unit.terms}("
    sides = [[*map(spelling.expression, side)] for side in (s.sums, s.left, s.right)]
    if 1 < unit.packed:
        sides[1:] = (_packed(side, unit) for side in sides[1:])
    ends = (",", ",", ");")
    yield from (
        f"{indent}{INDENT}{', '.join(side)}{end}" for side, end in zip(sides, ends, strict=True)
    )


def _packed(side: Sequence[str], unit: MatrixUnit) -> list[str]:
    """Elements as registers that hold several of them."""
    several = (side[n : n + unit.packed] for n in range(0, len(side), unit.packed))
    return [f"pair_{unit.dtype}({', '.join(some)})" for some in several]
