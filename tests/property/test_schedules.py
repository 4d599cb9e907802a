"""Random written schedules: refused by a rule, with a legal one told, or right; and each rule is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ilang.core import pipeline
from tests.golden.test_golden import FOLDER, graph_in, texts
from tests.property import schedules
from tests.property.checking import check
from tests.property.schedules import RULES, draw, refusal, sorted_out
from tests.property.test_fuzz import needs_compiler, none_failed
from tests.shares import share

SEED, PAIRS = 1, 36
PASTES = 12
"""Suggestions after which a program must be legal: a schedule each may be wrong."""


@needs_compiler
@pytest.mark.batches(2)
def test_schedules_are_refused_or_right(batch: int) -> None:
    start = SEED + batch * PAIRS
    legal, refused = sorted_out(range(start, start + PAIRS))
    assert len(legal) >= PAIRS // 2
    assert set(refused) <= RULES
    tally = check(legal, "threads" if batch % 2 else "sanitized", with_loops=False)
    none_failed(tally.failures)
    assert tally.refused_schedules == 0
    assert tally.runs >= len(legal)


@pytest.mark.batches(1)
def test_every_suggestion_is_legal(batch: int) -> None:
    """Pasting what a refusal suggests, again where another schedule is wrong too, gives a legal program."""
    pasted = 0
    for seed in range(batch * 75, (batch + 1) * 75):
        trial = draw(seed)
        error = refusal(trial)
        for _ in range(PASTES):
            if error is None:
                break
            assert error.fix is not None, f"{trial.written.text}\n{error}"
            assert f"`{error.fix.text}`" in (error.help or "")
            trial = schedules.pasted(trial, error.fix)
            error = refusal(trial)
            pasted += 1
        assert error is None, f"still refused: {trial.written.text}\n{error}"
    assert pasted >= 8


def test_schedules_use_the_whole_notation() -> None:
    """Splits, parts in any order, digits inside and outside loops, starts and roles occur, in most programs."""
    texts = [draw(seed).written.text for seed in range(150)]
    for mark in (
        "''",
        " ! ",
        "'''",
        ":p",
        ":t",
        ":v",
        ":u",
        ":q",
        ":s",
        ":s2",
        ":r",
        ":c",
        ":x",
        ":tx",
        ":l",
        "|| 0 ",
        " 1 ",
    ):
        assert any(mark in text for text in texts), mark


def test_printed_schedules_give_the_same_code() -> None:
    """What ``i explain --schedule`` prints, written back, gives the code it was printed for."""
    for seed in share(range(150)):
        shaped = schedules.shaped_of(schedules.bare(draw(seed)))
        again = schedules.written_back(shaped)
        assert schedules.same_code(shaped, again), draw(seed).written.text


@pytest.mark.parametrize("path", texts(FOLDER), ids=lambda path: path.stem)
def test_printed_schedules_of_golden_programs_give_the_same_code(path: Path) -> None:
    shaped = pipeline.infer(graph_in(path))
    assert schedules.same_code(shaped, schedules.written_back(shaped))
