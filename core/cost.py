"""The cost of a program: iterations, operations, time and bytes, symbolic where extents are known at run time.

One count for all who ask: how much there is to do (``i explain``), whether threads are worth it (``passes/cpu``, the
tests in the text of targets), whether a call is so long that somebody may want to stop it.

A unit of time is that of an element that a thread reads from a near cache: 0.03 to 0.04 ns where vectors have 64 bytes
(decision 0111).

Example, ``ik*kj~ijk >> +ijk~ij`` on a machine whose tiles take 4 elements in the time of one:
    as assignments:  i·j·k iterations of 1 operation that cost nothing: the sum's tiles make them
                     i·j·k iterations of 1 operation in 1/4 of the time of an element that is read
    as loops:        the copies, n_k·64 iterations in time 2;  the tile, n_k·6·64 in time 1/4 each
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from ilang.core.calculus.affine import Affine, variables_of
from ilang.core.calculus.extent import PLAIN
from ilang.core.dtype import BYTES, FLOATS
from ilang.core.ir.known_extents import USUAL
from ilang.core.ir.scalar import Apply, Load, Scalar, scalars_within
from ilang.core.ir.shaped import Assignment, Shaped, Size
from ilang.core.machine import Machine
from ilang.core.ops import COSTS, PRIMITIVES, ROUNDED
from ilang.core.record import record

if TYPE_CHECKING:  # who calls what an earlier run has compiled asks about assignments only
    from ilang.core.ir.kernel import For, Program, Statement

UNITS = 8
"""Units of time in a cycle of a core of 3.6 GHz."""


@record
class Work:
    """The iterations of a nest, the product of ``sizes``, and what one of them costs.

    ``operations`` are those of arithmetic; ``time`` is in elements that one thread reads.
    """

    sizes: tuple[int, ...]
    operations: int
    time: float

    def usual(self, sizes: Sequence[Size], steps: Mapping[int, int]) -> float:
        """The time of all iterations, where every dimension whose extent is not known has ``USUAL`` elements.

        ``steps`` says how far apart the parts of dimensions are, by size number.
        """
        known, unknown = self.split(sizes)
        return known * prod(max(1.0, USUAL / steps.get(size, 1)) for size in unknown)

    def split(self, sizes: Sequence[Size]) -> tuple[float, tuple[int, ...]]:
        """The time of all iterations: a number, times the sizes that are not known."""
        known = self.time * prod(n for size in self.sizes if (n := sizes[size].fixed) is not None)
        return known, tuple(size for size in self.sizes if sizes[size].fixed is None)


def of_assignments(shaped: Shaped, machine: Machine) -> dict[int, Work]:
    """The work of each assignment of a program, by value, however it will be scheduled.

    Values between assignments count as computed where they are read. The products of a contraction cost nothing beside
    its sum, which goes in tiles.
    """
    nodes = {v: node for v, node in enumerate(shaped.nodes) if isinstance(node, Assignment)}
    times: dict[int, float] = {}
    for value, node in nodes.items():
        reads = sum(read.value not in nodes for read in node.reads)
        is_stored = node.acc is None and value in shaped.outputs
        times[value] = _time([node.scalar], reads + is_stored)
        product = node.reads[0].value if len(node.reads) == 1 else value
        product = product if product in nodes else value
        if product != value and (nodes[product].acc is not None or _costs([nodes[product].scalar])):
            continue
        if _contracts(node, nodes[product]):
            times[product] = 0.0
            times[value] = 1 / machine.tiles.gain
    return {
        value: Work(node.sizes, _operations([node.scalar]) + (node.acc is not None), times[value])
        for value, node in nodes.items()
    }


def cycles_of(node: Assignment) -> float:
    """The cycles in which vectors compute an iteration of an assignment whose operands are in registers."""
    return 1.0 + sum(COSTS.get(part.primitive, 0) for part in _applied([node.scalar]))


def _contracts(node: Assignment, product: Assignment) -> bool:
    """Whether an assignment sums products in which each operand is met again and again."""
    operands = [variables_of(r.index) for r in product.reads]
    again = all(len(axes) < len(product.axes) for axes in operands)
    return again and node.acc == "+" and node.scalar.dtype in FLOATS


def of_loop(program: Program, loop: For) -> Iterator[Work]:
    """The work of each innermost loop inside a loop, with the loops from that one down to it."""
    from ilang.core.ir import kernel
    from ilang.core.ir.cpu import Tile, Transpose

    nested = (kernel.For, Tile, Transpose)
    computing = (kernel.Define, kernel.Change, kernel.Store)
    stack: list[tuple[Statement, list[tuple[int, int]], bool]] = [(loop, [], False)]
    while stack:
        s, around, is_tile = stack.pop()
        if isinstance(s, kernel.For):
            around = _opened(s, around)
            inside = list(kernel.statements_within(s.body))
            if not any(isinstance(inner, nested) for inner in inside):
                scalars = [inner.value for inner in inside if isinstance(inner, computing)]
                sizes = tuple(size for _, size in around)
                stores = sum(isinstance(inner, kernel.Store) for inner in inside)
                time = _time(scalars, _loads(scalars) + stores)
                if is_tile:
                    time = (1.0 + _costs(scalars)) / program.machine.tiles.gain
                yield Work(sizes, _operations(scalars), time)
        elif isinstance(s, Tile):
            around = [*around, *((loop.variable, loop.size) for loop in s.blocks)]
            stack += [(inner, around, True) for inner in s.body]
            continue
        stack += [(inner, around, is_tile) for block in kernel.blocks_of(s) for inner in block]


def _opened(loop: For, around: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The loops around what is inside a loop: variables and sizes.

    The parts of a dimension count as the whole of it where all of them are around, and so do the blocks of a loop.
    """
    start, size = loop.part() or (Affine(()), loop.size)
    outer, whole = start.variables(), all(step == 1 for _, step in loop.end.limits())
    around = [(v, n) for v, n in around if loop.chunk is None or v != loop.chunk[2]]
    if not outer or not whole or not outer <= {v for v, _ in around}:
        return [*around, (loop.variable, loop.size)]
    return [*((v, n) for v, n in around if v not in outer), (loop.variable, size)]


def _time(scalars: Iterable[Scalar], accesses: int) -> float:
    """The time of an iteration that computes some scalars, and reads and stores so many elements."""
    return max(1, accesses) + _costs(scalars)


def _costs(scalars: Iterable[Scalar]) -> float:
    """The time that functions and quotients take: a cycle of a vector is about a quarter of an element each."""
    return sum(COSTS.get(part.primitive, 0) for part in _applied(scalars)) / 4


def _loads(scalars: Iterable[Scalar]) -> int:
    """The elements that some scalars read."""
    return sum(isinstance(part, Load) for scalar in scalars for part in scalars_within(scalar))


def _operations(scalars: Iterable[Scalar]) -> int:
    """The number of operations of an iteration; one that only moves an element does not count."""
    names = (part.primitive for part in _applied(scalars))
    return sum(PRIMITIVES[name].kind != "move" and name not in ROUNDED for name in names)


def _applied(scalars: Iterable[Scalar]) -> Iterator[Apply]:
    for scalar in scalars:
        yield from (part for part in scalars_within(scalar) if isinstance(part, Apply))


def of_transfers(shaped: Shaped) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The bytes of an element of each input and output, and the sizes of which the elements moved are the product.

    A diagonal has one axis for two dimensions, so as many elements as that has iterations.
    """
    accessed: dict[int, list[dict[int, int]]] = {}
    for node in shaped.nodes:
        if isinstance(node, Assignment):
            for value, index in (
                *((each.source, each.index) for each in node.lookups()),
                *((read.value, read.index) for read in node.reads),
            ):
                axes = {axis: node.sizes[axis] for part in index for axis in part.variables()}
                accessed.setdefault(value, []).append(axes)
    for value in (*shaped.inputs, *shaped.outputs):
        tensor = shaped.tensors[value]
        most = max(accessed.get(value, ()), key=len, default=None)
        whole = most is None or len(most) >= len(tensor.dims)
        sizes = tensor.dims if most is None or whole else tuple(most.values())
        yield BYTES[tensor.dtype], sizes


class Total:
    """A sum of products of extents: a number, or a formula where extents are not known."""

    def __init__(self, program: Program) -> None:
        """Nothing yet, of the sizes of a program."""
        self.sizes = program.sizes
        self.most_blocks = program.machine.threads.most_blocks
        self.counts = {n: x for n, x in program.counts if x.operation in ("ceil", "when")}
        self.blocks = program.chunks()
        self.number = 0
        self.terms: dict[tuple[str, ...], int] = {}
        self.order: dict[tuple[str, ...], tuple[str, ...]] = {}
        """The order in which the extents of a product were met first, by what is in it."""

    def add(self, factor: int, sizes: Sequence[int]) -> None:
        """Add ``factor`` times the product of some sizes."""
        names = []
        for number in sizes:
            size = self.sizes[number]
            if number in self.counts:
                names.append(self._spelled(number))
            elif number in self.blocks:
                factor *= self.most_blocks
            elif size.fixed is None:
                names.append(size.name)
            else:
                factor *= size.fixed
        if factor and names:
            product = self.order.setdefault(tuple(sorted(names)), tuple(names))
            self.terms[product] = self.terms.get(product, 0) + factor
        elif factor:
            self.number += factor

    def _spelled(self, number: int) -> str:
        """An extent in terms of sizes that are given: a sum in parentheses."""
        count, size = self.counts.get(number), self.sizes[number]
        if count is None:
            return size.name if size.fixed is None else str(size.fixed)
        text = count.text(self._spelled, PLAIN)
        return f"({text})" if count.operation == "when" else text

    def spelled(self) -> str:
        """The result as text."""
        result = self.result()
        return f"{result:,}" if isinstance(result, int) else result

    def result(self) -> int | str:
        """The number, or a formula such as ``2·i·k·j + 4``."""
        if not self.terms:
            return self.number
        words = [
            "·".join([*([str(f)] if f != 1 else []), *names]) for names, f in self.terms.items()
        ]
        return " + ".join(words + ([str(self.number)] if self.number else []))
