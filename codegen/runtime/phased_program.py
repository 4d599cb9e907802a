"""Runs of a program whose inputs may be sums over ranks: phase by phase, and between two of them the ranks add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ilang.codegen.runtime.specialization import Specialization
from ilang.codegen.runtime.target import DEVICES
from ilang.core.ir.shaped import Shaped
from ilang.core.transform.phases import phases

if TYPE_CHECKING:
    from ilang.codegen.runtime.arguments import Array


class Processes(Protocol):
    """The processes that run a program together, each on a share of the data; ``rank`` is the number of this one."""

    rank: int
    size: int

    def total(self, array: Array) -> Array:
        """The sum of an array over all ranks, the same on each of them, bit by bit."""

    def others(self, array: Array) -> Array:
        """The sum of an array over the other ranks."""


class PhasedProgram:
    """One program, compiled phase by phase when it is first run."""

    def __init__(
        self,
        shaped: Shaped,
        merged: Sequence[tuple[int, int, bool]],
        ranks: Processes | None,
        target: str,
        threads: int | str,
    ) -> None:
        """Nothing is compiled yet.

        Args:
            shaped: the program, its sizes known.
            merged: for each input that is a sum over ranks its position, that of the output that is summed, and whether
                the sum is over all ranks.
            ranks: the processes that run it; None where it is one.
            target: what it runs on.
            threads: how many cores a run uses at most; "auto" for all where the work is enough.
        """
        awaited = {shaped.inputs[given]: shaped.outputs[source] for given, source, _ in merged}
        self._outputs = shaped.outputs
        self._inputs = shaped.inputs
        self._phases = [
            (each, Specialization(each.program)) for each in phases(shaped, awaited) if each.gives
        ]
        self._merged = [
            (shaped.inputs[given], shaped.outputs[source], whole) for given, source, whole in merged
        ]
        self._ranks = ranks
        self._target = target
        self._threads = threads

    def run(self, given: Sequence[Array]) -> list[Array]:
        """The outputs of one run, each an array of its own.

        Args:
            given: an array for each input; those for sums over ranks are not read.
        """
        values: dict[int, Array] = dict(zip(self._inputs, given, strict=True))
        for phase, specialization in self._phases:
            arrays = [values[each] for each in phase.takes]
            results = self._results(specialization, arrays)
            values.update(zip(phase.gives, results, strict=True))
            self._merge(phase.gives, values)
        return [values[each] for each in self._outputs]

    def _results(self, specialization: Specialization, given: list[Array]) -> Sequence[Array]:
        extents = tuple(size.fixed or 0 for size in specialization.shaped.sizes)
        if self._target == "numpy":
            results = specialization.evaluate(given, extents, None)
        elif self._target in DEVICES:
            from ilang.codegen.runtime.offload import device_of

            offloaded = specialization.on(device_of(self._target))
            results = offloaded.call(given, {}, extents, None)
        else:
            plan = specialization.plan(extents)
            results = plan.call(given, given, None, self._threads)
        return results if isinstance(results, tuple) else (results,)

    def _merge(self, computed: Sequence[int], values: dict[int, Array]) -> None:
        """Sum over ranks what a phase has computed: arrays of one type at a time, all of them as one."""
        ranks = self._ranks
        due = [each for each in self._merged if each[1] in computed]
        if ranks is None or not due:
            return
        kinds = sorted({(values[source].dtype.char, whole) for _, source, whole in due})
        for kind, is_whole in kinds:
            group = [
                (number, values[source])
                for number, source, whole in due
                if (values[source].dtype.char, whole) == (kind, is_whole)
            ]
            flat = np.concatenate([array.reshape(-1) for _, array in group])
            summed = ranks.total(flat) if is_whole else ranks.others(flat)
            ends = np.cumsum([array.size for _, array in group])
            for (number, array), part in zip(group, np.split(summed, ends[:-1]), strict=True):
                values[number] = part.reshape(array.shape)
