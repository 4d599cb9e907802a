"""The module of a wheel: a Python function for each function of the library, and a class for each session.

Example, of ``total(x[n,m]) = +ij~i``:
    def total(x: _NDArray[_np.float32]) -> _NDArray[_np.float32]:
        ...
        return _total("total", (x,))
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ilang.codegen.call.arguments import NUMPY_TYPES
from ilang.codegen.project.comments import formulas_of
from ilang.codegen.targets.session import TITLES, EmittedSession, ExportedFunction, Struct
from ilang.core.calculus.extent import ATOM, PLAIN, PRODUCT, SUM, Operator
from ilang.core.ir.shaped import Shaped

SPELLED: Mapping[str, Operator] = {
    **PLAIN,
    "+": Operator(lambda *words: " + ".join(words), SUM, (SUM,)),
    "scaled": Operator(
        lambda factor, extent: extent if factor == "1" else f"{factor} * {extent}", PRODUCT, (ATOM,)
    ),
    "//": Operator(lambda whole, divisor: f"{whole} // max(1, {divisor})", PRODUCT, (ATOM,)),
}
"""The operations of extents in Python; C refuses to divide by an extent of 0."""
TAKEN = ("self", "np", "NDArray", "TYPE_CHECKING", "annotations", "_calls", "_library")
"""Names that mean something else in the module."""
ROLES = ("parameter", "state", "gradient", "setting")
"""The roles of what a user reads of a session."""


class PortsText(NamedTuple):
    """The text of what is taken and given: names, element types, extents; the sizes of C; those that follow."""

    inputs: tuple[tuple[str, str, tuple[str | int, ...]], ...]
    outputs: tuple[tuple[str, str, tuple[str | int, ...]], ...]
    sizes: tuple[str, ...]
    derived: Mapping[str, str]

    def table(self) -> str:
        """The value that ``wheel_calls.CallPorts`` has."""
        rules = ", ".join(f"{json.dumps(k)}: lambda size: {v}" for k, v in self.derived.items())
        listed = (
            "".join(f"_calls.Port{port!r}, " for port in ports)
            for ports in (self.inputs, self.outputs)
        )
        inputs, outputs = (f"({each})" for each in listed)
        return f"_calls.CallPorts({inputs}, {outputs}, {self.sizes!r}, {{{rules}}})"

    def signature(self, first: Sequence[str] = ()) -> str:
        """The parameters and what is returned, with types."""
        words = [*first, *(f"{name}: {_array(dtype)}" for name, dtype, _ in self.inputs)]
        given = [_array(dtype) for _, dtype, _ in self.outputs]
        several = f"tuple[{', '.join(given)}]" if 1 < len(given) else "".join(given) or "None"
        return f"({', '.join(words)}) -> {several}"

    def documented(self) -> Iterator[str]:
        """The parts of a docstring on arguments and results."""
        for title, ports in (("Args", self.inputs), ("Returns", self.outputs)):
            if ports:
                yield from ("", f"{title}:")
                yield from (f"    {port[0]}: {_shown(*port[1:])}" for port in ports)

    def given(self) -> str:
        """The arguments of a call, as a tuple."""
        return f"({''.join(f'{name}, ' for name, _, _ in self.inputs)})"


def module_text(
    functions: Mapping[str, ExportedFunction],
    sessions: Mapping[str, EmittedSession],
    package: str,
    version: str,
) -> str:
    """The text of ``__init__.py``, of functions and sessions by their names in Python."""
    names = [*functions, *sessions]
    lines = [
        f'"""Compiled functions on arrays of NumPy: {", ".join(names)}. Written by `i build --wheel`."""',
        "",
        '# mypy: disable-error-code="no-any-return"',
        "",
        "from __future__ import annotations",
        "",
        "from typing import TYPE_CHECKING as _TYPE_CHECKING",
        "",
        f"from {package} import _calls",
        "",
        "if _TYPE_CHECKING:",
        "    import numpy as _np",
        "    from numpy.typing import NDArray as _NDArray",
        "",
        f"__all__ = {names!r}",
        f'__version__ = "{version}"',
        "",
        f'_library = _calls.library_beside(__file__, "lib{package}.so")',
    ]
    for name, function in functions.items():
        lines += _function(name, function)
    structs = {each.struct.name: each.struct for each in sessions.values()}
    for name, struct in structs.items():
        fields = (f"    {field!r}," for field in struct_fields(struct))
        lines += ["", f"_fields_of_{name} = (", *fields, ")"]
    for name, session in sessions.items():
        lines += _session(name, session)
    return "\n".join(lines) + "\n"


def python_names(names: Iterable[str]) -> dict[str, str]:
    """Names that mean nothing else in Python, by those of definitions or of arrays: ``in_`` for ``in``."""
    chosen: dict[str, str] = {}
    reserved = {*TAKEN}
    for name in names:
        word = re.sub(r"\W", "_", name)
        while keyword.iskeyword(word) or word in reserved:
            word += "_"
        reserved.add(word)
        chosen[name] = word
    return chosen


def _function(name: str, function: ExportedFunction) -> Iterator[str]:
    shaped = function.shaped
    tensors = [shaped.tensors[value] for value in (*shaped.inputs, *shaped.outputs)]
    program = function.program
    names = [program.buffers[n].name for n in (*program.inputs, *program.outputs)]
    rows = [
        (word, each.dtype, _dims(shaped, each.dims))
        for word, each in zip(python_names(names).values(), tensors, strict=True)
    ]
    ports = _ports(
        rows, len(shaped.inputs), [shaped.sizes[n].name for n in function.free()], [shaped]
    )
    in_c = json.dumps(function.name())
    yield from ("", f"_{name} = _calls.Entry(_library, {in_c}, {in_c}, {ports.table()})", "", "")
    yield f"def {name}{ports.signature()}:"
    yield from _docstring([*formulas_of(function, name), *ports.documented()], 4)
    yield f"    return _{name}({json.dumps(name)}, {ports.given()})"


def _session(name: str, session: EmittedSession) -> Iterator[str]:
    struct = session.struct
    rows: dict[str, tuple[str | int, ...]] = {
        each: tuple(f"{each}_{n}" if d is None else d for n, d in enumerate(dims))
        for each, (_, dims) in session.tensors.items()
    }
    for stage in session.stages:
        rows |= {each: _dims(stage.function.shaped, dims) for each, dims in stage.dims()}
    words = python_names([*session.inputs, *session.outputs])
    ports = _ports(
        [(word, session.tensors[each][0], rows[each]) for each, word in words.items()],
        len(session.inputs),
        session.sizes(),
        [function.shaped for function in session.functions()],
    )
    yield from ("", "", f"class {name}(_calls.CompiledSession):")
    yield from _docstring([*_kept_lines(session), *ports.documented()], 4)
    yield ""
    yield "    library = _library"
    named = f"{json.dumps(session.name)}, {json.dumps(struct.name)}, _fields_of_{struct.name}"
    yield f"    table = _calls.SessionTable({named}, {json.dumps(session.counter)}, {{"
    for role in ROLES:
        yield f"        {json.dumps(role)}: ("
        for kept in session.kept:
            if kept.role == role:
                dims = () if kept.is_field() else kept.dims
                row = (kept.path, kept.name, _numpy(kept.dtype), dims)
                yield f"            _calls.Kept{row!r},"
        yield "        ),"
    yield f"    }}, {ports.table()})"
    yield ""
    yield f"    def __call__{ports.signature(['self'])}:"
    yield from _docstring(["One run.", *ports.documented()], 8)
    yield f"        return self.run_with(*{ports.given()})"


def struct_fields(struct: Struct) -> Iterator[tuple[str, str]]:
    """The fields of a struct on the host, in order, each with its type as ``wheel_calls.TYPES`` calls it."""
    for role in TITLES:
        for each in struct.kept:
            if each.role == role and not each.is_table():
                yield each.name, _numpy(each.dtype) if each.is_field() else "pointer"
    yield from ((name, "uint64") for name in ("seed", *struct.counters))
    yield from (
        (each.next or each.place, "pointer") for each in struct.kept if each.next or each.place
    )
    yield from ((each.name, "pointer") for each in struct.kept if each.role == "between")
    yield "work", "pointer"


def _kept_lines(session: EmittedSession) -> Iterator[str]:
    """The parameters of a session, and the rest of what it keeps."""
    yield f"{session.definition}, and what it keeps from run to run."
    for title, role in (("Parameters", "parameter"), ("State", "state"), ("Config", "setting")):
        rows = [each for each in session.kept if each.role == role]
        if rows:
            yield from ("", f"{title}:")
            for each in rows:
                shape = () if each.is_field() else each.dims
                yield f"    {each.path}: {_shown(_numpy(each.dtype), shape)}"


def _ports(
    rows: Sequence[tuple[str, str, tuple[str | int, ...]]],
    inputs: int,
    sizes: Sequence[str],
    shapeds: Sequence[Shaped],
) -> PortsText:
    """The ports of rows of a name, an element type and extents, of which the first are inputs."""
    typed = tuple((name, _numpy(dtype), dims) for name, dtype, dims in rows)
    derived: dict[str, str] = {}
    for shaped in shapeds:
        for rule in shaped.derived:
            size = shaped.sizes[rule.size]
            if size.fixed is None and not size.is_argument():
                text = rule.value().text(partial(_extent, shaped), SPELLED)
                derived.setdefault(size.name, text)
    return PortsText(typed[:inputs], typed[inputs:], tuple(sizes), derived)


def _extent(shaped: Shaped, number: int) -> str:
    size = shaped.sizes[number]
    return f"size[{json.dumps(size.name)}]" if size.fixed is None else str(size.fixed)


def _dims(shaped: Shaped, sizes: Sequence[int]) -> tuple[str | int, ...]:
    """The extents of a tensor: numbers, and names of those that come at run time."""
    every = [shaped.sizes[n] for n in sizes]
    return tuple(each.name if each.fixed is None else each.fixed for each in every)


def _numpy(dtype: str) -> str:
    return NUMPY_TYPES[dtype].name


def _array(dtype: str) -> str:
    return f"_NDArray[_np.{'bool_' if dtype == 'bool' else dtype}]"


def _shown(dtype: str, dims: Sequence[str | int]) -> str:
    return f"{dtype}[{', '.join(map(str, dims))}]"


def _docstring(lines: Sequence[str], indent: int) -> Iterator[str]:
    first, *others = (line.replace("\\", "\\\\").replace('"', "'") for line in lines)
    margin = " " * indent
    yield f'{margin}"""{first}'
    yield from (f"{margin}{line}".rstrip() for line in others)
    yield f'{margin}"""'
