"""Tests of what programs compute, compiled as those of ``tests/unit/core`` are."""

import pytest


@pytest.fixture(autouse=True)
def quickly(compiled_quickly: None) -> None:
    """What is asked for here is right values."""
