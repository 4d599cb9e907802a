"""Programs of components: what a component computes, whatever it is made of, and what is compiled of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ilang.codegen.call.dispatch import RunnableProgram
from ilang.codegen.call.versions import Versions
from ilang.codegen.system.concurrency import kept
from ilang.core import pipeline
from ilang.core.diagnostic import DataError, counted, shorten, visible
from ilang.core.ir.graph import UNNAMED
from ilang.core.ir.syntax import Definition, Module, Name, Tree
from ilang.core.notation.components.arity import Wires, wires_of
from ilang.core.notation.components.printer import print_tree
from ilang.core.record import replace

if TYPE_CHECKING:
    from pathlib import Path

    from ilang.codegen.call.arguments import Output
    from ilang.codegen.call.specialization import Specialization
    from ilang.codegen.call.versions import Version
    from ilang.core.ir.graph import Graph
    from ilang.core.ir.shaped import Shaped

LONGEST_SHOWN = 64
"""Expressions of a program that ``repr`` prints."""


class ComponentProgram(RunnableProgram):
    """Ordered inputs, ordered outputs: a graph, the same typed for some ranks, compiled for the arrays of calls."""

    __slots__ = ("_compiled", "_inferred", "wires")

    is_solved = False
    is_derivative = False

    def __init__(self, wires: Wires) -> None:
        """For the numbers of inputs and outputs, and their ranks where they are known."""
        super().__init__()
        self.wires = wires
        self._inferred: dict[tuple[object, ...], Shaped] = {}
        self._compiled = Versions()

    # -- what it computes ----------------------------------------------------------------------------------------------

    @abstractmethod
    def graph(self) -> Graph:
        """The graph, made at the first use."""

    @abstractmethod
    def infer(self, dtypes: tuple[str | None, ...] | None, ranks: tuple[int, ...]) -> Shaped:
        """The program for these element types and ranks; without types, for its sizes alone."""

    @abstractmethod
    def shaped(
        self, shapes: Sequence[tuple[int, ...]] = (), dtypes: Sequence[object] | None = None
    ) -> Shaped:
        """The program with these types, or f32 where nothing is written, and with these shapes, if any."""

    @abstractmethod
    def text(self) -> str:
        """The program as it is written."""

    @abstractmethod
    def shown(self) -> str:
        """The program, cut where it is long."""

    @abstractmethod
    def written(self) -> tuple[Tree, Mapping[str, Definition]]:
        """The program as a part of others, and what its names mean. Raises DataError E0716: it has no text for that."""

    def inferred(self, dtypes: tuple[str | None, ...] | None, ranks: tuple[int, ...]) -> Shaped:
        """The program for these element types and ranks, inferred once."""
        return kept(self._inferred, (dtypes, ranks), lambda: self.infer(dtypes, ranks))

    def at(self, shapes: Sequence[Any]) -> ComponentProgram:
        """The program for inputs of these shapes, or of none."""
        del shapes  # most programs are for all
        return self

    def output_names(self) -> list[str]:
        """The names of results."""
        graph = self.graph()
        return graph.output_names(graph.outputs)

    def results(
        self, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[object] | None
    ) -> list[Output]:
        """Shapes and NumPy types of the outputs for inputs of these shapes. Raises Error, as ``Component.shapes`` says.

        Without types those of the outputs mean nothing.
        """
        from ilang.codegen.call import arguments

        graph = self.graph()
        arguments.check_shape_count(graph, len(shapes))
        checked = arguments.checked_shapes(shapes)
        known = None if dtypes is None else arguments.checked_dtypes(graph, dtypes)
        shaped = self.inferred(known, tuple(map(len, checked)))
        return arguments.outputs_of(shaped, pipeline.fit(shaped, checked))

    def write_project(
        self, folder: Path, name: str | None, shapes: Mapping[str, tuple[int, ...]] | None
    ) -> list[Path]:
        """Write a project, in which the program is called ``name``, the extents of inputs in ``shapes`` fixed."""
        from ilang.codegen.project.render import write_project

        graph = self.graph()
        graph = graph if name is None else replace(graph, name=name)
        return write_project([graph], folder, self.text(), graph.name, shapes)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def names_in_calls(self) -> list[str]:
        """The names by which a call may give arrays."""
        return self.graph().input_names()

    def placed(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arrays of a call in order, of which some are given by name."""
        from ilang.codegen.call.named_arrays import placed

        return placed(self.names_in_calls(), arrays, named)

    def completed(self, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arrays of a call, with those that it may leave out."""
        return arrays

    def fitting(
        self, given: Sequence[Any], on_device: Collection[int] = ()
    ) -> tuple[Specialization, list[Any], tuple[int, ...]]:
        """The program for arrays, these checked, and its extents; arrays on a device are left as they lie."""
        del on_device  # no array is copied here
        from ilang.codegen.call import arguments

        graph = self.graph()
        arrays = arguments.checked_arrays(graph, given)
        types, shapes = arguments.types_of(arrays), [array.shape for array in arrays]
        with pipeline.orders_suggested(graph, shapes):
            shaped = self.inferred(types, tuple(map(len, shapes)))
            extents = pipeline.fit(shaped, shapes)
        return self._compiled.of(shaped, types, shapes, extents), arrays, extents

    def placed_error(self, error: DataError, given: Sequence[Any], target: str) -> DataError:
        """An error of a call; of an element that is no index, with its place, which compiled code does not tell.

        The evaluator looks for it; where it meets none, or arrays are those of a device, the error stays what it is.
        """
        from ilang.codegen.call.plan import OUT_OF_RANGE

        if error.code != OUT_OF_RANGE or target == "numpy":
            return error
        try:
            specialization, arrays, extents = self.fitting(given)
            specialization.evaluate(arrays, extents, None)
        except DataError as other:
            return other if other.code == OUT_OF_RANGE else error
        return error

    def keep_open(self, names: Collection[str] | None) -> None:
        """Take note, before the first call, of which extents stay open."""
        self._compiled = Versions(names)

    def versions(self) -> tuple[Version, ...]:
        """The programs compiled for calls."""
        return self._compiled.listed()

    def _kept(self) -> tuple[None, dict[str, Any]]:
        """The slots of a copy that its arguments do not give, as ``copyreg`` sets them."""
        return None, {"_compiled": self._compiled}


class WrittenProgram(ComponentProgram):
    """The program of a syntax tree, with the definitions that its names mean."""

    __slots__ = ("_definitions", "_graph", "_module", "_name", "_tree")

    def __init__(
        self,
        tree: Tree,
        wires: Wires | None = None,
        definitions: Mapping[str, Definition] | None = None,
        module: Module | None = None,
        name: str = UNNAMED,
    ) -> None:
        """A tree, its counts, and what its names mean; ``module`` where the tree is one name of it."""
        super().__init__(wires_of(tree, {}) if wires is None else wires)
        self._tree = tree
        self._definitions: Mapping[str, Definition] = definitions or {}
        self._module = module
        self._name = name
        self._graph: Graph | None = None

    def graph(self) -> Graph:
        """The graph, made at the first use."""
        if self._graph is None:
            if self._module is not None:
                self._graph = pipeline.module_graph(self._module, self._name)
            else:
                self._graph = pipeline.graph_of(self._tree, self._name, self._definitions)
        return self._graph

    def infer(self, dtypes: tuple[str | None, ...] | None, ranks: tuple[int, ...]) -> Shaped:
        """The program for these element types and ranks; without types, for its sizes alone."""
        if dtypes is None:
            return pipeline.infer_sizes(self.graph(), ranks)
        return pipeline.infer(self.graph(), dtypes, ranks)

    def shaped(
        self, shapes: Sequence[tuple[int, ...]] = (), dtypes: Sequence[object] | None = None
    ) -> Shaped:
        """The program with these types, or f32 where nothing is written, and with these shapes, if any."""
        from ilang.codegen.call import arguments

        graph = self.graph()
        given = None if dtypes is None else arguments.checked_dtypes(graph, dtypes)
        arguments.check_is_list(shapes)
        if not shapes and graph.inputs:
            return pipeline.infer(graph, given)
        arguments.check_shape_count(graph, len(shapes))
        return pipeline.infer(graph, given, shapes=arguments.checked_shapes(shapes))

    def text(self) -> str:
        """The program as it is written."""
        return print_tree(self._tree) if self._module is None else self._module.source.text

    def shown(self) -> str:
        """The program's text where it is short; else how many expressions it has."""
        if LONGEST_SHOWN < self.wires.leaves:
            return f"{self.wires.leaves} expressions"
        tree, name = self._tree, ""
        if isinstance(tree, Name):
            name = f"{tree.name} = "
            tree = self._definitions[tree.name].body if tree.name in self._definitions else tree
        return name + shorten(visible(print_tree(tree)), 400)

    def written(self) -> tuple[Tree, Mapping[str, Definition]]:
        """The tree, and what its names mean."""
        return self._tree, self._definitions

    def placed_error(self, error: DataError, given: Sequence[Any], target: str) -> DataError:
        """An error of a call; where the number of arrays is wrong, with what was meant."""
        if error.code != "E0701":
            return super().placed_error(error, given, target)
        from ilang.codegen.components.arity_mismatch import arity_help

        hint = arity_help(self._tree, self._definitions, len(given))
        return error if hint is None else DataError(error.code, error.message, error.span, hint)

    def __repr__(self) -> str:
        ends = f"{_number(self.wires.inputs, 'input')}, {_number(self.wires.outputs, 'output')}"
        return f"<Component {self.shown()}: {ends}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its tree; compiled again where it is loaded."""
        made_of = (self._tree, self.wires, dict(self._definitions), self._module, self._name)
        return type(self), made_of, self._kept()


def _number(count: int, word: str) -> str:
    return counted(count, word) if count else f"0 {word}s"
