"""The samples of `samples/training` learn what they promise, from scratch."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "samples" / "training" / "train.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    specification = importlib.util.spec_from_file_location("training_samples", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name",
    ["moons", *(pytest.param(name, marks=pytest.mark.deep) for name in ("digits", "digits_conv"))],
)
def test_a_sample_learns_what_it_promises(name: str, script: ModuleType, tmp_path: Path) -> None:
    sample, data = script.SAMPLES[name], script.data_of(name)
    checkpoint = script.trained(name, data, tmp_path, sample.options)
    assert script.right(name, data, checkpoint) >= sample.promised
    assert (tmp_path / f"{name}.svg").read_text("utf-8").startswith("<svg")
    if name == "moons":
        drawn = script.boundary(checkpoint).splitlines()
        assert drawn[2][24] == ".", "the top of one moon, at (0, 1)"
        assert drawn[17][39] == "#", "the bottom of the other, at (1, -0.5)"
