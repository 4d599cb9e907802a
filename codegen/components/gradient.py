"""Derivatives of a program: programs that take cotangents, or tangents, after the inputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from ilang.codegen.components.program import ComponentProgram
from ilang.codegen.frameworks.foreign import library_of
from ilang.core import pipeline
from ilang.core.diagnostic import DataError, ElementTypeError, ShapeError
from ilang.core.ir.graph import Graph, Input
from ilang.core.ir.shaped import Shaped
from ilang.core.ir.syntax import Definition, Tree
from ilang.core.record import replace
from ilang.core.transform.forward import directional
from ilang.core.transform.reverse import gradient


def gradient_of(program: ComponentProgram, wrt: object, values: bool) -> GradientProgram:
    """The gradient of a program with respect to some inputs.

    Args:
        program: what is differentiated.
        wrt: positions or names of inputs, one or several; None for all.
        values: give the outputs, too, before the gradients.

    Raises:
        DataError: E0716 (wrt names no input).
    """
    return GradientProgram(
        _differentiable(program),
        _chosen(wrt, program.graph().input_names(), "value_and_grad" if values else "grad"),
        values,
    )


def tangent_of(program: ComponentProgram, wrt: object) -> TangentProgram:
    """The directional derivative of a program along some inputs, as ``gradient_of`` takes them.

    Raises:
        DataError: E0716 (wrt names no input).
    """
    return TangentProgram(
        _differentiable(program), _chosen(wrt, program.graph().input_names(), "jvp")
    )


def _differentiable(program: ComponentProgram) -> ComponentProgram:
    """A program as what is differentiated: a derivative has one of its own where it is 0, too."""
    if isinstance(program, DerivedProgram):
        program = copy(program)
        program.again = True
    return program


def _chosen(wrt: object, names: Sequence[str], method: str) -> tuple[int, ...]:
    if wrt is None:
        return tuple(range(len(names)))
    several = wrt if isinstance(wrt, list | tuple) else [wrt]
    chosen: list[int] = []
    for one in several:
        place = names.index(one) if isinstance(one, str) and one in names else one
        if type(place) is not int or not 0 <= place < len(names) or place in chosen:
            from ilang.codegen.call.arguments import shown

            message = f"wrt={shown(one)} does not name inputs, each once"
            listed = ", ".join(names)
            help_line = f"it is one of, or a list of, {listed}, or positions from 0 on"
            if hasattr(one, "shape"):
                help_line = f"arrays are for the component that this gives: f.{method}()(x, y)"
            raise DataError("E0716", message, help=help_line)
        chosen.append(place)
    return tuple(chosen)


def refusal() -> DataError:
    """The error where a gradient is combined with other components."""
    return DataError(
        "E0716",
        "a gradient is no part of other components: programs have no text for it",
        help="differentiate the whole program, or call the gradient on arrays",
    )


class DerivedProgram(ComponentProgram):
    """A program made of another: for the types and ranks of its arrays, once, and compiled once.

    The derived program takes the inputs of the other, then more: cotangents or tangents. ``again``: it is
    differentiated, too.
    """

    __slots__ = ("_graph", "_more", "_of", "_outputs", "_wrt", "again")

    is_derivative = True

    def __init__(
        self,
        of: ComponentProgram,
        wrt: tuple[int, ...],
        more: Sequence[str],
        outputs: Sequence[str],
    ) -> None:
        """``wrt`` are positions of inputs; ``more`` are names of inputs after those, ``outputs`` those of results."""
        inputs = of.wires.inputs + len(more)
        super().__init__(
            replace(of.wires, inputs=inputs, outputs=len(outputs), takes=None, gives=None)
        )
        self._of = of
        self._wrt = wrt
        self._more = tuple(more)
        self._outputs = tuple(outputs)
        self._graph: Graph | None = None
        self.again = False

    @abstractmethod
    def derived(self, shaped: Shaped, dtypes: Sequence[str | None]) -> Shaped:
        """The program with its gradients; ``dtypes`` are those of the inputs that it has more."""

    def graph(self) -> Graph:
        """A graph of the inputs alone: their names are all that is asked of it."""
        if self._graph is None:
            graph = self._of.graph()
            span = graph.nodes[0].span
            nodes = tuple(
                Input(name, span) for name in (*self._of.graph().input_names(), *self._more)
            )
            self._graph = Graph(f"{graph.name}_derived", nodes, tuple(range(len(nodes))), ())
        return self._graph

    def infer(self, dtypes: tuple[str | None, ...] | None, ranks: tuple[int, ...]) -> Shaped:
        """The program for these element types and ranks; without types, for its sizes alone."""
        count = self._of.wires.inputs
        shaped = self._of.inferred(None if dtypes is None else dtypes[:count], ranks[:count])
        given = (dtypes or ())[count:]
        known = self.derived(shaped, given)
        self._check_more(known, given, ranks[count:])
        return known

    def _check_more(
        self, shaped: Shaped, dtypes: Sequence[str | None], ranks: Sequence[int]
    ) -> None:
        """Refuse cotangents and tangents of other types or ranks than what they belong to.

        Raises:
            ElementTypeError: E0604. ShapeError: E0503.
        """
        for number, rank in enumerate(ranks):
            value = shaped.inputs[self._of.wires.inputs + number]
            tensor, span = shaped.tensors[value], shaped.nodes[value].span
            if rank != len(tensor.dims):
                message = f"{tensor.name} has rank {rank}, and what it belongs to has rank {len(tensor.dims)}"
                help_line = f"pass an array of rank {len(tensor.dims)} as {tensor.name}"
                raise ShapeError("E0503", message, span, help_line)
            dtype = dtypes[number] if dtypes else None
            if dtype is not None and dtype != tensor.dtype:
                message = f"{tensor.name} is {dtype}, and what it belongs to is {tensor.dtype}"
                raise ElementTypeError("E0604", message, span, f"pass {tensor.dtype}")

    def shaped(
        self, shapes: Sequence[tuple[int, ...]] = (), dtypes: Sequence[object] | None = None
    ) -> Shaped:
        """The program with these types, or f32, and with the shapes of the inputs, if any are given."""
        return self.derived(self._of.shaped(shapes, dtypes), ())

    def output_names(self) -> list[str]:
        """The names of results."""
        return list(self._outputs)

    def text(self) -> str:
        """The text of what is differentiated, as it is written."""
        return f"derivative of {self._of.text()}"

    def shown(self) -> str:
        """The program of which this is the derivative."""
        return f"derivative of {self._of.shown()}"

    def written(self) -> tuple[Tree, Mapping[str, Definition]]:
        """Refuse to be combined. Raises DataError E0716."""
        raise refusal()

    def __repr__(self) -> str:
        return f"<Component derivative of {self._of!r}>"

    def _kept(self) -> tuple[None, dict[str, Any]]:
        nothing, slots = super()._kept()
        return nothing, {**slots, "again": self.again}


class GradientProgram(DerivedProgram):
    """The gradient of a program: its inputs and a cotangent for each output in, a gradient for each input out."""

    __slots__ = ("_values",)

    def __init__(self, of: ComponentProgram, wrt: tuple[int, ...], values: bool) -> None:
        """``wrt`` are positions of inputs; ``values``: the outputs come first."""
        names, results = of.graph().input_names(), of.output_names()
        gradients = [f"d{names[n]}" for n in wrt]
        outputs = [*results, *gradients] if values else gradients
        super().__init__(of, wrt, [f"d{name}" for name in results], outputs)
        self._values = values

    def derived(self, shaped: Shaped, dtypes: Sequence[str | None]) -> Shaped:
        """The gradient program."""
        return gradient(shaped, self._wrt, self._values, dtypes, again=self.again)

    def differentiated(self) -> tuple[ComponentProgram, list[int] | None]:
        """The program whose gradient this is, and the inputs that it is for; None where outputs come first."""
        return self._of, None if self._values else list(self._wrt)

    def placed(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arrays of a call in order; cotangents may be left out, all of them."""
        names = self._of.graph().input_names()
        if len(arrays) + len(named) == len(names) and named.keys() <= set(names):
            return self._of.placed(arrays, named)
        return super().placed(arrays, named)

    def completed(self, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs and the cotangents; without cotangents, ones of the shapes and types of the outputs."""
        names = self._of.graph().input_names()
        if len(arrays) != len(names):
            return arrays
        import numpy as np

        from ilang.codegen.call.arguments import SUPPORTED, outputs_of, supported_array

        library = library_of(arrays)
        plain = arrays if library is None else map(library.plain, arrays)
        given = [supported_array(name, a) for name, a in zip(names, plain, strict=True)]
        dtypes = tuple(SUPPORTED[array.dtype] for array in given)
        shaped = self._of.inferred(dtypes, tuple(array.ndim for array in given))
        extents = pipeline.fit(shaped, [array.shape for array in given])
        ones = [
            np.ones(shape, dtype if dtype.kind == "f" else np.float32)
            for shape, dtype in outputs_of(shaped, extents)
        ]
        return (*(given if library is None else arrays), *ones)

    def __reduce__(self) -> tuple[Any, ...]:
        return GradientProgram, (self._of, self._wrt, self._values), self._kept()


class TangentProgram(DerivedProgram):
    """The directional derivative: inputs and a tangent for each input in, outputs and then their tangents out."""

    __slots__ = ()

    def __init__(self, of: ComponentProgram, wrt: tuple[int, ...]) -> None:
        """``wrt`` are positions of inputs; the tangents of others are zero."""
        names, results = of.graph().input_names(), of.output_names()
        outputs = [*results, *(f"t{name}" for name in results)]
        super().__init__(of, wrt, [f"t{names[n]}" for n in wrt], outputs)

    def derived(self, shaped: Shaped, dtypes: Sequence[str | None]) -> Shaped:
        """The program with tangents."""
        del dtypes  # those of tangents are those of their inputs
        return directional(shaped, self._wrt, self.again)

    def __reduce__(self) -> tuple[Any, ...]:
        return TangentProgram, (self._of, self._wrt), self._kept()
