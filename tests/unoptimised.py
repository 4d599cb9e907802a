"""A C compiler that optimises nothing, for processes whose programs have to be right, not quick."""

import functools
import os
import shlex
import shutil
import tempfile
from pathlib import Path

from tests.conftest import QUICK


def path() -> str:
    """What ``$PATH`` is for such a process: its `cc` compiles in half the time, whatever level it is asked for."""
    before = os.environ.get("PATH", "")
    compiler = shutil.which("cc")
    return f"{_folder(compiler).name}{os.pathsep}{before}" if compiler else before


@functools.cache
def _folder(compiler: str) -> "tempfile.TemporaryDirectory[str]":
    """The folder of that `cc`, one for all of a run, so that what it has compiled is found again."""
    folder = tempfile.TemporaryDirectory()
    launcher = Path(folder.name, "cc")
    launcher.write_text(
        f'#!/bin/sh\nexec {shlex.quote(compiler)} "$@" {shlex.join(QUICK)}\n', "utf-8"
    )
    launcher.chmod(0o755)
    return folder
