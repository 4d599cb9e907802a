"""Register tiles in C: a function per tile, its elements in vector types, which GCC and Clang keep in registers.

    static void NAME_k0_tile(int64_t n_k, const float *restrict a, ..., int64_t i, float *restrict tile)

One text for every vector unit: macros of the compiler say how long its vectors are, and how many rows its registers
hold at a time. Sums of products are contracted here (``fma``), and nowhere else: a product that feeds only a sum loses
no digit by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ilang.codegen.targets.c_entry import wrapped
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, Spelling, affine, identifier
from ilang.core.dtype import BYTES
from ilang.core.ir.affine import Affine
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
from ilang.core.ir.scalar import Apply, Constant, Load, Local, Scalar, walk

VECTOR_BYTES = 64
"""Bytes of the widest vectors."""

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
SUPPORTED = INFIX.keys() | {"neg", "recip", "square", "max", "min"}


def vector_type(dtype: str, lanes: int) -> str:
    """The name of a vector type; with ``u`` appended, the same in memory at any address."""
    return f"{dtype}x{lanes}"


def lanes_of(dtype: str, extent: int) -> int:
    """The lanes of the vectors that a loop of this extent divides into; 1 where it does not."""
    lanes = VECTOR_BYTES // BYTES[dtype]
    while lanes > 1 and extent % lanes:
        lanes //= 2
    return lanes


REGISTERS = (
    "/* bytes of a vector, and of the elements of a tile that registers hold beside their operands */",
    "#if defined(__AVX512F__)",
    "#define VECTOR 64",
    "#define HELD 1792",
    "#elif defined(__AVX__)",
    "#define VECTOR 32",
    "#define HELD 256",
    "#elif defined(__aarch64__)",
    "#define VECTOR 16",
    "#define HELD 256",
    "#else",
    "#define VECTOR 16",
    "#define HELD 128",
    "#endif",
    "",
)
HELD = (1792, 256, 128)
"""The values of the macro of this name."""


def helpers_of(dtype: str, lanes: int) -> Iterator[str]:
    """The vector type of some lanes, fewer where the machine's vectors are shorter."""
    name, bytes_ = vector_type(dtype, lanes), BYTES[dtype]
    c_type, integer = C_TYPES[dtype], f"int{8 * bytes_}_t"
    most = lanes * bytes_
    wide = f"(VECTOR < {most} ? VECTOR : {most})"
    yield f"/* {lanes} lanes of {dtype}, or as many as a vector has; {name}u is the same in memory, at any address */"
    yield f"enum {{ lanes_{name} = {wide} / {bytes_} }};"
    yield f"typedef {c_type} {name} __attribute__((vector_size({wide})));"
    yield f"typedef {c_type} {name}u __attribute__((vector_size({wide}), aligned({bytes_}), may_alias));"
    yield f"typedef {integer} {name}m __attribute__((vector_size({wide})));"
    yield ""


def extremum(dtype: str, lanes: int, primitive: str) -> Iterator[str]:
    """The larger or smaller of two vectors lane by lane, as a macro: a vector argument has no stable ABI."""
    name = vector_type(dtype, lanes)
    sign = ">" if primitive == "max" else "<"
    yield f"/* the {'larger' if primitive == 'max' else 'smaller'} of two, lane by lane; NaN if one is */"
    yield f"#define {primitive}_{name}(a, b) \\"
    yield f"    (({name})(((((a) {sign} (b)) | ((a) != (a))) & ({name}m)(a)) | \\"
    yield f"     (~(((a) {sign} (b)) | ((a) != (a))) & ({name}m)(b))))"
    yield ""


class TileText:
    """The function of one tile, if its body is one that vectors can hold."""

    def __init__(self, program: Program, kernel: Kernel, tile: Tile, name: str) -> None:
        """For a tile of a kernel; ``name`` is what its function is called."""
        self.program = program
        self.tile = tile
        self.name = name
        buffer = program.buffers[tile.buffer]
        self.dtype = buffer.dtype
        self.dims = [program.sizes[n].fixed or 0 for n in buffer.dims]
        self.core, self.loops, self.inner = self._taken_apart()
        self.lanes = lanes_of(self.dtype, self.dims[-1]) if self.dtype in ("f32", "f64") else 1
        self.rests = self._rests()
        rows = {
            loop.variable
            for loop, rest in zip(self.loops[:-1], self.rests, strict=False)
            if rest is not None or len(self.dims) == 2
        }
        variable = self.loops[-1].variable if self.loops else -1
        self.spelling = VectorSpelling(program, kernel, tile.buffer, variable, self.lanes, rows)
        self.plain = Spelling(program, kernel)
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

        Rows past the end read the last row again, and lanes past the end read what a packed copy has there: both are
        computed, and never used.
        """
        words = [f"{self.plain.rest(rest)} > 0" for rest in self.rests[:-1] if rest is not None]
        rest = self.rests[-1]
        if rest is not None and self._is_padded():
            words.append(f"{self.plain.rest(rest)} > 0")
        elif rest is not None:
            words.append(f"{self.plain.rest(rest)} >= {self.dims[-1]}")
        return " && ".join(words)

    def _is_padded(self) -> bool:
        """Whether every read along the lanes is of a copy that has room for all of them."""
        for s in self.inner:
            assert isinstance(s, (Define, Store))
            for part in walk(s.value):
                if isinstance(part, Load) and part.buffer != self.tile.buffer:
                    walked = self.spelling.step(part.index, part.buffer) == 1
                    if walked and not self.program.buffers[part.buffer].padded:
                        return False
        return True

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

    def _parameters(self) -> tuple[list[str], list[str]]:
        """The parameters of the function, and the arguments it is called with."""
        sizes: set[int] = set()
        buffers: set[int] = set()
        used: set[int] = set()
        for s in statements_within(self.tile.body):
            if isinstance(s, For):
                sizes |= {s.size} if s.rest is None else {s.size, s.rest.size}
                used |= set() if s.rest is None else {v for _, v in s.rest.start.terms}
            elif isinstance(s, (Define, Store)):
                for part in walk(s.value):
                    if isinstance(part, Load) and part.buffer != self.tile.buffer:
                        buffers.add(part.buffer)
                        sizes |= set(self.program.buffers[part.buffer].dims[1:])
                        for index in part.index:
                            used |= {v for _, v in index.terms}
                            sizes |= {n for _, n in index.sizes}
        for rest in self.rests[:-1]:
            used |= set() if rest is None else {v for _, v in rest.start.terms}
            sizes |= set() if rest is None else {rest.size}
        own = {loop.variable for loop in (*self.core, *self.loops)}
        parameters, arguments = [], []
        for n in sorted(n for n in sizes if self.program.sizes[n].fixed is None):
            parameters.append(f"int64_t {self.spelling.size(n)}")
            arguments.append(self.spelling.size(n))
        for number in sorted(buffers):
            buffer = self.program.buffers[number]
            parameters.append(f"const {C_TYPES[buffer.dtype]} *restrict {identifier(buffer.name)}")
            arguments.append(identifier(buffer.name))
        for variable in sorted(used - own):
            parameters.append(f"int64_t {self.spelling.variable(variable)}")
            arguments.append(self.spelling.variable(variable))
        name = identifier(self.program.buffers[self.tile.buffer].name)
        parameters.append(f"{C_TYPES[self.dtype]} *restrict {name}")
        return parameters, [*arguments, name]

    def call(self) -> str:
        """The call of the function."""
        return f"{self.name}({', '.join(self._parameters()[1])});"

    def lines(self) -> Iterator[str]:
        """The function."""
        kind = vector_type(self.dtype, self.lanes)
        rows = prod(self.dims[:-1])
        if self._contracts():
            yield "#ifdef __clang__"
            yield "#pragma STDC FP_CONTRACT ON"
            yield "#else"
            yield "#pragma GCC push_options"
            yield '#pragma GCC optimize ("fp-contract=fast")'
            yield "#endif"
        yield wrapped(f"static void {self.name}(", self._parameters()[0], ")")
        yield "{"
        yield from self._at_once()
        for loop, rest in zip(self.loops[:-1], self.rests, strict=False):
            if rest is not None:
                stop = f"min_i64({self.plain.size(loop.size)}, {self.plain.rest(rest)}) - 1"
                yield f"{INDENT}const int64_t last_{self.plain.variable(loop.variable)} = {stop};"
        yield f"{INDENT}for (int64_t group = 0; group < {rows}; group += at_once) {{"
        inside = INDENT + INDENT
        yield f"{inside}{kind} {ACC}[at_once][{self.dims[-1]} / lanes_{kind}];"
        start = self.spelling.expression(self.tile.start)
        zero = f"({kind}){{0}}"
        value = zero if start in ("0.0f", "0.0") else f"{zero} + {start}"
        yield from self._over_tile(f"{ACC}[tile_row][part] = {value};")
        yield from self._core(inside)
        name = identifier(self.program.buffers[self.tile.buffer].name)
        place = f"{name}[(group + tile_row) * {self.dims[-1]} + part * lanes_{kind}]"
        yield from self._over_tile(f"*({kind}u *)&{place} = {ACC}[tile_row][part];")
        yield f"{INDENT}}}"
        yield "}"
        if self._contracts():
            yield "#ifdef __clang__"
            yield "#pragma STDC FP_CONTRACT OFF"
            yield "#else"
            yield "#pragma GCC pop_options"
            yield "#endif"
        yield ""

    def _at_once(self) -> Iterator[str]:
        """How many rows are computed at a time: as many as registers hold, and a divisor of all."""
        rows = prod(self.dims[:-1])
        row = self.dims[-1] * BYTES[self.dtype]
        for number, held in enumerate(HELD):
            fits = [n for n in range(1, rows + 1) if rows % n == 0 and n * row <= held]
            count = max(fits, default=1) if len(self.dims) == 2 else rows
            test = ("#if HELD >= {0}", "#elif HELD >= {0}", "#else")[number].format(held)
            yield test
            yield f"{INDENT}enum {{ at_once = {count} }};"
        yield "#endif"

    def _core(self, indent: str) -> Iterator[str]:
        """The loops that fill the rows at hand."""
        kind, outer = vector_type(self.dtype, self.lanes), indent
        for loop in self.core:
            yield from self.spelling.opened(loop, indent, "1")
            indent += INDENT
        for loop, extent in zip(self.loops, self.dims, strict=True):
            last = loop is self.loops[-1]
            yield f"#pragma GCC unroll {self._most_parts() if last else extent}"
            grouped = not last and len(self.dims) == 2
            step = f"lanes_{kind}" if last else "1"
            yield from self.spelling.opened(loop, indent, step, "at_once" if grouped else "")
            indent += INDENT
            if loop.variable in self.spelling.rows:
                name = self.plain.variable(loop.variable)
                at = f"group + {name}" if grouped else name
                clamped = self.rests[self.loops.index(loop)] is not None
                at = f"min_i64({at}, last_{name})" if clamped else at
                yield f"{indent}const int64_t in_{name} = {at};"
        for s in self.inner:
            yield indent + self.spelling.statement(s)
        while len(indent) > len(outer):
            indent = indent[: -len(INDENT)]
            yield f"{indent}}}"

    def _most_parts(self) -> int:
        """Vectors of a row where they are shortest."""
        return self.dims[-1] * BYTES[self.dtype] // 16 or 1

    def _over_tile(self, statement: str) -> Iterator[str]:
        """A statement for every vector of the rows at hand."""
        kind, inside = vector_type(self.dtype, self.lanes), INDENT + INDENT
        yield f"#pragma GCC unroll {prod(self.dims[:-1])}"
        yield f"{inside}for (int tile_row = 0; tile_row < at_once; ++tile_row) {{"
        yield f"#pragma GCC unroll {self._most_parts()}"
        parts = f"{self.dims[-1]} / lanes_{kind}"
        yield f"{inside}{INDENT}for (int part = 0; part < {parts}; ++part) {statement}"
        yield f"{inside}}}"


ACC = "in_registers"
"""The tile's elements in a tile function."""


class VectorSpelling(Spelling):
    """Scalars as C text where one loop variable stands for some lanes of a vector."""

    def __init__(
        self,
        program: Program,
        kernel: Kernel,
        tile: int,
        lane_variable: int,
        lanes: int,
        rows: set[int],
    ) -> None:
        """Names for a kernel.

        ``lane_variable`` walks the lanes, ``tile`` is the buffer in registers; where ``rows`` leave their dimension,
        reads stay at its last element.
        """
        super().__init__(program, kernel)
        self.rows = rows
        self.tile = tile
        self.lane_variable = lane_variable
        self.lanes = lanes
        self.vectors: set[int] = set()
        self.reading = False

    def variable(self, number: int) -> str:
        """A loop variable; in a read, that of a row stays inside its dimension."""
        name = super().variable(number)
        return f"in_{name}" if self.reading and number in self.rows else name

    def step(self, index: Sequence[Affine], buffer: int) -> int | None:
        """How far apart two lanes read: 0 or 1 elements; None for anything else."""
        if buffer == self.tile:
            return 1
        steps = [sum(c for c, v in part.terms if v == self.lane_variable) for part in index]
        if any(steps[:-1]):
            return None
        return steps[-1] if steps and steps[-1] in (0, 1) else (None if steps else 0)

    def opened(self, loop: For, indent: str, step: str, end: str = "") -> Iterator[str]:
        """The head of a loop; ``end`` in place of its own."""
        name, end = self.variable(loop.variable), end or self.size(loop.size)
        first = f"int64_t {name} = 0"
        if loop.rest is not None:
            first += f", end_{name} = min_i64({end}, {self.rest(loop.rest)})"
            end = f"end_{name}"
        more = f"++{name}" if step == "1" else f"{name} += {step}"
        yield f"{indent}for ({first}; {name} < {end}; {more}) {{"

    def statement(self, s: Statement) -> str:
        """A definition or an update of the tile."""
        if isinstance(s, Define):
            kind = C_TYPES[s.dtype]
            if self.is_vector(s.value):
                self.vectors.add(s.variable)
                kind = vector_type(s.dtype, self.lanes)
            return f"const {kind} {self.local(s.variable)} = {self.expression(s.value)};"
        assert isinstance(s, Store)
        return self.update(self.element(s.buffer, s.index), s.value)

    def is_vector(self, scalar: Scalar) -> bool:
        """Whether a scalar has a value per lane."""
        return any(
            (isinstance(part, Load) and self.step(part.index, part.buffer) == 1)
            or (isinstance(part, Local) and part.variable in self.vectors)
            for part in walk(scalar)
        )

    def element(self, buffer: int, index: Sequence[Affine]) -> str:
        """An element of a buffer; one of the tile is a vector in registers."""
        if buffer != self.tile:
            self.reading = True
            text = super().element(buffer, index)
            self.reading = False
            return text
        row = ""
        for size, part in zip(self.program.buffers[buffer].dims[:-1], index[:-1], strict=True):
            word = affine(part, self.variable, self.size)
            row = f"({row}) * {self.size(size)} + {word}" if row else word
        lane = affine(index[-1], self.variable, self.size)
        kind = vector_type(self.program.buffers[buffer].dtype, self.lanes)
        return f"{ACC}[{row or '0'}][{lane} / lanes_{kind}]"

    def expression(self, scalar: Scalar) -> str:
        """A scalar, or a vector of its lanes."""
        if isinstance(scalar, Load) and scalar.buffer != self.tile:
            text = super().expression(scalar)
            if self.step(scalar.index, scalar.buffer) == 1:
                return f"*(const {vector_type(scalar.dtype, self.lanes)}u *)&{text}"
            return text
        if isinstance(scalar, Apply) and scalar.primitive in ("max", "min", "square"):
            if not self.is_vector(scalar):
                return super().expression(scalar)
            words = [self._splat(argument) for argument in scalar.arguments]
            if scalar.primitive == "square":
                return f"{words[0]} * {words[0]}"
            return f"{scalar.primitive}_{vector_type(scalar.dtype or '', self.lanes)}({', '.join(words)})"
        return super().expression(scalar)

    def _splat(self, scalar: Scalar) -> str:
        """A value in every lane."""
        text = f"({self.expression(scalar)})"
        if self.is_vector(scalar):
            return text
        assert scalar.dtype is not None
        return f"({text} - ({vector_type(scalar.dtype, self.lanes)}){{0}})"
