"""Commands as forks, in which most tests run them, are as they are in processes that are started for them."""

import subprocess
from pathlib import Path

import pytest

from tests import forked
from tests.unit.icli.front import i

pytestmark = pytest.mark.skipif(not forked.SERVES, reason="needs fork")


@pytest.mark.parametrize(
    "tokens",
    [
        ["--version"],
        ["explain", "ik*kj~ijk >> +ijk~ij", "--color", "always"],
        ["explain", "\u00e9~\u00e9"],
        ["explain", b"\xff~i"],
        ["run", "i*i~i", "1 2 3", "4 5 6"],
        ["run", "i*i~i", "1 2 3", "4 5"],
        ["check", "f.i"],
        ["check", "none.i"],
        ["fmt", "f.i", "--check"],
        ["explian"],
        [],
    ],
)
def test_a_fork_is_as_a_process(tokens: list[str | bytes], tmp_path: Path) -> None:
    (tmp_path / "f.i").write_text("f(x[n])   = -i~i\n")
    fork, process = (
        i(*tokens, cwd=tmp_path, env={"COLUMNS": "60"}, **more)
        for more in ({}, {"stdin": subprocess.DEVNULL})
    )
    assert fork.stdout == process.stdout
    assert fork.stderr == process.stderr
    assert fork.returncode == process.returncode


def test_forks_share_nothing(tmp_path: Path) -> None:
    """Neither the folder, nor the environment, nor what was computed before."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f.i").write_text(f"f({name}[n]) = -i~i\n")
    for name, color in (("one", "1"), ("other", ""), ("one", "")):
        done = i("explain", "f.i", cwd=tmp_path / name, env={"NO_COLOR": color}, input="")
        assert name in done.stdout
        assert done.stderr == ""
    assert i("explain", "-", input="-i~i").stdout == i("explain", "-i~i").stdout
