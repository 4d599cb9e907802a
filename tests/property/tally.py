"""What checkers of random programs count, and how programs fail: by what they give, by a refusal or a crash.

Example:
    in:   one tally of 3 runs, another of 4 and a failure
    out:  ``one.add(other)``: 7 runs, and the failure
"""

from __future__ import annotations

import contextlib
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ilang import Error

Failure = tuple[int, str, str]
"""The seed, the step that failed, and the program with what was wrong."""


@dataclass
class Tally:
    """How often things were done, by name, and what failed."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def count(self, **more: int) -> None:
        """Add to what was done."""
        self.counts.update(more)

    def add(self, other: Tally) -> None:
        """Count another tally in."""
        self.counts.update(other.counts)
        self.failures += other.failures

    @contextlib.contextmanager
    def noting(self, seed: int, says: Sequence[str], step: str = "oracle") -> Iterator[None]:
        """Note what a block raises as a failure, in place of raising it.

        Args:
            seed: of the program.
            says: the program as it is read, in lines; it may grow inside the block.
            step: what failed where an assertion does.
        """
        try:
            yield
        except AssertionError as error:
            self._fail(seed, step, says, str(error))
        except Error as error:
            self._fail(seed, "refused", says, str(error))
        except Exception:
            self._fail(seed, "crashed", says, traceback.format_exc(limit=-4))

    def _fail(self, seed: int, step: str, says: Sequence[str], message: str) -> None:
        self.failures.append((seed, step, "\n".join([*says, message])))

    def told(self) -> str:
        """The failures, to be shown."""
        return "\n\n".join(f"seed {seed}: {step}: {says}" for seed, step, says in self.failures)
