"""Packages of Python that have a compiler, for machines where nothing else brings one."""

from __future__ import annotations

import os
import sys

from ilang.core.record import record


@record
class Package:
    """A package of Python that has a compiler.

    Fields:
        name: by which it is imported.
        program: a pattern of the compiler's file in its folder, whose last match counts; empty: Python runs the
            package itself.
        arguments: of the compiler; ``{root}`` is the folder above that of the file.
        extra: of ours, by which the package is installed; empty: by its own name.
    """

    name: str
    program: str
    arguments: tuple[str, ...]
    extra: str = ""

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
        files = [file for folder in folders for file in sorted(folder.glob(self.program))]
        runnable = [file for file in files if os.access(file, os.X_OK)]
        if not runnable:
            return None
        newest = runnable[-1]
        root = str(newest.parents[1])
        words = (str(newest), *(word.replace("{root}", root) for word in self.arguments))
        return words, str(newest)
