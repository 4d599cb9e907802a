"""The meaning of a program before anything is scheduled: a formula for each value that has a name, and plain loops.

Example, ``(I & +ij~i) >> ij/i~ij``:
    formula   out[i,j] = in0[i,j] / Σ_k in0[i,k]
    loops     for i
                total = Σ_j in0[i,j]
                for j
                  out[i,j] = in0[i,j] / total

Loops follow the formulas in order. Loops over the same dimensions are shared, also by values that have them in another
order. A value that only one iteration of shared loops reads is kept for that iteration alone.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence, Set

from ilang.core.calculus.affine import Affine
from ilang.core.explain.expression import affine_text
from ilang.core.explain.formulas import (
    DEEPEST,
    LONGEST,
    Formula,
    Formulas,
    Item,
    depths,
    fresh_letter,
    inlined,
    sources_of,
    substituted_letters,
)
from ilang.core.explain.piece import updated
from ilang.core.explain.reasons import bracket_notes, window_notes
from ilang.core.ir.ids import ValueId
from ilang.core.ir.scalar import Apply, scalars_within
from ilang.core.ir.shaped import Assignment, Input, Shaped, View
from ilang.core.names import Names
from ilang.core.ops import ARGUMENTS, SLOW
from ilang.core.record import record, replace

MOST_STEPS = 6
"""Expressions of a text that are shown one by one."""


@record
class LoopLine:
    """A line of loops, ``depth`` loops deep, and the definitions of the file that it belongs to.

    ``gives`` are the tensors of which it computes elements and ``reads`` those that it reads, by their names in the
    program; ``along`` the extents of the loop that it is, or of the loops that it counts in (``marks.py``).
    """

    depth: int
    text: str
    definition: str
    gives: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    along: tuple[str, ...] = ()


@record
class Meaning:
    """The formulas of a program, its plain loops, and what indices outside of an array mean.

    ``steps`` are the expressions of a text without definitions, each with the formula of its own value; none where
    these are the formulas already. ``reduced`` says of a reduction that stands alone why its axes are reduced;
    ``names`` has the name of each value in the program and the one on the page.
    """

    formulas: tuple[Formula, ...]
    steps: tuple[Formula, ...]
    loops: tuple[LoopLine, ...]
    notes: tuple[str, ...]
    reduced: str
    names: tuple[tuple[str, str], ...]


def meaning(shaped: Shaped) -> Meaning:
    """The meaning of a program whose shapes are inferred."""
    page = _Meaning(shaped).run()
    steps = () if any(each.definition for each in page.formulas) else _steps(shaped)
    return page if len(steps) <= len(page.formulas) else replace(page, steps=steps)


def _steps(shaped: Shaped) -> tuple[Formula, ...]:
    """The formula of every expression; none of long programs, and of those that texts do not show."""
    nodes = {v: node for v, node in enumerate(shaped.nodes) if isinstance(node, Assignment)}
    if (
        not 1 < len(nodes) <= MOST_STEPS
        or not nodes.keys() <= (formulas := Formulas(shaped)).needed
    ):
        return ()
    every = formulas.every()
    return tuple(replace(every[v], definition=" ".join(n.text.split())) for v, n in nodes.items())


def _reduced(item: Item) -> str:
    """The reason why axes are reduced: ``k is summed: it is not in the output``."""
    names = [item.letters[axis] for axis in item.node.reduced_axes()]
    word = {"+": "summed", "*": "multiplied"}.get(item.node.acc or "", "reduced")
    many = ("are", "they are") if 1 < len(names) else ("is", "it is")
    return f"{', '.join(names)} {many[0]} {word}: {many[1]} not in the output"


class _Meaning(Formulas):
    """One program: its formulas, then those of its loops."""

    def run(self) -> Meaning:
        """The formulas, and the loops."""
        for value in sorted(self.kept):
            text = self._formula(value)
            while LONGEST < len(text) and self._divided(value):
                text = self._formula(value)
        formulas = self._formulas()
        ports = [*self.shaped.inputs, *self.shaped.outputs]
        shown = {number for value in ports for number in self.shaped.tensors[value].dims}
        notes = (*window_notes(self.shaped, shown), *bracket_notes(self.shaped), *self.notes)
        reduced = ""
        first = self.shaped.nodes[min(self.kept)]
        if 1 < len(self.kept) or not isinstance(first, Assignment) or first.acc is None:
            self._choose_for_loops()
        else:
            reduced = _reduced(self._item(*self.kept))
        loops = tuple(self._loops())
        self.kept = self.needed
        self._name_kept()
        tensors = enumerate(self.shaped.tensors)
        names = tuple((t.name, self._called(v)) for v, t in tensors if v in self.needed)
        return Meaning(tuple(formulas.values()), (), loops, notes, reduced, names)

    def _choose_for_loops(self) -> None:
        """Choose the values that have lines in the loops.

        A value that is read once stands in the line that reads it, where that costs no more. A reduction that further
        loops read has a line before these loops.
        """
        around = {
            source: value
            for value in sorted(self.needed)
            for source in sources_of(self.shaped.nodes[value])
        }

        def readers(value: int) -> list[Assignment | View | Input]:
            """The nodes in which a value stands, the last one with a formula of its own."""
            chain = [around[value]]
            while chain[-1] not in self.kept:
                chain.append(around[chain[-1]])
            return [self.shaped.nodes[each] for each in chain]

        def hoist() -> None:
            """Give the reductions that have fewer dimensions than what they stand in lines of their own."""
            for value in sorted(self.needed - self.kept):
                node = self.shaped.nodes[value]
                if value in around and isinstance(node, Assignment) and node.acc:
                    last = readers(value)[-1]
                    if isinstance(last, Assignment) and len(node.target) < len(last.axes):
                        self.kept.add(value)

        for value, depth in depths(self.shaped, self.needed, self.kept):
            is_free = value in self.kept and value in around and depth < DEEPEST
            if is_free and self._stands_in(value, readers(value)):
                self.kept.discard(value)
        hoist()
        self._name_kept()
        for value in sorted(self.kept):
            while LONGEST < len(self._formula(value)) and self._divided(value):
                pass
        hoist()
        self._name_kept()

    def _stands_in(self, value: int, readers: Sequence[Assignment | View | Input]) -> bool:
        """Whether a line computes a value where it reads it, and no more often than a line of its own would."""
        node = self.shaped.nodes[value]
        reader = readers[-1]
        if not (isinstance(node, Assignment) and isinstance(reader, Assignment)):
            return False
        stored = node.base is not None or reader.base is not None or node.scatters()
        shown = value in self.shaped.outputs or value in self.named or value != self.last[value]
        if stored or shown:
            return False
        once = True
        for each in readers:
            once = once and isinstance(each, Assignment) and len(node.target) == len(each.axes)
            if isinstance(each, Assignment) and each.acc:
                break
        return self.reads[value] == 1 and (once or not self._is_costly(value))

    def _is_costly(self, value: int) -> bool:
        """Whether the formula of a value has a slow function in it, or a reduction that gets no line of its own."""
        count, todo = len(self.shaped.tensors[value].dims), [value]
        while todo:
            at = todo.pop()
            node = self.shaped.nodes[at]
            if not isinstance(node, Assignment):
                continue
            if node.acc and at != value and len(node.target) < count:
                continue
            parts = scalars_within(node.scalar)
            if node.acc or any(isinstance(p, Apply) and p.primitive in SLOW for p in parts):
                return True
            todo += [each for each in sources_of(node) if each not in self.kept]
        return False

    def _definitions(self, value: int) -> str:
        """The definitions that a line of the loops belongs to, the first ones first."""
        names = [self.labels[each] for each in inlined(self.shaped, value, self.kept)]
        names = [name for name in reversed(names) if name not in ("", self.shaped.name)]
        return " ".join(dict.fromkeys(names))

    # -- loops -------------------------------------------------------------------------------------------------------

    def _loops(self) -> Iterator[LoopLine]:
        """The lines of the loops: values in order, those over the same dimensions in shared loops."""
        nodes, order = self.shaped.nodes, self._in_order()
        first = {
            v
            for v in order
            if isinstance(nodes[v], View)
            and isinstance(nodes[self.shaped.owner(ValueId(v))], Input)
        }
        yield from (self._formula_line(view, "") for view in order if view in first)
        groups: list[tuple[list[Item], int] | int] = []
        mates: dict[int, Item] = {}
        orders = set[tuple[str, ...]]()
        for value in (each for each in order if each not in first):
            if isinstance(nodes[value], View):
                groups.append(value)
                mates = {}
                continue
            item = self._item(value)
            items, depth = group if not isinstance(group := (groups or [0])[-1], int) else ([], 0)
            shared = self._joined(item, items[0], depth, mates, orders) if mates else None
            onto = item.node.base is not None
            if shared is None:
                mates, orders = {}, set()
                groups.append(([item], 0 if onto else len(item.node.output_axes())))
            else:
                item = shared[0]
                items.append(item)
                groups[-1] = items, shared[1]
            orders.add(tuple(item.outer()))
            mates[value] = item
            if onto:
                mates = {}
        items = [item for group in groups if not isinstance(group, int) for item in group[0]]
        self.readers: dict[int, set[int]] = {}
        for item in items:
            for source, _ in self._all_reads(item.node):
                self.readers.setdefault(source, set()).add(item.value)
        for group in groups:
            if isinstance(group, int):
                yield self._formula_line(group, self._definitions(group))
            else:
                yield from self._group(*group, alone=len(items) == 1)

    def _joined(
        self,
        item: Item,
        first: Item,
        depth: int,
        mates: Mapping[int, Item],
        orders: Set[tuple[str, ...]],
    ) -> tuple[Item, int] | None:
        """A value with the letters of the loops that it shares with others, and how many these are; None of none.

        ``orders`` are those in which the others have letters.
        """
        node, dims = item.node, item.node.output_axes()
        reads = [read for read in self._all_reads(node) if read[0] in mates]
        if not reads or node.base is not None or node.scatters():
            return None
        letters: dict[int, str] = {}
        for other in first.node.output_axes()[:depth]:
            shared = first.letters[other]
            at = {index[mates[source].outer().index(shared)] for source, index in reads}
            axes = [axis for axis in dims if {item.letters[axis]} == at]
            if not axes or node.sizes[axes[0]] != first.node.sizes[other]:
                break
            letters[axes[0]] = shared
        count = len(letters)
        every = [*orders, tuple(letters.get(axis, "") for axis in dims)]
        outer = first.outer()
        while count and any({*one[:count]} != {*outer[:count]} for one in every):
            count -= 1
        if count == 0:
            return None
        letters = {axis: word for axis, word in letters.items() if word in outer[:count]}
        used = set(letters.values())
        for axis, name in item.letters.items():
            if axis not in letters:
                letters[axis] = fresh_letter(name, used)
                used.add(letters[axis])
        return Item(item.value, node, letters), count

    def _all_reads(self, node: Assignment) -> Iterator[tuple[int, list[str]]]:
        """The values with formulas that a formula reads, and the index of each, over the letters of its own axes."""
        top = {axis: self._letter(each.name) for axis, each in enumerate(node.axes)}
        todo: list[tuple[Assignment, Mapping[int, Affine]]] = [(node, top)]
        while todo:
            around, env = todo.pop()
            for read in around.reads:
                index = [substituted_letters(part, env) for part in read.index]
                source = self.shaped.nodes[read.value]
                if read.value in self.kept or not isinstance(source, Assignment):
                    yield (
                        read.value,
                        [affine_text(part, self.letters.__getitem__) for part in index],
                    )
                    continue
                inner = {a: self._letter(f"{each.name}'") for a, each in enumerate(source.axes)}
                for part, at in zip(source.target, index, strict=True):
                    if (axis := part.axis()) is not None:
                        inner[axis] = at
                todo.append((source, inner))

    def _group(self, items: Sequence[Item], depth: int, alone: bool) -> Iterator[LoopLine]:
        """The shared loops of some values, and the loops of each inside."""
        mates = {item.value for item in items}
        self.local = frozenset(
            v
            for v in mates
            if v not in self.shaped.outputs
            and v not in self.viewed
            and v == self.last[v]
            and self.readers.get(v, set()) <= mates
            and 1 < len(items)
        )
        self.dropped = depth
        first = items[0]
        level = len(around := first.node.output_axes()[:depth])
        yield from (self._for(n, first, axis) for n, axis in enumerate(around))
        opened: list[str] = []
        inside: set[int] = set()
        for item in items:
            lines = list(self._own_loops(item, level, depth, alone))
            count = sum(line.text.startswith("for ") for line in lines)
            heads = [line.text for line in lines[:count]]
            if heads and heads == opened and self._is_read_at_place(item.node, inside):
                lines, heads = lines[count:], opened
            else:
                inside = set()
            yield from lines
            opened = heads if len(lines) <= count + 1 else []
            inside.add(item.value)
        self.local, self.dropped = frozenset(), 0

    def _is_read_at_place(self, node: Assignment, values: Container[int]) -> bool:
        """Whether a formula reads some values only at the element that it is of itself."""
        letters = [node.axes[axis].name for axis in node.output_axes()]
        return node.acc is None and all(
            index == letters for source, index in self._all_reads(node) if source in values
        )

    def _own_loops(self, item: Item, level: int, depth: int, alone: bool) -> Iterator[LoopLine]:
        """The loops of one value inside the shared ones, and its formula; a reduction that is alone has its loop."""
        node, definition = item.node, self._definitions(item.value)
        around = node.output_axes() if node.base is None else range(len(node.axes))
        shared = {item.letters[axis] for axis in around[:depth]}
        for axis in dict.fromkeys(a for a in around if item.letters[a] not in shared):
            yield self._for(level, item, axis)
            level += 1
        plain = not node.guards and node.base is None and node.text[:2] not in ARGUMENTS
        if not (alone and node.acc is not None and plain):
            yield LoopLine(level, self._statement(item), definition, *self._mark(item.value))
            return
        word = {"+": "sum", "*": "product", ">": "most", "<": "least"}.get(node.acc, "found")
        word = Names(self.names.values()).fresh(word)
        start = {"+": "0", "*": "1", ">": "−inf", "<": "inf", "&&": "true"}.get(node.acc, "false")
        gives = (self.origins[item.value],)
        yield LoopLine(level, f"{word} = {start}", "", gives)
        inside = level
        for axis in node.reduced_axes():
            yield self._for(inside, item, axis)
            inside += 1
        place, value = self._sides(item, folded=False)
        text = f"{word} {updated(node.acc, word, value)}"
        yield LoopLine(inside, text, definition, *self._mark(item.value))
        yield LoopLine(level, f"{place} = {word}", "", gives)

    def _formula_line(self, value: int, definition: str) -> LoopLine:
        text = self._formula(value)
        return LoopLine(0, text, definition, *self._mark(value))

    def _for(self, level: int, item: Item, axis: int) -> LoopLine:
        """The head of a loop; its range where that is not named after the axis."""
        number = item.node.sizes[axis]
        letter, size = item.letters[axis], self.sizes[number]
        head = f"for {letter}" if size == letter else f"for {letter} in 0..{size}"
        return LoopLine(level, head, "", along=(self.shaped.sizes[number].name,))
