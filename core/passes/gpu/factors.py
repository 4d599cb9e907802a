"""The factors of a matrix unit: the elements of copies and arrays that a nest reads, and copies as a unit needs them.

Example, of a copy of rows and terms whose ends are not whole matrices:
    in:   for k1 in 0..min(8, n_k - 8k)                  out:  for k1 in 0..8
            for i1 in 0..min(16, n_i - 16i)                      for i1 in 0..16
              copy[k1,i1] = a[16i+i1,8k+k1]                        copy[i1,k1] = tf32((a[16i+i1,8k+k1] if ... else 0))
          ... tf32(copy[k1,i1]) * tf32(...)                    ... copy[i1,k1] * ...

Past the ends of dimensions a unit multiplies zeros: copies are filled with them, and what is read of arrays is 0 there,
as is what is read of copies that end where dimensions do. Copies are rounded then, once for all lanes, and hold as many
bits of each element as their unit takes. Copies have the dimensions of what they copy, in their order: adjacent
elements stay adjacent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

from ilang.core.calculus.affine import Affine, Within, outermost_first
from ilang.core.diagnostic import ScheduleError
from ilang.core.ir import kernel as ir
from ilang.core.ir.ids import VariableId
from ilang.core.ir.rewriting import accesses, chain_of, nested, parts_of, replaced_loads
from ilang.core.ir.scalar import Apply, Constant, Convert, Load, Local, Scalar, Select
from ilang.core.ir.schedule import UNIT_ROLES
from ilang.core.machine import DeviceLimits
from ilang.core.matrix_unit import ROUNDINGS, is_rounding, unrounded
from ilang.core.passes.gpu.numbering import Numbering
from ilang.core.record import mapped_inside, record, replace

Indexed = Callable[[tuple[Affine, ...]], tuple[Affine, ...]]
"""Another index of an element."""


@record
class Products:
    """A nest that adds products: its loops, those over rows, columns and terms, and both factors, rows first."""

    chain: tuple[ir.For, ...]
    rows: ir.For
    columns: ir.For
    terms: ir.For
    left: Load
    right: Load


class Factors:
    """One kernel, the buffers of its program, and what a pass adds to them."""

    def __init__(self, device: DeviceLimits, kernel: ir.Kernel, numbering: Numbering) -> None:
        self.device = device
        self.kernel = kernel
        self.buffers = numbering.buffers
        self.numbering = numbering
        self.whole: set[int] = set()

    def refusal(self, problem: str, help_line: str) -> ScheduleError:
        """E0337: why a unit cannot do what a person asked of it."""
        request = self.kernel.requests[-1]
        message = f"{request.text} cannot be a matrix unit's: {problem}"
        return ScheduleError("E0337", message, request.span, help_line)

    def products(self, chain: Sequence[ir.For]) -> Products:
        """The products that a nest adds.

        Raises:
            ScheduleError: E0337.
        """
        *before, last = chain[-1].body
        factors = _factors(_term(before, last))
        if not isinstance(last, ir.Store) or len(factors) != 2:
            raise self.refusal(
                "what it adds is not the product of two elements",
                "stage the product where it is added, by a digit at the end of the order",
            )
        kept = {v for part in last.index for v in part.axes()}
        unit = [loop for loop in chain if loop.role in UNIT_ROLES]
        rows, columns = (loop for loop in unit if loop.variable in kept)
        (terms,) = (loop for loop in unit if loop.variable not in kept)
        left, right = factors if rows.variable in _axes(factors[0]) else reversed(factors)
        assert {rows.variable, terms.variable} <= _axes(left)
        assert {columns.variable, terms.variable} <= _axes(right)
        return Products(tuple(chain), rows, columns, terms, left, right)

    def endless(self, loop: ir.For, within: list[Within]) -> ir.For:
        """A loop that does not end early, ``within`` taking the condition.

        Raises:
            ScheduleError: E0337.
        """
        if loop.within and self.numbering.sizes[loop.size].fixed is None:
            raise self.refusal("its tiles end where a condition says", "leave out its roles")
        within += loop.runs()
        return loop.whole()

    def copied(self, body: ir.Block, products: Sequence[Products]) -> ir.Block:
        """A block whose copies are what a unit needs, but those that end where dimensions do: they are read as arrays.

        Raises:
            ScheduleError: E0337.
        """
        loads = [(nest.terms, load) for nest in products for load in (nest.left, nest.right)]
        for number in dict.fromkeys(load.buffer for _, load in loads):
            reads = [load for _, load in loads if load.buffer == number]
            roundings = {ROUNDINGS[loop.role] for loop, load in loads if load.buffer == number}
            if self.buffers[number].private and all(map(self._is_inside, reads)):
                self.whole.add(number)
                body = self._copied(body, number, len(reads), roundings)
        return body

    def _is_inside(self, load: Load) -> bool:
        extents = {
            loop.variable: self.numbering.sizes[loop.size].fixed
            for loop in ir.every(self.kernel.body, ir.For)
        }
        return all(
            Within(part, size).holds(extents, self.numbering.sizes[size].fixed)
            for part, size in zip(load.index, self.buffers[load.buffer].dims, strict=True)
        )

    def _copied(self, body: ir.Block, number: int, reads: int, roundings: set[str]) -> ir.Block:
        """A block in which a copy is filled, rounded where one way is all readers', and laid out as what it copies."""
        filling = list(_fills(body, number))
        store = filling[0][-1].body[0] if len(filling) == 1 else None
        if not isinstance(store, ir.Store) or len(filling[0][-1].body) > 1:
            raise self.refusal(
                f"{self.buffers[number].name} is filled in several steps, and a unit has zeros past its end",
                "leave out the digit that stages it, so that it is computed whole, before",
            )
        alone = sum(buffer == number for buffer, _ in accesses(body)) == 1 + reads
        rounding = next(iter(roundings)) if alone and len(roundings) == 1 else None
        chain = filling[0]
        (filled,) = self._filled(chain, store, rounding)
        body = ir.map_statements(body, lambda s: filled if s is chain[0] else s)
        if rounding is not None:
            dtype = self.device.unit(rounding).dtype
            self.buffers[number] = replace(self.buffers[number], dtype=dtype)
            body = ir.map_statements(body, lambda s: _bare(s, number, dtype))
        return self._laid_out(body, number, chain, store)

    def _filled(self, chain: Sequence[ir.For], store: ir.Store, rounding: str | None) -> ir.Block:
        """A nest that fills a copy: 0 where its loops would end, rounded to what a unit takes if all readers would."""
        within: list[Within] = []
        loops = [self.endless(loop, within) for loop in chain]
        value, dtype = store.value, self.buffers[store.buffer].dtype
        if within:
            value = Select(tuple(within), value, Constant(0, dtype), dtype)
        if rounding is not None:
            value = Apply(rounding, (value,), dtype)
            value = converted(value, self.device.unit(rounding).dtype)
        return nested(loops, (replace(store, value=value),))

    def _laid_out(
        self, body: ir.Block, number: int, chain: Sequence[ir.For], store: ir.Store
    ) -> ir.Block:
        """A block in which a copy has the dimensions of the array that it copies, where it copies one."""
        loads = [part for part in parts_of(store) if isinstance(part, Load)]
        variables = [part.axis() for part in store.index]
        extents = {loop.variable: self.numbering.sizes[loop.size].fixed for loop in chain}
        if len(loads) != 1 or None in variables or None in extents.values():
            return body
        groups = [
            [variables.index(v) for _, v in sorted(part.steps(), reverse=True) if v in variables]
            for part in loads[0].index
        ]
        groups = [group for group in groups if group]
        if sorted(d for group in groups for d in group) != list(range(len(variables))):
            return body
        buffer = self.buffers[number]
        widths = [self.numbering.sizes[size].fixed or 0 for size in buffer.dims]
        dims = (self.numbering.size(prod(widths[d] for d in group)) for group in groups)
        self.buffers[number] = replace(buffer, dims=tuple(dims), padded=False)

        def joined(index: tuple[Affine, ...]) -> tuple[Affine, ...]:
            return tuple(_joined(index, group, widths) for group in groups)

        return ir.map_statements(body, lambda s: moved(s, number, joined))

    def guarded(self, products: Products, within: Mapping[VariableId, Within]) -> ir.Block:
        """The statements of a nest, reading 0 past the ends of loops of factors that have no zeros there."""
        ending = {products.left.buffer, products.right.buffer} - self.whole

        def change(load: Load) -> Scalar:
            axes = sorted(_axes(load)) if load.buffer in ending else ()
            ends = tuple(within[v] for v in axes if v in within)
            return Select(ends, load, Constant(0, load.dtype), load.dtype) if ends else load

        return tuple(mapped_inside(s, Load, change) for s in products.chain[-1].body)


def moved(s: ir.Statement, number: int, change: Indexed) -> ir.Statement:
    """A statement in which a buffer has other indices."""
    if not isinstance(s, (ir.Define, ir.Store)):
        return s

    def load(each: Load) -> Load:
        return replace(each, index=change(each.index)) if each.buffer == number else each

    value = replaced_loads(s.value, load)
    if isinstance(s, ir.Store) and s.buffer == number:
        return replace(s, index=change(s.index), value=value)
    return replace(s, value=value)


def _term(before: Sequence[ir.Statement], last: ir.Statement) -> Scalar | None:
    """The term that the last statement adds to an element, by definitions right before; None for any other."""
    value = last.value if isinstance(last, ir.Store) else None
    if not isinstance(last, ir.Store) or not isinstance(value, Apply) or value.primitive != "add":
        return None
    old, term = value.arguments
    if not isinstance(old, Load) or (old.buffer, old.index) != (last.buffer, last.index):
        return None
    match before:
        case []:
            return term
        case [ir.Define() as s] if term == Local(s.variable, s.dtype):
            return s.value
        case _:
            return None


def _factors(term: Scalar | None) -> tuple[Load, ...]:
    """The elements that a term is the product of, rounded or not; none where it is anything else."""
    if not isinstance(term, Apply) or term.primitive != "mul":
        return ()
    bare = [*map(unrounded, term.arguments)]
    bare = [part.then if isinstance(part, Select) else part for part in bare]
    bare = [part.argument if isinstance(part, Convert) else part for part in bare]
    return tuple(part for part in bare if isinstance(part, Load))


def _axes(load: Load) -> set[VariableId]:
    return {VariableId(v) for part in load.index for v in part.axes()}


def _fills(body: ir.Block, number: int) -> Iterator[list[ir.For]]:
    """The nests that store in a buffer, as far out as they have nothing beside."""
    for s in body:
        chain, _ = chain_of((s,))
        if not any(
            isinstance(x, ir.Store) and x.buffer == number for x in ir.statements_within((s,))
        ):
            continue
        if chain and any(isinstance(x, ir.For) for x in chain[-1].body):
            yield from _fills(chain[-1].body, number)
        elif chain:
            yield chain


def converted(scalar: Scalar, dtype: str) -> Scalar:
    """A rounded scalar in the element type of its unit, to which a conversion rounds, too, or from that in f32."""
    if scalar.dtype == dtype:
        return scalar
    if isinstance(scalar, Convert) and scalar.argument.dtype == dtype:
        return scalar.argument
    return Convert(unrounded(scalar), dtype)


def _bare(s: ir.Statement, number: int, dtype: str) -> ir.Statement:
    """A statement that reads elements of a buffer of a type that are rounded as they are."""

    def change(scalar: Apply) -> Scalar:
        inner = scalar.arguments[0]
        if is_rounding(scalar) and isinstance(inner, Load) and inner.buffer == number:
            return converted(replace(inner, dtype=dtype), inner.dtype)
        return mapped_inside(scalar, Apply, change)

    return mapped_inside(s, Apply, change) if isinstance(s, (ir.Define, ir.Store)) else s


def _joined(index: Sequence[Affine], group: Sequence[int], widths: Sequence[int]) -> Affine:
    """Some parts of an index as one, the last one fastest."""
    if len(group) == 1:
        return index[group[0]]
    joined, step = Affine(()), 1
    for d in reversed(group):
        part = index[d]
        joined = joined + step * part
        step *= widths[d]
    return outermost_first(joined)
