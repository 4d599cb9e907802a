"""A run of a session: its stages, one after the other, on arrays that are bound to them by name.

A stage is a call of a program (``core/transform/stages.py``); between two of them ranks sum. Arrays that last are read
on one side and written on the other, and change sides from run to run, so there are two lists of arguments. Inputs and
what is returned are other arrays in every run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ilang.codegen.call.arguments import NUMPY_TYPES, PLAIN, outputs_of
from ilang.codegen.call.memory import argument
from ilang.codegen.call.specialization import Specialization
from ilang.codegen.call.target import DEVICES
from ilang.core.build.routines import Result
from ilang.core.build.values import Stored
from ilang.core.transform.stages import ArrayNames, Between, RankSum, RunStage, run_of

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array
    from ilang.codegen.session.model import Options
    from ilang.codegen.session.solved import SolvedDefinition
    from ilang.codegen.session.stored import Arrays

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

    def __init__(self, stage: RunStage, options: Options) -> None:
        """Compile it. Raises ToolError: that fails."""
        self.stage = stage
        self._program = Specialization(stage.program)
        self._extents = tuple(size.fixed or 0 for size in stage.program.sizes)
        self._target = options.target
        self.run: Callable[[list[Array], list[Any]], object] = self._run
        if options.target == "c":
            plan, threads = self._program.plan(self._extents), options.threads
            count = plan.worth() if isinstance(threads, str) else threads
            self.run = partial(plan.run_bound, threads=count)

    def _run(self, arrays: list[Array], arguments: list[Any]) -> None:
        """Run where C does not. Raises Error, as calls do."""
        del arguments
        count = len(self.stage.program.inputs)
        given, outs = arrays[:count], tuple(arrays[count:])
        if self._target in DEVICES:
            from ilang.codegen.device.offload import device_of

            device = self._program.on(device_of(self._target))
            device.call(given, {}, self._extents, outs)
        else:
            self._program.evaluate(given, self._extents, outs)


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
        self._others, self._ranks, self._paths = others, options.ranks, solved.built.paths
        self._read = {f"in{n}": cell for n, cell in enumerate(solved.needed)}
        self._results = {f"out{n}": each for n, each in enumerate(solved.results)}
        stages, between = _stages(solved, self._read, self._results)
        self._stages = [CompiledStage(each, options) for each in stages]
        self._between = {
            name: np.empty(dims, NUMPY_TYPES[dtype]) for name, (dtype, dims) in between.items()
        }
        self._is_one = len(stages) == 1 and not (stages[0].copies or stages[0].sums)
        names = {cell: name for name, cell in self._read.items()}
        self._input_names = [names.get(cell, "") for cell, _ in solved.cells("input")]
        self._inputs = [
            (tensor.shape.memory(), np.dtype(NUMPY_TYPES[tensor.dtype]))
            for tensor in solved.tensors("input")
        ]
        shaped = solved.shaped()
        sizes = [size.fixed or 0 for size in shaped.sizes]
        self._outputs = dict(zip(self._results, outputs_of(shaped, sizes), strict=True))
        shared = {
            name: each.path
            for name, each in self._results.items()
            if each.role == "parameter" and self._parameters.is_shared(each.path)
        }
        returned = [name for name, each in self._results.items() if each.role == "return"]
        self._fresh = [*returned, *shared]
        self.shared = [*shared.values()]
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
            brought = zip((*self._input_names, *self._fresh), (*given, *fresh), strict=True)
            self._run_stages(side, {**side.named, **dict(brought)})
        return fresh

    def _run_stages(self, side: BoundSide, named: Mapping[str, Array]) -> None:
        """Run every stage, with what is copied and summed after it."""
        for stage, arrays, arguments in side.calls:
            stage.run(arrays, arguments)
            for target, source in stage.stage.copies:
                named[target][...] = named[source]
            for each in stage.stage.sums:
                self._sum(each, named)

    def forget(self) -> None:
        """Bind other arrays before the next run."""
        self._stamp = None

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
            each.path: np.empty(*self._outputs[name])
            for name, each in self._results.items()
            if each.role in ("gradient", "kept")
        }
        self._sides = self._side(0), self._side(1)

    def _side(self, side: int) -> BoundSide:
        named = {**self._between, **dict.fromkeys(self._fresh, NOTHING)}
        named |= {name: self._array(cell, side) for name, cell in self._read.items()}
        for name, each in self._results.items():
            if name not in named and each.role != "merged":
                named[name] = self._written(each, 1 - side)
        calls = []
        places: dict[str, Places] = defaultdict(list)
        for stage in self._stages:
            arrays = [named[name] for name in stage.stage.arguments]
            arguments = [argument(array) for array in arrays]
            calls.append((stage, arrays, arguments))
            for place, name in enumerate(stage.stage.arguments):
                places[name].append((arrays, arguments, place))
        fresh = [(*self._outputs[name], places.get(name, [])) for name in self._fresh]
        return BoundSide(named, calls, [places.get(name, []) for name in self._input_names], fresh)

    def _array(self, cell: Stored, side: int) -> Array:
        match cell.kind:
            case "input" | "merged":
                return NOTHING
            case "parameter":
                return self._parameters.side_of(side, self._paths[cell])
            case "declared":
                return self._state.side_of(side, self._paths[cell])
            case _:
                return self._others(cell)

    def _written(self, result: Result, side: int) -> Array:
        match result.role:
            case "parameter":
                return self._parameters.side_of(side, result.path)
            case "state":
                return self._state.side_of(side, result.path)
            case _:
                return self.given[result.path]


def _stages(
    solved: SolvedDefinition, read: Mapping[str, Stored], results: Mapping[str, Result]
) -> tuple[Sequence[RunStage], Between]:
    """The stages of a run, and the arrays between them; none where nothing is computed."""
    if not results:
        return (), {}
    numbers = count()
    names = ArrayNames(
        tuple(None if cell.kind == "merged" else name for name, cell in read.items()),
        tuple(None if each.role == "merged" else name for name, each in results.items()),
        {n: each.path for n, each in enumerate(solved.results) if each.role == "merged"},
    )
    return run_of(solved.shaped(), solved.merged(), names, lambda _: f"between{next(numbers)}")
