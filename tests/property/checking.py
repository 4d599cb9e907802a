"""Everything a trial must pass: text, inference, oracle, emitted C.

A program is read, printed and read again, inferred, and lowered; its inferred sizes and types are compared with those
of the generator; the oracle (``core/reference.py``) with ``meaning.py``, on tiny extents also with ``loops.py``; what
the C computes with both.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ilang.core import pipeline
from ilang.core.diagnostic import Error, ScheduleError
from ilang.core.ir import kernel
from ilang.core.ir.graph import Graph
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.ir.syntax import same
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.notation.components.combinator import parse_program
from ilang.core.notation.components.printer import print_definition, print_tree
from ilang.core.notation.files.layout import format_module
from ilang.core.notation.files.module import parse_module
from ilang.core.record import replace
from ilang.core.reference import evaluate
from ilang.core.source import Source
from tests.property import emulated, loops, meaning, native, programs
from tests.property.meaning import Known
from tests.property.tally import Counts
from tests.property.trial import Trial, sizes_of

LOOPS_POINTS = 3000
"""Points of all expressions together up to which plain loops are run too."""


@dataclass(frozen=True)
class Failure:
    """What went wrong with a trial: the step (refused, text, inference, oracle, compiler, died, answer), and words."""

    trial: Trial
    step: str
    message: str
    mode: str


@dataclass
class Tally(Counts):
    """What was done."""

    programs: int = 0
    runs: int = 0
    elements: int = 0
    open_elements: int = 0
    by_loops: int = 0
    refused_schedules: int = 0
    failures: list[Failure] = field(default_factory=list)

    @property
    def sanitizer_reports(self) -> int:
        """Processes that died."""
        return sum(failure.step == "died" for failure in self.failures)


@dataclass(frozen=True)
class Lowered:
    """A trial on its way: inferred, and as kernels."""

    trial: Trial
    shaped: Shaped
    program: kernel.Program


class Wrong(Exception):
    """A step of a trial went wrong."""

    def __init__(self, step: str, message: str) -> None:
        super().__init__(f"{step}: {message}")
        self.step = step
        self.message = message


def check(trials: Sequence[Trial], mode: str, with_loops: bool = True) -> Tally:
    """Check a batch of trials in one C program, or one CUDA program on the emulator."""
    machine = GPU if mode in emulated.MODES else CPU
    tally = Tally()
    lowered: list[Lowered] = []
    for trial in trials:
        tally.programs += 1
        try:
            lowered.append(kernels_of(trial, f"p{len(lowered)}", tally, machine))
        except Wrong as wrong:
            tally.failures.append(Failure(trial, wrong.step, wrong.message, mode))
    _check_native(lowered, mode, with_loops, tally)
    return tally


def graph_of(trial: Trial, name: str) -> Graph:
    """The graph of a trial's text, which is printed and read again on the way."""
    source = Source("<trial>", trial.written.text)
    if not trial.written.module:
        tree = parse_program(source)
        printed = print_tree(tree)
        if not same(parse_program(Source("<printed>", printed)), tree):
            raise Wrong("text", f"printed, it reads otherwise: {printed}")
        return pipeline.graph_of(tree, name)
    module = parse_module(source)
    printed = "\n".join(print_definition(definition) for definition in module.definitions)
    again = parse_module(Source("<printed>", printed + "\n"))
    pairs = zip(module.definitions, again.definitions, strict=True)
    if not all(a.parameters == b.parameters and same(a.body, b.body) for a, b in pairs):
        raise Wrong("text", f"printed, it reads otherwise: {printed}")
    tidy = format_module(source)
    if format_module(Source("<tidy>", tidy)) != tidy:
        raise Wrong("text", f"its tidy layout is not tidy: {tidy}")
    return pipeline.module_graph(module, "main")


def kernels_of(trial: Trial, name: str, tally: Tally, machine: Machine) -> Lowered:
    try:
        graph = graph_of(trial, name)
        shapes = [array.shape for array in trial.runs[0]] if trial.fixed else None
        shaped = pipeline.infer(graph, trial.dtypes(), trial.ranks(), shapes)
        shaped = replace(shaped, name=name)  # the graph of a module's definition is called ``main``
        _compare_inference(trial, shaped)
        program = _kernels(shaped, tally, machine)
    except Wrong:
        raise
    except Error as error:
        raise Wrong("refused", str(error)) from None
    except Exception:
        raise Wrong("crashed", traceback.format_exc(limit=-4)) from None
    return Lowered(trial, shaped, program)


def _kernels(shaped: Shaped, tally: Tally, machine: Machine) -> kernel.Program:
    """The kernels of a program; a schedule that is well formed may still be illegal, then it goes without any."""
    try:
        return pipeline.lower(shaped, machine)
    except ScheduleError:
        tally.refused_schedules += 1
    bare = [replace(n, schedule=None) if isinstance(n, Assignment) else n for n in shaped.nodes]
    return pipeline.lower(replace(shaped, nodes=tuple(bare)), machine)


def _compare_inference(trial: Trial, shaped: Shaped) -> None:
    """Types of outputs, and which dimensions have one extent, are what the generator says.

    Two that follow from others by one rule have one, too, which the generator does not know.
    """
    program = trial.program
    known = program.dtypes()
    types = [known[n] or "f32" for n in program.outputs]
    inferred = [shaped.tensors[n].dtype for n in shaped.outputs]
    if types != inferred:
        raise Wrong("inference", f"types {inferred} in place of {types}")
    classes = program.classes()
    ours = [number for n in (*program.inputs, *program.outputs) for number in classes[n]]
    theirs = [s for n in (*shaped.inputs, *shaped.outputs) for s in shaped.tensors[n].dims]
    if len(ours) != len(theirs) or len(set(zip(ours, theirs, strict=True))) != len(set(ours)):
        raise Wrong("inference", f"sizes {theirs} in place of {ours}")
    for run in trial.runs:
        given = (
            (number, extent)
            for n, array in zip(program.inputs, run, strict=True)
            for number, extent in zip(classes[n], array.shape, strict=True)
        )
        extents = programs.completed(program, dict(given))
        assert extents is not None
        if len({(size, extents[number]) for size, number in zip(theirs, ours, strict=True)}) != len(
            {*theirs}
        ):
            raise Wrong("inference", f"sizes {theirs} in place of {ours}")


def _check_native(lowered: list[Lowered], mode: str, with_loops: bool, tally: Tally) -> None:
    """Run a batch and compare; one that the compiler refuses is run one by one."""
    calls, wanted = [], []
    for number, entry in enumerate(lowered):
        for run in entry.trial.runs:
            try:
                known, extents = _expected(entry, run, with_loops, tally)
            except Wrong as wrong:
                tally.failures.append(Failure(entry.trial, wrong.step, wrong.message, mode))
                break
            shapes = tuple(want.value.shape for want in known)
            sizes = zip(entry.shaped.sizes, extents, strict=True)
            free = tuple(extent for size, extent in sizes if size.is_argument())
            calls.append(native.Call(number, free, tuple(run), shapes))
            wanted.append((entry, run, known))
    if not calls:
        return
    try:
        runner = emulated if mode in emulated.MODES else native
        answers = runner.run([entry.program for entry in lowered], calls, mode)
    except Exception as error:
        if len(lowered) == 1:
            tally.failures.append(Failure(lowered[0].trial, "compiler", _said(error), mode))
            return
        for entry in lowered:
            alone = Tally()
            _check_native([entry], mode, False, alone)
            tally.failures += alone.failures
        return
    failed: dict[int, Failure] = {}
    for (entry, run, known), answer in zip(wanted, answers, strict=True):
        trial = Trial(entry.trial.seed, entry.trial.written, entry.trial.fixed, (run,))
        for step, message in _compare(known, answer, tally):
            failed.setdefault(trial.seed, Failure(trial, step, message, mode))
    tally.failures += failed.values()


def _said(error: Exception) -> str:
    if isinstance(error, native.CompileError):
        return str(error)
    return "".join(traceback.format_exception(error, limit=-4))


def _expected(
    entry: Lowered, run: Sequence[Any], with_loops: bool, tally: Tally
) -> tuple[list[Known], tuple[int, ...]]:
    """The right answers of a run, on which the oracle agrees."""
    try:
        extents = pipeline.fit(entry.shaped, [array.shape for array in run])
    except Error as error:
        raise Wrong("refused", str(error)) from None
    known = meaning.evaluate(entry.trial.program, run)
    try:
        answers = evaluate(entry.shaped, run, extents)
    except Exception:
        raise Wrong("oracle", traceback.format_exc(limit=-4)) from None
    for number, (got, want) in enumerate(zip(answers, known, strict=True)):
        wrong = meaning.difference(got, want)
        if wrong is not None:
            raise Wrong("oracle", f"output {number}: {wrong}")
    if with_loops and _work(entry.trial, run) <= LOOPS_POINTS:
        tally.by_loops += 1
        _compare_loops(entry.trial, run, known)
    return known, extents


def _work(trial: Trial, run: Sequence[Any]) -> int:
    """Points of all expressions together."""
    program = trial.program
    extents = programs.completed(program, sizes_of(program, run))
    assert extents is not None
    domains = programs.Classes(program).domains()
    return sum(programs.points(domain, extents) for domain in domains)


def _compare_loops(trial: Trial, run: Sequence[Any], known: Sequence[Known]) -> None:
    """Plain loops agree too."""
    results = loops.evaluate(trial.program, run)
    for number, ((table, dtype), want) in enumerate(zip(results, known, strict=True)):
        got = np.zeros(want.value.shape, meaning.TYPES[dtype])
        for at, x in table.items():
            got[at] = x
        wrong = meaning.difference(got, want)
        if wrong is not None:
            raise Wrong("oracle", f"plain loops, output {number}: {wrong}")


def _compare(
    known: Sequence[Known], answer: native.Answer, tally: Tally
) -> Iterator[tuple[str, str]]:
    """What is wrong with the outputs of one call."""
    tally.runs += 1
    if not answer.outputs and known:
        yield "died", answer.trouble
        return
    if answer.trouble:
        yield "answer", answer.trouble
        return
    for number, (got, want) in enumerate(zip(answer.outputs, known, strict=True)):
        tally.elements += got.size
        if want.error is not None:
            tally.open_elements += int(np.count_nonzero(np.isinf(want.error)))
        result = got
        if want.value.dtype == np.bool_:
            if (got > 1).any():
                yield "answer", f"output {number}: a bool of {got.max()}"
                return
            result = got.astype(np.bool_)
        wrong = meaning.difference(result, want)
        if wrong is not None:
            yield "answer", f"output {number}: {wrong}"
            return
