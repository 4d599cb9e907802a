"""What the compiler writes of a program, from its syntax down to C and CUDA: text by text, in order, each by its name.

Names of stages are those of ``i explain --emit``; before those of a machine stands its target: ``c/fused``. Beside
them there is what is no stage: ``fit`` is what extents of arrays come to, ``c/header`` how a caller sees the functions,
``cuda/calls`` what the host does at some sizes, and ``project/c/Makefile`` a file of a project. Where a program is
refused, the diagnostic stands in place of all that would follow.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from ilang import Error
from ilang.codegen.targets import c, c_header, cuda, cuda_header
from ilang.codegen.targets.cuda_call import NUMBER, WORKSPACE, DeviceCall, Value, call_of
from ilang.core import pipeline
from ilang.core.explain.assignments import assignments_text
from ilang.core.explain.extents import extents_text
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import MACHINES
from ilang.core.notation.functions.printing import print_program
from ilang.icli.main import main
from tests.replay.subjects import Subject

Texts = dict[str, str]

EXTENTS = ((3, 5, 7, 2), (64, 1, 33, 256), (0, 4))
"""Extents of sizes, in turn: primes; what tiles and blocks are, and ends of it; none."""

STORED = re.compile(r"\b\d+\.\d*(e[-+]?\d+)?")
"""A number of a self-test: its last digits are NumPy's, which differ from one processor to another."""


def texts_of(subject: Subject) -> Texts:
    """Every text of a program, by its name."""
    texts: Texts = {}
    with _diagnosed(texts, "error"):
        if subject.kind == "project":
            _project(subject, texts)
        else:
            shaped = _above(subject, texts)
            for target in MACHINES:
                with _diagnosed(texts, f"{target}/error"):
                    _below(shaped, target, texts)
    return texts


@contextmanager
def _diagnosed(texts: Texts, name: str) -> Iterator[None]:
    """A context in which a program may be refused."""
    try:
        yield
    except Error as error:
        texts[name] = str(error)


def _above(subject: Subject, texts: Texts) -> Shaped:
    """The program inferred; the texts down to there."""
    if subject.kind == "definition":
        function, given = subject.function(), (subject.shapes(), subject.configuration())
        texts["graph"] = pipeline.graph_text(function.graph(*given))
        shaped = function.shaped(*given)
        texts["gradients"] = assignments_text(shaped)
    else:
        graph, ranks = subject.graph, subject.inputs.ranks
        if subject.kind == "program":
            if subject.file() is None:
                texts["syntax"] = print_program(pipeline.text_program(subject.text))
            texts["graph"] = pipeline.graph_text(graph)
            texts["expanded"] = pipeline.graph_text(pipeline.einx_to_graph(graph, ranks))
            texts["extents"] = extents_text(pipeline.solve(graph, ranks))
        shaped = subject.shaped()
    texts["shapes"] = pipeline.shapes_text(shaped)
    texts["fit"] = "".join(_fitted(shaped, extents) for extents in EXTENTS)
    return shaped


def _fitted(shaped: Shaped, extents: Sequence[int]) -> str:
    """The extents that arrays come to where sizes are so many, in turn, or why they do not fit."""
    numbers = [
        extents[n % len(extents)] if size.fixed is None else size.fixed
        for n, size in enumerate(shaped.sizes)
    ]
    dims = [shaped.tensors[value].dims for value in shaped.inputs]
    try:
        fitted = pipeline.fit(shaped, [tuple(numbers[size] for size in each) for each in dims])
    except Error as error:
        return f"{error}\n"
    return f"{' '.join(map(str, fitted))}\n"


def _below(shaped: Shaped, target: str, texts: Texts) -> None:
    """The texts of a program from there to what is emitted for a target."""
    program, show, text = None, None, ""
    for step, value in pipeline.steps_below(shaped, MACHINES[target]):
        if value is not program or step.show is not show:
            program, show, text = value, step.show, step.show(value)
        texts[f"{target}/{step.stage}"] = text
    assert program is not None
    host = pipeline.host_of(program)
    texts[f"{target}/host"] = pipeline.HOST.show(host)
    if target == "cuda":
        arguments = sum(size.is_argument() for size in host.program.sizes)
        given = [[extents[n % len(extents)] for n in range(arguments)] for extents in EXTENTS]
        texts["cuda/calls"] = "".join(_call(call_of(host, each)) for each in given)
        texts["cuda/header"] = cuda_header.emit_header([host.program], "program")
        texts["cuda/emitted"] = cuda.emit(host.program)
    else:
        texts["c/header"] = c_header.emit_header([host.program], "program")
        texts["c/emitted"] = c.emit(host.program)


def _call(call: DeviceCall | None) -> str:
    """What a host does for one call."""
    if call is None:
        return "does not fit\n"
    lines = [f"bytes {call.total} aligned {call.alignment} read {call.read} told {call.outside}"]
    lines += [f"argument {number}: {count} bytes" for number, count in call.table]
    begin, count = call.marks
    lines += [f"fill {_value((WORKSPACE, begin))}: {count} bytes"] if count else []
    for each in call.starts:
        given = ", ".join(map(_value, each.values))
        lines.append(f"start {each.kernel} on {each.grid} of {each.block}: {given}")
    return "\n".join(lines) + "\n"


def _value(value: Value) -> str:
    """An argument of a kernel."""
    base, offset = value
    if base == NUMBER:
        return str(offset)
    return f"{'workspace' if base == WORKSPACE else f'argument {base}'} + {offset}"


def _project(subject: Subject, texts: Texts) -> None:
    """The files of a project for each target."""
    words = [f"--shape={name}={shape}" for name, shape in subject.shapes().items()]
    words += [f"--config={name}={value}" for name, value in subject.configuration().items()]
    for target in MACHINES:
        with tempfile.TemporaryDirectory() as name:
            command = ["build", str(subject.file()), f"--target={target}", f"-o={name}", *words]
            said = io.StringIO()
            with redirect_stdout(said), redirect_stderr(said):
                status = main(command)
            assert status == 0, (command, said.getvalue())
            paths = sorted(Path(name).iterdir())
            stem = next(path.stem for path in paths if path.suffix == ".h")
            for path in paths:
                ending = path.name.removeprefix(stem)
                text = path.read_text("ascii")
                if ending == "_test.c":
                    text = STORED.sub("0.0", text)
                texts[f"project/{target}/{ending}"] = text
