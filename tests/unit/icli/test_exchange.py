"""Arrays as CSV and JSON: what is read, what is refused, and that what is written is read back."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from ilang.codegen.system.npy import Array, read_npy
from ilang.core.diagnostic import Error
from ilang.icli.exchange import array_of_text, csv_text, json_text
from tests.unit.icli.front import i

ARRAYS = [
    np.array(3.5, np.float32),
    np.array([1.5, -0.0, 1e-30], np.float32),
    np.array([[0.1, np.inf], [np.nan, -np.inf]], np.float32),
    np.array([[2**53 + 1, -7]], np.int64),
    np.array([1 / 3, 1e300], np.float64),
    np.array([True, False]),
    np.zeros((2, 3), np.int32),
]


def same(one: Array, other: Array) -> bool:
    signs = np.array_equal(np.signbit(one), np.signbit(other)) if one.dtype.kind == "f" else True
    return one.dtype == other.dtype and np.array_equal(one, other, one.dtype.kind == "f") and signs


@pytest.mark.parametrize(
    "text", ['[NaN, "Infinity",\n -Infinity, null]', '["-inf", NaN, Infinity, null]']
)
def test_places_in_json_are_those_of_its_text(text: str) -> None:
    with pytest.raises(Error) as caught:
        array_of_text(text.encode(), "x.json", None, "f32")
    assert caught.value.code == "E0721"
    assert caught.value.span is not None
    assert caught.value.span.text() == "null"
    assert caught.value.span.source.text == text


@pytest.mark.parametrize("array", [*ARRAYS, np.zeros((2, 0, 3)), np.ones((2, 1, 2))])
def test_json_is_read_back(array: Array) -> None:
    text = json_text([("out", array)], None)
    entry = json.loads(text)[0]
    assert entry["shape"] == list(array.shape)
    for whole in (f'{{"schema": 1, "outputs": {text}}}', json.dumps(entry)):
        read = array_of_text(whole.encode(), "<stdin>", None, None)
        assert read.shape == array.shape
        assert same(read, array)


def test_npy_is_read_in_its_place() -> None:
    stream = io.BytesIO()
    np.save(stream, np.arange(6.0).reshape(2, 3))
    data = bytearray(stream.getvalue())
    read = read_npy(data)
    data[-8:] = np.float64(7.0).tobytes()
    assert read.tolist() == [[0, 1, 2], [3, 4, 7]]
    with pytest.raises(Error) as caught:
        read_npy(data[:-1])
    assert caught.value.code == "E0728"


@pytest.mark.parametrize("array", ARRAYS)
def test_csv_is_read_back(array: Array) -> None:
    types = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "bool": "bool"}
    text = csv_text("out", array, None).encode()
    read = array_of_text(text, "<stdin>", types[array.dtype.name], None)
    assert read.shape == array.shape
    assert same(read, array)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("1 2\r\n3  4", [[1, 2], [3, 4]]),
        ("\ufeffx;y\n1;2\n", [[1, 2]]),
        ('"a","b"\n"1", "2"\n', [[1, 2]]),
        ("1\t2\n\n3\t4\n", [[1, 2], [3, 4]]),
        ("1\n2\n", [1, 2]),
        ("x\n1\n", [1]),
        ("7\n", 7),
        ("[1, 2]", [1, 2]),
        ("[[1], [2]]", [[1], [2]]),
        ('{"values": [1, 2]}', [1, 2]),
        ("1e3,inf\n", [[1000, float("inf")]]),
        ("[Infinity, -Infinity]", [float("inf"), float("-inf")]),
    ],
)
def test_texts(text: str, values: object) -> None:
    assert array_of_text(text.encode(), "x.csv", None, None).tolist() == values


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"1,2\n3\n", "E0722"),
        (b"1,,2\n", "E0721"),
        (b"1,x\n", "E0721"),
        (b"x\n", "E0728"),
        (b"true,1\n", "E0721"),
        (b"1e999,1\n", "E0723"),
        (b"16777217,1\n", "E0723"),
        (b"\xff\xfe1", "E0728"),
        (b"{", "E0728"),
        (b"{}", "E0728"),
        (b'{"outputs": []}', "E0728"),
        (b'{"values": null}', "E0721"),
        (b"[[1], 2]", "E0722"),
        (b"[null]", "E0721"),
    ],
)
def test_what_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(Error) as caught:
        array_of_text(data, "<stdin>", None, None)
    assert caught.value.code == code
    assert caught.value.help


def test_what_is_no_text_is_not_read_to_its_end() -> None:
    with Path("/dev/zero").open("rb") as endless:
        done = i("run", "+i~.", "-", stdin=endless)
    assert done.returncode == 1
    assert "error[E0728]" in done.stderr
