"""Random programs as values: a graph of typed nodes, made from a seed.

A ``Program`` says what a text means, apart from any way to write it: ``writer.py`` writes it with combinators,
``meaning.py`` computes it. Every node is legal by the rules of docs/language.md section 2, which stand
here a second time on purpose: nothing of the product is imported.

Axes have no extents yet. ``Program.classes`` says which dimensions a program forces to be equal; ``extents`` draws a
number per class.
"""

from __future__ import annotations

import operator
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

FLOATS = ("f32", "f64")
INTEGERS = ("i32", "i64")
DTYPES = ("f32", "f64", "i32", "i64", "bool")

COMPARISONS = (">>", ">=", "<<", "<=", "==", "!=")
LOGIC = ("&&", "||", "^^")
NEED_FLOATS = ("/", "^", "$")
ARITHMETIC = ("+", "*", "-", ">", "<")
ARGUMENTS = (">@", "<@")
REDUCIBLE = ("+", "*", ">", "<", "&&", "||", "^^")
COPIES = ("", "+", "*")

EXTENTS = (0, 1, 2, 3, 7, 8, 13, 16, 17, 31, 33, 64, 65)
FILLING = (3, 8, 16, 32, 48, 64, 100, 128, 1024)
"""Extents most of which fill vectors with nothing left over, or more than one chunk of 2048 together."""
MOST_POINTS, MOST_FILLED = 20_000, 100_000
"""Points of an expression's domain, and elements of a value, at most; where extents fill vectors."""

HIGHEST_RANK = 6
LETTERS = "abcdefghijklmnopqrstuvwxyz"
NUMBERS = ("0", "1", "2", "-1", "3", "0.5", "0.125", "2.0", "-0.5", "2.5", "100", "1e-2", "7", "-0")
WHOLE = ("0", "1", "2", "-1", "3", "2.0", "7", "-0")
POWERS = ("0.5", "2", "2.0", "-1", "3", "0", "1")


@dataclass(frozen=True)
class Input:
    """An array given to the program."""

    dtype: str
    rank: int


@dataclass(frozen=True)
class Number:
    """A constant, as written."""

    text: str


@dataclass(frozen=True)
class Expression:
    """An index expression: an operator ("" where none is written), a pattern a read, the output's letters.

    ``left`` is there where the first read has affine or fixed indices: an index per dimension, as written. Its pattern
    then holds their letters in order. ``guards`` has the guards of each operand as written, "" for none. ``at`` is the
    sum of axes whose value is the right operand, if that is a position, or ``:i`` if it is an extent.
    """

    op: str
    patterns: tuple[str, ...]
    output: str
    reads: tuple[int, ...]
    schedule: str = ""
    left: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    at: str = ""

    def letters(self) -> str:
        """Every letter once: those of the output first."""
        return "".join(dict.fromkeys(self.output + "".join(self.patterns)))

    def reduces(self) -> bool:
        """Whether a letter is missing from the output."""
        return set(self.letters()) != set(self.output)


@dataclass(frozen=True)
class Lookup:
    """``+bt@vd~bd``: the second value read at indices that the first one gives along ``axis``.

    With an ``extent`` the axis is one of the output, of which elements are met at those indices.
    """

    op: str
    place: str
    table: str
    output: str
    axis: str
    extent: int
    reads: tuple[int, ...]
    schedule: str = ""

    def letters(self) -> str:
        """Every letter once: those of the output first."""
        return "".join(dict.fromkeys(self.output + self.place + self.table))

    def counted(self) -> str:
        """Every letter that is not looked up, once: those of the output first."""
        return self.letters().replace(self.axis, "")

    def expression(self, read: int) -> Expression:
        """The same of a value over the letters that are counted, and the axis where it is one of the output.

        Elements meet there, so that it is a reduction, over one more letter of extent 1.
        """
        once = next(letter for letter in LETTERS if letter not in self.letters())
        pattern = self.counted() + (self.axis + once if self.extent else "")
        return Expression(self.op, (pattern,), self.output, (read,))


@dataclass(frozen=True)
class Conversion:
    """A type name used as a component."""

    dtype: str
    read: int


Node = Input | Number | Expression | Conversion | Lookup


@dataclass(frozen=True)
class Program:
    """Nodes that read nodes before them; ``inputs`` and ``outputs`` in the order the text gives them."""

    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def uses(self) -> Counter[int]:
        """How often each value is read or is an output."""
        found = Counter(self.outputs)
        for node in self.nodes:
            found.update(reads_of(node))
        return found

    def dtypes(self) -> list[str | None]:
        """The element type of every value; None for a constant whose type is open."""
        found: list[str | None] = []
        for node in self.nodes:
            found.append(dtype_of(node, found))
        return found

    def ranks(self) -> list[int]:
        """The rank of every value."""
        found: list[int] = []
        for node in self.nodes:
            match node:
                case Input():
                    found.append(node.rank)
                case Number():
                    found.append(0)
                case Expression() | Lookup():
                    found.append(len(node.output))
                case Conversion():
                    found.append(found[node.read])
        return found

    def classes(self) -> list[tuple[int, ...]]:
        """For every dimension of every value the number of its class: equal numbers, equal extents."""
        return Classes(self).dims


def reads_of(node: Node) -> tuple[int, ...]:
    """The values that a node reads."""
    match node:
        case Expression() | Lookup():
            return node.reads
        case Conversion():
            return (node.read,)
        case _:
            return ()


def join(left: str | None, right: str | None) -> str | None:
    """The type in which two operands meet; None if both are open. An integer beside a float is an error."""
    if left is None or right is None:
        known = left or right
        return "f32" if known == "bool" else known
    if left == right:
        return left
    if "bool" in (left, right):
        return right if left == "bool" else left
    if left in FLOATS and right in FLOATS:
        return "f64"
    if left in INTEGERS and right in INTEGERS:
        return "i64"
    raise ValueError(f"{left} beside {right}")


def operand_type(node: Expression, dtypes: Sequence[str | None]) -> str:
    """The type to which the operands of an expression are brought (for logic: that they stay)."""
    operands = [dtypes[read] for read in node.reads]
    joined = join(operands[0], operands[1]) if len(operands) == 2 else operands[0]
    if node.at:
        return joined if joined in (*FLOATS, *INTEGERS) else "i64"
    if len(operands) == 1 and node.op in COMPARISONS and joined == "bool":
        joined = "f32"  # the zero beside it is a number
    return joined or "f32"


def dtype_of(node: Node, dtypes: Sequence[str | None]) -> str | None:
    """The element type of what a node gives."""
    match node:
        case Input():
            return node.dtype
        case Number():
            return None
        case Conversion():
            return node.dtype
        case Lookup():
            return dtype_of(node.expression(node.reads[1]), dtypes)
        case Expression():
            if node.op in (*COMPARISONS, *LOGIC, "!!"):
                return "bool"
            if node.op in ARGUMENTS:
                return "i64"
            met = operand_type(node, dtypes)
            alone = len(node.reads) == 1 and not node.at
            copied = alone and node.op in COPIES and not node.reduces()
            return "f32" if met == "bool" and not copied else met


@dataclass(frozen=True)
class Index:
    """An affine index: coefficient, letter and written extent (or None) of each term, and an offset."""

    terms: tuple[tuple[int, str, int | None], ...]
    offset: int


def index_of(text: str) -> Index:
    """``i``, ``3`` or ``(2y+u:3-1)`` read."""
    if text.isdigit():
        return Index((), int(text))
    terms, offset = [], 0
    for sign, number, letter, extent, alone in TERM.findall(text.strip("()")):
        times = -1 if sign == "-" else 1
        if letter:
            terms.append((times * int(number or 1), letter, int(extent) if extent else None))
        else:
            offset += times * int(alone)
    return Index(tuple(terms), offset)


TERM = re.compile(r"([+-]?)(?:(\d*)([a-z])(?::(\d+))?|(\d+))")


def holds(guards: str, where: Mapping[str, Any], start: Any = True) -> Any:
    """Whether the guards of an operand hold where its axes are: numbers, or arrays over all of them."""
    for guard in guards.split(",") if guards else ():
        relation = next(c for c in ("<=", ">=", "==", "<", ">") if c in guard)
        one, other = (index_of(text) for text in guard.split(relation))
        sides = [sum(c * where[x] for c, x, _ in side.terms) + side.offset for side in (one, other)]
        start = start & RELATIONS[relation](*sides)
    return start


RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}


def is_plain(text: str) -> bool:
    """Whether a written index is one letter, which walks the whole dimension."""
    return text.isalpha()


def lookup_extents(node: Lookup, shapes: Sequence[tuple[int, ...]]) -> dict[str, int] | None:
    """The extent of every letter, from the shapes of what is read; None if they do not fit, or no index is one."""
    found = {node.axis: node.extent} if node.extent else {}
    for pattern, shape in zip((node.place, node.table), shapes, strict=True):
        for letter, extent in zip(pattern, shape, strict=True):
            if found.setdefault(letter, extent) != extent:
                return None
    return found if found[node.axis] or 0 in shapes[0] else None


def axis_extents(
    node: Expression | Lookup, shapes: Sequence[tuple[int, ...]]
) -> dict[str, int] | None:
    """The extent of every letter, from the shapes of what is read; None if they do not fit.

    A letter that nothing else fixes gets the extent with which its index stays inside, padding included.
    """
    if isinstance(node, Lookup):
        return lookup_extents(node, shapes)
    found: dict[str, int] = {}
    fits = True

    def fix(letter: str, extent: int) -> bool:
        return found.setdefault(letter, extent) == extent

    indices = [index_of(text) for text in node.left]
    for pattern, shape in zip(node.patterns[1:], shapes[1:], strict=True):
        fits &= all(fix(letter, n) for letter, n in zip(pattern, shape, strict=True))
    for text, n in zip(node.left or node.patterns[0], shapes[0], strict=True):
        fits &= not is_plain(text) or fix(text, n)
    for index, n in zip(indices, shapes[0], strict=False):
        fits &= all(fix(letter, extent) for _, letter, extent in index.terms if extent)
        fits &= bool(index.terms) or index.offset < n
    if node.op in ARGUMENTS:
        fits &= all(0 < found[letter] for letter in node.letters() if letter not in node.output)
    known = dict(found)
    for index, n in zip(indices, shapes[0], strict=False):
        opened = [term for term in index.terms if term[1] not in known]
        if len(opened) > 1:
            return None
        for stride, letter, _ in opened:
            reach = sum(c * (known[other] - 1) for c, other, _ in index.terms if other != letter)
            both = 2 if len(index.terms) > 1 else 1  # a window is padded on both ends
            room = n - both * index.offset - reach - 1
            fits &= stride > 0 and (-stride if reach <= 0 else 0) <= room
            fits &= fix(letter, max(room // stride + 1, 0) if stride > 0 else 0)
    return found if fits else None


def _written(node: Expression | Lookup) -> list[tuple[Sequence[str], int]]:
    """The indices of each operand as written, and the value that it is."""
    if isinstance(node, Lookup):
        return list(zip((node.place, node.table), node.reads, strict=True))
    return list(zip((node.left or node.patterns[0], *node.patterns[1:]), node.reads, strict=True))


class Classes:
    """Union-find over all dimensions of a program: one letter, one class."""

    def __init__(self, program: Program) -> None:
        self.parent: list[int] = []
        members: list[tuple[int, ...]] = []
        self.axes: list[dict[str, int]] = []
        for node in program.nodes:
            axes: dict[str, int] = {}
            dims: tuple[int, ...] = ()
            match node:
                case Input():
                    dims = tuple(self._new() for _ in range(node.rank))
                case Number():
                    pass
                case Conversion():
                    dims = members[node.read]
                case Expression() | Lookup():
                    for written, read in _written(node):
                        for text, member in zip(written, members[read], strict=True):
                            if is_plain(text):
                                self._join(axes.setdefault(text, member), member)
                    for letter in node.letters():
                        if letter not in axes:
                            axes[letter] = self._new()
                    dims = tuple(axes[letter] for letter in node.output)
            members.append(dims)
            self.axes.append(axes)
        self.dims = [tuple(self.find(member) for member in dims) for dims in members]

    def _new(self) -> int:
        self.parent.append(len(self.parent))
        return len(self.parent) - 1

    def _join(self, one: int, other: int) -> None:
        self.parent[self.find(one)] = self.find(other)

    def find(self, member: int) -> int:
        """The class of a dimension."""
        while self.parent[member] != member:
            member = self.parent[member]
        return member

    def domains(self) -> list[list[int]]:
        """The classes of the loops of every expression, and of the dimensions of every value."""
        loops = [[self.find(member) for member in axes.values()] for axes in self.axes]
        return loops + [list(dims) for dims in self.dims]


def draw_extents(
    program: Program, rng: random.Random, tiny: bool = False, filling: bool = False
) -> dict[int, int] | None:
    """An extent per class, so that no expression has more than ``MOST_POINTS`` points; None if nothing fits.

    They are ``tiny`` ones, or such that are ``filling`` vectors, or any.
    """
    drawn = FILLING if filling else EXTENTS[1:]
    classes = Classes(program)
    free = sorted({number for n in program.inputs for number in classes.dims[n]})
    found: dict[int, int] = {}
    for number in free:
        if tiny:
            found[number] = rng.choice((0, 1, 2, 2, 3, 3))
        else:
            found[number] = 0 if rng.random() < 0.03 else rng.choice(drawn)
    most = 200 if tiny else MOST_FILLED if filling else MOST_POINTS
    for _ in range(100):
        whole = completed(program, found)
        if whole is None:
            wrong = _repaired(program, classes, found, rng)
            if not wrong:
                return None
            continue
        largest = [d for d in classes.domains() if points(d, whole) > most]
        if not largest:
            return whole
        candidates = [n for n in {n for d in largest for n in d} & set(free) if found[n] > 1]
        if not candidates:
            candidates = [n for n in free if found[n] > 1]
        if not candidates:
            return None
        number = max(candidates, key=lambda n: (found[n], n))
        found[number] = max(e for e in (0, 1, 2, 4, 5, *drawn) if e < found[number])
    return None


def _repaired(
    program: Program, classes: Classes, found: dict[int, int], rng: random.Random
) -> bool:
    """Change the extent of an input where a program does not fit; False if there is nothing to change."""
    free = [number for number in found if found[number] < max(EXTENTS)]
    affine = [
        n
        for n, node in enumerate(program.nodes)
        if isinstance(node, Lookup)
        or (isinstance(node, Expression) and (node.left or node.op in ARGUMENTS))
    ]
    if not affine or not free:
        return False
    whole = dict(found)
    for number, node in enumerate(program.nodes):
        if not isinstance(node, Expression | Lookup):
            continue
        shapes = [tuple(whole.get(c, -1) for c in classes.dims[read]) for read in node.reads]
        if any(-1 in shape for shape in shapes):
            return False
        extents = axis_extents(node, shapes)
        if extents is None:
            wanted = [c for c in classes.dims[node.reads[-1]] if c in found]
            if wanted:
                found[rng.choice(wanted)] = rng.choice(EXTENTS[2:])
            return bool(wanted)
        for letter, extent in extents.items():
            member = classes.find(classes.axes[number][letter])
            if whole.setdefault(member, extent) != extent:
                if member not in found:
                    return False
                found[member] = extent
                return True
    return False


def completed(program: Program, free: Mapping[int, int]) -> dict[int, int] | None:
    """The extents of all classes from those of the inputs; None if they contradict each other."""
    classes = Classes(program)
    whole = dict(free)
    for number, node in enumerate(program.nodes):
        if not isinstance(node, Expression | Lookup):
            continue
        shapes = [tuple(whole[c] for c in classes.dims[read]) for read in node.reads]
        extents = axis_extents(node, shapes)
        if extents is None:
            return None
        for letter, extent in extents.items():
            member = classes.find(classes.axes[number][letter])
            if whole.setdefault(member, extent) != extent:
                return None
    return whole


def limits(program: Program, extents: Mapping[int, int]) -> dict[int, int]:
    """What the elements of values are less than that are looked up."""
    classes = Classes(program)
    found: dict[int, int] = {}
    for number, node in enumerate(program.nodes):
        if isinstance(node, Lookup):
            extent = extents[classes.find(classes.axes[number][node.axis])]
            found[node.reads[0]] = min(extent, found.get(node.reads[0], extent))
    return found


def points(domain: Sequence[int], extents: Mapping[int, int]) -> int:
    """The number of points of a domain; an empty loop counts as one, its neighbours may still be stored."""
    product = 1
    for number in domain:
        product *= max(extents[number], 1)
    return product


def shapes(program: Program, extents: Mapping[int, int]) -> list[tuple[int, ...]]:
    """The shape of every value."""
    return [tuple(extents[number] for number in dims) for dims in program.classes()]


# Making programs


@dataclass(frozen=True)
class Taste:
    """What a program is inclined to: drawn once, so that programs differ in kind, not only in detail."""

    dtypes: tuple[str, ...]
    sharing: float  # how often an old value is read again
    inputs: float  # how often a new input is made
    schedules: float
    diagonals: float
    permutes: float
    motifs: tuple[str, ...]
    guards: float = 0.0


MOTIFS = (
    *("unary", "binary", "binary", "reduce", "transpose", "scale", "convert"),
    *("matmul", "normal", "softmax", "outer", "chain", "statistics"),
)
WINDOWS = ("window", "window", "binary", "reduce", "normal")
"""What programs with affine indices are made of: few of them, for extents must fit."""


def draw_taste(rng: random.Random) -> Taste:
    """A taste."""
    kinds = ("f32", "f32", "f32", "f64", "i32", "i64", "bool")
    few = tuple(rng.choice(kinds) for _ in range(rng.choice((1, 1, 1, 2, 2, 3))))
    motifs = MOTIFS if rng.random() < 0.6 else tuple(rng.choice(MOTIFS) for _ in range(3))
    if rng.random() < 0.3:
        motifs = (*motifs, *WINDOWS)
    if rng.random() < 0.25:
        motifs = (*motifs, "position", "position", "argument")
    if rng.random() < 0.25:
        motifs = (*motifs, "gather", "gather", "scatter")
    return Taste(
        few,
        rng.choice((0.2, 0.5, 0.8)),
        rng.choice((0.05, 0.15, 0.4)),
        rng.choice((0.0, 0.0, 0.5)),
        rng.choice((0.0, 0.05, 0.2)),
        rng.choice((0.1, 0.5, 0.9)),
        motifs,
        rng.choice((0.0, 0.0, 0.2)),
    )


def generate(rng: random.Random) -> Program:
    """A random program of 1 to 12 expressions."""
    taste = draw_taste(rng)
    wanted = rng.choice((1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 9, 10, 12))
    maker = _Maker(rng, taste)
    motifs = {
        "unary": maker.unary,
        "binary": maker.binary,
        "reduce": maker.reduce,
        "transpose": maker.transpose,
        "scale": maker.scale,
        "convert": maker.convert,
        "matmul": maker.matmul,
        "normal": maker.normal,
        "softmax": maker.softmax,
        "outer": maker.outer,
        "chain": maker.chain,
        "statistics": maker.statistics,
        "window": maker.window,
        "position": maker.position,
        "argument": maker.argument,
        "gather": maker.gather,
        "scatter": maker.scatter,
    }
    while maker.made < wanted:
        motifs[rng.choice(taste.motifs)]()
    return maker.finish()


class _Maker:
    """A program under construction."""

    def __init__(self, rng: random.Random, taste: Taste) -> None:
        self.rng = rng
        self.taste = taste
        self.nodes: list[Node] = []
        self.dtypes: list[str | None] = []
        self.ranks: list[int] = []
        self.uses: Counter[int] = Counter()
        self.made = 0

    # Values

    def add(self, node: Node) -> int:
        """Add a node; its number."""
        self.dtypes.append(dtype_of(node, self.dtypes))
        self.uses.update(reads_of(node))
        match node:
            case Input():
                self.ranks.append(node.rank)
            case Number():
                self.ranks.append(0)
            case Conversion():
                self.ranks.append(self.ranks[node.read])
            case Expression() | Lookup():
                self.ranks.append(len(node.output))
        self.made += isinstance(node, Expression | Conversion | Lookup)
        self.nodes.append(node)
        return len(self.nodes) - 1

    def input(self, rank: int | None = None, dtype: str | None = None) -> int:
        if rank is None:
            rank = self.rng.choice((0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 5, 6))
        return self.add(Input(dtype or self.rng.choice(self.taste.dtypes), rank))

    def number(self, beside: str | None) -> int:
        """A constant that may stand beside a value of a type."""
        return self.add(Number(self.rng.choice(WHOLE if beside in INTEGERS else NUMBERS)))

    def value(self, least: int = 0) -> int:
        """A value to read, of a rank not below ``least``: an unused one, an old one, or a new input."""
        rng = self.rng
        fit = [
            n
            for n, node in enumerate(self.nodes)
            if least <= self.ranks[n] and not isinstance(node, Number)
        ]
        if not fit or rng.random() < self.taste.inputs:
            return self.input(None if least == 0 else rng.randint(least, max(3, least)))
        fresh = [n for n in fit if not self.uses[n]]
        if fresh and self.taste.sharing < rng.random():
            return fresh[-1] if rng.random() < 0.6 else rng.choice(fresh)
        return rng.choice(fit[-4:]) if rng.random() < 0.5 else rng.choice(fit)

    def converted(self, value: int, dtype: str) -> int:
        return value if self.dtypes[value] == dtype else self.add(Conversion(dtype, value))

    def as_float(self, value: int) -> int:
        return value if self.dtypes[value] in FLOATS else self.add(Conversion("f32", value))

    # Patterns

    def letters(self, count: int) -> str:
        if self.rng.random() < 0.5:
            start = self.rng.choice("aim")
            at = LETTERS.index(start)
            return LETTERS[at : at + count]
        return "".join(self.rng.sample(LETTERS, count))

    def pattern(self, value: int) -> str:
        """Letters for all dimensions of a value, now and then a diagonal."""
        letters = list(self.letters(self.ranks[value]))
        if len(letters) > 1 and self.rng.random() < self.taste.diagonals:
            one, other = self.rng.sample(range(len(letters)), 2)
            letters[one] = letters[other]
        return "".join(letters)

    def arranged(self, letters: str) -> str:
        """The distinct letters, often in another order."""
        distinct = list(dict.fromkeys(letters))
        if self.rng.random() < self.taste.permutes:
            self.rng.shuffle(distinct)
        return "".join(distinct)

    def expression(
        self, op: str, patterns: Sequence[str], output: str, reads: Sequence[int]
    ) -> int:
        node = Expression(op, tuple(patterns), output, tuple(reads))
        if self.rng.random() < self.taste.guards:
            node = replace(node, guards=tuple(map(self.guard, patterns, [node] * len(patterns))))
        if self.rng.random() < self.taste.schedules:
            node = replace(node, schedule=draw_schedule(node, self.rng))
        return self.add(node)

    def guard(self, pattern: str, node: Expression) -> str:
        """Guards of an operand: comparisons of one or two axes of its expression; mostly none of a second operand."""
        rng, letters = self.rng, node.letters()
        if not pattern or (pattern != node.patterns[0] and rng.random() < 0.7):
            return ""
        written = []
        for _ in range(rng.choice((1, 1, 1, 2))):
            one, other = rng.choice(pattern), rng.choice((*letters, str(rng.randint(0, 4))))
            step, offset = (
                rng.choice(("", "", "", "2", "-")),
                rng.choice(("", "", "+1", "-2", "+3")),
            )
            relation = rng.choice(("<=", "<=", "<", ">=", ">", "=="))
            sides = (f"{step}{one}{offset}", other)
            written.append(relation.join(sides if rng.random() < 0.5 else sides[::-1]))
        return ",".join(written)

    # Single expressions

    def unary(self, value: int | None = None, ops: Sequence[str] = ()) -> int:
        value = self.value() if value is None else value
        dtype = self.dtypes[value]
        if not ops:
            ops = (*COPIES, "-", "-", ">", "<", *COMPARISONS, *LOGIC, "!!")
            if dtype not in INTEGERS:
                ops = (*ops, "/", "/", "^", "^", "$")
        pattern = self.pattern(value)
        return self.expression(self.rng.choice(ops), [pattern], self.arranged(pattern), [value])

    def transpose(self) -> int:
        value = self.value(2)
        pattern = self.letters(self.ranks[value])
        output = self.rng.sample(pattern, len(pattern))
        return self.expression(self.rng.choice(COPIES), [pattern], "".join(output), [value])

    def chain(self) -> int:
        value = self.value()
        for _ in range(self.rng.randint(2, 4)):
            value = self.unary(value) if self.rng.random() < 0.5 else self.scale(value)
        return value

    def binary(self) -> int:
        one = self.value()
        other = self.value() if self.rng.random() < 0.85 else one
        if self.rng.random() < 0.5:
            one, other = other, one
        return self.pointwise(one, other)

    def pointwise(self, one: int, other: int, op: str = "") -> int:
        """A binary expression of two values, converted first where they must not meet."""
        types = (self.dtypes[one], self.dtypes[other])
        if any(t in FLOATS for t in types) and any(t in INTEGERS for t in types):
            target = self.rng.choice([t for t in types if t is not None])
            if self.dtypes[one] != target:
                one = self.converted(one, target)
            else:
                other = self.converted(other, target)
        met = join(self.dtypes[one], self.dtypes[other])
        op = op or self.operator(met)
        if op in NEED_FLOATS and met in INTEGERS:
            op = "+"
        left = self.pattern(one)
        right = self.matching(left, other)
        return self.expression(op, [left, right], self.arranged(left + right), [one, other])

    def position(self) -> int:
        """A value beside a position along its axes."""
        rng = self.rng
        value = self.value(1)
        dtype = self.dtypes[value]
        ops = [*ARITHMETIC, *ARITHMETIC, *COMPARISONS, *LOGIC, *("/" * (dtype in FLOATS))]
        pattern = self.pattern(value)
        chosen = rng.sample(sorted(set(pattern)), min(len(set(pattern)), rng.choice((1, 1, 2))))
        at = "+".join(rng.choice(("", "", "2", "3")) + letter for letter in chosen)
        at = rng.choice(("", "", "-")) + at + rng.choice(("", "", "+1", "-2"))
        if rng.random() < 0.3:
            at = f":{chosen[0]}"
        node = Expression(rng.choice(ops), (pattern,), self.arranged(pattern), (value,), at=at)
        if rng.random() < self.taste.schedules:
            node = replace(node, schedule=draw_schedule(node, rng))
        return self.add(node)

    def argument(self) -> int:
        """Where the largest or the smallest element is along an axis."""
        value = self.value(1)
        pattern = self.pattern(value)
        kept = pattern.replace(self.rng.choice(pattern), "")
        output = self.arranged(kept)
        return self.add(Expression(self.rng.choice(ARGUMENTS), (pattern,), output, (value,)))

    def places(self) -> tuple[int, str]:
        """A new input of indices, and letters for it."""
        rank = self.rng.choice((0, 1, 1, 1, 2))
        letters = list(self.letters(rank))
        return self.input(rank, self.rng.choice(INTEGERS)), "".join(letters)

    def beside(self, place: str, rank: int, axis: str) -> str:
        """Letters of a table beside those of its places: some of them, and others."""
        rng = self.rng
        spare = [letter for letter in LETTERS if letter not in place and letter != axis]
        rng.shuffle(spare)
        return "".join(
            rng.choice(place) if place and rng.random() < 0.3 else spare.pop() for _ in range(rank)
        )

    def gather(self) -> int:
        """A value read at indices along one of its dimensions; some letters are reduced now and then."""
        rng = self.rng
        table = self.value(1)
        if HIGHEST_RANK < self.ranks[table] + 1:  # places have two dimensions at most
            return table
        reads, place = self.places()
        axis = rng.choice([letter for letter in LETTERS if letter not in place])
        others = self.beside(place, self.ranks[table] - 1, axis)
        at = rng.randint(0, len(others))
        kept = self.arranged(place + others)
        ops: Sequence[str] = (*COPIES, "-", *COMPARISONS, *LOGIC, "!!")
        dropped = [letter for letter in place if rng.random() < 0.3]
        if dropped:
            kept = "".join(letter for letter in kept if letter not in dropped)
            ops = ("", *REDUCIBLE)
        node = Lookup(
            rng.choice(ops), place, others[:at] + axis + others[at:], kept, axis, 0, (reads, table)
        )
        return self.looked(node)

    def scatter(self) -> int:
        """A value whose elements meet at indices along a dimension of the result."""
        rng = self.rng
        value = self.value()
        if HIGHEST_RANK < self.ranks[value] + 3:
            return value
        if self.dtypes[value] == "bool":
            value = self.converted(value, "f32")
        reads, place = self.places()
        axis = rng.choice([letter for letter in LETTERS if letter not in place])
        others = self.beside(place, self.ranks[value], axis)
        kept = [letter for letter in dict.fromkeys(place + others) if rng.random() < 0.6]
        kept += [letter for letter in dict.fromkeys(others) if letter not in (*place, *kept)]
        kept.insert(rng.randint(0, len(kept)), axis)
        op = rng.choice(("", "+", "+", *REDUCIBLE))
        extent = rng.choice((1, 2, 3, 5, 8))
        return self.looked(Lookup(op, place, others, "".join(kept), axis, extent, (reads, value)))

    def looked(self, node: Lookup) -> int:
        """A lookup, with a schedule of loops alone now and then."""
        if self.rng.random() < self.taste.schedules:
            output = node.output.replace(node.axis, "")
            plain = Expression("+", (node.counted(),), output, ())
            node = replace(node, schedule=draw_schedule(plain, self.rng))
        return self.add(node)

    def operator(self, met: str | None) -> str:
        """An operator for operands that meet in a type."""
        ops = [*ARITHMETIC, *ARITHMETIC, *COMPARISONS, *LOGIC]
        if met == "bool":
            ops += LOGIC * 2
        elif met not in INTEGERS:
            ops += ["+", "*", "-", "/", "/", "^", "$"]
        return self.rng.choice(ops)

    def matching(self, left: str, value: int) -> str:
        """Letters for a second operand: mostly those of the first, others broadcast."""
        rng = self.rng
        rank = self.ranks[value]
        have = list(dict.fromkeys(left))
        spare = [letter for letter in rng.sample(LETTERS, 26) if letter not in have]
        room = HIGHEST_RANK - len(have)
        chosen: list[str] = []
        in_order = rng.random() < 0.6
        for dim in range(rank):
            free = [letter for letter in have if letter not in chosen]
            if free and (room <= 0 or rng.random() < 0.85):
                aligned = in_order and len(left) == rank and left[dim] in free
                chosen.append(left[dim] if aligned else rng.choice(free))
            elif room > 0:
                chosen.append(spare.pop())
                room -= 1
            else:  # more dimensions than letters: a diagonal
                chosen.append(rng.choice(have))
        return "".join(chosen)

    def scale(self, value: int | None = None) -> int:
        """A value and a constant."""
        value = self.value() if value is None else value
        dtype = self.dtypes[value]
        pattern = self.pattern(value)
        op = self.operator(dtype)
        if op == "^" or (dtype not in INTEGERS and self.rng.random() < 0.1):
            number = self.add(Number(self.rng.choice(POWERS)))
            return self.expression("^", [pattern, ""], self.arranged(pattern), [value, number])
        number = self.number(dtype)
        if dtype in FLOATS and self.rng.random() < 0.1:
            number = self.add(Conversion(self.rng.choice(FLOATS), number))
            if self.rng.random() < 0.3:
                number = self.add(Conversion(self.rng.choice(FLOATS), number))
        operands = [(pattern, value), ("", number)]
        if self.rng.random() < 0.3:
            operands.reverse()
        patterns, reads = zip(*operands, strict=True)
        return self.expression(op, patterns, self.arranged(pattern), reads)

    def convert(self) -> int:
        value = self.value()
        return self.add(Conversion(self.rng.choice(DTYPES), value))

    def reduce(self, value: int | None = None, op: str = "") -> int:
        """A reduction over any subset of axes."""
        value = self.value(1) if value is None or not self.ranks[value] else value
        pattern = self.pattern(value)
        distinct = list(dict.fromkeys(pattern))
        dropped = self.rng.sample(distinct, self.rng.randint(1, len(distinct)))
        if len(dropped) > 1 and self.rng.random() < 0.6:
            dropped = dropped[:1]
        kept = "".join(letter for letter in distinct if letter not in dropped)
        if not op:
            op = self.rng.choice(("", "+", "+", "+", "*", ">", ">", "<", *LOGIC))
        return self.expression(op, [pattern], self.arranged(kept), [value])

    # Shapes of programs that people write

    def matmul(self) -> int:
        one, other = self.value(1), self.value(1)
        if self.taste.sharing < self.rng.random():
            other = self.input(2)
        product = self.pointwise(one, other, "*")
        total = self.reduce(product, self.rng.choice(("+", "+", "+", ">", "")))
        if isinstance(self.nodes[other], Input) and self.rng.random() < 0.2:
            self.again(product, total)
        return total

    def again(self, product: int, total: int) -> None:
        """The same product and sum of another input, as queries and keys are of one array."""
        first, second = self.nodes[product], self.nodes[total]
        if isinstance(first, Expression) and isinstance(second, Expression):
            one, other = first.reads
            input_ = self.input(self.ranks[other], self.dtypes[other])
            twin = self.add(replace(first, reads=(one, input_)))
            self.add(replace(second, reads=(twin,)))

    def outer(self) -> int:
        one, other = self.value(), self.input(self.rng.choice((0, 1, 1, 2)))
        return self.pointwise(one, other)

    def normal(self) -> int:
        """A value against a reduction of itself."""
        value = self.value(1)
        pattern = self.letters(self.ranks[value])
        dropped = self.rng.choice(pattern)
        kept = self.arranged(pattern.replace(dropped, ""))
        op = self.rng.choice(("+", ">", "<", "*"))
        reduced = self.expression(op, [pattern], kept, [value])
        return self.broadcast(
            value, reduced, pattern, kept, self.rng.choice(("-", "-", "*", "+", ">="))
        )

    def broadcast(self, value: int, row: int, pattern: str, kept: str, op: str) -> int:
        """``value op row``, the row along its own letters; converted first where the types do not meet."""
        if self.dtypes[value] in FLOATS and self.dtypes[row] in INTEGERS:
            row = self.as_float(row)
        if self.dtypes[value] in INTEGERS and self.dtypes[row] in FLOATS:
            value = self.as_float(value)
        return self.expression(op, [pattern, kept], self.arranged(pattern), [value, row])

    def softmax(self) -> int:
        value = self.as_float(self.value(1))
        pattern = self.letters(self.ranks[value])
        kept = pattern.replace(self.rng.choice(pattern), "")
        most = self.expression(">", [pattern], kept, [value])
        shifted = self.expression("-", [pattern, kept], pattern, [value, most])
        raised = self.expression("^", [pattern], pattern, [shifted])
        total = self.expression("+", [pattern], kept, [raised])
        return self.broadcast(raised, total, pattern, kept, "/")

    def statistics(self) -> int:
        """Mean and variance, or a reduction of a reduction."""
        value = self.as_float(self.value(1))
        pattern = self.letters(self.ranks[value])
        kept = pattern.replace(self.rng.choice(pattern), "")
        total = self.expression("+", [pattern], kept, [value])
        if kept and self.rng.random() < 0.4:
            return self.reduce(total)
        if 3 * self.rng.random() < 1:
            count = self.add(Number(self.rng.choice(("0.125", "0.5"))))
            total = self.expression("*", [kept, ""], kept, [total, count])
        centred = self.expression("-", [pattern, kept], pattern, [value, total])
        two = self.add(Number("2"))
        squares = self.expression("^", [pattern, ""], pattern, [centred, two])
        return self.expression("+", [pattern], kept, [squares])

    def window(self) -> int:
        """Affine and fixed indices: a copy, a pooling, or a convolution with a new input."""
        rng = self.rng
        value = self.value(1)
        if self.ranks[value] > 3:
            value = self.input(rng.choice((1, 2, 2, 3)))
        spare = rng.sample(LETTERS.replace("e", ""), 12)  # `(2e-1)` reads as a number
        plain: list[str] = []
        windows: list[str] = []
        left: list[str] = []
        for _ in range(self.ranks[value]):
            text, letters = self.index(spare, plain, left[-1:])
            left.append(text)
            windows += letters
        if not any(len(text) > 1 or text.isdigit() for text in left):
            left[0], windows = self.group(spare, [])
        pattern = "".join(c for text in left for _, c, _ in index_of(text).terms)
        fixed = {c for text in left for _, c, extent in index_of(text).terms if extent}
        distinct = "".join(dict.fromkeys(pattern))
        right = [c for c in windows if c not in fixed]
        if right or rng.random() < 0.3:
            return self.convolved(value, left, pattern, right)
        dropped = [c for c in distinct if c in fixed and rng.random() < 0.7]
        output = self.arranged("".join(c for c in distinct if c not in dropped))
        ops = ("", "+", ">", "<", "*", "||") if dropped else ("", "-", "+", ">>")
        node = Expression(rng.choice(ops), (pattern,), output, (value,), "", tuple(left))
        return self.add(node)

    def index(self, spare: list[str], plain: list[str], before: list[str]) -> tuple[str, list[str]]:
        """An index for one dimension, and the letters of its window."""
        chance = self.rng.random()
        if chance < 0.1 and not (before and before[0].isdigit()):
            return self.rng.choice(("0", "1", "2")), []
        if chance < 0.5:
            plain.append(spare.pop())
            return plain[-1], []
        return self.group(spare, plain, "".join(before))

    def group(self, spare: list[str], plain: list[str], before: str = "") -> tuple[str, list[str]]:
        """``(2y+u:3-1)`` and its like; ``(i+j)`` of axes that others fix; one with an axis of a group ``before``."""
        rng = self.rng
        stride = rng.choice(("", "", "2", "3"))
        offset = rng.choice(("", "", "", "-1", "-2", "+1"))
        if len(plain) > 1 and rng.random() < 0.2:
            one, other = rng.sample(plain, 2)
            return f"({stride}{one}{rng.choice('+-')}{other}{offset})", []
        shared = re.match(r"\(\d?([a-z])\+", before)
        position = shared[1] if shared and rng.random() < 0.5 else spare.pop()
        if rng.random() < 0.25:
            if rng.random() < 0.3:
                return f"(-{position}:{rng.randint(1, 4)}+{rng.randint(1, 4)})", []
            written = f":{rng.randint(1, 4)}" if offset.startswith("-") else ""
            return f"({stride or 2}{position}{written}{offset})", []
        step, window = rng.choice(("", "", "2")), spare.pop()
        extent = f":{rng.randint(1, 4)}" if rng.random() < 0.6 else ""
        return f"({stride}{position}+{step}{window}{extent}{offset})", [window]

    def convolved(self, value: int, left: list[str], pattern: str, needed: list[str]) -> int:
        """A product with a new input over the window and some other letters; then perhaps its sum."""
        rng = self.rng
        dtype = self.dtypes[value]
        have = dict.fromkeys(pattern)
        room = HIGHEST_RANK - len(have)
        letters = [
            *needed,
            *(c for text in left if is_plain(text) for c in text if rng.random() < 0.5),
        ]
        if 0 < room and rng.random() < 0.5:
            letters.append(next(c for c in LETTERS if c not in have))
        rng.shuffle(letters)
        letters = list(dict.fromkeys(letters))
        other = self.input(len(letters), dtype)
        right = "".join(letters)
        output = self.arranged(pattern + right)
        if len(output) > HIGHEST_RANK:
            return other
        op = rng.choice(("*", "*", "*", "+", "-"))
        node = Expression(op, (pattern, right), output, (value, other), "", tuple(left))
        made = self.add(node)
        return self.reduce(made, "+") if rng.random() < 0.6 else made

    def finish(self) -> Program:
        """Everything unread is an output; now and then something else is one, or one twice."""
        rng = self.rng
        outputs = [n for n in range(len(self.nodes)) if not self.uses[n]]
        if rng.random() < 0.25:
            outputs.append(rng.randrange(len(self.nodes)))
        if rng.random() < 0.1:
            outputs.append(rng.choice(outputs))
        inputs = tuple(n for n, node in enumerate(self.nodes) if isinstance(node, Input))
        return Program(tuple(self.nodes), inputs, tuple(outputs))


def draw_schedule(node: Expression, rng: random.Random) -> str:
    """A random schedule that is well formed for an expression, with its bars."""
    letters = node.letters()
    if not letters:
        return "||"
    parts = dict.fromkeys(letters, 1)
    splits = []
    for letter in rng.sample(letters, rng.choice((0, 0, 1, min(2, len(letters))))):
        factors = [str(rng.choice((1, 2, 3, 4, 8, 16, 64))) for _ in range(rng.choice((1, 1, 2)))]
        splits.append(f"{letter}:{':'.join(factors)}")
        parts[letter] += len(factors)
    loops = [letter + "'" * part for letter in letters for part in range(parts[letter])]
    order, staged = _draw_order(node, loops, rng)
    roles = [f"{loop}:{rng.choice('tvq')}" for loop in loops if rng.random() < 0.1]
    roles += [f"{digit}:{rng.choice(('s', 'r', 'c'))}" for digit in staged if rng.random() < 0.2]
    text = f"| {','.join(splits)} |" if splits else "||"
    if order:
        text += " " + " ".join(order)
    return text + (" | " + ",".join(roles) if roles else "")


def _draw_order(
    node: Expression, loops: list[str], rng: random.Random
) -> tuple[list[str], list[str]]:
    """An order of loops with staged inputs and a start, and the digits in it."""
    if rng.random() < 0.3:
        return [], []
    order = list(loops)
    if rng.random() < 0.8:
        rng.shuffle(order)
    if node.reduces() and rng.random() < 0.3:
        last = max((n for n, loop in enumerate(order) if loop[0] in node.output), default=-1)
        order.insert(rng.randint(last + 1, len(order)), "!")
    staged = [str(n) for n in range(len(node.reads)) if rng.random() < 0.4]
    for digit in staged:
        order.insert(rng.randint(0, len(order)), digit)
    return order, staged


# Plain data, for files


def to_json(program: Program) -> dict[str, object]:
    """A program as plain data."""
    rows = [[type(node).__name__, *vars(node).values()] for node in program.nodes]
    return {"nodes": rows, "inputs": list(program.inputs), "outputs": list(program.outputs)}


def from_json(data: dict[str, list[list[object]]]) -> Program:
    """The program that ``to_json`` gave."""
    kinds = {kind.__name__: kind for kind in (Input, Number, Expression, Conversion, Lookup)}
    nodes = []
    for name, *written in data["nodes"]:
        fields = [tuple(field) if isinstance(field, list) else field for field in written]
        nodes.append(kinds[str(name)](*fields))  # type: ignore[arg-type]
    inputs, outputs = data["inputs"], data["outputs"]
    return Program(tuple(nodes), tuple(inputs), tuple(outputs))  # type: ignore[arg-type]


def literals_meet(program: Program) -> bool:
    """Whether a value of literals and truth values alone has the type of a number or of a conversion that it meets.

    It is f32 here.
    """
    dtypes = program.dtypes()
    found: set[int] = set()
    for number, node in enumerate(program.nodes):
        if isinstance(node, Conversion) and node.read in found and node.dtype == "f64":
            return True
        if isinstance(node, Conversion | Input | Number):
            continue
        reads = node.reads[1:] if isinstance(node, Lookup) else node.reads
        if isinstance(node, Expression) and not found.isdisjoint(reads):
            met = "i64" if node.at else operand_type(node, dtypes)
            if met != "f32":
                return True
        is_open = [isinstance(program.nodes[read], Number) or read in found for read in reads]
        known = [dtypes[read] for read, each in zip(reads, is_open, strict=True) if not each]
        zero = isinstance(node, Expression) and node.op in (">", "<") and not node.reduces()
        alone = any(is_open) or (zero and len(reads) == 1)  # ``>i~i`` has a zero of its own
        if dtypes[number] == "f32" and alone and all(dtype == "bool" for dtype in known):
            found.add(number)
    return False
