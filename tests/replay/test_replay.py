"""The C of many programs is what it was."""

from __future__ import annotations

import pytest

from tests.replay.replay import PROGRAMS, replayed
from tests.rewritten import settle


@pytest.mark.early
def test_the_same_c(update: bool) -> None:
    lines = PROGRAMS.read_text("utf-8").splitlines()
    assert len(lines) >= 300
    settle(PROGRAMS, "\n".join(map(replayed, lines)) + "\n", update)
