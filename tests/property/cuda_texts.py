"""Random programs of every notation as texts of CUDA: lowered, checked after each step, printed, and not compiled.

A program that only a compiler sees takes a second; of those that end in a text there are a hundred in that time. So
steps that disagree with their checks are found where they are rare.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

from ilang.codegen.targets import cuda
from ilang.core import pipeline
from ilang.core.diagnostic import Error, MeaningError, ShapeError
from ilang.core.ir.shaped import Shaped
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
from tests.property.spec_schedules import scheduled
from tests.property.tally import Tally

Says = list[str]
"""What a program is in words, for what may fail after it is drawn."""


def check(notation: str, seeds: Sequence[int]) -> Tally:
    """Emit the programs of some seeds, each by itself."""
    tally = Tally()
    for seed in seeds:
        says = [notation]
        with tally.noting(seed, says):
            try:
                shaped = replace(DRAWN[notation](seed, says), name="p")
                tally.count(lines=cuda.emit(pipeline.lower(shaped, GPU)).count("\n"))
            except MEANT.get(notation, ()):
                tally.count(refused=1)
                continue
            tally.count(programs=1)
    return tally


def _of_expressions(seed: int, says: Says) -> Shaped:
    drawn = trial.draw(seed)
    says.append(drawn.written.text)
    return checking.legal_of(checking.shaped_of(drawn, "p"), GPU)[0]


def _of_operands(seed: int, says: Says) -> Shaped:
    text = operand_texts.generate(seed)
    says.append(text)
    graph = pipeline.graph_of(pipeline.text_component(text), "p")
    extents = random.Random(seed).choices((0, 1, 2, 3, 4, 5, 8, 20, 64, 100), k=3)
    shaped = pipeline.infer(graph)
    if seed % 2:
        shapes = [tuple(extents[: len(shaped.tensors[n].dims)]) for n in shaped.inputs]
        shaped = pipeline.infer(graph, shapes=shapes)
    return shaped


def _of_specifications(seed: int, says: Says) -> Shaped:
    program = specs.generate(seed)
    if seed % 2:
        program = scheduled(program, random.Random(seed))[0]
    says.append(program.text)
    return spec_checking.shaped_of(seed, program, "p")[0]


def _mixed(seed: int, says: Says) -> Shaped:
    drawn = mixed.generate(seed)
    says.append(pipeline.graph_text(drawn.graph))
    return mixed_checking.shaped_of(drawn, "p")


def _of_functions(seed: int, says: Says) -> Shaped:
    program = tensor_programs.generate(seed)
    says.append(program.text)
    shaped: Shaped = tensor_checking.session_of(program, "numpy")._solved.shaped()
    return shaped


def _called(notation: str, seed: int, says: Says) -> Shaped:
    drawn = notations.generate(notation, seed)
    says.append(repr(drawn.component))
    return notation_checking.shaped_of(seed, drawn, "p")


DRAWN: dict[str, Callable[[int, Says], Shaped]] = {
    "index": _of_expressions,
    "einsum, extended": _of_specifications,
    "operands": _of_operands,
    "mixed": _mixed,
    "tensor functions": _of_functions,
    **{name: partial(_called, name) for name in notation_checking.NOTATIONS},
}
"""By what programs are drawn from: the program of a seed; words say what is drawn."""

MEANT: dict[str, tuple[type[Error], ...]] = {"operands": (MeaningError, ShapeError)}
"""The refusals that a program of a notation may deserve."""
