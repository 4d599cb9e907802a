"""Every command with every option on every sample gives a result, or an answer with a code."""

from __future__ import annotations

from pathlib import Path

import pytest

from ilang.icli.command import Option
from ilang.icli.commands import COMMANDS, command_of
from tests.property.commands import EVERYWHERE, OPTIONS, SAMPLES, chosen, failed

COUNT = 18
"""Commands on each sample, together all options."""


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param(sample, id=sample.stem, marks=() if n % 8 == 1 else pytest.mark.deep)
        for n, sample in enumerate(SAMPLES)
    ],
)
def test_no_internal_error(sample: Path) -> None:
    assert [fault for words in chosen(sample, COUNT) if (fault := failed(words))] == []


def test_every_option_is_tried() -> None:
    tried = {tuple(words) for sample in SAMPLES for words in chosen(sample, COUNT)}
    for command, options in OPTIONS.items():
        words = {word for each in tried if each[0] == command for word in each}
        assert options.keys() <= words, command


def test_every_option_is_in_the_table() -> None:
    there = {
        name: {each.opts[-1] for each in command.params if isinstance(each, Option)}
        for name, command in ((name, command_of(name)) for name in COMMANDS)
    }
    assert there == {name: {*options, *EVERYWHERE} for name, options in OPTIONS.items()}
