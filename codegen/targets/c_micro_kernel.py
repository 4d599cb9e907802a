"""The micro-kernel of a register tile, some of its rows and vectors: they stay in registers while terms are added.

    static inline void NAME_k0_tile0_micro(const int rows_at_once, const int vectors_at_once, ...)

``c_tile.py`` has the functions that call it, once or for one part of a tile after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from ilang.codegen.targets import c_terms
from ilang.codegen.targets.braces import braced
from ilang.codegen.targets.c_entry import FORMULAS, several_a_line
from ilang.codegen.targets.c_terms import COUNT, SUMS
from ilang.codegen.targets.cfamily import (
    C_TYPES,
    KernelNames,
    Spelling,
    end_of,
    keeps_sign_of_zero,
    product,
)
from ilang.codegen.targets.identifiers import function_identifier, identifier
from ilang.core.calculus.affine import Affine, variables_of
from ilang.core.ir.cpu import Tile
from ilang.core.ir.kernel import Define, Kernel, Program, Store
from ilang.core.ir.scalar import Apply, Load, Local, Scalar, scalars_within
from ilang.core.lower.uses import captured_by
from ilang.core.ops import PRIMITIVES

ACC = "in_registers"
"""The tile's elements in a tile function."""
LOADED = "loaded"
"""The vectors that all rows of a part of a tile use, with a number for each load."""


class TileFunction:
    """A tile that registers hold: what its functions are called, and what they take."""

    def __init__(self, program: Program, kernel: Kernel, tile: Tile, spelling: Spelling) -> None:
        """For a tile of a kernel, whose names ``spelling`` has."""
        self.program = program
        self.tile = tile
        owner = f"{function_identifier(program.name)}_{kernel.name}"
        self.name = f"{owner}_tile{tile.number}"
        self.elements = identifier(program.buffers[tile.buffer].name)
        self.dtype = program.buffers[tile.buffer].dtype
        self.kind = vector_type(self.dtype, tile.vector)
        self.dims = tuple(program.sizes[loop.size].fixed or 0 for loop in tile.loops())
        self.ragged = tile.loops()
        self.extents = [spelling.count(loop) for loop in self.ragged]
        """The dimensions as text, by their names."""
        self.plain = spelling
        self.spelling = VectorSpelling(spelling, tile)

    def parameters(self, some: bool = False) -> tuple[list[str], list[str]]:
        """The parameters of the function, or of the one of ``some`` of it, and the arguments it is called with."""
        captured = captured_by(self.program, self.tile, not some)
        numbers = [self.spelling.size(n) for n in captured.sizes]
        words = [(f"int64_t {name}", name) for name in numbers]
        for number in captured.buffers:
            buffer = self.program.buffers[number]
            filled = self.tile.fill is not None and number == self.tile.fill.buffer
            kind = f"{'' if filled else 'const '}{C_TYPES[buffer.dtype]}"
            name = identifier(buffer.name)
            words.append((f"{kind} *restrict {name}", name))
        names = [self.spelling.variable(n) for n in captured.variables]
        words += [(f"int64_t {name}", name) for name in names]
        for part in captured.locals:
            name = self.spelling.local(part.variable)
            words.append((f"{self.spelling.kind(part.variable, part.dtype)} {name}", name))
        if self.tile.fill is not None and not some:
            words.append(("int packs", "packs"))
        words.append((f"{C_TYPES[self.dtype]} *restrict {self.elements}", self.elements))
        if self.has_stride():
            words.append(("int64_t stride", "stride"))
        return [declared for declared, _ in words], [argument for _, argument in words]

    def is_matrix(self) -> bool:
        """Whether it has rows that are counted; of any other tile all rows are computed at a time."""
        return len(self.dims) == 2

    def rows(self) -> str:
        """The number of rows that registers hold at a time."""
        return f"{self.name}_most" if self.is_matrix() else str(prod(self.dims[:-1]))

    def of_rows(self, *words: str) -> list[str]:
        """The words that are of rows; none where all are computed at a time."""
        return [*words] if self.is_matrix() else []

    def stride(self) -> str:
        """The number of elements between rows of what the functions write."""
        return "stride" if self.has_stride() else self.extents[-1]

    def has_stride(self) -> bool:
        """Whether the functions are told how far rows are apart: a tile with rows may be stored where it belongs."""
        target = self.tile.target
        if target is None or not self.is_matrix():
            return False
        return target.stride.text(self.plain.size, FORMULAS) != str(self.dims[-1])

    def overlaps(self) -> bool:
        """Whether the last two vectors of a row overlap, as none of its length divides the row."""
        return self.dims[-1] % self.tile.vector != 0


class MicroKernel(TileFunction):
    """The function of some rows and vectors; how many they are, is constant where it is called."""

    def __init__(self, program: Program, kernel: Kernel, tile: Tile, spelling: Spelling) -> None:
        """For a tile of a kernel, whose names ``spelling`` has."""
        super().__init__(program, kernel, tile, spelling)
        self.partial = tile.partial
        self.loops = [loop.whole() for loop in self.ragged]
        self.lane_loop = self.loops[-1]
        row = "0" if self.rows() == "1" else "tile_row"
        self.value, self.summed = (f"{vectors}[{row}][vector]" for vectors in (ACC, SUMS))
        self.spelling.by_rows = self._by_rows() if self.is_matrix() else {}

    def repeats(self) -> bool:
        """Whether rows that read a fixed number of elements apart may end earlier: then they repeat the last one."""
        return bool(self.spelling.by_rows and self.ragged[0].within)

    def lines(self) -> Iterator[str]:
        """The function."""
        counts = [*self.of_rows("const int rows_at_once"), "const int vectors_at_once"]
        counts += ["const int packing"] if self.tile.fill is not None else []
        counts += ["const int all_rows"] if self.repeats() else []
        counts += [*self.of_rows("int64_t first_row"), "int64_t first_lane"]
        head = f"static inline __attribute__((always_inline)) void {self.name}_micro("
        yield several_a_line(head, [*counts, *self.parameters(some=True)[0]], ")")
        yield from braced("", self._body())
        yield ""

    def _body(self) -> Iterator[str]:
        for loop in self.ragged[:-1]:
            if loop.within and (self.repeats() or loop.variable in self._walked()):
                stop = f"{end_of(self.plain, loop)} - 1"
                yield f"const int64_t last_{self.plain.variable(loop.variable)} = {stop};"
        vectors = f"[{self.rows()}][{self.name}_vectors]"
        yield f"{self.kind} {ACC}{vectors};"
        start = self.spelling.expression(self.tile.start)
        zero = f"({self.kind}){{0}}"
        if self.partial is None or self.partial.apart:
            first = zero if start in ("0.0f", "0.0") else f"{zero} + {start}"
            yield from self._over_vectors(f"{self.value} = {first};")
        if self.partial is not None and self.partial.apart:
            yield f"{self.kind} {SUMS}{vectors};"
            yield from self._over_vectors(f"{self.summed} = {zero};")
        elif self.partial is not None and self.partial.depth > 0:
            yield f"int64_t {COUNT} = 0;"
        yield from self._core(0)
        if self.partial is None or self.partial.apart:
            yield "/* store the elements */"
            value = self.value if self.partial is None else self.summed
            yield from self._over_vectors(f"{self._place()} = {value};")
        elif self.partial.depth > 0 and not _has_terms(self.program, self.tile):
            nothing = self._over_vectors(f"{self._place()} = {zero};")
            yield from braced(f"if ({COUNT} == 0)", nothing)

    def _by_rows(self) -> dict[tuple[int, tuple[Affine, ...]], str]:
        """The elements, by buffer and index, that rows make a fixed number of elements apart, as text.

        The row comes last in the index: then compilers keep one address, and not one for each row.
        """
        row, lanes = self.loops[0].variable, self.lane_loop.variable
        named, counted = Renamed(self.plain, {row: "first_row"}), self.plain.variable(row)
        counted = f"from_{counted}" if self.ragged[0].within else counted
        texts = dict[tuple[int, tuple[Affine, ...]], str]()
        for load in self._loads():
            moved = [n for n, part in enumerate(load.index) if row in part.variables()]
            buffer = self.program.buffers[load.buffer]
            sizes = [self.program.sizes[n].fixed or 0 for n in buffer.dims]
            looks = any(part.looked for part in load.index)
            if not moved or looks or lanes in variables_of(load.index):
                continue
            if 0 in sizes[moved[0] + 1 :]:  # or not known
                continue
            step = sum(load.index[n].coefficient(row) * prod(sizes[n + 1 :]) for n in moved)
            at = f"{named.position(load.buffer, load.index)} + {product((counted, str(step)))}"
            texts[load.buffer, tuple(load.index)] = f"{identifier(buffer.name)}[{at}]"
        return texts

    def _loads(self) -> Iterator[Load]:
        """The loads of an iteration beside those of the tile."""
        for s in self.tile.iteration():
            for part in scalars_within(s.value):
                if isinstance(part, Load) and part.buffer != self.tile.buffer:
                    yield part

    def _core(self, depth: int) -> Iterator[str]:
        """The loops that fill the rows at hand, those from a depth on.

        A partial sum is added to those before it: to what is held beside the tile, or else where the tile will be.
        """
        if depth == len(self.tile.core()):
            yield from self._filled(self.tile.fill) if self.tile.fill is not None else ()
            yield from self._loaded()
            yield "/* a term for every element */"
            yield from self._rows(0)
            return
        loop = self.tile.core()[depth]
        if self.partial is None or depth != self.partial.depth:
            if self.has_few_terms():
                yield f"#pragma GCC unroll {self.program.sizes[loop.size].fixed}"
            yield from braced(self.plain.opened(loop), self._core(depth + 1))
            return
        sums, terms = c_terms.opened(
            self.partial, loop, self.plain, not _has_terms(self.program, self.tile)
        )
        partial = braced(terms, self._core(depth + 1))
        zero = f"({self.kind}){{0}}"
        if self.partial.apart:
            again = f"{{ {self.summed} += {self.value}; {self.value} = {zero}; }}"
            yield from braced(sums, (*partial, *self._over_vectors(again)))
        else:
            begun = self._over_vectors(f"{self.value} = {zero};")
            yield from braced(sums, (*begun, *partial, *self._after_partial()))

    def _rows(self, depth: int) -> Iterator[str]:
        """The loops over rows and lanes, those from a depth on, around what an iteration does."""
        if depth == len(self.loops):
            yield from map(self.spelling.statement, self.tile.iteration())
            return
        loop, ragged = self.loops[depth], self.ragged[depth]
        last = loop is self.lane_loop
        name = self.plain.variable(loop.variable)
        grouped = not last and self.is_matrix()
        place = list[str]()
        is_read = loop.variable in self._walked() and not (last and self._reads_no_lanes())
        if loop.variable in self.tile.counted() and is_read:
            at = self._lane(name) if last else name
            at = f"first_row + {name}" if grouped else at
            at = f"min_i64({at}, last_{name})" if not last and ragged.within else at
            place = [f"const int64_t in_{name} = {at};"]
        if grouped and self.repeats():
            last_row = f"min_i64({name}, last_{name} - first_row)"
            place.append(f"const int64_t from_{name} = all_rows ? {name} : {last_row};")
        yield f"#pragma GCC unroll {self._most_vectors() if last else self.dims[depth]}"
        head = self.plain.opened(loop, end="rows_at_once" if grouped else "")
        head = self._over_lanes("vectors_at_once * lanes_" + self.kind) if last else head
        yield from braced(head, (*place, *self._rows(depth + 1)))

    def has_few_terms(self) -> bool:
        """Whether a row alone meets few terms: loops over them are unrolled whole, for each loads what it uses once."""
        terms = prod(self.program.sizes[loop.size].fixed or 1 << 62 for loop in self.tile.core())
        return not self.is_matrix() and terms <= self.program.machine.tiles.unrolled_terms

    def _over_lanes(self, end: str) -> str:
        """The head of the loop over lanes, a vector at a time, up to an end."""
        return self.plain.opened(self.lane_loop, f"lanes_{self.kind}", end)

    def _loaded(self) -> Iterator[str]:
        """The vectors that all rows use, in registers, if there are as many: compilers may read them for each row."""
        loop, loads = self.lane_loop, self._shared_loads()
        if not loads:
            return
        name = self.plain.variable(loop.variable)
        yield "/* the vectors that all rows read */"
        for number in range(len(loads)):
            yield f"{self.kind} {LOADED}{number}[{self.name}_vectors];"
        lines = list[str]()
        if loop.variable in self.tile.counted():
            lines.append(f"const int64_t in_{name} = {self._lane(name)};")
        texts = self.spelling.hold(loads, name)
        registers = f"(rows_at_once + {len(loads)}) * vectors_at_once < 4 * HELD / VECTOR / 3"
        for load, text in zip(loads, texts, strict=True):
            lines.append(f"{self.spelling.held[load]} = {text};")
            lines.append(f"if ({registers}) IN_REGISTER({self.spelling.held[load]});")
        yield f"#pragma GCC unroll {self._most_vectors()}"
        yield from braced(self._over_lanes(f"vectors_at_once * lanes_{self.kind}"), lines)

    def _shared_loads(self) -> list[Load]:
        """The loads of whole vectors that are the same for all rows."""
        rows = {loop.variable for loop in self.loops[:-1]}
        whole = self.tile.vector == self.program.machine.vector_lanes(self.dtype)
        return [
            load
            for load in self.tile.along()
            if whole and load.dtype == self.dtype and self.is_matrix()
            if not any(part.looked or rows & part.variables() for part in load.index)
        ][:4]

    def _reads_no_lanes(self) -> bool:
        """Whether all that is read lane by lane was read before the loops over rows and lanes."""
        return self.spelling.held.keys() >= set(self.tile.along())

    def _walked(self) -> set[int]:
        """The variables of loops by which an iteration reads memory: some rows repeat the one before."""
        by_rows = self.spelling.by_rows
        others = (x for x in self._loads() if (x.buffer, tuple(x.index)) not in by_rows)
        return variables_of(index for load in others for index in load.index)

    def _after_partial(self) -> Iterator[str]:
        """Add the sum at hand to those before it, where the tile will be; the first one is stored."""
        assert self.partial is not None
        run = c_terms.counter(self.tile.core()[0], self.plain)
        before = f"{COUNT}++ > 0" if self.partial.depth > 0 else f"{run} > 0"
        yield "/* store the sums, or add them to those that are stored */"
        added, stored = (f"{self._place()} {sign} {self.value};" for sign in ("+=", "="))
        yield f"if ({before}) {{"
        yield from self._over_vectors(added)
        yield "} else {"
        yield from self._over_vectors(stored)
        yield "}"

    def _place(self) -> str:
        """A vector of the part at hand where the tile will be."""
        row = "(first_row + tile_row)" if self.is_matrix() else "tile_row"
        row = "" if self.rows() == "1" else f"{row} * {self.stride()} + "
        lane = self._lane(f"vector * lanes_{self.kind}")
        return f"*({self.kind}u *)&{self.elements}[{row}{lane}]"

    def _lane(self, lane: str, first: str = "first_lane + ") -> str:
        """The lane where a vector begins: the last of a row that vectors do not divide ends with the row."""
        at = f"{first}{lane}"
        return f"min_i64({at}, {self.extents[-1]} - lanes_{self.kind})" if self.overlaps() else at

    def _filled(self, fill: Store) -> Iterator[str]:
        """Fill a row of the copy before any of it is read, by the first lanes: its source is read in order."""
        name, lines = self.plain.variable(self.lane_loop.variable), list[str]()
        if self.lane_loop.variable in self.tile.counted():
            lines.append(f"const int64_t in_{name} = {self._lane(name, '')};")
        target = self.spelling.element(fill.buffer, fill.index)
        lines.append(f"*({self.kind}u *)&{target} = {self.spelling.expression(fill.value)};")
        row = braced(self._over_lanes(self.extents[-1]), lines)
        unrolled = f"#pragma GCC unroll {self._most_vectors()}"
        yield "/* pack the row that is read next */"
        yield from braced("if (packing && first_lane == 0)", (unrolled, *row))

    def _most_vectors(self) -> int:
        """Vectors of a row where they are shortest."""
        return -(-self.dims[-1] // self.program.machine.least_vector_lanes(self.dtype))

    def _over_vectors(self, statement: str) -> Iterator[str]:
        """A statement for every vector of the rows at hand."""
        vectors = (
            f"#pragma GCC unroll {self._most_vectors()}",
            f"for (int vector = 0; vector < vectors_at_once; ++vector) {statement}",
        )
        if self.rows() == "1":
            yield from vectors
            return
        rows = "rows_at_once" if self.is_matrix() else self.rows()
        yield f"#pragma GCC unroll {prod(self.dims[:-1])}"
        yield from braced(f"for (int tile_row = 0; tile_row < {rows}; ++tile_row)", vectors)


def vector_type(dtype: str, lanes: int) -> str:
    """The name of a vector type; with ``u`` appended, the same in memory at any address."""
    return f"{dtype}x{lanes}"


class Renamed(KernelNames):
    """Expressions as others of a kernel, but for the names of some variables."""

    def __init__(self, plain: Spelling, names: Mapping[int, str]) -> None:
        """Other names for variables of the kernel of ``plain``."""
        super().__init__(plain.program, plain.kernel, constants=plain.constants)
        self.names = names

    def variable(self, number: int) -> str:
        """A loop variable."""
        return self.names.get(number) or super().variable(number)


class VectorSpelling(Spelling):
    """Scalars as C text where one loop variable stands for some lanes of a vector."""

    def __init__(self, plain: Spelling, tile: Tile) -> None:
        """Names for a kernel, as ``plain`` has them, in a micro-kernel of it.

        Some variables of loops over rows and lanes count within a part of the tile; reads use where that is in the
        tensor, which stays inside its dimension.
        """
        super().__init__(plain.program, plain.kernel, constants=plain.constants)
        self.reads = Renamed(plain, {n: f"in_{plain.variable(n)}" for n in tile.counted()})
        self.tile = tile.buffer
        self.lanes = tile.vector
        self.along = frozenset(tile.along()) | (set() if tile.fill is None else {tile.fill.value})
        self.vectors = set[int]()
        for s in tile.iteration():
            if isinstance(s, Define) and self.is_vector(s.value):
                self.vectors.add(s.variable)
        self.held: dict[Load, str] = {}
        self.by_rows: dict[tuple[int, tuple[Affine, ...]], str] = {}

    def hold(self, loads: Sequence[Load], lane: str) -> list[str]:
        """Spell loads as vectors that were read before, from now on, where a loop counts lanes; as they were before."""
        texts = [self.expression(load) for load in loads]
        for number, load in enumerate(loads):
            kind = vector_type(load.dtype, self.lanes)
            self.held[load] = f"{LOADED}{number}[{lane} / lanes_{kind}]"
        return texts

    def statement(self, s: Define | Store) -> str:
        """A definition or an update of the tile."""
        if isinstance(s, Define):
            kind = C_TYPES[s.dtype]
            if s.variable in self.vectors:
                kind = vector_type(s.dtype, self.lanes)
            return f"const {kind} {self.local(s.variable)} = {self.expression(s.value)};"
        return self.update(self.element(s.buffer, s.index), s.value)

    def is_vector(self, scalar: Scalar) -> bool:
        """Whether a scalar has a value per lane."""
        return any(
            (isinstance(part, Load) and (part.buffer == self.tile or part in self.along))
            or (isinstance(part, Local) and part.variable in self.vectors)
            for part in scalars_within(scalar)
        )

    def element(self, buffer: int, index: Sequence[Affine]) -> str:
        """An element of a buffer; one of the tile is a vector in registers."""
        if buffer != self.tile:
            by_rows = self.by_rows.get((buffer, tuple(index)))
            return by_rows or self.reads.element(buffer, index)
        row = ""
        for size, part in zip(self.program.buffers[buffer].dims[:-1], index[:-1], strict=True):
            word = self.index(part)
            row = f"({row}) * {self.size(size)} + {word}" if row else word
        lane = self.index(index[-1])
        kind = vector_type(self.program.buffers[buffer].dtype, self.lanes)
        return f"{ACC}[{row or '0'}][{lane} / lanes_{kind}]"

    def expression(self, scalar: Scalar) -> str:
        """A scalar, or a vector of its lanes."""
        if isinstance(scalar, Load) and scalar in self.held:
            return self.held[scalar]
        if isinstance(scalar, Load) and scalar.buffer != self.tile:
            text = super().expression(scalar)
            if scalar in self.along:
                return f"*(const {vector_type(scalar.dtype, self.lanes)}u *)&{text}"
            return text
        if isinstance(scalar, Apply) and scalar.primitive in ("max", "min", "square"):
            if not self.is_vector(scalar):
                return super().expression(scalar)
            words = [self._splat(argument) for argument in scalar.arguments]
            if scalar.primitive == "square":
                return f"{words[0]} * {words[0]}"
            kind = vector_type(scalar.dtype or "", self.lanes)
            return f"{scalar.primitive.upper()}_LANES({kind}, {', '.join(words)})"
        if isinstance(scalar, Apply) and keeps_sign_of_zero(scalar) and self.is_vector(scalar):
            # The function of such a sum takes no vectors, of which GCC makes no negation.
            sign = PRIMITIVES[scalar.primitive].notation.c
            return f"({f' {sign} '.join(map(self._splat, scalar.arguments))})"
        return super().expression(scalar)

    def _splat(self, scalar: Scalar) -> str:
        text = f"({self.expression(scalar)})"
        if self.is_vector(scalar):
            return text
        assert scalar.dtype is not None
        return f"({text} - ({vector_type(scalar.dtype, self.lanes)}){{0}})"


def _has_terms(program: Program, tile: Tile) -> bool:
    """Whether there is a term whatever extents are."""
    return all(program.sizes[loop.size].fixed and not loop.within for loop in tile.core())
