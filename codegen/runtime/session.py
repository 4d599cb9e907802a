"""Sessions: a tensor function or a routine with its parameters and its state, compiled once, run as often as wanted.

    m = load("model.i")
    s = m.session("step", shapes={"x": "64|784", "y": "64|10"}, config={"lr": 0.1}, seed=0)
    loss = s(x=images, y=labels)
    s.parameters["mlp.layer_1.w"]

A run reads the arrays of a session and writes into others, which then take their place: nothing is copied, and a run
that fails changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.codegen.runtime.arguments import (
    NUMPY_TYPES,
    SUPPORTED,
    check_threads,
    contiguous,
    supported_array,
)
from ilang.codegen.runtime.checkpoint import read, write
from ilang.codegen.runtime.component import check_target
from ilang.codegen.runtime.initial import initial_values
from ilang.codegen.runtime.npy import load_npy
from ilang.codegen.runtime.phased import Phased
from ilang.codegen.runtime.sharing import matched
from ilang.codegen.runtime.solved import Solved
from ilang.codegen.runtime.specialization import Specialization
from ilang.codegen.runtime.step import NOTHING, Step
from ilang.codegen.runtime.stored import Arrays, Tensor, fitted
from ilang.core import pipeline
from ilang.core.build.program import Given
from ilang.core.build.routines import Built, Result
from ilang.core.build.settings import Around
from ilang.core.build.tensor import Rows
from ilang.core.build.values import Stored
from ilang.core.diagnostic import DataError
from ilang.core.ir.syntax import Module
from ilang.core.record import record
from ilang.core.suggestion import did_you_mean, nearest
from ilang.core.transform.building import sources

if TYPE_CHECKING:
    from ilang.codegen.runtime.arguments import Array
    from ilang.codegen.runtime.phased import Ranks
    from ilang.core.ir.shaped import Node

STATE = "state."
"""Stands before the paths of state in checkpoints."""
LASTING = ("parameter", "state")
"""The roles of results that take the place of what a run has read."""


class Settings(MutableMapping[str, Given]):
    """The configuration of a session: what is used in arithmetic alone may change between runs."""

    def __init__(self, built: Built, values: Mapping[str, Given], dtype: Any) -> None:
        """The values that a session was made with."""
        self._built = built
        self._values = dict(values)
        self._dtype = dtype
        self.arrays = {
            name: np.full(1, cell.initial, dtype)
            for name, cell in built.settings.items()
            if isinstance(cell.initial, int | float)
        }

    def __getitem__(self, name: str) -> Given:
        """The value now."""
        return self._values[name]

    def __setitem__(self, name: str, value: Given) -> None:
        """Another value from the next run on. Raises DataError: E0750, E0755 (it is fixed)."""
        if name not in self._values:
            listed = ", ".join(self._values) or "none"
            message = f"there is no configuration value {name}"
            raise DataError("E0750", message, help=f"there are {listed}")
        if name in self._built.fixed or name not in self.arrays:
            raise DataError(
                "E0755",
                f"{name} is fixed: the program was built with {self._values[name]}",
                self._built.fixed.get(name),
                "make another session, with another config",
            )
        if isinstance(value, bool | int | float):
            self._values[name] = value
            self.arrays[name][0] = value
            return
        message = f"the configuration value {name} is a number, not {value!r}"
        raise DataError("E0750", message)

    def __delitem__(self, name: str) -> None:
        """Refuse: configuration is that of the head."""
        raise DataError("E0755", f"{name} cannot be removed: the head has it")

    def __iter__(self) -> Iterator[str]:
        """The names, in the order of the head."""
        return iter(self._values)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._values)


class Session:
    """A definition with its arrays. A run takes arrays for its inputs by name, and gives what it returns."""

    def __init__(self, model: Model, options: Options) -> None:
        """Infer every shape; the first run compiles.

        Raises:
            Error: whatever is wrong with the text, the shapes or the configuration.
        """
        check_target(options.target)
        check_threads(options.threads)
        self._model = model
        self._options = options
        self._solved = Solved(model, options)
        solved = self._solved
        self.config = Settings(solved.built, solved.config, solved.float)
        written = {role: {r.path for r in solved.results if r.role == role} for role in LASTING}
        self.parameters = Arrays(solved.tensors("parameter"), "parameter", written["parameter"])
        self.state = Arrays(solved.tensors("declared"), "state", written["state"])
        self._constants = solved.constants()
        self._begin(options)
        self._inputs = [tensor for _, tensor in solved.cells("input")]
        self._names = [tensor.path for tensor in self._inputs]
        self._last: dict[str, Array] = {}
        self._step: Step | None = None
        self._phased: Phased | None = None
        self.runs = 0

    def _begin(self, options: Options) -> None:
        """Initial values, or those of another session."""
        solved, given = self._solved, options.parameters
        others: Mapping[str, str] = {}
        if isinstance(given, Session):
            others = matched(list(self.parameters), list(given.parameters))
            for path, theirs in others.items():
                self.parameters.share(path, given.parameters, theirs)
        for cell, tensor in solved.cells("parameter"):
            if tensor.path not in others:
                values = initial_values(solved, cell, tensor, options.seed)
                self.parameters.put(tensor.path, values)
        if isinstance(given, Mapping):
            for path, values in given.items():
                self.parameters[path] = values
        self._clear()

    # -- running -----------------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> Mapping[str, Tensor]:
        """The inputs of a run: name, shape and element type."""
        return {tensor.path: tensor for tensor in self._inputs}

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Run once.

        Args:
            arrays: inputs in the order of the head.
            named: inputs by name.

        Returns:
            What the definition returns: an array, a tuple of several, None.

        Raises:
            DataError: E0742 (an input is missing), E0754 (an array of another shape), E0756 (no such input).
        """
        if named or len(arrays) != len(self._names):
            arrays = self._in_order(arrays, named)
        step = self._step
        if step is None or not step.fits(arrays):
            arrays = tuple(map(_input, self._inputs, arrays))
            self._compile()
            step = self._step
        returned = self._run(arrays) if step is None else step.run(arrays)
        self.runs += 1
        if not returned:
            return None
        return returned[0] if len(returned) == 1 else tuple(returned)

    def _in_order(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """An array for each input, in the order of the head."""
        names = self._names
        if len(named) == len(names) and not arrays:
            try:
                return tuple(map(named.__getitem__, names))
            except KeyError:
                pass  # what is wrong with it is told below
        name = self._solved.name
        if len(names) < len(arrays):
            message = f"{name} takes {len(names)} arrays, and {len(arrays)} are given"
            raise DataError("E0756", message, help=f"its inputs are {', '.join(names) or 'none'}")
        by_name = {**dict(zip(names, arrays, strict=False)), **named}
        for each in by_name:
            if each not in names:
                hint = did_you_mean(each, names, f"its inputs are {', '.join(names)}")
                raise DataError("E0756", f"{name} has no input {each}", help=hint)
        for each in names:
            if each not in by_name:
                message = f"the input {each} of {name} has no array"
                raise DataError("E0742", message, help=f"give it: s({each}=array)")
        return tuple(by_name[each] for each in names)

    def _compile(self) -> None:
        """Have the program: as one call of C where it is one, else phase by phase."""
        solved, options = self._solved, self._options
        if self._step is not None or self._phased is not None or not solved.results:
            return
        shaped, merged = solved.shaped(), solved.merged()
        shares = any(self.parameters.is_shared(path) for path in self.parameters.written)
        if options.target != "c" or merged or shares:
            self._phased = Phased(shaped, merged, options.ranks, options.target, options.threads)
            return
        specialization = Specialization(shaped)
        self._step = Step(
            specialization.plan(tuple(size.fixed or 0 for size in shaped.sizes)),
            solved,
            (self.parameters, self.state),
            self._fixed,
            options.threads,
        )

    def _fixed(self, cell: Stored) -> Array:
        """The array of configuration, or of a constant."""
        return self.config.arrays[cell.name] if cell.kind == "setting" else self._constants[cell]

    def _run(self, given: Sequence[Array]) -> list[Array]:
        """Run phase by phase; what is returned. New arrays take the place of those that last."""
        if self._phased is None:
            return []
        solved = self._solved
        inputs = dict(zip(self._names, given, strict=True))
        results = self._phased.run([self._array(cell, inputs) for cell in solved.needed])
        returned: list[Array] = []
        for result, array in zip(solved.results, results, strict=True):
            self._keep(result, array, returned)
        return returned

    def _array(self, cell: Stored, inputs: Mapping[str, Array]) -> Array:
        match cell.kind:
            case "input":
                return inputs[cell.name]
            case "parameter":
                return self.parameters.now(self._solved.built.paths[cell])
            case "declared":
                return self.state.now(self._solved.built.paths[cell])
            case "merged":
                return NOTHING
            case _:
                return self._fixed(cell)

    def _keep(self, result: Result, array: Array, returned: list[Array]) -> None:
        """Put what a run gives where it belongs."""
        match result.role:
            case "return":
                returned.append(array)
            case "parameter":
                self.parameters.put(result.path, array)
            case "state":
                self.state.put(result.path, array)
            case "gradient" | "kept":
                self._last[result.path] = array
            case "merged":
                return  # what the ranks have summed

    # -- reading -----------------------------------------------------------------------------------------------------

    def value(self, path: str) -> Array:
        """A parameter, a gradient of the last run, state, or a tensor that the session keeps.

        Raises:
            DataError: E0757.
        """
        if path in self.parameters.tensors:
            return self.parameters[path]
        if path in self.state.tensors:
            return self.state[path]
        last = self._last if self._step is None else self._step.last
        if path in last:
            if self._step is not None:
                self._step.forget()
            return last[path]
        have = [
            *self.parameters,
            *self.state,
            *(r.path for r in self._solved.results if r.role != "return"),
        ]
        if path in have:
            message = f"{path} has no values before the first run"
            raise DataError("E0757", message, help="run the session once: s(...)")
        guess = nearest(path, have)
        keep = f"session(…, keep=[{path!r}]) keeps a tensor of the text"
        hint = f"did you mean {guess}? " if guess else ""
        raise DataError("E0757", f"no run gives {path}", help=hint + keep)

    def first_not_finite(
        self, given: Mapping[str, Any], parameters: Mapping[str, Any], state: Mapping[str, Any]
    ) -> Node | None:
        """The first expression of a run that gives a NaN, or else an infinity, of operands that have none.

        Args:
            given: inputs by name.
            parameters: their values when the run began.
            state: the same.
        """
        from ilang.core.reference import values_of

        solved = self._solved
        kept = {"input": given, "parameter": parameters, "declared": state}
        arrays = []
        for cell in solved.needed:
            here = kept.get(cell.kind)
            path = solved.built.paths.get(cell, cell.name)
            arrays.append(self._fixed(cell) if here is None else here[path])
        shaped = solved.shaped()
        values = values_of(shaped, arrays, [size.fixed or 0 for size in shaped.sizes])
        for is_wrong in (np.isnan, np.isinf):
            wrong = [bool(is_wrong(value).any()) for value in values]
            nodes: tuple[Node, ...] = shaped.nodes
            for number, node in enumerate(nodes):
                if wrong[number] and not any(wrong[each] for each in sources(node)):
                    return node
        return None

    # -- checkpoints -------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], notes: Mapping[str, str] | None = None) -> None:
        """Write parameters and state into a file, whole or not at all: .npz where its name ends so, else safetensors.

        Parameters are named by their paths, state by ``state.`` and its path. The notes tell also the definition, how
        many runs there were, and the seed.

        Raises:
            DataError: E0731, E0732 (the file cannot be written).
        """
        arrays = {path: self.parameters.now(path) for path in self.parameters}
        arrays |= {f"{STATE}{path}": self.state.now(path) for path in self.state}
        options = self._options
        said = {"definition": options.name, "runs": str(self.runs), "seed": str(options.seed)}
        write(os.fspath(path), arrays, {**said, **(notes or {})})

    def load(self, path: str | os.PathLike[str]) -> Mapping[str, str]:
        """Replace parameters and state by those of a file; its notes. Runs go on as those of the session that wrote it.

        Paths are equal after one common prefix. State of a file that has none begins with zeros.

        Raises:
            DataError: E0725 to E0729, E0761 (the file), E0760 (a path is missing), E0754 (a shape), E0758 (a type).
        """
        name = os.fspath(path)
        checkpoint = read(name)
        state = {
            path[len(STATE) :]: a for path, a in checkpoint.arrays.items() if path.startswith(STATE)
        }
        parameters = {
            path: a for path, a in checkpoint.arrays.items() if not path.startswith(STATE)
        }
        chosen = [self._taken(self.parameters, parameters, name)]
        if state and self.state:
            chosen.append(self._taken(self.state, state, name))
        for arrays, values in zip((self.parameters, self.state), chosen, strict=False):
            for each, array in values.items():
                arrays.put(each, array)
        if len(chosen) == 1:
            self._clear()
        runs = checkpoint.notes.get("runs", "")
        self.runs = int(runs) if runs.isdecimal() else 0
        return checkpoint.notes

    @staticmethod
    def _taken(arrays: Arrays, given: Mapping[str, Array], source: str) -> dict[str, Array]:
        """Those of given arrays that take the place of others, each of the right shape and type."""
        places = matched(list(arrays), list(given), source)
        for path, theirs in places.items():
            tensor, array = arrays.tensors[path], given[theirs]
            if NUMPY_TYPES[tensor.dtype] != array.dtype:
                have = SUPPORTED.get(array.dtype, array.dtype)
                message = f"{path} is {tensor.dtype} in this session, and {have} in {source}"
                raise DataError("E0758", message)
        return {
            path: fitted(path, given[theirs], arrays.tensors[path])
            for path, theirs in places.items()
        }

    def _clear(self) -> None:
        """State begins with zeros."""
        for path, tensor in self.state.tensors.items():
            self.state.put(path, np.zeros(tensor.shape.memory(), NUMPY_TYPES[tensor.dtype]))


def _input(tensor: Tensor, values: Any) -> Array:
    """An array for an input, as C reads it.

    Raises:
        DataError: E0754, E0758 (another element type).
    """
    array = supported_array(tensor.path, values)
    dims = tensor.shape.memory()
    if array.shape != dims:
        raise DataError(
            "E0754",
            f"{tensor.path} has shape {dims} in this session, and the array given for it {array.shape}",
            help="make a session for arrays of another shape",
        )
    have = SUPPORTED[array.dtype]
    if have != tensor.dtype:
        if not np.can_cast(array.dtype, NUMPY_TYPES[tensor.dtype], "same_kind"):
            message = f"{tensor.path} is {tensor.dtype} in this session, and the array given for it {have}"
            raise DataError(
                "E0758", message, help=f"write its type in the head: `{tensor.path}: {have}`"
            )
        array = array.astype(NUMPY_TYPES[tensor.dtype])
    return contiguous(array)


@record
class Options:
    """What a session is made with."""

    name: str
    shapes: Mapping[str, Rows]
    config: Mapping[str, Given]
    keep: tuple[str, ...]
    seed: int
    target: str
    threads: int
    parameters: Any
    ranks: Ranks | None


DEFAULTS: dict[str, Any] = {
    "keep": (),
    "seed": 0,
    "target": "c",
    "threads": 1,
    "parameters": None,
    "ranks": None,
}


def options_of(
    name: str,
    shapes: Mapping[str, str],
    config: Mapping[str, Given],
    given: Mapping[str, Any],
) -> Options:
    """What a session is made with, from the arguments of ``Library.session``.

    Raises:
        DataError: E0752 (a shape), E0756 (an argument that there is not).
    """
    for each in given:
        if each not in DEFAULTS:
            listed = did_you_mean(each, list(DEFAULTS), f"there are {', '.join(DEFAULTS)}")
            raise DataError("E0756", f"a session has no option {each}", help=listed)
    rows = {each: rows_of(each, text) for each, text in shapes.items()}
    chosen = {**DEFAULTS, **given}
    keep = chosen["keep"]
    chosen["keep"] = (keep,) if isinstance(keep, str) else tuple(keep)
    if not isinstance(chosen["seed"], Integral):
        message = f"the seed is a whole number, not {chosen['seed']!r}"
        raise DataError("E0756", message, help="seed=0")
    return Options(name, rows, config, *chosen.values())


class Model:
    """The tensor functions and the routines of a file."""

    def __init__(self, module: Module) -> None:
        """For the definitions of a file."""
        self.module = module
        self._graphs: dict[object, Any] = {}
        self._definitions = pipeline.definitions_of(module)

    def session(self, options: Options) -> Session:
        """A session; see ``Library.session``."""
        return Session(self, options)

    def head(self, name: str) -> Any:
        """The head of a definition."""
        heads = [each.head for each in self.module.functions]
        heads += [each.head for each in self.module.routines]
        return next(head for head in heads if head.name == name)

    def built(self, options: Options, of_any_ranks: bool = False) -> Built:
        """The graph of a definition; ``of_any_ranks`` where their number is not known yet."""
        from ilang.core.build.program import built
        from ilang.core.passes.einx_operands import einx_on_operands

        ranks = 1 if options.ranks is None else options.ranks.size
        known = None if of_any_ranks else ranks
        around = Around(self.module, self._component, self._file, einx_on_operands, known)
        return built(around, options.name, options.shapes, options.config, options.keep)

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
                made = pipeline.module_graph(self.module, component.name, self._definitions)
                known = self._graphs.setdefault(component.name, made)
            return known
        return pipeline.graph_of(component, "component", self._definitions)

    def _file(self, path: str, span: Any) -> Array:
        """The array in a file beside the text."""
        from pathlib import Path

        place = Path(self.module.source.name).parent / path
        try:
            return supported_array(path, load_npy(str(place)))
        except DataError as error:
            help_line = error.help or "`file` reads .npy files"
            raise DataError("E0759", error.message, span, help_line) from None


def rows_of(name: str, text: str, words: bool = False) -> Rows:
    """The rows that a shape spells: ``batch|input->output``, sizes divided by commas.

    With ``words`` a size may be a word: it comes at run time.

    Raises:
        DataError: E0752.
    """
    help_line = "a shape is `batch|input->output`, sizes divided by commas: 64|784"
    if not isinstance(text, str):
        raise DataError("E0752", f"{text!r} is no shape for {name}", help=help_line)
    batch, bar, rest = text.rpartition("|")
    inner, arrow, output = rest.rpartition("->")
    rows = []
    for part in (batch if bar else "", inner if arrow else "", output):
        sizes = [each.strip() for each in part.split(",")] if part.strip() else []
        if not all(
            each.isascii() and (each.isdigit() or (words and each.isidentifier())) for each in sizes
        ):
            message = f"{text!r} is no shape for {name}"
            raise DataError("E0752", message, help=help_line)
        rows.append(tuple((int(each) if each.isdigit() else each, None) for each in sizes))
    return rows[0], rows[1], rows[2]
