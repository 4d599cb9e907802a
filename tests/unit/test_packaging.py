"""The distributions of `ilang`: what is in them, also of a checkout without links; that an installed one runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import ilang

ROOT = Path(__file__).resolve().parents[2]
LINKED = ("core", "codegen", "icli")
PARTS = ("ilang", *LINKED, "docs", "samples")
FILES = (
    "pyproject.toml",
    "setup.py",
    "MANIFEST.in",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
)
"""What a distribution is made of."""
BUILD = "import sys; from setuptools import build_meta as b; print(getattr(b, sys.argv[1])(sys.argv[2]))"


def run(*command: str, cwd: Path, **more: str) -> str:
    """What a command of Python prints."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env={**kept, "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "", **more},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Copies the repository, by how it has its links."""

    def copied(links: str) -> Path:
        folder = tmp_path_factory.mktemp(links) / "ilang"
        for name in PARTS:
            passed = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=passed)
        for name in (*FILES, "LICENSE"):
            shutil.copy(ROOT / name, folder)
        for name in LINKED if links == "texts" else ():
            (folder / "ilang" / name).unlink()
            (folder / "ilang" / name).write_text(f"../{name}", "utf-8")
        return folder

    return copied


def built(folder: Path, kind: str = "build_wheel") -> Path:
    """The distribution of a folder."""
    out = folder.parent / "dist"
    name = run("-c", BUILD, kind, str(out), cwd=folder).splitlines()[-1]
    return out / name


@pytest.fixture(scope="module")
def wheel(checkout: Callable[[str], Path]) -> Path:
    return built(checkout("links"))


def names(wheel: Path) -> set[str]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def sources() -> set[str]:
    """The files of the package: modules, and what they read."""
    linked = [path for name in LINKED for path in (ROOT / name).rglob("*")]
    every = [*(ROOT / "ilang").glob("*"), *(ROOT / "ilang" / p.relative_to(ROOT) for p in linked)]
    return {
        path.relative_to(ROOT).as_posix()
        for path in every
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_a_wheel_has_every_file(wheel: Path) -> None:
    version = ilang.__version__
    assert wheel.name == f"ilang-{version}-py3-none-any.whl"
    info = f"ilang-{version}.dist-info"
    about = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt", "licenses/LICENSE")
    assert names(wheel) == {
        *sources(),
        *(f"{info}/{name}" for name in about),
        f"ilang-{version}.data/data/share/man/man1/i.1",
    }


def test_the_version_is_that_of_the_changelog() -> None:
    """What is released has a section of its own; until then the version is one under development."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    unreleased, *released = re.findall(r"^## \[(.*?)\]", text, re.MULTILINE)
    numbers = [tuple(map(int, each.split("."))) for each in released]
    assert unreleased == "Unreleased"
    assert numbers == sorted(numbers, reverse=True)
    version = ilang.__version__.removesuffix(".dev0")
    assert (version == released[0]) is (version == ilang.__version__)
    assert numbers[0] <= tuple(map(int, version.split(".")))


@pytest.mark.parametrize("tool", ["twine", "check_wheel_contents"])
def test_tools_find_no_fault(tool: str, wheel: Path) -> None:
    pytest.importorskip(tool, reason=f"{tool} is not installed")
    run("-m", tool, *(["check", "--strict"] if tool == "twine" else []), str(wheel), cwd=ROOT)


def test_an_installed_wheel_runs(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    options = ("--quiet", "--no-index", "--no-deps", "--target", str(site))
    run("-m", "pip", "install", *options, str(wheel), cwd=tmp_path)

    def i(*words: str) -> str:
        return run("-m", "ilang", *words, cwd=tmp_path, PYTHONPATH=str(site))

    where = run("-c", "import ilang; print(ilang.__file__)", cwd=tmp_path, PYTHONPATH=str(site))
    assert Path(where.strip()) == site / "ilang" / "__init__.py"
    assert i("--version") == f"i {ilang.__version__}\n"
    assert i("run", "i*i~i >> +i~.", "[1, 2]", "[3, 4]").splitlines()[-1] == "11."
    assert i("explain", "E0202").startswith("E0202")
    assert "complete" in i("completion", "bash")
    shutil.copy(ROOT / "samples" / "digits" / "digits.i", tmp_path)
    i("build", "digits.i")
    i("build", "digits.i", "--target", "cuda", "-o", "cuda")
    assert {"digits_support.h", "digits_test.c"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }
    assert i("check", "digits.i").endswith("w2[10,48], b2[10]) -> [n,10]\n")
    notebook = (
        "import ilang; assert ilang.i('+ij~i')._repr_html_(); assert ilang.load_ipython_extension"
    )
    run("-c", notebook, cwd=tmp_path, PYTHONPATH=str(site))
    assert (site / "share" / "man" / "man1" / "i.1").is_file()


@pytest.mark.deep
def test_lost_links_are_restored(wheel: Path, checkout: Callable[[str], Path]) -> None:
    """As git on Windows and archives of zip leave them; pip would install a package without modules."""
    folder = checkout("texts")
    assert names(built(folder)) == names(wheel)
    assert all((folder / "ilang" / name).is_dir() for name in LINKED)


@pytest.mark.deep
def test_a_source_distribution_gives_the_same_wheel(
    wheel: Path, checkout: Callable[[str], Path], tmp_path: Path
) -> None:
    with tarfile.open(built(checkout("sdist"), "build_sdist")) as archive:
        kept = {re.sub("^[^/]*/", "", member.name) for member in archive.getmembers()}
        assert not [member.name for member in archive.getmembers() if member.issym()]
        archive.extractall(tmp_path, filter="data")
    assert {
        "CHANGELOG.md",
        "README.md",
        "LICENSE",
        "docs/language.md",
        "samples/06_matmul.i",
    } <= kept
    (folder,) = tmp_path.iterdir()
    assert names(built(folder)) == names(wheel)
