"""What threads have becomes one value, as CUDA text."""

from __future__ import annotations

from collections.abc import Iterator

from ilang.codegen.targets.cfamily import INDENT, Spelling, combined
from ilang.core.ir.gpu import Combine


def lines(s: Combine, spelling: Spelling, thread: str, warp: int, indent: str) -> Iterator[str]:
    """One value of what all threads have: within each warp by shuffles, then of one warp after the other."""
    name, kind = spelling.local(s.variable), spelling.kind(s.variable, s.dtype)
    update = combined(s.primitive, s.dtype, name, "given")
    yield f"{indent}for (int half = {warp // 2}; half > 0; half /= 2) {{"
    yield f"{indent}{INDENT}const {kind} given = __shfl_xor_sync(0xffffffffu, {name}, half);"
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
