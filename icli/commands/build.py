"""``i build``: a C project for the definitions of a file."""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.diagnostic import CommandError, ElementTypeError, ScheduleError, ShapeError, nearest
from ilang.core.ir.graph import Graph
from ilang.core.machine import MACHINES
from ilang.icli.options import Command, Operand, Option, Request
from ilang.icli.programs import all_of, is_file, subjects
from ilang.icli.screen import Screen
from ilang.icli.shapes import parse_shape


def run(request: Request, screen: Screen) -> int:
    """Write the project and print the files it consists of."""
    path = request.operands[0]
    if "~" in path and not is_file(path):
        raise CommandError(
            "E0816", "i build takes a file", help="write `name = program` to a file such as model.i"
        )
    target = request.one("--target") or "c"
    folder = request.one("-o") or ("out" if not request.has("-o") else "")
    if not folder:
        raise CommandError("E0812", "-o names no folder", help="i build model.i --target c -o out")
    from ilang.codegen.runtime.files import read_module

    module = read_module(path)
    graphs = [subject.graph for subject in subjects(module, request.all("--def"))]
    shapes = fixed_shapes(request.all("--shape"), graphs)

    from pathlib import Path

    from ilang.codegen.project.render import fixed, write_project
    from ilang.core.explain.explanation import assumed_notes
    from ilang.core.pipeline import lower

    stem = Path(path).stem
    try:
        written = write_project(graphs, Path(folder), module.source.text, stem, shapes, target)
    except (ShapeError, ElementTypeError, ScheduleError):
        all_of(
            graphs, lambda graph: lower(fixed(graph, shapes), MACHINES[target])
        )  # tells of the other definitions too
        raise
    for graph in graphs:
        for note in assumed_notes(fixed(graph, shapes)):
            screen.note(f"{graph.name}: {note}")
    for file in written:
        screen.write_path(str(file))
    return 0


def fixed_shapes(options: Sequence[str], graphs: Sequence[Graph]) -> dict[str, tuple[int, ...]]:
    """The shapes that ``--shape name=32x64`` fixes, by the name of the input.

    Raises: CommandError E0814 if no component has an input of that name.
    """
    known = {graph.input_name(n) for graph in graphs for n in range(len(graph.inputs))}
    shapes: dict[str, tuple[int, ...]] = {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals:
            raise CommandError(
                "E0810", f"{option} is not a shape with its input", help="--shape x=32x64"
            )
        if name not in known:
            guess = nearest(name, sorted(known))
            hint = (
                f"did you mean {guess}?" if guess else f"there is {', '.join(sorted(known)[:20])}"
            )
            raise CommandError("E0814", f"no input is named {name or '(empty)'}", help=hint)
        if shapes.setdefault(name, parse_shape(text)) != parse_shape(text):
            raise CommandError("E0807", f"--shape {name} is given twice")
    return shapes


COMMAND = Command(
    "build",
    "Write a C or CUDA project for the definitions of a file that nothing else in it uses.",
    "FILE",
    1,
    1,
    (
        Option(("--target",), "TARGET", "What to write", tuple(MACHINES)),
        Option(("-o",), "DIR", "The folder to write to (out)", names_a="folder"),
        Option(
            ("--def",),
            "NAME",
            "Build this definition; may be repeated",
            many=True,
            names_a="definition",
        ),
        Option(("--shape",), "NAME=SHAPE", "Fix the shape of an input; may be repeated", many=True),
    ),
    run,
    (Operand("program"),),
)
