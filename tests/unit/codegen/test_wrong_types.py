"""Calls from Python with arguments of wrong types: each is refused with a code, never with a bare exception."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import Error, I, einsum, einx, elementwise, i, load, tensor
from ilang.codegen.components.component import Component
from tests.shares import one_in

pytestmark = pytest.mark.usefixtures("shared_cache", "compiled_quickly")

TEXT = """\
sums(a[i,j]) = +ij~i
op next_of(x: f32[n]) = x + 1
op net(x; hid = 3) = "w" * x + "b" hid
cd count(x: f32[b|c]) {
  "n" =+ 1
  y = n *. x
  return y
}
"""
X = np.ones((2, 3), np.float32)


class Unprintable:
    """An object that has no repr."""

    def __repr__(self) -> str:
        """Nothing."""
        raise RuntimeError


VALUES: tuple[Any, ...] = (
    *(5, -1, 2.5, 3j, 10**400, float("nan"), True, None, "x", "", "\0", "é", b"x", object(), int),
    *([], {}, {"x": 3}, {3: "x"}, {1, 2}, ("a",), (1, 2), [None], ["x", 3], [[1], [2, 3]]),
    *(((2, "x"),), [(2, 3)], range(3), iter(()), Unprintable(), np.zeros(3)),
    *(np.zeros((2, 2), np.float32), np.float32(1), np.array(["a"])),
)
INNER = {"check_combines", "derived", "inferred", "keep_open", "plan_of", "takes", "text", "wires"}
INNER |= {"along_batch", "gradient_for", "run"}
"""Methods of components that the product calls itself."""
OPERATORS = ("__and__", "__rand__", "__or__", "__ror__", "__rshift__", "__rrshift__", "__getitem__")
GIVEN: dict[str, tuple[Any, ...]] = {"shapes": ((2, 3),), "ranked": (1, 1)}
"""What some methods are given before a value of a wrong type."""


def attempts(function: Callable[..., Any], before: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """Arguments of a function, one or two of them of a wrong type."""
    words = [
        each.name
        for each in inspect.signature(function).parameters.values()
        if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    for value in VALUES:
        yield {"arrays": (value,)}
        yield {"arrays": (value, value)}
        yield {"arrays": (*before, value)}
        for place in range(len(before)):
            yield {"arrays": (*before[:place], value, *before[place + 1 :])}
        for word in words:
            yield {"arrays": before, word: value}
            yield {"arrays": (), word: value}


def check(function: Callable[..., Any], before: tuple[Any, ...] = ()) -> None:
    """Call a function with arguments of wrong types."""
    __tracebackhide__ = True
    for named in attempts(function, before):
        arrays = named.pop("arrays")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                function(*arrays, **named)
            except Error:
                continue
            except TypeError as error:
                if not is_of_python(error, function):
                    pytest.fail(f"{function}: {types(arrays)}, {types(named)}: {error}")
            except Exception as error:
                pytest.fail(f"{function}: {types(arrays)}, {types(named)}: {error!r}")


def is_of_python(error: TypeError, function: Callable[..., Any]) -> bool:
    """Whether Python refuses the number or the names of arguments, before the function begins."""
    traceback = error.__traceback__
    assert traceback is not None
    name = getattr(function, "__name__", "__call__")
    return traceback.tb_next is None or f"{name}()" in str(error) or "operand type" in str(error)


def types(given: Any) -> list[str]:
    values = given.items() if isinstance(given, dict) else enumerate(given)
    return [f"{name}: {type(value).__name__}" for name, value in values]


def subjects(folder: Path) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """What has public methods, with what it may be called with."""
    (folder / "m.i").write_text(TEXT, "utf-8")
    module: Any = load(folder / "m.i")
    sums, kernel = i("+ij~i"), elementwise("f", ["x0 * x1"])
    return {
        "component": (sums, (X,)),
        "I": (I, (X,)),
        "gradient": (sums.grad(), (X, X[:, 0])),
        "kernel": (kernel, (X, X)),
        "ranked": (kernel.ranked(1, 1), (X[0], X[0])),
        "definition": (module["sums"], (X,)),
        "function": (module["next_of"], (X[0],)),
        "with parameters": (module["net"], (X,)),
        "routine": (module["count"], (X,)),
        "library": (module, ()),
        "session": (module.session("count"), (X,)),
        "program": (tensor.solve(tensor.data(X) + 1), ()),
        "tensor": (tensor.data(X), ()),
    }


EINX = (
    *(
        "id",
        "sum",
        "mean",
        "std",
        "softmax",
        "sort",
        "argmax",
        "roll",
        "flip",
        "add",
        "where",
        "dot",
    ),
    *("reduce", "elementwise", "vmap", "get_at", "set_at", "add_at", "rearrange", "logsumexp"),
)
NAMES = (
    *("component", "I", "gradient", "kernel", "ranked", "definition", "function"),
    *("with parameters", "routine", "library", "session", "program", "tensor"),
)


@pytest.mark.parametrize("name", one_in(4, NAMES))
def test_methods(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    subject, arrays = subjects(tmp_path)[name]
    if callable(subject):
        check(subject, arrays)
    for each in object.__dir__(subject):
        of_library = isinstance(subject, dict) and hasattr(dict, each)
        inner = isinstance(subject, Component) and each in INNER
        if each.startswith("_") or of_library or inner:
            continue
        method = getattr(subject, each)
        if callable(method):
            check(method, GIVEN.get(each, ()))
    for each in OPERATORS:
        if hasattr(subject, each) and not isinstance(subject, dict):
            check(getattr(subject, each))


def test_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check(i)
    check(load)
    check(einsum)
    check(einsum, ("ij,jk->ik", X, X.T.copy()))
    check(elementwise, ("f", ["x0"]))


@pytest.mark.parametrize("name", EINX)
def test_operations_of_einx(name: str) -> None:
    check(getattr(einx, name), ("a b", X))


@pytest.mark.parametrize("name", sorted(tensor.__all__))
def test_functions_of_tensors(name: str) -> None:
    function = getattr(tensor, name)
    if inspect.isfunction(function):
        check(function, (tensor.data(X),))
