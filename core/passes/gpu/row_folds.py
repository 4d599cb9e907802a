"""Reduce the rows of a tile in the threads that have the tile: adjacent lanes combine what each of them has of a row.

Example, the maximum of each row, where 16 lanes have 4 columns each:
    in:   for i1 (t): for i2: m[i1,i2] = -inf        out:  for i1 (t): for lane (t): for i2: m[i1,lane,i2] = -inf
          for i1 (t): for j1 (t): for i2: for j2           for i1 (t): for j1 (t): for i2
            m[i1,i2] = max(m[i1,i2], s[i1,i2,j1,j2])         part = -inf
                                                             for j2: part = max(part, s[i1,i2,j1,j2])
                                                             part = combine part of 16 lanes
                                                             m[i1,j1,i2] = max(m[i1,j1,i2], part)

Every lane of a row has values of the row of its own, and all have the same: they are in registers (``spaces.py``), and
nobody waits for them. So is the tile, unless others read it. One lane stores what is an array's. Terms of f32 are
added in f32 within a tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.core.calculus.affine import Affine, Within, axis_index
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import CombineThreads
from ilang.core.ir.ids import BufferId, LocalId, VariableId
from ilang.core.ir.rewriting import accesses, chain_of, nested, replaced_loads
from ilang.core.ir.scalar import Apply, Constant, Convert, Load, Local, Scalar
from ilang.core.ir.schedule import THREAD_ROLES
from ilang.core.ops import REDUCING
from ilang.core.passes.gpu.numbering import Numbering
from ilang.core.record import replace


class SharedNest:
    """Loops right inside each other, of which threads share ``rows`` and perhaps ``lanes``, and what is in them.

    A nest is ``within`` some conditions as a whole.
    """

    def __init__(self, chain: Sequence[ir.For], shared: Sequence[ir.For], body: ir.Block) -> None:
        self.chain = tuple(chain)
        self.rows = shared[0]
        self.lanes = shared[1] if 1 < len(shared) else None
        self.within: tuple[Within, ...] = ()
        self.body = body
        if len(body) == 1 and isinstance(body[0], ir.If) and not body[0].otherwise:
            self.body, self.within = body[0].body, body[0].within

    def folded(self) -> ir.Store | None:
        """The accumulation of rows over the lanes that the nest is; None of another one."""
        last = self.body[-1]
        if self.lanes is None or not isinstance(last, ir.Store):
            return None
        value, variables = last.value, {v for part in last.index for v in part.axes()}
        if not isinstance(value, Apply) or value.primitive not in REDUCING:
            return None
        element = Load(last.buffer, last.index, value.dtype or "")
        is_alone = all(isinstance(s, ir.Define) for s in self.body[:-1])
        accumulates = value.arguments[0] == element and is_alone and not last.corrects
        return last if accumulates and self.lanes.variable not in variables else None


def with_row_folds(program: ir.Program) -> ir.Program:
    """The program with rows of tiles that lanes reduce together."""
    numbering = Numbering(program)
    kernels = tuple(
        _Folder(program, kernel, numbering).kernel_folded() for kernel in program.kernels
    )
    return replace(numbering.program(), kernels=kernels)


class _Folder:
    """One kernel, and the values of its rows."""

    def __init__(self, program: ir.Program, kernel: ir.Kernel, numbering: Numbering) -> None:
        self.program = program
        self.kernel = kernel
        self.numbering = numbering
        self.locals = list(kernel.locals)
        self.lanes = 0
        self.rows: set[BufferId] = set()

    def kernel_folded(self) -> ir.Kernel:
        """The kernel; as it is where no rows of it are folded so."""
        nests = list(nests_of(self.kernel.body))
        folds = [nest for nest in nests if nest.folded() is not None]
        shapes = {self._shape(nest) for nest in folds}
        if len(shapes) != 1 or not self._fits(folds[0], nests):
            return self.kernel
        lanes = folds[0].lanes
        assert lanes is not None
        self.lanes = self.program.sizes[lanes.size].fixed or 0
        self.rows = self._values_of_rows(nests, folds)
        if (
            not {fold.body[-1].buffer for fold in folds if isinstance(fold.body[-1], ir.Store)}
            <= self.rows
        ):
            return self.kernel
        self.numbering.enter(self.kernel)
        for number in sorted(self.rows):
            buffer = self.program.buffers[number]
            dims = (*buffer.dims, self.numbering.size(self.lanes))
            self.numbering.buffers[number] = replace(buffer, dims=dims)
        body = self._block(self.kernel.body)
        kernel = self.numbering.left(self.kernel, body)
        return replace(kernel, locals=tuple(self.locals))

    def _shape(self, nest: SharedNest) -> tuple[int | None, int | None]:
        lanes = None if nest.lanes is None else self.program.sizes[nest.lanes.size].fixed
        return self.program.sizes[nest.rows.size].fixed, lanes

    def _fits(self, fold: SharedNest, nests: Sequence[SharedNest]) -> bool:
        """Whether lanes are a part of a warp, and each row of each nest has as many of them."""
        device = self.program.machine.device
        assert device is not None
        rows, lanes = self._shape(fold)
        if rows is None or lanes is None or lanes & (lanes - 1) or device.warp < lanes:
            return False
        shapes = [self._shape(nest) for nest in nests]
        whole = (rows * lanes) % device.warp == 0
        return whole and all(shape in ((rows, lanes), (rows, None)) for shape in shapes)

    def _values_of_rows(
        self, nests: Sequence[SharedNest], folds: Sequence[SharedNest]
    ) -> set[BufferId]:
        """The private buffers that have a value for each row: every nest reaches them by its rows, and not by lanes."""
        touched: dict[BufferId, bool] = {}
        uses = 0
        for nest in nests:
            for number, index in accesses(nest.body):
                uses += 1
                mentions = [part for part in index if nest.rows.variable in part.axes()]
                by_row = len(mentions) == 1 and mentions[0].axis() == nest.rows.variable
                lane = None if nest.lanes is None else nest.lanes.variable
                by_lane = any(lane in part.axes() for part in index)
                private = self.program.buffers[number].private
                is_row = private and by_row and not by_lane
                touched[number] = touched.get(number, True) and is_row
            for s in nest.body:
                if isinstance(s, ir.Store) and nest.lanes is not None and nest not in folds:
                    touched[s.buffer] = False
        outside = [number for number, _ in accesses(self.kernel.body)]
        inside = [number for nest in nests for number, _ in accesses(nest.body)]
        rows = {
            n for n, is_row in touched.items() if is_row and outside.count(n) == inside.count(n)
        }
        for nest in nests:  # what one thread of a row reads, all of them may
            if nest.lanes is None:
                loads = {number for number, _ in accesses(nest.body)}
                if any(self.program.buffers[n].private and n not in rows for n in loads):
                    rows -= loads
        return rows

    def _block(self, body: ir.Block) -> ir.Block:
        out: list[ir.Statement] = []
        for s in body:
            nest = nest_of(s)
            if nest is None:
                out.append(ir.map_blocks(s, self._block))
            elif nest.lanes is None:
                out.append(self._of_all_lanes(nest))
            else:
                out.append(self._indexed(self._combined(nest), nest.lanes.variable))
        return tuple(out)

    def _of_all_lanes(self, nest: SharedNest) -> ir.Statement:
        """A nest that each lane of a row runs, the first one alone where it stores elements of arrays."""
        variable = self.numbering.variable("lane", "_")
        stored = {s.buffer for s in nest.body if isinstance(s, ir.Store)}
        if not {number for number, _ in accesses(nest.body)} & self.rows:
            return nest.chain[0]
        body = (ir.If(nest.within, nest.body),) if nest.within else nest.body
        if not stored <= self.rows:
            body = (ir.If((Within(Affine(((-1, variable),)), None),), body),)
        body = nested([loop for loop in nest.chain if loop is not nest.rows], body)
        lane = ir.For(variable, self.numbering.size(self.lanes), body, role=nest.rows.role)
        return self._indexed(replace(nest.rows, body=(lane,)), variable)

    def _combined(self, nest: SharedNest) -> ir.Statement:
        """A nest with each lane's part of a row first, if it folds rows; else the nest as it is."""
        store = nest.folded()
        if store is None:
            return nest.chain[0]
        assert nest.lanes is not None
        assert isinstance(store.value, Apply)
        primitive, (element, term) = store.value.primitive, store.value.arguments
        dtype = store.value.dtype or ""
        narrow = term.argument if isinstance(term, Convert) and primitive == "add" else term
        narrow = narrow if narrow.dtype == "f32" else term
        part = LocalId(len(self.locals))
        self.locals.append(ir.Variable(self._name("part")))
        of_row = {v for index in store.index for v in index.axes()}
        loops = [x for x in nest.chain if x not in (nest.rows, nest.lanes)]
        kind = narrow.dtype or dtype
        add = Apply(primitive, (Local(part, kind), narrow), kind)
        body: ir.Block = (*nest.body[:-1], ir.Change(part, add))
        terms = [x for x in loops if x.variable not in of_row]
        within = [w for loop in (nest.lanes, *terms) for w in loop.runs()]
        within += nest.within  # all lanes combine, whatever they have
        if within:
            body = (ir.If(tuple(within), body),)
        body = nested([replace(loop, within=()) for loop in terms], body)
        whole: Scalar = Local(part, kind)
        whole = whole if kind == dtype else Convert(whole, dtype)
        identity = Constant(REDUCING[primitive].identity or 0, kind)
        body = (
            ir.Define(part, kind, identity, mutable=True),
            *body,
            CombineThreads(part, primitive, kind, self.lanes),
            replace(store, value=Apply(primitive, (element, whole), dtype)),
        )
        body = nested([x for x in loops if x.variable in of_row], body)
        return replace(nest.rows, body=(replace(nest.lanes, body=body, within=()),))

    def _name(self, name: str) -> str:
        taken = {*self.kernel.names, *(local.name for local in self.locals)}
        while name in taken:
            name += "_"
        return name

    def _indexed(self, s: ir.Statement, variable: VariableId) -> ir.Statement:
        """A nest whose values of rows are those of a lane."""

        def loaded(load: Load) -> Load:
            if load.buffer not in self.rows:
                return load
            return replace(load, index=(*load.index, axis_index(variable)))

        def change(each: ir.Statement) -> ir.Statement:
            match each:
                case ir.Store():
                    index = each.index
                    if each.buffer in self.rows:
                        index = (*index, axis_index(variable))
                    return replace(each, index=index, value=replaced_loads(each.value, loaded))
                case ir.Define() | ir.Change():
                    return replace(each, value=replaced_loads(each.value, loaded))
                case _:
                    return each

        (out,) = ir.map_statements((s,), change)
        return out


def nests_of(body: ir.Block) -> Iterator[SharedNest]:
    """The nests of a kernel that threads share."""
    for s in body:
        nest = nest_of(s)
        if nest is not None:
            yield nest
            continue
        for block in ir.blocks_of(s):
            yield from nests_of(block)


def nest_of(s: ir.Statement) -> SharedNest | None:
    """The nest that a statement is; None where it is none, or threads share other numbers of loops."""
    chain, body = chain_of((s,))
    shared = [loop for loop in chain if loop.role in THREAD_ROLES]
    if not shared or chain[0].role not in THREAD_ROLES:
        return None
    if any(loop.role != "t" for loop in shared) or 2 < len(shared):
        return None
    return SharedNest(chain, shared, body)
