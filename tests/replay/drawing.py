"""Lines for the programs that are replayed: everything of samples, benchmarks and golden files, and random programs.

``python -m tests.replay.drawing GROUP`` prints those of a group; ``deep`` groups take other seeds, and more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random

from ilang import Error
from ilang.core.notation.files.module import exports
from tests.golden.test_golden import FOLDER as GOLDEN
from tests.property import bodies, notations, schedules, specs, tensor_programs, trial
from tests.property.tensor_programs import Program
from tests.replay.subjects import ROOT, Subject, module_of

FOLDERS = ("samples", "samples/digits", "bench/programs", "bench/gpu_programs")
DTYPES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "bool": "bool"}
FIRST_DEEP = 100_000
"""The first seed of programs that only deep groups have."""


def files(inner: bool = False) -> Iterator[Subject]:
    """What samples and benchmarks export; with ``inner`` the definitions that these use."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).glob("*.i")):
            name, module = path.relative_to(ROOT).as_posix(), module_of(str(path))
            exported = exports(module)
            chosen = [each for each in module.definitions if (each not in exported) == inner]
            names = (f"{name}:{each.name}" for each in chosen)
            yield from (Subject("program", "-", each) for each in names if not each.endswith(LARGE))


def goldens() -> Iterator[Subject]:
    """The programs of golden files, which hold the texts for one machine each; those of errors are kept there whole."""
    for folder in (GOLDEN, GOLDEN / "cuda"):
        for path in sorted(folder.glob("*.md")):
            yield Subject("program", "-", path.relative_to(ROOT).as_posix())


def random(seeds: Sequence[int]) -> Iterator[Subject]:
    """Programs of expressions: half of them plain, a quarter scheduled, a quarter specifications."""
    for seed in seeds:
        if seed % 4 == 3:
            spec = specs.generate(seed)
            shapes = [array.shape for array in spec.runs[0]]
            yield _program([spec.dtype] * len(shapes), shapes, seed % 8 == 3, spec.text)
            continue
        drawn = schedules.draw(seed) if seed % 4 == 2 else trial.draw(seed)
        shapes = [array.shape for array in drawn.runs[0]]
        yield _program(drawn.dtypes(), shapes, drawn.fixed, drawn.written.text)


def of_notations(seeds: Sequence[int]) -> Iterator[Subject]:
    """Programs of every notation; the extents of every other are fixed."""
    for seed in seeds:
        for number, name in enumerate(notations.NOTATIONS):
            drawn = notations.generate(name, seed)
            shapes = [array.shape for array in drawn.arrays]
            dtypes = [DTYPES[array.dtype.name] for array in drawn.arrays]
            text = drawn.text or (bodies.drawn(Random(seed))[1][0] if name == "named" else "")
            if text:
                yield _program(dtypes, shapes, (seed + number) % 2 == 0, text)


def derivatives(seeds: Sequence[int]) -> Iterator[Subject]:
    """Gradients and directional derivatives: of random programs, and of those of every notation."""
    for seed in seeds:
        drawn = [*random([4 * seed]), *of_notations([seed])]
        yield from (replace(each, kind="gradient") for each in drawn)
        yield from (replace(each, kind="tangent") for each in drawn[seed % 2 :: 2])


def definitions(seeds: Sequence[int]) -> Iterator[Subject]:
    """Random tensor functions and routines."""
    for seed in seeds:
        program = tensor_programs.generate(seed)
        yield Subject("definition", ";".join(_given(program)), f"{program.name}: {program.text}")


def _given(program: Program) -> Iterator[str]:
    for name, shape in program.shapes.items():
        yield f"{name}={_row(shape.batch)}|{_row(shape.output)}"
    for name, value in program.config.items():
        yield f"{name}:{value if value % 1 else int(value)}"


def _row(extents: Sequence[int]) -> str:
    return ",".join(map(str, extents))


def projects() -> Iterator[Subject]:
    """Every sample as a project."""
    for path in sorted((ROOT / "samples").glob("*.i")):
        yield Subject("project", "-", path.relative_to(ROOT).as_posix())


def _program(
    dtypes: Sequence[str], shapes: Sequence[tuple[int, ...]], fixed: bool, text: str
) -> Subject:
    words = [
        f"{dtype}[{','.join(str(n) if fixed else '.' for n in shape)}]"
        for dtype, shape in zip(dtypes, shapes, strict=True)
    ]
    return Subject("program", ";".join(words) or "-", text)


LARGE = ("mlp_train.i:mlp_train", "mlp_train.i:backward")
"""Definitions that take as long as twenty others: they are in ``deep_large``, which is written by hand."""

GROUPS: dict[str, Callable[[], Iterator[Subject]]] = {
    "files": files,
    "goldens": goldens,
    "random": lambda: random(range(240)),
    "notations": lambda: of_notations(range(12)),
    "derivatives": lambda: derivatives(range(5)),
    "definitions": lambda: definitions(range(8)),
    "deep_files": lambda: files(inner=True),
    "deep_random": lambda: random(range(FIRST_DEEP, FIRST_DEEP + 240)),
    "deep_notations": lambda: of_notations(range(FIRST_DEEP, FIRST_DEEP + 40)),
    "deep_derivatives": lambda: derivatives(range(FIRST_DEEP, FIRST_DEEP + 20)),
    "deep_definitions": lambda: definitions(range(FIRST_DEEP, FIRST_DEEP + 60)),
    "deep_projects": projects,
}


def accepted(subjects: Iterator[Subject]) -> Iterator[Subject]:
    """Those that are inferred, each once; definitions of files may be the same."""
    seen = set()
    for subject in subjects:
        with suppress(Error):
            key = subject if subject.kind == "project" else (subject.kind, subject.shaped())
            if key not in seen:
                seen.add(key)
                yield subject


if __name__ == "__main__":
    for subject in accepted(GROUPS[sys.argv[1]]()):
        print(subject.line())
