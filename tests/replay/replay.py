"""The C of many programs, each as one hash: what shows whether a change of the compiler changed what it writes.

``programs.txt`` holds a program a line: the hash of its C, the type and the extents of each input (``.`` is a run-time
extent), and its text. Samples and benchmarks are named by their file and definition instead; of tensor functions and
routines, which are those with ``name=rows`` for each input, it is the program of a session, gradients and updates
included. A refactoring leaves the file as it is; a change that is meant shows in its commit which programs it touched
(``pytest --update``).

``python tests/replay/replay.py --draw 240`` draws new random programs: of all operators, of specifications, and with
written schedules.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from ilang import Error  # noqa: E402 - found through the line above
from ilang.codegen.runtime.model import Model, options_of  # noqa: E402
from ilang.codegen.runtime.solved import SolvedDefinition  # noqa: E402
from ilang.codegen.targets.c import emit  # noqa: E402
from ilang.core import pipeline  # noqa: E402
from ilang.core.ir.graph import Graph  # noqa: E402
from ilang.core.ir.shaped import Shaped  # noqa: E402
from ilang.core.ir.syntax import Module  # noqa: E402
from ilang.core.notation.module import parse_module  # noqa: E402
from ilang.core.source import Source  # noqa: E402
from tests.property import schedules, specs, trial  # noqa: E402

PROGRAMS = Path(__file__).with_name("programs.txt")
FOLDERS = ("samples", "samples/digits", "bench/programs")
SESSIONS = {
    "samples/training/moons.i:step": "x=64|2;t=64|1",
    "samples/training/digits.i:step": "x=32|64;t=32|10",
    "samples/training/digits_conv.i:step": "x=32|64;t=32|10",
    "samples/training/chars/chars.i:step": "x=4,16|;y=4,16|",
}


def replayed(line: str) -> str:
    """A line of the file with the hash that its program has now."""
    _, inputs, text = line.split(None, 2)
    emitted = emit(pipeline.lower(shaped_of(line)))
    return " ".join((hashlib.sha256(emitted.encode()).hexdigest()[:16], inputs, text))


def _graph(text: str) -> Graph:
    """The graph of a program, or of ``FILE:DEFINITION``."""
    path, _, name = text.partition(":")
    if path.endswith(".i"):
        return pipeline.module_graph(_module(ROOT / path), name)
    return pipeline.graph_of(pipeline.text_component(text), "program")


def _session(inputs: str, text: str) -> Shaped:
    """The program of a session of ``FILE:DEFINITION``, for ``x=64|8;t=64|``."""
    path, _, name = text.partition(":")
    shapes = dict(part.split("=") for part in inputs.split(";"))
    model = Model(_module(ROOT / path))
    return SolvedDefinition(model, options_of(name, shapes, {}, {})).shaped()


def _module(path: Path) -> Module:
    return parse_module(Source(path.name, path.read_text("utf-8")))


def shaped_of(line: str) -> Shaped:
    """The program of a line for its inputs, such as ``f32[.,.];i64[2,3]``; ``-`` leaves all of them to the program."""
    _, inputs, text = line.split(None, 2)
    if "=" in inputs:
        return _session(inputs, text)
    graph = _graph(text)
    if inputs == "-":
        return pipeline.infer(graph)
    words = [word.rstrip("]").partition("[") for word in inputs.split(";")] if inputs else []
    shapes = [tuple(dims.split(",")) if dims else () for _, _, dims in words]
    numbers = [tuple(map(int, dims)) for dims in shapes if "." not in dims]
    return pipeline.infer(
        graph,
        [dtype for dtype, _, _ in words],
        [len(dims) for dims in shapes],
        numbers if len(numbers) == len(shapes) else None,
    )


def _files() -> Iterator[str]:
    """Every definition of samples and benchmarks, as a line without a hash."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).glob("*.i")):
            for definition in _module(path).definitions:
                yield f"? - {path.relative_to(ROOT).as_posix()}:{definition.name}"
    yield from (f"? {inputs} {text}" for text, inputs in SESSIONS.items())


def _drawn(count: int) -> Iterator[str]:
    """Random programs, as lines without a hash: half of them plain, a quarter scheduled, a quarter specifications."""
    for seed in range(count):
        if seed % 4 == 3:
            spec = specs.generate(seed)
            fixed = seed % 8 == 3
            yield _line(
                [spec.dtype] * len(spec.runs[0]), [a.shape for a in spec.runs[0]], fixed, spec.text
            )
            continue
        drawn = schedules.draw(seed) if seed % 4 == 2 else trial.draw(seed)
        shapes = [array.shape for array in drawn.runs[0]]
        yield _line(drawn.dtypes(), shapes, drawn.fixed, drawn.written.text)


def _line(dtypes: Sequence[str], shapes: Sequence[tuple[int, ...]], fixed: bool, text: str) -> str:
    words = [
        f"{dtype}[{','.join(str(n) if fixed else '.' for n in shape)}]"
        for dtype, shape in zip(dtypes, shapes, strict=True)
    ]
    return f"? {';'.join(words) or '-'} {text}"


def _accepted(lines: Iterator[str]) -> Iterator[str]:
    """The lines of one line each whose programs are not refused, with their hashes."""
    for line in lines:
        if "\n" in line:
            continue
        try:
            yield replayed(line)
        except Error:
            continue


def main() -> None:
    """Write the file anew."""
    parser = argparse.ArgumentParser(description="Draw the programs whose C is replayed.")
    parser.add_argument("--draw", type=int, required=True, help="how many random programs")
    count = parser.parse_args().draw
    lines = [*_accepted(_files()), *_accepted(_drawn(count))]
    PROGRAMS.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
