"""A run of a session: its stages, one after the other, on arrays that are bound to them by name.

A stage is a call of a program (``core/transform/stages.py``); between two of them ranks sum. Arrays that last are read
on one side and written on the other, and change sides from run to run, so there are two lists of arguments. Inputs and
what is returned are other arrays in every run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ilang.codegen.call.arguments import NUMPY_TYPES, PLAIN
from ilang.codegen.call.memory import argument
from ilang.codegen.call.specialization import Specialization
from ilang.codegen.call.target import DEVICES
from ilang.core.ir.session import KeptTensor, RankSum, RunStage
from ilang.core.runs import RunBuilder

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array
    from ilang.codegen.session.device_copies import DeviceCopies
    from ilang.codegen.session.model import Options
    from ilang.codegen.session.solved import SolvedDefinition
    from ilang.codegen.session.stored import Arrays
    from ilang.core.build.values import Stored

NOTHING = np.zeros(0, np.float32)
"""Stands for an array that a run brings."""


class Processes(Protocol):
    """The processes that run a program together, each on a share of the data; ``rank`` is the number of this one."""

    rank: int
    size: int

    def total(self, array: Array) -> Array:
        """The sum of an array over all ranks, the same on each of them, bit by bit."""

    def others(self, array: Array) -> Array:
        """The sum of an array over the other ranks."""


class CompiledStage:
    """The program of a stage on its target; ``run`` takes inputs and then outputs, as arrays and as arguments of C."""

    def __init__(self, stage: RunStage, options: Options, copies: DeviceCopies | None) -> None:
        """Compile it; on a device it runs on ``copies``. Raises ToolError: that fails."""
        self.stage = stage
        self._program = Specialization(stage.program)
        self._extents = tuple(size.fixed or 0 for size in stage.program.sizes)
        self._copies = copies
        self.run: Callable[[list[Array], list[Any]], object] = self._run
        if options.target == "c":
            plan, threads = self._program.plan(self._extents), options.threads
            count = plan.worth() if isinstance(threads, str) else threads
            self.run = partial(plan.run_bound, threads=count)

    def _run(self, arrays: list[Array], arguments: list[Any]) -> None:
        """Run where C does not. Raises Error, as calls do."""
        del arguments
        if self._copies is not None:
            self._copies.run(self._program, self._extents, arrays)
            return
        count = len(self.stage.program.inputs)
        self._program.evaluate(arrays[:count], self._extents, tuple(arrays[count:]))


Places = list[tuple[list[Any], list[Any], int]]
"""The places of an array: a list of arrays, the same as arguments of C, and the number in both."""


class BoundSide(NamedTuple):
    """The arrays of one side by name, and those of each stage in order: as arrays, and as arguments of C.

    ``inputs`` and ``fresh`` are the places of what every run brings.
    """

    named: dict[str, Array]
    calls: list[tuple[CompiledStage, list[Array], list[Any]]]
    inputs: list[Places]
    fresh: list[tuple[tuple[int, ...], Any, Places]]


class BoundRun:
    """The stages of one session, and the arrays that they run on.

    ``shared`` are the paths of arrays of another session that a run changes: new ones take their place. ``given`` are
    what a run leaves to be read, by path, ``last`` those of the last run.
    """

    def __init__(
        self,
        solved: SolvedDefinition,
        lasting: tuple[Arrays, Arrays],
        others: Callable[[Stored], Array],
        options: Options,
    ) -> None:
        """Compile every stage; nothing is bound yet.

        Args:
            solved: the definition.
            lasting: parameters and state.
            others: the array of any other cell but an input, always the same one.
            options: those of the session: target, threads, ranks.

        Raises:
            ToolError: a stage cannot be compiled.
        """
        self._parameters, self._state = lasting
        self._ranks = options.ranks
        builder = RunBuilder(solved, solved.shaped())
        self._run = run = builder.run()
        self._copies = _copies(options.target)
        self._stages = [CompiledStage(each, options, self._copies) for each in run.stages]
        self._is_one = len(run.stages) == 1 and not (run.stages[0].copies or run.stages[0].sums)
        self._still = {
            each.name: np.empty(*_form(each)) if cell is None else others(cell)
            for each in run.kept
            if each.role in ("setting", "constant", "between")
            for cell in (builder.cells.get(each.name),)
        }
        shared = {
            each.next: each
            for each in run.kept
            if each.role == "parameter" and each.next and self._parameters.is_shared(each.path)
        }
        self.shared = [each.path for each in shared.values()]
        forms = {
            name: (tuple(extent or 0 for extent in dims), np.dtype(NUMPY_TYPES[dtype]))
            for name, (dtype, dims) in run.tensors.items()
        }
        self._inputs = [forms[name] for name in run.inputs]
        self._fresh = {name: forms[name] for name in run.outputs}
        self._fresh |= {name: _form(each) for name, each in shared.items()}
        self._sides: tuple[BoundSide, ...] = ()
        self._stamp: object = None
        self.given: dict[str, Array] = {}
        self.last: dict[str, Array] = {}

    def fits(self, given: Sequence[Any]) -> bool:
        """Whether arrays can be passed to C as they are."""
        for array, (shape, dtype) in zip(given, self._inputs, strict=True):
            if (
                type(array) is not np.ndarray
                or array.shape != shape
                or array.dtype != dtype
                or array.flags.num & PLAIN != PLAIN
            ):
                return False
        return True

    def run(self, given: Sequence[Array]) -> list[Array]:
        """Run once on arrays that fit; what is returned, and then what is shared. Whoever calls has the sides change.

        Raises:
            DataError: E0709, E0713, E0746. ToolError: the program cannot be compiled, a device failed.
        """
        self._parameters.spare_lent()
        self._state.spare_lent()
        stamp = self._parameters.stamp(), self._state.stamp()
        if stamp != self._stamp:
            self._bind()
            self._stamp = stamp
        side = self._sides[self._parameters.side]
        for n, places in enumerate(side.inputs):
            for arrays, arguments, place in places:
                arrays[place] = given[n]
                arguments[place] = argument(given[n])
        fresh = []
        for shape, dtype, places in side.fresh:
            out = np.empty(shape, dtype)
            fresh.append(out)
            for arrays, arguments, place in places:
                arrays[place] = out
                arguments[place] = argument(out)
        if self._is_one:
            ((stage, arrays, arguments),) = side.calls
            stage.run(arrays, arguments)
        else:
            brought = zip((*self._run.inputs, *self._fresh), (*given, *fresh), strict=True)
            self._run_stages(side, {**side.named, **dict(brought)})
        return fresh

    def _run_stages(self, side: BoundSide, named: Mapping[str, Array]) -> None:
        """Run every stage, with what is copied and summed after it."""
        for compiled, arrays, arguments in side.calls:
            compiled.run(arrays, arguments)
            for target, source in compiled.stage.copies:
                named[target][...] = named[source]
            for each in compiled.stage.sums:
                self._sum(each, named)

    def forget(self) -> None:
        """Bind other arrays before the next run."""
        self._stamp = None

    def release(self) -> None:
        """Read back what a device has, for a run of other shapes on the same arrays."""
        if self._copies is not None:
            self._copies.keep(())
        self.forget()

    def _sum(self, each: RankSum, named: Mapping[str, Array]) -> None:
        """Sum over ranks what a stage has computed, all arrays as one."""
        assert self._ranks is not None
        parts = [named[name] for name in each.parts]
        flat = np.concatenate([array.reshape(-1) for array in parts])
        summed = self._ranks.others(flat) if each.others else self._ranks.total(flat)
        begin = 0
        for array in [named[name] for name in each.others] or parts:
            array.reshape(-1)[...] = summed[begin : begin + array.size]
            begin += array.size

    def _bind(self) -> None:
        """Bind an array to every name, on each side of what lasts."""
        self.given = {
            each.path: np.empty(*_form(each))
            for each in self._run.kept
            if each.role in ("gradient", "kept")
        }
        self._sides = self._side(0), self._side(1)
        if self._copies is not None:
            self._copies.keep(self._kept() if self._is_one else ())
            self._parameters.copies = self._state.copies = self._copies

    def _kept(self) -> Iterator[Array]:
        """The arrays that only runs of this session change: all that last, but what sessions share."""
        for side in range(2):
            for each in self._run.kept:
                if each.role != "parameter" or not self._parameters.is_seen():
                    yield self._array(each, side)

    def fetch(self, path: str) -> Array:
        """The array of a path that the last run left to be read."""
        array = self.last[path]
        if self._copies is not None:
            self._copies.fetch(array, for_caller=True)
        return array

    def _side(self, side: int) -> BoundSide:
        named: dict[str, Array] = {}
        for each in self._run.kept:
            named[each.name] = self._array(each, side)
            if each.next:
                named[each.next] = self._array(each, 1 - side)
        named |= dict.fromkeys((*self._run.inputs, *self._fresh), NOTHING)
        calls = []
        places: dict[str, Places] = defaultdict(list)
        for compiled in self._stages:
            arrays = [named[name] for name in compiled.stage.arguments]
            arguments = [argument(array) for array in arrays]
            calls.append((compiled, arrays, arguments))
            for place, name in enumerate(compiled.stage.arguments):
                places[name].append((arrays, arguments, place))
        fresh = [(*form, places.get(name, [])) for name, form in self._fresh.items()]
        return BoundSide(named, calls, [places.get(name, []) for name in self._run.inputs], fresh)

    def _array(self, each: KeptTensor, side: int) -> Array:
        """The array of a tensor on one side; of what is between two stages it stays the same."""
        match each.role:
            case "parameter":
                return self._parameters.side_of(side, each.path)
            case "state":
                return self._state.side_of(side, each.path)
            case "gradient" | "kept":
                return self.given[each.path]
            case _:
                return self._still[each.name]


def _form(each: KeptTensor) -> tuple[tuple[int, ...], Any]:
    return each.dims, np.dtype(NUMPY_TYPES[each.dtype])


def _copies(target: str) -> DeviceCopies | None:
    """Copies on the device of a target; None where it has none. Raises ToolError: there is no device."""
    if target not in DEVICES:
        return None
    from ilang.codegen.device.offload import device_of
    from ilang.codegen.session.device_copies import DeviceCopies

    return DeviceCopies(device_of(target))
