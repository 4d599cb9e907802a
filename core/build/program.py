"""One definition as a graph: a tensor function, or a run of a routine, for inputs whose shapes are known.

parse -> ``build/functions.py`` and ``build/routines.py`` -> ``build/emission.py`` -> ``ir/graph.py``
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from numbers import Integral, Real
from typing import Any

from ilang.core.build.counting import least_expressions
from ilang.core.build.routines import Built, Result, Routines
from ilang.core.build.settings import Around, Evaluation, Meaning, Setting, evaluated
from ilang.core.build.tensor import SCALAR, Rows
from ilang.core.build.values import Measured, NumberTensor, Stored, Tensor
from ilang.core.diagnostic import DataError, Label, MeaningError, visible
from ilang.core.ir import functions as ast
from ilang.core.ir.graph import ValueName
from ilang.core.ir.graph import operands as node_operands
from ilang.core.limits import check_expressions
from ilang.core.source import Span
from ilang.core.suggestion import did_you_mean
from ilang.core.walks import reached

Given = float | int | Sequence[float | int]


def built(
    around: Around,
    name: str,
    shapes: Mapping[str, Rows],
    config: Mapping[str, Given],
    keep: Sequence[str] = (),
) -> Built:
    """A definition as a graph.

    Args:
        around: its file, and what that may use.
        name: the tensor function or the routine to run.
        shapes: what is known of the axes of its inputs; an input that is not there has them found from use.
        config: configuration values by name.
        keep: further tensors to give, by name.

    Raises:
        Error: MeaningError (E0250, E026, E027, E028), DataError (E0750 to E0752).
    """
    run = Routines(around)
    definition = run.functions.get(name) or run.routines.get(name)
    if definition is None:
        raise _unknown(run, name)
    head = definition.head
    least = least_expressions(run.functions.values(), run.routines.values(), name)[name]
    check_expressions(least, definition.span)
    _refuse_unknown(head, shapes)
    run.begin(name, head.span)
    inputs = [
        Stored(
            "input",
            each.name,
            shapes.get(each.name, (None, None, None)),
            None,
            each.span,
            dtype=each.dtype,
        )
        for each in head.tensors
    ]
    run.callers.begin(head, head.span, [each.span for each in head.tensors], inputs)
    names = run.noted(head.tensors, inputs)
    settings = _settings(head, config)
    run.check_limits(head, settings)
    names.update(settings)
    if isinstance(definition, ast.Function):
        frame = _function(run, definition, names, inputs, settings)
    else:
        frame = run.routine(definition, run.root, names, None)
    return _finished(run, name, frame, inputs, settings, keep)


def _function(
    run: Routines,
    function: ast.Function,
    names: dict[str, Meaning],
    inputs: Sequence[Stored],
    settings: Mapping[str, Setting],
) -> Evaluation:
    """Evaluate a tensor function as what is run; its result is what the program returns."""
    frame = Evaluation(run.root, names, {})
    run.active[id(function.head)] = function.head
    if isinstance(function.body, ast.CustomOperation):
        from ilang.core.build.customs import custom

        result = custom(run, function, inputs, settings, function.span)
    else:
        frame = Evaluation(run.root, names, ast.strings(function.body))
        frame.scope = run.scope
        result = run.body(frame, function.body)
    run.returned = [run.needed(result)]
    return frame


def _refuse_unknown(head: ast.Head, shapes: Mapping[str, Rows]) -> None:
    names = [each.name for each in head.tensors]
    for name in shapes:
        if name not in names:
            listed = f"its inputs are {', '.join(names)}" if names else "it has none"
            help_line = did_you_mean(name, names, listed)
            raise DataError("E0756", f"{head.name} has no input {name}", help=help_line)


def _settings(head: ast.Head, config: Mapping[str, Given]) -> dict[str, Setting]:
    """The configuration of the definition that is run: numbers come at run time until something fixes them."""
    wanted = {each.name: each for each in head.configuration or ()}
    for name in config:
        if name not in wanted:
            takes = f"its configuration is {', '.join(wanted)}" if wanted else "it has none"
            help_line = did_you_mean(name, list(wanted), takes)
            message = f"{head.name} has no configuration value {name}"
            raise DataError("E0750", message, help=help_line)
    values: dict[str, Setting] = {}
    for name, written in wanted.items():
        if name in config:
            values[name] = _given(name, config[name], written)
        elif written.default is None:
            message = f"{head.name} needs the configuration value {name}"
            help_line = f"give it: config={{{name!r}: 1}}, or --config {name}=1"
            raise DataError("E0750", message, written.span, help_line)
        else:
            values[name] = _default(name, written, values)
    return values


def configuration(head: ast.Head, config: Mapping[str, Given]) -> dict[str, Given]:
    """The configuration values of a definition by name, defaults included."""
    values = {name: setting.value for name, setting in _settings(head, config).items()}
    return {name: each for name, each in values.items() if not isinstance(each, str)}


def _given(name: str, value: object, written: ast.Configured) -> Setting:
    number = plain_number(value)
    if number is not None:
        return _number(name, number, written.span)
    if isinstance(value, Iterable) and getattr(value, "shape", None) != ():
        numbers = [plain_number(each) for each in value]
        if None not in numbers:
            return Setting(tuple(n for n in numbers if n is not None), written.span)
    shown = visible(repr(value)[:40])
    message = f"the configuration value {name} is a number or a list of numbers, not {shown}"
    raise DataError("E0750", message, written.span, "numbers are below 1.8e308")


def plain_number(value: Any) -> float | int | None:
    """A number of Python, whichever class it is of; None for what is none, or more than floats hold."""
    number = value.item() if getattr(value, "shape", None) == () else value
    if not isinstance(number, Real):
        return None
    try:
        nearest = float(number)
    except OverflowError:
        return None
    return int(number) if isinstance(number, Integral) else nearest


def _default(name: str, written: ast.Configured, before: Mapping[str, Setting]) -> Setting:
    """A value that is written in the head; it may use those before it."""
    assert written.default is not None
    value = evaluated(written.default, before)
    if isinstance(value, tuple | str):
        return Setting(value, written.span)
    return _number(name, value, written.span)


def _number(name: str, value: float | int, span: Span) -> Setting:
    scalar = Stored("setting", name, SCALAR, value, span)
    return Setting(value, span, tensor=scalar, names=(name,))


def _unknown(run: Routines, name: str) -> DataError:
    others = [*run.functions, *run.routines]
    listed = f"there are {', '.join(others)}" if others else "the file has none"
    message = f"there is no tensor function or routine {name}"
    return DataError("E0751", message, help=did_you_mean(name, others, listed))


def _finished(
    run: Routines,
    name: str,
    frame: Evaluation,
    inputs: Sequence[Stored],
    settings: Mapping[str, Setting],
    keep: Sequence[str],
) -> Built:
    """The graph of what has run, and what it gives."""
    for each in inputs:
        run.emission.read(each)
    run.end(inputs)
    results = [Result("return", str(n), number) for n, number in enumerate(run.returned or ())]
    cells = run.emission.latest
    for cell in [each for each in cells if isinstance(each, Stored)]:
        number = cells[cell]
        if cell.kind == "parameter" and cell in run.assigned:
            results.append(Result("parameter", run.path(cell), number))
        elif cell in run.state:
            if cell not in run.assigned:
                message = f"nothing computes `{cell.name}`, which is read here"
                raise MeaningError("E0281", message, cell.span, f"set it: `{cell.name} =: ...`")
            results.append(Result("state", run.path(cell), number))
    results += _gradients(run)
    results += _kept(run, frame, keep, results)
    merged = run.merges.all()
    results += [Result("merged", cell.name, value) for (value, _), cell in merged.items()]
    _constrain(run)
    numbers = [each.number for each in results]
    graph, number_of = run.emission.graph(name, numbers, inputs, *_names(run))
    held = [
        (cell, number_of[number])
        for cell, number in run.emission.first.items()
        if cell.kind not in ("gradient", "cotangent")
    ]
    kept = {cell for cell, _ in held}
    lasting = [cell for cell in run.order if cell in kept]
    lasting += [cell for cell, _ in held if cell in run.state]
    paths = {cell: run.path(cell) for cell in lasting}
    _refuse_equal(paths)
    return Built(
        graph=graph,
        inputs=tuple(sorted(held, key=lambda pair: pair[1])),
        measured={
            cell: number_of[cells[cell.initial.value]]
            for cell, _ in held
            if isinstance(cell.initial, Measured)
        },
        results=tuple(Result(r.role, r.path, number_of[r.number]) for r in results),
        fixed=dict(run.fixed),
        settings={k: s.tensor for k, s in settings.items() if isinstance(s.tensor, Stored)},
        paths=paths,
        forward=frozenset(number_of[number] for number in _forward(run)),
        merged={cell: whole for (_, whole), cell in merged.items()},
        integers=run.integers,
        limits=dict(run.limits),
    )


def _names(run: Routines) -> tuple[list[ValueName], list[ValueName]]:
    """The nodes that have names in the file of the definition, outermost ones first; those that calls give.

    What a parameter, or state, has in the next run is called ``next_w``, as in C.
    """
    file, nodes = run.root.span.source.name, run.emission.latest
    called = [
        ValueName(nodes[value], name, span)
        for _, name, value, span in sorted(run.bindings, key=lambda each: each[0])
        if value in nodes and span.source.name == file
    ]
    called += [
        ValueName(nodes[cell], f"next_{run.emission.named(cell)}", cell.span)
        for cell in run.assigned
        if cell in run.emission.first
    ]
    least = min((depth for depth, *_ in run.called), default=0)
    defined = [
        ValueName(nodes[value], name, span)
        for depth, name, value, span in run.called
        if depth == least and value in nodes and not isinstance(value, Stored | NumberTensor)
    ]
    return called, defined


def _forward(run: Routines) -> set[int]:
    """The nodes that what goes back is computed from; of a run that goes nowhere back, all but new values."""
    if run.gradients.back is None:
        return set(range(len(run.emission.nodes))) - run.emission.updates
    return reached(
        [run.gradients.back[0]], lambda number: node_operands(run.emission.nodes[number])
    )


def _gradients(run: Routines) -> list[Result]:
    """The gradients of parameters, and others that the text names: of two values with one text the second is ``_2``."""
    if run.gradients.back is None:
        cells = [cell for cell in run.gradients.cells.values() if cell in run.emission.latest]
    else:
        for value in list(run.gradients.reached):
            if isinstance(value, Stored) and value.kind == "parameter":
                run.gradients.of(value, value.span)
        cells = [
            cell
            for value, cell in sorted(
                run.gradients.cells.items(), key=lambda pair: run.path(pair[1])
            )
            if value in run.gradients.reached or cell in run.emission.latest
        ]
    results: dict[str, Result] = {}
    for cell in cells:
        path = run.path(cell)
        of = path.removesuffix(".grad")
        numbered = (f"{of}_{n}.grad" for n in count(2))
        path = path if path not in results else next(p for p in numbered if p not in results)
        results[path] = Result("gradient", path, run.needed(cell))
    return list(results.values())


def _kept(
    run: Routines, frame: Evaluation, keep: Sequence[str], given: Sequence[Result]
) -> list[Result]:
    """Further tensors that the caller asks for by name, those aside that a run gives anyway."""
    results: list[Result] = []
    named: dict[str, object] = {**frame.names, **{run.path(cell): cell for cell in run.named}}
    paths = {each.path for each in given if each.role != "return"}
    for name in dict.fromkeys(keep):
        base, _, part = name.rpartition(".")
        value = named.get(base if part == "grad" else name)
        if name in paths:
            continue
        if not isinstance(value, Tensor):
            help_line = did_you_mean(
                name,
                [each for each in named if isinstance(named[each], Tensor)],
                "names of its own text may be kept",
            )
            raise DataError("E0757", f"{frame.owner.base} has no tensor {name}", help=help_line)
        if part == "grad" and run.gradients.back is not None and value in run.gradients.reached:
            cell = run.gradients.of(value, run.gradients.back[2])
            results.append(Result("kept", name, run.needed(cell)))
        elif value in run.emission.latest:
            results.append(Result("kept", name, run.emission.latest[value]))
    return results


def _constrain(run: Routines) -> None:
    """Assert the conditions on sizes, of values that were computed."""
    for value in run.constraints:
        run.emission.read(value)
    for value, *_ in run.callers.notes:
        run.emission.read(value)


def _refuse_equal(paths: Mapping[Stored, str]) -> None:
    """No two tensors have one path."""
    known: dict[str, Stored] = {}
    for cell, path in paths.items():
        other = known.setdefault(path, cell)
        if other is cell:
            continue
        labels = [Label(cell.span, "one"), Label(other.span, "the other")]
        message = f"two tensors have the path {path}"
        help_line = 'give a call a name of its own: `layer(x; 64, label = "first")`'
        place = cell.span
        owners = (other.owner, cell.owner)
        if cell.kind == "declared" and owners[0] is not None and owners[1] is not None:
            place = owners[1].span
            labels = [Label(place, "again here"), Label(owners[0].span, "first here")]
            labels.append(Label(cell.span, "lasts from run to run"))
            message = (
                f"{owners[1].definition} has state, {path}, and is called twice for one tensor"
            )
            help_line = "call it once in a run: both calls would have the same state"
        raise MeaningError("E0279", message, place, help_line, labels)
