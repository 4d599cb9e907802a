"""Operands of contractions that stand behind guards: stored once, with 0 where a guard does not hold.

Example, a triangle times a matrix:
    in:   t1[i,k,j] = (a[k,i] if i < k else 0) * b[k,j];  out = sum t1[i,k,j] over k
    out:  a_masked[k,i] = a[k,i] if i < k else 0;  t1[i,k,j] = a_masked[k,i] * b[k,j];  out = sum t1[i,k,j] over k

A tile of a contraction reads each element of an operand many times; its multiplications are those of vectors where no
iteration asks for a guard. What a program computes by a reduction itself is not stored for it, so that attention stays
one loop over its keys.
"""

from __future__ import annotations

from collections.abc import Iterator

from ilang.core.calculus.affine import Affine, axis_index, variables_of
from ilang.core.dtype import FLOATS
from ilang.core.ir.assignments import sources
from ilang.core.ir.ids import ValueId
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.scalar import Operand
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.record import mapped, replace
from ilang.core.transform.extended import ExtendedProgram


def masked_operands(shaped: Shaped, extents: Extents) -> Shaped:
    """The program whose contractions read no operand behind a guard of its own; itself where none does.

    Args:
        shaped: the program.
        extents: which of its sizes are small.
    """
    if not any(read.guards for _, node in _assignments(shaped) for read in node.reads):
        return shaped
    return _MaskedOperands(shaped, extents).run()


def _assignments(shaped: Shaped) -> Iterator[tuple[ValueId, Assignment]]:
    return ((v, node) for v, node in shaped.numbered() if isinstance(node, Assignment))


class _MaskedOperands:
    """A program whose guarded operands become values of their own."""

    def __init__(self, shaped: Shaped, extents: Extents) -> None:
        self.shaped = shaped
        self.extents = extents
        self.new = ExtendedProgram(shaped)
        self.readers: dict[ValueId, list[Assignment]] = {}
        for _, node in _assignments(shaped):
            for value in node.values():
                self.readers.setdefault(value, []).append(node)
        self.summed = self._summed()

    def _summed(self) -> frozenset[ValueId]:
        """The values that rest on a reduction, or take the place of another value."""
        rest: set[ValueId] = set()
        for value, node in self.shaped.numbered():
            is_alone = not isinstance(node, Assignment) or (node.acc is None and node.base is None)
            if not is_alone or not rest.isdisjoint(sources(node)):
                rest.add(value)
        return frozenset(rest)

    def run(self) -> Shaped:
        """Every product in turn."""
        for value, node in _assignments(self.shaped):
            if self._is_product(value, node):
                reads = tuple(self._masked(node, read) for read in node.reads)
                self.new.nodes[value] = replace(node, reads=reads)
        is_same = len(self.new.nodes) == len(self.shaped.nodes)
        return self.shaped if is_same else self.new.result()

    def _is_product(self, value: ValueId, node: Assignment) -> bool:
        """Whether contractions alone read an assignment that each of its axes has a use for."""
        readers = self.readers.get(value, ())
        return (
            bool(readers)
            and value not in self.shaped.outputs
            and node.acc is None
            and node.base is None
            and node.schedule is None
            and 1 < len(node.reads)
            and node.scalar.dtype in FLOATS
            and all(self._is_sum(reader) for reader in readers)
        )

    def _is_sum(self, node: Assignment) -> bool:
        return node.acc == "+" and node.base is None and node.schedule is None

    def _can_be_stored(self, read: Read) -> bool:
        """Whether a read, zeros of its guards included, is a value of the axes that its index walks one by one."""
        guarded = {axis for guard in read.guards for axis in guard.index.variables()}
        return (
            bool(read.guards)
            and guarded <= variables_of(read.index)
            and all(part.axis() is not None or not part.variables() for part in read.index)
            and not any(part.looked for part in read.index)
            and read.value not in self.summed
        )

    def _is_read_again(self, node: Assignment, read: Read) -> bool:
        """Whether a long axis goes along other reads of a product alone, and one along this read alone."""
        long = {a for a in range(len(node.axes)) if not self.extents.is_small(node.sizes[a])}
        walked = variables_of(read.index)
        others = {a for each in node.reads if each is not read for a in variables_of(each.index)}
        return bool(long & (others - walked)) and bool(long & (walked - others))

    def _masked(self, node: Assignment, read: Read) -> Read:
        """A read of a stored value in place of a guarded one, where a tile reads its elements again and again."""
        if not (self._can_be_stored(read) and self._is_read_again(node, read)):
            return read
        order = [axis for part in read.index if (axis := part.axis()) is not None]
        axes = list(dict.fromkeys(order))
        place = {axis: n for n, axis in enumerate(axes)}
        tensor = self.shaped.tensors[read.value]
        index = tuple(axis_index(place[axis]) for axis in axes)
        moved = mapped(replace(read), Affine, lambda part: part.renamed(place))
        masked = Assignment(
            tuple(node.axes[axis] for axis in axes),
            tuple(node.sizes[axis] for axis in axes),
            index,
            (moved,),
            Operand(0, tensor.dtype),
            None,
            None,
            node.text,
            node.span,
        )
        value = self.new.add(masked, read.value, masked.sizes, "masked")
        return Read(value, tuple(axis_index(axis) for axis in axes))
