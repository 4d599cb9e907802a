"""The formulas of a program, as text: of each value that the text names, that is a result, or that is read twice.

Example, ``(I & +ij~i) >> ij/i~ij``:
    out[i,j] = in0[i,j] / Σ_k in0[i,k]

Any other value stands in the formula that reads it. Conversions between element types of numbers are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence, Set

from ilang.core.calculus.affine import Affine, Within, variables_of
from ilang.core.explain.expression import affine_terms, affine_text, size_text, written_names
from ilang.core.explain.marks import LineMark
from ilang.core.explain.piece import ATOM, PRODUCT, Piece, position_piece, scalar_piece, updated
from ilang.core.ir.scalar import Operand, Position, Scalar
from ilang.core.ir.shaped import Assignment, Input, Read, Shaped, View
from ilang.core.names import Names
from ilang.core.ops import ARGUMENTS, OPS
from ilang.core.record import record, replace
from ilang.core.walks import reached

DEEPEST = 5
"""Values that stand in each other in a formula, at most."""
CUT = 2000
"""Characters of a formula that are shown, at most."""
LONGEST = 72
"""Characters of a formula; a longer one is divided where it reads another value."""
ASCII = str.maketrans({"Σ": "sum", "Π": "prod", "·": "*", "−": "-", "×": "x"})
"""Characters of formulas, and what stands for them where only ASCII may."""


@record
class Formula:
    """The value of an element: ``definition`` is the one of the file that it is of, or empty.

    ``extents`` are those of the value. The other fields are those of a line of loops.
    """

    definition: str
    text: str
    extents: tuple[str, ...]
    gives: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    along: tuple[str, ...] = ()


@record
class Item:
    """A value with a formula of its own: what computes it, and the letter of each of its axes."""

    value: int
    node: Assignment
    letters: dict[int, str]

    def outer(self) -> list[str]:
        """The letters of the dimensions of the value."""
        return [self.letters[axis] for axis in self.node.output_axes()]


class Formulas:
    """One program: which values have formulas, and their texts."""

    def __init__(self, shaped: Shaped) -> None:
        self.shaped = shaped
        self.last = shaped.last()
        self.sizes = [size_text(size) for size in shaped.sizes]
        self.origins = [shaped.tensors[value].origin() for value in self.last]
        """The name of each value in loops and in C: one that another stores anew has its name."""
        is_divided = any(tensor.definition for tensor in shaped.tensors)
        last = (shaped.tensors[value] for value in self.last)
        self.labels = [is_divided * (t.part or t.definition or shaped.name) for t in last]
        """The definition of each value: the program itself where others are used, but not for it."""
        needed = reached([*map(int, shaped.outputs)], lambda v: sources_of(shaped.nodes[v]))
        self.needed = needed | set(shaped.inputs)
        self.reads = Counter(v for n in self.needed for v in sources_of(shaped.nodes[n]))
        self.viewed = {node.value for node in shaped.nodes if isinstance(node, View)}
        others = {
            source
            for node in shaped.nodes
            if not isinstance(node, View)
            for source in sources_of(node)
        }
        self.passed = self.viewed.difference(others, shaped.outputs)
        """The values that are read under other dimensions alone."""
        self.named = self.viewed | _named_to_read(shaped)
        self.kept = set[int]()
        """The values with formulas of their own."""
        for value, depth in depths(shaped, self.needed, self.kept):
            if self._is_kept(value) or (DEEPEST < depth and value not in self.passed):
                self.kept.add(value)
        self.along: dict[str, set[str]] = {}
        self.notes: dict[str, None] = {}
        self.letters: list[str] = []
        self.read, self.folded = dict[str, None](), dict[str, None]()
        """The tensors that the formula at hand reads, and the extents that it reduces along."""
        self.local, self.dropped = frozenset[int](), 0
        ports = [shaped.tensors[v] for v in (*shaped.inputs, *shaped.outputs)]
        names = frozenset(size.name for size in shaped.sizes)
        self.unique = Names(names.union(each.name for each in ports))
        replaced = {value for value, last in enumerate(self.last) if value != last}
        self.nameless = self.needed.difference(shaped.inputs, shaped.outputs, replaced)
        self.names = {v: shaped.tensors[v].name for v in self.needed}
        self.order = _order(shaped, self.needed, [v for v in shaped.outputs if not self.reads[v]])
        """The place of each value on the page: as written, but results that nothing reads in their own order."""
        indices = [i for n in shaped.nodes if isinstance(n, Assignment) for i in n.indices()]
        self.reserved = {each.name for each in ports if not each.dims}
        self.counted = {self.sizes[n] for index in indices for _, n in index.sizes} - self.reserved
        """The extents that stand in formulas as numbers."""
        self.reserved |= self.counted
        plain = _letters_beside_extents(shaped, self.kept, self.sizes)
        self.plain = (plain or set()) - self.reserved
        self.reserved |= set() if plain is None else names

    def every(self) -> dict[int, Formula]:
        """The formula of every value but inputs."""
        self.kept |= {v for v in self.needed if not isinstance(self.shaped.nodes[v], Input)}
        return self._formulas()

    def _in_order(self) -> list[int]:
        return sorted(self.kept, key=self.order.__getitem__)

    def _name_kept(self) -> None:
        """Give values with formulas names: that of their definition, or what they are."""
        for value in self._in_order():
            if value in self.nameless:
                self.nameless.discard(value)
                tensor, node = self.shaped.tensors[value], self.shaped.nodes[value]
                name = tensor.name
                if isinstance(node, View) and not (tensor.named or tensor.definition):
                    name = f"{self._called(_seen(self.shaped, value, self.kept)).removesuffix('_view')}_view"
                self.names[value] = self.unique.fresh(name)
                self.reserved |= set() if tensor.dims else {self.names[value]}

    # -- values ------------------------------------------------------------------------------------------------------

    def _is_kept(self, value: int) -> bool:
        """Whether a value has a formula of its own."""
        node, tensor = self.shaped.nodes[value], self.shaped.tensors[value]
        if isinstance(node, Input):
            return False
        if isinstance(node, View) and value in self.passed and not tensor.definition:
            return False
        if value in self.shaped.outputs or tensor.definition or isinstance(node, View):
            return True
        stored = node.base is not None or value != self.last[value] or node.scatters()
        return value in self.named or stored or 1 < self.reads[value]

    def _divided(self, value: int) -> bool:
        """Give the longest part of a formula a formula of its own; False where there is none."""
        parts = [each for each in inlined(self.shaped, value, self.kept) if each != value]
        if not parts:
            return False
        lengths = {each: len(self._formula(each)) for each in parts}
        fits = [each for each in parts if lengths[each] <= LONGEST] or parts
        self.kept.add(max(fits, key=lambda each: (lengths[each], each)))
        return True

    def _item(self, value: int) -> Item:
        """The letters of the axes of a value, as they are written."""
        node = self.shaped.assignment(value)
        letters: dict[int, str] = {}
        names = written_names(node.axes, node.text)
        for axis, (each, name) in enumerate(zip(node.axes, names, strict=True)):
            alike = _own_letters(self, value, node)
            taken = {*letters.values(), *self.reserved.difference(alike | self.plain & {each.name})}
            if name in taken:  # another letter is none that extents have
                taken |= {size.name for size in self.shaped.sizes}
            letters[axis] = fresh_letter(name, taken)
        return Item(value, node, letters)

    def _letter(self, name: str) -> Affine:
        """A letter as an index: letters have numbers, as axes have."""
        if name not in self.letters:
            self.letters.append(name)
        return Affine(((1, self.letters.index(name)),))

    # -- formulas ----------------------------------------------------------------------------------------------------

    def _formulas(self) -> dict[int, Formula]:
        """The formula of each value that has one, in the order of the page."""
        self._name_kept()
        dims = {value: self.shaped.tensors[value].dims for value in self._in_order()}
        return {
            value: Formula(
                self.labels[value],
                self._formula(value),
                tuple(self.sizes[number] for number in sizes),
                *self._mark(value),
            )
            for value, sizes in dims.items()
        }

    def _mark(self, value: int) -> LineMark:
        """The mark of the text that was written last, which gives a value."""
        gives, node = self.origins[value], self.shaped.nodes[value]
        reads = tuple(name for name in self.read if name != gives)
        dims = self.shaped.tensors[value].dims
        sizes = node.sizes if isinstance(node, Assignment) else dims
        along = dict.fromkeys(self.shaped.sizes[number].name for number in sizes)
        return LineMark(
            (gives,), reads, (*along, *(each for each in self.folded if each not in along))
        )

    def _formula(self, value: int) -> str:
        """The formula of a value, with the ranges of the letters of a part that is stored where it shows none."""
        node = self.shaped.nodes[value]
        if isinstance(node, View):
            self.read = {self.origins[_seen(self.shaped, value, self.kept)]: None}
            extents = ",".join(self.sizes[n] for n in self.shaped.tensors[value].dims)
            return f"{self.names[value]} = reshape({self._called(_seen(self.shaped, value, self.kept))}, [{extents}])"
        item = self._item(value)
        text, node, ranges = self._statement(item), item.node, list[str]()
        for axis, letter in item.letters.items() if node.base is not None else ():
            extent = self.sizes[node.sizes[axis]]
            is_stored = axis in node.output_axes() or node.scatters()
            if is_stored and self.along.get(letter) != {extent}:
                ranges.append(f"{letter} in 0..{extent}")
        text += f" for {' and '.join(ranges)}" if ranges else ""
        return text if len(text) <= CUT else f"{text[:CUT]} …"

    def _statement(self, item: Item) -> str:
        """An assignment: the element that it stores, the operator and the right side."""
        node = item.node
        place, value = self._sides(item, folded=node.base is None)
        if node.base is None or node.acc is None:
            return f"{place} = {value.text}"
        return f"{place} {updated(node.acc, place, value)}"

    def _sides(self, item: Item, folded: bool) -> tuple[str, Piece]:
        """The element that an assignment stores, and its value; ``folded`` with its accumulator before it."""
        self.along, self.read, self.folded = {}, {}, {}
        env = {axis: self._letter(letter) for axis, letter in item.letters.items()}
        place = self._element(item.value, item.node.target, env)
        return place, self._value(item.node, env, {*item.letters.values()}, folded)

    def _value(
        self, node: Assignment, env: Mapping[int, Affine], taken: Set[str], folded: bool = True
    ) -> Piece:
        """The value of an assignment whose axes are ``env``; ``taken`` are the letters around it."""
        if folded and node.acc is not None:
            return self._fold(node, env, taken)

        def leaf(part: Scalar) -> Piece:
            if isinstance(part, Operand):
                return self._read(node.reads[part.number], env, taken)
            assert isinstance(part, Position)
            return position_piece(self._terms(part.index, env))

        return scalar_piece(node.scalar, leaf)

    def _fold(self, node: Assignment, env: Mapping[int, Affine], taken: Set[str]) -> Piece:
        """A reduction over the axes that the target lacks, where its guards hold.

        How far an axis goes is a condition, too, unless it stands alone in an index, or its extent has its name.
        """
        word = OPS[node.acc or "+"].letter
        around, self.along = self.along, {}
        if node.text[:2] in ARGUMENTS:  # the first read is what the position is of
            word = "argmax" if node.text.startswith(">") else "argmin"
            piece = self._read(node.reads[0], env, taken)
        else:
            piece = self._value(node, env, taken, folded=False)
        letters = {
            affine_text(env[axis], self.letters.__getitem__): axis for axis in node.reduced_axes()
        }
        guards = list[str]()
        for letter, axis in letters.items():
            self.folded[self.shaped.sizes[node.sizes[axis]].name] = None
            extent = self.sizes[node.sizes[axis]]
            if self.along.pop(letter, {letter}) != {extent}:
                guards.append(f"{letter} in 0..{extent}")
        for letter, extents in self.along.items():
            around.setdefault(letter, set()).update(extents)
        self.along = around
        written = self._guards(node.guards, env)
        if len(written) < len(node.guards):
            self.notes["positions outside of an array are left out"] = None
        guards += written
        condition = f"[{', '.join(guards)}]" if guards else ""
        axes = ("," if any(len(letter) > 1 for letter in letters) else "").join(letters)
        return Piece(f"{word}_{axes}{condition} {piece.within(PRODUCT)}", PRODUCT)

    def _guards(self, guards: Sequence[Within], env: Mapping[int, Affine]) -> list[str]:
        """The written conditions among guards: ``j <= i``; those that an index is inside of an array are none."""
        words = []
        for guard in guards:
            if guard.size is not None:
                continue
            terms = self._terms(guard.index, env)
            lesser = position_piece([(-c, word) for c, word in terms if c < 0])
            greater = position_piece([(c, word) for c, word in terms if 0 < c])
            words.append(f"{lesser.text} <= {greater.text}")
        return words

    def _terms(self, index: Affine, env: Mapping[int, Affine]) -> list[tuple[int, str]]:
        """The terms of an index over axes that are ``env``, in words."""
        index = substituted_letters(index, env)
        return affine_terms(index, self.letters.__getitem__, self.sizes.__getitem__, self._called)

    def _read(self, read: Read, env: Mapping[int, Affine], taken: Set[str]) -> Piece:
        """An element that is read: by its name, or by its formula."""
        guards = self._guards(read.guards, env)
        if len(guards) < len(read.guards):
            self.notes[f"{self.names[read.value]} is 0 outside of its dimensions"] = None
        node = self.shaped.nodes[read.value]
        if read.value in self.kept or not isinstance(node, Assignment):
            piece = Piece(self._element(read.value, read.index, env), ATOM)
        else:
            inner = {
                axis: substituted_letters(index, env)
                for part, index in zip(node.target, read.index, strict=True)
                if (axis := part.axis()) is not None
            }
            alike = _own_letters(self, read.value, node)
            used = {*taken, *self.reserved.difference(alike)}
            used.update(self.letters[number] for number in variables_of(inner.values()))
            for axis, each in enumerate(node.axes):
                if axis not in inner:
                    letter = fresh_letter(each.name, used)
                    used.add(letter)
                    inner[axis] = self._letter(letter)
            piece = self._value(node, inner, used)
        return Piece(f"({piece.text} if {' and '.join(guards)} else 0)", ATOM) if guards else piece

    def _element(self, value: int, index: Sequence[Affine], env: Mapping[int, Affine]) -> str:
        """``name[i,j]``; of a value that only an iteration of shared loops has, without their indices."""
        self.read[self.origins[value]] = None
        whole = [substituted_letters(part, env) for part in index]
        skipped = self.dropped if value in self.local else 0
        todo = [*zip(self.shaped.tensors[value].dims, whole, strict=True)][skipped:]
        while todo:  # note the extents along which letters stand alone, in what is looked up, too
            dim, part = todo.pop()
            number = part.axis()
            if number is not None:
                self.along.setdefault(self.letters[number], set()).add(self.sizes[dim])
            for _, each in part.looked:
                todo += zip(self.shaped.tensors[each.source].dims, each.index, strict=True)
        words = self.letters.__getitem__, self.sizes.__getitem__, self._called
        shown = [affine_text(part, *words) for part in whole[skipped:]]
        return f"{self._called(value)}[{','.join(shown)}]" if shown else self._called(value)

    def _called(self, value: int) -> str:
        """The name of a value: one that another stores anew has its name."""
        return self.names[self.last[value]]


def depths(shaped: Shaped, needed: Set[int], kept: Container[int]) -> Iterator[tuple[int, int]]:
    """Each value after its sources, and how many values its formula has in each other.

    The values ``kept`` have formulas of their own: which these are may change from one value to the next.
    """
    depth: dict[int, int] = {}
    for value in sorted(needed):
        sources = [each for each in sources_of(shaped.nodes[value]) if each not in kept]
        depth[value] = 1 + max((depth.get(each, 0) for each in sources), default=0)
        yield value, depth[value]


def inlined(shaped: Shaped, value: int, kept: Container[int]) -> Iterator[int]:
    """A value, and those that stand in its formula, which are not ``kept``; inputs are none of them."""
    todo = [value]
    while todo:
        at = todo.pop()
        node = shaped.nodes[at]
        if not isinstance(node, Input):
            yield at
        if isinstance(node, Assignment):
            todo += [each for each in sources_of(node) if each not in kept]


def _seen(shaped: Shaped, value: int, kept: Container[int]) -> int:
    """The value that a view is of: what it reads, unless that is a view that is not ``kept``."""
    while isinstance(node := shaped.nodes[value], View):
        value = node.value
        if value in kept:
            break
    return value


def _own_letters(page: Formulas, value: int, node: Assignment) -> set[str]:
    """The letters of reduced axes that are the names of their extents, where no term has these as numbers.

    ``(Σ_b in0[a,b]) / b`` divides by an extent.
    """
    terms = [page.shaped.nodes[each] for each in inlined(page.shaped, value, page.kept)]
    nodes = [each for each in terms if isinstance(each, Assignment)]
    numbers = {size for n in nodes for index in n.indices() for _, size in index.sizes}
    pairs = ((node.axes[axis].name, node.sizes[axis]) for axis in node.reduced_axes())
    return page.counted & {x for x, n in pairs if page.sizes[n] == x and n not in numbers}


def _order(shaped: Shaped, needed: Set[int], results: Sequence[int]) -> dict[int, tuple[int, int]]:
    """A key for each value by which the page is ordered; ``results`` are those that nothing reads."""
    replaced = {value for value, last in enumerate(shaped.last()) if value != last}
    reads = {v: sources_of(shaped.nodes[v]) for v in results}
    free = [v for v, sources in reads.items() if replaced.isdisjoint(sources)]
    order = {value: (value, 0) for value in needed}
    return order | {v: (max(free[: n + 1]), n + 1) for n, v in enumerate(free)}


def _named_to_read(shaped: Shaped) -> set[int]:
    """The values that need a name where they are read: as an index, or with zeros around them."""
    nodes = [node for node in shaped.nodes if isinstance(node, Assignment)]
    looked_up = {each.source for node in nodes for each in node.lookups()}
    return looked_up | {
        read.value
        for node in nodes
        for read in node.reads
        if any(guard.size is not None for guard in read.guards)
    }


def _letters_beside_extents(
    shaped: Shaped, kept: Container[int], sizes: Sequence[str]
) -> set[str] | None:
    """The letters of axes that are no names of other extents; None where no loop of a value in ``kept`` is misread.

    A loop is misread if its extent has the name of another loop: ``for i`` around ``for j in 0..i``.
    """
    loops, is_misread = set[tuple[str, str]](), False
    for value, node in enumerate(shaped.nodes):
        if isinstance(node, Assignment):
            pairs = [(x.name, sizes[n]) for x, n in zip(node.axes, node.sizes, strict=True)]
            loops |= {*pairs}
            shown = pairs if value in shaped.outputs else [pairs[n] for n in node.output_axes()]
            letters = {name for name, _ in shown}
            misread = [name for name, extent in shown if name != extent and extent in letters]
            is_misread = is_misread or bool(value in kept and misread)
    unlike = {word for pair in loops if pair[0] != pair[1] for word in pair}
    return {name for name, _ in loops} - unlike if is_misread else None


def sources_of(node: Assignment | View | Input) -> tuple[int, ...]:
    """The values that a node reads, each as often as its formula does."""
    if isinstance(node, View):
        return (node.value,)
    if isinstance(node, Input):
        return ()
    if node.text[:2] in ARGUMENTS:
        return (node.reads[0].value,)
    looked = tuple(each.source for each in node.lookups())
    base = () if node.base is None else (node.base,)
    return (*(read.value for read in node.reads), *looked, *base)


def substituted_letters(index: Affine, env: Mapping[int, Affine]) -> Affine:
    """An index whose axes are indices themselves."""
    return replace(index.substituted(env), window=False)


def fresh_letter(name: str, taken: Container[str]) -> str:
    """A letter that is not taken: the name, or the next of the alphabet, or the name with a stroke."""
    alphabet = "ijklmnpqrstuvwxyzabcdefgh"
    candidates = (name, *(alphabet if len(name) == 1 else ()))
    return next((each for each in candidates if each not in taken), f"{name}'")
