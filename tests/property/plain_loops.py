"""What the loops and formulas that ``i explain`` prints compute: their text is read and run, one element at a time.

A reader knows the arrays by name, the extents by name, and the text; nothing else of the compiler is used. A line is
``for k in 0..n``, or ``place = value`` with the operators ``=``, ``+=`` and ``*=``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.property.plain_values import (
    Env,
    Outside,
    Reader,
    State,
    Unclear,
    index_code,
    split_index,
)

LOOP = re.compile(r"for (\S+?)(?: in 0\.\.(\S+))?")
LINE = re.compile(r"(.*?) (=|\+=|\*=) (.*)")
RANGES = re.compile(r"(.*?) for (\S+ in 0\.\.\S+(?: and \S+ in 0\.\.\S+)*)")
VIEW = re.compile(r"reshape\((\w+), \[(.*)\]\)")


@dataclass
class Node:
    """A line, and those inside its loop."""

    text: str
    inside: list[Node] = field(default_factory=list)


def tree(lines: Sequence[tuple[int, str]]) -> list[Node]:
    """The lines, each with its depth, as loops with what is inside them."""
    top = Node("")
    path = [top]
    for depth, text in lines:
        node = Node(text)
        if len(path) <= depth:
            raise Unclear(f"nothing is around {text!r}")
        path[depth].inside.append(node)
        path[depth + 1 :] = [node]
    return top.inside


def run_loops(lines: Sequence[tuple[int, str]], state: State) -> None:
    """Run loops, given as lines and how deep each stands."""
    names = dict.fromkeys([*state.values, *stored(text for _, text in lines)])
    for node in tree(lines):
        compiled(node, state, names)({})


def stored(texts: Iterator[str]) -> Iterator[str]:
    """The names to which lines give values."""
    for text in texts:
        match = None if text.startswith("for ") else LINE.fullmatch(text)
        if match:
            yield match[1].partition("[")[0]


def compiled(node: Node, state: State, names: Mapping[str, object]) -> Callable[[Env], None]:
    """What a line does."""
    loop = LOOP.fullmatch(node.text)
    if loop is None:
        if node.inside:
            raise Unclear(f"no loop: {node.text!r}")
        return statement(node.text, state, names)[0]
    name, bound = loop[1], loop[2] or loop[1]
    inside = [compiled(each, state, names) for each in node.inside]
    count = int(bound) if bound.isdigit() else state.extents[bound]

    def run(env: Env) -> None:
        if name in env:
            raise Unclear(f"{name} is the letter of two loops, one inside the other")
        for n in range(count):
            for each in inside:
                each({**env, name: n})

    return run


def statement(
    text: str, state: State, names: Mapping[str, object]
) -> tuple[Callable[[Env], None], Reader]:
    """What a line without a loop does, and the reader of its value."""
    match = LINE.fullmatch(text)
    if match is None:
        raise Unclear(f"what does this do? {text!r}")
    place, sign, value = match.groups()
    name, _, rest = place.partition("[")
    parts = [index_code(part, state) for part in split_index(rest[:-1])] if rest else []
    view = VIEW.fullmatch(value)
    if view is not None:
        reader = Reader("0", state, names)
        return lambda _: reshape(name, view[1], view[2], state), reader
    reader = Reader(value, state, names)
    code = reader.value()

    def run(env: Env) -> None:
        try:
            at = tuple(part(env) for part in parts)
            result = code(env)
        except Outside:
            return
        old = state.values.setdefault(name, {})
        if sign != "=" and at not in old:
            if name in state.shapes and state.leaves_out:
                return
            raise Unclear(f"{name}{list(at)} is added to before it is there")
        old[at] = {
            "=": lambda: result,
            "+=": lambda: old[at] + result,
            "*=": lambda: old[at] * result,
        }[sign]()

    return run, reader


def reshape(name: str, source: str, dims: str, state: State) -> None:
    """Give the elements of an array, in order, to one of other dimensions."""
    sizes = [each for each in dims.split(",") if each]
    shape = tuple(int(n) if n.isdigit() else state.extents[n] for n in sizes)
    elements = sorted(state.values.get(source, {}).items())
    if np.prod(shape, dtype=int) != len(elements):
        raise Unclear(f"{source} has {len(elements)} elements, and {name} is {shape}")
    places = np.ndindex(shape)
    state.values[name] = {at: value for at, (_, value) in zip(places, elements, strict=True)}
    state.shapes[name] = shape


def run_formulas(formulas: Sequence[tuple[str, Sequence[str]]], state: State) -> None:
    """Evaluate formulas in order, each with the extents of its value."""
    names = dict.fromkeys([*state.values, *stored(text for text, _ in formulas)])
    for line, extents in formulas:
        told = RANGES.fullmatch(line)
        text = told[1] if told else line
        run, reader = statement(text, state, names)
        if VIEW.search(text):
            run({})
            continue
        shape = tuple(int(n) if n.isdigit() else state.extents[n] for n in extents)
        place = text.partition(" ")[0]
        name, _, rest = place.partition("[")
        ranges: dict[str, int] = {}
        parts = split_index(rest[:-1]) if rest else []
        reader.see(rest)
        again = name in state.values
        for letter_, (array, dim) in reader.alone[0].items() if again else ():
            if () not in state.values.get(letter_, {}):
                ranges[letter_] = state.extent(array, dim)
        for part, extent in zip(parts, shape, strict=True):
            if re.fullmatch(r"[A-Za-z_]\w*'*", part) and () not in state.values.get(part, {}):
                ranges.setdefault(part, extent)
        for part in told[2].split(" and ") if told else ():
            letter_, _, extent_ = part.partition(" in 0..")
            ranges[letter_] = int(extent_) if extent_.isdigit() else state.extents[extent_]
        state.values.setdefault(name, {})
        for at in itertools.product(*map(range, ranges.values())):
            run(dict(zip(ranges, at, strict=True)))
        state.shapes[name] = shape
