"""Programs as text: a graph written with combinators, in one of very many ways.

The text grows as a chain of stages over a tuple of live values. A stage is a row of parts, each of which takes the next
values of the tuple: ``I`` passes one on, ``f`` computes, ``I & f`` computes and keeps, ``~(I | I)`` exchanges. Values
that a stage leaves over, inputs that it opens, and ``<<`` in place of ``>>`` move the others around, as section 3 of
docs/language.md says; this file is that section a second time.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.property.programs import Conversion, Expression, Input, Lookup, Number, Program, reads_of

CHAIN, ATOM = 3, 4
"""How tightly the outermost combinator of a text binds: ``|`` 1, ``&`` 2, ``>>`` and ``<<`` 3, nothing 4."""

NAMES = ("part_{}", "Part{}", "step{}_", "_{}", "f{}", "Norm{}", "layer_{}x")


@dataclass(frozen=True)
class Written:
    """A program, its inputs and outputs in the order of the text, and the text: a module file or one program."""

    program: Program
    text: str
    module: bool


@dataclass(frozen=True)
class _Part:
    """A component of a stage: what it takes, and what it gives."""

    text: str
    binds: int
    takes: int
    gives: tuple[int, ...]


def write(program: Program, rng: random.Random, plain: bool = False) -> Written:
    """Write a program; ``plain`` avoids everything that is not needed."""
    return _Writer(program, rng, plain).run()


def spelled(node: Expression | Lookup, rng: random.Random, plain: bool) -> str:
    """An index expression as text."""
    blank = ("" if plain or rng.random() < 0.9 else rng.choice((" ", "  ", "\t"))) or ""
    if isinstance(node, Lookup):
        axis = f"({node.axis}:{node.extent})" if node.extent else node.axis
        form = f"{node.op}{blank}{node.place or '.'}{blank}@{blank}{node.table or '.'}"
        output = node.output.replace(node.axis, axis) or "."
        return f"{form}{blank}~{blank}{output} {node.schedule}".strip()
    words = [
        pattern or "." for pattern in ("".join(node.left) or node.patterns[0], *node.patterns[1:])
    ]
    words = [
        f"{word}[{guard}]" if guard else word
        for word, guard in zip(words, node.guards or ("",) * len(words), strict=True)
    ]
    form = f"{node.op}{blank}{words[0]}"
    if len(words) == 2:
        form = f"{words[0]}{blank}{node.op}{blank}{words[1]}"
    if node.at:
        place = f"@{node.at}" if node.at.isalpha() and len(node.at) == 1 else f"@({node.at})"
        place = node.at if node.at.startswith(":") else place
        form = f"{words[0]}{blank}{node.op}{blank}{place}"
    text = f"{form}{blank}~{blank}{node.output or '.'}"
    if node.schedule:
        return f"{text} {node.schedule}"
    if not plain and rng.random() < 0.03:
        return f'i("{text}")'
    return text


class _Writer:
    """The text so far, the values it gives, and inputs that a next stage will open."""

    def __init__(self, program: Program, rng: random.Random, plain: bool) -> None:
        self.program = program
        self.rng = rng
        self.plain = plain
        self.text = ""
        self.binds = ATOM
        self.live: list[int] = []
        self.existing = 0
        self.inputs: list[int] = []
        self.left = Counter(program.uses())
        self.waiting = [
            n
            for n, node in enumerate(program.nodes)
            if isinstance(node, Expression | Conversion | Lookup)
        ]
        self.tail: tuple[str, int] | None = None
        self.named = not plain and rng.random() < 0.25
        self.definitions: list[tuple[str, str]] = []

    def chance(self, probability: float) -> bool:
        """True now and then, never in plain text."""
        return not self.plain and self.rng.random() < probability

    def run(self) -> Written:
        while self.waiting:
            ready = [n for n in self.waiting if self._is_ready(n)]
            self._compute(ready[0] if self.plain else self.rng.choice(ready))
        self._finish()
        self._flush()
        final = replace(self.program, inputs=tuple(self.inputs), outputs=tuple(self.live))
        if not self.named:
            return Written(final, self.text, False)
        return Written(final, self._module(), True)

    def _module(self) -> str:
        """A file: the definitions in any order, the program among them, its inputs perhaps named."""
        head = "main"
        if self.chance(0.5):
            names = self.rng.sample([f"x{n}" for n in range(len(self.inputs))], len(self.inputs))
            parameters = [
                self._parameter(name, n) for name, n in zip(names, self.inputs, strict=True)
            ]
            head = f"main({', '.join(parameters)})"
        lines = [f"{name} = {_one_line(body)}" for name, body in self.definitions]
        lines.append(f"{head} = {_one_line(self.text)}")
        self.rng.shuffle(lines)
        return "\n".join(lines) + "\n"

    def _parameter(self, name: str, value: int) -> str:
        """An input as the head of a definition writes it."""
        node = self.program.nodes[value]
        dtype = f": {node.dtype}" if isinstance(node, Input) and self.chance(0.4) else ""
        dims = [f"n{number}" for number in self.program.classes()[value]]
        return name + dtype + (f"[{','.join(dims)}]" if self.chance(0.4) else "")

    # What to write next

    def _is_ready(self, number: int) -> bool:
        return all(
            read in self.live or isinstance(self.program.nodes[read], Input | Number)
            for read in reads_of(self.program.nodes[number])
        )

    def _compute(self, number: int) -> None:
        """Write a stage that computes a node and perhaps others that read the same."""
        group = self._group(number)
        for read in dict.fromkeys(reads_of(self.program.nodes[number])):
            self._introduce(read)
        part, takes = self._computing(group)
        place = self._together(takes)
        self._stage(place, part)

    def _group(self, number: int) -> list[int]:
        """A node, and ready nodes that a fanout can feed with the same values."""
        reads = _distinct(reads_of(self.program.nodes[number]))
        group = [number]
        for other in self.waiting:
            alike = _distinct(reads_of(self.program.nodes[other])) in (reads, reads[:1])
            if other != number and alike and len(group) < 4 and self.chance(0.4):
                group.append(other)
        return group

    def _introduce(self, value: int) -> None:
        """Make a value live that is not: an input, or a constant."""
        if value in self.live:
            return
        node = self.program.nodes[value]
        if isinstance(node, Number):
            self._beside(node.text, value)
        elif self.text and self.existing == len(self.live) and self.chance(0.3):
            self.inputs.append(value)
            self._beside("I", value)
        else:
            self.live.append(value)

    def _beside(self, text: str, value: int) -> None:
        """Pair the text so far with a component that gives one value."""
        self._flush()
        self.text, self.binds = (f"{self.text} | {text}", 1) if self.text else (text, ATOM)
        self.live.insert(self.existing, value)
        self.existing += 1

    def _computing(self, group: list[int]) -> tuple[_Part, tuple[int, ...]]:
        """The part that computes some nodes and keeps what is needed later; what it takes, in order."""
        nodes = self.program.nodes
        reads = _distinct(reads_of(nodes[group[0]]))
        kept = self._needed_after(group, reads)
        exchanged = len(reads) == 2 and kept == (reads[1],)
        if exchanged:  # the part keeps its first value only: the second must come first
            group = [number for number in group if len(_distinct(reads_of(nodes[number]))) == 2]
            kept = self._needed_after(group, reads)
            exchanged = kept == (reads[1],)
        for number in group:
            self.left.subtract(reads_of(nodes[number]))
            self.waiting.remove(number)
        parts: list[tuple[str, tuple[int, ...]]] = [
            (self._leaf(number, exchanged), (number,)) for number in group
        ]
        if kept:
            parts.append(("I" if len(kept) == 1 else "(I | I)", kept))
        if self.chance(0.5):
            self.rng.shuffle(parts)
        else:
            parts.reverse()
        gives = [value for _, given in parts for value in given]
        text, binds = " & ".join(text for text, _ in parts), 2 if len(parts) > 1 else ATOM
        if len(gives) > 1 and self.chance(0.15):
            gives[:2] = gives[1::-1]
            text, binds = f"~({text})", ATOM
        takes = (reads[1], reads[0]) if exchanged else reads
        return _Part(text, binds, len(takes), tuple(gives)), takes

    def _needed_after(self, group: list[int], reads: tuple[int, ...]) -> tuple[int, ...]:
        """The values among ``reads`` that something else than a group of nodes still needs."""
        left = Counter(self.left)
        for number in group:
            left.subtract(reads_of(self.program.nodes[number]))
        return tuple(value for value in reads if 0 < left[value])

    def _leaf(self, number: int, exchanged: bool) -> str:
        """The component of a node, fed with its distinct reads in order (or the other way round)."""
        node = self.program.nodes[number]
        if isinstance(node, Conversion):
            return node.dtype
        assert isinstance(node, Expression | Lookup)
        text = spelled(node, self.rng, self.plain)
        if len(node.reads) == 2 and node.reads[0] == node.reads[1]:
            return f"((I & I) >> {text})" if not self.chance(0.3) else f"({text} << (I & I))"
        if exchanged:
            return f"(~(I | I) >> {text})" if not self.chance(0.3) else f"({text} << ~(I | I))"
        return f"({text})" if self.chance(0.1) else text

    # Moving values

    def _together(self, takes: tuple[int, ...]) -> int:
        """Bring values next to each other, in order; the place of the first."""
        while True:
            at = [self.live.index(value) for value in takes]
            if len(at) == 1 or at[1] == at[0] + 1:
                return at[0]
            whole = self.existing == len(self.live)
            if whole and at[1] == 0 and at[0] == len(self.live) - 1 and self.chance(0.7):
                self._stage(0, _Part("I", ATOM, 1, (self.live[0],)), passed=0)
                continue
            first = at[1] - 1 if at[0] < at[1] else at[1]
            pair = (self.live[first + 1], self.live[first])
            self._stage(first, _Part("~(I | I)", ATOM, 2, pair))

    def _stage(self, place: int, part: _Part, passed: int | None = None) -> None:
        """Add a stage with a part at a place; values before it are passed on, those after it perhaps."""
        row = [_Part("I", ATOM, 1, (value,)) for value in self.live[:place]]
        row.append(part)
        stop = place + part.takes
        if passed is None:
            passed = max(self.existing - stop, 0)
            if place == 0 and self.chance(0.3):
                passed = self.rng.randint(0, passed)
        row += [_Part("I", ATOM, 1, (value,)) for value in self.live[stop : stop + passed]]
        covered = stop + passed
        text = " | ".join(_closed(p.text, p.binds, 2) for p in row)
        binds = 1 if len(row) > 1 else part.binds
        gives = [value for p in row for value in p.gives]
        self._append(text, binds, covered, gives)

    def _append(self, text: str, binds: int, covered: int, gives: list[int]) -> None:
        """Chain a stage to the text."""
        existing = self.existing
        self.inputs += self.live[existing:covered]
        rest, pending = self.live[covered:existing], self.live[max(covered, existing) :]
        neat = covered == existing and self.tail is not None
        if self.chance(0.3 if self.named else 0.05):
            text, binds = self._define(text), ATOM
        if neat and self.tail is not None and self.chance(0.3):
            joined = f"{_closed(self.tail[0], self.tail[1], CHAIN)} >> {_closed(text, binds, ATOM)}"
            self.tail = (joined, CHAIN)
            self.live = [*gives, *pending]
        elif self.text and not self.tail and self.chance(0.15):
            self.text = f"{_closed(text, binds, CHAIN)} << {_closed(self.text, self.binds, ATOM)}"
            self.binds = CHAIN
            self.live = [*gives, *rest, *pending]
        else:
            self._flush()
            self.tail = (text, binds)
            self.live = [*rest, *gives, *pending]
            if rest:
                self._flush()
        self.existing = len(self.live) - len(pending)

    def _define(self, body: str) -> str:
        """A new definition; its name."""
        if not self.named:
            return f"({body})"
        known = [name for name, other in self.definitions if other == body]
        if known:
            return known[0]
        name = self.rng.choice(NAMES).format(len(self.definitions))
        self.definitions.append((name, body))
        return name

    def _flush(self) -> None:
        """Chain the stage that waited for company."""
        if self.tail is None:
            return
        text, binds = self.tail
        self.tail = None
        if not self.text:
            self.text, self.binds = text, binds
            return
        gap = "\n  " if self.chance(0.02) else " "
        self.text = f"{_closed(self.text, self.binds, CHAIN)}{gap}>> {_closed(text, binds, ATOM)}"
        self.binds = CHAIN

    def _finish(self) -> None:
        """Open what is only given out, and give out twice what is an output twice."""
        for value in self.program.outputs:
            self._introduce(value)
        again = [value for value in self.live if self.left[value] > 1]
        if not again and self.existing == len(self.live):
            return
        row = []
        for value in self.live:
            times = self.left[value]
            text = " & ".join(["I"] * times)
            row.append(_Part(text, 2 if times > 1 else ATOM, 1, (value,) * times))
        text = " | ".join(_closed(p.text, p.binds, 2) for p in row)
        binds = 1 if len(row) > 1 else row[0].binds
        self._append(text, binds, len(self.live), [v for p in row for v in p.gives])


def _distinct(reads: Sequence[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(reads))


def _closed(text: str, binds: int, wanted: int) -> str:
    """A text in parentheses unless it binds tightly enough."""
    return text if wanted <= binds else f"({text})"


def _one_line(body: str) -> str:
    """A definition's body; one that ends with a bar would go on in the next line."""
    return f"({body})" if body.endswith("|") else body
