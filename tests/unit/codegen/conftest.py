"""A cache of its own for every test here, and compilers that misbehave."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

FakeCompiler = Callable[[str], Path]


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; the folder that its entries will be in."""
    monkeypatch.setenv("I_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("ilang.codegen.call.load._loaded", {})
    return tmp_path / "cache" / "compiled-1"


@pytest.fixture(autouse=True)
def quickly(compiled_quickly: None) -> None:
    """What is asked for here is what becomes of a program, not how quick it is; other processes compile as ever."""


@pytest.fixture
def shared_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of all tests that ask for it, of other workers too: for those of what runs, not of what compiles."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    monkeypatch.setenv("I_CACHE_DIR", str(folder / "shared-cache"))


@pytest.fixture
def real_compiler() -> str:
    """The path of a working compiler."""
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None:
        pytest.skip("no C compiler on the path")
    return found


@pytest.fixture
def fake_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real_compiler: str
) -> FakeCompiler:
    """Put a shell script first on the path, under the names that compilers go by; $REAL is a working one."""

    def install(script: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        for name in ("cc", "gcc", "clang"):
            program = folder / name
            program.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
            program.chmod(0o755)
        monkeypatch.setenv("REAL", real_compiler)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.delenv("CC", raising=False)
        return folder / "cc"

    return install
