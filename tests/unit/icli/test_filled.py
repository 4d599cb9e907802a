"""Arrays that follow from few numbers: zeros(3), arange(10)."""

from typing import Any

import numpy as np
import pytest

from ilang.core.diagnostic import DataError
from ilang.icli.arrays import array_of, normal_array, random_array
from ilang.icli.filled import filled_shape
from ilang.icli.session import ReplSession


@pytest.mark.parametrize(
    ("text", "dtype", "values"),
    [
        ("zeros(2, 3)", "f32", np.zeros((2, 3))),
        ("np.zeros((2, 3))", "f32", np.zeros((2, 3))),
        ("bool:torch.ones(2)", "bool", [True, True]),
        ("full(2, 3, 0.5)", "f32", np.full((2, 3), 0.5)),
        ("full([2], -7)", "f32", [-7, -7]),
        ("ones((2,))", "f32", [1, 1]),
        ("eye(2, 3)", "f32", np.eye(2, 3)),
        ("i64:eye(2)", "i64", np.eye(2)),
        ("i32:arange(3)", "i32", [0, 1, 2]),
        ("arange(5, 0, -2)", "f32", [5, 3, 1]),
        ("f64:arange(0, 1, 0.1)", "f64", np.arange(0, 1, 0.1)),
        ("arange(-1)", "f32", []),
        ("f64:linspace(0, 1, 7)", "f64", np.linspace(0, 1, 7)),
        ("rand(2,3)", "f32", random_array((2, 3), "f32", 0)),
        ("f64:np.random.randn(2,3)", "f64", normal_array((2, 3), "f64", 0)),
    ],
)
def test_values(text: str, dtype: str, values: Any) -> None:
    array = array_of(text)
    named = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64", "bool": "bool"}
    assert array.dtype == named[dtype]
    assert np.array_equal(array, np.asarray(values, array.dtype))
    assert filled_shape(text.rpartition(":")[2]) == array.shape


@pytest.mark.parametrize(
    ("text", "code", "shown"),
    [
        ("zeros(-1)", "E0720", "zeros(2, 3)"),
        ("zeros()", "E0720", "zeros(2, 3)"),
        ("zeros(2 3)", "E0720", "zeros(2, 3)"),
        ("zeros((2, 3)", "E0720", "zeros(2, 3)"),
        ("arange(1.2.3)", "E0720", "arange(10)"),
        ("arange(1, , 3)", "E0720", "arange(10)"),
        ("zeros(2.5)", "E0720", "zeros(2, 3)"),
        ("eye(1, 2, 3)", "E0720", "eye(3)"),
        ("linspace(0, 1)", "E0720", "linspace(0, 1, 5)"),
        ("arange(1e999)", "E0720", "arange(10)"),
        ("i64:linspace(0, 1, 3)", "E0723", "f64:linspace(0, 1, 3)"),
        ("arange(16777218)", "E0723", "f64:"),
        ("i32:rand(3)", "E0724", "i32:[0, 1]"),
        ("bool:randn(3)", "E0724", "bool:[0, 1]"),
        ("zeros(1000000, 1000000)", "E0727", "smaller"),
        ("zeros(x)", "E0720", "rand:32x64"),
    ],
)
def test_refusals(text: str, code: str, shown: str) -> None:
    with pytest.raises(DataError) as raised:
        array_of(text)
    assert raised.value.code == code
    assert shown in raised.value.help


def test_they_are_arrays_of_the_repl() -> None:
    session = ReplSession()
    assert session.feed("x = arange(4)").parts == ("x  4  f32",)
    assert session.feed("+i~. x").parts == session.feed("+i~. arange(4)").parts
    session.feed("f(a[n], b[n]) = i+i~i")
    assert "[0. 3. 6. 9.]" in str(session.feed("f(arange(4), linspace(0, 6, 4))").parts[0])
    session.feed("zeros(a[n]) = (I | 0) >> i*.~i")
    assert "E0" in str(session.feed("zeros(3)").parts[0])  # a name of the session comes first


def test_normal_numbers() -> None:
    """Their moments are those of the distribution; each operand of a command has its own."""
    values = normal_array((40_000,), "f32", 1)
    assert values.dtype == np.float32
    assert np.allclose([np.mean(values**n) for n in range(1, 5)], [0, 1, 0, 3], atol=0.1)
    assert abs(np.corrcoef(values, normal_array((40_000,), "f32", 2))[0, 1]) < 0.02
