"""Routines, which compute some tensors of a solved program: arrays for its leaves in, elements in memory order out.

Sizes, schedules and compiled code are kept for each combination of element types, and the way of a call for arrays like
those of an earlier one: such a call costs no more than that of a component.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.codegen.call.arguments import (
    MEMORY_ORDER,
    SUPPORTED,
    are_given,
    check_is_list,
    contiguous,
    supported_array,
)
from ilang.codegen.call.dispatch import RunnableProgram
from ilang.codegen.call.specialization import Specialization
from ilang.codegen.call.threads import THREADS
from ilang.codegen.components.described import DescribedProgram
from ilang.codegen.system.concurrency import kept
from ilang.core import pipeline
from ilang.core.diagnostic import DataError, counted
from ilang.core.ir.operation import Operation, Terminal
from ilang.core.record import record, replace
from ilang.core.suggestion import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from ilang.codegen.call.arguments import Array
    from ilang.codegen.call.plan import CallPlan
    from ilang.core.infer.inferred import Inferred
    from ilang.core.ir.graph import Graph, Node
    from ilang.core.ir.shaped import Shaped


@record
class LeafInput:
    """A leaf that a routine needs: its node in the graph, its name, its extents in memory, its values or None."""

    number: int
    name: str
    dims: tuple[int, ...]
    values: Any


class TensorProgram(RunnableProgram):
    """Some tensors of a solved program as a function of arrays for leaves; None for one whose own values count."""

    __slots__ = ("_inferred", "_specializations", "_values", "_wrt", "inputs", "kept")

    is_solved = True

    def __init__(
        self,
        inferred: Inferred,
        values: Sequence[int],
        inputs: tuple[LeafInput, ...],
        wrt: tuple[int, ...] | None = None,
    ) -> None:
        """For some values of a solved graph and the leaves that they are computed from.

        With ``wrt``, positions among the leaves, it computes the gradients of the sum of all elements of the values.
        """
        super().__init__()
        self._inferred = inferred
        self._wrt = wrt
        self._values = tuple(values)
        self.inputs = inputs
        self.kept: list[Any] = [None] * len(inputs)
        self._specializations: dict[tuple[str, ...], Specialization] = {}

    def names_in_calls(self) -> list[str]:
        """The names of the leaves."""
        return [each.name for each in self.inputs]

    def fitting(
        self, given: Sequence[Any], on_device: Collection[int] = ()
    ) -> tuple[Specialization, list[Any], tuple[int, ...]]:
        """The program for an array for each leaf; None for one whose own values count."""
        arrays = []
        for n, (each, array) in enumerate(zip(self.inputs, given, strict=True)):
            values = each.values if array is None else array
            arrays.append(_stored(each, values) if n in on_device else _array(each, values))
        types = tuple(SUPPORTED[array.dtype] for array in arrays)
        memo = self._specializations
        specialization = kept(memo, types, lambda: Specialization(self._typed(types)))
        extents = tuple(size.fixed or 0 for size in specialization.shaped.sizes)
        return specialization, arrays, extents

    def _typed(self, dtypes: Sequence[str]) -> Shaped:
        """The assignments for these element types of the leaves."""
        every = ["f32"] * len(self._inferred.graph.inputs)
        for each, dtype in zip(self.inputs, dtypes, strict=True):
            every[each.number] = dtype
        shaped = pipeline.tensors_shaped(
            pipeline.tensors_solved(self._inferred, self._values), every, self._values
        )
        if self._wrt is None:
            return shaped
        from ilang.core.transform.reverse import gradient

        return gradient(shaped, self._wrt, ones=True)

    def _remember(self, given: Sequence[Any], plain: Sequence[Any], plan: CallPlan) -> None:
        """Keep the plan for arrays like these, if each was given as C reads it or follows a leaf's own values."""
        for place, (each, array) in enumerate(zip(self.inputs, plain, strict=True)):
            if given[place] is None and _lasts(each.values, array):
                self.kept[place] = array
            elif array is not given[place]:
                return
        self.plans.keep(plain, plan)

    def graph(self) -> Graph:
        """The graph of all tensors that are solved together."""
        return self._inferred.graph

    def shaped(
        self, shapes: Sequence[tuple[int, ...]] = (), dtypes: Sequence[object] | None = None
    ) -> Shaped:
        """The assignments for the element types of the values that leaves have, else f32.

        Raises:
            DataError: E0716 (shapes or types are given: they are those of the tensors).
        """
        check_is_list(shapes)
        if shapes or dtypes is not None:
            message = "shapes and types of tensors are those that were solved"
            raise DataError("E0716", message, help="leave them out")
        return self._typed([_dtype(each) for each in self.inputs])

    def at(self, shapes: Sequence[object]) -> TensorProgram:
        """The program itself: shapes are known."""
        del shapes
        return self

    def write_project(
        self, folder: Path, name: str | None, shapes: Mapping[str, tuple[int, ...]] | None
    ) -> list[Path]:
        """Write a project, in which the program is called ``name``."""
        from ilang.codegen.project.render import write_functions
        from ilang.codegen.targets.session import ExportedFunction

        shaped = self.shaped((), None if shapes is None else [*shapes])
        shaped = shaped if name is None else replace(shaped, name=name)
        nodes = self._inferred.graph.nodes
        text = "\n".join(_text(nodes[value]) for value in self._values)
        function = ExportedFunction(shaped, pipeline.lower(shaped))
        return write_functions([function], folder, text, shaped.name)


class Routine(DescribedProgram):
    """Some tensors of a solved program as a function of arrays. Safe to call from several threads."""

    __slots__ = ("_open", "_places", "program")

    program: TensorProgram

    def __init__(self, program: TensorProgram) -> None:
        self.program = program
        self._places = {each.name: n for n, each in enumerate(program.inputs)}
        self._open = tuple(n for n, each in enumerate(program.inputs) if each.values is None)

    def __call__(
        self,
        *arrays: Any,
        out: Any = None,
        threads: int | str = THREADS,
        target: str = "c",
        stream: Any = None,
        **named: Any,
    ) -> Any:
        """Run on NumPy arrays, or on arrays of a GPU.

        Args:
            arrays: for the leaves without values, in the order of ``takes``.
            out: an array for the result, or a tuple of arrays; nothing is then allocated for results.
            threads: how many cores to use at most; never changes a result.
            target: "c" compiles, "numpy" evaluates with NumPy, slowly: the reference. "cuda" and "cuda-emulated" run
                on a GPU or emulate one, and take arrays that are there where they are, as components do.
            stream: of CUDA, that a GPU runs on, as components take it.
            named: arrays for leaves by name, also for those that have values.

        Returns:
            The elements of the one tensor in memory order, or a tuple of several arrays.

        Raises:
            DataError: E0701, E0741 (arrays for leaves that there are not), E0742 (a leaf without values), E0743 (values
                of another shape), and as components do.
        """
        places = self._open
        if named or len(arrays) != len(places):
            given: Sequence[Any] = self._gathered(arrays, named)
        elif len(places) == len(self._places):
            given = arrays
        else:
            given = self.program.kept.copy()
            for place, array in zip(places, arrays, strict=True):
                given[place] = array
        return self.program.run(given, out, threads, target, stream)

    def by_name(self, arrays: Mapping[str, Any], target: str = "c") -> Any:
        """Run on arrays by the names of leaves; those of leaves that are not needed are ignored."""
        known = {name: array for name, array in arrays.items() if name in self._places}
        return self.program.run(self._gathered((), known), None, 1, target)

    def _gathered(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """An array for each leaf, or None, from what stands in order and what is named."""
        if len(self._open) < len(arrays):
            names = self.takes()
            raise DataError(
                "E0701",
                f"the program takes {counted(len(names), 'array')}, and {are_given(len(arrays))}",
                help=f"its leaves without values are {', '.join(names)}"
                if names
                else "call it without arrays; those of leaves that have values are given by name",
            )
        given: list[Any] = self.program.kept.copy()
        for place, array in zip(self._open, arrays, strict=False):
            given[place] = array
        for name, array in named.items():
            if name not in self._places:
                leaves = ", ".join(self._places) or "none"
                hint = did_you_mean(name, list(self._places), f"its leaves are {leaves}")
                raise DataError("E0741", f"{name} is no leaf of this program", help=hint)
            if self._places[name] in self._open[: len(arrays)]:
                message = f"the leaf {name} is given by name, and in order"
                raise DataError("E0741", message, help="give each leaf once")
            given[self._places[name]] = array
        return given

    def takes(self) -> tuple[str, ...]:
        """The names of the leaves without values, in the order of the arrays of a call."""
        return tuple(self.program.inputs[place].name for place in self._open)


def _text(node: Node) -> str:
    """An operation or a leaf as its author wrote it."""
    assert isinstance(node, Operation | Terminal)
    return node.text if isinstance(node, Operation) else node.name


def _dtype(each: LeafInput) -> str:
    """The element type of the values that a leaf has; f32 of a number, and where it has none."""
    if each.values is None or isinstance(each.values, int | float):
        return "f32"
    return SUPPORTED[supported_array(each.name, each.values, np.float32).dtype]


def _array(each: LeafInput, values: Any) -> Array:
    """The values of a leaf as an array of its shape, as C reads it.

    Raises:
        DataError: E0742 (there are none), E0743 (another number of them).
    """
    if values is None:
        name = each.name
        raise DataError("E0742", f"{name} has no values", help=f"give them: value(t, {name}=array)")
    array = supported_array(each.name, values, np.float32)
    if isinstance(values, int | float):
        array = array.astype(np.float32)
    if array.shape != each.dims:
        if array.ndim == 0:
            return np.full(each.dims, array)
        array = _stored(each, array).reshape(each.dims)
    return contiguous(array)


def _stored(each: LeafInput, values: Any) -> Array:
    """An array that has every element of a leaf, in memory order. Raises DataError (E0743): another number of them."""
    array = supported_array(each.name, values, np.float32)
    if array.size != math.prod(each.dims):
        raise DataError(
            "E0743",
            f"{each.name} has shape {each.dims}, and the array given for it {array.shape}",
            help=MEMORY_ORDER,
        )
    return array


def _lasts(values: Any, array: Array) -> bool:
    """Whether an array made from the values of a leaf will always hold them: it is their memory, or they are fixed."""
    return isinstance(values, int | float) or np.may_share_memory(values, array)
