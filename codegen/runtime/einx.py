"""Operations in einx notation as components, and their calls on arrays; see ``ilang/einx.py`` for the functions.

A component is kept for each operation, text and parameters that were called, so that a call like an earlier one is a
look-up and the call of a component.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ilang.codegen.runtime.component import Component
from ilang.core.diagnostic import DataError, NotationError
from ilang.core.ir.einx import Parameter, Sizes
from ilang.core.ir.syntax import Einx
from ilang.core.notation.arity import wires_of
from ilang.core.notation.einx import read_einx
from ilang.core.notation.einx_forms import complete
from ilang.core.source import Source, Span, whole

MOST_KEPT = 1024
"""Components that are kept; past it, it starts again."""
CALLS = frozenset(("out", "threads", "target"))
"""What a call is told that is no parameter of the operation."""
INDEXING = frozenset(("get_at", "set_at", "add_at", "subtract_at"))

_kept: dict[Any, Component] = {}


def call(op: str, text: str, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """The result of an operation on arrays; without arrays, its component.

    Raises:
        Error: whatever is wrong with the text, the parameters or the arrays.
    """
    told: dict[str, Any] = {}
    if named:
        told = {name: value for name, value in named.items() if name in CALLS}
        parameters = {name: value for name, value in named.items() if name not in CALLS}
        key: Any = (op, text, *parameters.items())
    else:
        parameters, key = {}, (op, text)
    try:
        found = _kept.get(key)
    except TypeError:  # a list is no key
        found, key = None, None
    if found is None:
        found = component(op, text, parameters)
        if key is not None:
            if MOST_KEPT <= len(_kept):
                _kept.clear()
            _kept[key] = found
    if not arrays:
        return found
    if op in INDEXING:
        arrays = _with_coordinates(op, arrays)
    return found(*arrays, **told)


def component(op: str, text: object, parameters: Mapping[str, Any]) -> Component:
    """The component of an operation. Raises NotationError E016, MeaningError E022, DataError E0716."""
    if not isinstance(text, str):
        message = f"an einx operation is a text, not {type(text).__name__}"
        raise DataError("E0716", message, help=f'write it in quotes: einx.{op}("a b -> b a")')
    source = Source("<einx>", text)
    read = read_einx(source)
    form = complete(op, read, given_parameters(parameters), whole(source))
    tree = Einx(form, whole(source))
    return Component(tree, wires_of(tree, {}))


def given_parameters(given: Mapping[str, Any]) -> list[Parameter]:
    """Parameters of Python, each with its place in a text that shows them. Raises NotationError E0166."""
    sizes = {name: _sizes(name, value) for name, value in given.items()}
    words = [f"{name}={value!r}" for name, value in sizes.items()]
    source = Source("<parameters>", ", ".join(words))
    found, start = [], 0
    for (name, value), word in zip(sizes.items(), words, strict=True):
        found.append(Parameter(name, value, Span(source, start, start + len(word))))
        start += len(word) + 2
    return found


def _sizes(name: str, value: Any) -> Sizes:
    """A size, or nested sequences of them, as tuples of Python."""
    tolist = getattr(value, "tolist", None)
    value = tolist() if tolist is not None else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, (tuple, list)):
        return tuple(_sizes(name, each) for each in value)
    message = f"{name} is given as {value!r}, and a size is a whole number"
    source = Source("<parameters>", f"{name}={value!r}")
    help_line = f"write `{name}=4`, or `{name}=(4, 2)` for the repetitions of an ellipsis"
    raise NotationError("E0166", message, whole(source), help_line)


def _with_coordinates(op: str, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Arrays, those that hold coordinates as integers that programs have: nothing is lost where they are widened."""
    last = len(arrays) if op == "get_at" else len(arrays) - 1
    return tuple(_widened(each) if 0 < n < last else each for n, each in enumerate(arrays))


def _widened(value: Any) -> Any:
    import numpy as np

    if isinstance(value, int) and not isinstance(value, bool):
        return np.array(value, np.int64)
    dtype = getattr(value, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "") in "iu" and dtype.itemsize < 4:
        return np.asarray(value).astype(np.int64)
    return np.asarray(value).astype(np.int64) if dtype == np.uint32 else value
