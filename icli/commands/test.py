"""``i test``: the examples in the comments of files, run."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from ilang.core.diagnostic import Error, as_object, gathered, visible
from ilang.icli.command import (
    EMULATE,
    JSON,
    TARGET,
    Command,
    CommandOperand,
    Option,
    Request,
    target_of,
)
from ilang.icli.folders import program_files
from ilang.icli.screen import Screen

if TYPE_CHECKING:
    from ilang.codegen.system.npy import Array
    from ilang.core.ir.syntax import Module
    from ilang.icli.examples import Example

    Results = list[tuple[str, Array]]
    Run = Callable[[Example], tuple[str, Results]]

AN_EXAMPLE = "an example is `# in x = [1, 2]`, then `# out = 3`, above what it is of"


def run(request: Request, screen: Screen) -> int:
    """Run the examples of each file; a line for each file whose examples hold, then what differs."""
    from ilang.core.diagnostic import counted

    target = target_of(request)
    files: list[dict[str, object]] = []
    refused: list[Error] = []
    for path in program_files(request.operands):
        names: list[str] = []
        try:
            errors = _file(path, request, target, names)
        except Error as error:
            errors = [error]
        count, of = len(names), [*dict.fromkeys(names)]
        failure = {"error": as_object(gathered(errors))} if errors else {}
        files.append({"file": path, "ok": not errors, "examples": count, "of": of, **failure})
        refused += errors
        if not errors and not screen.json:
            summary = f"ok: {counted(count, 'example')} of {', '.join(of)}"
            screen.write_exact(f"{visible(path)} {summary if count else 'has no example'}\n")
            if not count:
                screen.note(AN_EXAMPLE)
    return screen.verdict({"files": files}, refused)


def _file(path: str, request: Request, target: str, names: list[str]) -> list[Error]:
    """Run the examples of a file, and write their results into it where that is asked for.

    Args:
        path: of the file.
        request: the options.
        target: what runs the examples.
        names: takes the definition of each example that ran.

    Returns: the error of each example that does not hold.

    Raises: Error (the file cannot be read or written, or has no definition to run).
    """
    from ilang.codegen.system.files import read_module, write_whole
    from ilang.icli.examples import check, examples_of, located, updated

    module = read_module(path)
    examples = examples_of(module.source)
    if not examples:
        return []
    chosen = request.one("--def")
    owner = _owner(module, chosen)
    run_chosen = _runner(module, chosen, target) if chosen is not None or owner is None else None
    refused: list[Error] = []
    changes: list[tuple[int, int, str]] = []
    for example in examples:
        below = chosen if owner is None else owner(example)
        if chosen is not None and below != chosen:
            continue
        try:
            name, results = (run_chosen or _runner(module, below, target))(example)
        except Error as error:
            refused.append(located(error, example))
            continue
        try:
            names.append(name)
            check(example, results)
        except Error as error:
            if request.has("--update"):
                changes += updated(example, results)
            else:
                refused.append(error)
    if changes:
        text = module.source.text
        for start, end, new in sorted(changes, reverse=True):
            text = text[:start] + new + text[end:]
        write_whole(os.path.realpath(path), lambda stream: stream.write(text.encode()))
    return refused


def _owner(module: Module, name: str | None) -> Callable[[Example], str] | None:
    """A function that says which definition of a file an example is of; None where all are of one.

    All examples are of the definition that no other uses, where there is one, and no other is named. Else each is of
    the definition below it, or of the last one.
    """
    from ilang.core.notation.files.module import exports
    from ilang.icli.definitions import heads_of, used_in

    heads = heads_of(module)
    unused = {*({*heads} - used_in(module)), *(each.name for each in exports(module))}
    if len(unused) < 2 and (name is None or name in unused):
        return None
    places = [(each.span.start, each.name) for each in heads.values()]
    places += [
        (each.span.start, each.name)
        for each in module.definitions
        if each.span.source == module.source
    ]
    places.sort()

    def below(example: Example) -> str:
        at = example.span().start
        return next((each for start, each in places if at < start), places[-1][1])

    return below


def _runner(module: Module, name: str | None, target: str) -> Run:
    """A function that runs the one definition of a file, or the named one, on an example.

    Raises: CommandError E0808, E0818.
    """
    from ilang.icli.definitions import functions_of, head_of, one_function
    from ilang.icli.programs import named_results, one_subject

    functions = functions_of(module, name)
    if functions:
        function = one_function(functions)
        tensors = head_of(function).tensors

        def call(example: Example) -> tuple[str, Results]:
            arrays = example.arrays(
                [each.name for each in tensors], [each.dtype for each in tensors]
            )
            session = function.session({}, {}, target=target)
            session.fit(*arrays)
            return function.name, named_results(session.outputs, session(*arrays))

        return call
    subject = one_subject(module, name)
    graph, component = subject.graph, subject.component()
    inputs = graph.input_names()

    def apply(example: Example) -> tuple[str, Results]:
        arrays = example.arrays(inputs, subject.graph.written_dtypes())
        answer = component(*arrays, target=target)
        return graph.name, named_results(graph.output_names(graph.outputs), answer)

    return apply


COMMAND = Command(
    "test",
    "Run the examples in the comments of files, and compare the results.",
    run,
    (CommandOperand("program", "FILE|FOLDER...", "program", required=True, nargs=-1),),
    (
        JSON,
        Option.of_definition("Run this definition of the files"),
        Option("--update", None, "Write results that differ into the files"),
        TARGET,
        EMULATE,
    ),
    "An example is a line `# in x = [[1, 2], [3, 4]]` for each input, then a line `# out = [3, 7]` for each"
    " result. In a file of several definitions it stands above the one that it is of. Arrays are written as for"
    " `i run`. Results may differ by 1e-5 of the written number, or by what stands behind it: `# out = 0.33 within"
    " 0.01`.",
)
