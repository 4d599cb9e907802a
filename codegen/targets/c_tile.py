"""Register tiles in C: a function per tile, its elements in vector types, which GCC and Clang keep in registers.

    static void NAME_k0_tile(int64_t n_k, const float *restrict a, ..., int64_t i, float *restrict tile)

One text for every vector unit: macros of the compiler say how long its vectors are, and how many rows its registers
hold at a time. Sums of products are contracted here (``fma``), and nowhere else: a product that feeds only a sum loses
no digit by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ilang.codegen.targets import c_terms
from ilang.codegen.targets.c_direct import Direct
from ilang.codegen.targets.c_entry import wrapped
from ilang.codegen.targets.c_registers import HELD, lanes_of
from ilang.codegen.targets.c_terms import RUNS
from ilang.codegen.targets.c_vector import ACC, VectorSpelling, vector_type
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, Spelling, Variables, strides
from ilang.codegen.targets.identifiers import identifier
from ilang.core.dtype import BYTES
from ilang.core.ir.kernel import (
    Define,
    For,
    Kernel,
    Program,
    Rest,
    Statement,
    Store,
    Tile,
    statements_within,
)
from ilang.core.ir.scalar import Apply, Constant, Load, Local, walk

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
SUPPORTED = INFIX.keys() | {"neg", "recip", "square", "max", "min"}


TILE_PARTS = ("", "_part", "_whole", "_filling", "_any", "_lanes", "_most", "_some", "_few")
"""What the names of a tile's functions and constants end in."""


def late_name(program: Program, copy: int) -> str:
    """The name of what says that a tile fills a copy, and no loop before it."""
    return f"late_{identifier(program.buffers[copy].name)}"


class TileText:
    """The function of one tile, if its body is one that vectors can hold."""

    def __init__(
        self,
        program: Program,
        kernel: Kernel,
        tile: Tile,
        name: str,
        *,
        variables: Variables,
        direct: Direct | None = None,
    ) -> None:
        """For a tile of a kernel; ``variables`` are those of the kernel.

        ``name`` is what the function of the tile is called, ``direct`` where a whole tile goes.
        """
        self.program = program
        self.direct = direct
        self.tile = tile
        self.name = name
        buffer = program.buffers[tile.buffer]
        self.dtype = buffer.dtype
        self.dims = [program.sizes[n].fixed or 0 for n in buffer.dims]
        self.core, self.loops, self.inner = self._taken_apart()
        self.lanes = lanes_of(self.dtype, self.dims[-1]) if self.dtype in ("f32", "f64") else 1
        self.rests = self._rests()
        self.runs = c_terms.runs_of(program, tile)
        variable = self.loops[-1].variable if self.loops else -1
        moved = {variable}.union(
            loop.variable
            for loop, rest in zip(self.loops[:-1], self.rests, strict=False)
            if rest is not None or len(self.dims) == 2
        )
        self.plain = Spelling(program, kernel, variables)
        self.spelling = VectorSpelling(self.plain, tile.buffer, variable, self.lanes, moved)
        self.holds = (
            self.lanes > 1
            and len(self.loops) == len(self.dims)
            and all(self._is_vector(s) for s in self.inner)
        )

    def _taken_apart(self) -> tuple[list[For], list[For], tuple[Statement, ...]]:
        """The loops outside the tile's, the tile's, and what is inside them; no loops where there is more."""
        chain: list[For] = []
        body = self.tile.body
        while len(body) == 1 and isinstance(body[0], For):
            chain.append(body[0])
            body = body[0].body
        count = len(self.dims)
        if any(loop.lanes > 1 or loop.parallel for loop in chain):
            return [], [], ()
        return chain[:-count], chain[-count:], body

    def _rests(self) -> list[Rest | None]:
        """Where each loop of the tile stops at the end of its dimension."""
        chain: list[For] = []
        body = self.tile.edge
        while len(body) == 1 and isinstance(body[0], For):
            chain.append(body[0])
            body = body[0].body
        return [loop.rest for loop in chain[-len(self.dims) :]]

    def condition(self) -> str:
        """When the function may run: there is a row, and no lane reads past the end of memory; "" for always.

        The parts of an axis that is split once start inside it.
        Rows past the end read the last row again, and lanes past the end read the zeros that a packed copy has there
        (``c_pad.py``): both are computed, and never used.
        """
        words = []
        for rest, extent in zip(self.rests, self.dims, strict=True):
            if rest is None:
                continue
            if rest is self.rests[-1] and not self._is_padded():
                words.append(f"{self.plain.rest(rest)} >= {extent}")
            elif [c for c, _ in rest.start.terms] != [extent] or rest.step != 1:
                words.append(f"{self.plain.rest(rest)} > 0")
        return " && ".join(words)

    def read_past(self) -> set[int]:
        """The buffers that the function reads past the end of their rows: all of them have room for that."""
        ragged = self.holds and self.rests[-1] is not None
        return self._along() if ragged and self._is_padded() else set()

    def _is_padded(self) -> bool:
        """Whether every read along the lanes is of a copy that has room for all of them."""
        return all(self.program.buffers[number].padded for number in self._along())

    def _along(self) -> set[int]:
        """The buffers that the lanes read one element after the other."""
        scalars = [s.value for s in self.inner if isinstance(s, (Define, Store))]
        loads = (p for scalar in scalars for p in walk(scalar) if isinstance(p, Load))
        others = [p for p in loads if p.buffer != self.tile.buffer]
        return {p.buffer for p in others if self.spelling.step(p.index, p.buffer) == 1}

    def _is_vector(self, s: Statement) -> bool:
        """Whether vectors can do what a statement does."""
        if not isinstance(s, (Define, Store)) or (isinstance(s, Define) and s.mutable):
            return False
        if isinstance(s, Store) and s.buffer != self.tile.buffer:
            return False
        for part in walk(s.value):
            if isinstance(part, Apply) and (
                part.primitive not in SUPPORTED or part.dtype != self.dtype
            ):
                return False
            if not isinstance(part, (Apply, Load, Local, Constant)) or part.dtype != self.dtype:
                return False
            if isinstance(part, Load) and self.spelling.step(part.index, part.buffer) not in (0, 1):
                return False
        return True

    def helpers(self) -> set[tuple[str, int, str]]:
        """The vector type that the function uses, and its extrema."""
        found = {(self.dtype, self.lanes, "")}
        for s in self.inner:
            assert isinstance(s, (Define, Store))
            for part in walk(s.value):
                if isinstance(part, Apply) and part.primitive in ("max", "min"):
                    found.add((self.dtype, self.lanes, part.primitive))
        return found

    def _contracts(self) -> bool:
        """Whether the only sums are those into the tile, so that a product can feed nothing else."""
        sums = [
            part
            for s in self.inner
            if isinstance(s, (Define, Store))
            for part in walk(s.value)
            if isinstance(part, Apply) and part.primitive in ("add", "sub")
        ]
        stores = [s.value for s in self.inner if isinstance(s, Store)]
        return sums == stores and all(s.primitive == "add" for s in sums)

    def _uses(self, some: bool) -> tuple[set[int], set[int], set[int]]:
        """The sizes, the buffers and the loop variables from outside that the function uses, or that of ``some``."""
        sizes: set[int] = set()
        buffers: set[int] = set()
        used: set[int] = set()
        fill = () if self.tile.fill is None else (self.tile.fill,)
        for s in (*statements_within(self.tile.body), *fill):
            if isinstance(s, For):
                sizes |= {s.size} if s.rest is None else {s.size, s.rest.size}
                used |= set() if s.rest is None else {v for _, v in s.rest.start.terms}
            elif isinstance(s, (Define, Store)):
                for part in walk(s.value):
                    if isinstance(part, Load) and part.buffer != self.tile.buffer:
                        buffers.add(part.buffer)
                        sizes |= strides(self.program.buffers[part.buffer].dims, part.index)
                        for index in part.index:
                            used |= {v for _, v in index.terms}
                            sizes |= {n for _, n in index.sizes}
        for rest in self.rests[:-1] if some else self.rests:
            used |= set() if rest is None else {v for _, v in rest.start.terms}
            sizes |= set() if rest is None else {rest.size}
        for loop in () if some else self.tile.blocks:
            sizes |= {loop.size} if loop.rest is None else {loop.size, loop.rest.size}
            used |= set() if loop.rest is None else {v for _, v in loop.rest.start.terms}
        own = {loop.variable for loop in (*self.core, *self.loops)}
        own |= set() if some else {loop.variable for loop in self.tile.blocks}
        return sizes, buffers, used - own

    def _parameters(self, some: bool = False) -> tuple[list[str], list[str]]:
        """The parameters of the function, or of the one of ``some`` of it, and the arguments it is called with."""
        parameters, arguments = [], []
        sizes, buffers, used = self._uses(some)
        for n in sorted(n for n in sizes if self.program.sizes[n].fixed is None):
            parameters.append(f"int64_t {self.spelling.size(n)}")
            arguments.append(self.spelling.size(n))
        for number in sorted(buffers):
            buffer = self.program.buffers[number]
            filled = self.tile.fill is not None and number == self.tile.fill.buffer
            kind = f"{'' if filled else 'const '}{C_TYPES[buffer.dtype]}"
            parameters.append(f"{kind} *restrict {identifier(buffer.name)}")
            arguments.append(identifier(buffer.name))
        for variable in sorted(used):
            parameters.append(f"int64_t {self.spelling.variable(variable)}")
            arguments.append(self.spelling.variable(variable))
        for number, dtype in self._given():
            parameters.append(f"{C_TYPES[dtype]} {self.spelling.local(number)}")
            arguments.append(self.spelling.local(number))
        if self.tile.fill is not None and not some:
            parameters.append("int fills")
            arguments.append("fills")
        name = identifier(self.program.buffers[self.tile.buffer].name)
        parameters.append(f"{C_TYPES[self.dtype]} *restrict {name}")
        arguments.append(name)
        if self.direct is not None:
            parameters.append("int64_t stride")
            arguments.append("stride")
        return parameters, arguments

    def _given(self) -> list[tuple[int, str]]:
        """The scalar variables that are computed outside the tile and used in it, with their types."""
        own = {s.variable for s in self.inner if isinstance(s, Define)}
        scalars = (s.value for s in self.inner if isinstance(s, (Define, Store)))
        locals_ = {p for scalar in scalars for p in walk(scalar) if isinstance(p, Local)}
        return sorted((p.variable, p.dtype) for p in locals_ if p.variable not in own)

    def call(self) -> str:
        """The call of the function; a tile that is ``stored`` by it goes where it belongs."""
        parameters, arguments = self._parameters()
        if self.tile.fill is not None:
            words = [self.late_name(), *(f"{self.plain.variable(v)} == 0" for v in self.tile.first)]
            arguments[parameters.index("int fills")] = " && ".join(words)
        if self.direct is not None:
            place, stride = self.direct.place(self.plain), self.direct.stride(self.plain)
            arguments[-2:] = [
                f"{self.stored_name()} ? {place} : {arguments[-2]}",
                f"{self.stored_name()} ? {stride} : {self.dims[-1]}",
            ]
        return f"{self.name}({', '.join(arguments)});"

    def late_name(self) -> str:
        """The name of what says that the tile fills the copy that it reads."""
        assert self.tile.fill is not None
        return late_name(self.program, self.tile.fill.buffer)

    def stored_name(self) -> str:
        """The name of what says that the function stores the tile where it belongs."""
        return f"stored_{identifier(self.program.buffers[self.tile.buffer].name)}"

    def late(self) -> str:
        """When the tile may fill the copy that it reads, for one thread: all lanes are inside."""
        return (
            "1"
            if self.rests[-1] is None
            else f"{self.plain.rest(self.rests[-1])} >= {self.dims[-1]}"
        )

    def stored(self) -> str:
        """When the function stores the tile where it belongs."""
        assert self.direct is not None
        words = [self.direct.condition(self.plain), self.condition()]
        return " && ".join(word for word in words if word)

    def _stride(self) -> str:
        """How many elements are between rows of what the function writes."""
        return "stride" if self.direct is not None else str(self.dims[-1])

    def lines(self) -> Iterator[str]:
        """Two functions: some rows and lanes of the tile in registers, and all of it."""
        if self._contracts():
            yield "#ifdef __clang__"
            yield "#pragma STDC FP_CONTRACT ON"
            yield "#else"
            yield "#pragma GCC push_options"
            yield '#pragma GCC optimize ("fp-contract=fast")'
            yield "#endif"
        yield from self._at_once()
        yield from self._some()
        yield from self._whole()
        if self.tile.fill is not None:
            yield from self._whole(filling=True)
        yield from self._all()
        yield from self._either()
        if self._contracts():
            yield "#ifdef __clang__"
            yield "#pragma STDC FP_CONTRACT OFF"
            yield "#else"
            yield "#pragma GCC pop_options"
            yield "#endif"
        yield ""

    def _at_once(self) -> Iterator[str]:
        """How many rows and lanes are computed at a time: as many as registers hold, and divisors of all.

        Few rows that are left at the end of a dimension are computed by themselves.
        """
        for number, (held, vector) in enumerate(HELD):
            rows, lanes = self._fitting(held, vector)
            heights = (
                (rows, -(-2 * rows // 3), -(-rows // 3)) if len(self.dims) == 2 else (rows,) * 3
            )
            yield ("#if HELD >= {0}", "#elif HELD >= {0}", "#else")[number].format(held)
            words = zip(("lanes", "most", "some", "few"), (lanes, *heights), strict=True)
            yield f"enum {{ {', '.join(f'{self.name}_{word} = {n}' for word, n in words)} }};"
        yield "#endif"

    def _fitting(self, held: int, vector: int) -> tuple[int, int]:
        """The rows and the lanes of a part of the tile that some bytes hold: the most products per element read.

        One vector of each row at least; a tile of more than two dimensions has all of its rows.
        """
        rows, lanes, size = prod(self.dims[:-1]), self.dims[-1], BYTES[self.dtype]
        unit = min(vector // size, self.lanes)
        heights = (
            [n for n in range(1, rows + 1) if rows % n == 0] if len(self.dims) == 2 else [rows]
        )
        fits = [
            (height, n)
            for height in heights
            for n in range(unit, lanes + 1, unit)
            if lanes % n == 0 and height * n * size <= held
        ]
        best = max(fits, key=lambda fit: (_products(fit[0], fit[1] // unit), fit), default=None)
        return best or (rows if len(self.dims) != 2 else 1, unit)

    def _some(self) -> Iterator[str]:
        """The function of a part of the tile; how much that is, is constant where it is called."""
        kind = vector_type(self.dtype, self.lanes)
        own = ["const int rows_at_once", "const int parts_at_once"]
        own += ["const int filling"] if self.tile.fill is not None else []
        own += ["int64_t first_row", "int64_t first_lane"]
        head = f"static inline __attribute__((always_inline)) void {self.name}_part("
        yield wrapped(head, [*own, *self._parameters(some=True)[0]], ")")
        yield "{"
        for loop, rest in zip(self.loops[:-1], self.rests, strict=False):
            if rest is not None:
                stop = f"min_i64({self.plain.size(loop.size)}, {self.plain.rest(rest)}) - 1"
                yield f"{INDENT}const int64_t last_{self.plain.variable(loop.variable)} = {stop};"
        rows = f"{self.name}_most" if len(self.dims) == 2 else str(prod(self.dims[:-1]))
        yield f"{INDENT}{kind} {ACC}[{rows}][{self.name}_lanes / lanes_{kind}];"
        start = self.spelling.expression(self.tile.start)
        zero = f"({kind}){{0}}"
        value = zero if start in ("0.0f", "0.0") else f"{zero} + {start}"
        yield from self._over_part(f"{ACC}[tile_row][part] = {value};")
        held = ACC
        if self.runs is not None:
            held = RUNS
            yield f"{INDENT}{kind} {held}[{rows}][{self.name}_lanes / lanes_{kind}];"
            yield from self._over_part(f"{held}[tile_row][part] = {zero};")
        yield from self._core(INDENT)
        name = identifier(self.program.buffers[self.tile.buffer].name)
        place = (
            f"{name}[(first_row + tile_row) * {self._stride()} + first_lane + part * lanes_{kind}]"
        )
        yield from self._over_part(f"*({kind}u *)&{place} = {held}[tile_row][part];")
        yield "}"
        yield ""

    def _core(self, indent: str) -> Iterator[str]:
        """The loops that fill the rows at hand; what a run of terms gives is added to that of those before it."""
        kind, outer = vector_type(self.dtype, self.lanes), indent
        for depth, loop in enumerate(self.core):
            if self.runs is not None and depth == self.runs.depth:
                yield from c_terms.opened(self.runs, loop, self.plain, indent)
                indent += INDENT
            else:
                yield self.plain.opened(loop, indent)
            indent += INDENT
        if self.tile.fill is not None:
            yield from self._filled(self.tile.fill, indent)
        for loop, extent in zip(self.loops, self.dims, strict=True):
            last = loop is self.loops[-1]
            name = self.plain.variable(loop.variable)
            grouped = not last and len(self.dims) == 2
            yield f"#pragma GCC unroll {self._most_parts() if last else extent}"
            if last:
                lanes = f"parts_at_once * lanes_{kind}"
                yield self.plain.opened(loop, indent, f"lanes_{kind}", lanes)
            else:
                yield self.plain.opened(loop, indent, end="rows_at_once" if grouped else "")
            indent += INDENT
            if loop.variable in self.spelling.moved:
                at = f"first_lane + {name}" if last else name
                at = f"first_row + {name}" if grouped else at
                clamped = not last and self.rests[self.loops.index(loop)] is not None
                at = f"min_i64({at}, last_{name})" if clamped else at
                yield f"{indent}const int64_t in_{name} = {at};"
        for s in self.inner:
            yield indent + self.spelling.statement(s)
        run = len(outer) + len(INDENT) * (self.runs.depth + 1 if self.runs is not None else -1)
        while len(indent) > len(outer):
            indent = indent[: -len(INDENT)]
            yield f"{indent}}}"
            if len(indent) == run:
                held, summed = f"{RUNS}[tile_row][part]", f"{ACC}[tile_row][part]"
                yield from self._over_part(
                    f"{{ {held} += {summed}; {summed} = ({kind}){{0}}; }}", indent
                )

    def _filled(self, fill: Store, indent: str) -> Iterator[str]:
        """Take lanes from where a copy would have them, and fill that."""
        kind, loop = vector_type(self.dtype, self.lanes), self.loops[-1]
        name, inside = self.plain.variable(loop.variable), indent + INDENT + INDENT
        yield f"{indent}if (filling) {{"
        yield f"#pragma GCC unroll {self._most_parts()}"
        lanes = f"parts_at_once * lanes_{kind}"
        yield self.plain.opened(loop, indent + INDENT, f"lanes_{kind}", lanes)
        if loop.variable in self.spelling.moved:
            yield f"{inside}const int64_t in_{name} = first_lane + {name};"
        target = self.spelling.element(fill.buffer, fill.index)
        yield f"{inside}*({kind}u *)&{target} = {self.spelling.expression(fill.value)};"
        yield f"{indent}{INDENT}}}"
        yield f"{indent}}}"

    def _whole(self, filling: bool = False) -> Iterator[str]:
        """The function of as many rows and lanes as are computed at a time: with no others around, it starts soon."""
        end = "filling" if filling else "whole"
        head = f"static __attribute__((noinline)) void {self.name}_{end}("
        own = ["int64_t first_row", "int64_t first_lane"]
        yield wrapped(head, [*own, *self._parameters(some=True)[0]], ")")
        yield "{"
        rows = f"{self.name}_most" if len(self.dims) == 2 else str(prod(self.dims[:-1]))
        parts = f"{self.name}_lanes / lanes_{vector_type(self.dtype, self.lanes)}"
        arguments = ["first_row", "first_lane", *self._parameters(some=True)[1]]
        arguments = [*self._fills(filling), *arguments]
        yield f"{INDENT}{self.name}_part({', '.join([rows, parts, *arguments])});"
        yield "}"
        yield ""

    def _fills(self, filling: bool = False) -> list[str]:
        """The argument that says whether a part fills the copy that it reads."""
        return [] if self.tile.fill is None else [str(int(filling))]

    def _either(self) -> Iterator[str]:
        """The function that is called: a whole tile of one block is one call where registers hold it."""
        parameters, arguments = self._parameters()
        yield wrapped(f"static inline void {self.name}(", parameters, ")")
        yield "{"
        words = [
            f"{self.name}_lanes == {self.dims[-1]}",
            f"{self.name}_most == {prod(self.dims[:-1])}",
        ]
        words += [f"{self._trips(loop)} == 1" for loop in self.tile.blocks]
        for rest, extent in zip(self.rests, self.dims, strict=True):
            words += [] if rest is None else [f"{self.plain.rest(rest)} >= {extent}"]
        fills = f"if (fills) {self.name}_filling" if self.tile.fill is not None else ""
        yield f"{INDENT}if ({' && '.join(words)}) {{"
        first = dict.fromkeys(
            (self.plain.variable(loop.variable) for loop in self.tile.blocks), "0"
        )
        some = ["0", "0", *(first.get(word, word) for word in self._parameters(some=True)[1])]
        if fills:
            yield f"{INDENT}{INDENT}{fills}({', '.join(some)});"
        yield f"{INDENT}{INDENT}{'else ' if fills else ''}{self.name}_whole({', '.join(some)});"
        yield f"{INDENT}}} else {{"
        yield f"{INDENT}{INDENT}{self.name}_any({', '.join(arguments)});"
        yield f"{INDENT}}}"
        yield "}"

    def _all(self) -> Iterator[str]:
        """The function of the tile: block by block, its rows and lanes that are inside, part by part."""
        name = identifier(self.program.buffers[self.tile.buffer].name)
        head = f"static __attribute__((noinline)) void {self.name}_any("
        yield wrapped(head, self._parameters()[0], ")")
        yield "{"
        rest = self.rests[0] if len(self.dims) == 2 else None
        rows, lanes = prod(self.dims[:-1]), self.dims[-1]
        yield f"{INDENT}const int64_t tile_rows = {self._inside(rows, rest)};"
        yield f"{INDENT}const int64_t tile_lanes = {self._inside(lanes, self.rests[-1])};"
        if not self.tile.blocks:
            yield from self._parts(INDENT, self._parameters(some=True)[1])
            yield "}"
            yield ""
            return
        count = " * ".join(self._trips(loop) for loop in self.tile.blocks)
        kind = C_TYPES[self.dtype]
        yield f"{INDENT}const int64_t blocks = {count};"
        yield f"{INDENT}int64_t block = 0;"
        yield f"{INDENT}{kind} given[{rows * lanes}] __attribute__((aligned(64)));"
        yield f"{INDENT}double sums[{rows * lanes}] __attribute__((aligned(64)));"
        each = f"for (int element = 0; element < {rows * lanes}; ++element)"
        yield f"{INDENT}{kind} *const filled = blocks == 1 ? {name} : given;"
        if self.direct is not None:
            yield f"{INDENT}const int64_t step = blocks == 1 ? stride : {lanes};"
        partial = f"tile_rows < {rows} || tile_lanes < {lanes}"
        yield f"{INDENT}if (blocks < 1 || (blocks > 1 && ({partial})))"
        yield f"{INDENT}{INDENT}{each} sums[element] = given[element] = 0;"
        indent = INDENT
        for loop in self.tile.blocks:
            yield self.plain.opened(loop, indent)
            indent += INDENT
        arguments = self._parameters(some=True)[1]
        places = {name: "filled", "stride": "step"}
        yield from self._parts(indent, [places.get(word, word) for word in arguments])
        yield f"{indent}if (blocks == 1) return;"
        yield f"{indent}if (block++ == 0)"
        yield f"{indent}{INDENT}{each} sums[element] = given[element];"
        yield f"{indent}else if (block < blocks)"
        yield f"{indent}{INDENT}{each} sums[element] += given[element];"
        while len(indent) > len(INDENT):
            indent = indent[: -len(INDENT)]
            yield f"{indent}}}"
        yield from self._sum(name, kind)
        yield "}"
        yield ""

    def _sum(self, name: str, kind: str) -> Iterator[str]:
        """The tile from the sums of all blocks but the last, and what that one gives."""
        rows, lanes = prod(self.dims[:-1]), self.dims[-1]
        stride, inside = self._stride(), INDENT + INDENT
        yield f"{INDENT}for (int tile_row = 0; tile_row < {rows}; ++tile_row) {{"
        yield f"{inside}for (int lane = 0; lane < {lanes}; ++lane) {{"
        yield f"{inside}{INDENT}const int element = tile_row * {lanes} + lane;"
        total = f"({kind})(sums[element] + given[element])"
        yield f"{inside}{INDENT}{name}[tile_row * {stride} + lane] = {total};"
        yield f"{inside}}}"
        yield f"{INDENT}}}"

    def _parts(self, indent: str, arguments: Sequence[str]) -> Iterator[str]:
        """The calls that compute the rows and lanes of a block, with these arguments."""
        kind, deeper = vector_type(self.dtype, self.lanes), indent + INDENT
        inside, given = deeper + INDENT, ", ".join(["row", "lane", *arguments])
        most = f"{self.name}_most" if len(self.dims) == 2 else "tile_rows"
        yield f"{indent}for (int64_t row = 0; row < tile_rows; row += {most}) {{"
        yield f"{deeper}int64_t lane = 0;"
        wide = f"{self.name}_lanes"
        yield f"{deeper}for (; tile_lanes - lane > {wide} / 2; lane += {wide}) {{"
        own = "".join(f"{word}, " for word in self._fills())
        otherwise = ""
        if self.tile.fill is not None:
            yield f"{inside}if (fills)"
            yield f"{inside}{INDENT}{self.name}_filling({given});"
            otherwise = "else "
        if len(self.dims) == 2:
            for height in (f"{self.name}_few", f"{self.name}_some"):
                yield f"{inside}{otherwise}if (tile_rows - row <= {height})"
                part = f"{self.name}_part({height}, {wide} / lanes_{kind}, {own}{given});"
                yield f"{inside}{INDENT}{part}"
                otherwise = "else "
        if otherwise:
            yield f"{inside}else"
        yield f"{inside}{INDENT}{self.name}_whole({given});"
        yield f"{deeper}}}"
        yield f"{deeper}for (; lane < tile_lanes; lane += lanes_{kind})"
        rows = f"{self.name}_most" if len(self.dims) == 2 else str(prod(self.dims[:-1]))
        yield f"{inside}{self.name}_part({rows}, 1, {own}{given});"
        yield f"{indent}}}"

    def _trips(self, loop: For) -> str:
        """How often a loop runs."""
        size = self.plain.size(loop.size)
        return size if loop.rest is None else f"min_i64({size}, {self.plain.rest(loop.rest)})"

    def _inside(self, extent: int, rest: Rest | None) -> str:
        """How many rows or lanes are inside their dimension."""
        return str(extent) if rest is None else f"min_i64({extent}, {self.plain.rest(rest)})"

    def _most_parts(self) -> int:
        """Vectors of a row where they are shortest."""
        return self.dims[-1] * BYTES[self.dtype] // 16 or 1

    def _over_part(self, statement: str, indent: str = INDENT) -> Iterator[str]:
        """A statement for every vector of the rows at hand."""
        yield f"#pragma GCC unroll {prod(self.dims[:-1])}"
        yield f"{indent}for (int tile_row = 0; tile_row < rows_at_once; ++tile_row) {{"
        yield f"#pragma GCC unroll {self._most_parts()}"
        yield f"{indent}{INDENT}for (int part = 0; part < parts_at_once; ++part) {statement}"
        yield f"{indent}}}"


def _products(rows: int, vectors: int) -> float:
    """Products of a part of a tile per read: what the lanes read comes from farther away than what the rows do."""
    return rows * vectors / (rows + 2 * vectors)
