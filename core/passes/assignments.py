"""Operations as accumulating assignments: from the projections of an operation to shaped nodes.

Example:
    in:   einsum `a; b => a^b` of n0[a] n1[b]: two projections, out[a] = n0[a] and out[b + a] = n1[b]
    out:  t1 = 0 for o;  t2 = t1 with t2[a] = n0[a];  out = t2 with out[b + a] = n1[b]

An operation with one projection that writes all of its result is one assignment. Any other operation starts from a
tensor full of the neutral element: each of its projections then takes the place of what is there so far, reduced
beforehand where it sums, accumulating in place where several iterations may write one element.

Extents are size numbers: those of a solved graph are all known, those of a program may come at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ilang.core.calculus import affine
from ilang.core.diagnostic import ElementTypeError, Label, ScheduleError
from ilang.core.dtype import INTEGERS, accumulator, arithmetic, join
from ilang.core.infer.dtypes import type_scalar
from ilang.core.ir import graph, shaped
from ilang.core.ir.assignments import whole_index, writes_all
from ilang.core.ir.ids import ValueId
from ilang.core.ir.operation import Operation, Slice
from ilang.core.ir.scalar import (
    Apply,
    Constant,
    Convert,
    Operand,
    Position,
    Scalar,
    converted,
    folded,
    neutral,
    operands_of,
    scalars_within,
)
from ilang.core.ir.syntax import Schedule
from ilang.core.names import Names
from ilang.core.ops import ARGUMENTS, OPS, PRIMITIVES
from ilang.core.record import replace
from ilang.core.source import Span

if TYPE_CHECKING:  # few programs have operations
    from ilang.core.infer.projections import Index, OperationLoop, Projection


class Assignments:
    """Shaped nodes under construction, of ``solved_to_shaped.py``."""

    def __init__(
        self,
        size_of: Callable[[OperationLoop], int],
        fixed: Callable[[int], int | None],
        least: str = "f32",
    ) -> None:
        """Begin with no nodes.

        Args:
            size_of: gives the size number of a loop.
            fixed: the extent of a size number where it is known.
            least: the float that is a constant which meets nothing.
        """
        self.size_of = size_of
        self.fixed = fixed
        self.least = least
        self.nodes: list[shaped.Node] = []
        self.tensors: list[shaped.Tensor] = []
        self.number: dict[int, ValueId] = {}  # value of the graph -> value of the shaped graph
        self.constants: dict[int, Constant] = {}
        self.open: dict[int, dict[str, ValueId]] = {}  # open value -> its shaped value in each type
        self.meets: str | None = None  # the type of what is open in the node under construction
        self.alone: str | None = None  # the float that literals are there which meet nothing

    def add(self, node: shaped.Node, dtype: str, dims: Sequence[int]) -> ValueId:
        """Add a node; the number of its value."""
        self.nodes.append(node)
        self.tensors.append(shaped.Tensor("", dtype, tuple(dims)))
        return ValueId(len(self.nodes) - 1)

    def plain(
        self,
        dims: Sequence[int],
        source: ValueId | None,
        scalar: Scalar,
        text: str,
        span: Span,
        names: Sequence[str] = (),
    ) -> ValueId:
        """Every element of a tensor from the same element of ``source``, or from a constant; ``names`` of its axes."""
        long, target = whole_index(dims, self.fixed)
        reads = () if source is None else (shaped.Read(source, target),)
        axes = tuple(graph.Axis(names[d] if names else f"o{d}", None, span) for d in long)
        sizes = tuple(dims[dim] for dim in long)
        assert scalar.dtype is not None
        assignment = shaped.Assignment(axes, sizes, target, reads, scalar, None, None, text, span)
        return self.add(assignment, scalar.dtype, dims)

    def filled(self, constant: Constant, dims: Sequence[int], text: str, span: Span) -> ValueId:
        """A tensor of one constant."""
        return self.plain(dims, None, constant, text, span)

    def operation(
        self, value: int, node: Operation, dims: Sequence[int], projections: Sequence[Projection]
    ) -> None:
        """The nodes of an operation whose projections are known; ``number`` gets its value.

        Raises:
            ElementTypeError: E06.
        """
        self.number[value] = self._made(node, dims, projections)

    def _made(
        self, node: Operation, dims: Sequence[int], projections: Sequence[Projection]
    ) -> ValueId:
        if self.meets is None and 1 < len(projections):
            self.meets = self._type(node)
        parts = [self._typed(node, projection) for projection in projections]
        first = parts[0] if parts else None
        if first is not None and len(parts) == 1 and writes_all(first, dims, self.fixed):
            return self.add(_scheduled(first, len(node.operands)), _dtype_of(first), dims)
        if node.schedule is not None:
            raise _in_steps(node, node.schedule)
        return self._in_parts(node, dims, projections, parts)

    def _typed(self, node: Operation, projection: Projection) -> shaped.Assignment:
        reads, delivered, skipped = self._reads(node, projection)
        used = operands_of(node.scalar)
        scalar = node.scalar
        if len(projection.reads) < len(node.operands):
            scalar = _restricted(scalar, {operand for operand, _ in projection.reads})
        kept = affine.variables_of(projection.target)
        loops = list(projection.loops)
        if len(kept) == len(loops) and skipped:
            from ilang.core.infer.projections import OperationLoop

            loops.append(OperationLoop("once", 1))  # a maximum of what is read, or of nothing
        acc, target = node.acc if len(kept) < len(loops) else None, projection.target
        typed, dtype = self.reduced_scalar(scalar, acc, delivered, node.span)
        if acc == "+" and not reads and not skipped:  # so many equal terms are one product
            over = [self.size_of(loop) for n, loop in enumerate(loops) if n not in kept]
            counts = [converted(Position(affine.size_value(size), "i64"), dtype) for size in over]
            typed = folded("mul", [typed, *counts], dtype)
            number = {axis: n for n, axis in enumerate(sorted(kept))}
            loops = [loop for n, loop in enumerate(loops) if n in kept]
            acc, target = None, tuple(index.renamed(number) for index in target)
        return shaped.Assignment(
            tuple(graph.Axis(loop.name, None, node.span) for loop in loops),
            tuple(self.size_of(loop) for loop in loops),
            target,
            tuple(reads),
            typed,
            acc,
            node.schedule,
            node.text,
            node.span,
            operands=tuple(
                operand
                for operand, _ in projection.reads
                if node.operands[operand] not in self.constants
                and (operand in used or operand in projection.beyond)
            ),
            guards=tuple(skipped),
            associative=node.associative,
        )

    def _reads(
        self, node: Operation, projection: Projection
    ) -> tuple[list[shaped.Read], list[Scalar], list[affine.Within]]:
        """The reads of a projection, the scalar that each operand delivers, and the guards of the whole assignment.

        An operand that may be read past its end is 0 there in a sum; any other reduction leaves such terms out.
        """
        reads: list[shaped.Read] = []
        delivered: list[Scalar] = [Constant(0) for _ in node.operands]
        skipped: list[affine.Within] = []
        used = operands_of(node.scalar)
        for operand, index in projection.reads:
            source = node.operands[operand]
            if operand not in used and operand not in projection.beyond:
                continue
            if source in self.constants:
                delivered[operand] = self.constants[source]
                continue
            value = self.number[source]
            place = self._looked(node, operand, index)
            delivered[operand] = Operand(len(reads), self.tensors[value].dtype)
            ends = operand in projection.beyond
            guards = affine.inside(index, self.tensors[value].dims) if ends else ()
            skipped += guards if node.acc != "+" else ()
            reads.append(shaped.Read(value, place, guards if node.acc == "+" else ()))
        return reads, delivered, skipped

    @staticmethod
    def is_position(node: Operation, operand: int) -> bool:
        """Whether an operand says where another is read."""
        return isinstance(node.logic, Slice) and node.logic.position is None and operand == 1

    def _looked(self, node: Operation, operand: int, index: Index) -> Index:
        """The index of a read, its first part looked up where the position of a slice comes at run time.

        Raises:
            ElementTypeError: E0605 (what is looked up is no integer).
        """
        if operand != 0 or not self.is_position(node, 1):
            return index
        source = self.number[node.operands[1]]
        dtype = self.tensors[source].dtype
        if dtype not in INTEGERS:
            message = f"a position is a whole number, and what gives it is {dtype}"
            help_line = "write its type in the head: `op f(x, n: i64)`"
            raise ElementTypeError("E0605", message, node.span, help_line)
        size = self.tensors[self.number[node.operands[0]]].dims[0]
        return (affine.Affine((), looked=((1, affine.Looked(source, (), size)),)), *index[1:])

    def _type(self, node: Operation) -> str:
        delivered: list[Scalar] = [
            self.constants[value]
            if value in self.constants
            else Operand(number, self.tensors[self.number[value]].dtype)
            for number, value in enumerate(node.operands)
        ]
        return self.reduced_scalar(node.scalar, node.acc, delivered, node.span)[1]

    def _in_parts(
        self,
        node: Operation,
        dims: Sequence[int],
        projections: Sequence[Projection],
        parts: list[shaped.Assignment],
    ) -> ValueId:
        """A tensor of neutral elements, and every projection in place of what is there so far."""
        moved = joined([_dtype_of(part) for part in parts] or [self._type(node)], node.span)
        chosen = [projection.part for projection in projections]
        disjoint = len(set(chosen)) == len(chosen)
        once = [disjoint and _unreduced(each).is_injective() for each in projections]
        dtype = moved if all(once) else self._added(moved, node.acc)
        held = dtype if all(once) else accumulator(node.acc, dtype)
        number = self.filled(neutral(node.acc, held), dims, f"{shaped.START}{node.text}", node.span)
        for projection, part, alone in zip(projections, parts, once, strict=True):
            first = self._reduced_first(part) if part.acc is not None else part
            scalar = converted(first.scalar, held)
            acc = None if alone else node.acc
            leaves = len(node.operands) in projection.beyond
            guards = first.guards + (affine.inside(first.target, dims) if leaves else ())
            stored = replace(first, scalar=scalar, acc=acc, base=number, guards=guards)
            number = self.add(stored, held, dims)
        if held == dtype:
            return number
        rounded = Convert(Operand(0, held), dtype)
        return self.plain(dims, number, rounded, f"{dtype} of {node.text}", node.span)

    def scattered(
        self,
        node: shaped.Assignment,
        base: ValueId | None,
        dims: Sequence[int],
        names: Sequence[str],
    ) -> ValueId:
        """A tensor of neutral elements, or a copy of a base, in which elements that are looked up are written.

        ``names`` are those of its axes.

        in:   out[in0[i]] += in1[i] over 10 elements, of f32
        out:  t1 = 0, of f64;  t2 = t1 with t2[in0[i]] += in1[i];  out = t2, of f32
        """
        dtypes = [_dtype_of(node)] + ([] if base is None else [self.tensors[base].dtype])
        dtype = joined(dtypes, node.span)
        held = dtype if node.acc is None else accumulator(node.acc, dtype)
        text = f"{shaped.START}{node.text}"
        if base is None:
            assert node.acc is not None
            start: Scalar = neutral(node.acc, held)
        else:
            start = converted(Operand(0, self.tensors[base].dtype), held)
        number = self.plain(dims, base, start, text, node.span, names)
        scalar = converted(node.scalar, held)
        number = self.add(replace(node, scalar=scalar, base=number), held, dims)
        if held == dtype:
            return number
        rounded = Convert(Operand(0, held), dtype)
        return self.plain(dims, number, rounded, f"{dtype} of {node.text}", node.span, names)

    def reduced_scalar(
        self, written: Scalar, acc: str | None, delivered: Sequence[Scalar], span: Span
    ) -> tuple[Scalar, str]:
        """The typed scalar of an assignment, and the type of its result."""
        scalar = type_scalar(written, delivered, span, self.least, self.meets, self.alone)
        assert scalar.dtype is not None
        if acc is None:
            return scalar, scalar.dtype
        if is_logic(acc):
            return Apply("truth", (scalar,), "bool"), "bool"
        dtype = self._added(scalar.dtype, acc)
        return converted(scalar, dtype), dtype

    def _added(self, dtype: str, acc: str) -> str:
        """The type of what an operator puts together out of values: sums, products and maxima of bools are floats."""
        return dtype if is_logic(acc) else arithmetic(dtype, self.least)

    def _reduced_first(self, node: shaped.Assignment) -> shaped.Assignment:
        """The reduction as a tensor over the kept loops, and the assignment that stores it."""
        kept = sorted(set(node.output_axes()))
        place = {axis: n for n, axis in enumerate(kept)}
        dims = [node.sizes[axis] for axis in kept]
        inner = replace(node, target=tuple(affine.axis_index(axis) for axis in kept))
        number = self.add(inner, _dtype_of(node), dims)
        index = tuple(affine.axis_index(n) for n in range(len(kept)))
        return replace(
            node,
            axes=tuple(node.axes[axis] for axis in kept),
            sizes=tuple(node.sizes[axis] for axis in kept),
            target=tuple(part.renamed(place) for part in node.target),
            reads=(shaped.Read(number, index),),
            scalar=Operand(0, _dtype_of(node)),
            acc=None,
            schedule=None,
            operands=(),
            guards=(),
        )


def _scheduled(node: shaped.Assignment, operands: int) -> shaped.Assignment:
    """An assignment with the schedule of its operation, checked now that its axes are known.

    Raises:
        ScheduleError: E0301 to E0312.
    """
    if node.schedule is None:
        return node
    axes = tuple(axis.name for axis in node.axes)
    kept = frozenset(axes[axis] for axis in node.output_axes())
    from ilang.core.ir.schedule import resolved
    from ilang.core.notation.index.schedule_rules import ScheduleTarget, check_schedule

    schedule = resolved(node.schedule, axes)
    check_schedule(schedule, ScheduleTarget(axes, kept, operands))
    return replace(node, schedule=schedule)


def _in_steps(node: Operation, schedule: Schedule) -> ScheduleError:
    return ScheduleError(
        "E0330",
        "this specification becomes several assignments, and a schedule is that of one",
        schedule.span,
        "leave the schedule out: the compiler chooses one for each",
        [Label(node.span, "a concatenation, a window of the result or a fixed index there")],
    )


def _unreduced(projection: Projection) -> Projection:
    kept = sorted(affine.variables_of(projection.target))
    place = {axis: n for n, axis in enumerate(kept)}
    target = tuple(part.renamed(place) for part in projection.target)
    return replace(projection, loops=tuple(projection.loops[axis] for axis in kept), target=target)


def _restricted(scalar: Scalar, read: set[int]) -> Scalar:
    """The scalar of a projection that reads some operands only: theirs, the others left out of it."""
    operands = [
        part for part in scalars_within(scalar) if isinstance(part, Operand) and part.number in read
    ]
    primitives = [part.primitive for part in scalars_within(scalar) if isinstance(part, Apply)]
    return folded(primitives[0] if primitives else "add", operands)


def joined(dtypes: Sequence[str], span: Span) -> str:
    """The one type of parts of a result."""
    dtype: str | None = dtypes[0]
    for other in dtypes[1:]:
        dtype = None if dtype is None else join(dtype, other)
    if dtype is None:
        raise ElementTypeError(
            "E0601",
            f"parts of one result are {' and '.join(dict.fromkeys(dtypes))}: integer beside float",
            span,
            "convert one of them",
        )
    return dtype


def is_logic(acc: str) -> bool:
    """Whether a reduction is one of truth values."""
    primitive = OPS[acc].binary
    assert primitive is not None
    return PRIMITIVES[primitive].kind == "logic"


def _dtype_of(node: shaped.Assignment) -> str:
    assert node.scalar.dtype is not None
    return node.scalar.dtype


def name_tensors(
    program: graph.Graph,
    outputs: Sequence[int],
    given: Sequence[int],
    number: Mapping[int, int],
    words: Sequence[str],
) -> list[str]:
    """Names of tensors in loops and messages: as the text calls them, else ``out``, and words for those between.

    Args:
        program: the graph.
        outputs: those of its values that are results.
        given: the tensor of each result.
        number: the tensors of values.
        words: a word for each tensor: its definition, or what it is.
    """
    names = [""] * len(words)
    for position, value in enumerate(program.inputs):
        if value in number:
            names[number[value]] = program.input_name(position)
    unique = Names(frozenset(names))
    for tensor, name in zip(given, program.output_names(outputs), strict=True):
        names[tensor] = unique.fresh(name)
    for value, name in program.inner_names(outputs).items():
        if value in number:
            names[number[value]] = unique.fresh(name)
    return [name or unique.fresh(word) for name, word in zip(names, words, strict=True)]


def word_of(node: shaped.Node) -> str:
    """A word for the values of a node: of what its formula ends in."""
    if not isinstance(node, shaped.Assignment):
        return "view"
    scalar = node.scalar
    while isinstance(scalar, Convert):
        scalar = scalar.argument
    if node.text[:2] in ARGUMENTS:
        return "argmax" if node.text.startswith(">") else "argmin"
    if node.acc is not None:
        return OPS[node.acc].word
    return PRIMITIVES[scalar.primitive].formula.word if isinstance(scalar, Apply) else "values"
