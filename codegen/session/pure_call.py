"""Tensor functions and routines as components: functions of their inputs, then of their parameters, with gradients.

A session computes without a gradient for whoever calls it. Here what a definition returns is a program like any other,
for inputs of known shapes, so that PyTorch and JAX have its gradient, and the gradient of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from ilang.codegen.components.component import Component
from ilang.codegen.components.program import ComponentProgram
from ilang.codegen.session.given_shapes import miscounted, rows_of_extents
from ilang.codegen.session.model import CONFIG_EXAMPLE, check_named, options_of
from ilang.codegen.session.settings import Settings
from ilang.codegen.session.solved import SolvedDefinition
from ilang.codegen.system.concurrency import kept
from ilang.core.diagnostic import DataError
from ilang.core.ir.graph import Graph, Input
from ilang.core.notation.components.arity import Wires
from ilang.core.record import replace
from ilang.core.transform.building import pruned

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array
    from ilang.codegen.session.model import Model
    from ilang.core.definition import LastingTensor
    from ilang.core.ir.shaped import Shaped
    from ilang.core.ir.syntax import Definition, Tree


KEPT = 16
"""Shapes for which a definition stays a component."""


class PureCall(NamedTuple):
    """A definition for inputs of some shapes: its component, and what that takes.

    ``sources`` has the position among inputs and parameters, or the values of a constant; ``tensors`` are the inputs,
    then the parameters. ``results`` are the positions of what the results are gradients of, None where they are none.
    """

    component: Component
    sources: tuple[int | Array, ...]
    tensors: tuple[LastingTensor, ...]
    results: tuple[int, ...] | None = None

    def arranged(self, given: Sequence[Any]) -> list[Any]:
        """The arrays of the component, of those for inputs and parameters."""
        return [given[each] if isinstance(each, int) else each for each in self.sources]

    def of_types(self, dtypes: Sequence[str]) -> PureCall:
        """The same, for arrays of these element types. Raises: DataError E0758 (one is another)."""
        for tensor, dtype in zip(self.tensors, dtypes, strict=False):
            if dtype != tensor.dtype:
                message = (
                    f"{tensor.path} is {tensor.dtype} here, and the array given for it {dtype}"
                )
                help_line = f"convert it, or write its type in the head: `{tensor.path}: {dtype}`"
                raise DataError("E0758", message, help=help_line)
        return self


class DefinitionProgram(ComponentProgram):
    """The program of what a definition returns, of an array for each thing that a run of it reads."""

    __slots__ = ("_shaped", "_solved")

    def __init__(self, solved: SolvedDefinition) -> None:
        """For a definition that keeps no state, its shapes known."""
        returned = [n for n, each in enumerate(solved.results) if each.role == "return"]
        super().__init__(Wires(len(solved.needed), len(returned), 1))
        whole = solved.shaped()
        outputs = tuple(whole.outputs[n] for n in returned)
        self._shaped = pruned(replace(whole, outputs=outputs))
        self._solved = solved

    def graph(self) -> Graph:
        """A graph of the inputs alone: their names are all that is asked of it."""
        nodes = tuple(Input(self._name(cell), cell.span) for cell in self._solved.needed)
        return Graph(self._solved.name, nodes, tuple(range(len(nodes))), ())

    def _name(self, cell: Any) -> str:
        return str(self._solved.built.paths.get(cell, cell.name))

    def output_names(self) -> list[str]:
        """The names of results."""
        count = self.wires.outputs
        return ["out"] if count == 1 else [f"out{n}" for n in range(count)]

    def infer(self, dtypes: tuple[str | None, ...] | None, ranks: tuple[int, ...]) -> Shaped:
        """The program, whose types and shapes are known."""
        del dtypes, ranks  # ``PureCalls`` has checked them
        return self._shaped

    def shaped(
        self, shapes: Sequence[tuple[int, ...]] = (), dtypes: Sequence[object] | None = None
    ) -> Shaped:
        """The program, whose types and shapes are known."""
        del shapes, dtypes
        return self._shaped

    def text(self) -> str:
        """The text of the file."""
        return self._solved.name

    def shown(self) -> str:
        """The name of the definition."""
        return self._solved.name

    def written(self) -> tuple[Tree, Mapping[str, Definition]]:
        """Refuse to be combined. Raises DataError E0716."""
        message = "a definition for known shapes is no part of other components"
        raise DataError("E0716", message, help="call it on arrays")


class PureCalls:
    """The components of a definition, each for inputs of some shapes."""

    def __init__(self, model: Model, name: str) -> None:
        self._model = model
        self._name = name
        self._known: dict[object, PureCall] = {}

    def ends(self) -> tuple[int, int]:
        """The number of inputs, and of results."""
        results = self._model.built(options_of(self._name, None, None, {})).results
        return len(self._model.inputs(self._name)), sum(each.role == "return" for each in results)

    def of(
        self, shapes: Sequence[tuple[int, ...]], config: Any = None, parameters: bool = False
    ) -> PureCall:
        """The component for inputs of these shapes, made once; ``parameters``: those may come after the inputs.

        Raises:
            DataError: E0750 (configuration), E0756 (number of inputs), E0764 (it has parameters, or keeps state).
                Error: shapes that do not fit.
        """
        if config is not None:
            check_named("configuration values", config, "E0750", CONFIG_EXAMPLE)
        key = *shapes, repr(sorted(config.items())) if config else "", parameters
        make = partial(self._made, shapes, config, parameters)
        return kept(self._known, key, make, KEPT)

    def _made(self, shapes: Sequence[tuple[int, ...]], config: Any, parameters: bool) -> PureCall:
        heads = self._model.inputs(self._name)
        if len(heads) != len(shapes):
            raise miscounted(self._name, [each.name for each in heads], len(shapes))
        rows = {
            each.name: rows_of_extents(shape, each.shape)
            for each, shape in zip(heads, shapes, strict=True)
        }
        options = replace(options_of(self._name, None, config, {}), shapes=rows)
        return _pure(SolvedDefinition(self._model, options), parameters)


def _pure(solved: SolvedDefinition, parameters: bool) -> PureCall:
    _refuse_kept(solved, parameters)
    given = [cell for kind in ("input", "parameter") for cell, _ in solved.cells(kind)]
    numbers = Settings(solved.built, solved.config, solved.float, RLock()).arrays
    constants = solved.constants()
    sources = tuple(
        given.index(cell)
        if cell in given
        else numbers[cell.name]
        if cell.kind == "setting"
        else constants[cell]
        for cell in solved.needed
    )
    tensors = (*solved.tensors("input"), *solved.tensors("parameter"))
    return PureCall(Component(DefinitionProgram(solved)), sources, tensors)


def _refuse_kept(solved: SolvedDefinition, parameters: bool) -> None:
    """Refuse a definition whose runs change what it keeps. Raises DataError E0764."""
    state = [each.path for each in solved.tensors("declared")]
    state += [each.path for each in solved.results if each.role in ("parameter", "merged")]
    lasting = state or ([] if parameters else [each.path for each in solved.tensors("parameter")])
    if lasting:
        reason = "changes what it keeps" if state else "has parameters"
        message = f"no gradient flows to the inputs of {solved.name}, which {reason}: {lasting[0]}"
        help_line = (
            "leave the change out of it: PyTorch and JAX change parameters themselves"
            if state
            else f"ilang.torch.Network(m.{solved.name}, ...) has parameters of PyTorch; for JAX, write them as inputs"
        )
        raise DataError("E0764", message, help=help_line)
