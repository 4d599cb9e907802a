"""Matrices that are larger than all that a program takes and gives, and the directions in which they are walked.

Example, the way back of attention, where scores s and what flows back to them have a row for each query i and a column
for each key j, and neither is an input or an output:
    in:   s[i,j] = sum q[i,k] * key[j,k];  m[i] = max s[i,j] over j;  dq[i,k] = sum ds[i,j] * key[j,k] over j
          dk[j,k] = sum ds[i,j] * q[i,k] over i
    out:  wide: s, ds and what is between them;  walked by rows i for m and dq, by rows j for dk

A kernel that goes by blocks of rows keeps a block of such a matrix, if everything that reads the matrix there goes by
these rows: what it sums along them, and the contractions that take them. So there is a kernel for each direction, and
one more wherever what is read comes from a kernel before in another way than row by row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from ilang.core.calculus.affine import Affine
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.shaped import Assignment, Input, Read, Shaped, View
from ilang.core.record import replace
from ilang.core.schedule.choose.inlining import Inlining
from ilang.core.schedule.choose.tilings import Tilings
from ilang.core.schedule.readers import compared
from ilang.core.schedule.wide_matrices import Exit, Labels, Matrices


def matrices_of(
    shaped: Shaped, inlining: Inlining, tilings: Tilings, extents: Extents, alone: bool = False
) -> list[Matrices]:
    """The matrices of a program that are walked in several directions, and never have to be stored.

    Where kernels go ``alone``, as on a GPU, those that are walked in one direction are among them.

    Args:
        shaped: the program.
        inlining: who reads each value.
        tilings: of the program.
        extents: of the program.
        alone: whether each kernel has one exit.
    """
    like: dict[tuple[int, ...], set[int]] = {}
    larger, others = _wide(shaped, inlining, tilings)
    wide = sorted(larger | others)
    for value in wide:
        like.setdefault(tuple(sorted(_dims(shaped, value).elements())), set()).add(value)
    groups: list[Matrices] = []
    done: set[int] = set()
    stored: set[int] = set()
    for first in wide:
        if first in done:
            continue
        among = like[tuple(sorted(_dims(shaped, first).elements()))] - stored
        labelled = _Labels(shaped, inlining, tilings, among).run(first)
        unread = labelled.read_otherwise()
        stored |= unread
        if unread and first not in unread:
            labelled = _Labels(shaped, inlining, tilings, among - unread).run(first)
        done |= labelled.connected | unread
        matrices = labelled.matrices(extents, alone)
        if matrices is not None:
            groups.append(replace(matrices, are_larger=first in larger))
    if alone or not groups:
        return groups
    from ilang.core.schedule.matrices.row_kernels import shared_out

    return shared_out(shaped, inlining, groups)


def _wide(shaped: Shaped, inlining: Inlining, tilings: Tilings) -> tuple[set[int], set[int]]:
    """The values that have more dimensions than any array that a program takes, gives, or stores in any case.

    Then others of known extents, of which there may be more than there are such arrays. A value that is compared with a
    reduction of itself is left out: it is computed once, that no rounding comes between.
    """
    arrays: dict[int, set[tuple[tuple[int, int], ...]]] = {}
    for value, node in enumerate(shaped.nodes):
        if isinstance(node, Input | View) or value in inlining.kept:
            dims = _dims(shaped, value)
            for size in dims:
                arrays.setdefault(size, set()).add(tuple(sorted(dims.items())))
    values, others = set[int](), set[int]()
    for value, node in enumerate(shaped.nodes):
        if not isinstance(node, Assignment) or value in inlining.kept:
            continue
        dims = _dims(shaped, value)
        is_sum = tilings.tiles[value] is None and not _is_pointwise(shaped, node)
        if sum(dims.values()) < 2 or is_sum:
            continue
        is_inside = inlining.inlined[value] and _is_summed(inlining, value)
        near = min((arrays.get(size, set()) for size in dims), key=len)
        if is_inside:
            continue
        if not any(dims <= Counter(dict(array)) for array in near):
            values.add(value)
        elif all(shaped.sizes[size].fixed is not None for size in dims):
            others.add(value)
    once = _computed_once(shaped, values | others)
    return values - once, others - once


def _computed_once(shaped: Shaped, values: Collection[int]) -> set[int]:
    """The values that are compared with reductions of themselves, or make one that is, through such values alone."""
    once: set[int] = set()
    for _, common in compared(shaped):
        hidden: set[int] = set()
        todo = [value for value in common if value not in values]
        while todo:
            node = shaped.nodes[todo.pop()]
            sources = {*node.values()} if isinstance(node, Assignment) else set()
            todo += sources - hidden
            hidden |= sources
        once |= (common - hidden) & {*values}
    return once


def _is_pointwise(shaped: Shaped, node: Assignment) -> bool:
    """Whether an assignment sums one term at most: none where a guard leaves it out."""
    return all(shaped.sizes[node.sizes[axis]].fixed == 1 for axis in node.reduced_axes())


def _dims(shaped: Shaped, value: int) -> Counter[int]:
    return Counter(size for size in shaped.tensors[value].dims if shaped.sizes[size].fixed != 1)


def _is_summed(inlining: Inlining, value: int) -> bool:
    """Whether what computes a value in its innermost loop reduces it."""
    sole = inlining.sole[value]
    return sole is not None and sole[0].acc is not None


class _Labels:
    """The matrices that are computed from each other, beginning with one."""

    def __init__(
        self, shaped: Shaped, inlining: Inlining, tilings: Tilings, wide: Collection[int]
    ) -> None:
        self.shaped = shaped
        self.inlining = inlining
        self.tilings = tilings
        self.wide = wide
        self.connected: set[int] = set()
        self.axes: dict[int, Labels] = {}
        self.exits: dict[int, Exit] = {}
        self.unread: set[int] = set()
        self.fails = False

    def run(self, first: int) -> _Labels:
        """Label everything that is made of a matrix, and what that is made of, up to what is none."""
        todo = [first]
        node = self.shaped.assignment(first)
        dims = {index.axis(): dim for dim, index in enumerate(node.target)}
        self.axes[first] = tuple(
            None if self._is_one(node, axis) else dims.get(axis) for axis in range(len(node.axes))
        )
        while todo:
            value = todo.pop()
            todo += self._producers(value)
            if value in self.wide:
                self.connected.add(value)
            elif not self._is_product(value):
                continue
            for reader, read in self.inlining.all_reads[value]:
                todo += self._reader(value, reader, read)
        return self

    def _is_product(self, value: int) -> bool:
        return self.inlining.inlined[value] and _is_summed(self.inlining, value)

    def _is_one(self, node: Assignment, axis: int) -> bool:
        return self.shaped.sizes[node.sizes[axis]].fixed == 1

    def _dims(self, value: int) -> list[int | None]:
        labels, dims = self.axes[value], []
        for index in self.shaped.assignment(value).target:
            axis = index.axis()
            self.fails |= axis is None and index != Affine(())
            dims.append(None if axis is None else labels[axis])
        return dims

    def _reader(self, value: int, reader: int, read: Read) -> list[int]:
        """Label what reads a matrix, or a product inside a contraction; what is to be looked at next."""
        labels: list[int | None] = [None] * len(self.shaped.assignment(reader).axes)
        for label, index in zip(self._dims(value), read.index, strict=True):
            axis = index.axis()
            if axis is None and (label is not None or index != Affine(())):
                self.unread.add(value)
                return []
            if axis is not None and label is not None:
                self.fails |= labels[axis] not in (None, label)
                labels[axis] = label
        return self._label(reader, labels)

    def _label(self, value: int, labels: Sequence[int | None]) -> list[int]:
        """Give the axes of a value labels, which agree with those that it has; what is to be looked at next."""
        known = self.axes.get(value)
        if known is not None:
            pairs = zip(known, labels, strict=True)
            self.fails |= any(a is not None and b is not None and a != b for a, b in pairs)
            merged = tuple(b if a is None else a for a, b in zip(known, labels, strict=True))
            if merged == known:
                return []
            labels = merged
        self.axes[value] = tuple(labels)
        return [value]

    def _producers(self, value: int) -> list[int]:
        """Label the matrices that a value is made of; what is to be looked at next."""
        node, labels = self.shaped.assignment(value), self.axes[value]
        labelled: list[int] = []
        for read in dict.fromkeys(node.reads):
            if read.value not in self.wide:
                continue
            producer = self.shaped.assignment(read.value)
            walked = zip(producer.target, read.index, strict=True)
            by_axis = {
                target.axis(): labels[axis]
                for target, index in walked
                if (axis := index.axis()) is not None
            }
            labelled += self._label(read.value, [by_axis.get(a) for a in range(len(producer.axes))])
        return labelled

    def read_otherwise(self) -> set[int]:
        """The matrices of which something reads neither rows nor elements: they are stored."""
        outside = [v for v in self.axes if v not in self.wide and not self._is_product(v)]
        others = [value for value in outside if not self._exit(value)]
        batch = self._batch([v for v, e in self.exits.items() if not e.is_row and not e.is_stored])
        if batch is not None:
            rows = (value for value, each in self.exits.items() if each.is_row)
            others += [v for v in rows if not self._is_side(v, {*batch})]
        for value in others:
            self.unread |= self.connected & {*self.shaped.assignment(value).values()}
        return self.unread & self.connected

    def _is_side(self, value: int, batch: set[int]) -> bool:
        """Whether a result has the labels of batches, and one beside them."""
        outputs = self._outputs(value)
        return batch <= outputs and len(outputs - batch) == 1

    # -- what all of it gives ------------------------------------------------------------------------------------------

    def matrices(self, extents: Extents, alone: bool) -> Matrices | None:
        """The matrices, if everything that reads them goes by rows of theirs, in two directions that are long.

        The matrices have kernels if these go alone.
        """
        if self.fails or not self._are_whole():
            return None
        for value in self.axes:
            inside = value in self.wide or self._is_product(value)
            if not inside and not self._exit(value):
                return None
        others = [value for value, each in self.exits.items() if not each.is_stored]
        batch = self._batch(others)
        if batch is None:
            return None
        exits = {
            value: replace(each, label=next(n for n in self._outputs(value) if n not in batch))
            for value, each in self.exits.items()
            if not each.is_stored
        }
        first = min(exits.values(), key=lambda each: (not each.is_row, each.value))
        for value in self.exits.keys() - exits.keys():
            exits[value] = replace(self.exits[value], label=first.label)
        labels = {each.label for each in exits.values()}
        dims = self.shaped.tensors[min(self.connected)].dims
        if any(extents.is_small(dims[label]) for label in labels):
            return None
        if len(labels) < 2 and not alone and not self._is_across(exits):
            return None
        axes = {**self._products(), **self.axes}
        kernels = tuple((value,) for value in sorted(exits)) if alone else ()
        wide = frozenset(self.connected)
        return Matrices(wide, axes, batch, exits, frozenset(), kernels, alone=alone)

    def _products(self) -> dict[int, Labels]:
        """The values computed in the innermost loops of matrices, and made of none of them: without labels."""
        products: dict[int, Labels] = {}
        todo = [value for value in self.axes if value not in self.exits]
        while todo:
            for value in self.shaped.assignment(todo.pop()).values():
                known = value in products or value in self.axes
                if not known and self.inlining.inlined[value]:
                    products[value] = (None,) * len(self.shaped.assignment(value).axes)
                    todo.append(value)
        return products

    def _are_whole(self) -> bool:
        """Whether every matrix has all labels, each once, and those that are sums are made of none."""
        wanted = sorted(self._dims(min(self.connected)), key=str)
        for value in self.connected:
            node = self.shaped.assignment(value)
            if sorted(self._dims(value), key=str) != wanted or node.base is not None:
                return False
            made_of = {read.value for read in node.reads} & self.axes.keys()
            if node.lookups() or (made_of and not _is_pointwise(self.shaped, node)):
                return False
        return True

    def _outputs(self, value: int) -> set[int]:
        labels = self.axes[value]
        return {
            n
            for axis in self.shaped.assignment(value).output_axes()
            if (n := labels[axis]) is not None
        }

    def _exit(self, value: int) -> bool:
        """Note what reads matrices and is none; whether it is a contraction of their rows, or reduces these."""
        node, labels, tile = (
            self.shaped.assignment(value),
            self.axes[value],
            self.tilings.tiles[value],
        )
        if node.base is not None or node.lookups():
            return False
        if node.acc is None:
            wanted = sorted(self._dims(min(self.connected)), key=str)
            if sorted(self._dims(value), key=str) != wanted or None in wanted:
                return False
            self.exits[value] = Exit(value, -1, is_stored=True)
            return True
        if tile is not None:
            across = labels[tile.rows] is None or labels[tile.lanes] is not None
            sides = [labels[axis] is None for axis in node.output_axes()]
            if tile.windows or (across and (all(sides) or not any(sides))):
                return False
            self.exits[value] = Exit(value, -1, across=across)
            return True
        plain = all(index.axis() is not None or index == Affine(()) for index in node.target)
        axes = [axis for axis in node.output_axes() if not self._is_one(node, axis)]
        if not plain or any(labels[axis] is None for axis in axes):
            return False
        self.exits[value] = Exit(value, -1, is_row=True)
        return True

    def _rows(self, value: int) -> int | None:
        """The label of the rows by which a contraction goes, those of its tile; None for a reduction of rows.

        Where the rows of the tile are no axis of a matrix, its lanes are.
        """
        tile, labels = self.tilings.tiles[value], self.axes[value]
        if tile is None:
            return None
        return labels[tile.lanes] if labels[tile.rows] is None else labels[tile.rows]

    def _is_across(self, exits: Mapping[int, Exit]) -> bool:
        rows = {each.label for each in exits.values()}
        ends = (self._dims(value)[-1] for value in self.connected)
        return any(each.across for each in exits.values()) or any(end in rows for end in ends)

    def _batch(self, exits: Sequence[int]) -> tuple[int, ...] | None:
        """The labels that all of some exits have, where each has one more, and there are one or two of these."""
        outputs = [self._outputs(value) for value in exits]
        if not outputs:
            return None
        batch = set.intersection(*outputs)
        if all(each == batch for each in outputs):
            batch -= {next((x for x in map(self._rows, exits) if x is not None), None)}
        every = {n for n in self._dims(min(self.connected)) if n is not None}
        if len(every - batch) != 2 or any(len(each - batch) != 1 for each in outputs):
            return None
        return tuple(sorted(batch))
