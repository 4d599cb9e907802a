"""What the loops and formulas that ``i explain`` prints compute: their text is read and run, one element at a time.

A reader knows the arrays by name, the extents by name, and the text; nothing else of the compiler is used. A line is
``for k in 0..n``, or ``place = value`` with the operators ``=``, ``+=`` and ``*=``. The loops that run have more:

    for j in 0..n by 64            j is 0, 64, 128, ...
      for j' in 0..64              inside of a step of j: fewer where the dimension ends
    for i in block b of 0..n       of as many blocks as b counts, together all of them
    for the first i in 0..n        that one alone
    if 0 <= j+63 < n ... else      one of two
    tile[6,64] = 0                 all elements, where the remark says ``in registers``
    a = sum of a over all threads  nothing more, where one reader does what all threads do
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from tests.property.plain_values import (
    Code,
    Env,
    Outside,
    Reader,
    State,
    Unclear,
    index_code,
    split_index,
)

LOOP = re.compile(r"(\S+?)(?: in(?: block (\S+) of)? (?:0|max\((\S+)\))\.\.(\S+?))?(?: by (\d+))?")
ROUNDED = re.compile(r"ceil\(\((.*)\)/(\d+)\)")
LINE = re.compile(r"(.*?) (=|\+=|\*=) (.*)")
TOGETHER = re.compile(r"(\w+) = \w+ of \1 over all (?:threads|lanes)")
RANGES = re.compile(r"(.*?) for (\S+ in 0\.\.\S+(?: and \S+ in 0\.\.\S+)*)")
Run = Callable[[Env], None]
VIEW = re.compile(r"reshape\((\w+), \[(.*)\]\)")


@dataclass
class Node:
    """A line, its remark, and those inside its loop."""

    text: str
    remark: str = ""
    inside: list[Node] = field(default_factory=list)


def tree(lines: Sequence[tuple[int, str, str]]) -> list[Node]:
    """The lines, each with its depth and its remark, as loops with what is inside them."""
    top = Node("")
    path = [top]
    for depth, text, remark in lines:
        node = Node(text, remark)
        if len(path) <= depth:
            raise Unclear(f"nothing is around {text!r}")
        path[depth].inside.append(node)
        path[depth + 1 :] = [node]
    return top.inside


def run_loops(lines: Sequence[tuple[int, str, str]], state: State) -> None:
    """Run loops, given as lines, how deep each stands, and the remark beside it."""
    names = dict.fromkeys([*state.values, *stored(text for _, text, _ in lines)])
    block(tree(lines), state, names)({})


def stored(texts: Iterator[str]) -> Iterator[str]:
    """The names to which lines give values."""
    for text in texts:
        match = None if text.startswith(("for ", "if ", "unless ")) else LINE.fullmatch(text)
        if match:
            yield match[1].partition("[")[0]


def block(nodes: Sequence[Node], state: State, names: Mapping[str, object]) -> Run:
    """What lines do, one after the other; ``else`` belongs to the condition before it."""
    steps: list[Run] = []
    for n, node in enumerate(nodes):
        word, _, condition = node.text.partition(" ")
        if word in ("if", "unless"):
            others = (
                nodes[n + 1].inside if [e.text for e in nodes[n + 1 : n + 2]] == ["else"] else []
            )
            branches = [block(each, state, names) for each in (node.inside, others)]
            steps.append(
                chosen(condition, branches[:: -1 if word == "unless" else 1], state, names)
            )
        elif word != "else":
            steps.append(compiled(node, state, names))

    def run(env: Env) -> None:
        for step in steps:
            step(env)

    return run


def chosen(
    condition: str, branches: Sequence[Run], state: State, names: Mapping[str, object]
) -> Run:
    """One of two branches."""
    holds = Reader(condition, state, names).value()
    return lambda env: branches[0](env) if holds(env) else branches[1](env)


def compiled(node: Node, state: State, names: Mapping[str, object]) -> Run:
    """What a line does."""
    if not node.text.startswith("for "):
        if node.inside:
            raise Unclear(f"no loop: {node.text!r}")
        if "in registers" in node.remark:
            return filled(node.text, state)
        if TOGETHER.fullmatch(node.text):  # one reader did what all of them do
            return lambda _: None
        return statement(node.text, state, names)[0]
    text = node.text.removeprefix("for ").removeprefix("the first ")
    first = node.text.startswith("for the first ")
    run = block(node.inside, state, names)
    for head in reversed(text.split(" and ")):
        run = repeated(head, run, first, state)
    return run


def end_of(text: str, state: State) -> Code:
    """Where a loop begins or ends: an index, or a part of one, rounded up."""
    rounded = ROUNDED.fullmatch(text)
    if rounded is None:
        return index_code(text, state)
    index, number = index_code(rounded[1], state), int(rounded[2])
    return lambda env: -(-index(env) // number)


def repeated(head: str, inside: Run, first: bool, state: State) -> Run:
    """What a loop does."""
    loop = LOOP.fullmatch(head)
    if loop is None:
        raise Unclear(f"how often is this done? {head!r}")
    name, part, bound, step = loop[1], loop[2], loop[4] or loop[1], int(loop[5] or 1)
    steps = {f"{name} steps": step} if 1 < step else {}
    bound = bound[4:-1] if bound.startswith("min(") else bound
    starts = [end_of(each, state) for each in split_index(loop[3] or "0")]
    ends = [end_of(each, state) for each in split_index(bound)]

    def run(env: Env) -> None:
        count = min(end(env) for end in ends)
        if name in env:
            raise Unclear(f"{name} is the letter of two loops, one inside the other")
        start, end = max(start(env) for start in starts), count
        if part:
            length = step * ceil(ceil(count / step) / env[f"{part} counts"])
            start, end = env[part] * length, min(count, (env[part] + 1) * length)
        if f"{name.rstrip(chr(39))} steps" in env:
            outer = [name.rstrip("'") + "'" * n for n in range(name.count("'"))]
            end = min(end, env[f"{outer[0]} counts"] - sum(env[each] for each in outer))
        for n in range(start, end, step)[: 1 if first else None]:
            inside({**env, name: n, f"{name} counts": count, **steps})

    return run


def filled(text: str, state: State) -> Run:
    """What ``tile[6,64] = 0`` does."""
    match = re.fullmatch(r"(\w+)\[(.*)\] = (.*)", text)
    if match is None:
        raise Unclear(f"what is in registers? {text!r}")
    shape = [state.count(each) for each in match[2].split(",")]
    value = Reader(match[3], state, {}).value()

    def run(env: Env) -> None:
        state.values[match[1]] = dict.fromkeys(np.ndindex(*shape), value(env))

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
    shape = tuple(state.count(n) for n in sizes)
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
        shape = tuple(state.count(n) for n in extents)
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
            ranges[letter_] = state.count(extent_)
        state.values.setdefault(name, {})
        for at in itertools.product(*map(range, ranges.values())):
            run(dict(zip(ranges, at, strict=True)))
        state.shapes[name] = shape
