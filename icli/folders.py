"""Program files that operands name: files, and the files of programs in folders."""

# Operands are text, as they stand on the command line.
# ruff: noqa: PTH112, PTH113, PTH118

from __future__ import annotations

import os
from collections.abc import Sequence

from ilang.core.diagnostic import DataError
from ilang.icli.programs import is_file
from ilang.icli.refusals import too_many_operands

ENDING = ".i"


def one_or_files(operands: Sequence[str]) -> list[str]:
    """The one program that `i check` is given, or all files that its operands name.

    Raises: CommandError E0806 (one of several operands is no file), DataError E0770.
    """
    others = [each for each in operands if each != "-" and not is_file(each)]
    if 1 < len(operands) and others:
        raise too_many_operands("check", 1, operands[1:])
    return others or program_files(operands)


def program_files(operands: Sequence[str]) -> list[str]:
    """The files that operands name, in order, each once; of a folder all that end in ``.i``, also in its folders.

    Raises: DataError E0770 (a folder has none).
    """
    files: dict[str, None] = {}
    for operand in operands:
        inside = _inside(operand) if os.path.isdir(operand) else [operand]
        if not inside:
            help_line = f"the name of a file of programs ends in {ENDING}: model{ENDING}"
            raise DataError("E0770", f"{operand} has no file that ends in {ENDING}", help=help_line)
        files.update(dict.fromkeys(inside))
    return list(files)


def _inside(folder: str) -> list[str]:
    """The program files of a folder and of the folders in it, hidden ones aside, in the order of their names."""
    files: list[str] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = (os.path.join(place, name) for name in sorted(names) if name.endswith(ENDING))
        files += [os.path.normpath(path) for path in paths if os.path.isfile(path)]
    return files
