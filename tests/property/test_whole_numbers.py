"""Whole numbers beside literals and truth values keep their type, in kernels and in tensor functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ilang import Error, elementwise, i, load
from tests.property.whole_numbers import Drawing, Whole

pytestmark = pytest.mark.usefixtures("compiled_quickly")  # right values are asked for


@pytest.mark.parametrize(("target", "count"), [("numpy", 60), ("c", 8), ("cuda-emulated", 2)])
@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_whole_numbers_stay_whole(dtype: str, target: str, count: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(len(target))
    arrays = [rng.integers(-9, 9, 5).astype(f"i{int(dtype[1:]) // 8}") for _ in range(2)]
    with np.errstate(over="ignore"):
        trials = [Drawing(seed, arrays).number() for seed in range(count)]
    reads = [[n for n in range(2) if f"x{n}" in trial.function] for trial in trials]
    heads = [", ".join(f"x{n}: {dtype}[i]" for n in each) for each in reads]
    path = tmp_path / "whole.i"
    path.write_text(
        "".join(
            f"op whole{n}({head}) = {trial.function}\n"
            f"cd lines{n}({head}) {{\n  {chr(10).join(trial.lines)}\n  return {trial.name}\n}}\n"
            for n, (head, trial) in enumerate(zip(heads, trials, strict=True))
        )
    )
    functions = load(str(path))
    outputs = elementwise("f", [trial.kernel for trial in trials], 2)(*arrays, target=target)
    for n, (trial, output) in enumerate(zip(trials, outputs, strict=True)):
        check(trial, output)
        given = [arrays[number] for number in reads[n]]
        check(trial, functions[f"whole{n}"](*given, target=target))
        check(trial, functions[f"lines{n}"](*given, target=target))
        if trial.index is not None:
            check(trial, i(trial.index)(*(arrays[n] for n in trial.reads), target=target))


@pytest.mark.parametrize("target", ["numpy", "c", "cuda-emulated"])
def test_truth_values_that_are_moved_stay_so(target: str, tmp_path: Path) -> None:
    path = tmp_path / "truths.i"
    path.write_text(
        "op turned(x: i64[i, j]) = transpose(x > 0)\n"
        'op later(x: i64[i]) = (x > 0) ++ "i => i+2"\n'
        "op woven(x: i64[i]) = interleave(x > 0, x > 1)\n"
        'op counted(x: i64[i], y: i64[i]) = (x > 0) *+ "i; i => " y\n'
        'op summed(x: i64[i]) = (x > 0) ++ "i => "\n'
    )
    functions = load(str(path))
    x = np.array([1, 2, 0])
    for name, arrays, expected in (
        ("turned", [x[None]], (x > 0)[None]),
        ("later", [x], np.array([False, False, True])),
        ("woven", [x], np.stack([x > 0, x > 1], -1).ravel()),
        ("counted", [x, x + 5], np.array(13)),
        ("summed", [x], np.array(2, np.float32)),
    ):
        found = functions[name](*arrays, target=target)
        assert found.dtype == expected.dtype, name
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x0 + -1", [0, 1, -4]),
        ("x0 * (1 - 3)", [-2, -4, 6]),
        ("x0 - -9223372036854775808", [-(2**63) + 1, -(2**63) + 2, 2**63 - 3]),
        ("x0 * -0", [0, 0, 0]),
        ("where(1 / 3, x0, 2 * x0)", [1, 2, -3]),
    ],
)
def test_a_literal_with_a_sign_takes_the_type_beside_it(text: str, expected: list[int]) -> None:
    found = elementwise("f", [text])(np.array([1, 2, -3]))
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("text", "code"),
    [("x0 + -1.5", "E0603"), ("x0 + 1 / 2", "E0602"), ("x0 + -2147483649", "E0603")],
)
def test_a_literal_that_its_type_cannot_hold_is_refused(text: str, code: str) -> None:
    with pytest.raises(Error) as caught:
        elementwise("f", [text])(np.array([1, 2, -3], np.int32))
    assert caught.value.code == code


def test_zero_with_a_sign_is_one_of_floats() -> None:
    assert np.signbit(elementwise("f", ["-0 * x0"])(np.ones(1)))


@pytest.mark.parametrize("target", ["numpy", "c", "cuda-emulated"])
def test_a_value_of_literals_has_each_type_that_it_meets(target: str, tmp_path: Path) -> None:
    path = tmp_path / "open.i"
    path.write_text(
        "cd y(x: i64[i], z: f32[i], w: f64[i]) {\n"
        "  sign = where(x > 0, 1, -1) *. 2\n"
        "  a = sign + x\n"
        "  b = sign *. z\n"
        "  c = sign *. w\n"
        "  return a, b, c, sign\n"
        "}\n"
    )
    x = np.array([2**62 + 1, -3])
    outputs = load(str(path))["y"](x, x.astype("f4"), x.astype("f8"), target=target)
    assert [each.dtype for each in outputs] == [np.int64, np.float32, np.float64, np.float64]
    sign = np.array([2, -2])
    wide = x.astype("f8")
    for found, expected in zip(outputs, [x + sign, sign * wide, sign * wide, sign], strict=True):
        np.testing.assert_array_equal(found, expected.astype(found.dtype))


def test_long_chains_of_literals_are_no_recursion(tmp_path: Path) -> None:
    path = tmp_path / "long.i"
    lines = "\n".join(f"  v{n + 1} = v{n} *. -1" for n in range(400))
    path.write_text(f"cd y(x: i64[i]) {{\n  v0 = 1 - 3\n{lines}\n  z = v400 + x\n  return z\n}}\n")
    found = load(str(path))["y"](np.array([2**62]), target="numpy")
    assert found.tolist() == [2**62 - 2]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("where(x0, 1, 1 / 2)", "E0602"),
        ("sqrt(4)", "E0602"),
        ("add(lt(x0, 1), lt(x0, 2))", "E0601"),
    ],
)
def test_what_no_whole_number_is_stays_refused(text: str, code: str) -> None:
    with pytest.raises(Error) as caught:
        elementwise("f", [f"{text} + x0"])(np.array([1, 2, -3]))
    assert caught.value.code == code


def check(trial: Whole, found: np.ndarray) -> None:
    assert found.dtype == trial.value.dtype, trial
    np.testing.assert_array_equal(found, trial.value, err_msg=repr(trial))


@pytest.mark.parametrize(
    ("text", "array"),
    [
        ("x + [1; 2; 3]", "[1; 2; 3]"),
        ("fill(2) *. x", "fill(2)"),
        ("max(x, values(1, 2, 3))", "values(1, 2, 3)"),
        ("where(x > 0, range(), x)", "range()"),
        ('x - dim(x, "n")', 'dim(x, "n")'),
    ],
)
@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_an_array_of_the_text_is_converted(
    text: str, array: str, dtype: str, tmp_path: Path
) -> None:
    path = tmp_path / "arrays.i"
    x = np.array([4, 0, 5], f"i{int(dtype[1:]) // 8}")

    def result(said: str) -> object:
        path.write_text(f"op f(x: {dtype}[n]) = {said}\n")
        return load(str(path))["f"](x, target="numpy")

    with pytest.raises(Error) as caught:
        result(text)
    assert caught.value.code == "E0601"
    wanted = f"`{dtype}({array})`"
    assert wanted in str(caught.value.help)
    found = result(text.replace(array, wanted.strip("`")))
    assert isinstance(found, np.ndarray)
    assert found.dtype == x.dtype
    named = f"{{\n  c = {array}\n  {text.replace(array, 'c')}\n}}"
    path.write_text(f"op f(x: {dtype}[n]) {named}\n")
    with pytest.raises(Error, match="E0601") as caught:
        load(str(path))["f"](x, target="numpy")
    assert wanted in str(caught.value.help)


@pytest.mark.parametrize("target", ["numpy", "c", "cuda-emulated"])
def test_a_conversion_gives_literals_its_type(target: str) -> None:
    """Alone and beside truth values they are as exact as the float that they are converted to."""
    truth = np.array([True])
    assert i("(1 | 3) >> ./.~. >> f64")(target=target) == 1 / 3
    assert i("(1 | 3) >> ./.~. >> f32 >> f64")(target=target) == np.float32(1 / 3)
    assert i("((I | 0.5) >> a-.~a | 3) >> l/.~l >> f64")(truth, target=target) == 0.5 / 3
    assert i("((I | 0.5) >> a-.~a | 3) >> l/.~l >> f32")(truth, target=target) == np.float32(
        0.5 / 3
    )
