"""Threads, forks and Ctrl-C: a lock that survives a fork, and waiting that a signal ends."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

_HOME = os.getpid()


def is_forked() -> bool:
    """Whether this process was forked from the one that loaded this module."""
    return os.getpid() != _HOME


class Turn:
    """A lock that a forked child finds open, whoever held it in the parent."""

    def __init__(self) -> None:
        self._owner, self._lock = os.getpid(), threading.RLock()

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Hold the lock."""
        if self._owner != os.getpid():
            self._owner, self._lock = os.getpid(), threading.RLock()
        with self._lock:
            yield


def interruptible(work: Callable[[], T]) -> T:
    """The result of ``work``, done by another thread where this is the main one, so that a signal ends the wait.

    Interrupted work goes on unseen until it is done; what it writes to is not to be used before.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[T] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def carry() -> None:
        try:
            results.append(work())
        except BaseException as error:  # handed to the thread that waits
            errors.append(error)
        finally:
            done.set()

    try:
        threading.Thread(target=carry, name="ilang", daemon=True).start()
    except RuntimeError:  # no more threads: do without
        return work()
    done.wait()
    if errors:
        raise errors[0]
    return results[0]
