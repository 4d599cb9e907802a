"""Let a matrix unit multiply what the lanes of a warp add: one instruction for all terms of a tile.

Example, of 16 rows, 8 columns and 8 terms, where lane n is g = n // 4 and t = n % 4:
    in:   for k in 0..8 (m): for e in 0..2 (m): for f in 0..2 (m)
            run[e,f] += a_copy[8e+g,k] * b_copy[k,2t+f]
    out:  run[0,0] run[0,1] run[1,0] run[1,1] += a_copy[g,t] a_copy[8+g,t] a_copy[g,t+4] a_copy[8+g,t+4]
                                                 times b_copy[t,g] b_copy[t+4,g]

Both forms add the same products. Before this pass each lane reads the rows and columns of its own sums. The instruction
wants each element of a factor in one lane, which is another lane than that of the sums. Of 16 terms of bf16 a lane has
pairs of adjacent terms: 2t and 2t+1, 2t+8 and 2t+9. If several matrices are multiplied, in loops around, a lane reads
each fragment once, into registers:

Terms that are adjacent in a row of shared memory are read together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice

from ilang.core.calculus.affine import Affine, Within, axis_index
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import MatrixProduct, ThreadLoop
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.rewriting import nested, substituted, unless_same
from ilang.core.ir.scalar import Apply, Load, Scalar, scalars_within
from ilang.core.ir.schedule import UNIT_ROLES
from ilang.core.machine import MatrixUnit
from ilang.core.matrix_unit import ROUNDINGS
from ilang.core.passes.gpu.factors import converted
from ilang.core.passes.gpu.numbering import Numbering
from ilang.core.record import replace


def kernel_to_matrices(program: ir.Program) -> ir.Program:
    """The program with products of a matrix unit."""
    instructions = _MatrixInstructions(program)
    kernels = tuple(instructions.kernel(kernel) for kernel in program.kernels)
    same = all(a is b for a, b in zip(kernels, program.kernels, strict=True))
    return program if same else replace(instructions.numbering.program(), kernels=kernels)


class _MatrixInstructions:
    """A program, and the registers that lanes hold factors in."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.numbering = Numbering(program)
        self.registers: dict[tuple[int, tuple[int, ...], str], BufferId] = {}
        self.pair: VariableId | None = None

    def kernel(self, kernel: ir.Kernel) -> ir.Kernel:
        """A kernel with products; registers of each are others."""
        self.registers.clear()
        self.pair = None
        self.numbering.enter(kernel)
        return self.numbering.left(kernel, self._block(kernel.body, ()))

    def _block(self, body: ir.Block, lanes: tuple[ir.For, ...]) -> ir.Block:
        """A block in loops that threads share, of which the last two count lanes."""
        out: list[ir.Statement] = []
        for s in body:
            around = _around(s)
            if around is None:
                inside = s.loops if isinstance(s, ThreadLoop) and s.over == "threads" else lanes
                out.append(ir.map_blocks(s, partial(self._block, lanes=inside)))
                continue
            *matrices, nest = around
            within, product = product_of(self.program, nest, lanes)
            unit = unit_of(self.program, nest)
            if (matrices or 1 < unit.packed) and not within:
                loads, left = self._held(product.left, matrices, unit)
                more, right = self._held(product.right, matrices, unit)
                out += (*loads, *more)
                product = replace(product, left=left, right=right)
            out += nested(matrices, (ir.If(within, (product,)) if within else product,))
        return unless_same(body, out)

    def _held(
        self, side: tuple[Scalar, ...], matrices: Sequence[ir.For], unit: MatrixUnit
    ) -> tuple[ir.Block, tuple[Scalar, ...]]:
        """The reads of lanes of one side for all matrices, and the scalars that stand for them there."""
        loops = [loop for loop in matrices if loop.variable in _variables(side[0])]
        sizes = (*(loop.size for loop in loops), self.numbering.size(len(side)))
        at = tuple(Affine(((1, loop.variable),)) for loop in loops)
        buffer = self._registers(side[0], sizes, unit.dtype)
        held = tuple(Load(buffer, (*at, Affine((), n)), unit.dtype) for n in range(len(side)))
        stores = (
            ir.Store(buffer, load.index, value) for load, value in zip(held, side, strict=True)
        )
        body: ir.Block = ()
        while several := tuple(islice(stores, unit.packed)):
            body += self._together(several)
        return nested(loops, body), held

    def _together(self, stores: tuple[ir.Store, ...]) -> ir.Block:
        """Terms side by side: of a row that a block shares as one vector, of anything else one by one."""
        first, *others = (store.value for store in stores)
        if (
            not others
            or not isinstance(first, Load)
            or not self._has_rows(first.buffer, len(stores))
        ):
            return stores
        *_, last = first.index
        along = [
            replace(first, index=(*first.index[:-1], last + n)) for n, _ in enumerate(others, 1)
        ]
        if along != others or not last.is_multiple(len(stores)):
            return stores
        if self.pair is None:
            self.pair = self.numbering.variable("pair", "p")
        step = axis_index(self.pair)

        def on(index: tuple[Affine, ...]) -> tuple[Affine, ...]:
            return *index[:-1], index[-1] + step

        read = replace(first, index=on(first.index))
        store = replace(stores[0], index=on(stores[0].index), value=read)
        end = self.numbering.fixed.extent(len(stores))
        return (ir.For(self.pair, end, (store,), role="u", manner=ir.Vectors((first.buffer,))),)

    def _has_rows(self, number: BufferId, count: int) -> bool:
        """Whether a block shares the rows of a buffer, each as many times ``count`` elements."""
        buffer = self.program.buffers[number]
        if buffer.space != "shared" or len(buffer.dims) < 2:
            return False
        return (self.program.sizes[buffer.dims[-1]].fixed or 1) % count == 0

    def _registers(self, read: Scalar, sizes: tuple[int, ...], dtype: str) -> BufferId:
        (number,) = {part.buffer for part in scalars_within(read) if isinstance(part, Load)}
        key = number, sizes, dtype
        if key not in self.registers:
            tensor = self.numbering.buffers[number].tensor
            name = f"{self.numbering.buffers[number].name}_held"
            self.registers[key] = self.numbering.private(name, dtype, sizes, "local", tensor)
        return self.registers[key]


def _around(s: ir.Statement) -> list[ir.For] | None:
    """Unrolled loops over matrices right inside each other, and the loops of a unit in them; None for any other."""
    loops: list[ir.For] = []
    while isinstance(s, ir.For):
        loops.append(s)
        if s.role in UNIT_ROLES:
            return loops
        if s.role != "u" or s.within or len(s.body) > 1:
            return None
        s = s.body[0]
    return None


def unit_of(program: ir.Program, nest: ir.For) -> MatrixUnit:
    """The unit of a device that a nest is given to."""
    return program.machine.gpu().unit(ROUNDINGS[nest.role])


def product_of(
    program: ir.Program, nest: ir.For, lanes: tuple[ir.For, ...]
) -> tuple[tuple[Within, ...], MatrixProduct]:
    """The product that a unit computes of loops over terms, and over rows and columns of a lane; and its conditions."""
    loops, body = [nest], nest.body
    within: tuple[Within, ...] = ()
    while isinstance(body[0], (ir.For, ir.If)):
        if isinstance(body[0], ir.For):
            loops.append(body[0])
        else:
            within += body[0].within
        body = body[0].body
    *before, store = body
    assert isinstance(store, ir.Store)
    assert isinstance(store.value, Apply)
    old, product = store.value.arguments
    for s in before:  # the product by itself, until a pass rounds it with the sum
        assert isinstance(s, ir.Define)
        product = s.value
    assert isinstance(product, Apply)
    left, right = product.arguments
    (terms, _), (row, rows), (column, columns) = (
        (loop.variable, program.sizes[loop.size].fixed or 0) for loop in loops
    )
    if row not in _variables(left):
        left, right = right, left
    group, place = (loop.variable for loop in lanes[-2:])
    unit = unit_of(program, nest)
    sums = tuple(
        substituted(old, {row: Affine((), r), column: Affine((), c)})
        for r in range(rows)
        for c in range(columns)
    )
    shares = [Affine(((unit.packed, place),), n) for n in unit.terms_of(0)]
    packed = [shares[n : n + unit.packed] for n in range(0, len(shares), unit.packed)]
    lefts = tuple(
        substituted(left, {terms: term, row: Affine((), r)})
        for several in packed
        for r in range(rows)
        for term in several
    )
    turned = Affine(((1, group), (-columns, place)))
    rights = tuple(substituted(right, {terms: term, column: turned}) for term in shares)
    lefts, rights = (tuple(converted(x, unit.dtype) for x in side) for side in (lefts, rights))
    held = tuple(x for x in sums if isinstance(x, Load))
    return within, MatrixProduct(unit.rounding, held, lefts, rights)


def _variables(scalar: Scalar) -> set[int]:
    loads = (part for part in scalars_within(scalar) if isinstance(part, Load))
    return {v for load in loads for part in load.index for v in part.axes()}
