"""Kernels of too many expressions: they are refused while they are read."""

from __future__ import annotations

import pytest

from ilang.core import limits
from ilang.core.diagnostic import MeaningError, NotationError
from ilang.core.notation.kernel import parse_kernel
from ilang.core.source import Source


def test_what_follows_too_many_expressions_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source("long", "f: x -> " + "x + " * 200)  # an operand is missing at the end
    with pytest.raises(NotationError, match="expected an operand"):
        parse_kernel(source)
    monkeypatch.setattr(limits, "MOST_LEAVES", 10)
    with pytest.raises(MeaningError, match="more than 10 expressions"):
        parse_kernel(source)
