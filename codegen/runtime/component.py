"""Components: what a user writes, combines and calls.

A component is a syntax tree with the definitions that its names mean. Combining is lazy and takes constant time;
wiring, inference and compilation happen at the first use, once per element types and ranks. A call with arrays like
those of an earlier one goes straight to compiled code.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, overload

from ilang.codegen.runtime.concurrency import kept
from ilang.codegen.runtime.described import DescribedComponent
from ilang.codegen.runtime.dispatch import DispatchedProgram
from ilang.codegen.runtime.foreign import library_of
from ilang.codegen.runtime.tracebacks import ends_at_caller, hide
from ilang.codegen.runtime.versions import Versions
from ilang.core import pipeline
from ilang.core.diagnostic import (
    DataError,
    DataTypeError,
    Error,
    counted,
    shorten,
    visible,
)
from ilang.core.ir.graph import UNNAMED
from ilang.core.ir.syntax import Combine, Definition, Einx, Module, Name, Swap, Tree
from ilang.core.notation.components.arity import Wires, combined, swapped, wires_of, wires_of_all
from ilang.core.notation.components.printer import print_tree
from ilang.core.record import replace

if TYPE_CHECKING:
    from typing import Protocol, Self

    from numpy.typing import NDArray

    from ilang.codegen.runtime.plan import CallPlan
    from ilang.codegen.runtime.specialization import Specialization
    from ilang.codegen.runtime.versions import Version
    from ilang.core.ir.einx import Form
    from ilang.core.ir.graph import Graph
    from ilang.core.ir.shaped import Shaped

    class _Torch(Protocol):
        def detach(self) -> Any: ...

    class _Jax(Protocol):
        def block_until_ready(self) -> Any: ...

    TensorInput = _Torch | _Jax | float
    """Arguments of a call whose results are of PyTorch or JAX."""

LONGEST_SHOWN = 64
"""Expressions of a program that ``repr`` prints."""


class Component(DescribedComponent, DispatchedProgram):
    """Ordered inputs, ordered outputs, no state. Made by ``i``, ``I``, ``load`` and by combining others.

    Operators: ``f >> g`` chain, ``f << g`` compose, ``f & g`` fanout, ``f | g`` pair, ``~f`` swap; one side may be a
    text. Safe to call from several threads and after a fork.
    """

    __array_ufunc__ = None  # NumPy arrays leave operators to us
    __slots__ = (
        "__weakref__",
        "_definitions",
        "_gradients",
        "_graph",
        "_module",
        "_name",
        "_shapes",
        "_tree",
        "_versions",
        "_wires",
    )

    def __init__(
        self,
        tree: Tree,
        wires: Wires,
        definitions: Mapping[str, Definition] | None = None,
        module: Module | None = None,
        name: str = UNNAMED,
    ) -> None:
        """A tree, its counts, and what its names mean; ``module`` where the tree is one name of it."""
        super().__init__()
        self._tree = tree
        self._wires = wires
        self._definitions: Mapping[str, Definition] = definitions or {}
        self._module = module
        self._name = name
        self._graph: Graph | None = None
        self._shapes: dict[tuple[object, ...], Shaped] = {}
        self._versions = Versions()
        self._gradients: dict[tuple[int, ...], Component] = {}

    @overload
    def __call__(
        self,
        *arrays: TensorInput,
        out: Any = None,
        threads: int | str = 1,
        target: str = "c",
        stream: Any = None,
        **named: Any,
    ) -> Any: ...
    @overload
    def __call__(
        self,
        *arrays: Any,
        out: tuple[Any, ...],
        threads: int | str = 1,
        target: str = "c",
        stream: Any = None,
        **named: Any,
    ) -> tuple[NDArray[Any], ...]: ...
    @overload
    def __call__(
        self,
        *arrays: Any,
        out: Any = None,
        threads: int | str = 1,
        target: str = "c",
        stream: Any = None,
        **named: Any,
    ) -> NDArray[Any]: ...
    def __call__(
        self,
        *arrays: Any,
        out: Any = None,
        threads: int | str = 1,
        target: str = "c",
        stream: Any = None,
        **named: Any,
    ) -> Any:
        """Run on NumPy arrays (Python numbers fit inputs of rank 0), on tensors of PyTorch or JAX, or arrays of a GPU.

        Args:
            arrays: one per input: float32, float64, int32, int64 or bool; strided and read-only ones are fine.
            named: the arrays of inputs by their names, after those that are given in order.
            out: an array for the result, or a tuple of arrays; nothing is then allocated for results.
            threads: how many cores to use at most, "auto" for all where the work is enough; never changes a result.
            target: "c" compiles, "numpy" evaluates with NumPy, slowly: the reference. "cuda" runs on the GPU,
                "cuda-emulated" emulates one: arrays with ``__cuda_array_interface__`` or DLPack are then taken where
                they are, and results stay there where there is such an array; others are copied there and back.
            stream: of CUDA, as a handle or an object that has one; else it is that of the first array that names one.

        Returns:
            The output, or a tuple of several.

        Raises:
            Error: E05 (ranks, extents), E06, E07 (arrays), E09 (a compiler, a device), before anything runs.
        """
        try:
            if named:
                from ilang.codegen.runtime.arguments import placed

                arrays = placed(self._names_in_calls(), arrays, named)
            table = self._plans.table
            is_plain = target.__class__ is str and target == "c" and stream is None
            if table is not None and is_plain and threads.__class__ is int and threads == 1:
                results = table(arrays, out)
                if results is not None:
                    return results
            plan = self._plans.of(arrays)
            try:
                if plan is not None and is_plain:
                    return plan.answer(arrays, out, threads)
                library = library_of(arrays) if plan is None else None
                if library is not None:
                    options = {"out": out, "threads": threads, "target": target, "stream": stream}
                    return library.call(self, arrays, options)
                return self._call(arrays, out, threads, target, stream)
            except DataError as error:
                raise self._found(error, arrays, target) from None
        except Error as error:
            hide(error)
            raise

    def run(
        self, arrays: Sequence[Any], out: Any, threads: int | str, target: str, stream: Any
    ) -> Any:
        """Run on arrays of NumPy or of a device, whatever library these are of."""
        return self._run(arrays, out, threads, target, stream)

    def _fitting(
        self, given: Sequence[Any], on_device: Collection[int] = ()
    ) -> tuple[Specialization, list[Any], tuple[int, ...]]:
        """The program for arrays, these checked, and its extents; arrays on a device are left as they lie."""
        del on_device  # no array is copied here
        from ilang.codegen.runtime import arguments

        graph = self.graph()
        try:
            arrays = arguments.checked_arrays(graph, given)
        except DataError as error:
            raise self._explained(error, len(given)) from None
        types, shapes = arguments.types_of(arrays), [array.shape for array in arrays]
        with pipeline.orders_suggested(graph, shapes):
            shaped = self.inferred(graph, types, tuple(map(len, shapes)))
            extents = pipeline.fit(shaped, shapes)
        return self._versions.of(shaped, types, shapes, extents), arrays, extents

    def _found(self, error: DataError, given: Sequence[Any], target: str) -> DataError:
        """An error of a call; of an element that is no index, with its place, which compiled code does not tell.

        The evaluator looks for it; where it meets none, or arrays are those of a device, the error stays what it is.
        """
        from ilang.codegen.runtime.plan import OUT_OF_RANGE

        if error.code != OUT_OF_RANGE or target == "numpy":
            return error
        try:
            specialization, arrays, extents = self._fitting(given)
            specialization.evaluate(arrays, extents, None)
        except DataError as found:
            return found if found.code == OUT_OF_RANGE else error
        return error

    def _explained(self, error: DataError, given: int) -> DataError:
        """A refusal of arrays; where their number is wrong, with the program that takes so many."""
        from ilang.codegen.runtime.arity_mismatch import arity_help

        hint = arity_help(self._tree, self._definitions, given) if error.code == "E0701" else None
        if hint is None:
            return error
        return DataError(error.code, error.message, error.span, hint)

    def plan_of(self, arrays: Sequence[Any]) -> CallPlan | None:
        """The plan that an earlier call on arrays like these has left."""
        return self._plans.of(arrays)

    def graph(self) -> Graph:
        """The graph, made at the first use."""
        if self._graph is None:
            if self._module is not None:
                self._graph = pipeline.module_graph(self._module, self._name)
            else:
                self._graph = pipeline.graph_of(self._tree, self._name, self._definitions)
        return self._graph

    @ends_at_caller
    def dynamic(self, *names: str) -> Component:
        """This component, compiled for calls whose extents of these names vary.

            f = i("ik*kj~ijk >> +ijk~ij").dynamic("i")

        A call compiles for the extents of its arrays, those named here left open: calls that differ in them alone share
        one version. Without names all extents are open. A component that is combined with others, or differentiated,
        is compiled for all extents again.

        Raises:
            DataError: E0773, at the first call: no array of the program has such an extent.
        """
        return copy(self).keep_open(names or None)

    def keep_open(self, names: Collection[str] | None) -> Self:
        """This component, told before its first call which extents stay open; None: all of them."""
        self._versions, self._gradients = Versions(names), {}
        return self

    def versions(self) -> tuple[Version, ...]:
        """The programs compiled for calls: types and shapes of the inputs, open extents by name."""
        return self._versions.listed()

    def inferred(
        self, graph: Graph, dtypes: tuple[str | None, ...] | None, ranks: tuple[int, ...]
    ) -> Shaped:
        """The program inferred for these element types and ranks; without types, for its sizes alone."""
        return kept(self._shapes, (dtypes, ranks), lambda: self._infer(graph, dtypes, ranks))

    def _infer(
        self, graph: Graph, dtypes: tuple[str | None, ...] | None, ranks: tuple[int, ...]
    ) -> Shaped:
        """The same, which is not known yet."""
        if dtypes is None:
            return pipeline.infer_sizes(graph, ranks)
        return pipeline.infer(graph, dtypes, ranks)

    def wires(self) -> Wires:
        """The numbers of inputs and outputs, and their ranks where they are known."""
        return self._wires

    def _names_in_calls(self) -> list[str]:
        """The names by which a call may give arrays."""
        return self.input_names()

    def takes(self) -> int:
        """The number of inputs."""
        return self._wires.inputs

    def text(self) -> str:
        """The program as it is written."""
        return print_tree(self._tree) if self._module is None else self._module.source.text

    def shaped(
        self, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[object] | None = None
    ) -> Shaped:
        """Inferred with these types, or f32 where nothing is written, and with these shapes, if any."""
        from ilang.codegen.runtime import arguments

        graph = self.graph()
        given = None if dtypes is None else arguments.checked_dtypes(graph, dtypes)
        arguments.check_is_list(shapes)
        if not shapes and graph.inputs:
            return pipeline.infer(graph, given)
        arguments.check_shape_count(graph, len(shapes))
        return pipeline.infer(graph, given, shapes=arguments.checked_shapes(shapes))

    @ends_at_caller
    def grad(self, wrt: Any = None) -> Component:
        """The component that gives gradients: of its inputs and then one cotangent per output.

        Args:
            wrt: the inputs whose gradients are wanted, by position or name, one or a list; all by default.

        Returns:
            A component whose outputs are the gradients, in the order of ``wrt``. Called without cotangents it takes
            ones. The gradient of that component is a component, too.

        Raises:
            Error: DataError E0716 (``wrt``); when it is first run, MeaningError E0260: nothing can flow back.
        """
        from ilang.codegen.runtime.gradient import gradient_of

        return gradient_of(self, wrt, values=False)

    @ends_at_caller
    def value_and_grad(self, wrt: Any = None) -> Component:
        """The gradient with the outputs of this component before its own."""
        from ilang.codegen.runtime.gradient import gradient_of

        return gradient_of(self, wrt, values=True)

    def gradient_for(self, wrt: tuple[int, ...]) -> Component:
        """The gradient with respect to some inputs, made once: autograd asks for it again and again."""
        return kept(self._gradients, wrt, lambda: self.grad(list(wrt)))

    @ends_at_caller
    def jvp(self, wrt: Any = None) -> Component:
        """The directional derivative: of the inputs and then a tangent for each, the outputs and then their tangents.

        Args:
            wrt: the inputs that have tangents, as for ``grad``; those of others are zero.
        """
        from ilang.codegen.runtime.gradient import tangent_of

        return tangent_of(self, wrt)

    @ends_at_caller
    def __rshift__(self, other: object) -> Component:
        return self._combine(">>", self, component_of(other))

    @ends_at_caller
    def __rrshift__(self, other: object) -> Component:
        return self._combine(">>", component_of(other), self)

    @ends_at_caller
    def __lshift__(self, other: object) -> Component:
        return self._combine("<<", self, component_of(other))

    @ends_at_caller
    def __rlshift__(self, other: object) -> Component:
        return self._combine("<<", component_of(other), self)

    @ends_at_caller
    def __and__(self, other: object) -> Component:
        return self._combine("&", self, component_of(other))

    @ends_at_caller
    def __rand__(self, other: object) -> Component:
        return self._combine("&", component_of(other), self)

    @ends_at_caller
    def __or__(self, other: object) -> Component:
        return self._combine("|", self, component_of(other))

    @ends_at_caller
    def __ror__(self, other: object) -> Component:
        return self._combine("|", component_of(other), self)

    @ends_at_caller
    def __invert__(self) -> Component:
        self.check_combines()
        tree = Swap(self._tree, self._tree.span)
        return Component(tree, swapped(self._wires), self._definitions)

    def told_to(self, form: Form) -> Component:
        """An operation in einx notation that goes along axes with this component.

        Raises:
            DataError: E0716 (no operation).
            MeaningError: E0221 (another number of inputs or outputs).
        """
        from ilang.codegen.runtime.arguments import check_is
        from ilang.core.ir.einx import Form

        self.check_combines()
        says = "a component is told to an operation in einx notation"
        check_is(form, Form, "E0716", says, 'einx.vmap("[a] -> ", x, op=f)')
        tree = Einx(form, form.span, None, self._tree)
        wires = replace(wires_of(Einx(form, form.span), {}), leaves=self._wires.leaves)
        whole = Component(tree, wires, self._definitions)
        whole.graph()
        return whole

    def check_combines(self) -> None:
        """Refuse a component that is no part of others: a program has no text for it."""

    @staticmethod
    def _combine(symbol: str, left: Component, right: Component) -> Component:
        from ilang.core.notation.files.renaming import merged

        left.check_combines()
        right.check_combines()
        definitions, tree = merged(left._definitions, right._definitions, right._tree)
        span = left._tree.span.to(tree.span)
        wires = combined(symbol, left._wires, right._wires)
        whole = Combine(symbol, left._tree, tree, span)
        _refuse_clash(wires, whole, definitions)
        return Component(whole, wires, definitions)

    def __repr__(self) -> str:
        """The program's text where it is short, and how many inputs and outputs it has."""
        wires = self._wires
        ends = f"{_number(wires.inputs, 'input')}, {_number(wires.outputs, 'output')}"
        return f"<Component {self.shown()}: {ends}>"

    def shown(self) -> str:
        """The program's text where it is short; else how many expressions it has."""
        wires = self._wires
        shown = f"{wires.leaves} expressions"
        if wires.leaves <= LONGEST_SHOWN:
            tree = self._tree
            written = tree.name in self._definitions if isinstance(tree, Name) else False
            body = self._definitions[tree.name].body if isinstance(tree, Name) and written else tree
            shown = shorten(visible(print_tree(body)), 400)
            shown = f"{tree.name} = {shown}" if isinstance(tree, Name) else shown
        return shown

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its tree; compiled again where it is loaded."""
        made_of = (self._tree, self._wires, dict(self._definitions), self._module, self._name)
        return Component, made_of, self._kept()

    def _kept(self) -> tuple[None, dict[str, Any]]:
        """The slots of a copy that its arguments do not give, as ``copyreg`` sets them."""
        return None, {"_versions": self._versions}


def _number(count: int, word: str) -> str:
    return counted(count, word) if count else f"0 {word}s"


def _refuse_clash(wires: Wires, tree: Tree, definitions: Mapping[str, Definition]) -> None:
    """Refuse a tree in which ranks meet that differ.

    Raises:
        ShapeError: E0501, E0502, as inference tells it.
    """
    if wires.clash:
        pipeline.infer(pipeline.graph_of(tree, UNNAMED, definitions))


def from_text(text: object) -> Component:
    """The component that a text spells: a program, or definitions, all but one of which that one uses.

    Raises:
        Error: NotationError, MeaningError, ModuleError (the text is wrong), DataError (E0716: it is no text).
    """
    if not isinstance(text, str):
        raise DataTypeError(
            "E0716",
            f"a program is a text, not {type(text).__name__}",
            help='write it in quotes: i("ik*kj~ijk >> +ijk~ij")',
        )
    if text.endswith(".i") and "~" not in text:
        message = f"{text} is the name of a file, and a program is a text"
        raise DataTypeError("E0716", message, help=f'load("{text}") reads a file')
    program = pipeline.text_program(text)
    definitions: dict[str, Definition] = {}
    if not isinstance(program, Module):
        tree = program
    else:
        from ilang.codegen.runtime.library import library
        from ilang.core.notation.files.module import only_export

        definition = only_export(program)
        if definition.name != UNNAMED:
            return library(program)[definition.name]
        tree = definition.body
        definitions = {each.name: each for each in program.definitions if each is not definition}
    wires = wires_of(tree, wires_of_all(definitions))
    _refuse_clash(wires, tree, definitions)
    return Component(tree, wires, definitions)


def component_of(other: object) -> Component:
    """The other side of an operator: a component, or a text that spells one."""
    if isinstance(other, Component):
        return other
    if isinstance(other, str):
        return from_text(other)
    raise DataTypeError(
        "E0716",
        f"a component combines with a component or a text, not with {type(other).__name__}",
        help="call a component to run it on arrays: f(x, y)",
    )
