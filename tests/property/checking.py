"""Everything a trial must pass: text, inference, oracle, emitted C.

A program is read, printed and read again, inferred, and lowered; its inferred sizes and types are compared with those
of the generator; the oracle (``core/reference.py``) with ``meaning.py``; what the C computes with both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ilang.core import pipeline
from ilang.core.diagnostic import ScheduleError
from ilang.core.ir.graph import Graph
from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.ir.syntax import same
from ilang.core.machine import Machine
from ilang.core.notation.components.combinator import parse_program
from ilang.core.notation.components.printer import print_definition, print_tree
from ilang.core.notation.files.layout import format_module
from ilang.core.notation.files.module import parse_module
from ilang.core.record import replace
from ilang.core.reference import evaluate
from ilang.core.source import Source
from tests.property import meaning, programs
from tests.property.batch import Comparison, Subject, compiled, machine_of
from tests.property.meaning import Known
from tests.property.tally import Tally
from tests.property.trial import Trial


def check(trials: Sequence[Trial], mode: str) -> Tally:
    """Check a batch of trials in one C program, or one CUDA program on the emulator."""
    tally = Tally()
    subjects: list[Subject] = []
    for trial in trials:
        tally.count(programs=1)
        says = [trial.written.text]
        with tally.noting(trial.seed, says):
            shaped = shaped_of(trial, f"p{len(subjects)}")
            legal, kernels = legal_of(shaped, machine_of(mode))
            tally.count(refused_schedules=legal is not shaped)
            runs = [_run(trial, shaped, run, tally) for run in trial.runs]
            subjects.append(Subject(trial.seed, says[0], shaped, kernels, runs))
    compiled(subjects, mode, tally)
    return tally


def graph_of(trial: Trial, name: str) -> Graph:
    """The graph of a trial's text, which is printed and read again on the way."""
    source = Source("<trial>", trial.written.text)
    if not trial.written.module:
        tree = parse_program(source)
        printed = print_tree(tree)
        if not same(parse_program(Source("<printed>", printed)), tree):
            raise AssertionError(f"printed, it reads otherwise: {printed}")
        return pipeline.graph_of(tree, name)
    module = parse_module(source)
    printed = "\n".join(print_definition(definition) for definition in module.definitions)
    again = parse_module(Source("<printed>", printed + "\n"))
    pairs = zip(module.definitions, again.definitions, strict=True)
    if not all(a.parameters == b.parameters and same(a.body, b.body) for a, b in pairs):
        raise AssertionError(f"printed, it reads otherwise: {printed}")
    tidy = format_module(source)
    if format_module(Source("<tidy>", tidy)) != tidy:
        raise AssertionError(f"its tidy layout is not tidy: {tidy}")
    return pipeline.module_graph(module, "main")


def shaped_of(trial: Trial, name: str) -> Shaped:
    """A trial inferred, as the generator says it must be."""
    graph = graph_of(trial, name)
    shapes = [array.shape for array in trial.runs[0]] if trial.fixed else None
    shaped = pipeline.infer(graph, trial.dtypes(), trial.ranks(), shapes)
    shaped = replace(shaped, name=name)  # the graph of a module's definition is called ``main``
    _compare_inference(trial, shaped)
    return shaped


def legal_of(shaped: Shaped, machine: Machine) -> tuple[Shaped, Program]:
    """A program and its kernels, without any schedule where one that is well formed is illegal."""
    try:
        return shaped, pipeline.lower(shaped, machine)
    except ScheduleError:
        bare = [replace(n, schedule=None) if isinstance(n, Assignment) else n for n in shaped.nodes]
        legal = replace(shaped, nodes=tuple(bare))
        return legal, pipeline.lower(legal, machine)


def _compare_inference(trial: Trial, shaped: Shaped) -> None:
    """Types of outputs, and which dimensions have one extent, are what the generator says.

    Two that follow from others by one rule have one, too, which the generator does not know.
    """
    program = trial.program
    known = program.dtypes()
    types = [known[n] or "f32" for n in program.outputs]
    inferred = [shaped.tensors[n].dtype for n in shaped.outputs]
    assert types == inferred, f"types {inferred} in place of {types}"
    classes = program.classes()
    ours = [number for n in (*program.inputs, *program.outputs) for number in classes[n]]
    theirs = [s for n in (*shaped.inputs, *shaped.outputs) for s in shaped.tensors[n].dims]
    says = f"sizes {theirs} in place of {ours}"
    assert len(ours) == len(theirs), says
    assert len(set(zip(ours, theirs, strict=True))) == len(set(ours)), says
    for run in trial.runs:
        given = (
            (number, extent)
            for n, array in zip(program.inputs, run, strict=True)
            for number, extent in zip(classes[n], array.shape, strict=True)
        )
        extents = programs.completed(program, dict(given))
        assert extents is not None
        pairs = {(size, extents[number]) for size, number in zip(theirs, ours, strict=True)}
        assert len(pairs) == len({*theirs}), says


def _run(trial: Trial, shaped: Shaped, arrays: Sequence[Any], tally: Tally) -> Comparison:
    """A run, on whose right answers the oracle agrees."""
    extents = pipeline.fit(shaped, [array.shape for array in arrays])
    known = meaning.evaluate(trial.program, arrays)
    _compare(known, evaluate(shaped, arrays, extents))
    errors = [want.error for want in known if want.error is not None]
    tally.count(open_elements=sum(int(np.count_nonzero(np.isinf(error))) for error in errors))
    return Comparison(arrays, partial(_compare, known))


def _compare(known: Sequence[Known], outputs: Sequence[Any]) -> None:
    """Outputs are what is known of them; a bool of a program is the byte 0 or 1."""
    for number, (got, want) in enumerate(zip(outputs, known, strict=True)):
        result = got
        if want.value.dtype == np.bool_ and got.dtype != np.bool_:
            assert (got <= 1).all(), f"output {number}: a bool of {got.max()}"
            result = got.astype(np.bool_)
        wrong = meaning.difference(result, want)
        assert wrong is None, f"output {number}: {wrong}"
