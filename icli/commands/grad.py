"""``i grad``: the gradient of a program, as a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError
from ilang.core.machine import MACHINES
from ilang.core.suggestion import did_you_mean
from ilang.icli.command import JSON, SHAPE, Command, CommandOperand, Option, Request
from ilang.icli.programs import all_of, all_shapes, open_program, subjects
from ilang.icli.screen import Screen

if TYPE_CHECKING:
    from ilang.core.ir.graph import Graph
    from ilang.core.ir.shaped import Shaped

EMITTED = ("shapes", "loops", *MACHINES)


def run(request: Request, screen: Screen) -> int:
    """Print the gradient of each component that the operand holds."""
    program = open_program(request.operands[0])
    graphs = [each.graph for each in subjects(program, request.all("--def"))]
    shaped = all_shapes(graphs, request.all("--shape"))
    wrt = request.all("--wrt")

    def as_data(graph: Graph, shapes: Sequence[tuple[int, ...]] | None) -> dict[str, object]:
        from ilang.core.pipeline import infer
        from ilang.core.transform.reverse import gradient

        forward = infer(graph, shapes=shapes)
        backward = gradient(forward, _positions(graph, wrt), request.has("--values"))
        text = _text(backward, request.one("--emit"))
        answer: dict[str, object] = {"name": graph.name, "text": text}
        if request.has("--check"):
            from ilang.codegen.project.differences import check_gradient

            answer["check"] = check_gradient(forward, _positions(graph, wrt))
        return answer

    answers = all_of(shaped, lambda each: as_data(*each))
    if screen.json:
        screen.write_json(answers[0] if len(answers) == 1 else {"definitions": answers})
        return 0
    for number, answer in enumerate(answers):
        screen.write(("\n" if number else "") + str(answer["text"]).rstrip("\n") + "\n")
        if "check" in answer:
            check = answer["check"]
            assert isinstance(check, dict)
            screen.write(f"\n{check['says']}\n")
    return 0


def _positions(graph: Graph, names: Sequence[str]) -> list[int]:
    """The inputs that ``--wrt`` names; all of them without it.

    Raises: CommandError E0823.
    """
    inputs = graph.input_names()
    for name in names:
        if name not in inputs:
            help_line = did_you_mean(name, inputs, f"inputs are {', '.join(inputs)}")
            raise CommandError("E0823", f"--wrt {name} is no input of the program", help=help_line)
    chosen = dict.fromkeys(inputs.index(name) for name in names)
    return list(chosen) if names else list(range(len(inputs)))


def _text(shaped: Shaped, stage: str | None) -> str:
    """The gradient as a definition where the language has words for it, else its assignments; or one stage of it."""
    from ilang.core import pipeline

    if stage is None:
        from ilang.core.explain.assignments import gradient_text

        return gradient_text(shaped)
    if stage == "shapes":
        return pipeline.shapes_text(shaped)
    if stage == "loops":
        return pipeline.loops_text(pipeline.lower(shaped))
    from ilang.codegen.call.target import source_of

    return source_of(shaped, stage)


COMMAND = Command(
    "grad",
    "Print the gradient of a program: as a definition if possible, else as a list of assignments.",
    run,
    (CommandOperand("program", "TEXT|FILE|-", "program"),),
    (
        Option.of_definition("Differentiate this definition; default: those that no other definition uses"),
        SHAPE,
        Option("--wrt", "INPUT", "Differentiate by this input; repeat for several; default: all", many=True),
        Option("--values", None, "Also compute the outputs of the program, before the gradients"),
        Option("--check", None, "Compare the gradient with finite differences, in float64"),
        Option("--emit", "STAGE", "Print one stage of the compiler instead", EMITTED),
        JSON,
    ),
)  # fmt: skip
