"""One trial: a program as text, and the arrays it is run on; drawn from a seed, kept as JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.property import programs
from tests.property.meaning import TYPES
from tests.property.programs import Input, Program
from tests.property.writer import Written, write

Array = npt.NDArray[Any]

KINDS = ("small", "small", "small", "small", "positive", "reals", "special")
SPECIAL = (
    *("nan", "inf", "-inf", "0.0", "-0.0", "1.0", "-1.0", "0.5", "3e38", "-3e38", "1e-40"),
    *("1.1754944e-38", "2.0", "-3.0", "100.0", "16777217.0"),
)


@dataclass(frozen=True)
class Trial:
    """A program, whether its extents are fixed when it is compiled, and runs: an array per input each."""

    seed: int
    written: Written
    fixed: bool
    runs: tuple[tuple[Array, ...], ...]

    @property
    def program(self) -> Program:
        """What the text means."""
        return self.written.program

    def dtypes(self) -> list[str]:
        """The element types of the inputs, in the order of the text."""
        nodes = [self.program.nodes[n] for n in self.program.inputs]
        return [node.dtype for node in nodes if isinstance(node, Input)]

    def ranks(self) -> list[int]:
        """The ranks of the inputs, in the order of the text."""
        ranks = self.program.ranks()
        return [ranks[n] for n in self.program.inputs]


def draw(seed: int, filling: bool = False) -> Trial:
    """The trial of a seed; its arrays fill vectors where they are to be ``filling``."""
    rng = random.Random(seed)
    while True:
        program = programs.generate(rng)
        if programs.literals_meet(program):
            continue
        written = write(program, rng)
        fixed = rng.random() < 0.25
        first, second = (
            programs.draw_extents(written.program, rng, filling=filling) for _ in range(2)
        )
        tiny = programs.draw_extents(written.program, rng, tiny=True)
        sizes = [first, first] if fixed else [first, second, tiny]
        runs = tuple(draw_arrays(written.program, size, rng) for size in sizes if size is not None)
        if len(runs) == len(sizes) or (runs and not fixed):
            return Trial(seed, written, fixed, runs)


def draw_arrays(program: Program, extents: dict[int, int], rng: random.Random) -> tuple[Array, ...]:
    """An array per input."""
    shapes = programs.shapes(program, extents)
    numbers = np.random.default_rng(rng.getrandbits(32))
    kind = rng.choice(KINDS)
    limits = programs.limits(program, extents)
    found = []
    for n in program.inputs:
        node = program.nodes[n]
        assert isinstance(node, Input)
        if n in limits:
            indices = numbers.integers(0, max(limits[n], 1), shapes[n])
            found.append(np.asarray(indices, dtype=TYPES[node.dtype]))
            continue
        found.append(draw_array(node.dtype, shapes[n], kind, numbers))
    return tuple(found)


def draw_array(
    dtype: str, shape: tuple[int, ...], kind: str, numbers: np.random.Generator
) -> Array:
    """Mostly small whole numbers, on which most of arithmetic is exact."""
    small = numbers.integers(-4, 5, shape)
    if dtype == "bool":
        return np.asarray(small > 0)
    if kind == "positive":
        small = abs(small) + 1
    if dtype in ("i32", "i64"):
        if kind == "special":
            ends = np.iinfo(TYPES[dtype])
            small = numbers.choice(np.array([ends.min, ends.max, -1, 0, 1, 2, 46341]), shape)
        return np.asarray(small, dtype=TYPES[dtype])
    if kind == "reals":
        return np.asarray(numbers.normal(size=shape), dtype=TYPES[dtype])
    if kind == "special":
        few = np.array([float(word) for word in SPECIAL])
        rare = numbers.random(shape) < numbers.choice((0.05, 0.5))
        return np.asarray(np.where(rare, numbers.choice(few, shape), small), dtype=TYPES[dtype])
    part = numbers.choice((1.0, 1.0, 0.5, 0.25))
    return np.asarray(small * part, dtype=TYPES[dtype])


def save(trial: Trial, folder: Path, remark: Mapping[str, object]) -> Path:
    """Keep a trial; ``remark`` says how it failed."""
    runs = [[_listed(array) for array in run] for run in trial.runs]
    data = {
        "seed": trial.seed,
        **remark,
        "text": trial.written.text,
        "module": trial.written.module,
        "fixed": trial.fixed,
        "program": programs.to_json(trial.program),
        "runs": runs,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{trial.seed}.json"
    path.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    return path


def load(path: Path) -> Trial:
    """The trial that ``save`` kept."""
    data = json.loads(path.read_text("utf-8"))
    program = programs.from_json(data["program"])
    written = Written(program, data["text"], data["module"])
    runs = tuple(tuple(_array(array) for array in run) for run in data["runs"])
    return Trial(data["seed"], written, data["fixed"], runs)


def _listed(array: Array) -> dict[str, object]:
    name = next(name for name, dtype in TYPES.items() if dtype == array.dtype)
    return {"dtype": name, "shape": list(array.shape), "elements": array.ravel().tolist()}


def _array(data: dict[str, Any]) -> Array:
    return np.asarray(data["elements"], dtype=TYPES[data["dtype"]]).reshape(data["shape"])
