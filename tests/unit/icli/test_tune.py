"""``i tune``: what it prints, and what processes that measure survive."""

from __future__ import annotations

from pathlib import Path

import pytest

from ilang.codegen.runtime import tuning
from ilang.core.source import Source, Span
from tests.unit.icli.front import i

pytestmark = pytest.mark.usefixtures("compiled_quickly")
PRODUCT = "ik*kj~ijk >> +ijk~ij"


def test_a_product_is_tuned(tmp_path: Path) -> None:
    path = tmp_path / "m.i"
    text = f"# a product\nmm(a[40,30], b[30,50]) = {PRODUCT}  # of matrices\n"
    path.write_text(text)
    done = i("tune", str(path), "--shape", "40x30,30x50", "--time", "2", "--write")
    assert done.returncode == 0, done.stderr
    after = path.read_text()
    if "is the fastest of" in done.stdout:
        assert after == text
    else:
        assert f"written into {path}" in done.stdout
        assert after.startswith("# a product\n")
        assert after.endswith("  # of matrices\n")
        assert i("check", str(path)).returncode == 0


def test_nothing_to_tune() -> None:
    for words in ((PRODUCT,), ("+ij~i", "--shape", "3x4")):
        done = i("tune", *words)
        assert (done.returncode, done.stdout[:15]) == (0, "nothing to tune")


def test_bad_arguments() -> None:
    assert "E0825" in i("tune", PRODUCT, "--time", "0").stderr
    assert "E0811" in i("tune", PRODUCT, "--shape", "3x4").stderr


def test_schedules_stand_after_their_expressions() -> None:
    source = Source("<text>", PRODUCT)
    words = [(Span(source, 0, 9), "| i:4 | i j k i'"), (Span(source, 13, 20), "|| i j k 0")]
    assert tuning.written(source, words) == "ik*kj~ijk | i:4 | i j k i' >> +ijk~ij || i j k 0"
    other = Span(Source("other.i", PRODUCT), 0, 9)
    assert tuning.written(source, [(other, "|| i j k")]) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ik*kj~ijk >> >ijk~ij", "its results are others"),
        ("ik*kj~ij", "its process ended with status 1"),
    ],
)
def test_what_is_no_schedule_of_the_program(text: str, says: str) -> None:
    task = {
        "name": "<text>",
        "definition": "",
        "shapes": [[4, 3], [3, 5]],
        "texts": (PRODUCT, text),
    }
    answer = tuning.timed(task, 0.01)
    assert isinstance(answer, str)
    assert says in answer


def test_faster_is_more_than_the_spread() -> None:
    assert tuning.is_faster(([2.0] * 8, [1.0] * 8))
    assert not tuning.is_faster(([1.0] * 8, [1.0] * 8))
    assert not tuning.is_faster(([1.0, 1.0, 2.0, 2.0] * 2, [0.9, 0.9, 1.8, 1.8] * 2))
