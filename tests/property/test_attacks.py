"""Outputs, threads, forks and Ctrl-C under attack: nothing is lost, and nothing is half-written."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.property import output_attacks, session_attacks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")


@pytest.mark.parametrize("seed", range(8))
def test_commands_lose_no_file(seed: int) -> None:
    assert output_attacks.attack(seed, interrupted=False) is None


@pytest.mark.parametrize("seed", range(2))
def test_interrupted_commands_lose_no_file(seed: int) -> None:
    assert output_attacks.attack(seed, interrupted=True) is None


@pytest.mark.parametrize("seed", [1, 7])
def test_runs_of_sessions_count_once(seed: int) -> None:
    """In a process of its own, whose signals and threads these are."""
    words = [session_attacks.__file__, "--seed", str(seed), "--count", "1", "--each", "60"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
