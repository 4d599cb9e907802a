"""Tests of what programs compute, compiled as those of ``tests/unit/core`` are."""

from tests.unit.core.conftest import compiled_quickly

__all__ = ["compiled_quickly"]
