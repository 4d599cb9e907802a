"""Random schedules after the specifications of a program: what is refused stays as it was, the rest must be right."""

from __future__ import annotations

import random
from dataclasses import replace

from ilang.core import pipeline
from ilang.core.diagnostic import ScheduleError
from ilang.core.ir.shaped import Assignment, Shaped
from tests.property.schedules import FACTORS, RULES, Plan
from tests.property.specs import Program, Spec

ATTEMPTS = 4
"""Draws for one specification, until one is legal."""


def scheduled(program: Program, rng: random.Random) -> tuple[Program, int, int]:
    """The program with schedules after some of its specifications; how many are there, and how many were refused."""
    given = refused = 0
    for stage in program.stages:
        if not isinstance(stage, Spec) or rng.random() < 0.3:
            continue
        for _ in range(ATTEMPTS):
            tried = _with_one(program, stage, rng)
            if tried is None:
                break
            if _is_legal(tried):
                program, given = tried, given + 1
                break
            refused += 1
    return program, given, refused


def _with_one(program: Program, stage: Spec, rng: random.Random) -> Program | None:
    """The program with a schedule after the first place where this specification stands without one.

    None where the specification becomes several assignments: those have no schedules.
    """
    word = next(
        w for w in (f'einsum("{stage.text}")', f"einsum('{stage.text}')") if w in program.text
    )
    nodes = [
        node
        for node in _shaped(program).nodes
        if isinstance(node, Assignment) and stage.text in node.text
    ]
    if len(nodes) != 1:
        return None
    before, _, after = program.text.partition(word)
    return replace(program, text=f"{before}({word} {_drawn(nodes[0], rng).text()}){after}")


def _drawn(node: Assignment, rng: random.Random) -> Plan:
    """Splits, an order, digits and roles of an assignment's loops."""
    names = [axis.name for axis in node.axes]
    often = rng.choice((0.0, 0.3, 0.7))
    splits = {
        name: tuple(rng.choice(FACTORS[:6]) for _ in range(rng.choice((1, 1, 2))))
        for name in names[:4]
        if rng.random() < often
    }
    order = [name + "'" * part for name in names for part in range(len(splits.get(name, ())) + 1)]
    if rng.random() < 0.6:
        rng.shuffle(order)
    else:
        order.sort(key=lambda loop: (loop.count("'"), rng.random()))
    plan = Plan(splits, order)
    for read in range(len(node.reads)):
        if rng.random() < 0.4:
            plan.sites[node.operand(read)] = rng.randint(0, len(order))
    for loop in order:
        if rng.random() < 0.05:
            plan.roles[loop] = rng.choice("vqpu")
    return plan


def _shaped(program: Program) -> Shaped:
    tree = pipeline.text_component(program.text)
    arrays = program.runs[0]
    dtypes, ranks = [program.dtype] * len(arrays), [array.ndim for array in arrays]
    return pipeline.infer(pipeline.graph_of(tree, "p"), dtypes, ranks)


def _is_legal(program: Program) -> bool:
    """Whether a program lowers; which schedule would be legal in its place is not looked for."""
    try:
        pipeline._lowered(_shaped(program))
    except ScheduleError as error:
        if error.code not in RULES:
            raise
        return False
    return True
