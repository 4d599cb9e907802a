"""Wheels of Python: the library of a project, compiled, with a function of arrays for each definition.

A wheel is a zip file: a package, which is ``__init__.py`` (written here), ``_calls.py`` (a copy of ``wheel_calls.py``),
the shared library and ``py.typed``, and a folder of metadata. A wheel needs NumPy, and nothing of ours.
"""

from __future__ import annotations

import base64
import hashlib
import keyword
import os
import re
import shlex
import shutil
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ilang.codegen.compile.compiler_process import first_lines, run_compiler
from ilang.codegen.compile.compilers import C, find_compiler
from ilang.codegen.project import wheel_calls
from ilang.codegen.project.render import file_stem, write_functions
from ilang.codegen.project.wheel_module import module_text, python_names
from ilang.codegen.system.files import reason_of
from ilang.codegen.targets.session import EmittedSession, ExportedFunction
from ilang.core.diagnostic import CommandError, ToolError

NUMPY = "numpy>=1.26"
PYTHON = ">=3.11"
"""The versions that a wheel needs: those that it is tested with."""
VERSION = r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?"
"""Versions as PEP 440 writes them, in their normal form."""


def distribution(text: str) -> tuple[str, str]:
    """The name and the version that ``--wheel`` gives: ``digits==1.2``; without a version it is 1.

    Raises:
        CommandError: E0832 (not written so, or no name of a package).
    """
    name, _, version = text.partition("==")
    good = re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_") or "model"
    good = f"model_{good}" if good[0].isdigit() or _is_taken(good) else good
    if not re.fullmatch(VERSION, version or "1"):
        message = f"{version} is no version of a Python package"
        raise CommandError("E0832", message, help=f"digits and points: --wheel {good}==1.0")
    package = name.replace("-", "_")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", package) or _is_taken(package):
        message = f"{name or '(empty)'} cannot be the name of a Python package"
        raise CommandError("E0832", message, help=f"--wheel {good}=={version or '1'}")
    return name, version or "1"


def _is_taken(package: str) -> bool:
    """Whether a name is a keyword, or a module that would stand in front of a package."""
    return keyword.iskeyword(package) or package in (*sys.stdlib_module_names, "numpy")


def write_wheel(
    functions: Sequence[ExportedFunction],
    out: Path,
    source_text: str,
    named: tuple[str, str],
    sessions: Sequence[EmittedSession] = (),
    prefix: str = "",
) -> Path:
    """Compile the project of some lowered programs and sessions, and write its wheel, whose path is returned.

    ``named`` is the name and the version of the distribution.

    Raises:
        DataError: E0718.
        ToolError: E0901 to E0909 (the compiler), E0911 (``out`` is no folder), E0912 (it cannot be written), E0914 (no
            make).
    """
    if os.path.lexists(out) and not out.is_dir():
        help_line = "name another folder, or move it away"
        raise ToolError("E0911", f"{out} exists and is no folder", help=help_line)
    package = named[0].replace("-", "_")
    stages = [id(function) for each in sessions for function in each.functions()]
    alone = {_title(each, prefix): each for each in functions if id(each) not in stages}
    running = {each.definition: each for each in sessions}
    names = python_names([*alone, *running])
    text = module_text(
        {names[name]: each for name, each in alone.items()},
        {names[name]: each for name, each in running.items()},
        package,
        named[1],
    )
    with tempfile.TemporaryDirectory(prefix="ilang-wheel-") as folder:
        project = Path(folder, "project")
        write_functions(functions, project, source_text, package, sessions, prefix)
        library = _compiled(project, f"lib{file_stem(package)}.so")
    entries = {
        f"{package}/__init__.py": text.encode(),
        f"{package}/_calls.py": Path(wheel_calls.__file__).read_bytes(),
        f"{package}/lib{package}.so": library,
        f"{package}/py.typed": b"",
    }
    return _written(out, package, named, entries, [*names.values()])


def _title(function: ExportedFunction, prefix: str) -> str:
    """The name of the definition that a function was exported from."""
    name = function.program.name
    return name.removeprefix(f"{prefix}_") if prefix else name


def _compiled(folder: Path, name: str) -> bytes:
    """The library of a project, made by its Makefile, with the variables of the environment.

    Raises:
        ToolError: E0901 to E0909, E0914.
    """
    if shutil.which("make") is None:
        message = "a wheel has a library that make compiles, and there is no make"
        raise ToolError("E0914", message, help="apt install make, or xcode-select --install")
    command = ["make", f"-j{os.cpu_count()}", f"CC={shlex.join(find_compiler().command)}", name]
    status, output = run_compiler(command, folder, C)
    if status:
        message = f"the library of a wheel does not compile{first_lines(output)}"
        help_line = "i build without --wheel writes the project, and make -C out shows it again"
        raise ToolError("E0903", message, help=help_line)
    return (folder / name).read_bytes()


def _written(
    out: Path,
    package: str,
    named: tuple[str, str],
    entries: Mapping[str, bytes],
    shown: Sequence[str],
) -> Path:
    """Write the zip file, whole or not at all. Raises: ToolError E0912."""
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    tag = f"py3-none-{platform}"
    info = f"{package}-{named[1]}.dist-info"
    files = dict(entries)
    files[f"{info}/METADATA"] = _metadata(named, package, shown).encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: ilang\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    )
    record = "".join(f"{name},{_digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    path = out / f"{package}-{named[1]}-{tag}.whl"
    draft = path.with_suffix(f".{os.getpid()}")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, data)
        draft.replace(path)
    except OSError as trouble:
        draft.unlink(missing_ok=True)
        message = f"the wheel cannot be written to {out}: {reason_of(trouble)}"
        help_line = "name a folder that can be written, on a disk that has room"
        raise ToolError("E0912", message, help=help_line) from None
    return path


def _digest(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


def _metadata(named: tuple[str, str], package: str, shown: Sequence[str]) -> str:
    """The metadata, with a description in Markdown."""
    name, version = named
    listed = "\n".join(f"- `{package}.{each}`" for each in shown)
    return f"""\
Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: Compiled functions on arrays of NumPy
Requires-Python: {PYTHON}
Requires-Dist: {NUMPY}
Description-Content-Type: text/markdown

# {name}

Compiled functions on arrays of NumPy, written by `i build --wheel`.

{listed}

`help({package})` says what each takes and gives.
"""
