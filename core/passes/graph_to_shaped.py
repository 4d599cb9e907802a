"""Inference: ranks, extents and element types of every value.

Example:
    in:   n2 = mul in0[i,k] in1[k,j];  n3 = sum n2[i,j,k] over k;  in0 and in1 f32
    out:  in0 f32 [i,k]   in1 f32 [k,j]   t1 f32 [i,j,k]   out f32 [i,j]   sizes i k j at run time
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.diagnostic import ElementTypeError, InternalError, Label, ShapeError
from ilang.core.dtype import accumulator, arithmetic
from ilang.core.infer.dtypes import type_scalar
from ilang.core.infer.extents import Extents
from ilang.core.infer.fit import fit_shaped
from ilang.core.infer.ranks import infer_ranks
from ilang.core.ir import graph, shaped
from ilang.core.ir.affine import walks
from ilang.core.ir.scalar import Apply, Constant, Convert, Operand, Scalar
from ilang.core.names import Names
from ilang.core.ops import OPS, PRIMITIVES
from ilang.core.record import replace
from ilang.core.source import Span

LETTERS = "ijklmnopqrstuvwxyzabcdefgh"


def graph_to_shaped(
    program: graph.Graph,
    dtypes: Sequence[str | None] | None = None,
    ranks: Sequence[int] | None = None,
    shapes: Sequence[tuple[int, ...]] | None = None,
) -> shaped.Shaped:
    """Infer everything; ``dtypes`` and ``ranks`` are those of the arrays, ``shapes`` fixes every extent.

    Raises:
        ShapeError: E05 (ranks and extents), E0508 (a rank that nothing determines).
        ElementTypeError: E06.
    """
    if shapes is not None:
        ranks = [len(shape) for shape in shapes]
    found = infer_ranks(program, ranks)
    known = [rank for rank in found if rank is not None]
    if len(known) < len(found):
        raise _undetermined(program, found)
    return _Shaping(program, known, dtypes or [None] * len(program.inputs)).run(shapes)


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


class _Shaping:
    """One run of the inference over a graph whose ranks are known."""

    def __init__(
        self, program: graph.Graph, ranks: list[int], dtypes: Sequence[str | None]
    ) -> None:
        self.program = program
        self.ranks = ranks
        self.dtypes = _input_dtypes(program, dtypes)
        self.extents = Extents(program, ranks)
        self.nodes: list[shaped.Node] = []
        self.tensors: list[shaped.Tensor] = []
        self.number: dict[int, int] = {}  # value of the graph -> value of the shaped graph
        self.constants: dict[int, Constant] = {}

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
            self.extents.derived,
            self.extents.bounds,
            tuple(self.number[value] for value in self.program.inputs),
            tuple(outputs),
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
            case _:
                raise InternalError(
                    "E9901", "an operation over rows reached the inference of letters"
                )

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
        for operand, read in enumerate(node.reads):
            if read.value in self.constants:
                delivered.append(self.constants[read.value])
                continue
            source = self.number[read.value]
            delivered.append(Operand(len(reads), self.tensors[source].dtype))
            outside = self.extents.outside(value, read)
            reads.append(shaped.Read(source, read.index, outside))
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
        )
        self._add(value, result, dtype)

    def _add(self, value: int, node: shaped.Node, dtype: str) -> None:
        self.number[value] = len(self.nodes)
        self.nodes.append(node)
        dims = tuple(self.extents.of(value, dim) for dim in range(self.ranks[value]))
        self.tensors.append(shaped.Tensor("", dtype, dims))

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
        sizes = tuple(self.extents.of(value, dim) for dim in range(self.ranks[value]))
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


def reduced_scalar(
    written: Scalar, acc: str | None, delivered: Sequence[Scalar], span: Span
) -> tuple[Scalar, str]:
    """The typed scalar of an assignment, and the type of its result."""
    scalar = type_scalar(written, delivered, span)
    assert scalar.dtype is not None
    if acc is not None:
        primitive = OPS[acc].binary
        assert primitive is not None
        if PRIMITIVES[primitive].kind == "logic":
            scalar = Apply("truth", (scalar,), "bool")
        elif scalar.dtype == "bool":
            scalar = Convert(scalar, arithmetic("bool"))
    dtype = scalar.dtype
    assert dtype is not None
    return scalar, dtype


def name_tensors(
    program: graph.Graph, outputs: list[int], number: dict[int, int], count: int
) -> list[str]:
    """Names of tensors in loops and messages: inputs by their name, ``out``, and ``t1``, ``t2``, ... between."""
    names = [""] * count
    for position, value in enumerate(program.inputs):
        if value in number:
            names[number[value]] = program.input_name(position)
    unique = Names(frozenset(names))
    for position, value in enumerate(outputs):
        names[value] = unique.fresh("out" if len(outputs) == 1 else f"out{position}")
    serial = 0
    for value, name in enumerate(names):
        if not name:
            serial += 1
            names[value] = unique.fresh(f"t{serial}")
    return names
