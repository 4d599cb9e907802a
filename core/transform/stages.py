"""The stages of a run: the phases of its program, and where each of them finds and leaves its arrays, by their names.

Example, of ``p.grad =+ p.grad.merge`` and ``p =- lr *. p.grad``:
    stage 1: x and p are read, p_grad_sum is written; then p_grad_sum is summed over ranks, in place
    stage 2: p, lr and p_grad_sum are read, next_p is written

Where a machine has it, gradients that ranks sum come in buckets, the last layer's first, and the sum of one goes on
while the next stages run: it ends before the first of them that reads it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from math import prod

from ilang.core.diagnostic import DataError
from ilang.core.dtype import BYTES
from ilang.core.ir.ids import ValueId
from ilang.core.ir.session import Between, RankSum, RunStage
from ilang.core.ir.shaped import Shaped
from ilang.core.record import replace
from ilang.core.transform.phases import Phase, phases


def run_of(
    shaped: Shaped,
    merged: Sequence[tuple[int, int, bool]],
    read: Sequence[str | None],
    written: Sequence[str | None],
    name_of: Callable[[str], str],
    bucket_bytes: int | None = None,
) -> tuple[tuple[RunStage, ...], Between]:
    """The stages of a run, and the arrays between them.

    Args:
        shaped: its program, sizes known.
        merged: for each input that is a sum over ranks its position, that of the output that is summed, and whether
            the sum is over all ranks.
        read: the names of inputs; None of a sum over ranks.
        written: those of outputs; of what ranks sum what it might be called.
        name_of: gives a name that nothing else has.
        bucket_bytes: sums over all ranks come in buckets of so many bytes; None: without.
    """
    places = _PhasePlaces(shaped, merged, read, written, name_of)
    return places.stages(bucket_bytes), places.between


class _PhasePlaces:
    """The places of values, phase by phase."""

    def __init__(
        self,
        shaped: Shaped,
        merged: Sequence[tuple[int, int, bool]],
        read: Sequence[str | None],
        written: Sequence[str | None],
        name_of: Callable[[str], str],
    ) -> None:
        self.shaped = shaped
        self.merged = merged
        self.name_of = name_of
        self.between: Between = {}
        self.written = list(written)
        for _, source, _ in merged:
            path, value = written[source] or "", shaped.outputs[source]
            is_path = path.replace(".", "_").isidentifier() and path.isascii()
            self.written[source] = self._array(path if is_path else f"sum_{value}", value)
        self.summed = {self.written[source] for _, source, whole in merged if whole}
        self.places: dict[int, str] = {
            value: name for value, name in zip(shaped.inputs, read, strict=True) if name is not None
        }
        self.due: Mapping[int, list[int]] = defaultdict(list)
        for position, value in enumerate(shaped.outputs):
            self.due[value].append(position)

    def stages(self, bucket_bytes: int | None) -> tuple[RunStage, ...]:
        """All stages."""
        awaited = {
            self.shaped.inputs[given]: self.shaped.outputs[source]
            for given, source, _ in self.merged
        }
        buckets = self._buckets(bucket_bytes)
        cut = [each for each in phases(self.shaped, awaited, buckets) if each.gives]
        later = [{value for each in cut[n + 1 :] for value in each.takes} for n in range(len(cut))]
        stages = []
        for phase, needed in zip(cut, later, strict=True):
            names = [self.places[value] for value in phase.takes]
            names += [self._given(value) for value in phase.gives]
            copies = [*self._kept(phase, needed), *self._unchanged()]
            sums = self._sums(phase.gives)
            stages.append(RunStage(phase.program, tuple(names), tuple(copies), sums))
        return _overlapped(stages)

    def _buckets(self, limit: int | None) -> list[list[int]]:
        """Gradients that are summed over all ranks, in buckets of so many bytes, in the order of computation.

        No buckets where sizes come with a run: what is between two stages has sizes that are known.
        """
        if limit is None or any(size.is_argument() for size in self.shaped.sizes):
            return []
        buckets: list[list[int]] = []
        filled = limit
        for value in sorted(
            {self.shaped.outputs[source] for _, source, whole in self.merged if whole}
        ):
            if limit <= filled:
                buckets.append([])
                filled = 0
            buckets[-1].append(value)
            tensor = self.shaped.tensors[value]
            dims = fixed_dims(self.shaped, value, tensor.name)
            filled += prod(dims) * BYTES[tensor.dtype]
        return buckets

    def _given(self, value: int) -> str:
        """The place where a phase leaves a value: where one of its results belongs, or between two phases."""
        positions = self.due[value]
        name = self.written[positions.pop(0)] if positions else self._array(f"part_{value}", value)
        assert name is not None
        if self.places.get(value) in (None, *self.summed):
            self.places[value] = name
        return name

    def _kept(self, phase: Phase, needed: set[ValueId]) -> list[tuple[str, str]]:
        """Copies of values that later phases read beside the sum that takes their place."""
        copies = []
        for value in dict.fromkeys(phase.gives):
            name = self.places[value]
            if name in self.summed and value in needed:
                self.places[value] = self._array(f"part_{value}", value)
                copies.append((self.places[value], name))
        return copies

    def _unchanged(self) -> list[tuple[str, str]]:
        """Copies of inputs that a run gives as they are."""
        copies = []
        for value, positions in self.due.items():
            if value in self.shaped.inputs and value in self.places:
                names = [self.written[each] for each in positions]
                copies += [(name, self.places[value]) for name in names if name is not None]
                positions.clear()
        return copies

    def _sums(self, computed: Sequence[int]) -> tuple[RankSum, ...]:
        """The sums of ranks after a phase: arrays of one type at a time."""
        groups: dict[tuple[str, bool], list[tuple[int, str]]] = defaultdict(list)
        copied = {value for value in self.shaped.inputs if value in self.places}
        for given, source, whole in self.merged:
            value, name = self.shaped.outputs[source], self.written[source]
            target = self.shaped.inputs[given]
            if name is not None and target not in self.places and value in {*computed, *copied}:
                groups[self.shaped.tensors[value].dtype, whole].append((target, name))
        return tuple(
            self._sum(dtype, whole, group) for (dtype, whole), group in sorted(groups.items())
        )

    def _sum(self, dtype: str, whole: bool, group: Sequence[tuple[int, str]]) -> RankSum:
        """One sum; over the other ranks it is in arrays of its own."""
        parts = tuple(name for _, name in group)
        if whole:
            self.places.update(group)
            return RankSum(dtype, parts, (), "")
        sums = tuple(self._array(f"others_{name}", target) for target, name in group)
        self.places.update(zip((target for target, _ in group), sums, strict=True))
        room = self.name_of("room")
        self.between[room] = dtype, (sum(prod(self.between[name][1]) for name in parts),)
        return RankSum(dtype, parts, sums, room)

    def _array(self, path: str, value: int) -> str:
        """The name of a new array between phases for a value."""
        name = self.name_of(path)
        dims = fixed_dims(self.shaped, value, f"what is between two parts of a run, {path},")
        self.between[name] = self.shaped.tensors[value].dtype, dims
        return name


def _overlapped(stages: Sequence[RunStage]) -> tuple[RunStage, ...]:
    """Stages of which some run while sums over all ranks go on: those that the stage after them does not read."""
    run: list[RunStage] = []
    going: list[RankSum] = []
    for stage, after in zip_longest(stages, stages[1:]):
        ends = any(_reads(stage, each) for each in going) or (after is None and bool(going))
        going = [] if ends else going
        sums = tuple(
            replace(
                each, overlaps=after is not None and not each.others and not _reads(after, each)
            )
            for each in stage.sums
        )
        going += [each for each in sums if each.overlaps]
        run.append(replace(stage, sums=sums, ends_sums=ends))
    return tuple(run)


def _reads(stage: RunStage, summed: RankSum) -> bool:
    """Whether a stage, or what is copied after it, reads something that is summed."""
    read = {*stage.arguments, *(source for _, source in stage.copies)}
    return not read.isdisjoint(summed.parts)


def fixed_dims(shaped: Shaped, value: int, says: str) -> tuple[int, ...]:
    """The extents of a value that is kept.

    Raises:
        DataError: E0766 (one comes at run time).
    """
    dims = []
    for number in shaped.tensors[value].dims:
        size = shaped.sizes[number]
        if size.fixed is None:
            message = f"{says} would have the size {size.name}, which comes at run time"
            raise DataError("E0766", message, help="give a number for it in --shape")
        dims.append(size.fixed)
    return tuple(dims)
