"""The formulas of a program, as text: of each value that the text names, that is a result, or that is read twice.

Example, ``(I & +ij~i) >> ij/i~ij``:
    out[i,j] = in0[i,j] / Σ_k in0[i,k]

Any other value stands in the formula that reads it. Conversions between element types of numbers are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence

from ilang.core.calculus.affine import Affine, Within, variables_of
from ilang.core.explain.expression import affine_terms, affine_text, size_text, written_names
from ilang.core.explain.marks import LineMark
from ilang.core.explain.piece import (
    ATOM,
    PRODUCT,
    Piece,
    position_piece,
    scalar_piece,
    updated,
)
from ilang.core.ir.scalar import Apply, Convert, Operand, Position, Scalar
from ilang.core.ir.shaped import Assignment, Input, Read, Shaped, View
from ilang.core.names import Names
from ilang.core.ops import ARGUMENTS, OPS, PRIMITIVES
from ilang.core.record import record, replace
from ilang.core.walks import reached

MOST_STEPS = 6
"""Expressions of a text that are shown one by one."""
DEEPEST = 5
"""Values that stand in each other in a formula, at most."""
CUT = 2000
"""Characters of a formula that are shown, at most."""
LONGEST = 72
"""Characters of a formula; a longer one is divided where it reads another value."""
ASCII = {"Σ": "sum", "Π": "prod", "·": "*", "−": "-", "×": "x"}
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
    """A value with a formula of its own: the letter of each of its axes; the axes of its dimensions, in order."""

    value: int
    letters: dict[int, str]
    dims: tuple[int, ...]


class Formulas:
    """One program: which values have formulas, and their texts."""

    def __init__(self, shaped: Shaped) -> None:
        self.shaped = shaped
        self.successor: dict[int, int] = {
            node.base: value
            for value, node in enumerate(shaped.nodes)
            if isinstance(node, Assignment) and node.base is not None
        }
        self.reads = Counter(
            value
            for number in sorted(_needed(shaped))
            for value in sources_of(shaped.nodes[number])
        )
        self.needed = _needed(shaped)
        self.viewed = {node.value for node in shaped.nodes if isinstance(node, View)}
        nodes = [node for node in shaped.nodes if isinstance(node, Assignment)]
        self.looked = {each.source for node in nodes for each in node.lookups()}
        self.surrounded = {
            read.value
            for node in nodes
            for read in node.reads
            if any(guard.size is not None for guard in read.guards)
        }
        self.kept = set[int]()
        depth: dict[int, int] = {}
        for value in sorted(self.needed):
            inside = [s for s in sources_of(shaped.nodes[value]) if s not in self.kept]
            depth[value] = 1 + max((depth.get(s, 0) for s in inside), default=0)
            if self._is_kept(value) or DEEPEST < depth[value]:
                self.kept.add(value)
        self.along: dict[str, set[str]] = {}
        self.notes: dict[str, None] = {}
        self.letters: list[str] = []
        self.read = dict[str, None]()
        """The tensors that the formula at hand reads."""
        self.folded = dict[str, None]()
        """The extents that it reduces along."""
        self.local: frozenset[int] = frozenset()
        self.dropped = 0
        taken = {size.name for size in shaped.sizes}
        taken |= {shaped.tensors[v].name for v in (*shaped.inputs, *shaped.outputs)}
        self.unique = Names(frozenset(taken))
        self.nameless = self.needed.difference(shaped.inputs, shaped.outputs, self.successor)
        scalars = [v for v in (*shaped.inputs, *shaped.outputs) if not shaped.tensors[v].dims]
        self.names = {v: shaped.tensors[v].name for v in self.needed}
        self.order = self._ordered()
        sizes = {n for node in nodes for n in _sizes_in(node)}
        self.reserved = {self.names[v] for v in scalars} | {shaped.sizes[n].name for n in sizes}
        self.is_divided = any(tensor.definition for tensor in shaped.tensors)
        self.plain = set[str]()
        if any(map(self._is_misread, range(len(shaped.nodes)))):
            loops = {
                (axis.name, self._size(n))
                for node in nodes
                for axis, n in zip(node.axes, node.sizes, strict=True)
            }
            unlike = {word for pair in loops if pair[0] != pair[1] for word in pair}
            self.plain = {name for name, _ in loops} - unlike - self.reserved
            self.reserved |= {size.name for size in shaped.sizes}

    def steps(self) -> tuple[Formula, ...]:
        """The formula of every expression; none of long programs, and of those that texts do not show."""
        nodes = [(v, n) for v, n in enumerate(self.shaped.nodes) if isinstance(n, Assignment)]
        shown = [(v, n) for v, n in nodes if v in self.needed]
        if not 1 < len(shown) <= MOST_STEPS or len(shown) < len(nodes):
            return ()
        every = self.every()
        return tuple(replace(every[v], definition=" ".join(n.text.split())) for v, n in shown)

    def every(self) -> dict[int, Formula]:
        """The formula of every value but inputs."""
        self.kept |= {v for v in self.needed if not isinstance(self.shaped.nodes[v], Input)}
        self._name_kept()
        return {value: self._formula_of(value) for value in self._in_order()}

    def _ordered(self) -> dict[int, tuple[int, int]]:
        """The place of each value on the page: as written, but results that nothing reads in their own order."""
        order = {value: (value, 0) for value in self.needed}
        last = 0
        for number, value in enumerate(self.shaped.outputs, 1):
            if not self.reads[value] and not {*self.successor} & {
                *sources_of(self.shaped.nodes[value])
            }:
                last = max(last, value)
                order[value] = (last, number)
        return order

    def _is_misread(self, value: int) -> bool:
        """Whether a loop has the extent that another one has the name of: ``for i`` around ``for j in 0..i``."""
        node = self.shaped.nodes[value]
        if value not in self.kept or not isinstance(node, Assignment):
            return False
        shown = range(len(node.axes)) if value in self.shaped.outputs else node.output_axes()
        loops = [(node.axes[axis].name, self._size(node.sizes[axis])) for axis in shown]
        letters = {name for name, _ in loops}
        return any(name != extent and extent in letters for name, extent in loops)

    def _in_order(self) -> list[int]:
        """The values with formulas, in the order of the page."""
        return sorted(self.kept, key=self.order.__getitem__)

    def _name_kept(self) -> None:
        """Give values with formulas names: that of their definition, or what they are."""
        for value in self._in_order():
            if value in self.nameless:
                self.nameless.discard(value)
                tensor = self.shaped.tensors[value]
                name = tensor.name if tensor.named else tensor.definition
                self.names[value] = self.unique.fresh(name or self._described(value))
                self.reserved |= set() if tensor.dims else {self.names[value]}

    def _described(self, value: int) -> str:
        """A word for a value: of what its formula ends in."""
        node = self.shaped.nodes[value]
        if isinstance(node, View):
            return f"{self._called(node.value)}_view"
        assert isinstance(node, Assignment)
        if node.acc is not None:
            return OPS[node.acc].word
        scalar = node.scalar
        while isinstance(scalar, Convert):
            scalar = scalar.argument
        if isinstance(scalar, Apply):
            return PRIMITIVES[scalar.primitive].word
        return "values"

    # -- values ------------------------------------------------------------------------------------------------------

    def _is_kept(self, value: int) -> bool:
        """Whether a value has a formula of its own."""
        node, tensor = self.shaped.nodes[value], self.shaped.tensors[value]
        if isinstance(node, Input):
            return False
        if value in self.shaped.outputs or tensor.definition or isinstance(node, View):
            return True
        if self._is_named(value):
            return True
        if node.base is not None or value in self.successor or node.scatters():
            return True
        return 1 < self.reads[value]

    def _is_named(self, value: int) -> bool:
        """Whether something that reads a value needs a name for it: a view, an index, or zeros around it."""
        return value in self.viewed or value in self.looked or value in self.surrounded

    def _divided(self, value: int) -> bool:
        """Give the longest part of a formula a formula of its own; False where there is none."""
        inside, todo = list[int](), [value]
        while todo:
            node = self.shaped.nodes[todo.pop()]
            for source in sources_of(node) if isinstance(node, Assignment) else ():
                if source not in self.kept and not isinstance(self.shaped.nodes[source], Input):
                    inside.append(source)
                    todo.append(source)
        if not inside:
            return False
        lengths = {each: len(self._formula(each)) for each in inside}
        fits = [each for each in inside if lengths[each] <= LONGEST] or inside
        self.kept.add(max(fits, key=lambda each: (lengths[each], each)))
        return True

    def _item(self, value: int) -> Item:
        """The letters of the axes of a value, as they are written."""
        node = self.shaped.nodes[value]
        assert isinstance(node, Assignment)
        letters: dict[int, str] = {}
        names = written_names(node.axes, node.text)
        for axis, (each, name) in enumerate(zip(node.axes, names, strict=True)):
            taken = {*letters.values(), *self.reserved.difference(self.plain & {each.name})}
            if name in taken:  # another letter is none that extents have
                taken |= {size.name for size in self.shaped.sizes}
            letters[axis] = fresh_letter(name, taken)
        return Item(value, letters, node.output_axes())

    def _letter(self, name: str) -> Affine:
        """A letter as an index: letters have numbers, as axes have."""
        if name not in self.letters:
            self.letters.append(name)
        return Affine(((1, self.letters.index(name)),))

    def _name(self, number: int) -> str:
        """A letter by its number."""
        return self.letters[number]

    def _one(self, index: Affine) -> str:
        """The letter that an index is."""
        (number,) = index.variables()
        return self.letters[number]

    # -- formulas ----------------------------------------------------------------------------------------------------

    def _formula_of(self, value: int) -> Formula:
        tensor = self.shaped.tensors[value]
        extents = tuple(self._size(number) for number in tensor.dims)
        text = self._formula(value)
        return Formula(self._label(value), text, extents, *self._mark(value))

    def _mark(self, value: int) -> LineMark:
        """The mark of the text that was written last, which gives a value."""
        gives, node = self._tensor_name(value), self.shaped.nodes[value]
        reads = tuple(name for name in self.read if name != gives)
        dims = self.shaped.tensors[value].dims
        sizes = node.sizes if isinstance(node, Assignment) else dims
        along = dict.fromkeys(self.shaped.sizes[number].name for number in sizes)
        return LineMark(
            (gives,), reads, (*along, *(each for each in self.folded if each not in along))
        )

    def _tensor_name(self, value: int) -> str:
        """The name of a tensor in loops and in C: one that another stores anew has its name."""
        while value in self.successor:
            value = self.successor[value]
        return self.shaped.tensors[value].origin()

    def _label(self, value: int) -> str:
        """The definition that a value is computed in: the program itself where others are used, but not for it."""
        if not self.is_divided:
            return ""
        last = value
        while last in self.successor:
            last = self.successor[last]
        tensor = self.shaped.tensors[last]
        return tensor.part or tensor.definition or self.shaped.name

    def _formula(self, value: int) -> str:
        node = self.shaped.nodes[value]
        self.read = {}
        if isinstance(node, View):
            self.read[self._tensor_name(node.value)] = None
            extents = ",".join(self._size(n) for n in self.shaped.tensors[value].dims)
            return f"{self.names[value]} = reshape({self._called(node.value)}, [{extents}])"
        item = self._item(value)
        self.along = {}
        self.folded = {}
        place, assigned = self._place(item), self._assigned(item)
        text = f"{place} {assigned}{self._ranges(item)}"
        return text if len(text) <= CUT else f"{text[:CUT]} …"

    def _ranges(self, item: Item) -> str:
        """The ranges of the letters of a part that is stored, where its formula does not show them."""
        node = self._node(item.value)
        if node.base is None:
            return ""
        kept = [
            axis for axis in range(len(node.axes)) if axis in node.output_axes() or node.scatters()
        ]
        letters = [(item.letters[axis], self._size(node.sizes[axis])) for axis in kept]
        ranges = [
            f"{letter} in 0..{extent}"
            for letter, extent in letters
            if self.along.get(letter) != {extent}
        ]
        return f" for {' and '.join(ranges)}" if ranges else ""

    def _place(self, item: Item) -> str:
        """The element that an assignment stores."""
        node = self._node(item.value)
        env = {axis: self._letter(letter) for axis, letter in item.letters.items()}
        return self._element(item.value, node.target, env)

    def _assigned(self, item: Item) -> str:
        """The operator of an assignment and its right side."""
        node = self._node(item.value)
        value = self._value(item, folded=node.base is None)
        if node.base is None or node.acc is None:
            return f"= {value.text}"
        return updated(node.acc, self._place(item), value)

    def _node(self, value: int) -> Assignment:
        node = self.shaped.nodes[value]
        assert isinstance(node, Assignment)
        return node

    def _value(self, item: Item, folded: bool) -> Piece:
        """The value of an assignment; ``folded`` with its accumulator before it."""
        node = self._node(item.value)
        env = {axis: self._letter(letter) for axis, letter in item.letters.items()}
        taken = frozenset(item.letters.values())
        if folded and node.acc is not None:
            return self._fold(node, env, taken)
        return self._scalar(node, node.scalar, env, taken)

    def _fold(self, node: Assignment, env: Mapping[int, Affine], taken: frozenset[str]) -> Piece:
        """A reduction over the axes that the target lacks, where its guards hold.

        How far an axis goes is a condition, too, unless it stands alone in an index, or its extent has its name.
        """
        word = OPS[node.acc or "+"].letter
        around, self.along = self.along, {}
        if node.text[:2] in ARGUMENTS:  # the first read is what the position is of
            word = "argmax" if node.text.startswith(">") else "argmin"
            piece = self._read(node.reads[0], env, taken)
        else:
            piece = self._scalar(node, node.scalar, env, taken)
        letters = {self._one(env[axis]): axis for axis in node.reduced_axes()}
        guards = list[str]()
        for letter, axis in letters.items():
            self.folded[self.shaped.sizes[node.sizes[axis]].name] = None
            extent = self._size(node.sizes[axis])
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
            index = substituted_letters(guard.index, env)
            terms = affine_terms(index, self._name, self._size, self._called)
            lesser = position_piece([(-c, word) for c, word in terms if c < 0])
            greater = position_piece([(c, word) for c, word in terms if 0 < c])
            words.append(f"{lesser.text} <= {greater.text}")
        return words

    def _scalar(
        self, node: Assignment, scalar: Scalar, env: Mapping[int, Affine], taken: frozenset[str]
    ) -> Piece:
        """A scalar of an assignment whose axes are ``env``; ``taken`` are the letters around it."""
        return scalar_piece(scalar, lambda leaf: self._leaf(node, leaf, env, taken))

    def _leaf(
        self, node: Assignment, leaf: Scalar, env: Mapping[int, Affine], taken: frozenset[str]
    ) -> Piece:
        if isinstance(leaf, Operand):
            return self._read(node.reads[leaf.number], env, taken)
        assert isinstance(leaf, Position)
        index = substituted_letters(leaf.index, env)
        return position_piece(affine_terms(index, self._name, self._size, self._called))

    def _read(self, read: Read, env: Mapping[int, Affine], taken: frozenset[str]) -> Piece:
        """An element that is read: by its name, or by its formula."""
        guards = self._guards(read.guards, env)
        if len(guards) < len(read.guards):
            self.notes[f"{self.names[read.value]} is 0 outside of its dimensions"] = None
        piece = self._delivered(read, env, taken)
        if not guards:
            return piece
        return Piece(f"({piece.text} if {' and '.join(guards)} else 0)", ATOM)

    def _delivered(self, read: Read, env: Mapping[int, Affine], taken: frozenset[str]) -> Piece:
        node = self.shaped.nodes[read.value]
        if read.value in self.kept or not isinstance(node, Assignment):
            return Piece(self._element(read.value, read.index, env), ATOM)
        inner: dict[int, Affine] = {}
        for part, index in zip(node.target, read.index, strict=True):
            axis = part.axis()
            if axis is not None:
                inner[axis] = substituted_letters(index, env)
        used = {*taken, *self.reserved, *map(self._name, variables_of(inner.values()))}
        for axis in range(len(node.axes)):
            if axis not in inner:
                inner[axis] = self._letter(fresh_letter(node.axes[axis].name, used))
                used.add(self._one(inner[axis]))
        if node.acc is not None:
            return self._fold(node, inner, frozenset(used))
        return self._scalar(node, node.scalar, inner, frozenset(used))

    def _element(self, value: int, index: Sequence[Affine], env: Mapping[int, Affine]) -> str:
        """``name[i,j]``; of a value that only an iteration of shared loops has, without their indices."""
        self.read[self._tensor_name(value)] = None
        whole = [substituted_letters(part, env) for part in index]
        skipped = self.dropped if value in self.local else 0
        self._see(value, whole, skipped)
        shown = [affine_text(p, self._name, self._size, self._called) for p in whole[skipped:]]
        return f"{self._called(value)}[{','.join(shown)}]" if shown else self._called(value)

    def _see(self, value: int, index: Sequence[Affine], skipped: int = 0) -> None:
        """Note the extents along which letters stand alone, in an index or in one that is looked up."""
        for dim, part in enumerate(index):
            number = part.axis()
            if number is not None and skipped <= dim:
                extent = self._size(self.shaped.tensors[value].dims[dim])
                self.along.setdefault(self._name(number), set()).add(extent)
            for _, each in part.looked:
                self._see(each.source, each.index)

    def _called(self, value: int) -> str:
        """The name of a value: one that another stores anew has its name."""
        while value in self.successor:
            value = self.successor[value]
        return self.names[value]

    def _size(self, number: int) -> str:
        return size_text(self.shaped.sizes[number])


def _needed(shaped: Shaped) -> set[int]:
    needed = reached([*map(int, shaped.outputs)], lambda value: sources_of(shaped.nodes[value]))
    return needed | set(shaped.inputs)


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


def _sizes_in(node: Assignment) -> set[int]:
    """The sizes that indices of an assignment are sums of."""
    return {number for index in node.indices() for _, number in index.sizes}
