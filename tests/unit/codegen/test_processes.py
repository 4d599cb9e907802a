"""Calls from many threads, in forked children, and under Ctrl-C, each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import unoptimised
from tests.property.interruptions import WORKLOADS

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [
    pytest.mark.deep,
    pytest.mark.usefixtures("real_compiler"),
    pytest.mark.skipif(os.name != "posix", reason="needs signals and fork"),
]


def python(code: str, seconds: float = 120, *, optimised: bool = False) -> str:
    """What a script prints; it has to end well, and in time. Those that compute long have what they call optimised."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PRELUDE + code],
        env=dict(os.environ) if optimised else {**os.environ, "PATH": unoptimised.path()},
        check=False,
        capture_output=True,
        text=True,
        timeout=seconds,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


PARTS = 2
"""Processes that long calls are interrupted in; each starts Python and imports everything."""
PRELUDE = """
import os, signal, sys, threading, time
import numpy as np
from ilang import i, I
matmul = i("ik*kj~ijk") >> i("+ijk~ij")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores it
rng = np.random.default_rng(0)
x, y = (rng.random((200, 200), np.float32) for _ in range(2))
def child(work):
    pid = os.fork()
    if pid == 0:
        signal.alarm(100)  # a child that hangs is ended by a signal
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == 0, f"the child ends with {status}"
"""


@pytest.mark.usefixtures("shared_cache")
def test_threads_are_bit_equal() -> None:
    python(
        """
one = matmul(x, y)
for threads in (2, 3, 8, 10**9):
    assert np.array_equal(matmul(x, y, threads=threads), one), threads
""",
        optimised=True,
    )


@pytest.mark.usefixtures("shared_cache")
def test_sixteen_threads_of_one_component() -> None:
    python(
        """
wanted, wrong = matmul(x, y, target="numpy"), []
barrier = threading.Barrier(16)
def work():
    barrier.wait()
    for n in range(60):
        r = matmul(x, y, threads=1 + n % 2)
        if not np.allclose(r, wanted, rtol=1e-4): wrong.append(r)
workers = [threading.Thread(target=work) for _ in range(16)]
[w.start() for w in workers]; [w.join() for w in workers]
assert not wrong
""",
        optimised=True,
    )


def test_sixteen_threads_that_all_compile() -> None:
    python("""
texts = ["ij+ij~ij", "ij*ij~ij", "ij-ij~ij", ">ij~i", "+ij~j"]
errors, barrier = [], threading.Barrier(16)
def work(n):
    barrier.wait()
    for k in range(len(texts)):
        text = texts[(n + k) % len(texts)]
        f = i(text)
        a = (x, y) if text.count("ij") == 3 else (x,)
        if not np.array_equal(f(*a), f(*a, target="numpy").astype(np.float32)) and "+" not in text: errors.append(text)
workers = [threading.Thread(target=work, args=(n,)) for n in range(16)]
[w.start() for w in workers]; [w.join() for w in workers]
assert not errors, errors
""")


@pytest.mark.parametrize("before", ["", "matmul(x, y)", "matmul(x, y, threads=2)"])
def test_after_a_fork(before: str) -> None:
    python(f"""
{before}
wanted = matmul(x, y, target="numpy")
def work():
    for threads in (1, 2, 2):
        assert np.allclose(matmul(x, y, threads=threads), wanted, rtol=1e-4)
    assert np.array_equal(i("ij-ij~ij")(x, y, threads=2), x - y)
child(work)
child(lambda: child(work))
assert np.allclose(matmul(x, y, threads=2), wanted, rtol=1e-4)
""")


def test_forked_while_another_thread_compiles() -> None:
    python("""
i("(I | 0.25) >> ij*.~ij")(x)  # Python's own import locks do not survive a fork, so everything is imported before
stop = threading.Event()
def compile_many():
    n = 0
    while not stop.is_set():
        n += 1
        i(f"(I | {n}.5) >> ij*.~ij")(x)
worker = threading.Thread(target=compile_many)
worker.start()
def work():
    assert np.array_equal(i("(I | 0.5) >> ij*.~ij")(x), x / 2)
for _ in range(5):
    child(work)
stop.set()
worker.join()
""")


@pytest.mark.usefixtures("shared_cache")
@pytest.mark.parametrize("first", range(PARTS))
def test_ctrl_c(first: int) -> None:
    """The call does not complete, and no thread computes or writes when the exception arrives."""
    python(f"""
from tests.property.interruptions import COMPUTED, trial
for name in {list(WORKLOADS)[first::PARTS]!r}:
    for threads in (1, 2):
        _, after, statuses, written = trial(name, threads)
        assert statuses == [5], (name, threads, statuses)
        assert after < COMPUTED / 4, (name, threads, after)
        assert not written, (name, threads)
""")


@pytest.mark.usefixtures("shared_cache")
def test_what_comes_after_ctrl_c_is_right() -> None:
    python("""
from tests.property import interruptions
for name in ("matmul", "integers"):
    for threads in (2, 1):
        assert interruptions.trial(name, threads)[2] == [5]
big = rng.random((300, 300), np.float32)
wanted = big @ big
for threads in (1, 2, 1, 2):
    assert np.allclose(matmul(big, big, threads=threads), wanted, rtol=1e-4)
child(lambda: matmul(big, big, threads=2))
""")


LONG = """
f = i("i*j~ij >> +ij~.")
ones = np.ones(10**6, np.float32)
f(ones[:3], ones[:3], threads=2)
def shoot(number):
    start = time.process_time()
    while time.process_time() - start < 0.2:
        time.sleep(0.005)
    os.kill(os.getpid(), number)
"""


@pytest.mark.usefixtures("shared_cache")
def test_calls_of_other_threads_go_on() -> None:
    python(
        LONG
        + """
wanted = f(ones, ones[:5_000])
results = []
workers = [threading.Thread(target=lambda: results.append(f(ones, ones[:5_000], threads=2))) for _ in range(2)]
[w.start() for w in workers]
threading.Thread(target=shoot, args=(signal.SIGINT,)).start()
try:
    f(ones, ones, threads=2)
    sys.exit("it was not interrupted")
except KeyboardInterrupt:
    pass
[w.join() for w in workers]
assert results == [wanted, wanted], results
""",
        optimised=True,
    )


@pytest.mark.usefixtures("shared_cache")
def test_a_signal_that_raises_nothing_stops_nothing() -> None:
    python(
        LONG
        + """
handled = []
signal.signal(signal.SIGINT, lambda *_: handled.append(float(f(ones, ones[:2_000], threads=2))))
wanted = f(ones, ones[:6_000])
threading.Thread(target=shoot, args=(signal.SIGINT,)).start()
while not handled:
    assert f(ones, ones[:6_000], threads=2) == wanted
assert handled == [float(f(ones, ones[:2_000]))]
""",
        optimised=True,
    )


@pytest.mark.usefixtures("shared_cache")
def test_any_exception_of_a_handler_stops_a_call() -> None:
    python(
        LONG
        + """
class Late(Exception): pass
def late(*_): raise Late
signal.signal(signal.SIGALRM, late)
for threads in (1, 2):
    threading.Thread(target=shoot, args=(signal.SIGALRM,)).start()
    try:
        f(ones, ones, threads=threads)
        sys.exit("it was not interrupted")
    except Late:
        pass
def work():
    signal.signal(signal.SIGALRM, late)
    threading.Thread(target=shoot, args=(signal.SIGALRM,)).start()
    try:
        f(ones, ones)
        sys.exit("it was not interrupted")
    except Late:
        pass
child(work)
""",
        optimised=True,
    )


@pytest.mark.usefixtures("shared_cache")
def test_ctrl_c_of_the_reference() -> None:
    python(
        LONG
        + """
threading.Thread(target=shoot, args=(signal.SIGINT,)).start()
try:
    while True:
        f(ones[:1000], ones[:1000], target="numpy")
except KeyboardInterrupt:
    before = time.process_time() - time.thread_time()
start = time.thread_time()
while time.thread_time() - start < 0.2: pass
taken = time.thread_time() - start
assert time.process_time() - time.thread_time() - before < taken / 4
""",
        optimised=True,
    )


def test_ctrl_c_while_compiling(tmp_path: Path) -> None:
    """The signal comes once the compiler runs and is waited for, and ends both."""
    slow, pipe = tmp_path / "cc", tmp_path / "pipe"
    os.mkfifo(pipe)
    slow.write_text(f"#!/bin/sh\necho $$ >{pipe}\nsleep 600\n")
    slow.chmod(0o755)
    code = f"""
os.environ["CC"] = {str(slow)!r}
os.environ["I_CACHE_DIR"] = os.environ["TMPDIR"] = {str(tmp_path / "cache")!r}
os.mkdir(os.environ["TMPDIR"], 0o700)
from ilang.codegen.compile import compiler_process
wait, waiting, compilers = compiler_process._exit_status, threading.Event(), []
def told(child):
    waiting.set()
    return wait(child)
compiler_process._exit_status = told
def interrupt():
    compilers.append(int(open({str(pipe)!r}).read()))
    waiting.wait()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    matmul(x, y)
except KeyboardInterrupt:
    print("interrupted")
try:
    os.kill(compilers[0], 0)
    sys.exit("the compiler is still there")
except ProcessLookupError:
    pass
assert not [name for _, _, names in os.walk(os.environ["I_CACHE_DIR"]) for name in names if name.endswith(".c")]
"""
    assert python(code) == "interrupted\n"


def test_signals_wait_for_the_end_of_a_block() -> None:
    code = """
from ilang.codegen.system.concurrency import signals_held
for trouble in (None, OSError("no process")):
    steps = []
    try:
        with signals_held():
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("started")
            if trouble is not None:
                raise trouble
        steps.append("never")
    except KeyboardInterrupt:
        steps.append("interrupted")
    print(steps, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    assert python(code) == "['started', 'interrupted'] True\n" * 2
