"""Calls from many threads, in forked children, and under Ctrl-C, each in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [
    pytest.mark.usefixtures("real_compiler"),
    pytest.mark.skipif(os.name != "posix", reason="needs signals and fork"),
]


def python(code: str, seconds: float = 120) -> str:
    """What a script prints; it has to end well, and in time."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PRELUDE + code],
        check=False,
        capture_output=True,
        text=True,
        timeout=seconds,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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


def test_threads_are_bit_equal() -> None:
    python("""
one = matmul(x, y)
for threads in (2, 3, 8, 10**9):
    assert np.array_equal(matmul(x, y, threads=threads), one), threads
""")


def test_sixteen_threads_of_one_component() -> None:
    python("""
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
""")


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
matmul(x, y)  # Python's own import locks do not survive a fork, so everything is imported before
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


LONG = """
a = np.ones((3000, 3000), np.float32)
f = i("ik*kj~ijk") >> i("+ijk~ij")
f(x, y, threads=THREADS)
sys.stdout.write("ready\\n"); sys.stdout.flush()
try:
    while True:
        WORK
except KeyboardInterrupt:
    assert np.array_equal(i("ij+ij~ij")(x, y), x + y)
    print("interrupted")
"""


@pytest.mark.parametrize(
    "work",
    [
        "f(a, a)",
        "f(a, a, threads=THREADS)",
        'f(a, a, target="numpy")',
        "f(x, y)",
        "i('ij+ij~ij')(x, y)",
    ],
)
def test_ctrl_c(work: str) -> None:
    if "numpy" in work:
        work = 'f(a[:300], a[:, :300], target="numpy")'
    code = PRELUDE + LONG.replace("WORK", work).replace("THREADS", "2")
    command = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.3)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            said, error = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (said, process.returncode) == ("interrupted\n", 0), error
    assert time.monotonic() - start < 2


def test_ctrl_c_while_compiling(tmp_path: Path) -> None:
    """The signal comes once the compiler runs and is waited for, and ends both."""
    slow, pipe = tmp_path / "cc", tmp_path / "pipe"
    os.mkfifo(pipe)
    slow.write_text(f"#!/bin/sh\necho $$ >{pipe}\nsleep 600\n")
    slow.chmod(0o755)
    code = f"""
os.environ["CC"] = {str(slow)!r}
from ilang.codegen import toolchain
wait, waiting, compilers = toolchain._ended, threading.Event(), []
def told(child):
    waiting.set()
    return wait(child)
toolchain._ended = told
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
"""
    assert python(code) == "interrupted\n"
