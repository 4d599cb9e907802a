"""Kernels as text: the loops of each, and the memory that it has beside inputs and outputs.

Example, a sum over rows:
    parallel for i in 0..n_i
      acc = 0
      for j in 0..n_j in 16 lanes
        acc += f64(in0[i,j])
      out[i] = f32(acc)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import starmap
from typing import assert_never

from ilang.core.calculus.affine import Affine, Within, at_least_0, left
from ilang.core.explain import moves
from ilang.core.explain.expression import affine_text, scalar_text
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Outline, ThreadEstimate, Tile, Transpose
from ilang.core.ir.gpu import Barrier, CombineThreads, MatrixProduct, SwapBuffers, ThreadLoop
from ilang.core.ir.rewriting import accesses
from ilang.core.ir.scalar import Apply, Load, Local, Position, Scalar, Select
from ilang.core.ir.schedule import BLOCK_ROLES, THREAD_DIMENSIONS, Role
from ilang.core.ops import PRIMITIVES

WIDTH = 100
"""Columns of the loops of a stage."""
ONCE = ", rounded once"
"""Of a sum that takes a product."""


def loops_text(program: ir.Program) -> str:
    """The loop nests of a program, kernel after kernel."""
    return _called(
        program, lambda kernel: list(KernelLoops(program, kernel).lines(kernel.body, ""))
    )


def kernels_text(program: ir.Program) -> str:
    """The loop nests of a program, after the memory that each kernel has beside inputs and outputs."""
    return _called(
        program,
        lambda kernel: [
            part
            for line in (
                *_declarations(program, kernel),
                *KernelLoops(program, kernel).lines(kernel.body, ""),
            )
            for part in folded(line, WIDTH)
        ],
    )


def folded(line: str, width: int) -> Iterator[str]:
    """A line in pieces that fit, broken after semicolons, else at blanks; further pieces are indented by four more."""
    margin = len(line) - len(line.lstrip()) + 4
    while width < len(line):
        places = (line.rfind(sign, margin + 1, width) + 1 for sign in (";", " "))
        place = next(filter(None, places), 0)
        if not place:
            break
        yield line[:place].rstrip()
        line = " " * margin + line[place:].lstrip()
    yield line


def _called(program: ir.Program, lines: Callable[[ir.Kernel], list[str]]) -> str:
    """Each kernel where it is called first; later calls are a line each, and those of one kernel stand together."""
    nests: list[list[str]] = []
    known: set[int] = set()
    again = False
    for call in program.launched():
        kernel = program.kernels[call.kernel]
        if call.kernel not in known:
            nests.append(lines(kernel))
        elif again:
            nests[-1].append(called_again(program, kernel, call))
        else:
            nests.append([called_again(program, kernel, call)])
        again = call.kernel in known
        known.add(call.kernel)
    return "\n\n".join("\n".join(nest) for nest in nests)


def called_again(program: ir.Program, kernel: ir.Kernel, call: ir.Call) -> str:
    """A call of a kernel on other arrays: ``out2 as out, in1 for in0``."""
    written = {s.buffer for s in ir.every(kernel.body, ir.Store)}
    names = [
        (program.buffers[array].name, program.buffers[other].name, array in written)
        for array, other in call.arrays
    ]
    gives = [f"{other} as {array}" for array, other, writes in names if writes]
    return ", ".join(
        gives + [f"{other} for {array}" for array, other, writes in names if not writes]
    )


def _memory_kind(program: ir.Program, buffer: ir.Buffer) -> str | None:
    """The kind of a kernel's own memory; None for that of callers. What kernels of a GPU share is global memory."""
    match buffer.role:
        case "input" | "output" | "inout":
            return None
        case "tile":
            return "registers"
        case "view":
            return "view"
        case "temporary":
            whole = "shared" if program.machine.device is None else "global"
            return buffer.space or ("private" if buffer.private else whole)
        case _:
            assert_never(buffer.role)


def _role_text(role: Role) -> str:
    """The words for a role of a loop, after its extent."""
    match role:
        case "u":
            return " unrolled"
        case "v":
            return " in lanes"
        case "m" | "m16":
            return " by a matrix unit"
        case "" | "p" | "t" | "q" | "x" | "y" | "z" | "tx" | "ty" | "tz" | "l":
            return ""
        case _:
            assert_never(role)


def _declarations(program: ir.Program, kernel: ir.Kernel) -> Iterator[str]:
    """The line of the memory of a kernel: ``memory in1_copy f32[n_k,64] private padded; tile f32[6,64] registers``."""
    touched = {buffer for buffer, _ in accesses(kernel.body)}
    words = []
    for number in sorted(touched):
        buffer = program.buffers[number]
        kind = _memory_kind(program, buffer)
        if kind is not None:
            dims = ",".join(_extent(program, size) for size in buffer.dims)
            is_view = buffer.role == "view"
            kinds = [f"of {program.memory(number).name}" if is_view else kind]
            kinds += ["padded"] if buffer.padded else []
            kinds += ["double-buffered"] if buffer.double else []
            kinds += ["wrapping"] if buffer.wrapping else []
            kinds += ["as ordered integers"] if buffer.ordered else []
            words.append(f"{buffer.name} {buffer.dtype}[{dims}] {' '.join(kinds)}")
    if words:
        yield f"memory {'; '.join(words)}"
    if kernel.constants:
        yield f"constants {'; '.join(map(_constant, kernel.constants))}"
    if kernel.spans:
        products = ["·".join(_extent(program, size) for size in span) for span in kernel.spans]
        yield f"indices of 32 bits where {', '.join(products)} are small"
    elif kernel.spans is not None:
        yield "indices of 32 bits"
    elif kernel.narrow:
        yield "indices of 32 bits where loops are known"


def _constant(constant: ir.Constant) -> str:
    """A constant, what it is made of, and its value where that is not said."""
    name, value, factors = constant
    words = f"{name} = {' · '.join(map(str, factors))}"
    return words if len(factors) < 2 else f"{words} = {value}"


def _extent(program: ir.Program, number: int) -> str:
    """A size in loops: its number, or its name as a variable."""
    size = program.sizes[number]
    return f"n_{size.name}" if size.fixed is None else str(size.fixed)


def _declared(variable: ir.Variable, value: str) -> str:
    """The first value of a variable, and what C has to know of it."""
    words = [f"in each of {variable.lanes} lanes"] if variable.lanes > 1 else []
    words += ["wrapping"] if variable.wrapping else []
    words += ["as an ordered integer"] if variable.ordered else []
    return " ".join([f"{variable.name} = {value}", *words])


class KernelLoops:
    """The loops of one kernel as indented text."""

    def __init__(self, program: ir.Program, kernel: ir.Kernel) -> None:
        self.program = program
        self.kernel = kernel
        self.is_exact = True
        """Whether conversions are shown."""
        self.array: Callable[[int], str] = lambda number: program.buffers[number].name
        self.spelled: moves.Spelling = (self._affine, self._scalar, self.array)
        self.is_for_warps = any(
            isinstance(s, ThreadLoop) and s.over == "warps" for s in kernel.body
        )
        """Whether warps share iterations, each as a block does elsewhere."""

    def lines(self, body: Sequence[ir.Statement], indent: str) -> Iterator[str]:
        """The lines of statements."""
        for s in body:
            if text := moved_text(self, s):
                yield f"{indent}{text}{_movers(self, s)}"
                continue
            match s:
                case ir.For():
                    yield f"{indent}{self._head(s)}{self._manner(s)}"
                    yield from (f"{indent}  {line}" for line in self._outlined(s.outline))
                    yield from self.lines(s.body, indent + "  ")
                case ir.If():
                    yield from self._if(s, indent)
                case ir.Define() | ir.HorizontalReduction():
                    yield indent + _variable_text(self, s)
                case ir.Change():
                    text = self._update(self.kernel.locals[s.variable].name, s.value)
                    yield indent + text + ONCE * s.contracts
                case Tile():
                    yield from self._tile(s, indent)
                case Transpose():
                    past = f", past the caches from {s.stream_from >> 20} MiB" * bool(s.stream_from)
                    yield f"{indent}{self._head(s.loops)} in squares{past}"
                    yield from self.lines(s.loops.body, indent + "  ")
                case Barrier() | CombineThreads() | SwapBuffers() | MatrixProduct():
                    yield from (indent + line for line in self._together(s))
                case ThreadLoop():
                    yield from self._spread(s, indent)
                case ir.Store():
                    text = self._update(self._element(s.buffer, s.index), s.value)
                    yield indent + text + ONCE * s.contracts

    def _tile(self, s: Tile, indent: str) -> Iterator[str]:
        """A register tile: how it is held, and the loops that fill it."""
        fill = ""
        if s.fill is not None:
            copy = self._update(self._element(s.fill.buffer, s.fill.index), s.fill.value)
            first = " and ".join(f"{self.kernel.names[variable]} = 0" for variable in s.first)
            fill = f" storing {copy}{' where ' * bool(first)}{first}"
        yield f"{indent}tile {self.array(s.buffer)} = {self._scalar(s.start)}{fill}"
        inside = indent + "  "
        yield from (inside + line for line in self._held(s))
        for loop in s.blocks:
            yield f"{inside}{self._head(loop)} added in f64"
            inside += "  "
        yield from self.lines(s.body, inside)

    def _if(self, s: ir.If, indent: str) -> Iterator[str]:
        """The statements where conditions hold, and the others."""
        word = "if" if s.body else "unless"
        rows = [self.array(number) for number in s.aligned]
        words = [self._conditions(s.within)] if s.within else []
        words += [f"rows of {' '.join(rows)} are aligned"] if rows else []
        head = f"{word} {' and '.join(words)}"
        if s.stored is not None:
            head = f"unless {self.array(s.stored)} is stored"
        yield indent + head
        yield from self.lines(s.body, indent + "  ")
        if s.otherwise:
            yield from [f"{indent}else"] if s.body else []
            yield from self.lines(s.otherwise, indent + "  ")

    def _outlined(self, outline: Outline | None) -> Iterator[str]:
        """The function of a loop, the values that it takes, writes and keeps, and what decides on its threads."""
        if outline is None or outline.estimate is None:
            return
        captured = outline.captured
        scalars = [self._end(n) for n in captured.sizes]
        scalars += [self.kernel.names[n] for n in captured.variables]
        scalars += [self.kernel.locals[local.variable].name for local in captured.locals]
        scalars += [f"whether {self.array(n)} is filled" for n in outline.fills]
        arrays, written, private = (
            [self.array(n) for n in numbers]
            for numbers in (captured.buffers, sorted(outline.written), outline.private)
        )
        text = f"({', '.join(scalars)}; {', '.join(arrays)}) writing {' '.join(written)}"
        text += f", keeping {' '.join(private)}" if private else ""
        text += ", in vectors of half a cache line" if outline.half_vectors else ""
        text += ", parts of scratch for threads" if outline.divided else ""
        text += f", {outline.loops} loops as one" if outline.loops > 1 else ""
        yield f"as {outline.name}{text}"
        yield f"shared by time {self._time(outline.estimate)}"

    def _time(self, estimate: ThreadEstimate) -> str:
        """The time that loops take, and the loops inside that take longest."""
        words = [f"{estimate.time:g}"] if estimate.time != 1 else []
        words += map(self._end, estimate.times)
        inside = ""
        if estimate.inside is not None:
            trips = "·".join(self._end(loop.size) for loop in estimate.inside.loops)
            first = "first inside" if estimate.uneven else "inside"
            inside = f", {first} {self._time(estimate.inside)} in {trips} iterations"
        return f"{'·'.join(words) or '1'}{inside}"

    def _together(self, s: Barrier | CombineThreads | SwapBuffers | MatrixProduct) -> Iterator[str]:
        """The statements that all threads of a block, or the lanes of a warp, run together."""
        match s:
            case Barrier():
                yield "barrier"
            case SwapBuffers():
                names = [self.array(number) for number in (s.first, s.second)]
                yield f"swap {' and '.join(names)}"
            case CombineThreads():
                name, device = self.kernel.locals[s.variable].name, self.program.machine.device
                part = device and not self.is_for_warps and s.threads < device.warp
                every = f"{s.threads}" if part else "all"
                word = "lanes" if part or self.is_for_warps else "threads"
                yield f"{name} = combine {name} of {every} {word} with {s.primitive}"
            case MatrixProduct():
                sums, left, right = (
                    " ".join(map(self._scalar, side)) for side in (s.sums, s.left, s.right)
                )
                yield f"matrix unit adds to {sums}"
                yield f"  {left}"
                yield f"  times {right}"

    def _spread(self, s: ThreadLoop, indent: str) -> Iterator[str]:
        """Iterations that are shared out, and what one of them does."""
        loops = [
            self._head(loop).removeprefix("for ")
            + (f" along {loop.role}" if loop.role in (*BLOCK_ROLES, *THREAD_DIMENSIONS) else "")
            for loop in s.loops
        ]
        many = {
            "grid": f"over the grid, blocks of {s.threads} threads",
            "blocks": f"over blocks of {' x '.join(map(str, s.shape or (s.threads,)))} threads"
            + (f", {s.blocks} at a time" if 1 < s.blocks else ""),
            "warps": f"over groups of {s.lanes} lanes, blocks of {s.threads} threads",
            "threads": "over the lanes" if self.is_for_warps else "over the threads",
        }[s.over]
        line = (
            f"spread {' and '.join(loops)} {many}"
            if loops or s.over != "threads"
            else ("one lane" if self.is_for_warps else "one thread")
        )
        manner = ""
        if s.vectors is not None:
            names = " ".join(self.array(number) for number in s.vectors.moved)
            manner = f", {s.vectors.count} of {names} together where rows are aligned"
        manner += _each(self.program, s)
        yield f"{indent}{line.replace('spread  ', 'spread nothing ')}{manner}"
        yield from self.lines(s.body, indent + "  ")

    def _head(self, loop: ir.For) -> str:
        begins, ends = (
            list(starmap(self._limit, bound.limits())) for bound in (loop.begin, loop.end)
        )
        begin = f"max({', '.join(['0', *begins])})" if begins else "0"
        end = self._end(loop.size)
        end = f"min({', '.join([end, *ends])})" if ends else end
        remarks = []
        if loop.chunk is not None:
            count, _, block = loop.chunk
            remarks.append(f"block {self.kernel.names[block]} of {self._end(count)}")
        names = [self.array(number) for number in loop.finite]
        remarks += [f"if {' and '.join(names)} are finite"] if names else []
        end += ", the first of" if loop.first else "," if remarks else ""
        end += " " * bool(remarks) + ", ".join(remarks)
        parallel = "parallel " if loop.parallel else ""
        return f"{parallel}for {self.kernel.names[loop.variable]} in {begin}..{end}"

    def _manner(self, loop: ir.For) -> str:
        """The manner in which a loop runs: in lanes, unrolled, or not at all."""
        lanes = f" in {loop.lanes} lanes" if loop.lanes > 1 else ""
        role = _role_text(loop.role)
        if loop.is_kept and not role:
            role = " not unrolled"
        elif loop.copies not in (None, self.program.sizes[loop.size].fixed):
            role += f" by {loop.copies}"
        deferred, version, wide = "", "", ""
        if loop.deferred is not None:
            words = ["one thread has all"] if loop.deferred.alone else []
            words += [self._conditions(loop.deferred.guards)] if loop.deferred.guards else []
            condition = f" where {' and '.join(words)}" if words else ""
            deferred = f" unless a tile does{condition}"
        if isinstance(loop.version, ir.If):
            version = self._cut(loop.version)
        elif loop.version is not None:
            version = f" with the reciprocal of {self._scalar(loop.version.arguments[1])}"
        if isinstance(loop.manner, ir.Vectors):
            moved = [self.array(number) for number in loop.manner.buffers]
            wide = f", {' '.join(moved)} together"
        return f"{lanes}{role}{deferred}{version}{wide}"

    def _cut(self, cut: ir.If) -> str:
        """From where to where all conditions of a loop hold."""
        (middle,) = cut.body
        assert isinstance(middle, ir.For)
        bounds = (("from", middle.begin), ("to", middle.end))
        ends = " ".join(
            f"{word} {' and '.join(starmap(self._limit, bound.limits()))}"
            for word, bound in bounds
            if bound.operands
        )
        condition = f" where {self._conditions(cut.within)}" if cut.within else ""
        return f", cut{' ' if ends else ''}{ends}{condition}"

    def _held(self, tile: Tile) -> Iterator[str]:
        """Lines on a tile: how registers hold it, how many terms it adds in a row, where it goes in the end."""
        into = tile.target
        if tile.number is not None:
            most = ", ".join(f"{block.rows[0]}x{block.lanes}" for block in tile.micro_tiles)
            fused = ", sums fused" if tile.contracts() else ""
            padded = all(self.program.buffers[load.buffer].padded for load in tile.along())
            past = ", past the end of rows" if padded and tile.loops()[-1].within else ""
            condition = f" where {self._conditions(tile.guards)}" if tile.guards else ""
            yield f"in vectors of {tile.vector}, {most} at a time{fused}{past}{condition}"
        if tile.partial is not None:
            place = ", summed in registers" if tile.partial.apart else ""
            yield f"in partial sums of {tile.partial.step} at depth {tile.partial.depth}{place}"
        if into is not None:
            condition = f" where {self._conditions(into.within)}" if into.within else ""
            yield f"into {self._element(into.buffer, into.first)}{condition}"

    def _limit(self, index: Affine, step: int) -> str:
        """The number of the iteration at which a loop, or a part of one, begins or ends."""
        text = self._affine(index)
        if (part := left(index)) and part[0].variables():
            text = f"{self._end(part[1])} - ({self._affine(part[0])})"
        if step == 1:
            return text
        return f"ceil({text if text.isalnum() else f'({text})'} / {step})"

    def _update(self, target: str, value: Scalar) -> str:
        """``target += rest`` where the value is the target plus something."""
        if isinstance(value, Apply) and len(value.arguments) == 2:
            left, right = value.arguments
            if self._scalar(left) == target and value.primitive in ("add", "mul"):
                return (
                    f"{target} {PRIMITIVES[value.primitive].notation.sign}= {self._scalar(right)}"
                )
        return f"{target} = {self._scalar(value)}"

    def _conditions(self, within: Sequence[Within]) -> str:
        words = []
        for each in within:
            if each.size is None:
                left, relation, right = at_least_0(each.index)
                words.append(f"{self._affine(left)} {relation} {self._affine(right)}")
            else:
                index = self._affine(each.index)
                is_least_0 = each.index.is_natural() and not each.index.looked
                least = "" if is_least_0 else "0 <= "
                words.append(f"{least}{index} < {self._end(each.size)}")
        return " and ".join(words)

    def _end(self, number: int) -> str:
        return _extent(self.program, number)

    def _scalar(self, scalar: Scalar) -> str:
        return scalar_text(scalar, self._leaf)

    def _leaf(self, scalar: Scalar) -> str:
        match scalar:
            case Local():
                return self.kernel.locals[scalar.variable].name
            case Load():
                return self._element(scalar.buffer, scalar.index)
            case Position():
                text = self._affine(scalar.index)
                return text if text.replace("_", "").isalnum() else f"({text})"
            case Select():
                then, otherwise = self._scalar(scalar.then), self._scalar(scalar.otherwise)
                return f"({then} if {self._conditions(scalar.within)} else {otherwise})"
            case _:
                return ""

    def _element(self, buffer: int, index: Sequence[Affine]) -> str:
        name = self.array(buffer)
        return f"{name}[{','.join(self._affine(part) for part in index)}]" if index else name

    def _affine(self, index: Affine) -> str:
        return affine_text(index, self.kernel.names.__getitem__, self._end, self.array)


def moved_text(loops: KernelLoops, s: ir.Statement) -> str | None:
    """The statement on whole tiles that loops of a GPU are; None of any other."""
    if loops.program.machine.device is None:
        return None
    return moves.text(loops.program, s, loops.spelled, loops.is_exact)


def _variable_text(loops: KernelLoops, s: ir.Define | ir.HorizontalReduction) -> str:
    """The line of a variable that gets its first value, or whose lanes are combined."""
    variable = loops.kernel.locals[s.variable]
    if isinstance(s, ir.Define):
        return _declared(variable, loops.spelled[1](s.value))
    return f"{variable.name} = reduce the {s.lanes} lanes of {variable.name} with {s.primitive}"


def _movers(loops: KernelLoops, s: ir.Statement) -> str:
    """The threads that move a tile, and the vectors in which they do."""
    words = []
    if isinstance(s, ThreadLoop):
        words.append(f"{'lanes' if loops.is_for_warps else 'threads'}{_each(loops.program, s)}")
    wide = dict.fromkeys(map(loops.array, moves.vectors_of(s)))
    words += [f"vectors of {' '.join(wide)}"] if wide else []
    return f"    {', '.join(words)}" if words else ""


def _each(program: ir.Program, s: ThreadLoop) -> str:
    """The iterations of a worker, and how many of them it begins before it ends the first."""
    from ilang.core.occupancy import iterations_of, loads_in_flight

    each, together = iterations_of(program, s), loads_in_flight(program, s)
    words = "" if each is None else f", {each} each"
    return words if together is None else f"{words}, up to {together} at a time"
