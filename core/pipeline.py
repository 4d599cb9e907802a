"""The pipeline: every step from text to kernels, as data.

``STEPS`` drives lowering, the stages of ``i explain --emit``, the sections of golden files, and the page that documents
it (docs/architecture.md). The functions above it run parts of it for those who start or stop between. The type of a
step, and the steps of each kind of machine, are in ``steps.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ilang.core.diagnostic import Error, ScheduleError, ShapeError
from ilang.core.machine import CPU, GPU, Machine
from ilang.core.record import replace
from ilang.core.steps import (
    BUILD,
    CPU_PASSES,
    GPU_PASSES,
    GRADIENTS,
    PASSES,
    Step,
    check,
    extents_text,
    graph_text,
    lazy,
    loops_text,
    of_value,
    shapes_text,
    verified,
)

if TYPE_CHECKING:  # what most programs do not need is imported where it is used
    from ilang.core.build.program import Given
    from ilang.core.build.routines import Built
    from ilang.core.build.settings import Around
    from ilang.core.build.tensor import Rows
    from ilang.core.explain.explanation import Explanation
    from ilang.core.explain.story import Story
    from ilang.core.explain.why import Why
    from ilang.core.infer.inferred import Inferred
    from ilang.core.infer.solved import Solved
    from ilang.core.ir.graph import Graph
    from ilang.core.ir.host import Host
    from ilang.core.ir.kernel import Program
    from ilang.core.ir.schedule import Scheduled
    from ilang.core.ir.shaped import Shaped
    from ilang.core.ir.syntax import Definition, Module, Tree
    from ilang.core.passes.syntax_to_graph import Definitions

__all__ = ["GRADIENTS", "extents_text", "graph_text", "loops_text", "shapes_text"]


def text_component(text: str, name: str = "<text>") -> Tree:
    """The syntax tree of one program text."""
    from ilang.core.notation.components.combinator import parse_program
    from ilang.core.source import Source

    return parse_program(Source(name, text))


def text_program(text: str, name: str = "<text>") -> Tree | Module:
    """The program of a text: definitions, where one of them names its inputs (``f(x) = ...``), else a tree.

    A text that is refused by itself may name components of the library ``std``, and is then definitions, too.
    """
    try:
        if "=" not in text:  # few programs at a prompt define anything
            return text_component(text, name)
        from ilang.core.notation.files.module import text_module

        return text_module(text, name) or text_component(text, name)
    except Error as error:
        from ilang.core.notation.files.pieces import with_pieces

        return with_pieces(text, name, error)


def program_graph(program: Tree | Module) -> Graph:
    """The graph of a program: of definitions that of the only one that nothing else uses.

    Raises:
        ModuleError: E0430 (there are several).
    """
    from ilang.core.ir.syntax import Module
    from ilang.core.notation.files.module import only_export

    if isinstance(program, Module):
        return module_graph(program, only_export(program).name)
    return graph_of(program, "program")


def graph_of(tree: Tree, name: str, definitions: Mapping[str, Definition] | None = None) -> Graph:
    """The graph of a tree whose names are ``definitions``."""
    from ilang.core.passes.syntax_to_graph import syntax_to_graph

    return verified("graph", syntax_to_graph(tree, name, definitions or {}))


def definitions_of(module: Module) -> Definitions:
    """The definitions of a module by name."""
    from ilang.core.passes.syntax_to_graph import Definitions

    return Definitions({definition.name: definition for definition in module.definitions})


def module_graph(module: Module, name: str, definitions: Definitions | None = None) -> Graph:
    """The graph of one definition of a module; for many of them, ``definitions`` are found once."""
    from ilang.core.passes.syntax_to_graph import syntax_to_graph

    definitions = definitions_of(module) if definitions is None else definitions
    body, parameters = definitions[name].body, definitions[name].parameters
    return verified("graph", syntax_to_graph(body, name, definitions, parameters))


def infer(
    graph: Graph,
    dtypes: Sequence[str | None] | None = None,
    ranks: Sequence[int | None] | None = None,
    shapes: Sequence[tuple[int, ...]] | None = None,
) -> Shaped:
    """Everything inferred. ``shapes`` fixes every extent; ``ranks`` alone leaves run-time sizes."""
    from ilang.core.passes.solved_to_shaped import solved_to_shaped, with_extents

    if shapes is not None:
        ranks = [len(shape) for shape in shapes]
    with orders_suggested(graph, shapes):
        shaped = solved_to_shaped(solve(graph, ranks), dtypes)
        if shapes is not None:
            shaped = with_extents(shaped, shapes)
    return verified("shaped", shaped)


@contextmanager
def orders_suggested(graph: Graph, shapes: Sequence[tuple[int, ...]] | None) -> Iterator[None]:
    """A context in which refusals of operations in einx notation say where another order of tensors would fit."""
    try:
        yield
    except ShapeError as error:
        from ilang.core.passes.einx.orders import with_order

        raise with_order(error, graph, shapes) from None


def solve(graph: Graph, ranks: Sequence[int | None] | None = None) -> Solved:
    """The extents of every value of a graph and the projections of its operations; ``ranks`` are those of arrays."""
    from ilang.core.infer.solved import graph_to_solved

    return verified("solved", graph_to_solved(einx_to_graph(graph, ranks), ranks))


def einx_to_graph(graph: Graph, ranks: Sequence[int | None] | None = None) -> Graph:
    """The graph without nodes that leave ranks open, verified, for arrays of these ranks."""
    from ilang.core.ir.graph import OPEN

    if not any(isinstance(node, OPEN) for node in graph.nodes):
        return graph
    from ilang.core.passes import einx_to_graph as step

    return verified("graph", step.einx_to_graph(graph, ranks))


def infer_sizes(graph: Graph, ranks: Sequence[int | None]) -> Shaped:
    """The extents of everything, whatever the element types are: those of the result mean nothing."""
    from ilang.core.passes.untyped import WIDEST, untyped

    return infer(untyped(einx_to_graph(graph, ranks)), [WIDEST] * len(graph.inputs), ranks)


def infer_rows(graph: Graph) -> Inferred:
    """The rows of every value of a graph of operations between tensors."""
    from ilang.core.infer.inferred import Inferred

    return Inferred(verified("graph", graph))


story: Callable[[Graph, int | None], Story] = lazy("explain.story", "tell")
"""The results of the inference of a graph and their reasons, stage by stage, at most so many of each."""


def tensors_solved(inferred: Inferred, outputs: Sequence[int]) -> Solved:
    """The extents of what some values of a graph of operations between tensors are computed from."""
    from ilang.core.infer.solved import Solved
    from ilang.core.passes.solved_to_shaped import needed_values

    return verified("solved", Solved(inferred, needed_values(inferred.graph, outputs)))


def tensors_shaped(solved: Solved, dtypes: Sequence[str], outputs: Sequence[int]) -> Shaped:
    """The assignments that compute some values of a solved graph, without inputs that these do not need.

    Numbers that meet no value are f64 where an input is.
    """
    from ilang.core.passes.solved_to_shaped import solved_to_shaped

    least = "f64" if "f64" in dtypes else "f32"
    return verified("shaped", solved_to_shaped(solved, dtypes, outputs, least))


def definition_built(
    around: Around,
    name: str,
    shapes: Mapping[str, Rows],
    config: Mapping[str, Given],
    keep: Sequence[str] = (),
) -> Built:
    """A tensor function, or a run of a routine, as a graph; ``build/program.py`` says what its arguments are."""
    built: Built = _taken(BUILD, (around, name, shapes, config, keep), CPU)
    return built


def gradients_attached(shaped: Shaped) -> Shaped:
    """The program with its gradients computed: no input stands for one any more."""
    attached: Shaped = _taken(GRADIENTS, shaped, CPU)
    return attached


def lower(shaped: Shaped, machine: Machine = CPU) -> Program:
    """The kernels of a shaped program for a machine.

    Raises:
        ScheduleError: E0320 to E0329, with the nearest legal schedule.
    """
    program: Program = _last(steps_below(shaped, machine))
    return program


def host_of(program: Program) -> Host:
    """The host program of finished kernels, verified: what a target prints around them."""
    host: Host = _taken(HOST, program, program.machine)
    return host


def stage_text(
    graph: Graph,
    stage: str,
    shapes: Sequence[tuple[int, ...]] | None = None,
    machine: Machine = CPU,
) -> str:
    """A program as text at one of the stages of a machine; ``loops`` is what the last pass gives."""
    if stage == "graph":
        return graph_text(graph)
    ranks = None if shapes is None else [len(shape) for shape in shapes]
    if stage == "expanded":
        return graph_text(einx_to_graph(graph, ranks))
    if stage == "extents":
        return extents_text(solve(graph, ranks))
    return shaped_stage_text(infer(graph, shapes=shapes), stage, machine)


def shaped_stage_text(shaped: Shaped, stage: str, machine: Machine = CPU) -> str:
    """An inferred program as text at one of the stages from there on."""
    if stage == "shapes":
        return shapes_text(shaped)
    if stage == FINAL:
        return loops_text(lower(shaped, machine))
    if stage == HOST.stage:
        return HOST.show(host_of(lower(shaped, machine)))
    return next(
        step.show(value) for step, value in steps_below(shaped, machine) if step.stage == stage
    )


def explain(
    graph: Graph,
    shapes: Sequence[tuple[int, ...]] | None = None,
    verbose: bool = False,
    machine: Machine = CPU,
) -> Explanation:
    """The explanation of a program for a machine; ``verbose`` adds the story of the inference."""
    shaped = infer(graph, shapes=shapes)
    return explain_shaped(graph, shaped, verbose, given=shapes is not None, machine=machine)


def explain_shaped(
    graph: Graph,
    shaped: Shaped,
    verbose: bool = False,
    *,
    given: bool = False,
    machine: Machine = CPU,
) -> Explanation:
    """The explanation of a graph that was inferred; ``given`` says that shapes of the inputs were given."""
    from ilang.core.explain import explanation

    shaped = _in_order(shaped)
    kept = {step.stage: value for step, value in steps_below(shaped, machine)}
    program = kept[PASSES[machine.kind][-1].stage]
    scheduled = _schedule_of_written_axes(kept, machine)
    return explanation.explain(graph, shaped, scheduled, program, verbose, given)


def schedule(shaped: Shaped, machine: Machine = CPU) -> Scheduled:
    """The schedule of an inferred program for a machine, of its axes as they are written.

    Raises:
        ScheduleError: E0320 to E0329, with the nearest legal schedule.
    """
    return _schedule_of_written_axes(
        {step.stage: value for step, value in steps_below(shaped, machine)}, machine
    )


def _schedule_of_written_axes(kept: Mapping[str, Any], machine: Machine) -> Scheduled:
    """The schedule of the program before its axes were collapsed; ``kept`` has the results of the steps by stage."""
    viewed, collapsed, scheduled = (kept[s.stage] for s in (VIEWS, COLLAPSED, SCHEDULE))
    is_copied = scheduled.shaped is not collapsed and not scheduled.is_apart
    is_shown = collapsed is viewed and not is_copied
    shown: Scheduled = scheduled if is_shown else _taken(AS_WRITTEN, viewed, machine)
    return shown


def why(shaped: Shaped, machine: Machine = CPU) -> Why:
    """The reasons of the schedule of an inferred program: what was compared by price, and what rules chose."""
    from ilang.core.explain import why as reasons
    from ilang.core.schedule.compared import compared, compared_places

    stages = (VIEWS.stage, SCHEDULE.stage)
    viewed, scheduled = (
        value for step, value in steps_below(shaped, machine) if step.stage in stages
    )
    priced, is_all = compared(scheduled)
    kept = () if scheduled.is_apart else compared_places(viewed, machine)
    return reasons.why(viewed, scheduled, (*priced, *kept), is_all)


def stage_texts(text: str, machine: Machine = CPU) -> dict[str, str]:
    """The program text after each step for a machine, by stage, as golden files show it."""
    reading, wiring = FRONT[:2]
    tree = _taken(reading, text, machine)
    shown = {reading.stage: reading.show(tree)}
    return {**shown, **graph_texts(_taken(wiring, tree, machine), machine)}


def graph_texts(graph: Graph, machine: Machine = CPU) -> dict[str, str]:
    """The text of a graph after each step for a machine, by stage, from the graph on."""
    value: Any = graph
    shown = {"graph": graph_text(graph)}
    for step in FRONT[2:]:
        value = _taken(step, value, machine)
        shown[step.stage] = step.show(value)
    for step, lowered in steps_below(value, machine):
        value = lowered
        shown[step.stage] = step.show(lowered)
    shown[HOST.stage] = HOST.show(host_of(value))
    return shown


def described_stages(
    graph: Graph, shaped: Shaped, machine: Machine = CPU
) -> Iterator[tuple[str, str, str]]:
    """Every stage of an inferred program, in order: its name, what the step to it does, its text."""
    wiring, inference = FRONT[1], FRONT[-1]
    yield wiring.stage, wiring.summary, graph_text(graph)
    yield inference.stage, inference.summary, shapes_text(shaped)
    program: Any = None
    for step, value in steps_below(shaped, machine):
        yield step.stage, step.summary, step.show(value)
        program = value
    yield HOST.stage, HOST.summary, HOST.show(host_of(program))


def steps_below(shaped: Shaped, machine: Machine) -> Iterator[tuple[Step, Any]]:
    """Every step from a shaped program to its kernels for a machine, with what it gives.

    Raises:
        ScheduleError: E0320 to E0329, with the nearest legal schedule.
    """
    try:
        yield from _steps(shaped, machine)
    except ScheduleError as error:
        from ilang.core.schedule.advice import advised

        raise advised(shaped, error, lambda other: _lowered(other, machine)) from None


def _steps(shaped: Shaped, machine: Machine) -> Iterator[tuple[Step, Any]]:
    value: Any = shaped
    for step in (*LOWERING, *PASSES[machine.kind]):
        value = _taken(step, value, machine)
        yield step, value


def _lowered(shaped: Shaped, machine: Machine = CPU) -> Program:
    program: Program = _last(_steps(shaped, machine))
    return program


def _last(steps: Iterator[tuple[Step, Any]]) -> Any:
    """The result of the last step; those of the others are not kept."""
    value: Any = None
    for _, result in steps:
        value = result
    return value


def _taken(step: Step, value: Any, machine: Machine) -> Any:
    """The result of a step for a machine, verified; one that is unchanged has been."""
    given = step.run(value, machine)
    if step.verify is not None and given is not value:
        step.verify(given, value)
    return given


fit: Callable[[Shaped, Sequence[tuple[int, ...]]], tuple[int, ...]] = lazy(
    "infer.fit", "fit_shaped"
)
"""The extents of arrays of these shapes, one per size, or a ShapeError."""


def _in_order(shaped: Shaped) -> Shaped:
    """The program with its products in the order of known extents; most programs have none of several operands."""
    if not any(getattr(node, "associative", False) for node in shaped.nodes):
        return shaped
    from ilang.core.transform.products import products_in_order

    return products_in_order(shaped)


def _moved(shaped: Shaped, machine: Machine) -> Any:
    from ilang.core.ir.known_extents import extents_of
    from ilang.core.transform.conditions import without_met_guards
    from ilang.core.transform.views import moved_views

    program = _in_order(without_met_guards(shaped))
    return moved_views(program, extents_of(program, machine))


FRONT = (
    Step(
        "core/notation",
        "text",
        "core/ir/syntax.py",
        "text as written, every node with its span",
        lambda text, _: text_program(text),
        None,
        "syntax",
        lazy("notation.functions.printing", "print_program"),
    ),
    Step(
        "core/passes/syntax_to_graph.py",
        "syntax",
        "core/ir/graph.py",
        "combinators and names of values wired away",
        lambda program, _: program_graph(program),
        None,
        "graph",
        graph_text,
    ),
    Step(
        "core/passes/einx_to_graph.py",
        "graph",
        "core/ir/graph.py",
        "einx notation, and kernels without ranks, as assignments and views",
        of_value("passes.einx_to_graph", "einx_to_graph"),
        check("graph"),
        "expanded",
        graph_text,
    ),
    Step(
        "core/infer/solved.py",
        "graph",
        "core/infer/solved.py",
        "ranks, extents, loops of operations",
        of_value("infer.solved", "graph_to_solved"),
        check("solved"),
        "extents",
        extents_text,
    ),
    Step(
        "core/passes/solved_to_shaped.py",
        "solved",
        "core/ir/shaped.py",
        "element types; operations as assignments",
        of_value("passes.solved_to_shaped", "solved_to_shaped"),
        check("shaped"),
        "shapes",
        shapes_text,
    ),
)
"""From text to what is shaped: the same for every machine."""

VIEWS = Step(
    "core/transform/views.py",
    "shaped",
    "core/ir/shaped.py",
    "views moved out of the way of fusion",
    _moved,
    check("shaped"),
    "views",
    shapes_text,
)
"""The step to the same program with views out of the way, before anything is chosen."""

COLLAPSED = Step(
    "core/schedule/collapsing.py",
    "shaped",
    "core/ir/shaped.py",
    "contiguous axes collapsed",
    lazy("schedule.collapsing", "shaped_to_collapsed"),
    check("shaped"),
    "collapsed",
    shapes_text,
)
"""The step to the same program over fewer, longer axes."""

SCHEDULE = Step(
    "core/schedule/shaped_to_schedule.py",
    "shaped",
    "core/ir/schedule.py",
    "loop order, tiles, fusion, staging and accumulators chosen",
    lazy("schedule.shaped_to_schedule", "priced_schedule"),
    check("schedule"),
    "schedule",
    lazy("explain.schedule", "scheduled_text"),
)
"""The step that chooses."""
AS_WRITTEN = replace(SCHEDULE, run=lazy("schedule.shaped_to_schedule", "shaped_to_schedule"))
"""The same for a program whose values are computed as it says, each once."""

_loops = lazy("passes.nest_to_kernel", "nest_to_kernel")
_assignment_text = lazy("explain.assignments", "assignment_text")

LOWERING = (
    VIEWS,
    COLLAPSED,
    SCHEDULE,
    Step(
        "core/passes/nest_to_kernel.py",
        "schedule",
        "core/ir/kernel.py",
        "loop nests and buffers",
        lambda scheduled, _: _loops(scheduled, _assignment_text),
        check("kernel"),
        "lowered",
        loops_text,
    ),
)
"""From what is shaped to loops, by schedules that are chosen for a machine."""

HOST = Step(
    "core/lower/host.py",
    "kernel",
    "core/ir/host.py",
    "checks, workspace, launches",
    of_value("lower.host", "kernel_to_host"),
    check("host"),
    "host",
    lazy("explain.host", "host_text"),
)
"""From kernels to the program around them, which targets print with them."""

STEPS = (*FRONT[:2], BUILD, *FRONT[2:], GRADIENTS, *LOWERING, *CPU_PASSES, *GPU_PASSES, HOST)
FINAL = "loops"
"""The stage that is what the last pass of the machine gives, whichever that is."""


def stages_of(machine: Machine) -> tuple[str, ...]:
    """The stages as which a program for a machine can be printed, the text itself aside."""
    steps = (*FRONT[1:], *LOWERING, *PASSES[machine.kind])
    return (*(step.stage for step in steps), FINAL, HOST.stage)


STAGES = tuple(dict.fromkeys(stage for m in (CPU, GPU) for stage in stages_of(m)))
"""The same of any machine."""
