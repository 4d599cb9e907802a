"""Scalars as C text where a loop over the lanes of a tile is a loop over vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ilang.codegen.targets.cfamily import C_TYPES, KernelNames, Spelling
from ilang.core.calculus.affine import Affine
from ilang.core.ir.cpu import Tile
from ilang.core.ir.kernel import Define, Store
from ilang.core.ir.scalar import Apply, Load, Local, Scalar, scalars_within


def vector_type(dtype: str, lanes: int) -> str:
    """The name of a vector type; with ``u`` appended, the same in memory at any address."""
    return f"{dtype}x{lanes}"


ACC = "in_registers"
"""The tile's elements in a tile function."""
LOADED = "loaded"
"""The vectors that all rows of a part of a tile use, with a number for each load."""


class Renamed(KernelNames):
    """Expressions as others of a kernel, but for the names of some variables."""

    def __init__(self, plain: Spelling, names: Mapping[int, str]) -> None:
        """Other names for variables of the kernel of ``plain``."""
        super().__init__(plain.program, plain.kernel)
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
        super().__init__(plain.program, plain.kernel)
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
        return super().expression(scalar)

    def _splat(self, scalar: Scalar) -> str:
        text = f"({self.expression(scalar)})"
        if self.is_vector(scalar):
            return text
        assert scalar.dtype is not None
        return f"({text} - ({vector_type(scalar.dtype, self.lanes)}){{0}})"
