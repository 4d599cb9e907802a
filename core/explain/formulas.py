"""The formulas of a program, as text: of each value that the text names, that is a result, or that is read twice.

Example, ``(I & +ij~i) >> ij/i~ij``:
    out[i,j] = in0[i,j] / Σ_k in0[i,k]

Any other value stands in the formula that reads it. Conversions between element types of numbers are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence

from ilang.core.calculus.affine import Affine, Within, sides, variables_of
from ilang.core.dtype import FLOATS
from ilang.core.explain.expression import affine_text, number_text, size_text, view_text
from ilang.core.ir.scalar import Apply, Constant, Convert, Operand, Position, Scalar
from ilang.core.ir.shaped import Assignment, Input, Read, Shaped, View
from ilang.core.names import Names
from ilang.core.ops import ARGUMENTS
from ilang.core.record import record, replace

MOST_STEPS = 6
"""Expressions of a text that are shown one by one."""
DEEPEST = 5
"""Values that stand in each other in a formula, at most."""
CUT = 2000
"""Characters of a formula that are shown, at most."""
LONGEST = 72
"""Characters of a formula; a longer one is divided where it reads another value."""
SUM, PRODUCT, POWER, ATOM = range(4)
"""Levels of precedence of a piece of a formula, from the loosest to the tightest."""
INFIX = {
    "add": (" + ", SUM), "sub": (" − ", SUM), "mul": ("·", PRODUCT), "div": (" / ", PRODUCT), "pow": ("^", POWER),
}  # fmt: skip
COMPARED = {
    "gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "eq": "==", "neq": "!=", "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip
FOLDS = {"+": "Σ", "*": "Π", ">": "max", "<": "min", "&&": "all", "||": "any", "^^": "odd"}
"""The word of an accumulator before the axes that it folds."""
ASCII = {"Σ": "sum", "Π": "prod", "·": "*", "−": "-", "×": "x"}
"""Characters of formulas, and what stands for them where only ASCII may."""


@record
class Formula:
    """The value of an element: ``definition`` is the one of the file that it is of, or empty."""

    definition: str
    text: str


@record
class Piece:
    """A part of a formula, and how tightly its outermost operator binds."""

    text: str
    level: int

    def within(self, level: int) -> str:
        """The text as an operand of an operator: in parentheses where it binds less tightly."""
        return self.text if level <= self.level else f"({self.text})"


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
        self.successor = {
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
        self.kept = set[int]()
        depth: dict[int, int] = {}
        for value in sorted(self.needed):
            inside = [s for s in sources_of(shaped.nodes[value]) if s not in self.kept]
            depth[value] = 1 + max((depth.get(s, 0) for s in inside), default=0)
            if self._is_kept(value) or DEEPEST < depth[value]:
                self.kept.add(value)
        self.in_loops: set[int] = set()
        self.notes: dict[str, None] = {}
        self.letters: list[str] = []
        self.local: frozenset[int] = frozenset()
        self.dropped = 0
        taken = {shaped.tensors[v].name for v in (*shaped.inputs, *shaped.outputs)}
        self.unique = Names(frozenset(taken))
        self.names = {
            v: shaped.tensors[v].name
            if v in shaped.inputs or v in shaped.outputs
            else self.unique.fresh(shaped.tensors[v].definition or shaped.tensors[v].name)
            for v in sorted(self.needed)
        }

    def steps(self) -> tuple[Formula, ...]:
        """The formula of every expression; none of long programs, and of those that texts do not show."""
        nodes = [(v, n) for v, n in enumerate(self.shaped.nodes) if isinstance(n, Assignment)]
        shown = [(v, n) for v, n in nodes if v in self.needed]
        if not 1 < len(shown) <= MOST_STEPS or len(shown) < len(nodes):
            return ()
        self.kept |= {value for value, _ in shown}
        return tuple(Formula(" ".join(n.text.split()), self._formula(v)) for v, n in shown)

    # -- values ------------------------------------------------------------------------------------------------------

    def _is_kept(self, value: int) -> bool:
        """Whether a value has a formula of its own."""
        node, tensor = self.shaped.nodes[value], self.shaped.tensors[value]
        if isinstance(node, Input):
            return False
        if value in self.shaped.outputs or tensor.definition or isinstance(node, View):
            return True
        if value in self.viewed:
            return True
        if node.base is not None or value in self.successor or node.scatters():
            return True
        return 1 < self.reads[value]

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
        letters = {axis: each.name for axis, each in enumerate(node.axes)}
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

    def _formula(self, value: int) -> str:
        node = self.shaped.nodes[value]
        if isinstance(node, View):
            seen = view_text(node.axes, node.source, node.target)
            return f"{self.names[value]} = {self.names[node.value]} as {seen}"
        item = self._item(value)
        text = f"{self._place(item)} {self._assigned(item)}"
        return text if len(text) <= CUT else f"{text[:CUT]} …"

    def _place(self, item: Item) -> str:
        """The element that an assignment stores."""
        node = self._node(item.value)
        env = {axis: self._letter(letter) for axis, letter in item.letters.items()}
        return self._element(item.value, node.target, env)

    def _assigned(self, item: Item) -> str:
        """The operator of an assignment and its right side."""
        node = self._node(item.value)
        sign = "="
        if node.base is not None and node.acc is not None:
            sign = {"+": "+=", "*": "*="}.get(node.acc, f"{FOLDS[node.acc]}=")
        return f"{sign} {self._value(item, folded=node.base is None).text}"

    def _node(self, value: int) -> Assignment:
        node = self.shaped.nodes[value]
        assert isinstance(node, Assignment)
        return node

    def _value(self, item: Item, folded: bool) -> Piece:
        """The value of an assignment; ``folded`` with its accumulator before it."""
        node = self._node(item.value)
        if node.text[:2] in ARGUMENTS:
            return self._argument(node, item)
        env = {axis: self._letter(letter) for axis, letter in item.letters.items()}
        piece = self._scalar(node, node.scalar, env, frozenset(item.letters.values()))
        return self._fold(node, env, piece) if folded and node.acc is not None else piece

    def _argument(self, node: Assignment, item: Item) -> Piece:
        """The position of an extreme: the first read is what it is of."""
        env = {axis: self._letter(letter) for axis, letter in item.letters.items()}
        piece = self._read(node.reads[0], env, frozenset(item.letters.values()))
        axes = "".join(self._one(env[axis]) for axis in node.reduced_axes())
        word = "argmax" if node.text.startswith(">") else "argmin"
        return Piece(f"{word}_{axes} {piece.within(PRODUCT)}", PRODUCT)

    def _fold(self, node: Assignment, env: Mapping[int, Affine], piece: Piece) -> Piece:
        """A reduction of a piece, over the axes that the target lacks, where its guards hold."""
        axes = "".join(self._one(env[axis]) for axis in node.reduced_axes())
        guards = self._guards(node.guards, env)
        condition = f"[{', '.join(guards)}]" if guards else ""
        if len(guards) < len(node.guards):
            self.notes["positions outside of an array are left out"] = None
        word = FOLDS[node.acc or "+"]
        return Piece(f"{word}_{axes}{condition} {piece.within(PRODUCT)}", PRODUCT)

    def _guards(self, guards: Sequence[Within], env: Mapping[int, Affine]) -> list[str]:
        """The written conditions among guards: ``j <= i``; those that an index is inside of an array are none."""
        words = []
        for guard in guards:
            if guard.size is not None:
                continue
            index = substituted_letters(guard.index, env)
            lesser, greater = sides(index)
            words.append(f"{affine_text(lesser, self._name)} <= {affine_text(greater, self._name)}")
        return words

    def _scalar(
        self, node: Assignment, scalar: Scalar, env: Mapping[int, Affine], taken: frozenset[str]
    ) -> Piece:
        """A scalar of an assignment whose axes are ``env``; ``taken`` are the letters around it."""
        order, todo = list[Scalar](), [scalar]
        while todo:
            part = todo.pop()
            order.append(part)
            todo += part.arguments[::-1] if isinstance(part, Apply) else ()
            todo += [part.argument] if isinstance(part, Convert) else []
        pieces: list[Piece] = []
        for part in reversed(order):
            count = len(part.arguments) if isinstance(part, Apply) else isinstance(part, Convert)
            inside = [pieces.pop() for _ in range(count)]
            pieces.append(self._piece(node, part, inside, env, taken))
        return pieces[0]

    def _piece(
        self,
        node: Assignment,
        scalar: Scalar,
        parts: Sequence[Piece],
        env: Mapping[int, Affine],
        taken: frozenset[str],
    ) -> Piece:
        """A scalar of pieces."""
        match scalar:
            case Constant():
                text = number_text(scalar.value)
                return Piece(text, SUM if text.startswith("-") else ATOM)
            case Convert():
                (inner,) = parts
                wide = scalar.dtype in FLOATS or scalar.argument.dtype not in FLOATS
                return inner if wide else Piece(f"{scalar.dtype}({inner.text})", ATOM)
            case Position():
                text = affine_text(
                    substituted_letters(scalar.index, env), self._name, self._size, self._called
                )
                return Piece(text, ATOM if text.isalnum() else SUM)
            case Operand():
                return self._read(node.reads[scalar.number], env, taken)
            case Apply():
                return _applied(scalar.primitive, parts)
            case _:
                raise AssertionError(scalar)

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
        used = {*taken, *map(self._name, variables_of(inner.values()))}
        for axis in range(len(node.axes)):
            if axis not in inner:
                inner[axis] = self._letter(fresh_letter(node.axes[axis].name, used))
                used.add(self._one(inner[axis]))
        piece = self._scalar(node, node.scalar, inner, frozenset(used))
        return piece if node.acc is None else self._fold(node, inner, piece)

    def _element(self, value: int, index: Sequence[Affine], env: Mapping[int, Affine]) -> str:
        """``name[i,j]``; of a value that only an iteration of shared loops has, without their indices."""
        parts = [
            affine_text(substituted_letters(part, env), self._name, self._size, self._called)
            for part in index
        ]
        shown = parts[self.dropped :] if value in self.local else parts
        return f"{self._called(value)}[{','.join(shown)}]" if shown else self._called(value)

    def _called(self, value: int) -> str:
        """The name of a value: one that another stores anew has its name."""
        while value in self.successor:
            value = self.successor[value]
        return self.names[value]

    def _size(self, number: int) -> str:
        return size_text(self.shaped.sizes[number])


def _needed(shaped: Shaped) -> set[int]:
    """The values that formulas of the results rest on."""
    needed: set[int] = set()
    todo = list(shaped.outputs)
    while todo:
        value = todo.pop()
        if value not in needed:
            needed.add(value)
            todo += sources_of(shaped.nodes[value])
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


def _applied(primitive: str, parts: Sequence[Piece]) -> Piece:
    """A primitive of pieces, in the usual notation."""
    if primitive == "copy":
        return parts[0]
    if primitive in INFIX:
        return _infix(primitive, *parts)
    if primitive in COMPARED and len(parts) == 2:
        both = (part.within(SUM + 1) if _is_compared(part) else part.text for part in parts)
        return Piece(f" {COMPARED[primitive]} ".join(both), SUM)
    return _called(primitive, parts)


def _infix(primitive: str, first: Piece, second: Piece) -> Piece:
    """Two pieces with an operator of arithmetic between them; a number stands first in a product."""
    sign, level = INFIX[primitive]
    numbers = [part.text[0].isdigit() for part in (first, second)]
    turned = numbers == [False, True] or (_is_fold(first) and second.level == ATOM)
    if primitive == "mul" and turned:
        first, second = second, first
    if primitive == "mul" and " / " in first.text and first.level == PRODUCT:
        first = Piece(f"({first.text})", ATOM)
    right = level + (primitive in ("sub", "div", "pow") and not _is_fold(second))
    left = level + (primitive == "pow" or (level == PRODUCT and _is_fold(first)))
    return Piece(f"{first.within(left)}{sign}{second.within(right)}", level)


def _called(primitive: str, parts: Sequence[Piece]) -> Piece:
    """A function of pieces."""
    texts = [part.text for part in parts]
    match primitive:
        case "neg":
            return Piece(f"−{parts[0].within(PRODUCT)}", SUM)
        case "recip":
            return Piece(f"1 / {parts[0].within(POWER)}", PRODUCT)
        case "square":
            return Piece(f"{parts[0].within(ATOM)}²", POWER)
        case "where":
            return Piece(f"({texts[1]} if {texts[0]} else {texts[2]})", ATOM)
        case "ln":
            return Piece(f"log({texts[0]})", ATOM)
        case "log":
            return Piece(f"log({texts[1]}) / log({texts[0]})", PRODUCT)
        case "not":
            return Piece(f"not {parts[0].within(ATOM)}", SUM)
        case _:
            return Piece(f"{primitive}({', '.join(texts)})", ATOM)


def _is_fold(piece: Piece) -> bool:
    """Whether a reduction stands in a product, and would take what follows for its own."""
    return piece.level == PRODUCT and any(f"{word}_" in piece.text for word in FOLDS.values())


def _is_compared(piece: Piece) -> bool:
    return piece.level == SUM and any(f" {word} " in piece.text for word in COMPARED.values())
