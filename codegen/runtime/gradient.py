"""The gradient of a component: a component that takes a cotangent for each output after the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ilang.codegen.runtime.component import Component
from ilang.core import pipeline
from ilang.core.diagnostic import DataError, ElementTypeError
from ilang.core.ir.graph import Graph, Input
from ilang.core.ir.shaped import Shaped
from ilang.core.ir.syntax import Identity
from ilang.core.record import replace
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
    return Gradient(component, tuple(chosen), values)


def _chosen(wrt: object, names: Sequence[str]) -> list[int]:
    """The positions that ``wrt`` means."""
    several = wrt if isinstance(wrt, list | tuple) else [wrt]
    chosen = []
    for one in several:
        place = names.index(one) if isinstance(one, str) and one in names else one
        if type(place) is not int or not 0 <= place < len(names) or place in chosen:
            message = f"wrt={wrt!r} does not name inputs, each once"
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


class Gradient(Component):
    """The gradient of a component. It is differentiated for the types and ranks of its arrays, and compiled, once."""

    __slots__ = ("_of", "_values", "_wrt")

    def __init__(self, of: Component, wrt: tuple[int, ...], values: bool) -> None:
        """``wrt`` are positions of inputs; ``values``: the outputs come first."""
        outputs = of.wires().outputs
        wires = replace(
            of.wires(),
            inputs=of.takes() + outputs,
            outputs=len(wrt) + (outputs if values else 0),
            takes=None,
            gives=None,
        )
        super().__init__(Identity(of.graph().nodes[0].span), wires)
        self._of = of
        self._wrt = wrt
        self._values = values

    def __call__(
        self, *arrays: Any, out: Any = None, threads: int = 1, target: str = "c", **named: Any
    ) -> Any:
        """Run on arrays: the inputs, then a cotangent for each output; without cotangents they are all ones."""
        names = self._of.input_names()
        if len(arrays) + len(named) == len(names) and named.keys() <= set(names):
            arrays, named = self._with_ones(arrays, named), {}
        return super().__call__(*arrays, out=out, threads=threads, target=target, **named)

    def _with_ones(self, arrays: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...]:
        """The inputs, and ones of the shapes and types of the outputs."""
        import numpy as np

        from ilang.codegen.runtime.arguments import SUPPORTED, outputs_of, placed, read_array

        graph, names = self._of.graph(), self._of.input_names()
        placed_arrays = placed(names, arrays, named)
        given = [read_array(name, a) for name, a in zip(names, placed_arrays, strict=True)]
        dtypes = tuple(SUPPORTED.get(array.dtype) for array in given)
        shaped = self._of.inferred(graph, dtypes, tuple(array.ndim for array in given))
        extents = pipeline.fit(shaped, [array.shape for array in given])
        ones = [
            np.ones(shape, dtype if dtype.kind == "f" else np.float32)
            for shape, dtype in outputs_of(shaped, extents)
        ]
        return (*given, *ones)

    def graph(self) -> Graph:
        """A graph whose inputs are those of the gradient: names are all that is asked of it."""
        if self._graph is None:
            graph = self._of.graph()
            names = [*self._of.input_names(), *(f"d{name}" for name in self._of.output_names())]
            span = graph.nodes[0].span
            nodes = tuple(Input(name, span) for name in names)
            inputs = tuple(range(len(nodes)))
            self._graph = Graph(f"{graph.name}_gradient", nodes, inputs, ())
        return self._graph

    def inferred(
        self, graph: Graph, dtypes: tuple[str | None, ...] | None, ranks: tuple[int, ...]
    ) -> Shaped:
        """The gradient program for these types and ranks."""
        key = (dtypes, ranks)
        known = self._shapes.get(key)
        if known is None:
            count = self._of.takes()
            types = None if dtypes is None else dtypes[:count]
            shaped = self._of.inferred(self._of.graph(), types, ranks[:count])
            given = (dtypes or ())[count:]
            known = gradient(shaped, self._wrt, self._values, given)
            self._check_cotangents(known, given)
            known = self._shapes.setdefault(key, known)
        return known

    def _check_cotangents(self, shaped: Shaped, dtypes: Sequence[str | None]) -> None:
        """Refuse cotangents of other types than the outputs have.

        Raises:
            ElementTypeError: E0604.
        """
        values = shaped.inputs[self._of.takes() :]
        for value, dtype in zip(values, dtypes, strict=False):
            tensor, span = shaped.tensors[value], shaped.nodes[value].span
            if dtype is not None and dtype != tensor.dtype:
                message = (
                    f"{tensor.name} is {dtype}, and what it is the cotangent of is {tensor.dtype}"
                )
                help_line = f"pass {tensor.dtype}"
                raise ElementTypeError("E0604", message, span, help_line)

    def shaped(
        self, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[object] | None = None
    ) -> Shaped:
        """The gradient program with these types, or f32, and with the shapes of the inputs, if any are given."""
        shaped = self._of.shaped(shapes, dtypes)
        return gradient(shaped, self._wrt, self._values)

    def output_names(self) -> list[str]:
        """The outputs, if they are wanted, and the gradients: ``d`` and the name of the input."""
        names = self._of.input_names()
        gradients = [f"d{names[n]}" for n in self._wrt]
        return (self._of.output_names() if self._values else []) + gradients

    def text(self) -> str:
        """What is differentiated, as it is written."""
        return f"gradient of {self._of.text()}"

    def __repr__(self) -> str:
        """What it is the gradient of."""
        return f"<Component gradient of {self._of!r}>"

    def check_combines(self) -> None:
        """Refuse it. Raises DataError E0716."""
        raise refusal()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what it is the gradient of."""
        return Gradient, (self._of, self._wrt, self._values)
