"""``i build``: a C project for the definitions of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError
from ilang.core.ir.graph import Graph
from ilang.core.machine import MACHINES, SERIAL, Machine
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
    if "~" in path and not is_file(path):
        raise CommandError(
            "E0816", "i build takes a file", help="write `name = program` to a file such as model.i"
        )
    folder = request.one("-o") or ("out" if not request.has("-o") else "")
    if not folder:
        raise CommandError("E0812", "-o names no folder", help="i build model.i --target c -o out")
    if request.has("--wheel") and request.one("--target") == "cuda":
        message = "--wheel is for functions in C, and --target is cuda"
        raise CommandError("E0830", message, help="leave one of them out")
    from ilang.codegen.system.files import read_module

    module = read_module(path)
    heads, machine = heads_of(module), _machine(request)
    names = list(dict.fromkeys(request.all("--def")))
    if not names:
        from ilang.core.notation.files.module import exports

        used = used_in(module)
        outermost = [name for name in heads if name not in used]
        names = [each.name for each in exports(module)] + outermost if outermost else []
    chosen = [heads[name] for name in names if name in heads]
    if chosen:
        components = [name for name in names if name not in heads]
        return _with_sessions(request, screen, module, chosen, components)
    for option in ("--config", "--load"):
        if request.has(option):
            message = f"{option} is for tensor functions and routines, and none is built"
            raise CommandError("E0827", message, help="name one: --def step")
    graphs = [subject.graph for subject in subjects(module, request.all("--def"))]
    inputs = {graph.name: graph.input_names() for graph in graphs}
    shapes = fixed_shapes(named_shapes(request.all("--shape"), inputs), graphs)

    from pathlib import Path

    from ilang.codegen.project.exported_names import prefix_of, renamed
    from ilang.codegen.project.render import exported_component

    stem = Path(path).stem
    prefix = prefix_of(request.one("--prefix"), stem)
    graphs = list({graph.name: graph for graph in graphs}.values())
    functions = all_of(graphs, lambda graph: exported_component(graph, shapes, machine, prefix))
    written = _write(request, functions, module, prefix)
    _tell(screen, graphs, shapes, tuple(renamed(functions)), written, module.source.name)
    if not request.has("--wheel"):
        _tell_functions(screen, [each.name() for each in functions], functions)
    return 0


def _tell_functions(
    screen: Screen, names: Sequence[str], functions: Sequence[ExportedFunction]
) -> None:
    """Tell the names of functions, and sessions, where definitions are part of them."""
    from ilang.codegen.project.comments import inlined_in, some_of

    inlined = inlined_in(functions)
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
    sessions: Sequence[EmittedSession] = (),
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
    """Tell what was assumed of components, which names are others in C, and the files."""
    from pathlib import Path

    from ilang.codegen.project.render import fixed
    from ilang.core.explain.explanation import assumed_notes

    for graph in graphs:
        for note in assumed_notes(fixed(graph, shapes)):
            screen.note(f"{graph.name}: {note}")
    stem, wanted = written[0].stem, Path(source).stem
    if stem == f"{wanted}_model":
        screen.note(f"files are called {stem}: {wanted} is a header or a library of the system")
    if written[0].suffix == ".whl":  # which has names of Python
        renames = ()
    for name, other in dict.fromkeys(renames):
        screen.note(f"{name} is called {other} in C, where that name is taken")
    for file in written:
        screen.write_path(str(file))


def _with_sessions(
    request: Request,
    screen: Screen,
    module: Module,
    heads: Sequence[Head],
    components: Sequence[str],
) -> int:
    """Write a project of tensor functions or routines, and of the components beside them.

    Raises: CommandError E0814, E0825, and whatever is wrong with the definitions.
    """
    from pathlib import Path

    from ilang.codegen.project.exported_names import prefix_of, renamed
    from ilang.codegen.project.render import exported_component
    from ilang.codegen.project.sessions import exported, solved, trained
    from ilang.codegen.session.model import Model

    machine = _machine(request)
    prefix = prefix_of(request.one("--prefix"), Path(module.source.name).stem)
    graphs = [each.graph for each in subjects(module, components)] if components else []
    inputs = {
        head.name: [name for each in head.tensors for name in _names(head, each.name)]
        for head in heads
    }
    with_rows = {name for names in inputs.values() for name in names}
    inputs |= {graph.name: graph.input_names() for graph in graphs}
    given = named_shapes(request.all("--shape"), inputs)
    shapes = fixed_shapes({name: given[name] for name in given.keys() - with_rows}, graphs)
    rows = {name: rows_given(name, given[name], words=True) for name in given.keys() & with_rows}
    config = config_of(request.all("--config"), heads)
    model = Model(module)
    definitions = all_of(
        heads, lambda head: solved(model, head.name, _given(head, rows), settings_of(head, config))
    )
    functions, sessions = exported(definitions, machine, prefix)
    checkpoint = request.one("--load")
    if checkpoint is not None:
        sessions = trained(sessions, checkpoint)
    renames = [*renamed(functions), *(pair for each in sessions for pair in each.renamed)]
    functions += [function for each in sessions for function in each.functions()]
    alone = [
        exported_component(graph, shapes, machine, prefix)
        for graph in {graph.name: graph for graph in graphs}.values()
    ]
    functions += alone
    renames += renamed(alone)
    written = _write(request, functions, module, prefix, sessions)
    _tell(screen, graphs, shapes, renames, written, module.source.name)
    names = [*(each.name for each in sessions), *(each.name() for each in alone)]
    if not request.has("--wheel"):
        _tell_functions(screen, names, functions)
    return 0


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


def fixed_shapes(shapes: Mapping[str, str], graphs: Sequence[Graph]) -> dict[str, tuple[int, ...]]:
    """The shapes, among those that options give by name, of the inputs of components.

    Raises: CommandError E0810.
    """
    known = {name for graph in graphs for name in graph.input_names()}
    return {name: parse_shape(text) for name, text in shapes.items() if name in known}


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
