"""Versions of components: the extents of the arrays at hand, open extents, and the bound on their number."""

import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import ilang
from ilang import Error, VersionsWarning, einsum, einx, elementwise, i
from ilang.codegen.components.component import Component

Array = npt.NDArray[Any]

pytestmark = pytest.mark.usefixtures("real_compiler", "compiled_quickly")

PRODUCT = "ik*kj~ijk >> +ijk~ij"


@pytest.fixture(autouse=True)
def few_versions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No more than three versions; a warning that is not expected is an error."""
    monkeypatch.setenv("I_VERSIONS", "3")
    with warnings.catch_warnings():
        warnings.simplefilter("error", VersionsWarning)
        yield


def grid(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 7 - 3


def listed(f: Component) -> list[str]:
    return [str(version) for version in f.versions()]


def test_a_call_has_a_version_for_its_extents() -> None:
    f = i(PRODUCT)
    assert f.versions() == ()
    for n in (5, 9, 5):
        assert np.array_equal(f(grid(n, 4), grid(4, 6)), grid(n, 4) @ grid(4, 6))
    assert listed(f) == ["f32[5, 4], f32[4, 6]", "f32[9, 4], f32[4, 6]"]
    assert f.versions()[0].types == ("f32", "f32")
    f(grid(5, 4).astype("f8"), grid(4, 6).astype("f8"))
    assert listed(f)[2] == "f64[5, 4], f64[4, 6]"


def test_further_calls_share_a_version_and_that_is_said_once() -> None:
    f = i(PRODUCT)
    for n in (9, 10, 11):
        f(grid(n, 9), grid(9, 9))
    with pytest.warns(VersionsWarning, match=r'3 calls.*\n.*f\.dynamic\("i", "k", "j"\)') as told:
        f(grid(12, 9), grid(9, 9))
    assert len(told) == 1
    for n in (13, 20):
        assert np.array_equal(f(grid(n, 9), grid(9, 9)), grid(n, 9) @ grid(9, 9))
    assert listed(f)[3:] == ["f32[i, k], f32[k, j]"]
    f(grid(9, 9), grid(9, 9))


def test_the_warning_names_the_line_that_calls() -> None:
    f = i("+i~.")
    for n in (9, 10, 11):
        f(grid(n))
    with pytest.warns(VersionsWarning) as told:
        f(grid(12))
    assert told[0].filename == __file__


def test_what_varies_can_be_said() -> None:
    f = i(PRODUCT).dynamic("i")
    for n in (8, 9, 10, 100, 3):
        assert np.array_equal(f(grid(n, 9), grid(9, 9)), grid(n, 9) @ grid(9, 9))
    assert [*dict.fromkeys(listed(f))] == ["f32[i, 9], f32[9, 9]"], (
        "of few rows and of many, which print alike"
    )
    every = f.dynamic()
    for n in (8, 9, 10, 100):
        every(grid(n, n), grid(n, n))
    assert listed(every) == ["f32[i, k], f32[k, j]"]
    assert len(f.versions()) == 1, "a copy has versions of its own"


def test_what_follows_from_an_open_extent_is_open() -> None:
    f = einsum("2*o=+k;k=>o").dynamic("k")
    for n, k in ((18, 3), (18, 4), (18, 5), (18, 9)):
        x, w = grid(n), grid(k)
        assert np.array_equal(f(x, w), f(x, w, target="numpy"))
    join = einx.id("a b -> (a b)").dynamic("a")
    for n in (2, 9, 30):
        assert np.array_equal(join(grid(n, 5)), grid(n, 5).ravel())
    assert listed(join) == ["f32[a, 5]"]


def test_kernels_layouts_and_gradients_keep_extents_open() -> None:
    f = elementwise("c", ["x0 * x1"])
    for n in (8, 9, 10):
        f(grid(n, 5), grid(n, 5))
    assert len(f.versions()) == 3
    every = f.dynamic()
    for n in (8, 9, 10, 11):
        every(grid(n, 5), grid(n, 5))
        assert np.array_equal(every(grid(n, 5).T, grid(n, 5).T), (grid(n, 5) ** 2).T)
    assert len(every.versions()) == 2, "one for each order in memory"
    g = i(PRODUCT).grad().dynamic("i", "j", "k")
    for n in (8, 9, 10, 11):
        dx, _ = g(grid(n, n), grid(n, n))
        assert np.array_equal(dx, np.ones((n, n), "f4") @ grid(n, n).T)
    assert all(isinstance(extent, str) for v in g.versions() for s in v.shapes for extent in s)


def test_an_extent_that_no_array_has_is_refused() -> None:
    f = i("f(rows[n,64]) = (+ij~i)(rows)").dynamic("m")
    with pytest.raises(Error) as caught:
        f(grid(3, 64))
    assert (caught.value.code, caught.value.help) == ("E0773", "its extents are n")


@pytest.mark.parametrize("text", ["three", "-1", "3.0", "²"])
def test_the_number_of_versions_is_a_number(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("I_VERSIONS", text)
    with pytest.raises(Error) as caught:
        i("+i~.")(grid(3))
    assert caught.value.code == "E0772"


@pytest.mark.parametrize(("most", "count"), [("0", 1), ("all", 6), ("", 6)])
def test_the_environment_bounds_versions(
    most: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("I_VERSIONS", most)
    f = i("+i~.")
    for n in range(9, 15):
        assert f(grid(n)) == grid(n).sum()
    assert len(f.versions()) == count


def test_bits_do_not_depend_on_earlier_calls() -> None:
    x = np.random.default_rng(0).standard_normal((37, 1000)).astype("f4")
    text = "^ij~ij >> +ij~i"
    alone, after = i(text), i(text)
    for n in (1, 36):
        after(x[:n])
    assert np.array_equal(alone(x), after(x))


def test_a_copy_keeps_what_is_open() -> None:
    f = pickle.loads(pickle.dumps(i("+ij~i").dynamic("j")))
    for n in (8, 9, 10, 11):
        f(grid(2, n))
    assert listed(f) == ["f32[2, j]"]


def test_a_device_compiles_for_the_extents_too() -> None:
    f = i("+ij~i").dynamic("j")
    for n in (8, 9):
        assert np.array_equal(f(grid(2, n), target="cuda-emulated"), grid(2, n).sum(1))
    assert listed(f) == ["f32[2, j]"]


def test_the_warning_is_public() -> None:
    assert issubclass(ilang.VersionsWarning, UserWarning)
