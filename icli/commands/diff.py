"""``i diff``: what differs between two programs, or between one program and itself under other options."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError, Error
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import MACHINES
from ilang.core.pipeline import GRADIENTS, STAGES, stages_of
from ilang.core.record import replace
from ilang.icli.command import CONFIG, JSON, SHAPE, Command, CommandOperand, Option, Request
from ilang.icli.programs import open_program
from ilang.icli.screen import Screen
from ilang.icli.staged import WRITTEN, ProgramAtShapes, programs_of, stage_of

if TYPE_CHECKING:
    from ilang.core.explain.explanation import Explanation
    from ilang.core.ir.shaped import Shaped
    from ilang.core.ir.syntax import Module, Tree

SAME, DIFFERENT, TROUBLE = 0, 1, 2
"""The statuses, those of ``diff``."""
PARTS = {"formula": "formula", "work": "work", WRITTEN: "schedule"}
"""The parts that are compared beside stages; one is the schedule as ``i explain --schedule`` prints it."""
CODE = "code"
"""The part that is compared where no other one differs."""
EMITTED = ("formula", "work", *(s for s in STAGES if s not in ("expanded", "extents")), *MACHINES)
FACTOR = r"\w+'*(?:\[[^\]]*\]|\([^()]*\))?"
PRODUCT = re.compile(rf"{FACTOR}(?:·{FACTOR})+")
"""Factors as the first page writes them: ``a[i,k]·b[k,j]``."""
Difference = tuple[str, str, list[str]]
"""A part that differs: the definition, the stage, and lines as ``diff -u`` writes them."""
OF_B = {"--to-def": "--def", "--to-shape": "--shape", "--to-target": "--target"}
"""Options of the second program, and those that they stand for."""


def run(request: Request, screen: Screen) -> int:
    """Print what differs; 0 where nothing does."""
    notes: list[str] = []
    try:
        stage = stage_of(request)
        differences = tuple(_differences(*_sides(request), stage, notes))
    except Error as error:
        screen.complain(error)
        return TROUBLE
    if screen.json:
        names = ("definition", "stage", "lines")
        rows = [dict(zip(names, each, strict=True)) for each in differences]
        screen.write_json({"same": not rows, "differences": rows})
        return DIFFERENT if rows else SAME
    screen.write("".join(f"{each}\n" for each in notes))
    colored = screen.colored(sys.stdout)
    for _, _, lines in differences:
        screen.write("".join(f"{_painted(line) if colored else line}\n" for line in lines))
    return DIFFERENT if differences else SAME


class _Side:
    """One of the two programs: what it is called, its definitions, its target, whether schedules are left out."""

    def __init__(
        self, title: str, program: Tree | Module, request: Request, unscheduled: bool
    ) -> None:
        self.title = title
        self.programs = programs_of(program, request)
        self.target = request.one("--target") or "c"
        self.unscheduled = unscheduled

    def texts(self, program: ProgramAtShapes, name: str, stage: str | None) -> dict[str, str]:
        """The texts that are compared of a program under a name: that of a stage, or of each part."""
        from ilang.core import pipeline

        machine = MACHINES[self.target]
        if stage == "graph":
            return {stage: pipeline.graph_text(program.graph())}
        shaped = replace(self._shaped(program), name=name)
        if stage is None or stage in PARTS:
            parts = _parts(pipeline.explain_shaped(program.graph(), shaped, machine=machine))
            if stage is not None:
                return {PARTS[stage]: parts[PARTS[stage]]}
            return {**parts, CODE: _code(shaped, self.target)}
        if stage in MACHINES:
            return {stage: _code(shaped, stage)}
        if stage not in stages_of(machine):
            message = f"--target {self.target} has no stage {stage}"
            raise CommandError("E0804", message, help="`i explain --help` lists the stages")
        return {stage: pipeline.shaped_stage_text(shaped, stage, machine)}

    def _shaped(self, program: ProgramAtShapes) -> Shaped:
        """A program, without its schedules where they are left out."""
        shaped = program.shaped()
        if not self.unscheduled:
            return shaped
        from ilang.core.schedule.written import without_schedules

        return without_schedules(shaped)

    def meaning(self, program: ProgramAtShapes) -> tuple[list[str], tuple[str, ...]]:
        """The texts that two programs of one meaning and one manner have alike, and the names that their own have."""
        from ilang.core import pipeline
        from ilang.core.explain.canonical import canonical

        shaped, names = canonical(self._shaped(program))
        page = pipeline.explain_shaped(program.graph(), shaped, machine=MACHINES[self.target])
        parts = _parts(page)
        if not any(isinstance(node, Assignment) and node.schedule for node in shaped.nodes):
            del parts["schedule"]
        return [_in_order(text) for text in parts.values()], names


def _sides(request: Request) -> tuple[_Side, _Side]:
    """The two programs.

    Raises: CommandError E0805 (one program, and no option of the other one), E0829 (standard input twice), and what is
    wrong with each.
    """
    first, second = (*request.operands, request.operands[0])[:2]
    values = dict(request.values)
    changed = {OF_B[name]: values.pop(name) for name in OF_B if name in values}
    unscheduled = request.has("--unscheduled")
    if len(request.operands) == 1 and not changed and not unscheduled:
        message = "i diff compares two programs, and there is one"
        options = "--unscheduled, --to-shape, --to-target, --to-def"
        raise CommandError("E0805", message, help=f"name another one, or how it differs: {options}")
    if request.operands == ("-", "-"):
        message = "standard input is one program, and `-` stands twice"
        raise CommandError("E0829", message, help="name a file in the place of one")
    other = Request(request.operands, {**values, **changed}, request.plain)
    titles = [first, second] if first != second else [f"{first} (first)", f"{first} (second)"]
    program = open_program(first)
    before = _Side(titles[0], program, request, False)
    try:
        program = program if second == first else open_program(second)
        return before, _Side(titles[1], program, other, unscheduled)
    except CommandError as error:
        raise _of_second(error, changed) from None


def _of_second(error: CommandError, changed: Iterable[str]) -> CommandError:
    """An error of an option of the first program, as that of the option of the second one which stands for it."""
    message, advice = error.message, error.help
    for name, shown in OF_B.items():
        if shown in changed:
            message, advice = (each.replace(f"{shown} ", f"{name} ") for each in (message, advice))
    return CommandError(error.code, message, error.span, advice, error.labels)


def _differences(
    before: _Side, after: _Side, stage: str | None, notes: list[str]
) -> Iterator[Difference]:
    """The parts that differ: of the only program of each side, else of those that have the same name.

    What two texts of one program differ in is added to ``notes``.
    """
    pairs = [(before.programs[0], after.programs[0])]
    if max(len(before.programs), len(after.programs)) > 1:
        old, new = ({each.name: each for each in side.programs} for side in (before, after))
        pairs = [(old[name], new[name]) for name in old if name in new]
        alone = [(before, name) for name in old if name not in new]
        alone += [(after, name) for name in new if name not in old]
        for side, name in alone:
            yield name, "", [f"Only in {side.title}: {name}"]
    several = len(pairs) > 1
    for first, second in pairs:
        texts = before.texts(first, first.name, stage), after.texts(second, first.name, stage)
        differs = False
        if stage is None and texts[0] != texts[1]:
            (meaning, words), (other, others) = before.meaning(first), after.meaning(second)
            if before.target == after.target and meaning == other:
                of = f"{first.name}: " if several else ""
                notes.append(f"{of}the same program{_names_differ(words, others)}")
                continue
        for part in texts[0]:
            if part == CODE and differs:
                continue  # it follows from what was shown; `--emit c` compares it
            title = [first.name, part] if several else [part]
            names = [" ".join((side.title, *title)) for side in (before, after)]
            lines = _unified(texts[0][part], texts[1][part], *names)
            if lines:
                differs = True
                yield first.name, part, lines


def _names_differ(names: Sequence[str], others: Sequence[str]) -> str:
    """The names that differ between two texts of one program.

    Example: ``; names differ: i is a, j is b``
    """
    pairs = dict.fromkeys(zip(names, others, strict=True))
    words = [f"{one} is {other}" for one, other in pairs if one != other]
    return f"; names differ: {', '.join(words)}" if words else ""


def _in_order(text: str) -> str:
    """A text with the factors of each product in one order."""
    return PRODUCT.sub(lambda product: "·".join(sorted(re.findall(FACTOR, product.group()))), text)


def _parts(page: Explanation) -> dict[str, str]:
    from ilang.core.explain.page import cost_text, port_cells, schedule_text, table

    return {
        "formula": table([(each.text, each.definition) for each in page.meaning.formulas]),
        "shapes": table([port_cells(port) for port in (*page.inputs, *page.outputs)]),
        "work": cost_text(page.execution.cost),
        "schedule": schedule_text(page),
        "loops": "\n".join(f"{'  ' * each.depth}{each.text}" for each in page.execution.running),
    }


def _code(shaped: Shaped, target: str) -> str:
    from ilang.codegen.call.target import source_of

    return source_of(shaped, target)


def _unified(before: str, after: str, old_name: str, new_name: str) -> list[str]:
    """The difference of two texts as ``diff -u`` writes it; nothing where they are equal."""
    from difflib import unified_diff

    old, new = (text.rstrip("\n").split("\n") for text in (before, after))
    return list(unified_diff(old, new, old_name, new_name, lineterm=""))


def _painted(line: str) -> str:
    """A line of a difference with the codes that color it."""
    if line.startswith(("---", "+++")):
        return f"\x1b[1m{line}\x1b[0m"
    code = {"-": "31", "+": "32", "@": "36"}.get(line[:1])
    return line if code is None else f"\x1b[{code}m{line}\x1b[0m"


COMMAND = Command(
    "diff",
    "Compare two programs: formula, shapes, work, schedule, loops; or C and CUDA, where only these differ.",
    run,
    (
        CommandOperand("program", "A", "program"),
        CommandOperand("other", "B", "program", required=False),
    ),
    (
        Option.of_definition("Compare this definition of both files"),
        SHAPE,
        CONFIG,
        Option("--target", "TARGET", "The machine to compile for", tuple(MACHINES)),
        Option("--to-def", "NAME", "The definition of B", "definition"),
        Option("--to-shape", "SHAPES", "Shapes of the inputs of B", many=True),
        Option("--to-target", "TARGET", "The machine to compile B for", tuple(MACHINES)),
        Option("--unscheduled", None, "Leave out the schedules that are written in B"),
        Option("--schedule", None, "Compare the schedules alone, as they are written"),
        Option("--emit", "STAGE", "Compare one stage alone", tuple(dict.fromkeys((*EMITTED, GRADIENTS.stage)))),
        JSON,
    ),
    "Without B, A is compared with itself under the options of B. The exit status is that of"
    " `diff`: 0 nothing differs, 1 something does, 2 trouble.\n\n"
    "\b\nExamples:\n  i diff old.i new.i\n"
    "  i diff samples/20_schedule.i --unscheduled --emit loops\n"
    "  i diff softmax --shape 8x8 --to-shape 8x4096",
)  # fmt: skip
