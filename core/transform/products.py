"""Products of several tensors in the order of least multiplications, where extents are known and nobody wrote an order.

A notation contracts two tensors at a time before it knows extents, and marks these steps as ``associative``. Here the
products between them are dissolved, and what reads them is contracted anew; a product that several read, as one of a
program and of its gradient, is computed once. Where no order takes fewer multiplications the program stays.

Example, ``einsum("ij,jk,kl->il")`` of 3 × 200, 200 × 100 and 100 × 90:
    in:   t[j,l] = sum in1[j,k] * in2[k,l] over k           out[i,l] = sum in0[i,j] * t[j,l] over j
    out:  out_part[i,k] = sum in0[i,j] * in1[j,k] over j    out[i,l] = sum out_part[i,k] * in2[k,l] over k
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

from ilang.core.calculus.affine import Affine, axis_index, variables_of
from ilang.core.calculus.contraction import FEW, contraction_steps, kept_axes
from ilang.core.dtype import FLOATS
from ilang.core.infer.unionfind import UnionFind
from ilang.core.ir.assignments import sources
from ilang.core.ir.graph import Axis
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import Apply, Operand, Scalar
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.names import Names
from ilang.core.record import replace
from ilang.core.transform.extended import ExtendedProgram

MOST = 64
"""Tensors of a product at most: what several read is dissolved in each of them."""

Index = tuple[Affine, ...]
Key = tuple[tuple[tuple[ValueId, Index], ...], frozenset[int]]
"""Tensors at indices over axes in order of appearance, and the axes that their product keeps."""

Numbers = dict[Key, tuple[ValueId, Index]]
"""The products that are new: their numbers, and their indices over axes in order of appearance."""


def products_in_order(shaped: Shaped) -> Shaped:
    """The program with its products in another order, where that takes fewer multiplications; else itself."""
    steps = _Associative(shaped)
    if not steps.inner:
        return shaped
    new = ExtendedProgram(shaped)
    numbers: Numbers = {}
    plans = list[_Plan]()
    for values in steps.groups():
        plan = _Plan(steps, new, dict(numbers))
        if plan.contract(values):
            numbers = plan.numbers
            plans.append(plan)
            plan.put()
    return new.result() if plans else shaped


class _Associative:
    """The steps of products whose order is free; ``inner`` ones are read by others of them alone."""

    def __init__(self, shaped: Shaped) -> None:
        self.shaped = shaped
        self.steps = {
            value: node
            for value, node in shaped.numbered()
            if isinstance(node, Assignment) and _is_step(shaped, node)
        }
        others = {
            value
            for number, node in shaped.numbered()
            for value in sources(node)
            if number not in self.steps
        }
        read = {each.value for node in self.steps.values() for each in node.reads}
        self.inner = {value for value in read if value in self.steps}
        self.inner -= others | set(shaped.outputs)

    def groups(self) -> Iterator[tuple[ValueId, ...]]:
        """The values that read inner ones, those together that read the same."""
        together = UnionFind(len(self.shaped.nodes))
        for value, node in self.steps.items():
            for read in node.reads:
                if read.value in self.inner:
                    together.union(value, read.value)
        groups: dict[int, list[ValueId]] = {}
        for value in self.steps:
            groups.setdefault(together.find(value), []).append(value)
        yield from (tuple(values) for values in groups.values() if 1 < len(values))

    def product(self, value: ValueId) -> Assignment | None:
        """A value as a sum of products of all tensors; None where these are too many, or lack an axis."""
        axes, sizes, reads, names = list[Axis](), list[int](), list[Read](), Names()

        def fresh(node: Assignment, axis: int) -> Affine:
            each = node.axes[axis]
            axes.append(replace(each, name=names.fresh(each.name)))
            sizes.append(node.sizes[axis])
            return axis_index(len(axes) - 1)

        def opened(node: Assignment, place: dict[int, Affine]) -> list[Read]:
            place |= {axis: fresh(node, axis) for axis in node.reduced_axes()}
            moved = ((r.value, tuple(p.substituted(place) for p in r.index)) for r in node.reads)
            return [Read(*each) for each in moved][::-1]

        whole = self.steps[value]
        outer = {axis: fresh(whole, axis) for axis in whole.output_axes()}
        target = tuple(part.substituted(outer) for part in whole.target)
        todo = opened(whole, outer)
        while todo:
            read = todo.pop()
            if read.value not in self.inner:
                reads.append(read)
                continue
            inner = self.steps[read.value]
            place = {
                axis: at
                for part, at in zip(inner.target, read.index, strict=True)
                if (axis := part.axis()) is not None
            }
            is_apart = _axes_of(read.index) != _axes_of(tuple(place.values()))
            if is_apart or MOST < len(reads) + len(todo):
                return None
            todo += opened(inner, place)
        walked = variables_of(target).union(*(variables_of(each.index) for each in reads))
        if len(walked) < len(axes):  # a sum of equal terms
            return None
        whole = replace(whole, axes=tuple(axes), sizes=tuple(sizes), target=target)
        return replace(whole, reads=tuple(reads), operands=())


class _Plan:
    """The steps by which some values are contracted anew: those ``added``, each for a value, and the last of each."""

    def __init__(self, steps: _Associative, new: ExtendedProgram, numbers: Numbers) -> None:
        self.steps, self.new, self.numbers = steps, new, numbers
        self.added: list[tuple[ValueId, Assignment]] = []
        self.last: dict[ValueId, Assignment] = {}

    def contract(self, values: Sequence[ValueId]) -> bool:
        """Plan the steps of values that read the same inner ones; whether they take fewer multiplications."""
        for value in values:
            if value in self.steps.inner:
                continue
            product = self.steps.product(value)
            if product is None or len(product.reads) < 2:
                return False
            self._contract(value, product)
        steps = [*(step for _, step in self.added), *self.last.values()]
        before = sum(self._count(self.steps.steps[value].sizes) for value in values)
        return sum(self._count(step.sizes) for step in steps) < before

    def put(self) -> None:
        """Put the steps into the program."""
        for value, step in self.added:
            dims = [step.sizes[axis] for axis in step.output_axes()]
            number = self.new.add(step, value, dims, "part")
            self.new.tensors[number] = replace(self.new.tensors[number], of="")
        for value, step in self.last.items():
            self.new.nodes[value] = step

    def _count(self, sizes: Iterable[int]) -> int:
        """The iterations of loops over sizes; an empty one counts as 1."""
        return prod(max(self.new.sizes[size].fixed or 0, 1) for size in sizes)

    def _contract(self, value: ValueId, product: Assignment) -> None:
        """Plan the steps of one value."""
        terms = [frozenset(variables_of(each.index)) for each in product.reads]
        kept = frozenset(product.output_axes())
        whole = (1 << len(terms)) - 1
        subsets = range(3, whole) if self.numbers and len(terms) <= FEW else ()
        known = {
            subset: read
            for subset in subsets
            if 1 < subset.bit_count()
            and (read := self._known(product, subset, kept_axes(terms, kept, subset)))
        }
        operands = known | {1 << n: each for n, each in enumerate(product.reads)}

        def size(axes: frozenset[int]) -> int:
            return self._count(product.sizes[axis] for axis in axes)

        for one, other in contraction_steps(terms, kept, size, known):
            first, second = sorted((one, other), key=lambda subset: subset & -subset)
            reads, both = (operands[first], operands[second]), one | other
            if both == whole:
                self.last[value] = _step(product, reads, product.target)
                return
            left = kept_axes(terms, kept, both)
            read = self._known(product, both, left)
            if read is None:
                axes = _axes_of((*reads[0].index, *reads[1].index))
                target = tuple(axis_index(axis) for axis in axes if axis in left)
                read = Read(ValueId(len(self.new.nodes) + len(self.added)), target)
                self.added.append((value, _step(product, reads, target)))
                key, order = _key(product, both, left)
                self.numbers[key] = read.value, _renamed(target, order)
            operands[both] = read

    def _known(self, product: Assignment, subset: int, left: frozenset[int]) -> Read | None:
        """The product of some tensors, if it is planned already."""
        key, order = _key(product, subset, left)
        if key not in self.numbers:
            return None
        value, index = self.numbers[key]
        return Read(value, tuple(part.renamed(dict(enumerate(order))) for part in index))


def _step(product: Assignment, reads: tuple[Read, Read], target: Index) -> Assignment:
    """A contraction of two tensors, over those of the axes of a product that they have."""
    kept = _axes_of(target)
    order = tuple(dict.fromkeys((*kept, *(a for read in reads for a in _axes_of(read.index)))))
    dtype = product.scalar.dtype
    return replace(
        product,
        axes=tuple(product.axes[axis] for axis in order),
        sizes=tuple(product.sizes[axis] for axis in order),
        target=_renamed(target, order),
        reads=tuple(replace(each, index=_renamed(each.index, order)) for each in reads),
        scalar=Apply("mul", (Operand(0, dtype), Operand(1, dtype)), dtype),
        acc="+" if len(kept) < len(order) else None,
        text=_text(product, reads, target),
        associative=False,
    )


def _renamed(index: Index, order: Sequence[int]) -> Index:
    """An index over axes that have the numbers of their places in an order."""
    place = {axis: n for n, axis in enumerate(order)}
    return tuple(part.renamed(place) for part in index)


def _is_step(shaped: Shaped, node: Assignment) -> bool:
    """Whether a node is a plain sum of products of tensors of its type, over known extents, whose order is free."""
    if not node.associative or node.acc not in ("+", None):
        return False
    dtype = node.scalar.dtype
    is_plain = node.base is None and not node.guards and node.schedule is None
    is_plain &= not any(read.guards for read in node.reads)
    return (
        is_plain
        and dtype in FLOATS
        and _is_product(node.scalar)
        and all(shaped.tensors[read.value].dtype == dtype for read in node.reads)
        and all(shaped.sizes[size].fixed is not None for size in node.sizes)
        and all(part.axis() is not None or part == Affine(()) for part in node.indices())
        and all(_is_whole(shaped, node, read) for read in node.reads)
    )


def _is_whole(shaped: Shaped, node: Assignment, read: Read) -> bool:
    """Whether each axis of a read walks a whole dimension."""
    dims = zip(read.index, shaped.tensors[read.value].dims, strict=True)
    axes = ((part.axis(), dim) for part, dim in dims)
    sizes = shaped.sizes
    return all(
        axis is None or sizes[node.sizes[axis]].fixed == sizes[dim].fixed for axis, dim in axes
    )


def _is_product(scalar: Scalar) -> bool:
    """Whether a scalar is a product of operands, each once, or one of them."""
    parts, numbers = [scalar], list[int]()
    while parts:
        match parts.pop():
            case Operand(number=number):
                numbers.append(number)
            case Apply(primitive="mul", arguments=arguments):
                parts += arguments
            case _:
                return False
    return len(set(numbers)) == len(numbers)


def _axes_of(index: Index) -> tuple[int, ...]:
    """The axes of an index, in order of appearance."""
    return tuple(dict.fromkeys(axis for part in index for axis in part.variables()))


def _key(product: Assignment, subset: int, left: frozenset[int]) -> tuple[Key, tuple[int, ...]]:
    """The key of the product of some tensors, and its axes in order of appearance."""
    reads = [each for n, each in enumerate(product.reads) if subset >> n & 1]
    reads.sort(key=lambda each: each.value)
    order = tuple(dict.fromkeys(axis for each in reads for axis in _axes_of(each.index)))
    kept = frozenset(n for n, axis in enumerate(order) if axis in left)
    return (tuple((each.value, _renamed(each.index, order)) for each in reads), kept), order


def _text(product: Assignment, reads: tuple[Read, Read], target: Index) -> str:
    """A step as einsum writes it; axes of several letters stand apart."""
    names = [axis.name for axis in product.axes]
    between = "" if all(len(name) == 1 for name in names) else " "

    def spelled(index: Index) -> str:
        axes = (part.axis() for part in index)
        return between.join("1" if axis is None else names[axis] for axis in axes)

    one, other = (spelled(read.index) for read in reads)
    return f'einsum("{one},{other}->{spelled(target)}")'
