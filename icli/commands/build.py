"""``i build``: a C project for the definitions of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError
from ilang.core.ir.graph import Graph
from ilang.core.machine import MACHINES, SERIAL, Machine
from ilang.core.notation.files.libraries import defined_in
from ilang.icli.command import SHAPE, Command, CommandOperand, Option, Request
from ilang.icli.definitions import config_of, heads_of, rows_given, settings_of, used_in
from ilang.icli.programs import all_of, is_file, subjects
from ilang.icli.screen import Screen
from ilang.icli.shapes import named_shapes, parse_shape

if TYPE_CHECKING:
    from pathlib import Path

    from ilang.codegen.targets.session import EmittedSession, ExportedFunction
    from ilang.core.build.tensor import Rows
    from ilang.core.ir.functions import Head
    from ilang.core.ir.syntax import Module


def run(request: Request, screen: Screen) -> int:
    """Write the project and print the files it consists of."""
    path = request.operands[0]
    _refuse_program(path)
    if request.one("-o") == "":
        raise CommandError("E0812", "-o names no folder", help="i build model.i --target c -o out")
    if request.has("--wheel") and request.one("--target") == "cuda":
        message = "--wheel is for functions in C, and --target is cuda"
        raise CommandError("E0830", message, help="leave one of them out")
    from ilang.codegen.system.files import read_module

    module = read_module(path)
    heads, machine = heads_of(module), _machine(request)
    names = list(dict.fromkeys(request.all("--def"))) or _outermost(module, heads)
    chosen = [heads[name] for name in names if name in heads]
    for option in ("--config", "--load") if not chosen else ():
        if request.has(option):
            message = f"{option} is for tensor functions and routines, and none is built"
            raise CommandError("E0827", message, help="name one: --def step")
    components = [name for name in names if name not in heads]
    asked = subjects(module, components) if components or not chosen else []
    graphs = [subject.graph for subject in asked]

    from pathlib import Path

    from ilang.codegen.project.exported_names import prefix_of, renamed
    from ilang.codegen.project.inlined import inlined_in
    from ilang.codegen.project.render import exported_component

    prefix = prefix_of(request.one("--prefix"), Path(path).stem)
    inputs = {
        head.name: [name for each in head.tensors for name in _names(head, each.name)]
        for head in chosen
    }
    with_rows = {name for names in inputs.values() for name in names}
    inputs |= {graph.name: graph.input_names() for graph in graphs}
    given = named_shapes(request.all("--shape"), inputs)
    shapes = {name: parse_shape(text) for name, text in given.items() if name not in with_rows}
    rows = {n: rows_given(n, text, words=True) for n, text in given.items() if n in with_rows}
    functions, sessions = _sessions(request, module, chosen, rows, machine, prefix)
    renames = [*renamed(functions), *(pair for each in sessions for pair in each.renamed)]
    functions += [function for each in sessions for function in each.functions()]
    alone = all_of(graphs, lambda graph: exported_component(graph, shapes, machine, prefix))
    functions += alone
    renames += renamed(alone)
    written = _write(request, functions, module, prefix, sessions)
    _tell(screen, graphs, shapes, renames, written, module.source.name)
    callers = [*(each.name for each in sessions), *(each.name() for each in alone)]
    if request.has("--wheel"):  # which has names of Python
        callers = [*(head.name for head in chosen), *(graph.name for graph in graphs)]
    _tell_functions(screen, callers, inlined_in(module.source.text, functions, sessions))
    for file in written:  # last, since a reader may leave after the first
        screen.write_path(str(file))
    return 0


def _refuse_program(path: str) -> None:
    """Refuse a program, or a name of a library, in the place of a file. Raises: CommandError E0816."""
    is_program = path in defined_in() or ("=" not in path and ("~" in path or "(" in path))
    if is_program and not is_file(path):
        help_line = f"write `name = {path}` to a file such as model.i, and `i build model.i`"
        raise CommandError(
            "E0816", f"i build takes a file, and {path} is a program", help=help_line
        )


def _outermost(module: Module, heads: Mapping[str, Head]) -> list[str]:
    """The definitions that no other one uses; none where a file has components alone, all of which are then meant."""
    from ilang.core.notation.files.module import exports

    used = used_in(module)
    functions = [name for name in heads if name not in used]
    return [each.name for each in exports(module)] + functions if functions else []


def _tell_functions(screen: Screen, names: Sequence[str], inlined: Sequence[str]) -> None:
    """Tell the names of functions, and sessions, where definitions are part of them."""
    from ilang.codegen.project.comments import some_of

    if inlined:
        kind = "function is" if len(names) == 1 else "functions are"
        part = "part of it" if len(names) == 1 else "part of what uses them"
        verb = "is" if len(inlined) == 1 else "are"
        screen.note(
            f"the {kind} {some_of(names)}; {some_of(inlined)} {verb} {part}:"
            f" --def {inlined[0]} builds one alone"
        )


def _machine(request: Request) -> Machine:
    """The machine that is compiled for. Raises: CommandError E0830."""
    target = request.one("--target") or "c"
    if not request.has("--threads"):
        return MACHINES[target]
    if target == "cuda":
        message = "--threads 1 is for functions in C, and --target is cuda"
        raise CommandError("E0830", message, help="leave one of them out")
    return SERIAL


def _write(
    request: Request,
    functions: Sequence[ExportedFunction],
    module: Module,
    prefix: str,
    sessions: Sequence[EmittedSession],
) -> list[Path]:
    """Write the project, or the wheel that ``--wheel`` names; the files.

    Raises: CommandError E0832, and what writing raises.
    """
    from pathlib import Path

    from ilang.codegen.project.render import write_functions

    folder, text = Path(request.one("-o") or "out"), module.source.text
    name = request.one("--wheel")
    if name is not None:
        from ilang.codegen.project.wheel import distribution, write_wheel

        return [write_wheel(functions, folder, text, distribution(name), sessions, prefix)]
    stem = Path(module.source.name).stem
    return write_functions(functions, folder, text, stem, sessions, prefix)


def _tell(
    screen: Screen,
    graphs: Sequence[Graph],
    shapes: Mapping[str, tuple[int, ...]],
    renames: Sequence[tuple[str, str]],
    written: Sequence[Path],
    source: str,
) -> None:
    """Tell what was assumed of components, and which names are others in C."""
    from pathlib import Path

    from ilang.codegen.project.render import fixed
    from ilang.core.explain.explanation import assumed_notes
    from ilang.core.explain.page import equal_names

    for graph in graphs:
        shaped = fixed(graph, shapes)
        for note in (*assumed_notes(shaped), equal_names(graph, shaped)):
            if note:
                screen.note(f"{graph.name}: {note}")
    stem, wanted = written[0].stem, Path(source).stem
    if stem == f"{wanted}_model":
        screen.note(f"files are called {stem}: {wanted} is a header or a library of the system")
    if written[0].suffix == ".whl":  # which has names of Python
        renames = ()
    for name, other in dict.fromkeys(renames):
        screen.note(f"{name} is called {other} in C, where that name is taken")


def _sessions(
    request: Request,
    module: Module,
    heads: Sequence[Head],
    rows: Mapping[str, Rows],
    machine: Machine,
    prefix: str,
) -> tuple[list[ExportedFunction], list[EmittedSession]]:
    """Tensor functions and routines for inputs of these rows, as functions and as sessions.

    Raises: CommandError E0825, and whatever is wrong with the definitions.
    """
    if not heads:
        return [], []
    from ilang.codegen.project.sessions import exported, solved, trained
    from ilang.codegen.session.model import Model

    config, model = config_of(request.all("--config"), heads), Model(module)
    definitions = all_of(
        heads, lambda head: solved(model, head.name, _given(head, rows), settings_of(head, config))
    )
    functions, sessions = exported(definitions, machine, prefix)
    checkpoint = request.one("--load")
    return functions, sessions if checkpoint is None else trained(sessions, checkpoint)


def _given(head: Head, rows: Mapping[str, Rows]) -> dict[str, Rows]:
    return {
        each.name: rows[name]
        for each in head.tensors
        for name in _names(head, each.name)
        if name in rows
    }


def _names(head: Head, tensor: str) -> tuple[str, str]:
    """The names of an input for ``--shape``: ``x``, of every definition, or ``step.x``, which counts more."""
    return tensor, f"{head.name}.{tensor}"


COMMAND = Command(
    "build",
    "Write a C or CUDA project: a library of the definitions that no other definition of the file uses.",
    run,
    (CommandOperand("program", "FILE", "program"),),
    (
        Option("--target", "TARGET", "The language to write", tuple(MACHINES)),
        Option("-o", "DIR", "The folder to write to; default: out", "folder"),
        Option.of_definition("Build this definition; repeat for several", many=True),
        SHAPE,
        Option("--prefix", "NAME", "Begin the names in C with NAME_; default: the name of the file; none: no prefix"),
        Option("--threads", "N", "With 1: C for one core, about half as long", ("1",)),
        Option("--wheel", "NAME==VERSION", "Write a wheel of Python instead: the library, compiled, with a function"
               " for each definition"),
        Option("--config", "NAME=VALUE", "Set a value after the `;` of an `op` or `cd`: lr=0.1,hid=64; repeat for"
               " several", many=True),
        Option("--load", "FILE", "Put the parameters and state of a checkpoint into the project: it begins with"
               " them", "array"),
    ),
)  # fmt: skip
