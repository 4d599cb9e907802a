"""Operations over rows to accumulating assignments, once every row is solved.

Example:
    in:   n2 = einsum `a; b => a^b` of n0[3] n1[2]
    out:  t1 = 0 for o;  t2 = t1 with t2[a] = n0[a];  out = t2 with out[b+3] = n1[b]

An operation with one projection that writes all of its result is one assignment. Any other starts from a tensor full
of the neutral element: each of its projections then takes the place of what is there so far, reduced beforehand where
it sums, accumulating in place where several iterations write one element.
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.diagnostic import ElementTypeError, ShapeError
from ilang.core.dtype import INTEGER_ENDS, accumulator, join
from ilang.core.infer.operations import Inferred
from ilang.core.infer.projections import Projection, project, sizes_of
from ilang.core.ir import graph, shaped
from ilang.core.ir.affine import Affine, walks
from ilang.core.ir.operation import Operation, Terminal
from ilang.core.ir.scalar import Apply, Constant, Convert, Operand, Scalar, walk
from ilang.core.ops import OPS
from ilang.core.passes.graph_to_shaped import name_tensors, reduced_scalar
from ilang.core.record import record, replace
from ilang.core.source import Span


def operations_to_shaped(
    inferred: Inferred, dtypes: Sequence[str], outputs: Sequence[int]
) -> shaped.Shaped:
    """The assignments of a solved graph.

    Args:
        inferred: the graph and its rows.
        dtypes: the element type of each input of the graph.
        outputs: the values to give, operations or leaves; inputs that none of them needs are left out.

    Raises:
        ElementTypeError: E06.
    """
    return _Shaping(inferred, dtypes).run(outputs)


@record
class _Work:
    """One operation: its result's extents, what its operands are, and its typed scalar per projection."""

    node: Operation
    dims: tuple[int, ...]
    projections: tuple[Projection, ...]


class _Shaping:
    """One run: the shaped nodes so far."""

    def __init__(self, inferred: Inferred, dtypes: Sequence[str]) -> None:
        self.inferred = inferred
        self.dtypes = dtypes
        self.inputs = 0
        self.nodes: list[shaped.Node] = []
        self.tensors: list[shaped.Tensor] = []
        self.sizes: dict[int, int] = {}
        self.places: dict[int, list[shaped.Place]] = {}
        self.number: dict[int, int] = {}
        self.constants: dict[int, Constant] = {}

    def run(self, outputs: Sequence[int]) -> shaped.Shaped:
        program = self.inferred.graph
        needed = _needed(program, outputs)
        for value, node in enumerate(program.nodes):
            if value not in needed:
                continue
            if isinstance(node, Terminal):
                self._terminal(value, node)
            elif isinstance(node, Operation):
                self._operation(value, node)
        given = self._outputs(outputs)
        names = name_tensors(program, given, self.number, len(self.nodes))
        sizes = tuple(
            shaped.Size(f"n{extent}", extent, tuple(self.places.get(extent, ())))
            for extent in self.sizes
        )
        return shaped.Shaped(
            program.name,
            tuple(self.nodes),
            tuple(replace(t, name=n) for t, n in zip(self.tensors, names, strict=True)),
            sizes,
            (),
            (),
            tuple(self.number[value] for value in program.inputs if value in needed),
            tuple(given),
        )

    def _size(self, extent: int) -> int:
        return self.sizes.setdefault(extent, len(self.sizes))

    def _add(self, node: shaped.Node, dtype: str, dims: Sequence[int]) -> int:
        self.nodes.append(node)
        self.tensors.append(shaped.Tensor("", dtype, tuple(map(self._size, dims))))
        return len(self.nodes) - 1

    def _terminal(self, value: int, node: Terminal) -> None:
        if node.kind == "number":
            assert node.value is not None
            self.constants[value] = Constant(node.value)
            return
        dims = sizes_of(self.inferred.shapes[value])
        for dim, extent in enumerate(dims):
            self.places.setdefault(extent, []).append(shaped.Place(self.inputs, dim, node.span))
        made = shaped.Input(self.inputs, node.span)
        self.inputs += 1
        self.number[value] = self._add(made, self.dtypes[value], dims)

    def _outputs(self, outputs: Sequence[int]) -> list[int]:
        """Every output as a value of its own."""
        given: dict[int, None] = {}
        for value in outputs:
            number = self.number.get(value)
            if number is None or number in given or isinstance(self.nodes[number], shaped.Input):
                number = self._copied(value)
            given[number] = None
        return list(given)

    def _copied(self, value: int) -> int:
        dims = sizes_of(self.inferred.shapes[value])
        span = self.inferred.graph.nodes[value].span
        if value in self.constants:
            return self._filled(replace(self.constants[value], dtype="f32"), dims, "constant", span)
        source = self.number[value]
        return self._plain(dims, source, Operand(0, self.tensors[source].dtype), "copy", span)

    def _loops(self, dims: Sequence[int]) -> tuple[list[tuple[str, int]], tuple[Affine, ...]]:
        """A loop per dimension that is not of size 1, and the index they make."""
        loops: list[tuple[str, int]] = []
        index = []
        for dim, extent in enumerate(dims):
            index.append(Affine(()) if extent == 1 else walks(len(loops)))
            if extent != 1:
                loops.append((f"o{dim}", extent))
        return loops, tuple(index)

    def _plain(
        self,
        dims: Sequence[int],
        source: int | None,
        scalar: Scalar,
        text: str,
        span: Span,
    ) -> int:
        """Every element of a tensor from the same element of ``source``, or from a constant."""
        loops, target = self._loops(dims)
        reads = () if source is None else (shaped.Read(source, target),)
        axes = tuple(graph.Axis(name, None, span) for name, _ in loops)
        sizes = tuple(self._size(extent) for _, extent in loops)
        assert scalar.dtype is not None
        made = shaped.Assignment(
            axes, sizes, target, reads, scalar, None, scalar.dtype, None, text, span
        )
        return self._add(made, scalar.dtype, dims)

    def _filled(self, constant: Constant, dims: Sequence[int], text: str, span: Span) -> int:
        return self._plain(dims, None, constant, text, span)

    # -- operations --------------------------------------------------------------------------------------------------

    def _operation(self, value: int, node: Operation) -> None:
        dims = sizes_of(self.inferred.shapes[value])
        work = _Work(node, dims, tuple(project(self.inferred, value)))
        parts = [self._typed(node, projection) for projection in work.projections]
        first = parts[0] if parts else None
        if first is not None and len(parts) == 1 and self._is_whole(work, first):
            self.number[value] = self._add(first, _dtype_of(first), dims)
            return
        self.number[value] = self._assembled(work, parts)

    def _typed(self, node: Operation, projection: Projection) -> shaped.Assignment:
        """The assignment of one projection: what it reads, its scalar, and whether it reduces."""
        delivered: list[Scalar] = [Constant(0) for _ in node.operands]
        reads: list[shaped.Read] = []
        for operand, index in projection.reads:
            source = node.operands[operand]
            if source in self.constants:
                delivered[operand] = self.constants[source]
            else:
                number = self.number[source]
                delivered[operand] = Operand(len(reads), self.tensors[number].dtype)
                outside = "never"
                if operand in projection.beyond:
                    outside = "skip" if node.acc != "+" else "zero"
                reads.append(shaped.Read(number, index, outside))
        scalar = node.scalar
        if len(projection.reads) < len(node.operands):
            scalar = _restricted(scalar, {operand for operand, _ in projection.reads})
        kept = {axis for index in projection.target for _, axis in index.terms}
        if projection.beyond and node.acc != "+" and len(kept) == len(projection.loops):
            message = f"`{node.text}` reads outside an operand, where there is nothing to compare"
            help_line = "shift with a sum, or give the maximum a window to reduce over"
            raise ShapeError("E0523", message, node.span, help_line)
        acc = node.acc if len(kept) < len(projection.loops) else None
        typed, dtype = reduced_scalar(scalar, acc, delivered, node.span)
        return shaped.Assignment(
            tuple(graph.Axis(loop.name, None, node.span) for loop in projection.loops),
            tuple(self._size(loop.extent) for loop in projection.loops),
            projection.target,
            tuple(reads),
            typed,
            acc,
            dtype if acc is None else accumulator(acc, dtype),
            None,
            node.text,
            node.span,
        )

    def _is_whole(self, work: _Work, node: shaped.Assignment) -> bool:
        """Whether an assignment alone writes every element, each once reduced."""
        axes = [index.axis() for index in node.target]
        walked = [axis for axis in axes if axis is not None]
        return len(set(walked)) == len(walked) and all(
            (not index.terms and not index.offset and extent == 1)
            or (axis is not None and node.sizes[axis] == self._size(extent))
            for index, axis, extent in zip(node.target, axes, work.dims, strict=True)
        )

    def _assembled(self, work: _Work, parts: list[shaped.Assignment]) -> int:
        """A tensor of neutral elements, and every projection in place of what is there so far."""
        node = work.node
        dtype = _joined([_dtype_of(part) for part in parts], node.span)
        number = self._filled(
            _neutral(node.acc, dtype), work.dims, f"start of {node.text}", node.span
        )
        chosen = [projection.part for projection in work.projections]
        disjoint = len(set(chosen)) == len(chosen)
        for projection, part in zip(work.projections, parts, strict=True):
            once = disjoint and _unreduced(projection).is_injective()
            made = self._reduced_first(part) if once and part.acc is not None else part
            scalar = made.scalar if _dtype_of(made) == dtype else Convert(made.scalar, dtype)
            acc = None if once else node.acc
            stored = replace(made, scalar=scalar, acc=acc, acc_dtype=dtype, base=number)
            number = self._add(stored, dtype, work.dims)
        return number

    def _reduced_first(self, node: shaped.Assignment) -> shaped.Assignment:
        """The reduction as a tensor over the kept loops, and the assignment that stores it."""
        kept = sorted(set(node.output_axes()))
        place = {axis: n for n, axis in enumerate(kept)}
        extents = {number: extent for extent, number in self.sizes.items()}
        dims = [extents[node.sizes[axis]] for axis in kept]
        inner = replace(node, target=tuple(walks(axis) for axis in kept))
        number = self._add(inner, _dtype_of(node), dims)
        index = tuple(walks(n) for n in range(len(kept)))
        return replace(
            node,
            axes=tuple(node.axes[axis] for axis in kept),
            sizes=tuple(node.sizes[axis] for axis in kept),
            target=tuple(
                Affine(tuple((c, place[axis]) for c, axis in part.terms), part.offset)
                for part in node.target
            ),
            reads=(shaped.Read(number, index),),
            scalar=Operand(0, _dtype_of(node)),
            acc=None,
        )


def _unreduced(projection: Projection) -> Projection:
    """A projection with its kept loops alone."""
    kept = sorted({axis for index in projection.target for _, axis in index.terms})
    place = {axis: n for n, axis in enumerate(kept)}
    target = tuple(
        Affine(tuple((c, place[axis]) for c, axis in part.terms), part.offset)
        for part in projection.target
    )
    return replace(projection, loops=tuple(projection.loops[axis] for axis in kept), target=target)


def _needed(program: graph.Graph, outputs: Sequence[int]) -> set[int]:
    """The values that the outputs are computed from, themselves included."""
    found: set[int] = set()
    todo = list(outputs)
    while todo:
        value = todo.pop()
        if value not in found:
            found.add(value)
            node = program.nodes[value]
            todo += node.operands if isinstance(node, Operation) else ()
    return found


def _restricted(scalar: Scalar, read: set[int]) -> Scalar:
    """The scalar of a projection that reads some operands only: theirs, the others left out of it."""
    operands = [part for part in walk(scalar) if isinstance(part, Operand) and part.number in read]
    primitives = [part.primitive for part in walk(scalar) if isinstance(part, Apply)]
    result: Scalar = operands[0]
    for operand in operands[1:]:
        result = Apply(primitives[0] if primitives else "add", (result, operand))
    return result


def _joined(dtypes: Sequence[str], span: Span) -> str:
    """The one type of parts of a result."""
    dtype: str | None = dtypes[0] if dtypes else "f32"
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


def _dtype_of(node: shaped.Assignment) -> str:
    """The element type of the tensor that an assignment makes: that of its scalar."""
    assert node.scalar.dtype is not None
    return node.scalar.dtype


def _neutral(acc: str, dtype: str) -> Constant:
    value = OPS[acc].identity
    assert value is not None
    if dtype in INTEGER_ENDS and abs(value) == float("inf"):
        return Constant(INTEGER_ENDS[dtype][value > 0], dtype)
    return Constant(value, dtype)
