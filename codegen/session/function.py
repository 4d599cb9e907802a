"""A tensor function or a routine of a file: what is known of it without running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from ilang.codegen.call.arguments import check_flag, check_is, shape_of
from ilang.codegen.call.named_arrays import placed
from ilang.codegen.call.target import check_target, source_of
from ilang.codegen.call.threads import THREADS
from ilang.codegen.call.tracebacks import ends_at_caller
from ilang.codegen.frameworks.dynamo import uncompiled
from ilang.codegen.frameworks.foreign import library_of
from ilang.codegen.session.model import CONFIG_EXAMPLE, Model, check_named, options_of
from ilang.codegen.session.session import Session
from ilang.codegen.session.solved import SolvedDefinition
from ilang.codegen.system.concurrency import kept, lock_of_runs
from ilang.core import pipeline
from ilang.core.definition import LastingTensor
from ilang.core.diagnostic import DataError, Error
from ilang.core.explain.expression import aligned
from ilang.core.explain.open_rows import Kind, Lettered, SoFar, examples, so_far
from ilang.core.infer.inferred import rows_so_far
from ilang.core.machine import CPU, Machine
from ilang.core.record import record, replace

if TYPE_CHECKING:
    import os

    from ilang.codegen.project.checking import Check
    from ilang.codegen.session.pure_call import PureCalls
    from ilang.core.build.program import Given
    from ilang.core.build.routines import Built
    from ilang.core.explain.explanation import Explanation
    from ilang.core.ir.graph import Graph
    from ilang.core.ir.shaped import Shaped

Config = Mapping[str, "Given"] | None
KEPT = 16
"""Shapes for which a definition that is called stays compiled."""

EXAMPLES = 12
"""Examples of shapes that are tried for a page."""

GRADIENTS = (
    ": `backprop(loss)` in a `cd` computes gradients, and so do PyTorch and JAX on their tensors"
)
LEADS: Mapping[str, str] = {
    **dict.fromkeys(("grad", "value_and_grad", "jvp", "backward"), GRADIENTS),
    "shapes": ": `shape_by_example()` shows the shapes of its tensors",
    "dynamic": ": each call compiles for its shapes",
    "build": ": `i build FILE --def NAME` writes its project",
}
"""The advice for attributes that components and modules of PyTorch have, and definitions have not."""

KINDS: Mapping[str, Kind] = {
    "input": "input",
    "parameter": "parameter",
    "declared": "state",
    "setting": "setting",
}
"""The words of explanations for the kinds of stored tensors."""


@record
class DefinitionExplanation:
    """The explanation of a definition: parameters, state, and then that of a program."""

    parameters: tuple[LastingTensor, ...]
    state: tuple[LastingTensor, ...]
    program: Explanation

    def __str__(self) -> str:
        return "\n\n".join((*self.blocks(), str(self.program)))

    def _repr_html_(self) -> str:
        from ilang.codegen.components.notebook_pages import notebook_page
        from ilang.core.markup import preformatted

        tables = "".join(map(preformatted, self.blocks()))
        return f"<div>{tables}{notebook_page(self.program)._repr_html_()}</div>"

    def blocks(self) -> list[str]:
        """The tables of parameters and of state, as far as there are any."""
        return [
            "\n".join((_counted(title, rows), *aligned([_cells(each) for each in rows])))
            for title, rows in (("parameter", self.parameters), ("tensor of state", self.state))
            if rows
        ]


def _lasts(name: str, paths: Sequence[str]) -> DataError:
    """The error for a call of a definition that has parameters or state."""
    more = f" and {len(paths) - 3} more" * (3 < len(paths))
    message = f"{name} has parameters or state, which a session keeps: {', '.join(paths[:3])}{more}"
    help_line = f's = m.session("{name}") gives what can be called: s(...)'
    return DataError("E0764", message, help=help_line)


def _counted(title: str, rows: Sequence[LastingTensor]) -> str:
    number = sum(each.count() for each in rows)
    first, _, rest = title.partition(" ")
    title = title if len(rows) == 1 else f"{first}s{' ' * bool(rest)}{rest}"
    return f"{len(rows)} {title}, {number:,} number{'' if number == 1 else 's'}"


def _cells(each: LastingTensor) -> tuple[str, ...]:
    extents = "×".join(map(str, each.shape.memory())) or "scalar"
    return f"  {each.path}", extents, each.dtype


class Function:
    """A definition by its name; shapes are given as for ``Library.session``."""

    def __init__(self, model: Model, name: str) -> None:
        self.model = model
        self.name = name
        self._sessions: dict[object, Session] = {}
        self._lock = lock_of_runs()

    def __reduce__(self) -> tuple[object, ...]:
        """The definition of the same file, with nothing compiled."""
        return Function, (self.model, self.name)

    if not TYPE_CHECKING:  # whoever checks types knows the attributes of a definition

        def __getattr__(self, name: str) -> Any:
            """No attribute. Raises: AttributeError, which leads from methods of components to what definitions have."""
            lead = LEADS.get(name, "")
            raise AttributeError(f"a definition has no {name}{lead}")

    def __repr__(self) -> str:
        head: Any = self.model.head(self.name)
        return f"<Function {' '.join(head.span.text().split())}>"

    @ends_at_caller
    def __call__(self, *arrays: Any, config: Config = None, target: str = "c", **named: Any) -> Any:
        """One run of a definition that has neither parameters nor state.

        Args:
            arrays: inputs in the order of the head; axis 0 is the batch, but for the rows that the head writes.
            config: configuration values by name; those with defaults may be left out.
            target: what runs it: "c", "numpy", "cuda", "cuda-emulated".
            named: inputs by name.

        Returns:
            The results of the definition: an array, a tuple of several, None.

        Raises:
            DataError: E0764 (there are parameters or state, which a session keeps), and what a session refuses.
        """
        return uncompiled(self._called)(arrays, named, config, target)

    def _called(
        self, arrays: tuple[Any, ...], named: Mapping[str, Any], config: Config, target: str
    ) -> Any:
        check_target(target)
        if config is not None:
            check_named("configuration values", config, "E0750", CONFIG_EXAMPLE)
        library = library_of((*arrays, *named.values()))
        if library is not None:
            if library.tracks((*arrays, *named.values())):
                given = placed([each.name for each in self.model.inputs(self.name)], arrays, named)
                known = library.call_pure(self, given, config)
                options = {"out": None, "threads": THREADS, "target": target, "stream": None}
                return library.call(known.component, known.arranged(given), options)
            plain = {name: library.plain(array) for name, array in named.items()}
            answer = self(*map(library.plain, arrays), config=config, target=target, **plain)
            return None if answer is None else library.given_back(answer)
        shapes = [shape_of(f"input {n}", array) for n, array in enumerate(arrays)]
        words = [(name, shape_of(name, array)) for name, array in named.items()]
        key = *shapes, *words, target, repr(sorted(config.items())) if config else ""
        with self._lock:
            make = partial(self.session, None, config, target=target)
            session = kept(self._sessions, key, make, KEPT)
            session.fit(*arrays, **named)
            if session.parameters or session.state:
                raise _lasts(self.name, [*session.parameters, *session.state])
            return session(*arrays, **named)

    @cached_property
    def pure(self) -> PureCalls:
        """This definition as components, which have gradients."""
        from ilang.codegen.session.pure_call import PureCalls

        return PureCalls(self.model, self.name)

    @ends_at_caller
    def session(
        self, shapes: Mapping[str, str] | None = None, config: Config = None, **options: Any
    ) -> Session:
        """A session of this definition; see ``Library.session``."""
        return Session(self.model, options_of(self.name, shapes, config, options))

    def parameters(
        self, shapes: Mapping[str, str] | None = None, config: Config = None
    ) -> dict[str, tuple[int, ...]]:
        """The paths of all parameters, and their extents in memory order.

        Raises:
            Error: what is wrong with the text, the shapes or the configuration, and where.
        """
        solved = self.definition(shapes, config)
        return {each.path: each.shape.memory() for each in solved.tensors("parameter")}

    def shape_so_far(self, shapes: Mapping[str, str] | None = None, config: Config = None) -> SoFar:
        """The rows of every tensor as far as they follow from the text and the shapes that are given.

        Raises:
            Error: what is wrong with the text, or does not agree.
        """
        return self._so_far(self.model.built(options_of(self.name, shapes, config, {})))

    def shape_by_example(self, config: Config = None) -> SoFar:
        """The rows of every tensor where inputs have as many axes as likely; letters stand for sizes that are open.

        Where no example fits, the rows are those of ``shape_so_far``.

        Raises:
            Error: what is wrong with the text, or does not agree.
        """
        options = options_of(self.name, {}, config, {})
        built = self.model.built(options)
        rows = rows_so_far(built.graph)
        inputs = {cell.name: rows[n] for cell, n in built.inputs if cell.kind == "input"}
        ranks = [
            name for name, shape in inputs.items() if any(r.variable is not None for r in shape)
        ]
        returned = [rows[each.number][2] for each in built.results if each.role == "return"]
        notes = {each.name: each.shape for each in self.model.inputs(self.name)}
        for shapes in islice(examples(inputs, next(iter(returned), None)), EXAMPLES):
            try:
                one = SolvedDefinition(self.model, replace(options, shapes=shapes))
            except Error:
                continue
            numbers = {cell.name: n for cell, n in one.built.inputs if cell.kind == "input"}
            letters = Lettered(
                one.inferred, {name: (n, notes[name]) for name, n in numbers.items()}
            )
            page = self._so_far(one.built, letters.words())
            for example in letters.examples(tuple(ranks)):
                with suppress(Error):
                    self.definition(example.texts(), config)
                    return replace(page, example=example)
        return self._so_far(built)

    def _so_far(self, built: Built, shapes: Sequence[Sequence[str]] | None = None) -> SoFar:
        """The rows of what was built, as far as they are known, or as given."""
        order = {cell: n for n, cell in enumerate(built.paths)}
        inputs = {
            number: (KINDS.get(cell.kind, "constant"), built.paths.get(cell, cell.name))
            for cell, number in sorted(built.inputs, key=lambda each: order.get(each[0], -1))
        }
        results = [each.number for each in built.results if each.role == "return"]
        changed = {each.number for each in built.results if each.role in ("parameter", "state")}
        definitions = self.model.module.functions_and_routines()
        written = next(each for each in definitions if each.name == self.name)
        return so_far(built.graph, inputs, results, changed, written, shapes)

    def check_so_far(self, shapes: Mapping[str, str] | None = None, config: Config = None) -> None:
        """Check the text and the shapes that are given as ``shape_so_far`` does, which lists every tensor too.

        Raises:
            Error: what is wrong with the text, or does not agree.
        """
        rows_so_far(self.graph(shapes, config))

    def graph(self, shapes: Mapping[str, str] | None = None, config: Config = None) -> Graph:
        """The graph of a run, gradients still inputs that stand for them."""
        return self.model.built(options_of(self.name, shapes, config, {})).graph

    def shaped(self, shapes: Mapping[str, str] | None = None, config: Config = None) -> Shaped:
        """The program of a run, typed, gradients attached."""
        shaped: Shaped = self.definition(shapes, config).shaped()
        return shaped

    def source(
        self, target: str = "c", shapes: Mapping[str, str] | None = None, config: Config = None
    ) -> str:
        """The text of a run, in "c" or "cuda": a function of inputs, parameters and state.

        Raises:
            Error: what is wrong with the text, the shapes or the configuration, and where.
        """
        check_target(target)
        return source_of(self.shaped(shapes, config), target)

    def loops(self, shapes: Mapping[str, str] | None = None, config: Config = None) -> str:
        """The loop nests of a run, as text. Raises: those of ``source``."""
        return pipeline.loops_text(pipeline.lower(self.shaped(shapes, config)))

    def explain(
        self,
        shapes: Mapping[str, str] | None = None,
        config: Config = None,
        *,
        verbose: bool = False,
        machine: Machine = CPU,
        html: str | os.PathLike[str] | None = None,
    ) -> DefinitionExplanation:
        """The explanation of a run, as data; ``str`` gives a page, and ``html`` names a file for that of a browser.

        Raises:
            Error: what is wrong with the text, the shapes or the configuration, and where.
        """
        check_flag("verbose", verbose)
        says = "programs are explained for a machine"
        check_is(machine, Machine, "E0716", says, "leave it out for a processor")
        solved = self.definition(shapes, config)
        if html is not None:
            from ilang.codegen.components.html_page import write_html_page

            write_html_page(html, solved.built.graph, solved.shaped(), given=True)
        program = pipeline.explain_shaped(
            solved.built.graph, solved.shaped(), verbose, given=True, machine=machine
        )
        return DefinitionExplanation(
            tuple(solved.tensors("parameter")), tuple(solved.tensors("declared")), program
        )

    def check(
        self, shapes: Mapping[str, str] | None = None, config: Config = None, target: str = "c"
    ) -> Check:
        """The result of ``i check`` for a run, as data; ``str`` gives a line.

        Raises:
            Error: what is wrong with the text, the shapes, the configuration or schedules, and where.
        """
        from ilang.codegen.project.checking import check

        return check(self.shaped(shapes, config), target)

    def definition(
        self, shapes: Mapping[str, str] | None = None, config: Config = None
    ) -> SolvedDefinition:
        """The definition with its shapes inferred, for what a run of it goes through."""
        return SolvedDefinition(self.model, options_of(self.name, shapes, config, {}))
