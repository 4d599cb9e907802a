"""How a random program fails: against the oracle, refused although it means something, or by a crash."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator, Sequence

from ilang import Error

Failure = tuple[int, str, str]
"""The seed, the kind, and the program with what was wrong."""


@contextlib.contextmanager
def noted(failures: list[Failure], seed: int, says: Sequence[str]) -> Iterator[None]:
    """Append what a block raises to the failures, in place of raising it.

    Args:
        failures: grows by at most one.
        seed: of the program.
        says: the program as it is read, in lines; it may grow inside the block.
    """
    text = "\n".join
    try:
        yield
    except AssertionError as error:
        failures.append((seed, "oracle", f"{text(says)}\n{error}"))
    except Error as error:
        failures.append((seed, "refused", f"{text(says)}\n{error}"))
    except Exception:
        failures.append((seed, "crashed", f"{text(says)}\n{traceback.format_exc(limit=-4)}"))
