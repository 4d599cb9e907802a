"""Packages of Python that have a compiler, for machines where nothing else brings one."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ilang.core.record import record

if TYPE_CHECKING:
    from pathlib import Path


@record
class Package:
    """A package of Python that has a compiler.

    Fields:
        name: by which it is imported.
        program: a pattern of the compiler's file in its folder, whose last match counts; empty: Python runs the
            package itself.
        arguments: of the compiler; ``{root}`` is the folder above that of the file.
        extra: of ours, by which the package is installed; empty: by its own name.
        tool: what the variable of the environment calls it; empty: it is not named there.
        script: a file of ours that Python runs with the file as its first argument, where that is a library; empty: the
            file is a program.
        machine: for which it compiles, as headers of files number it; None: this one.
    """

    name: str
    program: str
    arguments: tuple[str, ...]
    extra: str = ""
    tool: str = ""
    script: str = ""
    machine: int | None = None

    def says(self) -> str:
        """The package in a message."""
        return f"the packages of ilang[{self.extra}]" if self.extra else f"the {self.name} package"

    def command(self) -> tuple[tuple[str, ...], str] | None:
        """The command, and the file that tells this version of the package from others; None where it is not there."""
        import importlib.util
        from pathlib import Path

        try:
            spec = importlib.util.find_spec(self.name)
        except (ImportError, ValueError):  # half a package: of somebody else, or being installed
            return None
        if spec is None:
            return None
        if not self.program:
            words = (sys.executable, "-m", self.name, *self.arguments)
            return None if spec.origin is None else (words, spec.origin)
        folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
        files = [file for folder in folders for file in folder.glob(self.program)]
        how = os.R_OK if self.script else os.X_OK
        newest = max((f for f in files if os.access(f, how)), key=_release, default=None)
        if newest is None:
            return None
        root = str(newest.parents[1])
        words = (str(newest), *(word.replace("{root}", root) for word in self.arguments))
        return (sys.executable, "-I", self.script, *words) if self.script else words, str(newest)


def _release(file: Path) -> tuple[str, Path]:
    """The release of a file: its name, where libraries have that, then its folder."""
    return file.name, file
