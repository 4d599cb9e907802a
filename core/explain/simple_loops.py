"""The loops that run, simplified for a reader: their order, tiles, copies and vectors, without edges and conversions.

Example, a sum over rows:
    for i                     cores share this loop
      acc = 0
      for j                   vectorized, 16 lanes
        acc += in0[i,j]
      out[i] = acc
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ilang.core.dtype import FLOATS
from ilang.core.explain.kernel import KernelLoops, called_again
from ilang.core.explain.meaning import LoopLine
from ilang.core.ir.cpu import Transpose
from ilang.core.ir.gpu import Barrier, CombineThreads, MatrixProduct, Spread, SwapBuffers
from ilang.core.ir.kernel import (
    Change,
    Define,
    For,
    HorizontalReduction,
    If,
    Kernel,
    Program,
    Statement,
    Store,
    Tile,
    statements_within,
)
from ilang.core.ir.scalar import Apply, Constant, Convert, Load, Scalar
from ilang.core.record import replace


def simple_loops(program: Program) -> tuple[LoopLine, ...]:
    """The loops of each kernel where it is called first; a further call is one line. Remarks are the definitions."""
    lines: list[LoopLine] = []
    known: set[int] = set()
    for call in program.launched():
        kernel = program.kernels[call.kernel]
        if call.kernel in known:
            lines.append(LoopLine(0, called_again(program, kernel, call), "the same loops"))
        else:
            lines += _Simple(program, kernel).all()
        known.add(call.kernel)
    return tuple(lines)


class _Simple(KernelLoops):
    """The simplified loops of one kernel."""

    def __init__(self, program: Program, kernel: Kernel) -> None:
        super().__init__(program, kernel)
        self.step = {size: step for size, (_, step) in program.parts().items()}
        self.once: set[str] = set()
        self.packing = False

    def all(self) -> list[LoopLine]:
        """Every line; a value that the next line alone uses stands there."""
        lines = list(self.shown(self.kernel.body, 0))
        words = [set(re.findall(r"\w+", line.text)) for line in lines]
        counts = Counter(word for each in words for word in each)
        joined: list[LoopLine] = []
        for number, line in enumerate(lines):
            last = joined[-1] if joined else None
            name, _, value = last.text.partition(" = ") if last else ("", "", "")
            uses = len(re.findall(rf"\b{name}\b", line.text)) if name in self.once else 0
            elsewhere = counts[name] - (name in words[number])
            if last and uses == 1 and elsewhere == 1 and last.depth == line.depth:
                alone = " " not in value or re.search(rf"(?:= |[(,] ?){name}(?=$|[),])", line.text)
                text = re.sub(rf"\b{name}\b", value if alone else f"({value})", line.text)
                joined[-1] = replace(line, text=text)
            else:
                joined.append(line)
        return joined

    def shown(
        self, body: Sequence[Statement], depth: int, shared: bool = False
    ) -> Iterator[LoopLine]:
        """The lines of statements; ``shared`` says that cores share a loop around them."""
        for s in body:
            match s:
                case For():
                    yield from self._loop(s, depth, shared)
                case If():
                    yield from self._choice(s, depth, shared)
                case Define() | Change() | Store():
                    yield LoopLine(depth, self._step(s), "")
                case Tile():
                    yield from self._registers(s, depth, shared)
                case Transpose():
                    yield from self._loop(s.loops, depth, shared, "in squares")
                case Spread():
                    yield from self._shares(s, depth)
                case CombineThreads() | MatrixProduct():
                    yield from (LoopLine(depth, line, "") for line in self._together(s))
                case HorizontalReduction() | Barrier() | SwapBuffers():
                    pass

    def _step(self, s: Define | Change | Store) -> str:
        """A value that is stored, or kept in a variable."""
        value = _plain(s.value)
        if isinstance(s, Store):
            return self._update(self._element(s.buffer, s.index), value)
        name = self.kernel.locals[s.variable].name
        if isinstance(s, Change):
            return self._update(name, value)
        if not s.mutable:
            self.once.add(name)
        return f"{name} = {self._scalar(value)}"

    def _loop(self, s: For, depth: int, shared: bool, remark: str = "") -> Iterator[LoopLine]:
        """A loop, with how it runs beside it."""
        packed = "" if self.packing else self._packed(s)
        around, self.packing = self.packing, self.packing or bool(packed)
        inner = list(self.shown(s.body, depth + 1, shared or s.parallel))
        self.packing = around
        remarks = [remark] if remark else []
        remarks += ["cores share this loop"] if s.parallel and not shared else []
        remarks += [f"vectorized, {s.lanes} lanes"] if 1 < s.lanes else []
        remarks += [packed] if packed else []
        if inner:
            yield LoopLine(depth, f"for {self._range(s)}", ", ".join(remarks))
            yield from inner

    def _end(self, number: int) -> str:
        """An extent by its name, unless a loop has that name."""
        size = self.program.sizes[number]
        known = size.fixed is None and size.name not in self.kernel.names
        return size.name if known else super()._end(number)

    def _range(self, loop: For) -> str:
        """The letter of a loop and how far it goes, edges apart."""
        name = self.kernel.names[loop.variable]
        if loop.chunk is not None:
            return f"{name} in block {self.kernel.names[loop.chunk.block]}"
        if loop.size in self.step:
            return f"{name} in blocks of {self.step[loop.size]}"
        size = self.program.sizes[loop.size]
        end = size.name if size.fixed is None else str(size.fixed)
        return name if name == end else f"{name} in 0..{end}"

    def _packed(self, s: For) -> str:
        """The remark on loops that copy an array into memory of the program, and do nothing else."""
        inside = [each for each in statements_within(s.body) if not isinstance(each, For)]
        match inside:
            case [Store(value=Load() as load) as store]:
                into, source = (self.program.buffers[n] for n in (store.buffer, load.buffer))
                word = "packs" if source.role == "input" else "copies"
                return f"{word} {source.name}" if into.role == "temporary" else ""
            case _:
                return ""

    def _choice(self, s: If, depth: int, shared: bool) -> Iterator[LoopLine]:
        """The branches that differ; padding and faster copies of the same loops are left out."""
        if s.stored is not None or s.aligned:
            yield from self.shown(s.otherwise if s.aligned else s.body, depth, shared)
            return
        inside = [e for e in statements_within(s.otherwise) if not isinstance(e, For | If)]
        pads = all(isinstance(e, Store) and isinstance(e.value, Constant) for e in inside)
        if not s.body and pads:
            return
        first = list(self.shown(s.body, depth + 1, shared))
        second = list(self.shown(s.otherwise, depth + 1, shared))
        if first == second:
            yield from self.shown(s.body, depth, shared)
            return
        word = "if" if first else "unless"
        yield LoopLine(depth, f"{word} {self._conditions(s.within)}", "")
        yield from first
        yield from [LoopLine(depth, "else", "")] if first and second else []
        yield from second

    def _registers(self, s: Tile, depth: int, shared: bool) -> Iterator[LoopLine]:
        """A tile and the loops that fill it."""
        buffer = self.program.buffers[s.buffer]
        extents = " x ".join(self._end(size) for size in buffer.dims)
        lanes = f", {s.registers.lanes} lanes" if s.registers else ""
        remark = f"{extents} in registers{lanes}"
        yield LoopLine(depth, f"{buffer.name} = {self._scalar(_plain(s.start))}", remark)
        for loop in s.blocks:
            yield LoopLine(depth, f"for {self._range(loop)}", "")
            depth += 1
        yield from self.shown(s.edge, depth, shared)

    def _shares(self, s: Spread, depth: int) -> Iterator[LoopLine]:
        """Iterations that blocks or threads of a GPU share."""
        if not s.loops:
            yield from self.shown(s.body, depth)
            return
        remark = {
            "grid": f"a thread each, blocks of {s.threads}",
            "blocks": f"a block of {s.threads} threads each",
            "warps": "a warp each",
            "threads": "threads share these",
        }[s.over]
        loops = " and ".join(self._range(loop) for loop in s.loops)
        yield LoopLine(depth, f"for {loops}", remark)
        yield from self.shown(s.body, depth + 1)


def _plain(scalar: Scalar) -> Scalar:
    """A scalar without conversions between floats."""
    match scalar:
        case Convert() if scalar.dtype in FLOATS:
            return _plain(scalar.argument)
        case Apply():
            return replace(scalar, arguments=tuple(map(_plain, scalar.arguments)))
        case _:
            return scalar
