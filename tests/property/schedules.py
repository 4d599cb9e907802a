"""Random programs with random written schedules: either refused by a rule, or right.

A schedule is drawn from the outputs to the inputs: what a reader stages takes the splits and the order of the loops
outside its site, so that most draws are legal; then now and then something is changed, or drawn without looking.
"""

from __future__ import annotations

import functools
import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ilang.codegen.targets import cuda
from ilang.codegen.targets.c import emit
from ilang.core import pipeline, record
from ilang.core.diagnostic import Label, ScheduleError
from ilang.core.explain.definition_text import definition_text
from ilang.core.ir import kernel
from ilang.core.ir.schedule import schedule_text, unscheduled
from ilang.core.ir.shaped import Assignment, Node, Shaped
from ilang.core.ir.syntax import Expression as Written
from ilang.core.machine import CPU, Machine
from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule
from ilang.core.steps import PASSES
from tests.property import programs
from tests.property.checking import graph_of
from tests.property.programs import Expression, Lookup, Program, is_plain
from tests.property.trial import Trial, draw_arrays
from tests.property.writer import write

FACTORS = (1, 2, 2, 3, 4, 4, 5, 8, 16)
FAMILIES: tuple[tuple[str, ...], ...] = (
    ("chain", "unary", "scale"),
    ("unary", "binary", "binary"),
    ("matmul",),
    ("matmul", "unary"),
    ("softmax",),
    ("normal", "unary"),
    ("transpose", "binary", "reduce"),
    ("reduce", "binary", "reduce"),
    ("outer", "reduce"),
    ("statistics",),
    ("window", "reduce"),
    ("window", "unary", "binary"),
    programs.MOTIFS,
)
RULES = {f"E{number:04}" for number in range(320, 340)}
"""The codes of what is well formed but not legal."""

DIMENSIONS = ("x", "y", "z", "tx", "ty", "tz", "l")
THREADS = ("t", "tx", "ty", "tz", "l")
ROLES = ("v", "t", "q", "p", "u", "x", "y", "tx", "tx", "ty", "l")
ATTEMPTS = 6
"""Draws after which a schedule is taken that is illegal where a legal one is wanted, or legal where not."""

LARGEST_TILE = 256
"""Elements of a tile beyond which nothing more is split: storage is made of whole tiles, however small a dimension."""

Splits = dict[str, tuple[int, ...]]


@dataclass
class Plan:
    """The schedule of one expression: factors of letters, loops by name, and the loops outside each digit."""

    splits: Splits
    order: list[str]
    sites: dict[int, int] = field(default_factory=dict)
    start: int | None = None
    roles: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """The plan in the notation of schedules."""
        words = []
        for depth in range(len(self.order) + 1):
            words += [str(digit) for digit, site in self.sites.items() if site == depth]
            words += ["!"] if self.start == depth else []
            words += self.order[depth : depth + 1]
        splits = [
            ":".join([c, *map(str, factors)]) for c, factors in self.splits.items() if factors
        ]
        text = f"| {','.join(splits)} | " if splits else "|| "
        roles = [f"{owner}:{role}" for owner, role in self.roles.items()]
        return (text + " ".join(words) + (" | " + ",".join(roles) if roles else "")).rstrip()


@functools.lru_cache(
    maxsize=512
)  # several tests look at the same seeds, each draw tries many schedules
def draw(seed: int) -> Trial:
    """A program of a few expressions with schedules, and runs at ragged, empty and small extents."""
    rng = random.Random(seed)
    while True:
        written = write(_program(rng), rng, plain=rng.random() < 0.5)
        fixed = rng.random() < 0.15
        extents = [programs.draw_extents(written.program, rng, tiny=n == 2) for n in range(3)]
        sizes = [extents[0]] if fixed else extents
        runs = tuple(draw_arrays(written.program, size, rng) for size in sizes if size is not None)
        if runs and (len(runs) == len(sizes) or not fixed):
            return Trial(seed, written, fixed, runs)


def shaped_of(trial: Trial, name: str = "f") -> Shaped:
    """A trial inferred."""
    shapes = [array.shape for array in trial.runs[0]] if trial.fixed else None
    shaped = pipeline.infer(graph_of(trial, name), trial.dtypes(), trial.ranks(), shapes)
    return record.replace(shaped, name=name)  # a definition of a module is called ``main``


def bare(trial: Trial) -> Trial:
    """A trial without schedules."""
    nodes = [
        replace(node, schedule="") if isinstance(node, Expression | Lookup) else node
        for node in trial.program.nodes
    ]
    program = replace(trial.program, nodes=tuple(nodes))
    return Trial(trial.seed, write(program, random.Random(0), plain=True), False, ())


def pasted(trial: Trial, fix: Label) -> Trial:
    """A trial with what a refusal suggests in its text."""
    text = trial.written.text
    text = text[: fix.span.start] + fix.text + text[fix.span.end :]
    return replace(trial, written=replace(trial.written, text=text))


def unwritten(shaped: Shaped) -> Shaped:
    """The program without the schedules that are written in it."""
    nodes = [
        record.replace(node, schedule=None, text=unscheduled(node))
        if isinstance(node, Assignment) and node.schedule is not None
        else node
        for node in shaped.nodes
    ]
    return record.replace(shaped, nodes=tuple(nodes))


def with_node(shaped: Shaped, value: int, node: Node) -> Shaped:
    """The program with another node for a value."""
    nodes = (*shaped.nodes[:value], node, *shaped.nodes[value + 1 :])
    return record.replace(shaped, nodes=nodes)


def written_back(shaped: Shaped, machine: Machine = CPU) -> Shaped:
    """The program with the schedule of every expression written, as ``i explain --schedule`` prints it."""
    scheduled = shaped_to_schedule(shaped, machine)
    if scheduled.is_apart:
        text = definition_text(scheduled.shaped, scheduled.nests)
        assert text is not None, "the language has no words for it"
        return defined(text, shaped.name)
    nodes = list(shaped.nodes)
    of_several = _of_several(shaped)
    for value, nest in enumerate(scheduled.nests):
        node = nodes[value]
        plain = isinstance(node, Assignment) and " of " not in node.text and "~" in node.text
        if value in of_several:
            continue  # one of several that an argmax became: a schedule would be that of one
        if not isinstance(node, Assignment) or nest is None or not plain:
            continue  # a conversion, or where a scatter starts, has no text of its own
        tree = pipeline.text_component(f"{unscheduled(node)} {schedule_text(node, nest)}")
        if isinstance(tree, Written):
            nodes[value] = record.replace(node, schedule=tree.schedule)
    return record.replace(shaped, nodes=tuple(nodes))


def _of_several(shaped: Shaped) -> set[int]:
    """The values of positions, which become several assignments: one of these reads another."""
    values: set[int] = set()
    for value, node in enumerate(shaped.nodes):
        if not isinstance(node, Assignment) or "@" not in node.text:
            continue
        for read in node.reads:
            source = shaped.nodes[read.value]
            if isinstance(source, Assignment) and source.span == node.span:
                values |= {value, read.value}
    return values


def defined(text: str, name: str) -> Shaped:
    """The program that a definition is, called as another one."""
    graph = pipeline.program_graph(pipeline.text_program(text))
    return record.replace(pipeline.infer(graph), name=name)


def code(shaped: Shaped, machine: Machine = CPU) -> str:
    """The C or CUDA text of a program without its comments."""
    return _uncommented(pipeline.lower(shaped, machine), machine)


def _uncommented(program: kernel.Program, machine: Machine) -> str:
    text = (cuda.emit if machine.kind == "gpu" else emit)(program)
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def same_code(one: Shaped, other: Shaped, machine: Machine = CPU) -> bool:
    """Whether ``code`` is the same for two programs, of which the first is lowered to its text in any case.

    What comes after the loops is a function of them alone, so where the loops are equal, which is so but for a fault,
    those of the other program are not lowered once more.
    """
    below = {step.stage: value for step, value in pipeline.steps_below(one, machine)}
    text = _uncommented(below[PASSES[machine.kind][-1].stage], machine)
    loops = next(v for step, v in pipeline.steps_below(other, machine) if step.stage == "lowered")
    return bool(loops == below["lowered"]) or code(other, machine) == text


def refusal(trial: Trial, machine: Machine = CPU) -> ScheduleError | None:
    """Why a trial's schedule is refused, or None."""
    try:
        pipeline.lower(shaped_of(trial), machine)
    except ScheduleError as error:
        return error
    return None


def _is_legal(program: Program) -> bool:
    """Whether a program lowers; the nearest legal schedule, most of the time of a refusal, is not looked for."""
    try:
        pipeline._lowered(
            shaped_of(Trial(0, write(program, random.Random(0), plain=True), False, ()))
        )
    except ScheduleError:
        return False
    return True


def _program(rng: random.Random) -> Program:
    """A small program with schedules, three of five times meant to be legal."""
    bare = _bare_program(rng)
    while programs.draw_extents(bare, rng) is None:
        bare = _bare_program(rng)
    careful = rng.random() < 0.6
    found = _scheduled(bare, rng, careful)
    for _ in range(ATTEMPTS):
        if _is_legal(found) is careful:
            break
        found = _scheduled(bare, rng, careful)
    return found


def _bare_program(rng: random.Random) -> Program:
    """A few expressions of one kind."""
    taste = replace(programs.draw_taste(rng), schedules=0.0, motifs=rng.choice(FAMILIES))
    maker = programs._Maker(rng, taste)
    wanted = rng.choice((1, 2, 2, 3, 3, 4, 5))
    while maker.made < wanted:
        getattr(maker, rng.choice(taste.motifs))()
    return maker.finish()


def _scheduled(program: Program, rng: random.Random, careful: bool) -> Program:
    """The program with schedules, each expression's from those of what reads it."""
    nodes = list(program.nodes)
    given: dict[int, tuple[Splits, list[str]]] = {}
    bare, wild = rng.choice((0.0, 0.1, 0.4)), 0.03 if careful else rng.choice((0.3, 1.0))
    for number in range(len(nodes) - 1, -1, -1):
        node = nodes[number]
        if not isinstance(node, Expression) or rng.random() < bare:
            continue
        if rng.random() < 0.07:
            nodes[number] = replace(node, schedule=programs.draw_schedule(node, rng))
            continue
        splits, prefix = given.get(number, ({}, []))
        if rng.random() < wild:
            splits, prefix = {}, []
        plan = _plan(node, splits, prefix, rng)
        _stage(program, node, plan, given, rng, careful)
        nodes[number] = replace(node, schedule=plan.text())
    return replace(program, nodes=tuple(nodes))


def _plan(node: Expression, splits: Splits, prefix: list[str], rng: random.Random) -> Plan:
    """Splits and an order that begins as wished."""
    letters = node.letters()
    found = {c: splits[c] for c in letters if c in splits}
    often = rng.choice((0.0, 0.2, 0.6))
    for c in letters:
        whole = math.prod(factor for factors in found.values() for factor in factors)
        if c not in found and rng.random() < often and whole <= LARGEST_TILE:
            found[c] = tuple(rng.choice(FACTORS) for _ in range(rng.choice((1, 1, 1, 2, 3))))
    loops = [c + "'" * part for c in letters for part in range(len(found.get(c, ())) + 1)]
    rest = [loop for loop in loops if loop not in prefix]
    kind = rng.random()
    if kind < 0.4:
        rng.shuffle(rest)
    elif kind < 0.7:  # tiles: the outer parts first
        rest.sort(key=lambda loop: (loop.count("'"), rng.random()))
    elif kind < 0.85:  # a register tile: the inner parts of the output inside all that is reduced
        rest.sort(key=lambda loop: ("'" in loop and loop[0] in node.output, loop.count("'")))
    plan = Plan(found, [*prefix, *rest])
    last = max((n for n, loop in enumerate(plan.order, 1) if loop[0] in node.output), default=0)
    if node.reduces() and rng.random() < 0.1:
        plan.start = rng.randint(last, len(plan.order))
    for loop in plan.order:
        if rng.random() < 0.04:
            _wish(plan, loop, rng.choice(ROLES))
    if plan.order and rng.random() < 0.15:
        plan.roles[plan.order[-1]] = "v"
    return plan


def _wish(plan: Plan, loop: str, role: str) -> None:
    """Give a loop a role, unless it is a dimension that another loop has, or threads are counted in another way."""
    others = set(plan.roles.values())
    threads = {"t", "l", *others} & {"t", "l"} & others
    if role in THREADS and (threads or (role in ("t", "l") and others & set(THREADS))):
        return
    if role not in DIMENSIONS or role not in others:
        plan.roles[loop] = role


def _stage(
    program: Program,
    node: Expression,
    plan: Plan,
    given: dict[int, tuple[Splits, list[str]]],
    rng: random.Random,
    careful: bool,
) -> None:
    """Place digits, and hand the loops outside them to what is staged."""
    for digit, read in enumerate(node.reads):
        if rng.random() < 0.3:
            continue
        made = program.nodes[read]
        written = (node.left if digit == 0 else ()) or node.patterns[digit]
        site = rng.choice((rng.randint(0, len(plan.order)), len(plan.order)))
        reduced = isinstance(made, Expression) and made.reduces()
        if reduced and rng.random() < (0.9 if careful else 0.3):  # only loops that index it
            keep = [loop[0] in written for loop in plan.order]
            site = min(site, keep.index(False) if False in keep else site)
        plan.sites[digit] = site
        if rng.random() < 0.1:
            plan.roles[str(digit)] = rng.choice(("s", "s2", "c", "r"))
        if not isinstance(made, Expression) or read in given:
            continue
        pairs = [(own, c) for own, c in zip(made.output, written, strict=True) if is_plain(c)]
        prefix = [
            own + "'" * loop.count("'")
            for loop in plan.order[:site]
            for own, c in pairs
            if c == loop[0]
        ]
        given[read] = ({own: plan.splits.get(c, ()) for own, c in pairs}, prefix)


def sorted_out(seeds: Sequence[int]) -> tuple[list[Trial], Counter[str]]:
    """The legal trials of some seeds, and how often each rule refused another."""
    legal, refused = [], Counter[str]()
    for seed in seeds:
        trial = draw(seed)
        error = refusal(trial)
        if error is None:
            legal.append(trial)
        else:
            refused[error.code] += 1
    return legal, refused
