"""Invariants of ``ir/gpu.py``: that threads which nothing orders do not meet."""

from __future__ import annotations

from ilang.core.check import kernel as kernels
from ilang.core.diagnostic import InternalError
from ilang.core.ir.cpu import Transpose
from ilang.core.ir.gpu import Spread
from ilang.core.ir.kernel import For, Kernel, Program, Tile, statements_within
from ilang.core.passes.independence import Independence
from ilang.core.record import replace


def verify(program: Program) -> None:
    """Raise an InternalError (E9905) naming the first invariant that does not hold."""
    kernels.verify(program)
    for kernel in program.kernels:
        _kernel(program, kernel)


def _kernel(program: Program, kernel: Kernel) -> None:
    spreads = [s for s in statements_within(kernel.body) if isinstance(s, Spread)]
    _demand(program, kernel, len(spreads) == 1 == len(kernel.body), "a kernel is one spread")
    spread = spreads[0]
    _demand(program, kernel, kernel.body[0] is spread, "a kernel is one spread")
    device = program.machine.device
    most = 0 if device is None else device.most_block_threads
    _demand(program, kernel, 0 < spread.threads <= most, "a block has as many threads as it may")
    others = [s for s in statements_within(spread.body) if isinstance(s, (Tile, Transpose))]
    _demand(program, kernel, not others, "what only a CPU has is not on a GPU")
    _independent(program, kernel, spread)


def _independent(program: Program, kernel: Kernel, spread: Spread) -> None:
    """Each loop of a spread, as if it stood alone around the rest, has independent iterations."""
    body = spread.body
    for loop in reversed(spread.loops):
        body = (replace(loop, body=body),)
    independence = Independence(program, replace(kernel, body=body))
    around: set[int] = set()
    while len(body) == 1 and isinstance(body[0], For) and len(around) < len(spread.loops):
        apart = independence.holds(body[0], ())
        _demand(program, kernel, apart, "what a thread writes, no other thread touches")
        around.add(body[0].variable)
        body = body[0].body


def _demand(program: Program, kernel: Kernel, holds: bool, invariant: str) -> None:
    if not holds:
        raise InternalError("E9905", f"kernel {kernel.name} of {program.name}: {invariant}")
