"""A run of a session as one call of C, whose arguments are bound: arrays that last change sides from run to run.

Inputs and what is returned are other arrays in every run; all else is one of two lists of arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.codegen.runtime.arguments import NUMPY_TYPES, PLAIN
from ilang.codegen.runtime.memory import argument
from ilang.core.build.routines import Result
from ilang.core.build.values import Stored

if TYPE_CHECKING:
    from ilang.codegen.runtime.arguments import Array
    from ilang.codegen.runtime.plan import CallPlan
    from ilang.codegen.runtime.solved import SolvedDefinition
    from ilang.codegen.runtime.stored import Arrays


class BoundProgram:
    """One compiled program, and the arrays of one session that it runs on."""

    def __init__(
        self,
        plan: CallPlan,
        solved: SolvedDefinition,
        lasting: tuple[Arrays, Arrays],
        others: Callable[[Stored], Array],
        threads: int | str,
    ) -> None:
        """Nothing is bound yet.

        Args:
            plan: the program for its extents.
            solved: the definition that it is of.
            lasting: parameters and state.
            others: the array of any other cell but an input, always the same one.
            threads: how many cores a run uses at most; "auto" for all where the work is enough.
        """
        self._plan = plan
        self._threads = plan.worth() if isinstance(threads, str) else threads
        self._cells, self._results = solved.needed, solved.results
        self._paths = solved.built.paths
        self._parameters, self._state = lasting
        self._others = others
        place = {cell.name: n for n, cell in enumerate(self._cells) if cell.kind == "input"}
        self._inputs = [
            (tensor.shape.memory(), np.dtype(NUMPY_TYPES[tensor.dtype]), place.get(tensor.path, -1))
            for tensor in solved.tensors("input")
        ]
        self._returned = [
            (len(self._cells) + n, *plan.outputs[n])
            for n, each in enumerate(self._results)
            if each.role == "return"
        ]
        self._sides: list[tuple[list[Array], list[Any]]] = []
        self._stamp: object = None
        self.given: dict[str, Array] = {}
        self.last: dict[str, Array] = {}

    def fits(self, given: Sequence[Any]) -> bool:
        """Whether arrays can be passed to C as they are."""
        for array, (shape, dtype, _) in zip(given, self._inputs, strict=True):
            if (
                type(array) is not np.ndarray
                or array.shape != shape
                or array.dtype != dtype
                or array.flags.num & PLAIN != PLAIN
            ):
                return False
        return True

    def run(self, given: Sequence[Array]) -> list[Array]:
        """Run once on arrays that fit; what is returned. Whoever calls has the arrays change sides.

        Raises:
            DataError: E0709, E0713, E0746. ToolError: the program cannot be compiled.
        """
        self._parameters.spare_lent()
        self._state.spare_lent()
        stamp = self._parameters.stamp(), self._state.stamp()
        if stamp != self._stamp:
            self._bind()
            self._stamp = stamp
        arrays, arguments = self._sides[self._parameters.side]
        for array, (_, _, place) in zip(given, self._inputs, strict=True):
            if 0 <= place:
                arrays[place] = array
                arguments[place] = argument(array)
        returned = []
        for place, shape, dtype in self._returned:
            arrays[place] = out = np.empty(shape, dtype)
            arguments[place] = argument(out)
            returned.append(out)
        self._plan.run_bound(arrays, arguments, self._threads)
        return returned

    def forget(self) -> None:
        """Bind other arrays before the next run."""
        self._stamp = None

    def _bind(self) -> None:
        """Fill the lists of arguments, one for each side of what lasts."""
        self.given = {
            each.path: np.empty(*self._plan.outputs[n])
            for n, each in enumerate(self._results)
            if each.role in ("gradient", "kept")
        }
        sides = []
        for side in (0, 1):
            read = [self._read(cell, side) for cell in self._cells]
            written = [self._written(n, each, 1 - side) for n, each in enumerate(self._results)]
            arrays = [*read, *written]
            sides.append((arrays, [argument(array) for array in arrays]))
        self._sides = sides

    def _read(self, cell: Stored, side: int) -> Array:
        match cell.kind:
            case "input":
                return NOTHING
            case "parameter":
                return self._parameters.side_of(side, self._paths[cell])
            case "declared":
                return self._state.side_of(side, self._paths[cell])
            case _:
                return self._others(cell)

    def _written(self, number: int, result: Result, side: int) -> Array:
        match result.role:
            case "parameter":
                return self._parameters.side_of(side, result.path)
            case "state":
                return self._state.side_of(side, result.path)
            case "gradient" | "kept":
                return self.given[result.path]
            case _:
                return np.empty(*self._plan.outputs[number])


NOTHING = np.zeros(0, np.float32)
"""Stands for an array that a run does not read."""
