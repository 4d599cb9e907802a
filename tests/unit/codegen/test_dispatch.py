"""Calls in C: the same results, the same refusals and the same memory as calls in Python."""

import gc
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang import Error, einsum, einx, elementwise, i, tensor
from ilang.codegen.call import dispatch
from ilang.codegen.call.plan import CallPlan
from ilang.codegen.compile import cache
from ilang.codegen.components.component import Component

Array = npt.NDArray[Any]

pytestmark = pytest.mark.usefixtures("real_compiler", "shared_cache")

PLUS = "ij+ij~ij"
PRODUCT = "ik*kj~ijk >> +ijk~ij"


@pytest.fixture(autouse=True)
def extension() -> None:
    try:
        dispatch._source()
    except OSError as none:
        pytest.skip(f"this Python has no headers, or no locks: {none}")
    assert dispatch.load(compiled=True)


@pytest.fixture
def no_python(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From when it is called on, nothing may be called by Python."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("a call that C has to answer")

    return lambda: monkeypatch.setattr(CallPlan, "answer", refuse)


def ones(*shape: int, dtype: Any = np.float32) -> Array:
    return np.ones(shape, dtype)


def known(f: Any, *arrays: Any) -> Any:
    """A component whose table has the call on these arrays."""
    for _ in range(dispatch.COUNTED + 1):
        f(*arrays)
    assert f.program.plans.table is not None
    return f


def code_of(call: Callable[[], Any]) -> str:
    with pytest.raises(Error) as caught:
        call()
    return f"{caught.value.code} {caught.value.message} {caught.value.help}"


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (PLUS, ((7, 7), (7, 7))),
        (PLUS, ((0, 7), (0, 7))),
        ("-.~.", ((),)),
        ("i*i~i", ((1000,), (1000,))),
        (PRODUCT, ((7, 5), (5, 9))),
        (PRODUCT, ((7, 0), (0, 9))),
        (PRODUCT, ((40, 50), (50, 60))),
        ("i+i~i & i*i~i", ((5,), (5,))),
        (">ij~i", ((4, 30),)),
        ("-ij~ij >> +ij~i", ((4, 30),)),
        ("((i+i~i | i+i~i) >> i+i~i) | i*i~i", ((3,),) * 6),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_answers(text: str, shapes: Any, dtype: Any, no_python: Callable[[], None]) -> None:
    f = i(text)
    arrays = [np.arange(np.prod(shape)).reshape(shape).astype(dtype) for shape in shapes]
    expected: Any = f(*arrays, target="numpy")
    known(f, *arrays)
    no_python()
    found: Any = f(*arrays)
    assert type(found) is type(expected)
    pairs = (
        [(found, expected)] if isinstance(found, np.ndarray) else zip(found, expected, strict=True)
    )
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-6)
        assert (type(one), one.dtype, one.shape) == (type(other), other.dtype, other.shape)
        assert one.flags.num == np.empty(one.shape, one.dtype).flags.num


def test_answers_into_an_array(no_python: Callable[[], None]) -> None:
    f, x, out = known(i(PLUS), ones(7, 7), ones(7, 7)), ones(7, 7), ones(7, 7)
    no_python()
    assert f(x, x, out=out) is out
    assert (out == 2).all()


def test_the_same_for_arrays_that_only_look_alike(no_python: Callable[[], None]) -> None:
    f = known(i(PLUS), ones(7, 7), ones(7, 7))
    copied = pickle.loads(pickle.dumps(ones(7, 7)))
    read_only = ones(7, 7)
    read_only.setflags(write=False)
    no_python()
    assert (f(copied, read_only) == 2).all()


class Special(np.ndarray):
    """A class of arrays that is not NumPy's own."""


UNALIGNED = np.frombuffer(bytearray(7 * 7 * 4 + 1), np.uint8)[1:].view(np.float32).reshape(7, 7)


@pytest.mark.parametrize(
    "array",
    [
        ones(7, 7).view(Special),
        np.asfortranarray(np.arange(49, dtype=np.float32).reshape(7, 7)),
        np.arange(98, dtype=np.float32).reshape(7, 14)[:, ::2],
        ones(7, 7).astype(">f4"),
        ones(7, 7, dtype=np.float64),
        ones(3, 7),
        np.ma.masked_array(ones(7, 7), mask=True),
        [[1.0] * 7] * 7,
        2.0,
        None,
        UNALIGNED,
    ],
)
@pytest.mark.parametrize("place", [0, 1])
def test_what_does_not_fit_is_answered_as_ever(array: Any, place: int) -> None:
    arrays = [ones(7, 7), ones(7, 7)]
    arrays[place] = array
    f, g = known(i(PLUS), ones(7, 7), ones(7, 7)), i(PLUS)
    try:
        expected = g(*arrays)
    except Error:
        assert code_of(lambda: f(*arrays)) == code_of(lambda: g(*arrays))
        return
    for _ in range(2 * dispatch.COUNTED):
        np.testing.assert_array_equal(f(*arrays), expected)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_arrays_is_refused_as_ever(count: int) -> None:
    f, arrays = known(i(PLUS), ones(7, 7), ones(7, 7)), [ones(7, 7)] * count
    assert code_of(lambda: f(*arrays)) == code_of(lambda: i(PLUS)(*arrays))


def read_only_array() -> Array:
    array = ones(7, 7)
    array.setflags(write=False)
    return array


@pytest.mark.parametrize(
    "out",
    [
        ones(7, 6),
        ones(7, 7, dtype=np.float64),
        ones(7, 14)[:, ::2],
        read_only_array(),
        ones(7, 7).view(Special),
        (ones(7, 7),),
        (ones(7, 7), ones(7, 7)),
        [1, 2],
    ],
)
def test_an_output_that_does_not_fit(out: Any) -> None:
    f, g, x = known(i(PLUS), ones(7, 7), ones(7, 7)), i(PLUS), ones(7, 7)
    try:
        expected = g(x, x, out=out)
    except Error:
        assert code_of(lambda: f(x, x, out=out)) == code_of(lambda: g(x, x, out=out))
        return
    found = f(x, x, out=out)
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found, expected)


def test_outputs_of_several(no_python: Callable[[], None]) -> None:
    x = ones(5)
    f, outs = known(i("i+i~i & i*i~i"), x, x), (np.empty(5, "f"), np.empty(5, "f"))
    for wrong in (outs[:1], (*outs, x), (outs[0], ones(6)), (outs[0], ones(5, dtype=np.float64))):
        assert f.program.plans.table((x, x), wrong, 1) is None
    assert "E07" in code_of(lambda: f(x, x, out=ones(5)))
    assert code_of(lambda: f(x, x, out=(outs[0], outs[0]))).startswith("E0709")
    no_python()
    counts = [sys.getrefcount(each) for each in (x, outs, *outs)]
    assert f(x, x, out=outs) is outs
    assert counts == [sys.getrefcount(each) for each in (x, outs, *outs)]
    assert ((outs[0] == 2).all(), (outs[1] == 1).all()) == (True, True)


def test_an_output_that_overlaps_is_refused() -> None:
    x = ones(8, 7)
    f = known(i(PLUS), x[:7], x[:7])
    assert code_of(lambda: f(x[:7], x[:7], out=x[1:])).startswith("E0709")
    assert (x == 1).all()


def test_an_element_that_is_no_index_is_told_with_its_place() -> None:
    f, table = einx.get_at("[a], b -> b"), ones(4)
    known(f, table, np.array([0, 3]))
    found = code_of(lambda: f(table, np.array([0, 4])))
    assert found.startswith("E0746")
    assert found == code_of(lambda: einx.get_at("[a], b -> b").dynamic()(table, np.array([0, 4])))


@pytest.mark.parametrize("threads", [True, 0, -1, 1.0, "1", np.int64(1), 2])
def test_a_number_of_threads_is_looked_at(threads: Any) -> None:
    f, g, x = known(i(PLUS), ones(7, 7), ones(7, 7)), i(PLUS), ones(7, 7)
    try:
        g(x, x, threads=threads)
    except Error:
        assert code_of(lambda: f(x, x, threads=threads)) == code_of(
            lambda: g(x, x, threads=threads)
        )
        return
    assert (f(x, x, threads=threads) == 2).all()


def test_shapes_in_turn(no_python: Callable[[], None]) -> None:
    f = i(PLUS).dynamic()
    shapes = [(n, m) for n in range(1, 9) for m in range(1, 9)]
    for shape in shapes:
        known(f, ones(*shape), ones(*shape))
    no_python()
    for shape in shapes * 2:
        np.testing.assert_array_equal(f(ones(*shape), ones(*shape)), 2 * ones(*shape))


def test_more_shapes_than_there_is_room_for() -> None:
    f = i(PLUS).dynamic()
    for n in range(1, 300):
        for _ in range(dispatch.COUNTED):
            assert f(ones(n, 1), ones(n, 1)).shape == (n, 1)
    assert len(f.program.plans) <= dispatch.MOST_PLANS


def test_the_rank_tells_calls_apart() -> None:
    table = dispatch._extension.Table()  # type: ignore[union-attr]
    plan = object()
    assert table.add(plan, 0, 0, 1, 1, True, True, (11, 1, 2, 11, 1, 2))
    assert not table.add(plan, 0, 0, 1, 1, True, True, (11, 1, 2, 11, 1, 2))
    assert table.add(plan, 0, 0, 1, 1, True, True, (11, 2, 2, 2, 11, 1, 2))
    assert not table.add(plan, 0, 0, 8, 1, True, True, (11, 0) * 9)
    assert table((ones(3),), None, 1) is None
    assert table((ones(2, 1),), None, 1) is None
    assert table((), None, 1) is None
    for arguments in ((), (ones(2), None, 1), ((ones(2),), None), ((ones(2),), None, 1.0)):
        with pytest.raises(TypeError):
            table(*arguments)


def test_a_call_that_may_take_long_is_not_made_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ilang.codegen.call.plan.LONG", 1)
    monkeypatch.setattr("ilang.codegen.call.plan.BRIEF", 0)
    f, x = known(i(PLUS), ones(7, 7), ones(7, 7)), ones(7, 7)
    assert f.program.plans.table((x, x), None, 1) is None


def test_no_reference_is_lost_or_kept() -> None:
    x, y, out = ones(7, 7), ones(7, 7), ones(7, 7)
    f = known(i(PLUS), x, y)
    plan = f.program.plans.of((x, y))
    overlapping = ones(8, 7)
    before = [
        sys.getrefcount(each) for each in (x, y, out, plan, f.program.plans.table, None, x.dtype)
    ]
    for _ in range(100):
        f(x, y)
        f(x, y, out=out)
        with pytest.raises(Error):
            f(x, y, out=ones(7, 8)[:, :7])
        with pytest.raises(Error):
            f(overlapping[:7], overlapping[:7], out=overlapping[1:])
    after = [
        sys.getrefcount(each) for each in (x, y, out, plan, f.program.plans.table, None, x.dtype)
    ]
    assert all(abs(one - other) < 20 for one, other in zip(before, after, strict=True))


def test_memory_does_not_grow() -> None:
    x = ones(7, 7)
    f = known(i("ij+ij~ij & ij*ij~ij"), x, x)
    tracemalloc.start()
    try:
        for _ in range(1000):
            f(x, x)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20_000):
            f(x, x)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < before + 10_000
    finally:
        tracemalloc.stop()


def test_a_component_goes_with_its_table() -> None:
    f = known(i(PLUS), ones(7, 7), ones(7, 7))
    plan = f.program.plans.of((ones(7, 7), ones(7, 7)))
    count = sys.getrefcount(plan)
    gone = weakref.ref(f)
    del f
    assert gone() is None
    gc.collect()
    assert sys.getrefcount(plan) < count


def test_copies_begin_anew() -> None:
    x = ones(7, 7)
    f = known(i(PLUS), x, x)
    for other in (pickle.loads(pickle.dumps(f)), f.dynamic()):
        assert other.program.plans.table is None
        assert (other(x, x) == 2).all()


def test_threads_at_once() -> None:
    f = known(i(PRODUCT), ones(40, 50), ones(50, 60))
    wrong: list[Array] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(300):
            n = int(random.integers(1, 5))
            x = random.integers(0, 5, (10 * n, 50)).astype(np.float32)
            y = random.integers(0, 5, (50, 60)).astype(np.float32)
            if not np.array_equal(f(x, y), x @ y):
                wrong.append(x)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_child_calls_on() -> None:
    f, x = known(i(PLUS), ones(7, 7), ones(7, 7)), ones(7, 7)
    child = os.fork()
    if not child:
        os._exit(0 if (f(x, x) == 2).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_routines_answer_in_c(no_python: Callable[[], None]) -> None:
    x, w = tensor.data(None, (4,), (), (2,), "x"), tensor.param("w", value=np.ones(6, np.float32))
    y = tensor.relu(w @ x + tensor.param("b", output=(3,), value=1.0))
    f = tensor.solve(y).routine(y)
    known(f, ones(4, 2))
    no_python()
    assert (f(ones(4, 2)) == 3).all()


def test_kernels_answer_in_c(no_python: Callable[[], None]) -> None:
    f = elementwise("f", ["x0 * x1", "sum: x0 + x1"])
    for shape in ((3, 7), (2, 3, 7), (7,)):
        known(f, ones(*shape), ones(7))
    across = np.asfortranarray(ones(3, 7))
    expected = f(across, ones(7))
    no_python()
    for shape in ((3, 7), (2, 3, 7), (7,)):
        product, total = f(ones(*shape), x1=ones(7))
        np.testing.assert_array_equal(product, ones(*shape))
        np.testing.assert_array_equal(total, ones(*shape).reshape(-1, 7).sum(0) + 1)
    assert [each.flags.f_contiguous for each in expected] == [True, True]


def test_einsums_answer_in_c(no_python: Callable[[], None]) -> None:
    x, y = ones(3, 4), ones(4, 5)
    for _ in range(dispatch.COUNTED + 2):
        einsum("ij,jk->ik", x, y)
        einsum("...j,jk->...k", x, y)
    views = einsum("ij->ji", x)
    assert isinstance(einsum("ij,ij->", x, x), np.floating)
    no_python()
    for text in ("ij,jk->ik", "...j,jk->...k"):
        np.testing.assert_array_equal(einsum(text, x, y), x @ y)
    assert views.base is x


def test_an_einsum_told_otherwise_is_another_call() -> None:
    x, y = ones(3, 4), ones(4, 3)
    for _ in range(dispatch.COUNTED + 2):
        assert einsum("ij,jk->ik", x, y).dtype == np.float32
    assert einsum("ij,jk->ik", x, y, dtype=np.float64).dtype == np.float64
    assert einsum("ij,jk->ik", x, y, order="F").flags.f_contiguous
    assert einsum("ij,jk->ik", x > 0, y > 0).dtype == bool
    assert einsum("ij,jk->ik", x, y.astype(np.float64)).dtype == np.float64
    assert einsum("ij,jk->ik", ones(3, 1), y).shape == (3, 3)
    assert "E0711" in code_of(lambda: einsum("ij,jk->ik", x, y, threads=True))


# the extension itself


def test_the_text_compiles_without_a_warning(tmp_path: Path) -> None:
    text, recipe = dispatch._source()
    (tmp_path / "dispatch.c").write_text(text)
    includes = [flag for flag in recipe.flags if "/" in flag or flag == "-isystem"]
    for level in ("-O0", "-O3"):
        command = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", level, "-fsyntax-only"]
        subprocess.run([*command, *includes, "dispatch.c"], cwd=tmp_path, check=True)


CALLS = f"""
import threading, numpy as np
from ilang import i
from ilang.codegen.call import dispatch
f, x = i("{PLUS}"), np.ones((7, 7), np.float32)
for _ in range(dispatch.COUNTED * (dispatch.PAYS + 2)):
    assert f(x, x)[0, 0] == 2
print(f.program.plans.table is not None, [t.name for t in threading.enumerate()][1:])
"""


def calls(folder: Path, script: str = CALLS, **settings: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "I_CACHE_DIR": str(folder), **settings},
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    assert not done.stderr
    return done.stdout.strip()


def test_it_is_compiled_once_beside_calls(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    # The thread may end before, during or after the last call.
    loaded, thread = calls(folder).split(" ", 1)
    assert loaded in ("False", "True")
    assert thread in ("[]", "['ilang-dispatch']", "['ilang-dispatch', 'ilang-messages']")
    entries = sorted((folder / "compiled-1").iterdir())
    assert calls(folder) == "True []"
    assert sorted((folder / "compiled-1").iterdir()) == entries


FAILING = """
from ilang.codegen.call import dispatch
from ilang.codegen.compile import toolchain
before = dispatch._source
dispatch._source = lambda: ("no C" + before()[0], before()[1])
"""


@pytest.mark.parametrize("reason", ["import sys; sys.base_prefix = '/none'", FAILING])
def test_where_it_cannot_be_nothing_is_said(tmp_path: Path, reason: str) -> None:
    folder = tmp_path / "cache"
    assert calls(folder, f"{reason}\n{CALLS}").startswith("False")
    left = [item.name for item in (folder / "compiled-1").iterdir()]
    assert not [name for name in left if name.startswith("building-")]


def test_a_broken_entry_is_not_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("I_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(dispatch, "_extension", None)
    text, recipe = dispatch._source()
    assert not dispatch.load()
    folder = cache.cache_folder()
    assert folder is not None
    (Path(folder) / f"{cache.key_of(text, recipe)}.so").write_bytes(b"\x7fELF no library")
    assert not dispatch.load()


def test_a_component_is_whole_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_extension", None)
    monkeypatch.setattr(dispatch, "_looks", dispatch.PAYS)
    f: Component = i(PLUS)
    for _ in range(3 * dispatch.COUNTED):
        f(ones(7, 7), ones(7, 7))
    assert f.program.plans.table is None


def test_threads_that_would_share_nothing_are_not_asked_for(no_python: Callable[[], None]) -> None:
    f, x = known(i(PLUS), ones(3, 4), ones(3, 4)), ones(3, 4)
    no_python()
    for threads in (2, 64, 2**40):
        assert (f(x, x, threads=threads) == 2).all()


def test_threads_that_share_loops_are_asked_for(no_python: Callable[[], None]) -> None:
    x = ones(400, 400)
    f = known(i(PLUS), x, x)
    assert (f(x, x, threads=2) == 2).all()
    no_python()
    assert (f(x, x) == 2).all()
    with pytest.raises(AssertionError, match="that C has to answer"):
        f(x, x, threads=2)


def test_errors_of_kernels_name_their_inputs() -> None:
    f = elementwise("f", ["x * y"], inputs=["x", "y"])
    for shape in ((4,), (2, 4)):
        with pytest.raises(Error) as caught:
            f(ones(2, 3), ones(*shape))
        assert "axis j is 3 in x (dimension 1) and 4 in y" in caught.value.message
        assert "in0" not in str(caught.value)
        assert "in1" not in str(caught.value)
