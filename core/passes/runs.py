"""Sums of runs of terms in variables of a thread: of a run, of several, and of strips of a loop over runs.

Example, of 128 terms, 32 runs and an accumulator of f64, of which each thread has an element:
    out:  acc = 0
          for b in strips
            part = 0
            for k in strip b: run = 0; for k' in 0..128: run += in0[128k+k'];  part += run
            acc += f64(part)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from functools import partial

from ilang.core.calculus.affine import axis_index
from ilang.core.calculus.extent import bounds
from ilang.core.ir import kernel
from ilang.core.ir.scalar import Load, Local, Scalar
from ilang.core.ir.schedule import Loop, ThreadTile
from ilang.core.passes.loops import Loops, combined
from ilang.core.passes.scope import Block, Frame, Scope
from ilang.core.passes.storage import start_of
from ilang.core.record import replace

Use = Callable[[Block, Scalar], None]
"""A function that uses a value, in a block where it is known."""

Steps = Generator["Steps", None, None]
"""A computation that hands sub-computations to its driver: staged producers nest as deep as programs are long."""


class Runs(Loops, ABC):
    """The part of lowering a kernel that knows runs of terms."""

    @abstractmethod
    def _stage_inside(self, frame: Frame, loop: Loop) -> Steps:
        """Compute the producers whose site is inside a loop just opened."""

    @abstractmethod
    def _stage_outside(self, frame: Frame) -> Steps:
        """Compute the producers whose site is the start of the kernel, or inside a shared loop."""

    def _around(
        self, frame: Frame, scope: Scope, loops: Sequence[Loop], inside: Callable[[Scope], Steps]
    ) -> Steps:
        """Loops, which stage what belongs there, and what is ``inside`` of all of them."""
        for loop in loops:
            scope = self._enter(frame, loop, scope)
            yield from self._stage_inside(frame, loop)
        yield from inside(scope)
        for loop in reversed(loops):
            self._leave(frame, loop)

    def _inside(
        self, frame: Frame, scope: Scope, loops: Sequence[Loop], step: Callable[[Block], None]
    ) -> Steps:
        """The reduced loops and the output loops inside them; ``step`` fills the innermost block."""

        def inside(scope: Scope) -> Steps:
            step(scope.block)
            yield from ()

        yield from self._around(frame, scope, loops, inside)

    def _in_runs(self, frame: Frame, scope: Scope, tile: ThreadTile, use: Use) -> Steps:
        """The loops around a run, its sums, which start anew each time, and what becomes of them."""

        def inside(scope: Scope) -> Steps:
            if tile.elements:
                return self._run_of_elements(frame, scope, tile, use)
            held = self._accumulator("run", frame, tile.dtype, scope.block)
            return self._in_variable(frame, scope, held, tile.core, use)

        if tile.runs:
            added = self._in_strips if tile.most else self._added_runs
            inside = partial(added, frame, tile=tile, use=use)
        yield from self._around(frame, scope, tile.outer, inside)

    def _in_strips(self, frame: Frame, scope: Scope, tile: ThreadTile, use: Use) -> Steps:
        """The runs of a loop in strips of it, and what becomes of the sum of each; of its part, where it has parts."""
        loop, around = tile.runs[0], frame.chunks.get(tile.runs[0])
        parts = None if around is None else around[0]
        count = self.storage.strips(self._trip(frame, loop)[0], tile.most, parts)
        inside, strip = self._counting(scope, "strip")
        frame.chunks[loop] = count, 1, strip
        yield from self._added_runs(frame, inside, tile, use)
        del frame.chunks[loop]
        if around is not None:
            frame.chunks[loop] = around
        begin, end = bounds(count, around)
        scope.block.append(kernel.For(strip, end, tuple(inside.block), begin))

    def _added_runs(self, frame: Frame, scope: Scope, tile: ThreadTile, use: Use) -> Steps:
        """The sums of several runs in a buffer of their type, and what becomes of them."""
        each = replace(tile, outer=tile.runs, runs=(), most=0)
        element = self._started(frame, scope, tile, "part")

        def merge(body: Block, value: Scalar) -> None:
            held = element()
            body.append(kernel.Store(held.buffer, held.index, combined(frame.node, held, value)))

        yield from self._in_runs(frame, scope, each, merge)
        self._over(frame, scope, list(tile.elements), lambda body: use(body, element()))

    def _started(
        self, frame: Frame, scope: Scope, tile: ThreadTile, role: str
    ) -> Callable[[], Load]:
        """A buffer with an element for each iteration of the innermost loops, started; the element that they are at."""
        dims = [self._trip(frame, loop)[0] for loop in tile.elements]
        name = f"{self.shaped.tensors[frame.value].name}_{role}"
        buffer = self._scratch(name, frame.value, tile.dtype, dims, scope)
        zero = replace(start_of(frame.node), dtype=tile.dtype)

        def element() -> Load:
            at = tuple(axis_index(frame.variable(loop)) for loop in tile.elements)
            return Load(buffer, at, tile.dtype)

        def start(body: Block) -> None:
            body.append(kernel.Store(buffer, element().index, zero))

        self._over(frame, scope, list(tile.elements), start)
        return element

    def _in_variable(
        self, frame: Frame, scope: Scope, held: Local, core: Sequence[Loop], use: Use
    ) -> Steps:
        """The terms of some loops in a variable, which has been started, and what becomes of it."""

        def step(body: Block) -> None:
            value = self._accumulated(frame, held, held.dtype)
            self._add_step(frame, body, kernel.Change(held.variable, value))

        yield from self._inside(frame, scope, core, step)
        use(scope.block, held)

    def _run_of_elements(self, frame: Frame, scope: Scope, tile: ThreadTile, use: Use) -> Steps:
        """The sums of a run: a buffer with an element for each iteration of the innermost loops."""
        element = self._started(frame, scope, tile, "run")

        def step(body: Block) -> None:
            held = element()
            value = self._accumulated(frame, held, tile.dtype)
            self._add_step(frame, body, kernel.Store(held.buffer, held.index, value))

        yield from self._inside(frame, scope, [*tile.core, *tile.elements], step)
        self._over(frame, scope, list(tile.elements), lambda body: use(body, element()))
