"""Derivatives of a component: components that take cotangents, or tangents, after the inputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any

from ilang.codegen.runtime.component import Component
from ilang.codegen.runtime.foreign import library_of
from ilang.codegen.runtime.tracebacks import hide
from ilang.core import pipeline
from ilang.core.diagnostic import DataError, ElementTypeError, Error, ShapeError
from ilang.core.ir.graph import Graph, Input
from ilang.core.ir.shaped import Shaped
from ilang.core.ir.syntax import Identity
from ilang.core.record import replace
from ilang.core.transform.forward import directional
from ilang.core.transform.reverse import gradient


def gradient_of(component: Component, wrt: object, values: bool) -> Gradient:
    """The gradient of a component with respect to some inputs.

    Args:
        component: what is differentiated.
        wrt: positions or names of inputs, one or several; None for all.
        values: give the outputs, too, before the gradients.

    Raises:
        DataError: E0716 (wrt names no input).
    """
    names = component.input_names()
    chosen = list(range(len(names))) if wrt is None else _chosen(wrt, names)
    return Gradient(_differentiable(component), tuple(chosen), values)


def tangent_of(component: Component, wrt: object) -> Tangent:
    """The directional derivative of a component along some inputs, as ``gradient_of`` takes them.

    Raises:
        DataError: E0716 (wrt names no input).
    """
    names = component.input_names()
    chosen = list(range(len(names))) if wrt is None else _chosen(wrt, names)
    return Tangent(_differentiable(component), tuple(chosen))


def _differentiable(component: Component) -> Component:
    """A component as what is differentiated: a derivative has one of its own where it is 0, too."""
    if isinstance(component, DerivedComponent):
        component = copy(component)
        component.again = True
    return component


def _chosen(wrt: object, names: Sequence[str]) -> list[int]:
    """The positions that ``wrt`` means."""
    several = wrt if isinstance(wrt, list | tuple) else [wrt]
    chosen = []
    for one in several:
        place = names.index(one) if isinstance(one, str) and one in names else one
        if type(place) is not int or not 0 <= place < len(names) or place in chosen:
            from ilang.codegen.runtime.arguments import shown

            message = f"wrt={shown(wrt)} does not name inputs, each once"
            listed = ", ".join(names)
            help_line = f"it is one of, or a list of, {listed}, or positions from 0 on"
            raise DataError("E0716", message, help=help_line)
        chosen.append(place)
    return chosen


def refusal() -> DataError:
    """The error where a gradient is combined with other components."""
    return DataError(
        "E0716",
        "a gradient is no part of other components: programs have no text for it",
        help="differentiate the whole program, or call the gradient on arrays",
    )


class DerivedComponent(Component):
    """A component made of another: for the types and ranks of its arrays, once, and compiled once.

    The derived component takes the inputs of the other, then more: cotangents or tangents. ``again``: it is
    differentiated, too.
    """

    __slots__ = ("_more", "_of", "_outputs", "_wrt", "again")

    def __init__(
        self, of: Component, wrt: tuple[int, ...], more: Sequence[str], outputs: Sequence[str]
    ) -> None:
        """``wrt`` are positions of inputs; ``more`` are names of inputs after those, ``outputs`` those of results."""
        wires = replace(
            of.wires(),
            inputs=of.takes() + len(more),
            outputs=len(outputs),
            takes=None,
            gives=None,
        )
        super().__init__(Identity(of.graph().nodes[0].span), wires)
        self._of = of
        self._wrt = wrt
        self._more = tuple(more)
        self._outputs = tuple(outputs)
        self.again = False

    @abstractmethod
    def derived(self, shaped: Shaped, dtypes: Sequence[str | None]) -> Shaped:
        """The program with its gradients; ``dtypes`` are those of the inputs that it has more."""

    def graph(self) -> Graph:
        """A graph of the inputs alone: their names are all that is asked of it."""
        if self._graph is None:
            graph = self._of.graph()
            span = graph.nodes[0].span
            nodes = tuple(Input(name, span) for name in (*self._of.input_names(), *self._more))
            self._graph = Graph(f"{graph.name}_derived", nodes, tuple(range(len(nodes))), ())
        return self._graph

    def _infer(
        self, graph: Graph, dtypes: tuple[str | None, ...] | None, ranks: tuple[int, ...]
    ) -> Shaped:
        count = self._of.takes()
        types = None if dtypes is None else dtypes[:count]
        shaped = self._of.inferred(self._of.graph(), types, ranks[:count])
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
            value = shaped.inputs[self._of.takes() + number]
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
        self, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[object] | None = None
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

    def __repr__(self) -> str:
        """The component of which this is the derivative."""
        return f"<Component derivative of {self._of!r}>"

    def check_combines(self) -> None:
        """Refuse to combine a derivative. Raises DataError E0716."""
        raise refusal()

    def _kept(self) -> tuple[None, dict[str, Any]]:
        nothing, slots = super()._kept()
        return nothing, {**slots, "again": self.again}


class Gradient(DerivedComponent):
    """The gradient of a component: its inputs and a cotangent for each output in, a gradient for each input out."""

    __slots__ = ("_values",)

    def __init__(self, of: Component, wrt: tuple[int, ...], values: bool) -> None:
        """``wrt`` are positions of inputs; ``values``: the outputs come first."""
        names, results = of.input_names(), of.output_names()
        gradients = [f"d{names[n]}" for n in wrt]
        outputs = [*results, *gradients] if values else gradients
        super().__init__(of, wrt, [f"d{name}" for name in results], outputs)
        self._values = values

    def derived(self, shaped: Shaped, dtypes: Sequence[str | None]) -> Shaped:
        """The gradient program."""
        return gradient(shaped, self._wrt, self._values, dtypes, again=self.again)

    def __call__(
        self,
        *arrays: Any,
        out: Any = None,
        threads: int | str = 1,
        target: str = "c",
        **named: Any,
    ) -> Any:
        """Run on arrays: the inputs, then a cotangent for each output; without cotangents they are all ones."""
        try:
            names = self._of.input_names()
            if len(arrays) + len(named) == len(names) and named.keys() <= set(names):
                arrays, named = self._with_ones(arrays, named), {}
            return super().__call__(*arrays, out=out, threads=threads, target=target, **named)
        except Error as error:
            hide(error)
            raise

    def _with_ones(self, arrays: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...]:
        """The inputs, and ones of the shapes and types of the outputs."""
        import numpy as np

        from ilang.codegen.runtime.arguments import SUPPORTED, outputs_of, placed, read_array

        graph, names = self._of.graph(), self._of.input_names()
        placed_arrays = placed(names, arrays, named)
        library = library_of(placed_arrays)
        plain = placed_arrays if library is None else map(library.plain, placed_arrays)
        given = [read_array(name, a) for name, a in zip(names, plain, strict=True)]
        dtypes = tuple(SUPPORTED.get(array.dtype) for array in given)
        shaped = self._of.inferred(graph, dtypes, tuple(array.ndim for array in given))
        extents = pipeline.fit(shaped, [array.shape for array in given])
        ones = [
            np.ones(shape, dtype if dtype.kind == "f" else np.float32)
            for shape, dtype in outputs_of(shaped, extents)
        ]
        return (*(given if library is None else placed_arrays), *ones)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what it is the gradient of."""
        return Gradient, (self._of, self._wrt, self._values), self._kept()


class Tangent(DerivedComponent):
    """The directional derivative: inputs and a tangent for each input in, outputs and then their tangents out."""

    __slots__ = ()

    def __init__(self, of: Component, wrt: tuple[int, ...]) -> None:
        """``wrt`` are positions of inputs; the tangents of others are zero."""
        names, results = of.input_names(), of.output_names()
        outputs = [*results, *(f"t{name}" for name in results)]
        super().__init__(of, wrt, [f"t{names[n]}" for n in wrt], outputs)

    def derived(self, shaped: Shaped, dtypes: Sequence[str | None]) -> Shaped:
        """The program with tangents."""
        del dtypes  # those of tangents are those of their inputs
        return directional(shaped, self._wrt, self.again)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what it is the derivative of."""
        return Tangent, (self._of, self._wrt), self._kept()
