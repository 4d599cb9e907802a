"""What the tests of properties leave out of what the emulator checks, unless they ask for it."""

from __future__ import annotations

import pytest

from ilang.codegen.emulator import recipes
from tests import shares


@pytest.fixture(autouse=True)
def overflow_elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for signed overflow in kernels only where a test is marked ``overflow``: it takes half of compiling them.

    Golden programs, random ones with the ends of integer types, and the cases of ``tests/conformance`` look for it.
    """
    if request.node.get_closest_marker("overflow") is None and shares.fuzz < shares.SIXTHS:
        unlooked = (*recipes.CHECKED, "-fno-sanitize=signed-integer-overflow")
        monkeypatch.setattr(recipes, "CHECKED", unlooked)
