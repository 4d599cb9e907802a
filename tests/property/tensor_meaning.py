"""What tensor functions and routines mean, by NumPy alone: nothing of the compiler is used.

A run evaluates names where they are first needed, and keeps what stands on the left of assignments. To see how a value
changes with a parameter, a run is repeated with other parameters: what is ``held`` (what a routine keeps, and what
``stop_gradient`` gives) stays in it as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Key = tuple[object, ...]


class Owner:
    """A use of a definition: whose strings are parameters of their own. Its path is known once all are."""

    def __init__(self, parent: Owner | None = None, name: str = "") -> None:
        self.parent = parent
        self.name = name
        self.children: dict[Key, Owner] = {}
        self.strings: dict[Key, tuple[int, ...]] = {}

    def child(self, key: Key, name: str) -> Owner:
        """The use of a definition at some place of the text, in some turn."""
        if key not in self.children:
            self.children[key] = Owner(self, name)
        return self.children[key]

    def path(self) -> str:
        """Names from the definition that is run to here, each ended by a point."""
        if self.parent is None:
            return ""
        alike = [each for each in self.parent.children.values() if each.name == self.name]
        number = f"_{alike.index(self) + 1}" if 1 < len(alike) else ""
        return f"{self.parent.path()}{self.name}{number}."

    def path_of(self, key: Key) -> str:
        """The path of a parameter: its name, and in a ``repeat`` its turn."""
        alike = [each for each in self.strings if each[0] == key[0]]
        number = f"_{alike.index(key) + 1}" if 1 < max(len(alike), len(key)) else ""
        return f"{self.path()}{key[0]}{number}"

    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Every parameter from here on: extents by path."""
        found = {self.path_of(key): dims for key, dims in self.strings.items()}
        for each in self.children.values():
            found.update(each.parameters())
        return found


@dataclass
class Run:
    """One run: what comes in, what lasts; whether it only looks which parameters there are."""

    inputs: Mapping[str, Array]
    config: Mapping[str, float]
    parameters: dict[str, Array]
    cells: dict[str, Array]
    gradients: Mapping[str, Array] = field(default_factory=dict)
    looks: bool = False
    replayed: list[Array] | None = None
    held: list[Array] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    state: set[str] = field(default_factory=set)
    returned: list[Array] = field(default_factory=list)
    backward: Array | None = None

    def hold(self, value: Array) -> Array:
        """A value that stays as it was where parameters are others."""
        if self.replayed is not None:
            value = self.replayed[len(self.held)]
        self.held.append(value)
        return value

    def cell(self, path: str, dims: tuple[int, ...]) -> Array:
        """What a declared tensor has now; read before it is written it is state."""
        if path not in self.written:
            self.state.add(path)
        return self.hold(self.cells.get(path, np.zeros(dims)))

    def write(self, path: str, value: Array) -> None:
        """Give a declared tensor other values."""
        self.written.add(path)
        self.cells[path] = value


class Frame:
    """One evaluation of a body: what names mean in it."""

    def __init__(
        self, run: Run, owner: Owner, names: Mapping[str, Array], turns: tuple[int, ...] = ()
    ) -> None:
        self.run = run
        self.owner = owner
        self.values: dict[str, Array] = dict(names)
        self.bound: dict[str, Meaning] = {}
        self.turns = turns

    def bind(self, name: str, meaning: Meaning) -> None:
        """A name is computed where it is first needed; who only looks, looks now."""
        self.bound[name] = meaning
        if self.run.looks:
            self.read(name)

    def read(self, name: str) -> Array:
        """The tensor of a name."""
        if name not in self.values:
            self.values[name] = self.bound[name](self)
        return self.values[name]

    def parameter(self, name: str, dims: tuple[int, ...]) -> Array:
        """The parameter that a string declares."""
        key = (name, *self.turns)
        self.owner.strings.setdefault(key, dims)
        if self.run.looks:
            return np.full(dims, 0.5)
        return self.run.parameters[self.owner.path_of(key)]

    def turn(self, name: str, value: Array, number: int) -> Frame:
        """The body of a ``repeat``, whose name has this value."""
        inner = Frame(self.run, self.owner, self.values, (*self.turns, number))
        inner.bound = self.bound
        inner.values[name] = value
        return inner


Meaning = Callable[[Frame], Array]
Statement = Callable[[Frame], None]


@dataclass(frozen=True)
class Shape:
    """The extents of a batch row and of an output row."""

    batch: tuple[int, ...]
    output: tuple[int, ...]

    def dims(self) -> tuple[int, ...]:
        """The extents in memory."""
        return (*self.batch, *self.output)

    def text(self) -> str:
        """As sessions take it."""
        return f"{','.join(map(str, self.batch))}|{','.join(map(str, self.output))}"


def meets(one: Shape, other: Shape) -> Shape | None:
    """The shape of two that go element by element, None where they do not."""
    try:
        batch = np.broadcast_shapes(one.batch, other.batch)
        return Shape(batch, np.broadcast_shapes(one.output, other.output))
    except ValueError:
        return None


def stretched(array: Array, shape: Shape, to: Shape) -> Array:
    """An array whose rows, each from its last axis on, are those of another shape."""
    ones = (1,) * (len(to.batch) - len(shape.batch)), (1,) * (len(to.output) - len(shape.output))
    return np.broadcast_to(
        array.reshape((*ones[0], *shape.batch, *ones[1], *shape.output)), to.dims()
    )
