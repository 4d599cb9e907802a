"""Steps that make derivatives shorter, one after the other; no bit of a result changes.

    constants_in_place   in:   g[i] = 1;  d[i] = t[i] * g[i]           out:  d[i] = t[i]
    propagated_copies    copy propagation
    computed_once        in:   t[i] = n0[i] - n1[];  u[j] = n0[j] - n1[];  out = sum t[i] * u[i] over i
                         out:  t[i] = n0[i] - n1[];  out = sum t[i] * t[i] over i
    recomputed           what is as cheap to compute as to read is not stored

Then what an iteration computes is made shorter by rules (``ir/scalar_rules.py``). Each step leaves out what nothing
needs any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ilang.core.calculus.affine import Affine, axis_index, variables_of
from ilang.core.dtype import BYTES
from ilang.core.ir import scalar as scalars
from ilang.core.ir.assignments import all_reads, reading, reindexed, renumbered, substituted
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar_rules import short_scalar
from ilang.core.ir.shaped import Assignment, Input, Node, Read, Shaped, Tensor, View
from ilang.core.ops import SLOW
from ilang.core.record import mapped, replace
from ilang.core.transform.building import pruned


def simplified(shaped: Shaped) -> Shaped:
    """The same program, shorter; inputs and outputs are as they were."""
    return shortened(recomputed(computed_once(propagated_copies(constants_in_place(shaped)))))


def shortened(shaped: Shaped) -> Shaped:
    """The program with shorter scalars."""
    return _rewritten(shaped, _with_short_scalar)


def _rewritten(
    shaped: Shaped, rewrite: Callable[[Assignment, Sequence[Node]], Assignment]
) -> Shaped:
    """The program whose assignments are rewritten in order, each given the nodes before it; unread values are gone."""
    nodes: list[Node] = []
    for node in shaped.nodes:
        nodes.append(rewrite(node, nodes) if isinstance(node, Assignment) else node)
    return pruned(replace(shaped, nodes=tuple(nodes)))


def _with_short_scalar(node: Assignment, _: Sequence[Node]) -> Assignment:
    scalar = short_scalar(node.scalar)
    return node if scalar is node.scalar else reading(node, node.reads, scalar)


def constants_in_place(shaped: Shaped) -> Shaped:
    """The program in which no assignment reads a tensor of one number; those that nothing else needs are gone."""
    return _rewritten(shaped, _with_constants)


def _with_constants(node: Assignment, nodes: Sequence[Node]) -> Assignment:
    """An assignment that has in its scalar the numbers of which it reads whole tensors."""
    constants = [_constant(read, nodes) for read in node.reads]
    if not any(constants):
        return node
    return reading(node, node.reads, short_scalar(_put(node.scalar, constants)))


def _constant(read: Read, nodes: Sequence[Node]) -> scalars.Constant | None:
    """The number that a read delivers wherever it is: one with guards delivers 0, too."""
    producer = nodes[read.value]
    if not isinstance(producer, Assignment) or read.guards or producer.guards:
        return None
    if producer.acc is not None or producer.base is not None:
        return None
    return producer.scalar if isinstance(producer.scalar, scalars.Constant) else None


def _put(scalar: scalars.Scalar, constants: Sequence[scalars.Constant | None]) -> scalars.Scalar:
    return mapped(scalar, scalars.Operand, lambda operand: constants[operand.number] or operand)


def propagated_copies(shaped: Shaped) -> Shaped:
    """The program in which no assignment reads a copy; copies that nothing else needs are gone."""
    return _rewritten(shaped, _without_copies)


def _without_copies(node: Assignment, nodes: Sequence[Node]) -> Assignment:
    """An assignment that reads what copies are of; the copies have been looked at before."""
    reads = tuple(_source(read, nodes) for read in node.reads)
    return node if reads == node.reads else replace(node, reads=reads)


def _source(read: Read, nodes: Sequence[Node]) -> Read:
    """The read of what a copy is of, at the place that the copy has it from."""
    copy = nodes[read.value]
    if isinstance(copy, View) or not isinstance(copy, Assignment) or not is_copy(copy):
        return read
    (source,) = copy.reads
    place: dict[int, Affine] = {}
    for part, index in zip(copy.target, read.index, strict=True):
        axis = part.axis()
        if axis is not None:
            place[axis] = index
    composed = tuple(substituted(part, place) for part in source.index)
    guards = tuple(replace(held, index=substituted(held.index, place)) for held in source.guards)
    return Read(source.value, composed, guards + read.guards)


def is_copy(node: Assignment) -> bool:
    """Whether every element is one of another value, and nothing is looked up to find it.

    A copy that reverses a dimension is kept: its readers would read backwards.
    """
    alone = node.acc is None and node.base is None and not node.guards
    plain = isinstance(node.scalar, scalars.Operand) and len(node.reads) == 1
    if not alone or not plain or node.lookups() or node.schedule is not None:
        return False
    return all(0 < c for part in node.reads[0].index for c, _ in part.steps())


def computed_once(shaped: Shaped) -> Shaped:
    """The program without values that are equal to one before: what read them reads that one.

    Outputs stay, each in memory of its own, and so does what is stored into: bases, and what takes their place.
    """
    outputs = {*shaped.outputs, *map(shaped.owner, shaped.outputs)}
    bases = {node.base for node in shaped.nodes if isinstance(node, Assignment)}
    number = {value: value for value, _ in shaped.numbered()}
    known: dict[object, ValueId] = {}
    nodes: list[Node] = []
    for value, given in shaped.numbered():
        node = renumbered(given, number)
        nodes.append(node)
        key = None if value in bases else _key(node, shaped.tensors[value])
        if key is not None:
            first = known.setdefault(key, value)
            number[value] = value if value in outputs else first
    return pruned(replace(shaped, nodes=tuple(nodes)))


def _key(node: Node, tensor: Tensor) -> object:
    """A key that is equal for two nodes that give the same elements; None for one that is like no other."""
    match node:
        case Input():
            return None
        case View():
            return "view", node.value, node.sizes, node.source, node.target, tensor.dims
        case Assignment() if node.base is not None or node.schedule is not None:
            return None
        case Assignment():
            order = [*dict.fromkeys((*_met(node), *range(len(node.axes))))]
            moved = reindexed(node, {axis: axis_index(n) for n, axis in enumerate(order)})
            sizes = tuple(node.sizes[axis] for axis in order)
            computation = repr((moved.target, moved.reads, moved.scalar, moved.guards))
            return computation, sizes, node.acc, tensor.dtype, tensor.dims


def _met(node: Assignment) -> Iterator[int]:
    """The axes of an assignment as they are met in its indices: those of the target first."""
    for index in node.indices():
        yield from _axes_of(index)


def _axes_of(index: Affine) -> Iterator[int]:
    yield from index.variables()
    for _, each in index.looked:
        for part in each.index:
            yield from _axes_of(part)


MOST = 4
"""Operations of a value that is computed again, at most: a few are done while an element comes from memory."""


def recomputed(shaped: Shaped) -> Shaped:
    """The program whose cheap values are computed in their readers, where these are several.

    Example, centered rows, of which a backward program has several readers:
        in:   t[i,j] = n0[i,j] - m[i];  v[i] = sum t[i,j] * t[i,j] over j;  d[i,j] = g[i,j] * t[i,j]
        out:  v[i] = sum (n0[i,j] - m[i]) * (n0[i,j] - m[i]) over j;  d[i,j] = g[i,j] * (n0[i,j] - m[i])

    Such a value is a few operations, none of them slow, on one element of what is in memory in any case, an input or
    what others read too, and on tensors of fewer dimensions. The readers of the value read that element instead, once
    an iteration, and the same bits come of it. Everything else that several read is stored.
    """
    reads, kept = all_reads(shaped)
    nodes: list[Node] = []
    cheap: set[int] = set()
    for value, given in enumerate(shaped.nodes):
        node = given
        if isinstance(given, Assignment) and given.schedule is None:
            node = _with_values(given, cheap, nodes)
        nodes.append(node)
        if value in kept or not isinstance(node, Assignment) or len(reads[value]) < 2:
            continue
        if _is_cheap(shaped, node, reads) and all(
            _meets_once(shaped, reader, read) for reader, read in reads[value]
        ):
            cheap.add(value)
    return pruned(replace(shaped, nodes=tuple(nodes)))


def _is_cheap(
    shaped: Shaped, node: Assignment, reads: Sequence[Sequence[tuple[int, Read]]]
) -> bool:
    """Whether a value is a few operations on one element that is stored in any case, and on smaller tensors."""
    parts = [*scalars.scalars_within(node.scalar)]
    work = [part for part in parts if isinstance(part, scalars.Apply)]
    plain = all(
        isinstance(part, scalars.Apply | scalars.Convert | scalars.Constant | scalars.Operand)
        for part in parts
    )
    if node.acc is not None or node.base is not None or node.schedule is not None or not plain:
        return False
    if node.lookups() or node.guards or any(read.guards for read in node.reads):
        return False
    if len(work) > MOST or any(part.primitive in SLOW for part in work):
        return False
    full = [read for read in node.reads if variables_of(read.index) == set(range(len(node.axes)))]
    if len(full) != 1 or not node.axes:
        return False
    (read,) = full
    stored = isinstance(shaped.nodes[read.value], Input) or 1 < len(reads[read.value])
    wide = BYTES[shaped.tensors[read.value].dtype] <= BYTES[node.scalar.dtype or ""]
    return stored and wide


def _meets_once(shaped: Shaped, reader: int, read: Read) -> bool:
    """Whether a reader meets each element in one iteration, by axes that are its own."""
    node = shaped.assignment(reader)
    axes = [index.axis() for index in read.index if index != Affine(())]
    return (
        node.schedule is None
        and not read.guards
        and None not in axes
        and len(set(axes)) == len(axes) == len(node.axes)
    )


def _operand_types(node: Assignment) -> dict[int, str | None]:
    operands = (
        part for part in scalars.scalars_within(node.scalar) if isinstance(part, scalars.Operand)
    )
    return {part.number: part.dtype for part in operands}


def _with_values(node: Assignment, cheap: set[int], nodes: Sequence[Node]) -> Assignment:
    """An assignment that computes what it would read of cheap values."""
    if not any(read.value in cheap for read in node.reads):
        return node
    reads: list[Read] = []
    leaves: list[scalars.Scalar] = []
    types = _operand_types(node)
    for number, read in enumerate(node.reads):
        producer = nodes[read.value]
        if read.value not in cheap or not isinstance(producer, Assignment):
            leaves.append(scalars.Operand(_place(reads, read), types.get(number)))
            continue
        indices = {
            axis: index
            for target, index in zip(producer.target, read.index, strict=True)
            if (axis := target.axis()) is not None
        }
        inner: list[scalars.Scalar] = []
        dtypes = _operand_types(producer)
        for n, each in enumerate(producer.reads):
            moved = Read(each.value, tuple(substituted(part, indices) for part in each.index))
            inner.append(scalars.Operand(_place(reads, moved), dtypes.get(n)))
        leaves.append(scalars.with_operands(producer.scalar, inner, lambda index: index))
    scalar = scalars.with_operands(node.scalar, leaves, lambda index: index)
    return replace(node, reads=tuple(reads), scalar=scalar, operands=())


def _place(reads: list[Read], read: Read) -> int:
    """The number of a read among those so far, to which it is added where it is new."""
    if read not in reads:
        reads.append(read)
    return reads.index(read)
