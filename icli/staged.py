"""Programs of every kind on their way down: a component, or a tensor function or routine, at shapes or at none.

What is asked of a program (its graph, what is inferred of it, its page, its text at a stage) is asked of both alike: by
``i explain``, ``i graph`` and ``i diff``, by the REPL and by editors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ilang.core.diagnostic import ScheduleError, ShapeError
from ilang.core.ir.graph import Graph
from ilang.core.ir.syntax import Module, Tree
from ilang.core.machine import CPU, MACHINES, Machine
from ilang.core.record import record, replace
from ilang.icli.lines import LAST
from ilang.icli.programs import Subject, all_shapes, open_program, several, subjects
from ilang.icli.replies import Reply

if TYPE_CHECKING:
    from ilang.codegen.session.function import DefinitionExplanation, Function
    from ilang.core.build.program import Given
    from ilang.core.explain.explanation import Explanation
    from ilang.core.ir.shaped import Shaped
    from ilang.icli.command import Request
    from ilang.icli.session import ReplSession

Shapes = tuple[tuple[int, ...], ...]
WRITTEN = "nests"
"""The stage that ``--schedule`` prints: every expression with its schedule, as it could be pasted back."""
WHY = "why"
"""The stage that ``--why`` prints: what was compared where prices chose a schedule."""
LETTERS = "Shapes read batch|input->output. Loops, work and all sizes, for example:"
ROWS = "Rows: batch|input->output; ? is one axis, ... any number. Loops and work with:"


@record
class ComponentAtShapes:
    """A component for inputs of some shapes, or of any; ``wired`` is its graph."""

    wired: Graph
    shapes: Shapes | None

    @property
    def name(self) -> str:
        """The name of the component."""
        return self.wired.name

    def is_open(self) -> bool:
        """Whether it has a graph alone: never, since shapes of a component may stay open."""
        return False

    def graph(self) -> Graph:
        """The graph."""
        return self.wired

    def shaped(self) -> Shaped:
        """Everything that is inferred."""
        from ilang.core.pipeline import infer

        return infer(self.wired, shapes=self.shapes)

    def title(self) -> str:
        """The line above one of several pages: what the component takes and gives."""
        from ilang.core.explain.page import signature

        return signature(self.shaped())

    def explanation(self, verbose: bool = False, machine: Machine = CPU) -> Explanation:
        """The explanation, as data."""
        from ilang.core.pipeline import explain

        return explain(self.wired, self.shapes, verbose, machine)

    def page(self, verbose: bool = False, machine: Machine = CPU) -> Explanation:
        """The page: the explanation itself, which is printed for a terminal; ``verbose`` with what nvcc says of it."""
        page = self.explanation(verbose, machine)
        if not (verbose and page.execution.occupancy):
            return page
        from ilang.codegen.device.registers import registers_of
        from ilang.core.explain.occupancy import occupancy_rows
        from ilang.core.pipeline import lower

        program = lower(self.shaped(), MACHINES["cuda"])
        rows = occupancy_rows(program, registers_of(program))

        return replace(page, execution=replace(page.execution, occupancy=rows))

    def text(self, stage: str, target: str = "c") -> str:
        """The text at one stage of the way down to a target."""
        from ilang.core import pipeline

        if stage == WRITTEN:
            from ilang.core.explain.page import schedule_text

            return schedule_text(self.explanation(machine=MACHINES[target]))
        if stage in ("graph", "expanded", "extents"):
            return pipeline.stage_text(self.wired, stage, self.shapes)
        return _shaped_text(self.shaped(), stage, target)

    def data(self, machine: Machine) -> dict[str, object]:
        """The explanation as a JSON-ready object."""
        from ilang.core.explain.page import page_data

        return {"name": self.name, **page_data(self.explanation(True, machine))}


@record
class DefinitionAtShapes:
    """A tensor function or a routine for inputs of some shapes, by name, or of any, and with some configuration."""

    function: Function
    shapes: Mapping[str, str]
    config: Mapping[str, Given]

    @property
    def name(self) -> str:
        """The name of the definition."""
        return self.function.name

    def is_open(self) -> bool:
        """Whether it has a graph alone: it has inputs, and none of them has a shape."""
        from ilang.icli.definitions import head_of

        return bool(head_of(self.function).tensors) and not self.shapes

    def graph(self) -> Graph:
        """The graph of a run, gradients still inputs that stand for them."""
        return self.function.graph(self.shapes, self.config)

    def shaped(self) -> Shaped:
        """The program of a run, typed, gradients attached."""
        return self.function.shaped(self.shapes, self.config)

    def title(self) -> str:
        """The line above one of several pages: none, since a page begins with the head."""
        return ""

    def explanation(self, machine: Machine = CPU) -> DefinitionExplanation:
        """The explanation of a run, as data."""
        return self.function.explain(self.shapes, self.config, machine=machine)

    def page(self, verbose: bool = False, machine: Machine = CPU) -> str:
        """The page: without shapes what the text says, ``verbose`` of every value; else everything."""
        from ilang.icli.definitions import signature

        head = signature(self.function)
        if not self.is_open():
            return f"{head}\n\n{self.explanation(machine)}"
        if verbose:
            page = self.function.shape_so_far({}, self.config).listing()
            return f"{head}\n\n{page}\n\n{ROWS}\n  {self._with_shapes(None)}\n"
        rows = self.function.shape_by_example(self.config)
        if rows.example is None:
            return f"{head}\n\n{rows}\n\n{ROWS}\n  {self._with_shapes(None)}\n"
        return f"{head}\n\n{rows}\n\n{LETTERS}\n  {self._with_shapes(rows.example.texts())}\n"

    def _with_shapes(self, shapes: Mapping[str, str] | None) -> str:
        """The options that give each input a shape, of an example or to be filled in; of a file, the command."""
        from shlex import quote

        from ilang.icli.definitions import functions_of, head_of

        names = [each.name for each in head_of(self.function).tensors]
        texts = {name: "..." if shapes is None else f"'{shapes[name] or '.'}'" for name in names}
        words = [f"--shape {name}={text}" for name, text in texts.items()]
        module = self.function.model.module
        file = module.source.name
        if file.endswith(".i") and shapes is not None:
            meant = [each.name for each in functions_of(module, None)]
            words = [f"--def {self.name}"] * (meant != [self.name]) + words
            words += [f"--config {name}={quote(str(value))}" for name, value in self.config.items()]
            words.insert(0, f"i explain {quote(file)}")
        lines = [words[0]]
        for word in words[1:]:
            if len(lines[-1]) + len(word) < 74:
                lines[-1] += f" {word}"
            else:
                lines.append(f"  {word}")
        return " \\\n  ".join(lines)

    def text(self, stage: str, target: str = "c") -> str:
        """The text of a run at one stage of the way down to a target."""
        from ilang.core import pipeline

        if stage in ("graph", "expanded"):  # functions have no notations that leave ranks open
            return pipeline.graph_text(self.graph())
        definition = self.function.definition(self.shapes, self.config)
        if stage == "extents":
            return pipeline.extents_text(definition.solved)
        if stage == "shapes":
            return pipeline.shapes_text(definition.typed())
        return _shaped_text(definition.shaped(), "schedule" if stage == WRITTEN else stage, target)

    def data(self, machine: Machine) -> dict[str, object]:
        """The explanation as a JSON-ready object: without shapes the rows that are known so far."""
        from ilang.core.explain.page import as_data, page_data

        if self.is_open():
            return {"name": self.name, "rows": as_data(self.function.shape_so_far({}, self.config))}
        page = self.explanation(machine)
        lasting = {"parameters": as_data(page.parameters), "state": as_data(page.state)}
        return {"name": self.name, **lasting, "program": page_data(page.program)}


ProgramAtShapes = ComponentAtShapes | DefinitionAtShapes


def _shaped_text(shaped: Shaped, stage: str, target: str) -> str:
    """An inferred program as text at one of the stages from there on, code included."""
    from ilang.core import pipeline

    machine = MACHINES[target]
    if stage == WHY:
        return str(pipeline.why(shaped, machine))
    if stage == pipeline.GRADIENTS.stage:
        return pipeline.GRADIENTS.show(shaped)
    if stage in MACHINES:
        from ilang.codegen.call.target import source_of

        return source_of(shaped, target)
    return pipeline.shaped_stage_text(shaped, stage, machine)


def stage_of(request: Request) -> str | None:
    """The stage that options ask for, if they do."""
    if request.has("--why"):
        return WHY
    return WRITTEN if request.has("--schedule") else request.one("--emit")


def programs_of(program: Tree | Module, request: Request) -> list[ProgramAtShapes]:
    """The programs that ``--def`` means, for the shapes and the configuration of the options.

    Raises: Error (what is wrong with the program, or with an option).
    """
    name = request.one("--def")
    if isinstance(program, Module):
        from ilang.icli.definitions import functions_of

        functions = functions_of(program, name)
        if functions:
            return [*_definitions(functions, request)]
    graphs = [each.graph for each in subjects(program, request.all("--def"))]
    return [ComponentAtShapes(*each) for each in all_shapes(graphs, request.all("--shape"))]


def _definitions(functions: list[Function], request: Request) -> list[DefinitionAtShapes]:
    from ilang.icli.definitions import config_of, given_to, head_of, settings_of, shapes_of

    shapes = shapes_of(request.all("--shape"), functions)
    values = config_of(request.all("--config"), [head_of(each) for each in functions])
    return [
        DefinitionAtShapes(each, given_to(each, shapes), settings_of(head_of(each), values))
        for each in functions
    ]


def staged_programs(argument: str, request: Request) -> list[ProgramAtShapes]:
    """The programs of an operand that ``--def`` means. Raises: Error, as ``programs_of`` does."""
    return programs_of(open_program(argument), request)


def one_program(argument: str, request: Request) -> ProgramAtShapes:
    """The only program of an operand. Raises: CommandError E0818 (there are several), and what else is wrong."""
    first, *others = staged_programs(argument, request)
    if others:
        raise several([each.name for each in (first, *others)])
    return first


def library_line(session: ReplSession, name: str, subject: Subject) -> Reply | None:
    """The line on a component of a library by its name, where no array says what ranks it has; else None."""
    definitions = () if subject.module is None else subject.module.definitions
    text = next((each.span.text() for each in definitions if each.name == name), None)
    if text is None or name in session.texts:
        return None
    try:
        page_at_hand(session, subject.graph)
    except ShapeError:
        return Reply((f"{text}   of `std`; apply it: `{name} rand:2x3`",))
    return None


def explained(session: ReplSession, graph: Graph) -> Reply:
    """The page of a component, at the shapes of the arrays at hand where they fit."""
    page, origin = page_at_hand(session, graph)
    return Reply((replace(page, notes=(*page.notes, *origin)),))


def signed(session: ReplSession, graph: Graph) -> Reply:
    """One line on a component: what it takes and gives, at the shapes of the arrays at hand where they fit."""
    from ilang.core.explain.page import signature
    from ilang.core.pipeline import infer

    try:
        _, origin = page_at_hand(session, graph)
    except ScheduleError:
        from ilang.icli.commands.check import describe

        return Reply((describe(graph, is_part=True)[0],))
    except ShapeError as error:
        if error.code != "E0508":
            raise
        names = ", ".join(graph.input_names())
        return Reply((f"{graph.name}({names})   its arrays say what ranks they have",))
    shapes = session.last.shapes if isinstance(session.last, ComponentAtShapes) else None
    return Reply(("   ".join((signature(infer(graph, shapes=shapes)), *origin)),))


def page_at_hand(session: ReplSession, graph: Graph) -> tuple[Explanation, tuple[str, ...]]:
    """The page of a component, which becomes the last one, and a remark on its shapes where there is one."""
    from ilang.core.pipeline import explain

    shapes, origin = shapes_at_hand(session, graph)
    try:
        page = explain(graph, shapes)
    except ShapeError:
        if shapes is None:
            raise
        shapes, origin, page = None, "", explain(graph, None)
    session.last = ComponentAtShapes(graph, shapes)
    return page, (f"at the shapes of {origin}",) if origin else ()


def shapes_at_hand(session: ReplSession, graph: Graph) -> tuple[Shapes | None, str]:
    """Shapes to explain a component with, and the arrays they come from."""
    from ilang.icli.shapes import parse_shape

    inputs = graph.input_names()
    if session.shapes is not None and len(session.shapes) == len(inputs):
        return session.shapes, ""
    rows = session.calls.rows
    if inputs and all("|" not in rows.get(name, "|") for name in inputs):
        return tuple(parse_shape(rows[name].replace(",", "x") or ".") for name in inputs), ""
    bound = [name for name in session.arrays if name != LAST]
    if inputs and all(name in session.arrays for name in inputs):
        bound = inputs
    if not inputs or len(bound) != len(inputs):
        return None, ""
    return tuple(session.arrays[name].shape for name in bound), ", ".join(bound)
