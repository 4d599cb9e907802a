"""Descriptions of a component that does not run: its inputs and outputs, shapes, loops, source, explanations."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ilang.codegen.runtime.target import check_target, source_of
from ilang.codegen.runtime.tracebacks import ends_at_caller
from ilang.core import pipeline
from ilang.core.diagnostic import DataError, ElementTypeError, ShapeError
from ilang.core.record import replace

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from ilang.codegen.project.checking import Check
    from ilang.codegen.runtime.notebook_pages import ComponentExplanation
    from ilang.core.explain.why import Why
    from ilang.core.ir.graph import Graph
    from ilang.core.ir.shaped import Shaped

INNER = frozenset(
    (
        *("check_combines", "derived", "gradient_for", "inferred", "input_names", "keep_open"),
        *(
            "output_names",
            "plan_of",
            "run",
            "shaped",
            "takes",
            "told_to",
            "wires",
            "graph",
            "again",
        ),
    )
)
"""Methods that are called from other modules of the compiler: `dir` does not list them."""


class End(NamedTuple):
    """An input or an output of a component.

    ``dtype`` is None where the arrays of a call give it. ``shape`` has a number for an extent that is written, else its
    name; it is None where the number of axes is open.
    """

    name: str
    dtype: str | None
    shape: tuple[int | str, ...] | None


class DescribedComponent:
    """The part of a component that describes it."""

    __slots__ = ()

    @abstractmethod
    def graph(self) -> Graph:
        """The graph, made at the first use."""

    @abstractmethod
    def inferred(
        self, graph: Graph, dtypes: tuple[str | None, ...] | None, ranks: tuple[int, ...]
    ) -> Shaped:
        """The program inferred for these element types and ranks; without types, for its sizes alone."""

    @abstractmethod
    def shaped(
        self, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[object] | None = None
    ) -> Shaped:
        """The program inferred with these types, or f32 where nothing is written, and with these shapes, if any."""

    @abstractmethod
    def text(self) -> str:
        """The program as it is written."""

    @abstractmethod
    def shown(self) -> str:
        """The program, cut where it is long."""

    def _repr_html_(self) -> str:
        """The program, its formulas and the shapes of its inputs and outputs, in a notebook."""
        from ilang.codegen.runtime.notebook_pages import component_page

        page = None
        with contextlib.suppress(DataError, ElementTypeError, ShapeError):
            page = self.explain()
        ends = [("input", each) for each in self.inputs]
        ends += [("output", each) for each in self.outputs]
        return component_page(self.shown(), page, ends)

    def __dir__(self) -> list[str]:
        """The methods for users."""
        return [name for name in object.__dir__(self) if name not in INNER]

    @property
    def inputs(self) -> tuple[End, ...]:
        """The inputs: name, element type, shape."""
        graph = self.graph()
        written = {each.value: each.dtype for each in graph.annotations}
        written |= dict.fromkeys((v for v in graph.looked_up() if not written.get(v)), "i64")
        shaped = self._shaped_alone(None)
        dims = None if shaped is None else [shaped.tensors[value].dims for value in shaped.inputs]
        return tuple(
            End(name, written.get(value), None if dims is None else self._shape(shaped, dims[n]))
            for n, (name, value) in enumerate(zip(self.input_names(), graph.inputs, strict=True))
        )

    @property
    def outputs(self) -> tuple[End, ...]:
        """The outputs: name, element type, shape."""
        shaped = self._shaped_alone(None)
        names = self.output_names()
        if shaped is None:
            return tuple(End(name, None, None) for name in names)
        other = self._shaped_alone([each.dtype or "f64" for each in self.inputs])
        ends = []
        for n, (name, value) in enumerate(zip(names, shaped.outputs, strict=True)):
            tensor = shaped.tensors[value]
            also = None if other is None else other.tensors[other.outputs[n]].dtype
            dtype = tensor.dtype if also == tensor.dtype else None
            ends.append(End(name, dtype, self._shape(shaped, tensor.dims)))
        return tuple(ends)

    def _shaped_alone(self, dtypes: Sequence[object] | None) -> Shaped | None:
        """The program without shapes; None where it needs them, or has no such types."""
        try:
            return self.shaped((), dtypes)
        except (DataError, ElementTypeError, ShapeError):
            return None

    @staticmethod
    def _shape(shaped: Shaped | None, dims: Sequence[int]) -> tuple[int | str, ...]:
        from ilang.core.explain.expression import size_text

        assert shaped is not None
        texts = (size_text(shaped.sizes[number]) for number in dims)
        return tuple(int(text) if text.isdigit() else text for text in texts)

    def input_names(self) -> list[str]:
        """The names of inputs."""
        graph = self.graph()
        return [graph.input_name(n) for n in range(len(graph.inputs))]

    def output_names(self) -> list[str]:
        """The names of results."""
        graph = self.graph()
        return graph.output_names(graph.outputs)

    @ends_at_caller
    def shapes(
        self, *shapes: tuple[int, ...], dtypes: Sequence[object] | None = None
    ) -> tuple[tuple[int, ...], ...]:
        """The shapes of the outputs for inputs of these shapes.

        Args:
            shapes: one per input.
            dtypes: the element types of the inputs, such as "i32" or numpy.int32; those are then checked as a call
                checks them. Without them nothing is asked of types: shapes do not depend on them.

        Raises:
            Error: E05, or E0701, E0703 and E0715 (not one shape, and one type if any, per input), or E06 with types.
        """
        from ilang.codegen.runtime import arguments

        graph = self.graph()
        arguments.check_shape_count(graph, len(shapes))
        checked = arguments.checked_shapes(shapes)
        ranks = tuple(len(shape) for shape in checked)
        known = None if dtypes is None else arguments.checked_dtypes(graph, dtypes)
        shaped = self.inferred(graph, known, ranks)
        extents = pipeline.fit(shaped, checked)
        return tuple(shape for shape, _ in arguments.outputs_of(shaped, extents))

    @ends_at_caller
    def source(
        self,
        target: str = "c",
        *shapes: tuple[int, ...],
        dtypes: Sequence[object] | None = None,
    ) -> str:
        """The program as text, of "c" or "cuda"; with shapes, one per input, the extents are fixed in it.

        ``dtypes`` are the element types of the inputs, such as "i32" or numpy.int32; else they are those that the
        program writes, and f32.
        """
        check_target(target)
        return source_of(self.shaped(shapes, dtypes), target)

    @ends_at_caller
    def loops(self, *shapes: tuple[int, ...], dtypes: Sequence[object] | None = None) -> str:
        """The loop nests as text; with shapes, one per input, the extents are numbers; ``dtypes`` as for ``source``."""
        return pipeline.loops_text(pipeline.lower(self.shaped(shapes, dtypes)))

    @ends_at_caller
    def explain(self, *shapes: tuple[int, ...], verbose: bool = False) -> ComponentExplanation:
        """The explanation, as data; ``str`` gives its page. With shapes, one per input, extents are numbers.

        Args:
            shapes: of the inputs, or none.
            verbose: say also how every extent and type was found.
        """
        from ilang.codegen.runtime.arguments import check_flag
        from ilang.codegen.runtime.notebook_pages import notebook_page

        check_flag("verbose", verbose)
        given = bool(shapes)
        page = pipeline.explain_shaped(self.graph(), self.shaped(shapes), verbose, given=given)
        return notebook_page(page, self, shapes)

    @ends_at_caller
    def why(self, *shapes: tuple[int, ...], dtypes: Sequence[object] | None = None) -> Why:
        """The reasons of the loops, as data; ``str`` gives the page of ``i explain --why``. Prices need shapes."""
        return pipeline.why(self.shaped(shapes, dtypes))

    @ends_at_caller
    def check(self, target: str = "c") -> Check:
        """The result of ``i check``, as data; ``str`` gives its line.

        Args:
            target: "cuda" checks the CUDA, too, on the emulator.

        Raises:
            Error: whatever is wrong with shapes, types and schedules.
        """
        from ilang.codegen.project.checking import check

        return check(self.shaped(()), target)

    @ends_at_caller
    def build(
        self,
        folder: str | os.PathLike[str],
        name: str | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
    ) -> list[Path]:
        """Write a C project as ``i build`` does; the files, in the order in which to read them.

        Args:
            folder: where to write; it is made if it is missing.
            name: what the function and the files are called.
            shapes: shapes of inputs, by name, that fix their extents.

        Raises:
            Error: those of ``write_project``.
        """
        from pathlib import Path

        from ilang.codegen.project.render import write_project
        from ilang.codegen.runtime.arguments import check_file_name
        from ilang.codegen.runtime.files import path_text

        check_file_name(name)
        graph = self.graph()
        graph = graph if name is None else replace(graph, name=name)
        return write_project(
            [graph], Path(path_text(folder, "folder")), self.text(), graph.name, shapes
        )
