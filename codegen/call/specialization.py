"""A component for given element types and ranks: inferred, and compiled when first run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.codegen.call.arguments import checked_outs, names_of, outputs_of, result_of
from ilang.codegen.call.load import Compiled, interface_of
from ilang.codegen.call.memory import too_large
from ilang.codegen.call.plan import CallPlan
from ilang.codegen.system.concurrency import ForkSafeLock, kept
from ilang.core import pipeline
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import CPU

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array
    from ilang.codegen.device.device import Device
    from ilang.codegen.device.offload import Offloaded

MOST_PLANS = 256
"""Sizes that one specialization remembers."""


class Specialization:
    """One shaped program and its compiled form. Safe to use from several threads."""

    __slots__ = ("_compiled", "_lock", "_offloaded", "_plans", "names", "shaped")

    def __init__(self, shaped: Shaped) -> None:
        """Nothing is compiled yet."""
        self.shaped = shaped
        self.names = names_of(shaped)
        self._compiled: Compiled | None = None
        self._plans: dict[tuple[int, ...], CallPlan] = {}
        self._offloaded: dict[Device, Offloaded] = {}
        self._lock = ForkSafeLock()

    def plan(self, extents: tuple[int, ...]) -> CallPlan:
        """A call of the compiled program with these extents.

        Raises:
            ToolError: it cannot be compiled.
        """
        return kept(self._plans, extents, lambda: self._planned(extents), MOST_PLANS)

    def _planned(self, extents: tuple[int, ...]) -> CallPlan:
        if self._compiled is None:
            with self._lock.taken():
                if self._compiled is None:
                    key = repr(self.shaped)
                    self._compiled = Compiled(interface_of(self.shaped, CPU), self._text, key)
        return self._compiled.plan(extents, outputs_of(self.shaped, extents), self.names)

    def on(self, device: Device) -> Offloaded:
        """The program on a device, compiled at the first time.

        Raises:
            ToolError: it cannot be compiled.
        """
        from ilang.codegen.device.offload import Offloaded

        make = partial(Offloaded, self.shaped, device)
        return self._lock.kept(self._offloaded, device, make)

    def _text(self) -> str:
        """The program as C: a function of what is inferred, and of nothing else."""
        from ilang.codegen.targets import c

        return c.emit(pipeline.lower(self.shaped, CPU), stoppable=True)

    def evaluate(self, arrays: Sequence[Array], extents: Sequence[int], out: object) -> Any:
        """The results by NumPy, written to ``out`` where there is one.

        Raises:
            DataError: E0713 (no memory), and those of ``checked_outs``.
        """
        from ilang.core.reference import evaluate

        outputs = outputs_of(self.shaped, extents)
        outs = [] if out is None else checked_outs(out, self.names, outputs, arrays)
        try:
            results = evaluate(self.shaped, arrays, extents)
        except MemoryError:
            domains = (node.sizes for node in self.shaped.nodes if isinstance(node, Assignment))
            most = max((prod(extents[n] for n in sizes) for sizes in domains), default=1)
            subject = f"an intermediate value of {most:,} elements, which NumPy stores whole"
            raise too_large(subject) from None
        results = [np.array(result, order="C", copy=True) for result in results]
        for array, result in zip(outs, results, strict=False):
            array[...] = result
        return result_of(results, out)
