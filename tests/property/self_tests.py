"""Calls of programs at the extents at which the self-test of a project runs them, and what is wrong with answers."""

from __future__ import annotations

from collections.abc import Iterator

from ilang.codegen.project.cases import Case, case_of, inputs_of
from ilang.codegen.project.emulation import first_wrong
from ilang.codegen.project.extents import extents_of
from ilang.codegen.targets.session import ExportedFunction
from tests.property.native import Answer, Call


def calls_of(function: ExportedFunction, number: int) -> Iterator[tuple[Call, Case]]:
    """Calls of a program with a number in its batch: at small extents, each 0, all 1, and more than tiles."""
    shaped = function.shaped
    for extents in extents_of(function)[0]:
        case = case_of(function, extents)
        arrays = tuple(inputs_of(shaped, extents, case.starts, case.below))
        free = tuple(extents[n] for n in function.free())
        dims = (shaped.tensors[value].dims for value in shaped.outputs)
        shapes = tuple(tuple(extents[n] for n in each) for each in dims)
        yield Call(number, free, arrays, shapes), case


def trouble(case: Case, answer: Answer) -> str:
    """What is wrong with an answer, "" where nothing is."""
    if case.outputs is None:  # an index is out of range, which is told
        return "" if "status" in answer.trouble else "an index that is out of range is not told"
    if answer.trouble:
        return answer.trouble
    wrong = (first_wrong(*pair) for pair in zip(case.outputs, answer.outputs, strict=True))
    return next((f"the result is wrong: {each}" for each in wrong if each is not None), "")
