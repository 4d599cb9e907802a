"""Every command with every option on every sample gives a result, or an answer with a code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.property.commands import SAMPLES, chosen, commands, failed


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.stem)
def test_no_internal_error(sample: Path) -> None:
    assert [fault for words in chosen(sample, 6) if (fault := failed(words))] == []


def test_every_option_is_tried() -> None:
    tried = {tuple(words[2:]) for sample in SAMPLES for words in chosen(sample, 6)}
    options = {word for words in commands(SAMPLES[0]) for word in words if word.startswith("-")}
    assert options <= {word for words in tried for word in words}
