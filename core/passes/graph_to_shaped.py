"""Inference: ranks, extents and element types of every value.

Example:
    in:   n2 = mul in0[i,k] in1[k,j];  n3 = sum n2[i,j,k] over k;  in0 and in1 f32
    out:  in0 f32 [i,k]   in1 f32 [k,j]   t1 f32 [i,j,k]   out f32 [i,j]   sizes i k j at run time
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.diagnostic import ElementTypeError, InternalError, Label, ShapeError
from ilang.core.dtype import accumulator
from ilang.core.infer.counting import Flat, axis_says, variable_says
from ilang.core.infer.dtypes import type_scalar
from ilang.core.infer.extents import Extents
from ilang.core.infer.fit import fit_shaped
from ilang.core.infer.projections import Loop, Measure, Specified
from ilang.core.infer.ranks import Ranks, infer_ranks
from ilang.core.ir import graph, shaped
from ilang.core.ir.affine import Affine, Within, walks
from ilang.core.ir.operation import Einsum, Operation
from ilang.core.ir.rows import MEMORY_ORDER
from ilang.core.ir.scalar import Constant, Operand, Scalar
from ilang.core.passes.assembly import Assembly, name_tensors, reduced_scalar
from ilang.core.record import replace
from ilang.core.source import Span

LETTERS = "ijklmnopqrstuvwxyzabcdefgh"


def graph_to_shaped(
    program: graph.Graph,
    dtypes: Sequence[str | None] | None = None,
    ranks: Sequence[int | None] | None = None,
    shapes: Sequence[tuple[int, ...]] | None = None,
    few: Sequence[Sequence[bool]] = (),
) -> shaped.Shaped:
    """Infer everything; ``dtypes`` and ``ranks`` are those of the arrays, ``shapes`` fixes every extent.

    ``few`` says of every dimension of every array whether its extent is small (``shaped.Size``).

    Raises:
        ShapeError: E05 (ranks and extents), E0508 (a rank that nothing determines).
        ElementTypeError: E06.
    """
    if shapes is not None:
        ranks = [len(shape) for shape in shapes]
    found = infer_ranks(program, ranks)
    if None in found.of:
        raise _undetermined(program, found.of)
    made = _Shaping(program, found, dtypes or [None] * len(program.inputs)).run(shapes)
    return _classed(made, few) if few else made


def _classed(made: shaped.Shaped, few: Sequence[Sequence[bool]]) -> shaped.Shaped:
    """The program with its sizes marked that are few."""
    sizes = tuple(
        replace(size, few=any(few[place.number][place.dim] for place in size.places))
        for size in made.sizes
    )
    return replace(made, sizes=sizes)


class _RunTime(Measure):
    """Sizes of an einsum operation that come at run time, as size numbers."""

    def __init__(self, extents: Extents, value: int) -> None:
        self.extents = extents
        self.value = value

    def label(self, name: str) -> int:
        return self.extents.of_label(self.value, name)

    def loop(self, name: str, size: int) -> Loop | None:
        return Loop(name, self.extents.sizes[size].fixed, size)

    def shift(self, size: int) -> Affine:
        fixed = self.extents.sizes[size].fixed
        return Affine((), fixed) if fixed is not None else Affine((), sizes=((1, size),))

    def half(self, dilation: int, size: int, span: Span) -> Affine:
        fixed = self.extents.sizes[size].fixed
        if fixed is not None:
            return Affine((), (dilation * (fixed - 1) + 1) // 2)
        return self.shift(self.extents.half(dilation, size, span))


def _size_of(loop: Loop) -> int:
    assert loop.size is not None
    return loop.size


def _rows(dims: Sequence[int], rows: Sequence[Sequence[object]]) -> list[list[int]]:
    """The size numbers of three rows, from those of the dimensions in memory order."""
    found: dict[int, list[int]] = {}
    first = 0
    for kind in MEMORY_ORDER:
        found[kind] = list(dims[first : first + len(rows[kind])])
        first += len(rows[kind])
    return [found[kind] for kind in range(len(rows))]


def _undetermined(program: graph.Graph, ranks: Sequence[int | None]) -> ShapeError:
    number = next((n for n, value in enumerate(program.inputs) if ranks[value] is None), 0)
    name = program.input_name(number)
    span = program.nodes[program.inputs[number]].span
    return ShapeError(
        "E0508",
        f"nothing says what rank {name} has",
        span,
        f"give its shape (--shape), its dimensions in a definition ({name}[n,m]), or an expression that reads it",
    )


class _Shaping(Assembly):
    """One run of the inference over a graph whose ranks are known."""

    def __init__(self, program: graph.Graph, found: Ranks, dtypes: Sequence[str | None]) -> None:
        self.program = program
        self.found = found
        self.rows: list[shaped.Rows] = []
        self.ranks = [rank for rank in found.of if rank is not None]
        self.dtypes = _input_dtypes(program, dtypes)
        self.extents = Extents(program, self.ranks, found.lengths)
        super().__init__(_size_of, lambda number: self.extents.sizes[number].fixed)

    def run(self, shapes: Sequence[tuple[int, ...]] | None) -> shaped.Shaped:
        for value, node in enumerate(self.program.nodes):
            self._node(value, node)
        outputs = self._outputs()
        names = name_tensors(self.program, outputs, self.number, len(self.nodes))
        result = shaped.Shaped(
            self.program.name,
            tuple(self.nodes),
            tuple(replace(t, name=name) for t, name in zip(self.tensors, names, strict=True)),
            self.extents.sizes,
            tuple(self.extents.derived),
            self.extents.bounds,
            tuple(self.number[value] for value in self.program.inputs),
            tuple(outputs),
            tuple(self.rows),
            self._counted(),
            self.extents.guessed_sizes(),
        )
        self._check_claims(result)
        if shapes is None:
            return result
        fixed = fit_shaped(result, shapes)
        sizes = tuple(replace(size, fixed=n) for size, n in zip(result.sizes, fixed, strict=True))
        return replace(result, sizes=sizes)

    def _node(self, value: int, node: graph.Node) -> None:
        match node:
            case graph.Input():
                # The wiring numbers inputs first, so the value of an input is its position.
                self._add(value, shaped.Input(value, node.span), self.dtypes[value])
            case graph.Assignment():
                if not node.reads and isinstance(node.scalar, Constant):
                    self.constants[value] = node.scalar
                    return
                self._assignment(value, node)
            case graph.Elementwise():
                if node.value in self.constants:
                    folded = type_scalar(node.scalar, [self.constants[node.value]], node.span)
                    assert isinstance(folded, Constant)
                    self.constants[value] = folded
                    return
                self._assignment(value, self._spread(value, node))
            case Operation() if isinstance(node.logic, Einsum):
                rows = self.extents.specifications[value].rows
                values = (*node.operands, value)
                shapes = [
                    _rows(self._dims(each), its) for each, its in zip(values, rows, strict=True)
                ]
                self._note(node.operands, rows)
                made = Specified(node.logic.spec, shapes, _RunTime(self.extents, value))
                self.operation(value, node, self._dims(value), list(made.run()))
                self._note((value,), rows[-1:])
            case _:
                raise InternalError(
                    "E9901", "an operation over rows reached the inference of letters"
                )

    def _note(self, values: Sequence[int], rows: Sequence[Flat]) -> None:
        """Note the rows of values."""
        for value, (batch, inner, output) in zip(values, rows, strict=False):
            if value in self.number:
                axes = tuple(map(axis_says, (*batch, *output, *inner)))
                self.rows.append(shaped.Rows(self.number[value], axes, len(batch), len(inner)))

    def _counted(self) -> tuple[shaped.Counted, ...]:
        """What is known of row variables, in the order in which they were found."""
        found = self.found
        return tuple(
            shaped.Counted(
                variable_says(variable[1]),
                length,
                found.reasons[variable],
                variable in found.assumed,
                self.program.nodes[variable[0]].span,
            )
            for variable, length in found.lengths.items()
        )

    def _dims(self, value: int) -> tuple[int, ...]:
        """The size numbers of the dimensions of a value."""
        return tuple(self.extents.of(value, dim) for dim in range(self.ranks[value]))

    def _spread(self, value: int, node: graph.Elementwise) -> graph.Assignment:
        """An elementwise node as the assignment it is, now that its rank is known."""
        letters = [LETTERS[dim % 26] for dim in range(self.ranks[value])]
        axes = tuple(graph.Axis(letter, None, node.span) for letter in letters)
        index = tuple(walks(axis) for axis in range(len(axes)))
        spans = tuple(node.span for _ in axes)
        read = graph.Read(node.value, index, False, spans, node.span)
        return graph.Assignment(axes, index, (read,), node.scalar, None, None, node.text, node.span)

    def _assignment(self, value: int, node: graph.Assignment) -> None:
        delivered: list[Scalar] = []
        reads: list[shaped.Read] = []
        operands: list[int] = []
        guards: list[Within] = []
        for operand, read in enumerate(node.reads):
            if read.value in self.constants:
                delivered.append(self.constants[read.value])
                continue
            source = self.number[read.value]
            delivered.append(Operand(len(reads), self.tensors[source].dtype))
            leaving = self.extents.guards(value, read)
            guards += leaving if read.skips else ()
            reads.append(shaped.Read(source, read.index, () if read.skips else leaving))
            operands.append(operand)
        scalar, dtype = reduced_scalar(node.scalar, node.acc, delivered, node.span)
        result = shaped.Assignment(
            node.axes,
            tuple(self.extents.of_axis(value, axis) for axis in range(len(node.axes))),
            node.target,
            tuple(reads),
            scalar,
            node.acc,
            dtype if node.acc is None else accumulator(node.acc, dtype),
            node.schedule,
            node.text,
            node.span,
            operands=tuple(operands) if len(operands) < len(node.reads) else (),
            guards=tuple(guards),
        )
        self._add(value, result, dtype)

    def _add(self, value: int, node: shaped.Node, dtype: str) -> None:
        self.number[value] = self.add(node, dtype, self._dims(value))

    def _outputs(self) -> list[int]:
        """Every output as a value of its own: inputs, constants and repeated outputs are copied."""
        outputs: dict[int, None] = {}
        for value in self.program.outputs:
            number = self.number.get(value)
            if number is None or number in outputs or isinstance(self.nodes[number], shaped.Input):
                number = self._copy(value)
            outputs[number] = None
        return list(outputs)

    def _copy(self, value: int) -> int:
        node = self.program.nodes[value]
        copied = self._spread(value, graph.Elementwise(value, Operand(0), "I", node.span))
        kept = self.number.get(value)
        if value in self.constants:
            text = node.text if isinstance(node, graph.Assignment) else "I"
            copied = replace(copied, reads=(), scalar=self.constants[value], text=text)
        self._unmapped(value, copied)
        number = self.number[value]
        if kept is not None:
            self.number[value] = kept
        return number

    def _unmapped(self, value: int, node: graph.Assignment) -> None:
        """Add a copy of a value: its axes have the sizes of the value's own dimensions."""
        sizes = self._dims(value)
        reads = tuple(shaped.Read(self.number[read.value], read.index) for read in node.reads)
        delivered = [Operand(0, self.tensors[read.value].dtype) for read in reads]
        scalar = type_scalar(node.scalar, delivered, node.span)
        assert scalar.dtype is not None
        made = shaped.Assignment(
            node.axes,
            sizes,
            node.target,
            reads,
            scalar,
            None,
            scalar.dtype,
            None,
            node.text,
            node.span,
        )
        self._add(value, made, scalar.dtype)

    def _check_claims(self, result: shaped.Shaped) -> None:
        """Element types written in definitions hold."""
        for claim in self.program.claims:
            number = self.number.get(claim.value)
            if claim.dtype is None or number is None:
                continue
            have = result.tensors[number].dtype
            if have != claim.dtype:
                message = f"{claim.name} is written as {claim.dtype}, but what it gets is {have}"
                help_line = f"convert it with the component {claim.dtype}, or pass {claim.dtype}"
                labels = [Label(claim.span, f"{claim.dtype} here")]
                raise ElementTypeError("E0604", message, claim.span, help_line, labels)


def _input_dtypes(program: graph.Graph, given: Sequence[str | None]) -> list[str]:
    """The type of each input: its array's, else the written one, else f32."""
    written = {claim.value: claim.dtype for claim in program.claims if claim.dtype is not None}
    return [
        dtype or written.get(value) or "f32"
        for value, dtype in zip(program.inputs, given, strict=True)
    ]
