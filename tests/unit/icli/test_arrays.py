"""Arrays from operands: types that fit, files that lie."""

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ilang.codegen.system.npy import load_npy, load_npz, map_npy
from ilang.core.diagnostic import DataError, Error
from ilang.icli.arrays import array_of, arrays_of
from ilang.icli.results import save

FIRST = [14819496.0, 7239838.0, 443485.0]
"""The first numbers of ``rand:``, in units of 2**-24."""


def code_of(action: Callable[[], object]) -> str:
    with pytest.raises(Error) as caught:
        action()
    return caught.value.code


def test_literals_take_the_written_type() -> None:
    assert array_of("[1,2]").dtype == np.float32
    assert array_of("[1,2]", "i64").dtype == np.int64
    assert array_of("i32:[1,2]", "f64").dtype == np.int32
    assert array_of("[true]").dtype == np.bool_
    assert array_of("[true]", "f32").tolist() == [1.0]


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("[16777217]", None),
        ("[1.5]", "i32"),
        ("[2147483648]", "i32"),
        ("[9223372036854775808]", "i64"),
        ("[1]", "bool"),
        ("inf", "i32"),
        ("1e39", None),
        ("1e400", "f64"),
        ("9" * 5000, "f64"),
    ],
)
def test_numbers_that_do_not_fit(text: str, dtype: str | None) -> None:
    assert code_of(lambda: array_of(text, dtype)) == "E0723"


def test_the_number_that_does_not_fit_is_named() -> None:
    with pytest.raises(Error, match=r"2\.5 is not a value of type i32"):
        array_of("[1,2.5]", "i32")
    assert array_of("[1.0,2]", "i32").tolist() == [1, 2]


def test_largest_integers_are_exact() -> None:
    assert array_of("[9223372036854775807]", "i64").tolist() == [2**63 - 1]
    assert array_of("[16777216]").tolist() == [2.0**24]


def test_random_numbers_are_the_same_everywhere() -> None:
    first = array_of("rand:3")
    assert first.tolist() == array_of("rand:3").tolist()
    assert first.tolist() != array_of("rand:3", None, 1).tolist()
    assert (first * 2**24).tolist() == FIRST
    many = array_of("f64:rand:1000")
    assert 0.0 <= many.min() < many.max() < 1.0
    assert abs(many.mean() - 0.5) < 0.05


def test_files_round_trip(tmp_path: Path) -> None:
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    save(f"{tmp_path}/x.npy", [("out", array)])
    save(f"{tmp_path}/x.npz", [("a", array), ("b", array.T)])
    np.save(tmp_path / "f.npy", np.asfortranarray(array))
    np.save(tmp_path / "big.npy", array.astype(">f4"))
    for text in ("x.npy", "x.npz:a", "f.npy", "big.npy"):
        read = array_of(f"{tmp_path}/{text}")
        assert read.dtype == np.float32
        assert read.tolist() == array.tolist()
    assert load_npz(f"{tmp_path}/x.npz", "b").tolist() == array.T.tolist()
    assert code_of(lambda: load_npz(f"{tmp_path}/x.npz", None)) == "E0729"
    assert code_of(lambda: load_npz(f"{tmp_path}/x.npz", "c")) == "E0729"
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "big.npy",
        "f.npy",
        "x.npy",
        "x.npz",
    ]


def npy(header: bytes, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def shaped(shape: str, descr: str = "'<f4'") -> bytes:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()


def loaded(text: str) -> object:
    """The shape that was read, or the code of the refusal."""
    try:
        return array_of(text).shape
    except DataError as error:
        return error.code


HOSTILE = [
    b"",
    b"\x93NUMPY",
    b"\x93NUMPY\x09\x00" + b"\x00" * 20,
    npy(b"import os"),
    npy(b"(" * 3000 + b")" * 3000),
    npy(shaped("(3,)")),
    npy(shaped("(3,)"), b"\x00" * 11),
    npy(shaped("(3,)"), b"\x00" * 13),
    npy(shaped("(-1,)"), b"\x00" * 4),
    npy(shaped("(10**12,)"), b"\x00" * 4),
    npy(shaped("(1000000000000,)"), b"\x00" * 4),
    npy(shaped("(4294967296, 4294967296, 4294967296)"), b"\x00" * 4),
    npy(shaped("(1,)", "'|O'"), b"\x80\x04."),
    npy(shaped("(1,)", "'<U4'"), b"\x00" * 16),
    npy(shaped("(1,)", "[('a', '<f4')]"), b"\x00" * 4),
    npy(shaped("('a',)"), b"\x00" * 4),
    npy(shaped("(True,)"), b"\x00" * 4),
    npy(shaped("()", "'<M8[s]'"), b"\x00" * 8),
    npy(b"\xff\xfe{'descr'"),
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_npy_files(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(data)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", data)
    for name in ("x.npy", "x.npz:x"):
        outcome = loaded(f"{tmp_path}/{name}")
        assert outcome in ("E0728", (1,))


def test_hostile_npz_files(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    good = io.BytesIO()
    np.savez(good, a=np.ones(100))
    whole = good.getvalue()
    for cut in range(0, len(whole), 37):
        path.write_bytes(whole[:cut])
        assert code_of(lambda: load_npz(str(path), "a")) == "E0728"
    for at in range(0, len(whole), 11):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert loaded(f"{path}:a") in ("E0727", "E0728", "E0729", (100,))


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "folder.npy").mkdir()
    for name in ("pipe.npy", "folder.npy"):
        assert code_of(lambda name=name: load_npy(f"{tmp_path}/{name}")) == "E0726"  # type: ignore[misc]
    assert code_of(lambda: load_npy("/dev/zero")) == "E0726"
    assert code_of(lambda: load_npy(f"{tmp_path}/none.npy")) == "E0725"
    assert code_of(lambda: load_npy("nul\0.npy")) == "E0725"


def test_writing_is_whole_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder.npy").mkdir()
    for name, code in (("folder.npy", "E0732"), ("none/x.npy", "E0731")):
        assert code_of(lambda name=name: save(f"{tmp_path}/{name}", [("out", np.ones(3))])) == code  # type: ignore[misc]
    with pytest.raises(ValueError, match="Object arrays"):
        save(f"{tmp_path}/x.npz", [("out", np.array([object()]))])
    assert [file.name for file in tmp_path.iterdir()] == ["folder.npy"]


def test_operands_are_mapped(tmp_path: Path) -> None:
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    for number, each in enumerate((array, array.T, array.astype(">f4"), array[:0], array[0, 0])):
        np.save(tmp_path / f"{number}.npy", each)
        (read,) = arrays_of([None], [f"{tmp_path}/{number}.npy"])
        assert np.array_equal(read, each)
        assert read.shape == each.shape
        assert read.dtype == np.float32
    assert not map_npy(f"{tmp_path}/0.npy").flags.writeable


def test_a_file_larger_than_memory_is_mapped(tmp_path: Path) -> None:
    count = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    with (tmp_path / "x.npy").open("wb") as stream:
        np.lib.format.write_array_header_1_0(
            stream, {"descr": "<f4", "fortran_order": False, "shape": (count,)}
        )
        stream.truncate(stream.tell() + 4 * count)
    assert code_of(lambda: load_npy(f"{tmp_path}/x.npy")) == "E0727"
    assert map_npy(f"{tmp_path}/x.npy")[count - 1] == 0


def test_a_file_that_lies_is_not_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(9))
    data = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(data[:-1])
    assert code_of(lambda: map_npy(f"{tmp_path}/x.npy")) == "E0728"
    (tmp_path / "x.npy").write_bytes(b"")
    assert code_of(lambda: map_npy(f"{tmp_path}/x.npy")) == "E0728"
