"""Share the tiles of a matrix unit among the lanes of a warp: the elements that each of them holds of a sum.

Example, of 16 rows and 8 columns, where lane n is i2g = n // 4 and j2t = n % 4:
    in:   for i2 in 0..16 (m)                            out:  for i2g in 0..8 (t): for j2t in 0..4 (t)
            for j2 in 0..8 (m)                                   for i2e in 0..2: for j2f in 0..2
              run[i2,j2] = 0                                       run[i2e,i2g,j2t,j2f] = 0

The loops i2g and j2t are for the lanes of a warp, so that loops around them count warps; larger tiles have unrolled
loops over matrices. The loop nest that adds products keeps its order of terms and its role: each lane reads the rows
and columns of its own sums. Which elements the instruction wants from each lane is the concern of ``matrices.py``. A
read past the end of a dimension gives 0, as in copies (``factors.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ilang.core.calculus.affine import Affine, Within
from ilang.core.ir import kernel as ir
from ilang.core.ir.ids import VariableId
from ilang.core.ir.rewriting import accesses, chain_of, nested, substituted
from ilang.core.ir.schedule import UNIT_ROLES, Role
from ilang.core.machine import MatrixUnit
from ilang.core.matrix_unit import ROUNDINGS
from ilang.core.passes.gpu.factors import Factors, Products, moved
from ilang.core.passes.gpu.numbering import Numbering
from ilang.core.record import record, replace


def kernel_to_fragments(program: ir.Program) -> ir.Program:
    """The program whose matrix units have the lanes of warps."""
    if not any(_asks(kernel.body) for kernel in program.kernels):
        return program
    numbering = Numbering(program)
    kernels = tuple(
        _Fragments(numbering, kernel).run() if _asks(kernel.body) else kernel
        for kernel in program.kernels
    )
    return replace(numbering.program(), kernels=kernels)


def _asks(body: ir.Block) -> bool:
    return any(isinstance(s, ir.For) and s.role in UNIT_ROLES for s in ir.statements_within(body))


def _asked(chain: Sequence[ir.For]) -> list[ir.For]:
    return [loop for loop in chain if loop.role in UNIT_ROLES]


@record
class _TileSide:
    """The loops that stand for one over rows or columns of a tile: those, outermost first, and their weights.

    Loops over ``matrices`` stand around what a unit does, where there are several; ``in_lane`` ones are of a lane, and
    those ``across_lanes`` are for threads.
    """

    loops: tuple[ir.For, ...]
    weights: tuple[int, ...]
    matrices: tuple[ir.For, ...]
    in_lane: ir.For
    across_lanes: ir.For

    def index(self) -> Affine:
        """The row or column."""
        pairs = zip(self.weights, self.loops, strict=True)
        return Affine(tuple((weight, loop.variable) for weight, loop in pairs))


class _Fragments:
    """One kernel, and what a pass adds to its program."""

    def __init__(self, numbering: Numbering, kernel: ir.Kernel) -> None:
        device = numbering.given.machine.gpu()
        numbering.enter(kernel)
        self.kernel = kernel
        self.device = device
        self.buffers = numbering.buffers
        self.numbering = numbering
        self.factors = Factors(device, kernel, numbering)
        self.held: dict[int, tuple[int, int, MatrixUnit]] = {}
        self.variables: dict[str, VariableId] = {}

    def run(self) -> ir.Kernel:
        """The kernel with loops over what lanes hold."""
        chains = self._chains(self.kernel.body, 3)
        body = self.factors.copied(self.kernel.body, [*map(self.factors.products, chains)])
        for chain in self._chains(body, 2):
            self._find_held(chain)
        body = self._block(body)
        for number, (rows, columns, unit) in self.held.items():
            self._split_dims(number, rows, columns, unit)
        return self.numbering.left(self.kernel, body)

    def _chains(self, body: ir.Block, count: int) -> Iterator[list[ir.For]]:
        for s in body:
            if not isinstance(s, ir.For):
                continue
            chain, _ = chain_of((s,))
            asked = len(_asked(chain))
            if asked == count:
                yield chain
            elif not asked:
                yield from self._chains(chain[-1].body, count)

    def _unit(self, loop: ir.For) -> MatrixUnit:
        return self.device.unit(ROUNDINGS[loop.role])

    # -- what lanes hold ---------------------------------------------------------------------------------------------

    def _find_held(self, chain: Sequence[ir.For]) -> None:
        """The sums that a nest touches, and which of their dimensions are rows and columns."""
        first, second = _asked(chain)
        rows, columns = first.variable, second.variable
        for number, index in accesses(chain[-1].body):
            axes = [part.axis() for part in index]
            if self.buffers[number].private and rows in axes and columns in axes:
                self.held[number] = axes.index(rows), axes.index(columns), self._unit(first)

    def _split_dims(self, number: int, rows: int, columns: int, unit: MatrixUnit) -> None:
        """A buffer of sums with dimensions of lanes, and of what each of them holds."""
        dims: list[int] = []
        buffer = self.buffers[number]
        for n, size in enumerate(buffer.dims):
            extent = self.numbering.sizes[size].fixed or 0
            if n == rows:
                dims += [self.numbering.size(each) for each in self._row_parts(extent, unit)]
            elif n == columns:
                dims += [self.numbering.size(each) for each in self._column_parts(extent, unit)]
            else:
                dims.append(size)
        self.buffers[number] = replace(buffer, dims=tuple(dims), padded=False)

    def _row_parts(self, extent: int, unit: MatrixUnit) -> tuple[int, ...]:
        """Matrices among rows, where there are several; rows of a lane in each, and groups."""
        groups = self.device.warp // unit.across
        return *_several(extent // unit.rows), unit.rows // groups, groups

    def _column_parts(self, extent: int, unit: MatrixUnit) -> tuple[int, ...]:
        """Matrices among columns, where there are several; lanes of a group, and columns of each."""
        return *_several(extent // unit.columns), unit.across, unit.columns // unit.across

    def _block(self, body: ir.Block) -> ir.Block:
        out: list[ir.Statement] = []
        for s in body:
            chain, _ = chain_of((s,))
            asked = len(_asked(chain))
            if asked == 3:
                out += self._adding(self.factors.products(chain))
            elif asked == 2:
                out += self._each(chain)
            elif asked or (not chain and _asks((s,))):
                raise self.factors.refusal("something else is in its loops", "leave out its roles")
            else:
                out.append(ir.map_blocks(s, self._block))
        return tuple(out)

    def _loop(self, loop: ir.For, extent: int, letter: str, role: Role) -> ir.For:
        name = self.numbering.names[loop.variable] + letter  # loops of one name are in no other
        if name not in self.variables:
            self.variables[name] = self.numbering.split(loop.variable, letter)
        return ir.For(self.variables[name], self.numbering.fixed.extent(extent), (), role=role)

    def _rows(self, loop: ir.For, role: Role) -> _TileSide:
        extent, unit = self.numbering.sizes[loop.size].fixed or 0, self._unit(loop)
        *many, each, groups = self._row_parts(extent, unit)
        matrices = tuple(self._loop(loop, count, "u", "u") for count in many)
        in_lane, across_lanes = (
            self._loop(loop, each, "e", role),
            self._loop(loop, groups, "g", "t"),
        )
        weights = (*(unit.rows for _ in many), groups, 1)
        return _TileSide(
            (*matrices, in_lane, across_lanes), weights, matrices, in_lane, across_lanes
        )

    def _columns(self, loop: ir.For, role: Role) -> _TileSide:
        extent, unit = self.numbering.sizes[loop.size].fixed or 0, self._unit(loop)
        *many, across, each = self._column_parts(extent, unit)
        matrices = tuple(self._loop(loop, count, "u", "u") for count in many)
        across_lanes, in_lane = (
            self._loop(loop, across, "t", "t"),
            self._loop(loop, each, "f", role),
        )
        weights = (*(unit.columns for _ in many), each, 1)
        return _TileSide(
            (*matrices, across_lanes, in_lane), weights, matrices, in_lane, across_lanes
        )

    def _each(self, chain: Sequence[ir.For]) -> ir.Block:
        """A nest over the elements of a tile."""
        first, second = _asked(chain)
        rows, columns = self._rows(first, "u"), self._columns(second, "u")
        body = self._within(chain[-1].body, {first.variable: rows, second.variable: columns})
        private = all(self.buffers[number].private for number, _ in accesses(chain[-1].body))
        within: list[Within] = []
        for loop in (first, second):
            self.factors.endless(loop, within)
        if within and not private:
            index = {first.variable: rows.index(), second.variable: columns.index()}
            (guarded,) = (substituted(ir.If(tuple(within), ()), index),)
            assert isinstance(guarded, ir.If)
            body = (replace(guarded, body=body),)
        around = [loop for loop in chain if loop.role not in UNIT_ROLES]
        inside = (*rows.matrices, rows.in_lane, *columns.matrices, columns.in_lane)
        return nested((*around, rows.across_lanes, columns.across_lanes, *inside), body)

    def _adding(self, products: Products) -> ir.Block:
        """A nest that adds products, in whole matrices."""
        loop = products.terms
        role, unit = loop.role, self.device.unit(ROUNDINGS[loop.role])
        rows, columns = self._rows(products.rows, role), self._columns(products.columns, role)
        extent = self.numbering.sizes[loop.size].fixed or 0
        many = [self._loop(loop, count, "u", "") for count in _several(extent // unit.terms)]
        each = self._loop(loop, unit.terms, "m", role)
        term = Affine((*((unit.terms, x.variable) for x in many), (1, each.variable)))
        within: dict[VariableId, Within] = {}
        for loop in (products.rows, products.columns, products.terms):
            ends: list[Within] = []
            self.factors.endless(loop, ends)
            for end in ends:
                within[loop.variable] = end
        body = self.factors.guarded(products, within)
        lanes = {products.rows.variable: rows, products.columns.variable: columns}
        at_terms = {products.terms.variable: term}
        body = tuple(substituted(s, at_terms) for s in self._within(body, lanes))
        around = [loop for loop in products.chain if loop.role not in UNIT_ROLES]
        inside = (*many, *rows.matrices, *columns.matrices, each, rows.in_lane, columns.in_lane)
        return nested((*around, rows.across_lanes, columns.across_lanes, *inside), body)

    def _within(self, body: ir.Block, lanes: Mapping[VariableId, _TileSide]) -> ir.Block:
        """Statements at the elements of lanes, which sums have dimensions for."""
        index = {variable: each.index() for variable, each in lanes.items()}

        def split(parts: tuple[Affine, ...]) -> tuple[Affine, ...]:
            out: list[Affine] = []
            for part in parts:
                axis = part.axis()
                each = lanes.get(VariableId(axis)) if axis is not None else None
                out += [part] if each is None else [Affine(((1, x.variable),)) for x in each.loops]
            return tuple(out)

        for number in self.held:
            body = tuple(moved(s, number, split) for s in body)
        return tuple(substituted(s, index) for s in body)


def _several(count: int) -> tuple[int, ...]:
    return (count,) if count > 1 else ()
