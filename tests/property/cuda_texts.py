"""Random programs of every notation as texts of CUDA: lowered, checked after each step, printed, and not compiled.

A program that only a compiler sees takes a second; of those that end in a text there are a hundred in that time. So
steps that disagree with their checks are found where they are rare.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ilang.codegen.targets import cuda
from ilang.core import pipeline
from ilang.core.diagnostic import Error, MeaningError, ShapeError
from ilang.core.ir.kernel import Program
from ilang.core.machine import GPU
from ilang.core.record import replace
from tests.property import (
    checking,
    mixed,
    mixed_checking,
    notation_checking,
    notations,
    operand_texts,
    spec_checking,
    specs,
    tensor_checking,
    tensor_programs,
    trial,
)
from tests.property.failing import Failure, noted
from tests.property.spec_schedules import scheduled
from tests.property.tally import Counts

Says = list[str]
"""What a program is in words, for what may fail after it is drawn."""


@dataclass
class Tally(Counts):
    """How many programs became texts, their lines, and what failed."""

    programs: int = 0
    refused: int = 0
    lines: int = 0
    failures: list[Failure] = field(default_factory=list)


def check(notation: str, seeds: Sequence[int]) -> Tally:
    """Emit the programs of some seeds, each by itself."""
    tally = Tally()
    for seed in seeds:
        says = [notation]
        with noted(tally.failures, seed, says):
            try:
                tally.lines += cuda.emit(DRAWN[notation](seed, says)).count("\n")
            except MEANT.get(notation, ()):
                tally.refused += 1
                continue
            tally.programs += 1
    return tally


def _of_expressions(seed: int, says: Says) -> Program:
    drawn = trial.draw(seed)
    says.append(drawn.written.text)
    return checking.kernels_of(drawn, "p", checking.Tally(), GPU).program


def _of_operands(seed: int, says: Says) -> Program:
    text = operand_texts.generate(seed)
    says.append(text)
    graph = pipeline.graph_of(pipeline.text_component(text), "p")
    extents = random.Random(seed).choices((0, 1, 2, 3, 4, 5, 8, 20, 64, 100), k=3)
    shaped = pipeline.infer(graph)
    if seed % 2:
        shapes = [tuple(extents[: len(shaped.tensors[n].dims)]) for n in shaped.inputs]
        shaped = pipeline.infer(graph, shapes=shapes)
    return pipeline.lower(shaped, GPU)


def _of_specifications(seed: int, says: Says) -> Program:
    program = specs.generate(seed)
    if seed % 2:
        program = scheduled(program, random.Random(seed))[0]
    says.append(program.text)
    return spec_checking.kernels_of(seed, program, "p", GPU).kernels


def _mixed(seed: int, says: Says) -> Program:
    drawn = mixed.generate(seed)
    says.append(pipeline.graph_text(drawn.graph))
    return mixed_checking.kernels_of(drawn, "p", GPU).kernels


def _of_functions(seed: int, says: Says) -> Program:
    program = tensor_programs.generate(seed)
    says.append(program.text)
    shaped = tensor_checking.session_of(program, "numpy")._solved.shaped()
    return pipeline.lower(replace(shaped, name="p"), GPU)


def _called(notation: str, seed: int, says: Says) -> Program:
    drawn = notations.generate(notation, seed)
    says.append(repr(drawn.component))
    return notation_checking.kernels_of(seed, drawn, "p", GPU).kernels


DRAWN: dict[str, Callable[[int, Says], Program]] = {
    "index": _of_expressions,
    "einsum, extended": _of_specifications,
    "operands": _of_operands,
    "mixed": _mixed,
    "tensor functions": _of_functions,
    **{name: partial(_called, name) for name in notation_checking.NOTATIONS},
}
"""By what programs are drawn from: the kernels of a seed; words say what is drawn."""

MEANT: dict[str, tuple[type[Error], ...]] = {"operands": (MeaningError, ShapeError)}
"""The refusals that a program of a notation may deserve."""
