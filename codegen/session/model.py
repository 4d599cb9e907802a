"""The tensor functions and the routines of a file, and what sessions of them are made with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ilang.codegen.call.arguments import NUMPY_TYPES, check_is, shown, supported_array
from ilang.codegen.call.threads import THREADS
from ilang.codegen.session.philox import LARGEST_SEED
from ilang.codegen.system.npy import load_npy
from ilang.core import pipeline
from ilang.core.build.program import Given
from ilang.core.build.routines import Built
from ilang.core.build.settings import Around
from ilang.core.build.tensor import Rows
from ilang.core.diagnostic import DataError, ShapeError
from ilang.core.infer.fit import LARGEST_EXTENT
from ilang.core.ir.functions import TensorParameter
from ilang.core.ir.syntax import Module
from ilang.core.record import record
from ilang.core.suggestion import did_you_mean

if TYPE_CHECKING:
    from ilang.codegen.call.arguments import Array
    from ilang.codegen.session.step import Processes


@record
class Options:
    """The options of a session."""

    name: str
    shapes: Mapping[str, Rows]
    config: Mapping[str, Given]
    keep: tuple[str, ...]
    seed: int
    target: str
    threads: int | str
    parameters: Any
    ranks: Processes | None


DEFAULTS: dict[str, Any] = {
    "keep": (),
    "seed": 0,
    "target": "c",
    "threads": THREADS,
    "parameters": None,
    "ranks": None,
}


CONFIG_EXAMPLE = 'config={"lr": 0.1}'


def options_of(
    name: str,
    shapes: Mapping[str, str] | None,
    config: Mapping[str, Given] | None,
    given: Mapping[str, Any],
) -> Options:
    """The options of a session, from the arguments of ``Library.session``.

    Raises:
        DataError: E0750 (configuration), E0751 (no name), E0752 (a shape), E0756 (an argument that there is not).
    """
    check_is(name, str, "E0751", "a definition has a name", 'm.session("step")')
    shapes, config = {} if shapes is None else shapes, {} if config is None else config
    for each in given:
        if each not in DEFAULTS:
            listed = did_you_mean(each, list(DEFAULTS), f"there are {', '.join(DEFAULTS)}")
            raise DataError("E0756", f"a session has no option {each}", help=listed)
    check_named("shapes", shapes, "E0752", 'shapes={"x": "64|3"}')
    check_named("configuration values", config, "E0750", CONFIG_EXAMPLE)
    rows = {each: rows_of(each, text) for each, text in shapes.items()}
    chosen = {**DEFAULTS, **given}
    keep = chosen["keep"]
    chosen["keep"] = (keep,) if isinstance(keep, str) else tuple(keep)
    seed = chosen["seed"]
    if not isinstance(seed, Integral) or not 0 <= int(seed) <= LARGEST_SEED:
        message = f"the seed is a whole number from 0 to 2^64 - 1, not {seed!r}"
        raise DataError("E0756", message, help="seed=0")
    chosen["seed"] = int(seed)
    return Options(name, rows, config, *chosen.values())


def check_named(kind: str, given: object, code: str, example: str) -> None:
    """Refuse values that are not given by names. Raises DataError of a code."""
    if not isinstance(given, Mapping):
        raise DataError(code, f"{kind} are given by name, not as {shown(given)}", help=example)
    unnamed = next((each for each in given if not isinstance(each, str)), None)
    if unnamed is not None:
        raise DataError(
            code, f"{kind} are given by name, and {shown(unnamed)} is none", help=example
        )


class Model:
    """The tensor functions and the routines of a file; ``noted`` are those whose notes were given."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._heads: list[Any] = [each.head for each in module.functions_and_routines()]
        self.noted: set[str] = set()
        self._graphs: dict[object, Any] = {}
        self._definitions = pipeline.definitions_of(module)

    def head(self, name: str) -> Any:
        """The head of a definition."""
        return next(head for head in self._heads if head.name == name)

    def inputs(self, name: str) -> tuple[TensorParameter, ...]:
        """The tensors in the head of a definition."""
        tensors: tuple[TensorParameter, ...] = self.head(name).tensors
        return tensors

    def built(self, options: Options, of_any_ranks: bool = False) -> Built:
        """The graph of a definition; ``of_any_ranks`` where their number is not known yet."""
        from ilang.core.passes.einx_operands import einx_on_operands

        ranks = 1 if options.ranks is None else options.ranks.size
        known = None if of_any_ranks else ranks
        heads = (head for head in self._heads if head.name == options.name)
        open_inputs = {each.name for head in heads for each in head.tensors} - {*options.shapes}
        expand = partial(einx_on_operands, waiting=open_inputs)
        around = Around(self.module, self._component, self._file, expand, known)
        shapes, config = options.shapes, options.config
        return pipeline.definition_built(around, options.name, shapes, config, options.keep)

    def configuration(self, options: Options) -> dict[str, Given]:
        """The configuration values of a definition, defaults included."""
        from ilang.core.build.program import configuration

        return configuration(self.head(options.name), options.config)

    def _component(self, component: Any) -> Any:
        """The graph of a component: by its name, or its tree."""
        from ilang.core.ir.functions import Reference

        if isinstance(component, Reference):
            known = self._graphs.get(component.name)
            if known is None:
                graph = pipeline.module_graph(self.module, component.name, self._definitions)
                known = self._graphs.setdefault(component.name, graph)
            return known
        return pipeline.graph_of(component, "component", self._definitions)

    def _file(self, path: str, span: Any) -> Array:
        """The array in a file beside the text."""
        try:
            array = load_npy(beside(self.module.source.name, path))
            return supported_array(path, array, preferred=NUMPY_TYPES["f32"].type)
        except DataError as error:
            help_line = error.help or "`file` reads .npy files"
            raise DataError("E0759", error.message, span, help_line) from None


def beside(program: str, path: str) -> str:
    """The place of a file that a program names: paths begin in the folder of the program."""
    return str(Path(program).parent / path)


def rows_of(name: str, text: str, words: bool = False) -> Rows:
    """The rows that a shape spells: ``batch|input->output``, sizes divided by commas.

    With ``words`` a size may be a word: it comes at run time. ``()`` is a row without axes, as it is printed.

    Raises:
        DataError: E0752.
        ShapeError: E0507.
    """
    help_line = "a shape is `batch|input->output`, sizes separated by commas: 64|784"
    if not isinstance(text, str):
        raise DataError("E0752", f"{text!r} is no shape for {name}", help=help_line)
    batch, bar, rest = text.rpartition("|")
    inner, arrow, output = rest.rpartition("->")
    rows = []
    for part in (batch if bar else "", inner if arrow else "", output):
        written = part.strip().removeprefix("()")
        sizes = [each.strip() for each in written.split(",")] if written else []
        if not all(
            each.isascii() and (each.isdigit() or (words and each.isidentifier())) for each in sizes
        ):
            message = f"{text!r} is no shape for {name}"
            if not words and all(each.isdecimal() or each.isidentifier() for each in sizes):
                help_line = "sizes are numbers; leave the shape out, and each call brings its batch"
            raise DataError("E0752", message, help=help_line)
        for each in sizes:
            if each.isdigit() and not 0 <= int(each[:20]) < LARGEST_EXTENT:
                message = (
                    f"a dimension of {name} is {each[:20]}; an extent is at least 0 and below 2^62"
                )
                raise ShapeError("E0507", message, None, f"give {name} another shape")
        rows.append(tuple((int(each) if each.isdigit() else each, None) for each in sizes))
    return rows[0], rows[1], rows[2]
