"""Components: what a user writes, combines and calls.

A component is a face of a program (``program.py``). Combining is lazy and takes constant time; wiring, inference and
compilation happen at the first use, once per element types and ranks. A call with arrays like those of an earlier one
goes straight to compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, overload

from ilang.codegen.call.threads import THREADS
from ilang.codegen.call.tracebacks import ends_at_caller, hide
from ilang.codegen.components.described import DescribedProgram
from ilang.codegen.components.program import ComponentProgram, WrittenProgram
from ilang.codegen.frameworks.foreign import library_of
from ilang.codegen.system.concurrency import kept
from ilang.core import pipeline
from ilang.core.diagnostic import DataError, DataTypeError, Error
from ilang.core.ir.graph import UNNAMED
from ilang.core.ir.syntax import Combine, Definition, Module, Name, Swap, Tree
from ilang.core.notation.components.arity import Wires, combined, swapped, wires_of, wires_of_all

if TYPE_CHECKING:
    from typing import Protocol, TypedDict

    from numpy.typing import NDArray

    from ilang.codegen.call.versions import Version
    from ilang.codegen.components.ends import End

    class _Torch(Protocol):
        def detach(self) -> Any: ...

    class _Jax(Protocol):
        def block_until_ready(self) -> Any: ...

    TensorInput = _Torch | _Jax | float
    """Arguments of a call whose results are of PyTorch or JAX."""

    class CallOptions(TypedDict, total=False):
        """Options of calls of functions: those of components."""

        out: Any
        threads: int | str
        target: str
        stream: Any


def _operator(symbol: str) -> tuple[Callable[[Component, object], Component], ...]:
    """The method of an operator, and that for a component on its right side."""

    @ends_at_caller
    def left(self: Component, other: object) -> Component:
        return _combined(symbol, self, component_of(other))

    @ends_at_caller
    def right(self: Component, other: object) -> Component:
        return _combined(symbol, component_of(other), self)

    return left, right


class Component(DescribedProgram):
    """Ordered inputs, ordered outputs, no state. Made by ``i``, ``I``, ``load`` and by combining others.

    Operators: ``f >> g`` chain, ``f << g`` compose, ``f & g`` fanout, ``f | g`` pair, ``~f`` swap; one side may be a
    text. Safe to call from several threads and after a fork.
    """

    __array_ufunc__ = None  # NumPy arrays leave operators to us
    __slots__ = ("__weakref__", "_components", "_plans", "program")

    program: ComponentProgram

    def __init__(self, program: ComponentProgram) -> None:
        self.program = program
        self._plans = program.plans
        self._components: dict[tuple[object, ...], Component] = {}

    @overload
    def __call__(
        self,
        *arrays: TensorInput,
        out: Any = None,
        threads: int | str = THREADS,
        target: str = "c",
        stream: Any = None,
        **named: Any,
    ) -> Any: ...
    @overload
    def __call__(
        self,
        *arrays: Any,
        out: tuple[Any, ...],
        threads: int | str = THREADS,
        target: str = "c",
        stream: Any = None,
        **named: Any,
    ) -> tuple[NDArray[Any], ...]: ...
    @overload
    def __call__(
        self,
        *arrays: Any,
        out: Any = None,
        threads: int | str = THREADS,
        target: str = "c",
        stream: Any = None,
        **named: Any,
    ) -> NDArray[Any]: ...
    def __call__(
        self,
        *arrays: Any,
        out: Any = None,
        threads: int | str = THREADS,
        target: str = "c",
        stream: Any = None,
        **named: Any,
    ) -> Any:
        """Run on NumPy arrays (Python numbers fit inputs of rank 0), on tensors of PyTorch or JAX, or arrays of a GPU.

        Args:
            arrays: one per input: float32, float64, int32, int64 or bool; strided and read-only ones are fine.
            named: the arrays of inputs by their names, after those that are given in order.
            out: an array for the result, or a tuple of arrays; nothing is then allocated for results.
            threads: how many cores to use at most, "auto" for all where the work is enough; never
                changes a result. Default: ``$I_THREADS``, else 1.
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
                arrays = self.program.placed(arrays, named)
            table = self._plans.table  # asked here, too: a call of Python would take a tenth longer
            is_plain = target.__class__ is str and target == "c" and stream is None
            if table is not None and is_plain and threads.__class__ is int:
                results = table(arrays, out, threads)
                if results is not None:
                    return results
            try:
                results = self.program.answer(arrays, out, threads, target, stream)
                if results is not None:
                    return results
                options = {"out": out, "threads": threads, "target": target, "stream": stream}
                whole = self.program.completed(arrays)
                if whole is not arrays:
                    return self(*whole, **options)
                library = library_of(arrays)
                if library is not None:
                    return library.call(self, arrays, options)
                return self.program.call(arrays, out, threads, target, stream)
            except DataError as error:
                raise self.program.placed_error(error, arrays, target) from None
        except Error as error:
            hide(error)
            raise

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
        program = copy(self.program)
        program.keep_open(names or None)
        return type(self)(program)

    def versions(self) -> tuple[Version, ...]:
        """The programs compiled for calls: types and shapes of the inputs, open extents by name."""
        return self.program.versions()

    def takes(self) -> int:
        """The number of inputs."""
        return self.program.wires.inputs

    @property
    def inputs(self) -> tuple[End, ...]:
        """The inputs: name, element type, shape."""
        from ilang.codegen.components.ends import ends_of

        return ends_of(self.program)[0]

    @property
    def outputs(self) -> tuple[End, ...]:
        """The outputs: name, element type, shape."""
        from ilang.codegen.components.ends import ends_of

        return ends_of(self.program)[1]

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
        return tuple(shape for shape, _ in self.program.results(shapes, dtypes))

    @ends_at_caller
    def grad(self, wrt: Any = None, *others: Any) -> Component:
        """The component that gives gradients: of its inputs and then one cotangent per output.

        Args:
            wrt: the inputs whose gradients are wanted, by position or name, one or a list; all by default.
            others: more of them, as ``f.grad(0, 1)`` has.

        Returns:
            A component whose outputs are the gradients, in the order of ``wrt``. Called without cotangents it takes
            ones. The gradient of that component is a component, too.

        Raises:
            Error: DataError E0716 (``wrt``); when it is first run, MeaningError E0260: nothing can flow back.
        """
        from ilang.codegen.components.gradient import gradient_of

        return Component(gradient_of(self.program, [wrt, *others] if others else wrt, values=False))

    @ends_at_caller
    def value_and_grad(self, wrt: Any = None, *others: Any) -> Component:
        """The gradient with the outputs of this component before its own."""
        from ilang.codegen.components.gradient import gradient_of

        return Component(gradient_of(self.program, [wrt, *others] if others else wrt, values=True))

    def gradient_for(self, wrt: tuple[int, ...]) -> Component:
        """The gradient with respect to some inputs, made once: autograd asks for it again and again."""
        return kept(self._components, wrt, lambda: self.grad(list(wrt)))

    def along_batch(self, ranks: Sequence[int], has_batch: Sequence[bool]) -> Component | None:
        """The component along a batch, made once, as ``batched`` says."""
        from ilang.codegen.components.batched import batched

        key = (tuple(ranks), tuple(has_batch))
        known = self._components.get(key)
        if known is None and (program := batched(self.program, *key)) is not None:
            known = kept(self._components, key, lambda: Component(program))
        return known

    @ends_at_caller
    def jvp(self, wrt: Any = None, *others: Any) -> Component:
        """The directional derivative: of the inputs and then a tangent for each, the outputs and then their tangents.

        Args:
            wrt: the inputs that have tangents, as for ``grad``; those of the rest are zero.
            others: more of them.
        """
        from ilang.codegen.components.gradient import tangent_of

        return Component(tangent_of(self.program, [wrt, *others] if others else wrt))

    __rshift__, __rrshift__ = _operator(">>")
    __lshift__, __rlshift__ = _operator("<<")
    __and__, __rand__ = _operator("&")
    __or__, __ror__ = _operator("|")

    @ends_at_caller
    def __invert__(self) -> Component:
        tree, definitions = self.program.written()
        wires = swapped(self.program.wires)
        return Component(WrittenProgram(Swap(tree, tree.span), wires, definitions))

    def __repr__(self) -> str:
        return repr(self.program)

    def _repr_html_(self) -> str:
        from ilang.codegen.components.notebook_pages import component_page

        return component_page(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its program, which is compiled again where it is loaded."""
        return type(self), (self.program,)


def _combined(symbol: str, left: Component, right: Component) -> Component:
    from ilang.core.notation.files.renaming import merged

    (first, known), (second, others) = left.program.written(), right.program.written()
    definitions, tree = merged(known, others, second)
    wires = combined(symbol, left.program.wires, right.program.wires)
    whole = Combine(symbol, first, tree, first.span.to(tree.span))
    _refuse_clash(wires, whole, definitions)
    return Component(WrittenProgram(whole, wires, definitions))


def _refuse_clash(wires: Wires, tree: Tree, definitions: Mapping[str, Definition]) -> None:
    """Refuse a tree in which ranks meet that differ.

    Raises:
        ShapeError: E0501, E0502, as inference tells it.
    """
    if wires.clash:
        pipeline.infer(pipeline.graph_of(tree, UNNAMED, definitions))


def from_text(text: object, name: str = "<text>") -> Component:
    """The component that a text spells: a program, or definitions, all but one of which that one uses.

    Messages call the text by its ``name``.

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
    program = pipeline.text_program(text, name)
    definitions: dict[str, Definition] = {}
    if not isinstance(program, Module):
        tree = program
    else:
        from ilang.core.notation.files.module import only_export

        definition = only_export(program)
        if definition.name != UNNAMED:
            return defined(program)[definition.name]
        tree = definition.body
        definitions = {each.name: each for each in program.definitions if each is not definition}
    wires = wires_of(tree, wires_of_all(definitions))
    _refuse_clash(wires, tree, definitions)
    return Component(WrittenProgram(tree, wires, definitions))


def from_spec(spec: object) -> Component:
    """The component that an einsum specification is. Raises NotationError E0140 to E0147, or DataError E0716."""
    from ilang.core.ir.syntax import Einsum
    from ilang.core.notation.einsum.contraction import usual_path
    from ilang.core.notation.einsum.specification import parse_spec
    from ilang.core.notation.einsum.subscripts import check_dots
    from ilang.core.source import Source

    if not isinstance(spec, str):
        message = f"a specification is a text, not {type(spec).__name__}"
        help_line = 'write it in quotes: einsum("ij; jk => ik")'
        raise DataTypeError("E0716", message, help=help_line)
    parsed = parse_spec(Source("<spec>", " ".join(spec.splitlines())))
    check_dots(parsed)
    return Component(WrittenProgram(Einsum(parsed, None, parsed.span, usual_path(parsed, None))))


def defined(module: Module) -> dict[str, Component]:
    """A component for every definition of a module, exported or not."""
    definitions = {definition.name: definition for definition in module.definitions}
    wires = wires_of_all(definitions)
    programs = (
        WrittenProgram(Name(d.name, d.span), wires[d.name], definitions, module, d.name)
        for d in module.definitions
    )
    return {d.name: Component(each) for d, each in zip(module.definitions, programs, strict=True)}


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
