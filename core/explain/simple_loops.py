"""The loops that run, simplified for a reader: their order, tiles, copies and vectors, without edges and conversions.

Example, a sum over rows:
    for i in 0..n_i           cores share this loop
      acc = 0
      for j in 0..n_j         vectorized, 16 lanes
        acc += in0[i,j]
      out[i] = acc

The counter of a loop in steps counts elements, ``for j in 0..n by 64``. A loop inside of such a step has its letter
with a stroke, ``for j' in 0..64``, and stops where the dimension ends. Loops of a GPU's tiles count blocks, threads and
what a thread does: their letters have the strokes of splits, ``i``, ``i'`` and ``i''``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from itertools import starmap
from typing import Literal

from ilang.core.calculus.affine import Affine, left, looking
from ilang.core.dtype import FLOATS
from ilang.core.explain import moves
from ilang.core.explain.expression import affine_terms, affine_text, size_text
from ilang.core.explain.formulas import DEEPEST, fresh_letter
from ilang.core.explain.kernel import KernelLoops, called_again, moved_text
from ilang.core.explain.marks import StatementMarks
from ilang.core.explain.meaning import LoopLine
from ilang.core.explain.piece import ATOM, Piece, position_piece, scalar_piece
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile, Transpose
from ilang.core.ir.gpu import Barrier, CombineThreads, MatrixProduct, SwapBuffers, ThreadLoop
from ilang.core.ir.ids import BufferId
from ilang.core.ir.rewriting import accesses, named, parts_of
from ilang.core.ir.scalar import Constant, Convert, Load, Local, Position, Scalar, Select
from ilang.core.names import Names
from ilang.core.ops import PRIMITIVES, REDUCING
from ilang.core.record import replace

PART = re.compile(r"([A-Za-z]+\d*?)(?:([1-9])[a-z]*)?")
"""The name of a loop over a part of an axis: the axis, the number of the part, the letters of further splits."""
INTEGER = re.compile(r"-?\d+")
MOST = 1000
"""Lines from which on further calls of a kernel are a line each."""


def simple_loops(program: ir.Program, names: Mapping[str, str]) -> tuple[LoopLine, ...]:
    """The loops of each call; ``names`` has the name of each value on the page. Remarks are the definitions."""
    buffers = [replace(each, name=_on_page(each.name, names)) for each in program.buffers]
    program = replace(program, buffers=tuple(buffers))
    lines: list[LoopLine] = []
    known: set[int] = set()
    viewed: set[BufferId] = set()
    parts = program.parts()
    loops = {name for each in program.kernels for name in each.names}
    calls = program.launched()
    stored = [
        {call.array(s.buffer) for s in ir.every(program.kernels[call.kernel].body, ir.Store)}
        for call in calls
    ]
    for number, call in enumerate(calls):
        kernel, written = program.kernels[call.kernel], stored[number]
        touched = {call.array(buffer) for buffer, _ in accesses(kernel.body)}
        views = [n for n in sorted(touched) if program.buffers[n].role == "view"]
        lines += [_view(program, n, False) for n in views if n not in written | viewed]
        viewed.update(views)
        if call.kernel in known and MOST < len(lines):
            lines.append(LoopLine(0, called_again(program, kernel, call), "the same loops"))
        else:
            placed = program
            if call.arrays:
                arrays = [program.buffers[call.array(n)] for n in program.numbers()]
                placed = replace(program, buffers=tuple(arrays))
            lines += _Simple(placed, kernel, names, parts, loops).shown(kernel.body, 0)
        known.add(call.kernel)
        whole = written.difference(*stored[number + 1 :])
        lines += [_view(program, n, True) for n in views if n in whole]
    return tuple(lines)


def _view(program: ir.Program, buffer: BufferId, written: bool) -> LoopLine:
    """An array under other dimensions: the view of its owner, or the owner of a view that was written."""
    buffers = (program.buffers[buffer], program.memory(buffer))
    view, owner = reversed(buffers) if written else buffers
    dims = ",".join(size_text(program.sizes[n]) for n in view.dims)
    return LoopLine(0, f"{view.name} = reshape({owner.name}, [{dims}])", "the same memory")


def _on_page(name: str, names: Mapping[str, str]) -> str:
    """The name of a value, or of memory that is named after one."""
    words = name.split("_")
    for n in range(len(words), 0, -1):
        value, use = "_".join(words[:n]), "_".join(["", *words[n:]])
        if value in names:
            return names[value] + use
    return name


class _Simple(KernelLoops):
    """The simplified loops of one kernel."""

    def __init__(
        self,
        program: ir.Program,
        kernel: ir.Kernel,
        names: Mapping[str, str],
        parts: Mapping[int, tuple[int, int]],
        counted: Set[str],
    ) -> None:
        """``counted`` are the names of all loop variables of the program."""
        super().__init__(program, kernel)
        self.is_exact = False
        self.named = names
        self.loops = counted
        self.parts = parts
        self.marks = StatementMarks(program, kernel)
        arrays = [program.buffers[n] for n in named(kernel.body)]
        self.scalars = {each.name for each in arrays if not each.dims}
        self.letters: dict[int, str] = {}
        """The letters of the loops around."""
        self.steps: dict[int, int] = {}
        """The elements that one iteration of a loop goes on by."""
        self.variables: dict[int, str] = {}
        """The names of the scalar variables of the blocks around, the innermost last."""
        self.unique = Names(frozenset(each.name for each in arrays))
        self.words: list[str] = []
        """Letters in indices, by number."""
        self.values: dict[int, Scalar] = {}
        """The scalars in the place of variables that have no line."""
        self.marks.inlined = self.values
        self.depth = Counter[int]()
        """The values that stand in each other in one of them."""
        self.stored: set[int] = set()
        """The variables among them that are stored at once."""
        shown = list(_within(kernel.body))
        self.uses = Counter(
            each.variable for s in shown for each in parts_of(s) if isinstance(each, Local)
        )
        loops = list(ir.every(kernel.body, ir.For))
        split = [part for s in loops if (part := s.part())]
        self.whole: set[int] = set()
        """The loops that go over all of a dimension in steps."""
        self.split = {v: part for part in split for v in part[0].variables()}
        """The part of a dimension that begins where an iteration of a loop does."""
        self.stores = Counter(s.buffer for s in shown if isinstance(s, ir.Store))
        self.packing = False
        self.inner = set[str]() if program.machine.device is None else _loops_over_parts(kernel)
        """The names of loops of a GPU's tiles that are parts of an axis."""

    def _line(self, depth: int, text: str, s: ir.Statement, remark: str = "") -> LoopLine:
        return LoopLine(depth, text, remark, *self.marks.of(s))

    # -- statements --------------------------------------------------------------------------------------------------

    def shown(self, block: ir.Block, depth: int, shared: bool = False) -> Iterator[LoopLine]:
        """The lines of statements; ``shared`` says that cores share a loop around them."""
        around, serial = len(self.variables), dict(self.unique.serial)
        ends = self._ends(block)
        for s, after in zip(block, (*block, None)[1:], strict=True):
            match s:
                case ir.For():
                    yield from self._loop(s, depth, shared)
                case Transpose():
                    yield from self._loop(s.loops, depth, shared, "in squares")
                case ir.If():
                    yield from self._choice(s, depth, shared)
                case Tile():
                    yield from self._registers(s, depth, shared)
                case ThreadLoop():
                    yield from self._shares(s, depth)
                case MatrixProduct():
                    yield from (self._line(depth, line, s) for line in self._together(s))
                case ir.Define() if s.variable in self.values or self._is_placed(s, after):
                    pass
                case ir.Define() | ir.Change() | ir.Store() | CombineThreads():
                    yield self._line(depth, self._step(s, ends), s)
                case ir.HorizontalReduction() | Barrier() | SwapBuffers():
                    pass
        for _ in range(around, len(self.variables)):
            self.unique.given.discard(self.variables.popitem()[1])
        self.unique.serial = serial

    def _step(
        self, s: ir.Define | ir.Change | ir.Store | CombineThreads, ends: Mapping[int, int]
    ) -> str:
        """A value that is stored, or kept in a variable; what is stored is read from there."""
        if isinstance(s, ir.Change):
            return self._update(self.variables[s.variable], s.value)
        if isinstance(s, CombineThreads):  # each thread has a part
            name, logic = self.variables[s.variable], PRIMITIVES[s.primitive].kind == "logic"
            word = s.primitive if logic else REDUCING[s.primitive].reduction_says
            return (
                f"{name} = {word} of {name} over all {'lanes' if self.is_for_warps else 'threads'}"
            )
        if isinstance(s, ir.Define):
            name = self.kernel.locals[ends.get(s.variable, s.variable)].name
            shown = _on_page(name, self.named)
            if shown == name not in self.named:  # only loops need the number
                shown = name.rstrip("0123456789")
            while (fresh := self.unique.fresh(shown)) in self.letters.values():
                pass
            self.variables[s.variable] = fresh
            return f"{self.variables[s.variable]} = {self._scalar(s.value)}"
        text = self._update(self._element(s.buffer, s.index), s.value)
        if isinstance(s.value, Local) and s.value.variable in self.stored:
            self.values[s.value.variable] = Load(s.buffer, s.index, s.value.dtype)
        return text

    def _ends(self, block: ir.Block) -> dict[int, int]:
        """The value that a variable of a block is in the end: it has no line, and gives the variable its name."""
        ends: dict[int, int] = {}
        starts: set[int] = set()
        changed = {
            e.variable: n
            for n, s in enumerate(block)
            for e in _within((s,))
            if isinstance(e, ir.Change)
        }
        for n, s in enumerate(block):
            if not isinstance(s, ir.Define):
                continue
            value = _plain(s.value)
            if (
                isinstance(value, Local)
                and value.variable in starts
                and not s.mutable
                and changed.get(value.variable, -1) < n
            ):
                ends[value.variable] = s.variable
                self.values[s.variable] = value
            starts.add(s.variable)
        return ends

    def _is_placed(self, s: ir.Define, after: ir.Statement | None) -> bool:
        """Whether a value has no line of its own: the next one stores it, or alone uses it."""
        if s.mutable or not isinstance(after, (ir.Define, ir.Change, ir.Store)):
            return False
        if isinstance(after, ir.Store) and after.value == Local(s.variable, s.dtype):
            self.stored |= {s.variable} if self.stores[after.buffer] == 1 else set()
        uses = sum(isinstance(e, Local) and e.variable == s.variable for e in parts_of(after))
        inside = (self.depth[e.variable] for e in parts_of(s) if isinstance(e, Local))
        depth = 1 + max(inside, default=0)
        if DEEPEST < depth or not (s.variable in self.stored or uses == self.uses[s.variable] == 1):
            return False
        self.values[s.variable], self.depth[s.variable] = s.value, depth
        return True

    # -- loops -------------------------------------------------------------------------------------------------------

    def _loop(self, s: ir.For, depth: int, shared: bool, remark: str = "") -> Iterator[LoopLine]:
        """A loop, with how it runs beside it; a whole tile that it moves is one line."""
        if text := moved_text(self, s):
            yield self._line(depth, text, moves.store_of(s))
            return
        head = f"for {self._opened(s, s.body)}"
        packed = "" if self.packing else _packed(self.program, s)
        around, self.packing = self.packing, self.packing or bool(packed)
        inner = list(self.shown(s.body, depth + 1, shared or s.parallel))
        self.packing = around
        self.letters.pop(s.variable)
        remarks = [remark] if remark else []
        remarks += ["cores share this loop"] if s.parallel and not shared else []
        remarks += [f"vectorized, {s.lanes} lanes"] if 1 < s.lanes else []
        remarks += [packed] if packed else []
        if inner:
            yield self._line(depth, head, s, ", ".join(remarks))
            yield from inner

    def _opened(self, loop: ir.For, body: ir.Block) -> str:
        """The letter of a loop around a block, and how far it goes, edges apart: ``j in 0..n by 64``."""
        variable, size = loop.variable, self.program.sizes[loop.size]
        end = self._stepped(loop)
        step = self.steps[variable]
        outer = self._outer(loop, body, (size.fixed or 0) * step)

        def limit(index: Affine, every: int) -> str:
            every = every // step if every % step == 0 else every
            text = self._affine(index)
            text = str(-(-int(text) // every)) if INTEGER.fullmatch(text) else text
            return text if every == 1 or INTEGER.fullmatch(text) else f"ceil(({text})/{every})"

        start = _among("max", ["0", *starmap(limit, loop.begin.limits())])
        ends = [self._stepped(loop)]
        for index, every in loop.end.limits():
            part = left(index)
            if part is None or part[1] == loop.size:
                ends.append(limit(index, every))
            elif index.variables() and not outer:
                ends = [*(() if loop.size in self.parts else ends), limit(index, every)]
        end = _among("min", ends)
        name = self.letters[variable] = self._new_letter(loop, outer)
        first = "the first " if loop.first else ""
        by = f" by {step}" if 1 < step else ""
        if loop.chunk is not None:
            return f"{first}{name} in block {self.letters[loop.chunk[2]]} of 0..{end}{by}"
        return f"{first}{name} in {start}..{end}{by}"

    def _stepped(self, loop: ir.For) -> str:
        """The end of a loop in elements, which go on by ``steps`` from one iteration to the next.

        A loop over blocks of an axis, or over what a block has, ends with the axis: it is then one of ``whole``.
        """
        variable, split = loop.variable, self.split.get(loop.variable)
        part, size = self.parts.get(loop.size), self.program.sizes[loop.size]
        step = part[1] if part else next(loop.end.limits())[1] if loop.part() else 1
        self.steps[variable] = step = split[0].coefficient(variable) if split else step
        whole = part[0] if part else split[1] if split and size.fixed else loop.size
        fixed = self.program.sizes[whole].fixed
        if part or (fixed is not None and size.fixed and fixed <= size.fixed * step):
            self.whole |= set() if loop.within else {variable}
            return self._end(whole)
        return self._end(loop.size) if size.fixed is None else str(size.fixed * step)

    def _new_letter(self, loop: ir.For, outer: Sequence[int]) -> str:
        """A letter that no other loop has; inside of ``outer`` loops in steps that of the last one, with a stroke."""
        name, size = self.kernel.names[loop.variable], self.program.sizes[loop.size]
        if name.rpartition("_")[0] in self.named:
            name = size.name if size.fixed is None and size.name in self.loops else "r"
        taken = {*self.letters.values(), *self.variables.values(), *self.scalars}
        if outer:
            return fresh_letter(f"{self.letters[outer[-1]]}'", taken)
        if self.steps[loop.variable] == 1 and name in self.inner:
            return _with_strokes(name, taken)
        return fresh_letter(name, taken) if len(name) == 1 else Names(taken).fresh(name)

    def _outer(self, loop: ir.For, body: ir.Block, whole: int) -> list[int]:
        """The loops in steps that a loop counts inside of: their letter is its own, but for a stroke."""
        inside = [part for _, index in accesses(body) for part in index]
        step = self.steps[loop.variable]
        started = part[0].variables() if (part := loop.part()) else ()
        stem = self.kernel.names[loop.variable].rstrip("0123456789")

        def overlaps(v: int) -> bool:
            """Whether the loop is over what another one leaves between two of its steps."""
            together = any(
                part.coefficient(v) * step == whole * part.coefficient(loop.variable) != 0
                for part in inside
            )
            return self.steps[v] == whole != step and (together or stem == self.kernel.names[v])

        outer = [v for v in self.letters if v in started or overlaps(v)]
        return outer if outer and outer[0] in self.whole else []

    def _end(self, number: int) -> str:
        """An extent by its name, unless a loop of the program has that name: then as in all loops, ``n_i``."""
        size = self.program.sizes[number]
        known = size.fixed is None and size.name not in self.loops
        return size.name if known else super()._end(number)

    def _choice(self, s: ir.If, depth: int, shared: bool) -> Iterator[LoopLine]:
        """The branches that differ; padding and faster copies of the same loops are left out."""
        inside = [e for e in ir.statements_within(s.otherwise) if not isinstance(e, ir.For | ir.If)]
        pads = all(isinstance(e, ir.Store) and isinstance(e.value, Constant) for e in inside)
        only, *others = _shown_blocks(s)
        if not others:
            yield from self.shown(only, depth, shared)
            return
        if not s.body and pads:
            return
        conditions = self._conditions(s.within)
        first, second = (list(self.shown(b, depth + 1, shared)) for b in (s.body, s.otherwise))
        if _shown_texts(first) == _shown_texts(second):
            yield from self.shown(s.body, depth, shared)
            return
        yield LoopLine(depth, f"{'if' if first else 'unless'} {conditions}", "")
        yield from first
        yield from [LoopLine(depth, "else", "")] if first and second else []
        yield from second

    def _registers(self, s: Tile, depth: int, shared: bool) -> Iterator[LoopLine]:
        buffer = self.program.buffers[s.buffer]
        extents = ",".join(self._end(size) for size in buffer.dims)
        lanes = f", {s.vector} lanes" if s.number is not None else ""
        start = self._scalar(s.start)
        yield self._line(depth, f"{buffer.name}[{extents}] = {start}", s, f"in registers{lanes}")
        for loop in s.blocks:
            yield self._line(depth, f"for {self._opened(loop, loop.body)}", loop)
            depth += 1
        yield from self.shown(s.body, depth, shared)
        for loop in s.blocks:
            self.letters.pop(loop.variable)

    def _shares(self, s: ThreadLoop, depth: int) -> Iterator[LoopLine]:
        """Iterations that blocks or threads of a GPU share."""
        if text := moved_text(self, s):
            yield self._line(depth, text, moves.store_of(s))
            return
        if not s.loops:
            yield from self.shown(s.body, depth)
            return
        remark = {
            "grid": f"a thread each, blocks of {s.threads}",
            "blocks": f"a block of {s.threads} threads each",
            "warps": f"{s.lanes} lanes each",
            "threads": "threads share these",
        }[s.over]
        loops = " and ".join(self._opened(loop, s.body) for loop in s.loops)
        yield self._line(depth, f"for {loops}", s, remark)
        yield from self.shown(s.body, depth + 1)
        for loop in s.loops:
            self.letters.pop(loop.variable)

    # -- scalars -----------------------------------------------------------------------------------------------------

    def _update(self, target: str, value: Scalar) -> str:
        """As of all loops, without the conversions of the value."""
        return super()._update(target, _plain(value))

    def _scalar(self, scalar: Scalar) -> str:
        return scalar_piece(scalar, self._piece).text

    def _piece(self, leaf: Scalar) -> Piece:
        match leaf:
            case Local() if leaf.variable in self.values:
                return scalar_piece(self.values[leaf.variable], self._piece)
            case Local():
                return Piece(self.variables[leaf.variable], ATOM)
            case Position():
                index = self._in_letters(leaf.index)
                terms = affine_terms(index, self.words.__getitem__, self._end, self.array)
                return position_piece(terms)
            case Select() if not _is_a_test(leaf):
                return scalar_piece(leaf.then, self._piece)
            case _:
                return Piece(self._leaf(leaf), ATOM)

    def _affine(self, index: Affine) -> str:
        return affine_text(self._in_letters(index), self.words.__getitem__, self._end, self.array)

    def _in_letters(self, index: Affine) -> Affine:
        """An index over ``words``: where a loop goes on by 64, its letter stands for 64 times its variable."""
        terms = []
        for c, variable in index.steps():
            share = Fraction(c, self.steps[variable])
            under = "" if share.denominator == 1 else f"/{share.denominator}"
            self.words.append(f"{self.letters[variable]}{under}")
            terms.append((share.numerator, len(self.words) - 1))
        return replace(looking(index, self._in_letters), terms=tuple(terms))


def _among(function: Literal["min", "max"], texts: Sequence[str]) -> str:
    """The least or the greatest of some bounds; of the numbers in them the one that counts."""
    numbers = [int(text) for text in texts if INTEGER.fullmatch(text)]
    number = str((min if function == "min" else max)(numbers, default=0))
    distinct = [*dict.fromkeys(number if INTEGER.fullmatch(text) else text for text in texts)]
    return distinct[0] if len(distinct) == 1 else f"{function}({','.join(distinct)})"


def _shown_blocks(s: ir.Statement) -> tuple[ir.Block, ...]:
    """The blocks of a statement that are shown: not those that only do the same faster."""
    match s:
        case Tile():
            return (s.body,)
        case ir.If() if s.aligned:
            return (s.otherwise,)
        case ir.If() if s.stored is not None or not (s.otherwise or _is_a_test(s)):
            return (s.body,)
        case _:
            return ir.blocks_of(s)


def _within(block: ir.Block) -> Iterator[ir.Statement]:
    """Every statement that is shown, at any depth."""
    for s in block:
        yield s
        for inner in _shown_blocks(s):
            yield from _within(inner)


def _loops_over_parts(kernel: ir.Kernel) -> set[str]:
    """The names of loops over parts of an axis, ``i1`` and ``k2s``: some index is a sum over two of them."""
    names: set[str] = set()
    for _, index in accesses(kernel.body):
        for each in index:
            parts: dict[str, list[str]] = {}
            for variable in each.variables():
                name, part = kernel.names[variable], kernel.parts[variable]
                if part is not None and PART.fullmatch(name):
                    parts.setdefault(part[0], []).append(name)
            names.update(name for alike in parts.values() if 1 < len(alike) for name in alike)
    return names


def _with_strokes(name: str, taken: Container[str]) -> str:
    """The name of a part of an axis as splits are written: ``i''`` for ``i2``, or the next that is not taken."""
    part = PART.fullmatch(name)
    assert part is not None
    name = part[1] + "'" * int(part[2] or 0)
    while name in taken:
        name += "'"
    return name


def _packed(program: ir.Program, s: ir.For) -> str:
    """The remark on loops that copy an array into memory of the program, and do nothing else."""
    inside = [each for each in ir.statements_within(s.body) if not isinstance(each, ir.For)]
    match inside:
        case [ir.Store(value=Load() as load) as store]:
            into, source = (program.buffers[n] for n in (store.buffer, load.buffer))
            word = "packs" if source.role == "input" else "copies"
            return f"{word} {source.name}" if into.role == "temporary" else ""
        case _:
            return ""


def _shown_texts(lines: Sequence[LoopLine]) -> list[tuple[int, str, str]]:
    return [(each.depth, each.text, each.definition) for each in lines]


def _is_a_test(s: ir.If | Select) -> bool:
    """Whether a condition says more than that some dimension has elements."""
    return any(each.size is None or each.index != Affine(()) for each in s.within)


def _plain(scalar: Scalar) -> Scalar:
    """A scalar without the conversions between floats around it."""
    while isinstance(scalar, Convert) and scalar.dtype in FLOATS:
        scalar = scalar.argument
    return scalar
