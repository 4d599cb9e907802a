"""A tensor function or a routine on its way down: shapes, then element types, then gradients in their places.

Two steps of the pipeline are its own: ``build/program.py``, whose graph it begins with, and ``transform/attached.py``,
which puts what computes gradients in the place of what stands for them. Element types of state follow from what runs
assign to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, TypeVar

from ilang.core import pipeline
from ilang.core.build.tensor import Shape
from ilang.core.build.values import Measured, Stored
from ilang.core.diagnostic import DataError, ElementTypeError, MeaningError
from ilang.core.dtype import BYTES, INTEGERS
from ilang.core.infer.dtypes import widened_types
from ilang.core.infer.projections import sizes_of
from ilang.core.ir.operation import Noted, Operation
from ilang.core.ir.rows import MEMORY_ORDER, extent_of, known_axes
from ilang.core.record import record, replace
from ilang.core.suggestion import did_you_mean
from ilang.core.transform.extents import extents_in_place

if TYPE_CHECKING:
    from ilang.core.build.routines import Built
    from ilang.core.infer.inferred import Inferred
    from ilang.core.infer.solved import Solved
    from ilang.core.ir.rows import Known
    from ilang.core.ir.shaped import Shaped
    from ilang.core.ir.syntax import Module
    from ilang.core.source import Span

T = TypeVar("T")


@record
class LastingTensor:
    """A parameter, or state: its path, its shape, its element type."""

    path: str
    shape: Shape
    dtype: str

    def count(self) -> int:
        """The number of elements."""
        return prod(self.shape.memory())

    def space(self) -> int:
        """The number of bytes."""
        return self.count() * BYTES[self.dtype]


class TypedDefinition:
    """A definition whose shapes are inferred."""

    def __init__(self, name: str, built: Built, module: Module) -> None:
        """Infer the shapes of what was built of a definition of a module.

        Raises:
            Error: whatever is wrong with the text, the shapes or the configuration.
        """
        self.name = name
        self.built = built
        self.inferred: Inferred = pipeline.infer_rows(built.graph)
        inputs = [cell for cell, _ in built.inputs if cell.kind == "input"]
        wide = any(cell.dtype == "f64" for cell in inputs)
        self.dtype = "f64" if wide else "f32"
        self.results = built.results
        self.number = dict(built.inputs)
        from ilang.core.passes.solved_to_shaped import needed_values

        wanted = needed_values(built.graph, [each.number for each in self.results])
        read = [cell for cell, number in built.inputs if number in wanted]
        self.needed = [cell for cell in read if cell not in built.measured]
        self._measured = {n: cell for n, cell in enumerate(read) if cell in built.measured}

    @cached_property
    def solved(self) -> Solved:
        """The extents of everything that a run computes."""
        return pipeline.tensors_solved(self.inferred, [each.number for each in self.results])

    def dims(self, cell: Stored) -> tuple[int, ...]:
        """The extents of what a tensor keeps, in memory order."""
        return tuple(sizes_of(self.inferred.shapes[self.number[cell]]))

    def shape(self, cell: Stored) -> Shape:
        """The rows of the tensor."""
        rows = self.inferred.shapes[self.number[cell]]
        batch, inner, output = (tuple(map(extent_of, known_axes(row))) for row in rows)
        return Shape(batch, inner, output)

    def type_of(self, cell: Stored) -> str:
        """The element type: for state that of what a run assigns to it, for a sum over ranks that of its terms."""
        if cell.kind in ("declared", "merged"):
            return self._typed[1][cell]
        written = cell.dtype or self.built.integers.get(cell)
        return written or (self.dtype if cell.kind != "input" else "f32")

    def _size_of(self, cell: Stored) -> int:
        """The number of the size whose extent a cell stands for, which the text asks of an axis."""
        asked = cell.initial
        assert isinstance(asked, Measured)
        axis = _axis_called(self.inferred, self.built.measured[cell], asked.axis, asked.span)
        return self.solved.numbers.of(axis)

    @cached_property
    def _typed(self) -> tuple[Shaped, Mapping[Stored, str]]:
        """The typed graph, and the types of state and of sums over ranks.

        Raises:
            ElementTypeError: E06; E0604 (a parameter or state gets another type than it has). MeaningError: E0287.
        """
        for cell in self.built.measured:
            self._size_of(cell)
        assigned = self._assigned()
        state = self._state_types(assigned)
        shaped = self._shaped(state)
        place = dict(zip([each.number for each in self.results], shaped.outputs, strict=True))
        for cell, number in assigned.items():
            dtype = shaped.tensors[place[number]].dtype
            if dtype != state.get(cell, self.dtype):
                path = self.built.paths.get(cell, cell.name)
                raise _of_another_type(cell, path, self.dtype, dtype)
        for cell, dtype in state.items():
            if cell.kind == "merged" and dtype == "bool":
                message = f"`{cell.name}` would be a sum of truth values"
                help_line = "a product with 1 is a number: `hits *. 1`"
                raise MeaningError("E0287", message, cell.span, help_line)
        return shaped, state

    def _assigned(self) -> dict[Stored, int]:
        """The value that a run gives each parameter, each tensor of state and each sum over ranks."""
        kept = {self.built.paths[cell]: cell for cell in self.number if cell in self.built.paths}
        sums = iter(self.built.merged)
        assigned: dict[Stored, int] = {}
        for each in self.results:
            cell = kept.get(each.path) if each.role in ("parameter", "state") else None
            cell = next(sums) if each.role == "merged" else cell
            if cell is not None:
                assigned[cell] = each.number
        return assigned

    def _state_types(self, assigned: Mapping[Stored, int]) -> dict[Stored, str]:
        """The types of state and of sums over ranks, which follow from what is assigned to them."""
        cells = [cell for cell in self.number if cell.kind in ("declared", "merged")]
        types = widened_types(
            self.built.graph,
            self.solved.projections,
            dict(enumerate(self._dtypes(dict.fromkeys(cells)))),
            {self.number[cell]: assigned[cell] for cell in cells if cell in assigned},
            self.dtype,
        )
        return {cell: types.get(self.number[cell]) or self.dtype for cell in cells}

    def _dtypes(self, state: Mapping[Stored, T]) -> list[str | T]:
        dtypes: list[str | T] = [self.dtype] * len(self.built.graph.inputs)
        for cell, number in self.built.inputs:
            dtypes[number] = state[cell] if cell in state else self.type_of(cell)
        return dtypes

    def _shaped(self, state: Mapping[Stored, str]) -> Shaped:
        outputs = [each.number for each in self.results]
        try:
            return pipeline.tensors_shaped(self.solved, self._dtypes(state), outputs)
        except ElementTypeError as error:
            raise self._converting(error) from None

    def _converting(self, error: ElementTypeError) -> ElementTypeError:
        """An error for an integer beside a float; where an array of the text is the float, the help converts that."""
        if error.code != "E0601":
            return error
        read = {
            value
            for node in self.built.graph.nodes
            if isinstance(node, Operation) and node.span == error.span
            for value in node.operands
        }
        arrays = [cell for cell, n in self.built.inputs if n in read and cell.kind == "constant"]
        if len(arrays) != 1:
            return error
        integer = next(dtype for dtype in INTEGERS if dtype in error.message)
        text = arrays[0].span.brief()
        help_line = f"the numbers of `{text}` are {self.dtype}: write `{integer}({text})`"
        return error.with_help(help_line)

    def cells(self, kind: str) -> list[tuple[Stored, LastingTensor]]:
        """The tensors of one kind that a run keeps, in the order of evaluation; inputs in the order of the head."""
        paths = self.built.paths
        others = [cell for cell, _ in self.built.inputs if cell not in paths]
        return [
            (cell, LastingTensor(paths.get(cell, cell.name), self.shape(cell), self.type_of(cell)))
            for cell in (*paths, *others)
            if cell.kind == kind
        ]

    def tensors(self, kind: str) -> list[LastingTensor]:
        """The tensors of a kind, without the cells that the text has of them."""
        return [tensor for _, tensor in self.cells(kind)]

    def long_losses(self) -> list[tuple[int, Span, str]]:
        """Losses of other than one element that a run goes back from: how many, the statement, and one number."""
        graph = self.built.graph
        losses = [
            (prod(sizes_of(self.inferred.shapes[each.of])), each.span, graph.nodes[each.of].span)
            for each in graph.backward
        ]
        return [(n, span, _one_number(span, of)) for n, span, of in losses if n != 1]

    def merged(self) -> list[tuple[int, int, bool]]:
        """The inputs that are sums over ranks: position, that of the result that is summed, whether over all ranks."""
        sources = [n for n, each in enumerate(self.results) if each.role == "merged"]
        return [
            (self.needed.index(cell), source, whole)
            for (cell, whole), source in zip(self.built.merged.items(), sources, strict=True)
            if cell in self.needed
        ]

    def typed(self) -> Shaped:
        """The typed graph, gradients still inputs that stand for them."""
        return self._typed[0]

    def shaped(self) -> Shaped:
        """The typed graph, gradients attached; sizes that come at run time are called as the shapes say.

        Raises:
            DataError: E0766 (an extent that no array of a call has).
        """
        measured = {n: self._size_of(cell) for n, cell in self._measured.items()}
        shaped = extents_in_place(pipeline.gradients_attached(self.typed()), measured)
        self._check_measured(shaped)
        words = {
            (number, dim): size
            for number, cell in enumerate(self.needed)
            for dim, (size, _) in enumerate(
                axis for k in MEMORY_ORDER for axis in cell.rows[k] or ()
            )
            if isinstance(size, str)
        }
        names = [size.name for size in shaped.sizes]
        for n, size in enumerate(shaped.sizes if words else ()):
            word = next(filter(None, (words.get((p.number, p.dim)) for p in size.places)), None)
            if size.fixed is None and word is not None:
                if word in names:  # which another one has, maybe
                    names[names.index(word)] = names[n]
                names[n] = word
        sizes = zip(shaped.sizes, names, strict=True)
        return replace(shaped, sizes=tuple(replace(size, name=name) for size, name in sizes))

    def _check_measured(self, shaped: Shaped) -> None:
        """Refuse an extent that comes at run time, and that no array of a call has: DataError E0766."""
        derived = {rule.size for rule in shaped.derived}
        for cell in self._measured.values():
            number = self._size_of(cell)
            size = shaped.sizes[number]
            if size.fixed is None and not size.places and number not in derived:
                axis = cell.name.removeprefix("dim ")
                message = f"the size of {axis} comes at run time, and no array of a run has it"
                help_line = (
                    f"give {axis} as a number: `--shape 'x=50|2'`, where `x=n|2` leaves it open"
                )
                raise DataError("E0766", message, cell.span, help_line)

    def open_dims(self, cell: Stored) -> tuple[int | None, ...]:
        """The extents of what a tensor keeps, in memory order; None where one comes at run time."""
        rows = self.inferred.shapes[self.number[cell]]
        sizes = [axis.size for k in MEMORY_ORDER for axis in known_axes(rows[k])]
        return tuple(size if isinstance(size, int) else None for size in sizes)


def _one_number(statement: Span, loss: Span) -> str:
    """The statement that makes one number of a loss: the sum of the squares that it is, else of its own squares."""
    name = statement.text().removeprefix("backprop(").removesuffix(")")
    squares = re.fullmatch(r"(\w+) *\*\.? *\1|(\w+) *\*\*\. *2", loss.text())
    of = name if squares is None else squares[1] or squares[2]
    bound = name if squares is not None and name.isidentifier() else "error"
    return f'`{bound} = {of} *. {of} ++ "...|... => 0"` is the sum of the squares of {of}'


def _of_another_type(cell: Stored, path: str, dtype: str, other: str) -> ElementTypeError:
    message = f"`{path}` is {dtype}, and what is assigned to it is {other}"
    return ElementTypeError("E0604", message, cell.span, f"convert it: `{dtype}(...)`")


def _axis_called(inferred: Inferred, value: int, axis: str, span: Span) -> Known:
    """An axis of a value, by the letter that a head writes for it, or by its label: ``dim(x, "n")``.

    Args:
        inferred: the solved rows of the graph.
        value: which of its values.
        axis: the letter, the name or the label of the axis.
        span: where the text asks for it.

    Raises:
        MeaningError: E0289 (it has no such axis).
    """
    names: dict[str, Known] = {}
    rows = inferred.shapes[value]
    for label, known in zip(
        inferred.units(value), (a for k in (0, 2, 1) for a in known_axes(rows[k])), strict=True
    ):
        if label is not None:
            names.setdefault(label, known)
    for constraint in inferred.graph.constraints:
        if isinstance(constraint, Noted) and constraint.value == value:
            for note, row in zip(constraint.note.rows, rows, strict=True):
                axes = known_axes(row)
                for n, each in enumerate(note.leading):
                    names.setdefault(str(each.size), axes[n])
                for n, each in enumerate(reversed(note.trailing), 1):
                    names.setdefault(str(each.size), axes[-n])
    if axis in names:
        return names[axis]
    listed = f"it has {', '.join(names)}" if names else "write its shape in the head: `x[b|n]`"
    message = f"nothing calls an axis of this tensor {axis}"
    help_line = did_you_mean(axis, list(names), listed)
    raise MeaningError("E0289", message, span, help_line)
