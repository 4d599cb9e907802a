"""Constructors of records: by position, by name, with defaults."""

from __future__ import annotations

import pytest

from ilang.core.record import record


@record
class Read:
    """A record of three fields, two of which have defaults."""

    value: int
    index: tuple[int, ...] = ()
    skips: bool = False


def test_fields_by_position_by_name_and_by_default() -> None:
    assert Read(1) == Read(1, (), False) == Read(skips=False, value=1)
    assert Read(1, skips=True) != Read(1)
    assert repr(Read(2, (3,))) == "Read(value=2, index=(3,), skips=False)"


def test_a_wrong_call_names_the_field() -> None:
    with pytest.raises(TypeError, match="value"):
        Read()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="values"):
        Read(1, values=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Read(1, (), False, 4)  # type: ignore[call-arg]


def test_defaults_stand_last() -> None:
    with pytest.raises(TypeError, match="Wrong: fields with defaults are the last"):

        @record
        class Wrong:
            first: int = 1
            second: int  # type: ignore[misc]
