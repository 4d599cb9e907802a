"""Values in the text that ``i explain`` prints, read and computed, one element at a time.

The rules by which a person reads a value stand here:

    Σ_k x[i,k]·w[k] + b     a reduction is of the whole product that follows it
    Σ_k[k in 0..3] x[i+k]   k goes from 0 to 2
    max_j[j <= i] x[i,j]    what the condition excludes is left out
    max_j x[i,j]            else a letter goes along the dimension in which it stands alone
    Σ_k x[i+k]              else k is an extent by its name, as in ``for k``

Where notes say so, an element outside of an array is 0, or what reads it is left out of the reduction around it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Value = Any
Env = dict[str, int]
Code = Callable[[Env], Value]
Place = tuple[int, ...]

TOKEN = re.compile(
    r"\s*(?:(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)|([A-Za-z_][A-Za-z0-9_]*'*)|(==|!=|<=|>=|//|[ΣΠ]|[^\s]))"
)
INDEX = re.compile(r"(\d+)|([A-Za-z_][A-Za-z0-9_]*'*)|(.)")
FOLD = re.compile(r"(max|min|all|any|odd|argmax|argmin)_([A-Za-z0-9_,']+)")
BOUND = re.compile(r"\s*(\S+) in 0\.\.(\w+)")
OUTSIDE = re.compile(r"(\S+) is 0 outside of its dimensions")
LEFT_OUT = "positions outside of an array are left out"


class Unclear(Exception):
    """A reader cannot tell what a text means."""


class Outside(Exception):
    """An element outside of an array is read, which is left out."""


@dataclass
class State:
    """Arrays so far, element by element; extents by name; what notes say."""

    extents: Mapping[str, int]
    notes: Sequence[str] = ()
    values: dict[str, dict[Place, Value]] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = [OUTSIDE.fullmatch(note) for note in self.notes]
        self.zero = {match[1] for match in found if match}
        self.leaves_out = LEFT_OUT in self.notes
        self.extents = {**{f"n_{name}": n for name, n in self.extents.items()}, **self.extents}

    def give(self, name: str, array: Any) -> None:
        """Give an array a name; its elements are numbers that never wrap, floats in f64."""
        self.shapes[name] = np.shape(array)
        array = np.ravel(array)
        elements = array.tolist() if array.dtype.kind in "biu" else array.astype(np.float64)
        self.values[name] = dict(zip(np.ndindex(self.shapes[name]), elements, strict=True))

    def count(self, word: str) -> int:
        """An extent: a number, or a name."""
        if not word.isdigit() and word not in self.extents:
            raise Unclear(f"how many are {word}?")
        return int(word) if word.isdigit() else self.extents[word]

    def extent(self, name: str, dim: int) -> int:
        """The extent of a dimension: one that is known, or what was stored so far."""
        if name in self.shapes:
            return self.shapes[name][dim]
        return 1 + max((at[dim] for at in self.values.get(name, {})), default=-1)

    def read(self, name: str, at: Place) -> Value:
        """An element."""
        if name not in self.values:
            raise Unclear(f"{name} is read before it is there")
        if at in self.values[name]:
            return self.values[name][at]
        rank = len(self.shapes.get(name, at))
        if rank == len(at) and all(0 <= n < self.extent(name, dim) for dim, n in enumerate(at)):
            raise Unclear(f"{name}{list(at)} is read before it is there")
        if rank != len(at):
            raise Unclear(f"{name} has {rank} dimensions, and is read at {list(at)}")
        if name in self.zero:
            return 0
        if self.leaves_out:
            raise Outside
        raise Unclear(f"{name}{list(at)} is outside, and no note says what it is")

    def array(self, name: str, shape: tuple[int, ...]) -> Any:
        """All elements of an array of a shape."""
        result = np.empty(shape, object)
        if not {*self.values.get(name, {})} == {*np.ndindex(shape)}:
            raise Unclear(f"{name} is not filled as {shape}")
        for at in np.ndindex(shape):
            result[at] = self.values[name][at]
        return result


class Reader:
    """One value, as it is read: recursive descent, a method for each level of precedence."""

    def __init__(self, text: str, state: State, names: Mapping[str, object]) -> None:
        """``names`` are the arrays that there are."""
        self.text = text
        self.state = state
        self.names = names
        self.at = 0
        self.alone: list[dict[str, tuple[str, int]]] = [{}]

    # -- tokens ------------------------------------------------------------------------------------------------------

    def peek(self) -> str:
        match = TOKEN.match(self.text, self.at)
        return match[0].strip() if match else ""

    def take(self, wanted: str | None = None) -> str:
        match = TOKEN.match(self.text, self.at)
        word = match[0].strip() if match else ""
        if wanted is not None and word != wanted:
            raise Unclear(f"{wanted} is expected at {self.text[self.at :]!r} of {self.text!r}")
        self.at = match.end() if match else self.at
        return word

    def value(self) -> Code:
        """The whole text."""
        code = self.logic()
        if self.peek():
            raise Unclear(f"no one reads {self.text[self.at :]!r} of {self.text!r}")
        return code

    # -- levels ------------------------------------------------------------------------------------------------------

    def logic(self) -> Code:
        code = self.comparison()
        while self.peek() in ("and", "or", "xor"):
            code = applied(LOGIC[self.take()], code, self.comparison())
        return code

    def comparison(self) -> Code:
        if self.peek() == "not":
            self.take()
            return applied(lambda x: not x, self.atom())
        code = self.sum()
        if self.peek() in COMPARED:
            first, middle = self.take(), self.sum()
            code = applied(COMPARED[first], code, middle)
            if (first, self.peek()) == ("<=", "<"):  # 0 <= i-1 < n
                self.take()
                code = applied(LOGIC["and"], code, applied(COMPARED["<"], middle, self.sum()))
            if self.peek() in COMPARED:
                raise Unclear(f"two comparisons in a row: {self.text!r}")
        return code

    def sum(self) -> Code:
        if self.peek() in ("−", "-"):
            self.take()
            code = applied(lambda x: -x, self.product())
        else:
            code = self.product()
        while self.peek() in ("+", "−", "-"):
            code = applied(ARITHMETIC[self.take()], code, self.product())
        return code

    def product(self) -> Code:
        code = self.power()
        while self.peek() in ("·", "/", "//"):
            code = applied(ARITHMETIC[self.take()], code, self.power())
        return code

    def power(self) -> Code:
        code = self.atom()
        if self.peek() == "²":
            self.take()
            code = applied(lambda x: x * x, code)
        if self.peek() == "^":
            self.take()
            code = applied(lambda x, y: as_float(x) ** as_float(y), code, self.atom())
        return code

    def atom(self) -> Code:
        word = self.take()
        if word == "(":
            return self.parenthesis()
        if word in ("Σ", "Π"):
            letters = self.take()
            if not letters.startswith("_"):
                raise Unclear(f"{word} of what? {self.text!r}")
            return self.fold(word, self.listed(letters[1:]))
        if re.match(r"[\d.]", word):
            number = float(word)
            exact = np.float64(number) if re.search("[.e]", word) else int(word)
            if re.match(r"[A-Za-z_]", self.text[self.at :]):  # 2i of an index in a condition
                return applied(ARITHMETIC["·"], lambda _: exact, self.atom())
            return lambda _: exact
        if word in CONSTANTS:
            return lambda _: CONSTANTS[word]
        return self.named(word)

    def listed(self, letters: str) -> list[str]:
        """The letters of a reduction: ``ij``, or names with commas between them."""
        names = [letters]
        while self.text.startswith(",", self.at):
            self.take(",")
            names.append(self.take())
        whole = re.search(rf"\b{letters}\b", self.text[self.at :])  # an index has a long name
        if whole or len(names) > 1 or not re.fullmatch(r"(?:[A-Za-z]'*)+", letters):
            return names
        return re.findall(r"[A-Za-z]'*", letters)

    def parenthesis(self) -> Code:
        code = self.logic()
        if self.peek() != "if":
            self.take(")")
            return code
        self.take("if")
        condition = self.logic()
        self.take("else")
        other = self.logic()
        self.take(")")
        return lambda env: code(env) if condition(env) else other(env)

    def named(self, word: str) -> Code:
        fold = FOLD.fullmatch(word)
        if fold and word not in self.names:
            return self.fold(fold[1], self.listed(fold[2]))
        if self.text.startswith("[", self.at):
            return self.element(word)
        if self.text.startswith("(", self.at):
            return self.call(word)
        if word in self.names:
            return lambda env: env[word] if word in env else self.state.read(word, ())
        return lambda env: letter(env, self.state, word)

    def call(self, word: str) -> Code:
        self.take("(")
        inside = [self.logic()]
        while self.peek() == ",":
            self.take()
            inside.append(self.logic())
        self.take(")")
        if word not in FUNCTIONS:
            raise Unclear(f"there is no function {word}: {self.text!r}")
        return applied(FUNCTIONS[word], *inside)

    def element(self, name: str) -> Code:
        start = self.at + 1
        self.at = end = closing(self.text, start)
        parts = split_index(self.text[start : end - 1])
        for dim, part in enumerate(parts):
            if re.fullmatch(r"[A-Za-z_]\w*'*", part):
                self.alone[-1].setdefault(part, (name, dim))
            self.see(part)
        codes = [index_code(part, self.state) for part in parts]
        return lambda env: self.state.read(name, tuple(code(env) for code in codes))

    def see(self, part: str) -> None:
        """Note where letters stand alone in an element that is an index."""
        for name, parts in elements(part):
            for dim, inner in enumerate(parts):
                self.alone[-1].setdefault(inner, (name, dim))
                self.see(inner)

    # -- reductions --------------------------------------------------------------------------------------------------

    def fold(self, word: str, letters: Sequence[str]) -> Code:
        conditions: list[Code] = []
        bounds: dict[str, Code] = {}
        if self.text.startswith("[", self.at):
            self.take("[")
            while True:
                bound = BOUND.match(self.text, self.at)
                if bound:
                    self.at = bound.end()
                    bounds[bound[1]] = extent_code(bound[2], self.state)
                else:
                    conditions.append(self.comparison())
                if self.peek() == "]":
                    break
                self.take(",")
            self.take("]")
        self.alone.append({})
        body = self.product()
        alone = self.alone.pop()
        for name, place in alone.items():
            if name not in letters:
                self.alone[-1].setdefault(name, place)
        return lambda env: self.folded(
            word, [limit(bounds, alone, each, self.state) for each in letters], letters,
            conditions, body, env,
        )  # fmt: skip

    def folded(
        self,
        word: str,
        limits: Sequence[Code],
        letters: Sequence[str],
        conditions: Sequence[Code],
        body: Code,
        env: Env,
    ) -> Value:
        found, places = [], []
        for at in itertools.product(*(range(each(env)) for each in limits)):
            inner = {**env, **dict(zip(letters, at, strict=True))}
            try:
                if all(condition(inner) for condition in conditions):
                    found.append(body(inner))
                    places.append(at)
            except Outside:
                continue
        if word in ("argmax", "argmin"):
            if not found:
                return 0
            best = (np.nanargmax if word == "argmax" else np.nanargmin)(
                [np.float64(each) for each in found]
            )
            (place,) = places[int(best)]
            return place
        return FOLDS[word](found)


def limit(
    bounds: Mapping[str, Code], alone: Mapping[str, tuple[str, int]], name: str, state: State
) -> Code:
    """How far a letter goes: to its bound, else along the dimension where it stands alone."""
    if name in bounds:
        return bounds[name]
    if name in alone:
        return lambda _: state.extent(*alone[name])
    if name not in state.extents:
        raise Unclear(f"how far does {name} go?")
    return lambda _: state.extents[name]


def split_index(text: str) -> list[str]:
    """The parts of an index; commas in brackets are not between them."""
    parts, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += {"[": 1, "]": -1}.get(c, 0)
        if c == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def elements(text: str) -> Iterator[tuple[str, list[str]]]:
    """The elements in an index: the name of each, and its own index."""
    end = 0
    for match in re.finditer(r"([A-Za-z_]\w*)\[", text):
        if end <= match.start():
            end = closing(text, match.end())
            yield match[1], split_index(text[match.end() : end - 1])


def closing(text: str, start: int) -> int:
    """The place after the bracket that closes the one before ``start``."""
    depth, end = 1, start
    while depth:
        depth += {"[": 1, "]": -1}.get(text[end], 0)
        end += 1
    return end


def index_code(text: str, state: State) -> Code:
    """An index: numbers, letters with a factor before them, extents and elements, with signs between them."""
    terms: list[tuple[int, Code]] = []
    at = 0
    while at < len(text):
        sign = 1
        if text[at] in "+-":
            sign, at = (-1 if text[at] == "-" else 1), at + 1
        number = re.compile(r"\d+").match(text, at)
        factor = int(number[0]) if number else 1
        at = number.end() if number else at
        name = re.compile(r"[A-Za-z_]\w*'*").match(text, at)
        if not name:
            if not number:
                raise Unclear(f"what index is {text!r}?")
            terms.append((sign * factor, lambda _: 1))
            continue
        at = name.end()
        if text.startswith("[", at):
            end = closing(text, at + 1)
            terms.append((sign * factor, looked(name[0], text[at + 1 : end - 1], state)))
            at = end
        else:
            over = re.compile(r"/(\d+)").match(text, at)
            at = over.end() if over else at
            terms.append((sign * factor, letter_code(name[0], state, int(over[1]) if over else 1)))
    return lambda env: sum(factor * int(code(env)) for factor, code in terms)


def extent_code(word: str, state: State) -> Code:
    """The extent after ``0..``."""
    number = state.count(word)
    return lambda _: number


def looked(name: str, inside: str, state: State) -> Code:
    """An element that is an index."""
    codes = [index_code(part, state) for part in split_index(inside)]
    return lambda env: state.read(name, tuple(code(env) for code in codes))


def letter_code(name: str, state: State, over: int = 1) -> Code:
    def run(env: Env) -> Value:
        share, left = divmod(letter(env, state, name), over)
        if left:
            raise Unclear(f"{name} is no multiple of {over}")
        return share

    return run


def letter(env: Env, state: State, name: str) -> Value:
    """A letter of a loop around, an extent, or a scalar."""
    if name in env:
        return env[name]
    if () in state.values.get(name, {}):
        return state.read(name, ())
    if name in state.extents:
        return state.extents[name]
    raise Unclear(f"what is {name}?")


def applied(function: Callable[..., Value], *parts: Code) -> Code:
    return lambda env: function(*(part(env) for part in parts))


def as_float(x: Value) -> Any:
    return np.float64(x)


def larger(x: Value, y: Value) -> Value:
    """The larger of two numbers; -0 is smaller than 0."""
    if not isinstance(x + y, float):
        return max(x, y)
    return x + y if x == y == 0 else np.maximum(x, y)


def smaller(x: Value, y: Value) -> Value:
    """The smaller of two numbers; -0 is smaller than 0."""
    if not isinstance(x + y, float):
        return min(x, y)
    return -(-x - y) if x == y == 0 else np.minimum(x, y)


def total(found: Sequence[Value]) -> Value:
    return sum(found, 0)


def product(found: Sequence[Value]) -> Value:
    result: Value = 1
    for each in found:
        result = result * each
    return result


def extreme(step: Callable[[Value, Value], Value], start: float) -> Callable[..., Value]:
    def run(found: Sequence[Value]) -> Value:
        result: Value = found[0] if found else np.float64(start)
        for each in found:
            result = step(result, each)
        return result

    return run


def whole(low: int, high: int) -> Callable[[Value], int]:
    """A conversion to an integer type: towards zero; the smallest one of what does not fit."""

    def run(x: Value) -> int:
        if isinstance(x, int):
            return (x - low) % (high - low + 1) + low
        return int(x) if low <= x < high + 1 else low

    return run


def of_float(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    return lambda x: function(as_float(x))


LOGIC: dict[str, Callable[..., Value]] = {
    "and": lambda x, y: bool(x) and bool(y),
    "or": lambda x, y: bool(x) or bool(y),
    "xor": lambda x, y: bool(x) != bool(y),
}
COMPARED: dict[str, Callable[..., Value]] = {
    "==": lambda x, y: bool(x == y),
    "!=": lambda x, y: bool(x != y),
    "<=": lambda x, y: bool(x <= y),
    ">=": lambda x, y: bool(x >= y),
    "<": lambda x, y: bool(x < y),
    ">": lambda x, y: bool(x > y),
}
ARITHMETIC: dict[str, Callable[..., Value]] = {
    "+": lambda x, y: x + y,
    "−": lambda x, y: x - y,
    "-": lambda x, y: x - y,
    "·": lambda x, y: x * y,
    "/": lambda x, y: as_float(x) / as_float(y),
    "//": lambda x, y: np.floor_divide(x, y) if isinstance(x + y, float) else x // y if y else 0,
}
FUNCTIONS: dict[str, Callable[..., Value]] = {
    **{name: of_float(getattr(np, name)) for name in ("exp", "sqrt", "log", "sin", "cos", "tanh")},
    "erf": of_float(math.erf),
    "max": larger,
    "min": smaller,
    "bool": bool,
    "i32": whole(-(2**31), 2**31 - 1),
    "i64": whole(-(2**63), 2**63 - 1),
}
FOLDS: dict[str, Callable[..., Value]] = {
    "Σ": total,
    "Π": product,
    "max": extreme(larger, -np.inf),
    "min": extreme(smaller, np.inf),
    "all": lambda found: all(map(bool, found)),
    "any": lambda found: any(map(bool, found)),
    "odd": lambda found: sum(map(bool, found)) % 2 == 1,
}
CONSTANTS = {
    "inf": np.float64(np.inf), "nan": np.float64(np.nan), "true": True, "false": False,
}  # fmt: skip
