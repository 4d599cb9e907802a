"""Parts of matrices computed apart that each kernel computes for itself, and whether that pays: see ``apart.py``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod

from ilang.core.cost import UNITS, Work, of_assignments
from ilang.core.dtype import BYTES
from ilang.core.ir.assignments import renumbered, sources, without_axes
from ilang.core.ir.ids import ValueId
from ilang.core.ir.known_extents import USUAL
from ilang.core.ir.scalar import Operand
from ilang.core.ir.shaped import Assignment, Node, Read, Shaped, Tensor
from ilang.core.machine import MULTIPROCESSORS, Machine
from ilang.core.names import Names
from ilang.core.record import replace
from ilang.core.schedule.choose.inlining import Inlining
from ilang.core.schedule.choose.tilings import Tilings
from ilang.core.schedule.wide_matrices import Apart, Labels, Matrices, Phase

SHARES = 8
"""Matrices that are stored take no larger share of a device's memory than one of so many."""


class Worth:
    """Whether matrices of a program are better computed again than stored."""

    def __init__(
        self,
        shaped: Shaped,
        readers: Inlining,
        tiled: Tilings,
        groups: Sequence[Matrices],
        machine: Machine,
    ) -> None:
        """For all matrices that may be.

        Args:
            shaped: the program.
            readers: who reads each value.
            tiled: its contractions.
            groups: the matrices.
            machine: what the loops are for.
        """
        self.shaped = shaped
        self.readers = readers
        self.tiled = tiled
        self.machine = machine
        self.copying = MatrixCopies(shaped, groups, {})

    def holds(self, number: int) -> bool:
        """Whether the matrices of this number are.

        Where extents are not known they are if their rows are reduced before they are read on, as those of attention:
        they may be larger than memory. A product that weights take along memory may be that of a classifier, which has
        few columns: where nothing else is computed again it is stored. Of known extents see ``_is_gained``.
        """
        matrices, copying = self.copying.groups[number], self.copying
        if matrices.alone:
            return self._holds_alone(number)
        dims = self.shaped.tensors[min(matrices.wide)].dims
        known = [self.shaped.sizes[d].fixed for n, d in enumerate(dims) if n not in matrices.batch]
        rows = (value for value, each in matrices.exits.items() if each.is_row)
        are_reduced = any(copying.home[value] in copying.users[value] for value in rows)
        if not are_reduced and not (matrices.are_larger and None not in known):
            return False
        if None in known:
            again = [v for v in self._products(matrices) if len(copying.users[v]) > 1]
            return len(again) != 1 or not any(each.across for each in matrices.exits.values())
        widths = sum(BYTES[self.shaped.tensors[v].dtype] for v in self._stored(matrices))
        return self._is_gained(number, prod(n or 0 for n in known) * widths)

    def _products(self, matrices: Matrices) -> list[int]:
        return [value for value in matrices.wide if self.tiled.tiles[value] is not None]

    def _stored(self, matrices: Matrices) -> list[int]:
        return [value for value in matrices.wide if not self.readers.inlined[value]]

    def _bytes(self, values: Iterable[int]) -> float:
        return sum(_bytes(self.shaped, value) for value in values)

    def _holds_alone(self, number: int) -> bool:
        """Whether matrices are that each kernel computes again: that takes longer, and no memory.

        No kernel has more of them than a block has room for. Where extents are known those that would be stored have
        to be more than caches keep, and computing them again has to take less time than moving them, unless they take
        too much of a device's memory. Else their rows have to be reduced before a contraction reads them; one product
        that is read both ways may be a classifier's.
        """
        matrices, copying = self.copying.groups[number], self.copying
        products, exits = self._products(matrices), matrices.exits.values()
        kernels = Counter(phase for value in products for phase in copying.users[value])
        device = self.machine.gpu()
        if device.most_products < max(kernels.values(), default=0):
            return False
        are_reduced = any(copying.users[each.value] - {None} for each in exits if each.is_row)
        dims = self.shaped.tensors[min(matrices.wide)].dims
        if all(self.shaped.sizes[size].fixed is not None for size in dims):
            most = max(self._bytes(copying.around(number)), self.machine.memory.kept_bytes)
            stored = self._bytes(self._stored(matrices))
            if stored <= most or not (matrices.are_larger or are_reduced):
                return False
            return MULTIPROCESSORS[-1].memory < SHARES * stored or self._is_quicker(matrices)
        directions = {each.label for each in exits}
        contracts = any(not each.is_row and not each.is_stored for each in exits)
        return are_reduced and contracts and len(directions) <= len(products)

    def _is_quicker(self, matrices: Matrices) -> bool:
        """Whether computing matrices again takes less time than moving those that would be stored."""
        if running(self.shaped, self.readers, self.tiled, [matrices]) is not None:
            return True  # nothing is computed twice
        unit, users = MULTIPROCESSORS[-1], self.copying.users
        again = 0.0
        for value in self._products(matrices):
            node = self.shaped.assignment(value)
            terms = prod(self.shaped.sizes[size].fixed or 0 for size in node.sizes)
            again += terms * (len(users[value]) - 1)
        moved = sum(
            self._bytes([value]) * (1 + len(self.readers.all_reads[value]))
            for value in self._stored(matrices)
        )
        return again / unit.products <= moved / unit.memory_bytes

    def _is_gained(self, number: int, one: int) -> bool:
        """Whether computing matrices again takes less time than moving what caches do not keep of them.

        Of ``one`` batch they have so many bytes. While caches keep these, a core computes as their lines come.
        """
        core, matrices, copying = self.machine.core, self.copying.groups[number], self.copying
        assert core is not None
        if one <= core.cache_bytes[-1]:
            return False
        moved = sum(  # stored, for which the line comes and goes, and read
            self._bytes([value]) * (2 + len(self.readers.all_reads[value]))
            for value in self._stored(matrices)
        )
        inside = matrices.axes.keys() & copying.inside
        again = sum(
            self._work[value].usual(self.shaped.sizes, {}) * (len(copying.users[value]) - 1)
            for value in sorted(inside)
        )
        lines = moved / self.machine.memory.line_bytes
        return again / UNITS < lines * core.line_cycles[-1]

    @cached_property
    def _work(self) -> dict[int, Work]:
        return of_assignments(self.shaped, self.machine)


def _bytes(shaped: Shaped, value: int) -> float:
    tensor = shaped.tensors[value]
    extents = (shaped.sizes[size].fixed for size in tensor.dims)
    return BYTES[tensor.dtype] * prod(USUAL if extent is None else extent for extent in extents)


def running(
    shaped: Shaped, readers: Inlining, tiled: Tilings, groups: Sequence[Matrices]
) -> Apart | None:
    """The program as it is, with one kernel for each set of matrices, whose rows are reduced while they are read.

    None where a set is walked in several directions, or by several contractions, or something else reads the rows.
    """
    phases: dict[int, Phase] = {}
    axes: dict[int, Labels] = {}
    matrices: set[int] = set()
    quotients: set[int] = set()
    sides: dict[Phase, tuple[int, int]] = {}
    for n, group in enumerate(groups):
        roots = [value for value, each in group.exits.items() if not each.is_row]
        labels = {label for label in group.axes[min(group.wide)] if label is not None}
        rows = {each.label for each in group.exits.values()}
        if not group.alone or len(roots) != 1 or len(rows) != 1:
            return None
        read = {reader for v in group.exits if v not in roots for reader, _ in readers.all_reads[v]}
        if not read <= group.axes.keys() or readers.kept & (group.exits.keys() - {*roots}):
            return None
        (root,) = roots
        if group.exits[root].across or group.exits[root].is_stored:
            return None
        (columns,) = labels - {*group.batch} - rows
        sides[n, 0] = group.exits[root].label, columns
        axes |= group.axes
        phases |= dict.fromkeys(group.axes, (n, 0))
        matrices |= {*group.wide} | (group.exits.keys() - {root})
        factors = (root, *sources(shaped.nodes[root]))
        for value in group.wide:
            sole = readers.sole[value]
            contracts = (
                sole is not None and not readers.inlined[value] and tiled.tiles[value] is None
            )
            if contracts and any(value in sources(shaped.nodes[each]) for each in factors):
                quotients.add(value)
    return Apart(
        shaped, phases, axes, frozenset(matrices), frozenset(), sides, frozenset(quotients)
    )


class MatrixCopies:
    """One program: what is there so far of the new one."""

    def __init__(
        self, shaped: Shaped, groups: Sequence[Matrices], worked: Mapping[int, int]
    ) -> None:
        self.shaped = shaped
        self.worked = worked
        self.work: dict[int, list[int]] = {}
        for value, exit_ in worked.items():
            self.work.setdefault(exit_, []).append(value)
        self.groups = groups
        self.owner = {value: n for n, each in enumerate(groups) for value in each.axes}
        self.inside = {
            value
            for value, n in self.owner.items()
            if value not in groups[n].exits and value not in groups[n].rows
        }
        tensors = enumerate(shaped.tensors)
        self.names = Names(frozenset(t.name for v, t in tensors if v not in self.inside))
        self.home: dict[int, Phase] = {}
        for n, matrices in enumerate(groups):
            for kernel, exits in enumerate(matrices.kernels):
                self.home.update(dict.fromkeys(exits, (n, kernel)))
        for value in sorted(self.owner.keys() - self.inside - self.home.keys()):
            earlier = (v for v in sources(shaped.nodes[value]) if self.owner.get(v) is not None)
            self.home[value] = max(self.home[v] for v in earlier)
        self.users = self._users()
        self.nodes: list[Node] = []
        self.tensors: list[Tensor] = []
        self.number: dict[int, ValueId] = {}
        self.clones: dict[tuple[Phase, int], int] = {}
        self.copies: dict[int, ValueId] = {}
        self.stored: set[int] = set()
        self.phases: dict[int, Phase] = {}
        self.axes: dict[int, Labels] = {}
        self.matrices: set[int] = set()

    def _users(self) -> list[set[Phase | None]]:
        """The kernels in which each value is read; None for what belongs to none."""
        users: list[set[Phase | None]] = [set() for _ in self.shaped.nodes]
        for output in self.shaped.outputs:
            users[output].add(None)
        for value in range(len(self.shaped.nodes) - 1, -1, -1):
            groups = users[value] if value in self.inside else {self.home.get(value)}
            for source in sources(self.shaped.nodes[value]):
                users[source] |= groups
        return users

    def around(self, number: int) -> set[int]:
        """The arrays that the matrices of a number are made of, and that contractions of them give."""
        matrices = self.groups[number]
        arrays = {value for value, each in matrices.exits.items() if not each.is_row}
        inside = matrices.axes.keys() & self.inside
        for value in inside:
            arrays.update(sources(self.shaped.nodes[value]))
        return arrays - inside

    def run(self) -> Apart | None:
        """The new program; None where no order of kernels is right for all matrices."""
        for value in self.shaped.inputs:
            self.number[value] = self._add(value, self.shaped.nodes[value])
        kernels = [kernel for matrices in self.groups for kernel in matrices.kernels]
        exits = [
            value
            for exits in kernels
            for value in (*exits, *(work for each in exits for work in self.work.get(each, ())))
        ]
        if not all(self._need(value) for value in (*exits, *self.shaped.outputs)):
            return None
        rows = (each for each in self.shaped.rows if each.value in self.number)
        shaped = replace(
            self.shaped,
            nodes=tuple(self.nodes),
            tensors=tuple(self.tensors),
            rows=tuple(replace(each, value=self._stored(each.value)) for each in rows),
            inputs=tuple(self.number[value] for value in self.shaped.inputs),
            outputs=tuple(self._stored(value) for value in self.shaped.outputs),
        )
        copies = self.stored.union(self.copies.values())
        return Apart(
            shaped,
            self.phases,
            self.axes,
            frozenset(self.matrices),
            frozenset(copies),
            self._sides(),
        )

    def _add(self, value: int, node: Node, dims: Sequence[int] | None = None) -> ValueId:
        tensor = self.shaped.tensors[value]
        if dims is not None:
            tensor = Tensor(self.names.fresh(tensor.name), tensor.dtype, tuple(dims))
        self.nodes.append(node)
        self.tensors.append(tensor)
        return ValueId(len(self.nodes) - 1)

    def _stored(self, value: int) -> ValueId:
        """The value that has the elements of one for those outside of its kernel."""
        return self.copies.get(value, self.number[value])

    # -- values as they are needed -------------------------------------------------------------------------------------

    def _need(self, wanted: int) -> bool:
        """Add what a value is computed from, and the value; whether there is an order to do so."""
        todo, around = [(wanted, False)], set[int]()
        while todo:
            value, ready = todo.pop()
            if value in self.number:
                continue
            if ready:
                self._make(value)
                around.discard(value)
                continue
            if value in around:
                return False
            around.add(value)
            todo.append((value, True))
            todo += [(each, False) for each in reversed(self._before(value))]
        return True

    def _before(self, value: int) -> list[int]:
        first: dict[int, None] = {}
        if value in self.home:
            n, kernel = self.home[value]
            before = self.groups[n].kernels[:kernel]
            first.update(dict.fromkeys(each for exits in before for each in exits))
        todo = [value]
        while todo:
            for source in sources(self.shaped.nodes[todo.pop()]):
                if source in self.inside:
                    todo.append(source)
                else:
                    first[source] = None
        return [each for each in sorted(first) if each not in self.number]

    def _make(self, value: int) -> None:
        """Add a value that everything is there for."""
        node = self.shaped.nodes[value]
        if value not in self.owner:
            numbers = {source: self._stored(source) for source in sources(node)}
            self.number[value] = self._add(value, renumbered(node, numbers))
            if value in self.worked:
                self.phases[self.number[value]] = self.home[self.worked[value]]
            return
        assert isinstance(node, Assignment)
        phase, matrices = self.home[value], self.groups[self.owner[value]]
        self._clone(value, phase)
        exit_ = matrices.exits.get(value)
        if exit_ is not None and exit_.across:
            self._make_across(value, node, phase)
            return
        self.number[value] = self._note(value, phase, self._add(value, self._reading(node, phase)))
        if exit_ is not None and (exit_.is_stored or matrices.alone):
            self.stored.add(self.number[value])
        is_row = exit_ is None or (exit_.is_row and not matrices.alone)
        if is_row and self.users[value] - {phase}:
            read = Read(self.number[value], node.target)
            self.copies[value] = number = self._copy(value, read, "for other kernels")
            labels, reduced = matrices.axes[value], node.reduced_axes()
            self.phases[number] = phase
            self.axes[number] = tuple(x for axis, x in enumerate(labels) if axis not in reduced)

    def _make_across(self, value: int, node: Assignment, phase: Phase) -> None:
        """Add a contraction that has its rows along memory: with these before, and a copy of that as it is to be."""
        labels, tensor = self.groups[phase[0]].axes[value], self.shaped.tensors[value]

        def is_side(dim: int) -> bool:
            axis = node.target[dim].axis()
            return axis is not None and labels[axis] is None

        order = sorted(range(len(node.target)), key=is_side)
        target = tuple(node.target[dim] for dim in order)
        moved = replace(self._reading(node, phase), target=target)
        dims = [tensor.dims[dim] for dim in order]
        rows = self._note(value, phase, self._add(value, moved, dims))
        self.stored |= {rows} if self.groups[phase[0]].alone else set()
        self.number[value] = self._copy(value, Read(rows, target), "with its rows along memory")
        self.phases[self.number[value]] = phase

    def _sides(self) -> dict[Phase, tuple[int, int]]:
        """The labels of the rows and the columns that each kernel walks."""
        sides: dict[Phase, tuple[int, int]] = {}
        for n, matrices in enumerate(self.groups):
            labels = {label for label in matrices.axes[min(matrices.wide)] if label is not None}
            for kernel, exits in enumerate(matrices.kernels):
                rows = matrices.exits[exits[0]].label
                (columns,) = labels - {*matrices.batch, rows}
                sides[n, kernel] = rows, columns
        return sides

    def _note(self, value: int, phase: Phase, number: ValueId) -> ValueId:
        """Say of a new value what belongs to a kernel; its number."""
        self.phases[number] = phase
        self.axes[number] = self.groups[phase[0]].axes[value]
        return number

    def _copy(self, value: int, read: Read, purpose: str) -> ValueId:
        """A copy of what computes a value, by a read in its axes; it has those of them that are left."""
        node, tensor = self.shaped.assignment(value), self.shaped.tensors[value]
        scalar = Operand(0, tensor.dtype)
        text = f"{tensor.name} {purpose}"
        copy = replace(
            node, reads=(read,), scalar=scalar, acc=None, operands=(), guards=(), text=text
        )
        return self._add(value, without_axes(copy, node.reduced_axes()), tensor.dims)

    # -- matrices ------------------------------------------------------------------------------------------------------

    def _clone(self, value: int, phase: Phase) -> None:
        needed: set[int] = set()
        todo = [value]
        while todo:
            inner = {s for s in sources(self.shaped.nodes[todo.pop()]) if s in self.inside}
            todo += inner - needed
            needed |= inner
        for each in sorted(needed):
            if (phase, each) in self.clones:
                continue
            node, tensor = self.shaped.assignment(each), self.shaped.tensors[each]
            order = self._order(each, phase)
            target = tuple(node.target[dim] for dim in order)
            moved = replace(self._reading(node, phase), target=target)
            number = self._add(each, moved, [tensor.dims[dim] for dim in order])
            self.clones[phase, each] = self._note(each, phase, number)
            if each in self.groups[phase[0]].wide:
                self.matrices.add(number)

    def _reading(self, node: Assignment, phase: Phase) -> Assignment:
        """An assignment of a kernel, which reads what is the kernel's own."""
        reads = tuple(self._read(read, phase) for read in node.reads)
        numbers = {ValueId(x.source): self._stored(x.source) for x in node.lookups()}
        plain = renumbered(replace(node, reads=()), numbers)
        assert isinstance(plain, Assignment)
        return replace(plain, reads=reads)

    def _read(self, read: Read, phase: Phase) -> Read:
        """A read in a kernel: of its own matrix, of a value of the row that it is at, or of what is stored."""
        value = read.value
        if value in self.inside:
            index = tuple(read.index[dim] for dim in self._order(value, phase))
            return replace(read, value=self.clones[phase, value], index=index)
        exit_ = None if value not in self.owner else self.groups[self.owner[value]].exits.get(value)
        is_row = value in self.home and (exit_ is None or exit_.is_row)
        is_here = is_row and self.home[value] == phase
        return replace(read, value=self.number[value] if is_here else self._stored(value))

    def _order(self, value: int, phase: Phase) -> tuple[int, ...]:
        """The dimensions of a matrix in the order that a kernel has: those of batches, that of its rows, the other one.

        What is a batch dimension, and in which order, is that of the first contraction that reads the matrices.
        Dimensions without an axis, of one position, come before all others.
        """
        matrices, node = self.groups[phase[0]], self.shaped.assignment(value)
        dims = range(len(node.target))
        if value not in matrices.wide:
            return tuple(dims)
        exits = [matrices.exits[each] for each in matrices.kernels[phase[1]]]
        rows = exits[0].label
        first = next((each.value for each in exits if not each.is_row), exits[0].value)
        exit_ = self.shaped.assignment(first)
        outer = [matrices.axes[first][axis] for axis in exit_.output_axes()]
        batch = [label for label in outer if label in matrices.batch]

        in_order = [None, *batch, rows]

        def place(dim: int) -> int:
            """The place of a dimension among those of the kernel; the last one for a column."""
            axis = node.target[dim].axis()
            label = None if axis is None else matrices.axes[value][axis]
            return in_order.index(label) if label in in_order else len(in_order)

        return tuple(sorted(dims, key=place))
