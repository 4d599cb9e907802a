"""Tests of what programs compute: compiled quickly."""

import pytest

from ilang.codegen.runtime import toolchain


@pytest.fixture(autouse=True)
def compiled_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Optimise less, in a third of the time: what is asked for here is right values.

    What compilers make of loops is tried on the programs of ``tests/property`` and ``tests/conformance``.
    """
    monkeypatch.setattr(toolchain, "FAST", ("-O1", *toolchain.FAST[1:]))
    monkeypatch.setattr("ilang.codegen.runtime.load._loaded", {})
