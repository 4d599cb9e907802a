"""Random written schedules: refused by a rule, with a legal one told, or right; and each rule is needed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ilang.core import pipeline
from ilang.core.diagnostic import Error, ScheduleError, ShapeError
from ilang.core.ir.graph import Graph
from ilang.core.ir.syntax import postorder
from ilang.core.notation.components.combinator import parse_program
from ilang.core.notation.files.module import parse_module
from ilang.core.source import Source
from ilang.icli.commands.check import USERS_DECIDE
from ilang.icli.programs import expressed
from tests.property import schedules
from tests.property.checking import check
from tests.property.schedules import RULES, draw, refusal, sorted_out
from tests.property.test_fuzz import needs_compiler
from tests.property.test_online_cases import BATCHED, DIVIDED, FLASH, INNER, UNSPLIT, VALUES
from tests.property.trial import Trial
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
    tally = check(legal, "threads" if batch % 2 else "sanitized")
    assert not tally.failures, tally.told()
    assert tally.counts["refused_schedules"] == 0
    assert tally.counts["runs"] >= len(legal)


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


def parts_of(text: str) -> Iterator[Graph]:
    """The components inside a text."""
    for part in postorder(parse_program(Source("<part>", text))):
        yield pipeline.graph_of(part, "part")


def parts_of_trial(trial: Trial) -> Iterator[Graph]:
    """The components inside a trial."""
    if not trial.written.module:
        yield from parts_of(trial.written.text)
        return
    module = parse_module(Source("<parts>", trial.written.text))
    for definition in module.definitions:
        for part in postorder(definition.body):
            yield expressed(part, module).graph


def is_left_to_users(part: Graph) -> bool:
    """Whether a part of a legal program is refused alone, and not for good."""
    refused: Error | None = None
    try:
        pipeline.lower(pipeline.infer(part))
    except (ScheduleError, ShapeError) as error:
        refused = error
    if isinstance(refused, ScheduleError):
        assert refused.within or refused.code in USERS_DECIDE, str(refused)
        return True
    assert refused is None or refused.code == "E0508", str(refused)
    return False


def test_a_part_of_a_legal_program_is_refused_only_where_users_decide() -> None:
    """``i check`` and the REPL refuse a definition at once where no definition that uses it could be legal."""
    texts = (FLASH, BATCHED, UNSPLIT, INNER, VALUES, DIVIDED)
    assert 12 < sum(is_left_to_users(part) for text in texts for part in parts_of(text))
    for seed in share(range(40)):
        trial = draw(seed)
        if refusal(trial) is None:
            for part in parts_of_trial(trial):
                is_left_to_users(part)


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
