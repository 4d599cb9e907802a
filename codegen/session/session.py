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
import reprlib
import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ilang.codegen.call.arguments import (
    NUMPY_TYPES,
    SUPPORTED,
    check_is,
    check_threads,
    contiguous,
    rounded,
    shown,
    supported_array,
)
from ilang.codegen.call.memory import fitting
from ilang.codegen.call.plan import OUT_OF_RANGE
from ilang.codegen.call.target import check_target
from ilang.codegen.call.tracebacks import ends_at_caller
from ilang.codegen.session.checkpoint import DEFINITION, STATE, Checkpoint, read, write
from ilang.codegen.session.given_shapes import example_shapes, miscounted, rows_of_arrays
from ilang.codegen.session.initial import initial_values
from ilang.codegen.session.settings import Settings
from ilang.codegen.session.sharing import matched
from ilang.codegen.session.solved import SolvedDefinition
from ilang.codegen.session.step import BoundRun
from ilang.codegen.session.stored import Arrays, fitted
from ilang.codegen.system.concurrency import lock_of_runs, signals_held
from ilang.codegen.system.files import path_text
from ilang.core.build.values import Stored
from ilang.core.definition import LastingTensor
from ilang.core.diagnostic import (
    DataError,
    DataTypeError,
    LossWarning,
    MeaningError,
    Note,
    ShapeError,
    counted,
)
from ilang.core.dtype import FLOATS, INTEGERS
from ilang.core.record import replace
from ilang.core.suggestion import did_you_mean, nearest

if TYPE_CHECKING:
    import _thread

    from ilang.codegen.call.arguments import Array
    from ilang.codegen.session.model import Model, Options

KNOWN_LATER = ("parameters", "state", "config", "inputs", "_solved")
"""Attributes of a session whose shapes are known: before, its first run has to bring them."""
LASTING = ("parameter", "state")
"""The roles of results that take the place of what a run has read."""
SHAPED = ("_options", "_solved", "_constants", "inputs", "_bound")
"""Attributes of a session that are of one set of shapes."""
SHAPES_KEPT = 16
"""The sets of shapes of earlier runs that a session has at hand."""


def _refuse_copies(session: Session) -> NoReturn:
    """A session is neither pickled nor copied. Raises: DataError E0716."""
    message = f"{session!r} is neither pickled nor copied"
    help_line = "s.save(path) writes its arrays, and s.load(path) reads them into another session"
    raise DataTypeError("E0716", message, help=help_line)


class Session:
    """A definition with its arrays. A run takes arrays for its inputs by name, and gives what it returns.

    ``lock`` is held by a run, and by whatever reads or replaces arrays; sessions that share parameters have one lock.
    """

    lock: _thread.RLock
    inputs: Mapping[str, LastingTensor]
    """The inputs of a run: name, shape and element type."""

    def __init__(self, model: Model, options: Options, lock: _thread.RLock | None = None) -> None:
        """Infer every shape; the first run compiles. ``lock`` is that of the session whose place this one will take.

        Raises:
            Error: whatever is wrong with the text, the shapes or the configuration.
        """
        check_target(options.target)
        check_threads(options.threads)
        self._model = model
        self._options = options
        self._bound: BoundRun | None = None
        self._brought: tuple[str, ...] = ()
        self._of_shapes: dict[object, dict[str, Any]] = {}
        self._unread: tuple[str, Checkpoint] | None = None
        self.runs = 0
        shared = options.parameters
        self.lock = lock or (shared.lock if isinstance(shared, Session) else lock_of_runs())
        try:
            self._open(options)
        except ShapeError as error:
            if not error.guessed or len(options.shapes) == len(model.inputs(options.name)):
                raise
            self._waits = error
        self._names = [each.name for each in model.inputs(options.name)]

    __reduce__ = _refuse_copies

    if not TYPE_CHECKING:  # whoever checks types knows the attributes of a session

        def __getattr__(self, name: str) -> Any:
            """The arrays of a file that was loaded; what a session has once its shapes are known is refused before.

            Raises: ShapeError E0520, AttributeError.
            """
            waits = self.__dict__.get("_waits")
            if waits is not None and self._unread is not None and name in ("parameters", "state"):
                return MappingProxyType(getattr(self._unread[1], name)())
            if waits is not None and name in KNOWN_LATER:
                example = example_shapes(self._model.inputs(self._options.name))
                hint = f"call it once, or give shapes: m.session({self._options.name!r}, {example})"
                raise waits.with_help(hint)
            raise AttributeError(f"a session has no {name}")

    def _open(self, options: Options) -> None:
        """Infer every shape, and have arrays of them: with initial values, or those of another session."""
        self._options = options
        self._solved = SolvedDefinition(self._model, options)
        solved = self._solved
        self.config = Settings(solved.built, solved.config, solved.float, self.lock)
        written = {role: {r.path for r in solved.results if r.role == role} for role in LASTING}
        self.parameters, self.state = (
            Arrays(solved.tensors(kind), noun, written[noun], self.lock)
            for kind, noun in (("parameter", "parameter"), ("declared", "state"))
        )
        self._constants = solved.constants()
        self.inputs = {tensor.path: tensor for _, tensor in solved.cells("input")}
        given = options.parameters
        others: Mapping[str, str] = {}
        if isinstance(given, Session):
            others = matched(list(self.parameters), list(given.parameters))
            for path, place in others.items():
                self.parameters.share(path, given.parameters, place)
        for cell, tensor in solved.cells("parameter"):
            if tensor.path not in others:
                with fitting(f"the values of {tensor.path}", tensor.space()):
                    values = initial_values(solved, cell, tensor, options.seed)
                self.parameters.put(tensor.path, values)
        if isinstance(given, Mapping):
            for path, values in given.items():
                self.parameters[path] = values
        elif not isinstance(given, Session | None):
            message = f"parameters are those of a session, or arrays by path, not {shown(given)}"
            raise DataError("E0756", message, help="parameters=s, or parameters={'w': array}")
        _clear(self.state)
        self.parameters.replaced.clear()
        self.state.replaced.clear()

    def __repr__(self) -> str:
        if self.__dict__.get("_waits") is not None:
            return f"<Session {self._options.name}: shapes come with the first run>"
        kept = counted(len(self.parameters), "parameter")
        return f"<Session {self._options.name}: {kept}, {counted(self.runs, 'run')}, {self._options.target}>"

    # -- running -----------------------------------------------------------------------------------------------------

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names in C of the results of a run: ``out``, or ``out0``, ``out1``, ..."""
        returned = [each.path for each in self._solved.results if each.role == "return"]
        return ("out",) if len(returned) == 1 else tuple(f"out{path}" for path in returned)

    def check_loss(self) -> None:
        """Refuse to go back from more than one number, as training must: ``backprop`` would add them up.

        Raises:
            MeaningError: E0288.
        """
        for count, span, written in self._solved.long_losses():
            message = f"the loss has {count:,} elements, and training goes back from one"
            help_line = f"give `backprop` one number: {written}"
            raise MeaningError("E0288", message, span, help_line)

    def loss_notes(self) -> list[Note]:
        """Notes on losses of several elements, which a run adds up: once for each definition of a file."""
        noted, name = self._model.noted, self._options.name
        if name in noted:
            return []
        noted.add(name)
        return [
            Note(
                "E0288",
                f"the loss has {count:,} elements, and `backprop` adds them up",
                span,
                f"give `backprop` one number: {written}",
            )
            for count, span, written in self._solved.long_losses()
        ]

    @ends_at_caller
    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Run once. Before the first run, ``fit`` takes shapes that are not known from the arrays.

        Args:
            arrays: inputs in the order of the head.
            named: inputs by name.

        Returns:
            The results of the definition: an array, a tuple of several, None.

        Raises:
            DataError: E0742 (an input is missing), E0754 (an array of another shape), E0756 (no such input).
        """
        if named or len(arrays) != len(self._names):
            arrays = _in_order(self._options.name, self._names, arrays, named)
        with self.lock:
            bound = self._bound
            if bound is None or not bound.fits(arrays):
                self._fit(arrays)
                self._follow(arrays)
                arrays = tuple(map(_input, self.inputs.values(), arrays))
                for note in self.loss_notes():
                    warnings.warn(str(note), LossWarning, stacklevel=3)
                if self._bound is None:
                    lasting = self.parameters, self.state
                    self._bound = BoundRun(self._solved, lasting, self._fixed, self._options)
                bound = self._bound
            try:
                returned = bound.run(arrays)
            except DataError as error:
                raise self._placed(error, arrays) from None
            if bound.shared:
                with signals_held():
                    for path in reversed(bound.shared):
                        self.parameters.put(path, returned.pop())
                    self._count(bound)
            else:
                self._count(bound)
        if not returned:
            return None
        return returned[0] if len(returned) == 1 else tuple(returned)

    def _count(self, bound: BoundRun) -> None:
        """Let a run count: arrays that last change sides."""
        # Nothing is called in here, so no signal is handled: a run counts as a whole, or not at all.
        bound.last = bound.given
        self.parameters.side ^= 1
        self.state.side ^= 1
        self.runs += 1

    def fit(self, *arrays: Any, **named: Any) -> None:
        """Let inputs whose shape was not given have that of their arrays.

        Axis 0 of such an input is the batch and the others are output axes, but for the rows that the head writes. The
        first run does this by itself; before it, parameters have the extents of what was inferred.

        Raises:
            Error: shapes that do not agree. DataError: E0742, E0756 (as for a run).
        """
        given = _in_order(self._options.name, self._names, arrays, named)
        with self.lock:
            self._fit(given)

    def _fit(self, arrays: Sequence[Any]) -> None:
        """As ``fit``, for arrays in order; what was replaced before stays, or raises DataError E0754."""
        options, unread = self._options, self._unread
        if self._bound is not None or len(options.shapes) == len(self._names):
            return
        inputs = self._model.inputs(options.name)
        taken = rows_of_arrays(inputs, arrays, {*self._names} - {*options.shapes})
        if not taken:
            return
        options = replace(options, shapes={**options.shapes, **taken})
        if "_solved" in self.__dict__:
            options = replace(options, config={**options.config, **self.config})
            other = Session(self._model, options, self.lock)
            if self.parameters.lends:
                _check_alike(self.parameters, other.parameters)
                other.parameters = self.parameters
            for now, old in ((other.parameters, self.parameters), (other.state, self.state)):
                for path in old.replaced:
                    if not now.is_shared(path):
                        now[path] = old.now(path)
        else:
            other = Session(self._model, options, self.lock)
        if unread is not None:
            other._take_checkpoint(*unread)
        vars(self).update(vars(other), _waits=vars(other).get("_waits"), _brought=tuple(taken))

    def _follow(self, arrays: Sequence[Any]) -> None:
        """Have the shapes of these arrays, where those of before came with arrays and what lasts keeps its own.

        Raises:
            Error: shapes that do not agree.
        """
        rows = rows_of_arrays(self._model.inputs(self._options.name), arrays, self._brought)
        shapes = {**self._options.shapes, **rows}
        if shapes == self._options.shapes:
            return
        known = self._of_shapes.get(tuple(rows.values()))
        if known is None:
            options = replace(
                self._options, shapes=shapes, config={**self._options.config, **self.config}
            )
            solved = SolvedDefinition(self._model, options)
            for kept, kind in ((self.parameters, "parameter"), (self.state, "declared")):
                forms = [(each.path, each.shape.memory()) for each in solved.tensors(kind)]
                if forms != [(path, t.shape.memory()) for path, t in kept.tensors.items()]:
                    return
            inputs = {tensor.path: tensor for _, tensor in solved.cells("input")}
            known = dict(
                zip(SHAPED, (options, solved, solved.constants(), inputs, None), strict=True)
            )
        if self._bound is not None:
            self._bound.release()
        before = tuple(self._options.shapes[each] for each in self._brought)
        self._of_shapes[before] = {each: vars(self)[each] for each in SHAPED}
        if len(self._of_shapes) > SHAPES_KEPT:
            del self._of_shapes[next(iter(self._of_shapes))]
        vars(self).update(known)

    def _fixed(self, cell: Stored) -> Array:
        return self.config.arrays[cell.name] if cell.kind == "setting" else self._constants[cell]

    # -- reading -----------------------------------------------------------------------------------------------------

    def value(self, path: str) -> Array:
        """A parameter, a gradient of the last run, state, or a tensor that the session keeps.

        Raises:
            DataError: E0757.
        """
        if not isinstance(path, str):
            raise DataError("E0757", f"{reprlib.repr(path)} is no path", help='`s.value("w1")`')
        if path in self.parameters.tensors:
            return self.parameters[path]
        if path in self.state.tensors:
            return self.state[path]
        with self.lock:
            bound = self._bound
            if bound is not None and path in bound.last:
                bound.forget()
                return bound.fetch(path)
        paths = [
            *self.parameters,
            *self.state,
            *(r.path for r in self._solved.results if r.role != "return"),
        ]
        if path in paths:
            message = f"{path} has no values before the first run"
            raise DataError("E0757", message, help="run the session once: s(...)")
        guess = nearest(path, paths)
        keep = f"session(…, keep=[{path!r}]) keeps a tensor of the text"
        hint = f"did you mean {guess}? " if guess else f"there are {', '.join(paths[:8])}; "
        raise DataError("E0757", f"no run gives {path}", help=hint + keep)

    def _placed(self, error: DataError, given: Sequence[Array]) -> DataError:
        """An error of a run; of an element that is no index, with its place, which compiled code does not tell."""
        if error.code != OUT_OF_RANGE:
            return error
        kept = {path: self.parameters.now(path) for path in self.parameters}
        state = {path: self.state.now(path) for path in self.state}
        inputs = dict(zip(self._names, given, strict=True))
        try:
            self._evaluated({"input": inputs, "parameter": kept, "declared": state})
        except DataError as placed:
            return placed if placed.code == OUT_OF_RANGE else error
        return error

    def _evaluated(self, kept: Mapping[str, Mapping[str, Any]]) -> tuple[Any, Sequence[Array]]:
        """A run by the evaluator, and the value of each node; ``kept`` has arrays by kind and by path."""
        from ilang.core.reference import values_of

        solved = self._solved
        arrays = []
        for cell in solved.needed:
            arrays_of_kind = kept.get(cell.kind)
            path = solved.built.paths.get(cell, cell.name)
            if cell.kind == "merged":  # a sum over other ranks, which this process has not seen
                arrays.append(np.zeros(solved.dims(cell), NUMPY_TYPES[solved.type_of(cell)]))
            else:
                arrays.append(self._fixed(cell) if arrays_of_kind is None else arrays_of_kind[path])
        shaped = solved.shaped()
        return shaped, values_of(shaped, arrays, [size.fixed or 0 for size in shaped.sizes])

    # -- checkpoints -------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], notes: Mapping[str, str] | None = None) -> None:
        """Write parameters and state into a file, whole or not at all: .npz where its name ends so, else safetensors.

        Parameters are named by their paths, state by ``state.`` and its path. The notes tell also the definition, how
        many runs there were, and the seed.

        Raises:
            DataError: E0725 (no path), E0731, E0732 (the file cannot be written), E0768 (another file is there).
        """
        with self.lock:  # until all is written: the run after the next one writes into these arrays
            checkpoint = self._checkpoint(notes)
            write(path_text(path), checkpoint.arrays, checkpoint.notes)

    def snapshot(self, notes: Mapping[str, str]) -> Checkpoint:
        """A checkpoint as ``save`` would write it now, in arrays of its own. Raises: DataError: E0716 (no notes)."""
        check_is(notes, Mapping, "E0716", "notes are texts by name", 'notes={"at": "3"}')
        with self.lock:
            checkpoint = self._checkpoint(notes)
            copies = {path: array.copy() for path, array in checkpoint.arrays.items()}
            return Checkpoint(copies, checkpoint.notes)

    def _checkpoint(self, notes: Mapping[str, str] | None) -> Checkpoint:
        says, example = "notes are texts by name", 'notes={"at": "3"}'
        check_is(notes, (Mapping, NoneType), "E0716", says, example)
        options = self._options
        arrays = {path: self.parameters.now(path) for path in self.parameters}
        arrays |= {f"{STATE}{path}": self.state.now(path) for path in self.state}
        standard = {DEFINITION: options.name, "runs": str(self.runs), "seed": str(options.seed)}
        return Checkpoint(arrays, {**standard, **(notes or {})})

    def load(self, path: str | os.PathLike[str]) -> Mapping[str, str]:
        """Replace parameters and state by those of a file; its notes. Runs go on as those of the session that wrote it.

        Paths are equal after one common prefix. State of a file that has none begins with zeros. Where shapes come with
        the first run, that run takes the values, and raises what is wrong with them.

        Raises:
            DataError: E0725 to E0729, E0761 (the file), E0760 (a path is missing), E0754 (a shape), E0758 (a type).
        """
        name = path_text(path)
        checkpoint = read(name)
        with self.lock:
            if self.__dict__.get("_waits") is None:
                self._take_checkpoint(name, checkpoint)
            else:
                self._unread = name, checkpoint
        return checkpoint.notes

    def _take_checkpoint(self, name: str, checkpoint: Checkpoint) -> None:
        """Replace parameters and state by those of a file of this name. Raises: DataError, as ``load``."""
        chosen = [_taken(self.parameters, checkpoint.parameters(), name)]
        if (state := checkpoint.state()) and self.state:
            chosen.append(_taken(self.state, state, name))
        runs = checkpoint.notes.get("runs", "")
        with self.lock, signals_held():
            for arrays, values in zip((self.parameters, self.state), chosen, strict=False):
                for each, array in values.items():
                    arrays.put(each, array)
            if len(chosen) == 1:
                _clear(self.state)
            self.runs = int(runs) if runs.isdecimal() else 0


def take_values(session: Session, other: Session) -> None:
    """Let parameters and state of a session be those of another one of its definition.

    Raises:
        DataError: E0754 (the other one, with another configuration, has none of a path, or of another shape or type).
    """
    for arrays, given in ((session.parameters, other.parameters), (session.state, other.state)):
        for path, tensor in arrays.tensors.items():
            source = given.tensors.get(path)
            if source is None or (source.shape, source.dtype) != (tensor.shape, tensor.dtype):
                shape = "none" if source is None else source.shape.memory()
                config = {k: v for k, v in session.config.items() if other.config.get(k) != v}
                words = ", ".join(f"{name} = {value}" for name, value in config.items())
                message = (
                    f"{path} has shape {tensor.shape.memory()} with {words}, and {shape} without"
                )
                help_line = "parameters and state, and their sizes, are the same for both"
                raise DataError("E0754", message, help=help_line)
            arrays.put(path, given.now(path))


def _check_alike(lent: Arrays, asked: Arrays) -> None:
    """Refuse that parameters which further sessions share have other shapes for other inputs.

    Raises:
        DataError: E0754.
    """
    for path, tensor in lent.tensors.items():
        now, other = tensor.shape.memory(), asked.tensors[path].shape.memory()
        if now != other:
            message = f"{path} has shape {now} and is shared, and these inputs give it {other}"
            help_line = 'give shapes first: session(..., {"x": "32|4"})'
            raise DataError("E0754", message, help=help_line)


def _taken(arrays: Arrays, given: Mapping[str, Array], source: str) -> dict[str, Array]:
    """The given arrays that take the place of others, each of the right shape and type."""
    places = matched(list(arrays), list(given), source)
    for path, place in places.items():
        tensor, array = arrays.tensors[path], given[place]
        if NUMPY_TYPES[tensor.dtype] != array.dtype:
            given_dtype = SUPPORTED.get(array.dtype, array.dtype)
            message = f"{path} is {tensor.dtype} in this session, and {given_dtype} in {source}"
            raise DataError(
                "E0758", message, help=f"convert it: array.astype('{NUMPY_TYPES[tensor.dtype]}')"
            )
    return {
        path: fitted(path, given[place], arrays.tensors[path]) for path, place in places.items()
    }


def _clear(state: Arrays) -> None:
    for path, tensor in state.tensors.items():
        with fitting(f"the values of {path}", tensor.space()):
            state.put(path, np.zeros(tensor.shape.memory(), NUMPY_TYPES[tensor.dtype]))


def _in_order(
    name: str, names: Sequence[str], arrays: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Any, ...]:
    """An array for each input of a definition, in the order of the head."""
    if len(named) == len(names) and not arrays:
        try:
            return tuple(map(named.__getitem__, names))
        except KeyError:
            pass  # what is wrong with it is told below
    if len(names) < len(arrays):
        raise miscounted(name, names, len(arrays))
    by_name = {**dict(zip(names, arrays, strict=False)), **named}
    for number, each in enumerate(names[: len(arrays)]):
        if each in named:
            message = (
                f"the input {each} of {name} is given by name, and in order as array {number + 1}"
            )
            raise DataError("E0756", message, help="give each input once")
    for each in by_name:
        if each not in names:
            hint = did_you_mean(each, names, f"its inputs are {', '.join(names)}")
            raise DataError("E0756", f"{name} has no input {each}", help=hint)
    for each in names:
        if each not in by_name:
            message = f"the input {each} of {name} has no array"
            help_line = f"arrays are given in order, or by name: {', '.join(names)}"
            raise DataError("E0742", message, help=help_line)
    return tuple(by_name[each] for each in names)


def _input(tensor: LastingTensor, values: Any) -> Array:
    """An array for an input, as C reads it.

    Raises:
        DataError: E0754, E0758 (another element type).
    """
    array = supported_array(tensor.path, values, np.float32)
    dims = tensor.shape.memory()
    if array.shape != dims:
        raise DataError(
            "E0754",
            f"{tensor.path} has shape {dims} in this session, and the array given for it {array.shape}",
            help="the batch may change from call to call unless `shapes` gives it; for other axes make another session",
        )
    given_dtype = SUPPORTED[array.dtype]
    if given_dtype != tensor.dtype:
        is_whole = (
            tensor.dtype in INTEGERS and given_dtype in FLOATS
        )  # where it is not, `rounded` says so
        if not (is_whole or np.can_cast(array.dtype, NUMPY_TYPES[tensor.dtype], "same_kind")):
            message = f"{tensor.path} is {tensor.dtype} in this session, and the array given for it {given_dtype}"
            raise DataError(
                "E0758", message, help=f"write its type in the head: `{tensor.path}: {given_dtype}`"
            )
        array = rounded(tensor.path, array, tensor.dtype)
    return contiguous(array)
