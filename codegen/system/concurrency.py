"""Threads, forks and Ctrl-C: memos that threads share, a lock that survives a fork, waiting that a signal ends.

Locks are taken from where ``threading`` has them: importing that is a tenth of a first call, which needs no threads.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from queue import SimpleQueue

K = TypeVar("K")
T = TypeVar("T")

MOST_KEPT = 64
"""Results that a memo has at most, where nothing else is said."""

LISTEN = 0.05
"""Seconds between two looks for signals: one that comes just before a thread begins to wait does not wake it."""
AGAIN = 0.01
"""Seconds after which work that has not ended is told to stop again: it may not have begun the first time."""

_HOME = os.getpid()


def is_forked() -> bool:
    """Whether this process was forked from the one that loaded this module."""
    return os.getpid() != _HOME


def kept(memo: dict[K, T], key: K, make: Callable[[], T], most: int = MOST_KEPT) -> T:
    """The result for a key, the same for every thread, made at the first use; a full memo starts again."""
    known = memo.get(key)
    if known is None:
        result = make()
        if most <= len(memo):
            memo.clear()
        known = memo.setdefault(key, result)
    return known


class ForkSafeLock:
    """A lock that a forked child finds open, whoever held it in the parent."""

    def __init__(self) -> None:
        self._owner, self._lock = os.getpid(), _thread.RLock()

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Hold the lock."""
        if self._owner != os.getpid():
            self._owner, self._lock = os.getpid(), _thread.RLock()
        with self._lock:
            yield

    def kept(self, memo: dict[K, T], key: K, make: Callable[[], T]) -> T:
        """The result for a key, made at the first use by one thread, while others wait."""
        known = memo.get(key)
        if known is None:
            with self.taken():
                known = memo.get(key)
                if known is None:
                    known = memo[key] = make()
        return known


_whole: dict[weakref.ref[_thread.RLock], None] = {}
"""The locks that a fork waits for, in the order in which they were made."""


def lock_of_runs() -> _thread.RLock:
    """A lock that a fork takes as well: what it guards is whole in the child, whichever thread was at work on it."""
    lock = _thread.RLock()
    _whole[weakref.ref(lock, _whole.pop)] = None  # no code of Python: a signal there would be lost
    return lock


def _wait_for_forks() -> None:
    """Have every fork of this process hold the locks of ``lock_of_runs`` meanwhile."""
    held: list[_thread.RLock] = []

    def hold() -> None:
        for reference in list(_whole):
            lock = reference()
            if lock is not None:
                lock.acquire()
                held.append(lock)

    def release() -> None:
        while held:
            held.pop().release()

    os.register_at_fork(before=hold, after_in_parent=release, after_in_child=release)


_wait_for_forks()


class _Job:
    """Work for another thread, and what came of it."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._begun, self._over, self._unwanted = False, False, False
        self.done = _thread.allocate_lock()  # open once the work is done
        self.done.acquire()
        self.result: Any = None
        self.error: BaseException | None = None

    def carry_out(self) -> None:
        """Do the work, unless nobody wants it any more; ``done`` is left to whoever calls."""
        self._begun = True  # before the question: one of two threads sees what the other one wrote
        try:
            if not self._unwanted:
                self.result = self._work()
        except BaseException as error:  # handed to the thread that waits
            self.error = error
        self._over = True

    def end(self, stop: Callable[[], None]) -> None:
        """Return when the work has ended, or will not begin; ``stop`` is called until then.

        A signal that comes meanwhile changes nothing: whoever sent it gets the exception of the first one.
        """
        self._unwanted = True
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                while self._begun and not self._over:
                    stop()
                    self.done.acquire(timeout=AGAIN)
                return


class _Pool:
    """Threads that wait for work: starting one for each call costs as much as a short call takes.

    Threads of OpenMP belong to the thread that asked for them, so they are kept as well.
    """

    def __init__(self) -> None:
        self._home = os.getpid()
        self._idle: list[SimpleQueue[_Job]] = []

    def start(self, job: _Job) -> None:
        """Have a job done, by a thread that is idle or by a new one. Raises RuntimeError if there can be no more."""
        if self._home != os.getpid():  # the threads of a parent are not in its forked child
            self._home, self._idle = os.getpid(), []
        try:
            self._idle.pop().put(job)
        except IndexError:
            import threading
            from queue import SimpleQueue

            jobs: SimpleQueue[_Job] = SimpleQueue()
            jobs.put(job)
            threading.Thread(target=self._serve, args=(jobs,), name="ilang", daemon=True).start()

    def _serve(self, jobs: SimpleQueue[_Job]) -> None:
        while True:
            job = jobs.get()
            job.carry_out()
            self._idle.append(
                jobs
            )  # before anyone is told, so that the next call finds this thread
            job.done.release()
            del job  # with all that its work holds


_pool = _Pool()


def hears_signals() -> bool:
    """Whether this is the thread in which Python handles signals."""
    import threading

    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """A block whose signals are handled when it is left: none of their handlers can raise an exception inside.

    For what must not be lost half-way, such as a process that has started but that nobody holds yet.
    """
    if not hears_signals():
        yield  # handlers run in another thread
        return
    import signal

    came: list[int] = []
    try:
        with contextlib.ExitStack() as handlers:
            for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if callable(signal.getsignal(kind)):
                    old = signal.signal(kind, lambda number, _: came.append(number))
                    handlers.callback(signal.signal, kind, old)
            yield
    finally:
        for number in came:
            signal.raise_signal(number)


def interruptible(work: Callable[[], T], stop: Callable[[], None]) -> T:
    """The result of ``work``, done by another thread, so that this one, which hears signals, can handle them.

    Where that raises an exception, such as KeyboardInterrupt, ``stop`` is called, now and then, until the work has
    ended; it is raised only then. A handler that raises none does not disturb the work.
    """
    job = _Job(work)
    try:
        try:
            _pool.start(job)
        except RuntimeError:  # no more threads: do without
            return work()
        while not job.done.acquire(timeout=LISTEN):
            pass
    except BaseException:
        job.end(stop)
        raise
    if job.error is not None:
        raise job.error
    result: T = job.result
    return result
