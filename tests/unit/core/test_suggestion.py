"""What was most likely meant by an unknown name."""

from __future__ import annotations

import pytest

from ilang.core.suggestion import MOST_GUESSES, Guesses, did_you_mean, nearest


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("softmx", "softmax"),
        ("SOFTMAX", "softmax"),
        ("sotfmax", "softmax"),
        ("sum", None),
        ("", None),
    ],
)
def test_a_third_of_the_letters_may_be_wrong(word: str, name: str | None) -> None:
    assert nearest(word, ["softmax", "softplus", "x"]) == name


def test_a_help_line_names_it_or_says_something_else() -> None:
    assert did_you_mean("wieght", ["weight"], None) == "did you mean weight?"
    assert did_you_mean("wieght", ["weight"], None, "`{}`") == "did you mean `weight`?"
    assert did_you_mean("bias", ["weight"], "there is weight") == "there is weight"
    assert did_you_mean("bias", ["weight"], None) is None


def test_many_unknown_names_are_not_compared() -> None:
    guesses = Guesses()
    lines = [guesses.did_you_mean("wieght", ["weight"], None) for _ in range(MOST_GUESSES + 1)]
    assert lines == ["did you mean `weight`?"] * MOST_GUESSES + [None]
