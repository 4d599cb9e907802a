"""Loaded programs: called with the right memory, from any thread, and told apart from each other."""

import _thread
import signal
import threading
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ilang.codegen.call import load, memory
from ilang.codegen.call.load import Compiled, interface_of, open_library
from ilang.codegen.compile.toolchain import library_recipe
from ilang.codegen.system import concurrency
from ilang.codegen.system.concurrency import ForkSafeLock, interruptible, kept
from ilang.core.diagnostic import DataError, InternalError, ToolError
from ilang.core.machine import CPU
from ilang.core.pipeline import graph_of, infer, text_component
from tests.unit.codegen.conftest import FakeCompiler
from tests.unit.codegen.programs import ADD, adding

pytestmark = pytest.mark.usefixtures("real_compiler")

Array = npt.NDArray[Any]


def vectors(n: int) -> tuple[Array, Array, Array]:
    return np.arange(n, dtype=np.float32), np.ones(n, np.float32), np.zeros(n, np.float32)


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return Compiled(*adding())


@pytest.mark.parametrize("n", [0, 1, 5, 1000])
def test_call(n: int, compiled: Compiled) -> None:
    a, b, c = vectors(n)
    compiled.call((a, b), (c,), (n,))
    np.testing.assert_array_equal(c, a + 1)


def test_workspace_is_kept_and_aligned(compiled: Compiled) -> None:
    a, b, c = vectors(7)
    compiled.call((a, b), (c,), (7,))
    assert [len(space) for space in compiled.spaces] == [640]
    compiled.call((a, b), (c,), (7,))
    assert len(compiled.spaces) == 1
    import _cffi_backend as backend

    pointer = backend.cast(backend.new_primitive_type("uintptr_t"), compiled.spaces[0])
    assert int(pointer) % 64 == 0


def test_few_workspaces_are_kept(compiled: Compiled) -> None:
    spaces = [compiled.take_space(640) for _ in range(20)]
    for space in spaces:
        compiled.give_back(space)
    assert len(compiled.spaces) == load.MOST_SPACES


def test_plan_makes_its_results(compiled: Compiled) -> None:
    a, b, _ = vectors(5)
    plan = compiled.plan((5,), [((5,), np.dtype(np.float32))])
    np.testing.assert_array_equal(plan.fresh((a, b)), a + 1)


@pytest.mark.parametrize(("n", "code"), [(13, "E0709"), (14, "E0713"), (15, "E9910")])
def test_status(n: int, code: str, compiled: Compiled) -> None:
    a, b, c = vectors(n)
    with pytest.raises((DataError, InternalError)) as caught:
        compiled.call((a, b), (c,), (n,))
    assert caught.value.code == code
    plan = compiled.plan((n,), [((n,), np.dtype(np.float32))])
    with pytest.raises((DataError, InternalError)) as caught:
        plan.fresh((a, b))
    assert caught.value.code == code


def test_one_text_is_loaded_once() -> None:
    one, other = (open_library(*adding(), library_recipe()) for _ in range(2))
    assert one is other
    assert open_library(*adding(ADD + "/* another */"), library_recipe()) is not one


def test_few_libraries_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "MOST_LIBRARIES", 2)
    monkeypatch.setattr(load, "_loaded", {})
    for n in range(4):
        compiled = Compiled(*adding(f"{ADD}/* {n} */"))
        a, b, c = vectors(5)
        compiled.call((a, b), (c,), (5,))
        np.testing.assert_array_equal(c, a + 1)
        assert len(load._loaded) <= 2


def test_a_library_without_the_function() -> None:
    with pytest.raises(ToolError) as caught:
        open_library(*adding("int unrelated(void) { return 0; }"), library_recipe())
    assert caught.value.code == "E0908"


def test_iterations(compiled: Compiled) -> None:
    assert [*compiled.works((12,))] == [12]


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("-ij~ij", 128.0),
        ("^ij~ij", 256.0),  # each is read and stored, and takes twice as long besides
        ("+ij~i", 64.0),
        ("ik*kj~ijk >> +ijk~ij", 128.0),  # in tiles: a quarter of its 512 products
        ("ik*kj~ijk >> >ijk~ij", 1536.0),
        ("ij*ij~ij >> +ij~i", 192.0),
        ('einsum("ij;jk=>ik")', 128.0),
    ],
)
def test_what_a_call_counts(text: str, counted: float) -> None:
    interface = interface_of(infer(graph_of(text_component(text), "f")), CPU)
    total = sum(weight * 8 ** len(sizes) for weight, sizes in interface.nests)
    assert total == counted


@pytest.mark.parametrize("brief", [0.0, 1000.0])
def test_long_calls_give_the_same(
    brief: float, compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ilang.codegen.call.plan.LONG", 1)
    monkeypatch.setattr("ilang.codegen.call.plan.BRIEF", brief)
    a, b, c = vectors(50)
    compiled.call((a, b), (c,), (50,))
    np.testing.assert_array_equal(c, a + 1)
    plan = compiled.plan((50,), [((50,), np.dtype(np.float32))])
    np.testing.assert_array_equal(plan.fresh((a, b)), a + 1)
    np.testing.assert_array_equal(plan.fresh((a, b)), a + 1)
    assert plan._is_long(1) is (brief == 0.0)
    with pytest.raises(DataError):
        compiled.call(vectors(13)[:2], vectors(13)[2:], (13,))


OPENMP = ADD.replace("for (int64_t k", '_Pragma("omp parallel for") for (int64_t k').replace(
    "#include <stddef.h>", "#include <stddef.h>\n#ifndef _OPENMP\n#define NO_OPENMP 1\n#endif\n"
)


def test_threads_give_the_same_and_leave_the_setting() -> None:
    compiled = Compiled(*adding(OPENMP))
    a, b, c = vectors(10_000)
    compiled.call((a, b), (c,), (10_000,), threads=2)
    np.testing.assert_array_equal(c, a + 1)
    library = compiled.library(threads=True)
    if library.get_threads is not None and library.set_threads is not None:
        library.set_threads(3)
        compiled.call((a, b), (c,), (10_000,), threads=2)
        assert library.get_threads() == 3


def test_a_compiler_without_openmp(fake_compiler: FakeCompiler) -> None:
    fake_compiler(
        'case "$*" in *-fopenmp*) echo "unsupported option -fopenmp" >&2; exit 1;; esac; exec "$REAL" "$@"'
    )
    compiled = Compiled(*adding(OPENMP))
    a, b, c = vectors(100)
    compiled.call((a, b), (c,), (100,), threads=2)
    np.testing.assert_array_equal(c, a + 1)


def test_many_threads_call_first() -> None:
    compiled = Compiled(*adding(ADD + "/* cold */"))
    barrier = threading.Barrier(8)
    wrong: list[object] = []

    def work() -> None:
        a, b, c = vectors(7)
        barrier.wait()
        for _ in range(200):
            c[...] = 0
            compiled.call((a, b), (c,), (7,))
            if not np.array_equal(c, a + 1):
                wrong.append(c.copy())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def nothing() -> None:
    """What stops work that ends by itself."""


def test_errors_of_interruptible_work_are_passed_on() -> None:
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0, nothing)
    assert interruptible(threading.current_thread, nothing) is not threading.main_thread()


def test_a_thread_that_is_done_takes_the_next_work(monkeypatch: pytest.MonkeyPatch) -> None:
    first = interruptible(threading.current_thread, nothing)
    assert interruptible(threading.current_thread, nothing) is first
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0, nothing)
    assert interruptible(threading.current_thread, nothing) is first
    monkeypatch.setattr("os.getpid", lambda: -1)  # as in a forked child, where no thread is left
    assert interruptible(threading.current_thread, nothing) is not first


def test_interrupted_work_has_ended_when_the_exception_arrives() -> None:
    told, ended = threading.Event(), threading.Event()

    def work() -> None:
        _thread.interrupt_main()
        told.wait()
        _thread.interrupt_main()  # a second one changes nothing
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        interruptible(work, told.set)
    assert ended.is_set()
    assert interruptible(lambda: 5, nothing) == 5


def test_work_that_has_not_begun_does_not_begin() -> None:
    begun = threading.Event()
    job = concurrency._Job(begun.set)
    job.end(nothing)
    job.carry_out()
    assert not begun.is_set()


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs a signal to send")
def test_a_handler_that_raises_nothing_disturbs_nothing() -> None:
    handled, stopped = threading.Event(), threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: handled.set())

    def work() -> int:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        handled.wait()
        return 5

    try:
        assert interruptible(work, stopped.set) == 5
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not stopped.is_set()


def test_work_is_not_kept() -> None:
    array = np.zeros(3)
    kept = weakref.ref(array)
    interruptible(array.sum, nothing)
    interruptible(lambda: None, nothing)
    del array
    assert kept() is None


def test_no_thread_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(concurrency, "_pool", concurrency._Pool())
    assert interruptible(lambda: 5, nothing) == 5


def test_a_forked_child_finds_every_lock_open(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = ForkSafeLock()
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with lock.taken():
            held.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    with monkeypatch.context() as child:
        child.setattr("os.getpid", lambda: -1)
        with lock.taken():
            pass
    over.set()


def test_each_library_says_how_much_workspace_it_needs() -> None:
    text = ADD.replace("640 : 0", "SPACE : 0").replace("k < 640", "k < SPACE")
    text = "#ifdef _OPENMP\n#define SPACE 1000000\n#else\n#define SPACE 64\n#endif\n" + text
    compiled = Compiled(*adding(text))
    a, b, c = vectors(7)
    for threads in (1, 2, 1, 2):
        c[...] = 0
        compiled.call((a, b), (c,), (7,), threads)
        np.testing.assert_array_equal(c, a + 1)


def test_out_of_memory() -> None:
    with pytest.raises(DataError) as caught:
        memory.new_space(2**62)
    assert caught.value.code == "E0713"
    assert f"the workspace: {2**62:,} bytes" in caught.value.message
    assert "more than 2^62 bytes" in memory.too_large("the workspace", 2**63).message


def test_a_full_memo_starts_again() -> None:
    memo = {1: 10, 2: 20}
    assert kept(memo, 1, lambda: 0, most=2) == 10
    assert kept(memo, 3, lambda: 30, most=2) == 30
    assert memo == {3: 30}
