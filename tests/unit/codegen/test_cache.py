"""The cache of compiled programs: what is in it can be trusted, and it never stands in the way."""

import contextlib
import errno
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ilang.codegen.compile import cache, compilers
from ilang.codegen.compile.toolchain import Recipe, library_recipe
from ilang.core.diagnostic import ToolError
from tests.unit.codegen.conftest import FakeCompiler

ROOT = Path(__file__).resolve().parents[3]
TEXT = "int answer(void) { return 42; }\n"
COUNTING = 'echo x >>"$CALLS"; exec "$REAL" "$@"'

Compiles = Callable[[], int]


@pytest.fixture
def compiles(
    fake_compiler: FakeCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Compiles:
    """How often the compiler has run."""
    log = tmp_path / "calls"
    log.touch()
    monkeypatch.setenv("CALLS", str(log))
    fake_compiler(COUNTING)
    return lambda: len(log.read_text().split())


@pytest.fixture(autouse=True)
def always_counting(compiles: Compiles) -> None:
    """Every test here runs with the compiler that counts."""
    assert compiles() == 0


def loaded(text: str = TEXT, variant: Recipe | None = None) -> str:
    """The path that a library is loaded from, once it is seen to be loadable."""

    def load(path: str) -> str:
        code = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
        done = subprocess.run([sys.executable, "-c", code, path], check=False, capture_output=True)
        if done.returncode:
            raise OSError(done.stderr.decode())
        return path

    return cache.library(text, variant or library_recipe(), load)


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.so"))


def test_compiled_once(compiles: Compiles, fresh_cache: Path) -> None:
    assert loaded() == loaded() == str(entries(fresh_cache)[0])
    assert compiles() == 1
    assert cache.is_whole(str(entries(fresh_cache)[0]))


def test_nothing_else_stays(fresh_cache: Path) -> None:
    loaded()
    assert {path.name[:5] for path in fresh_cache.iterdir()} == {
        "lock-",
        entries(fresh_cache)[0].name[:5],
    }


@pytest.mark.parametrize("cut", [0, 1, 100, 4096, 9000, -1, -40, -41])
def test_an_entry_cut_short_is_built_again(cut: int, compiles: Compiles) -> None:
    entry = Path(loaded())
    entry.write_bytes(entry.read_bytes()[:cut])
    loaded()
    assert compiles() == 2
    assert cache.is_whole(str(entry))


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x7fELF" * 5000, b"\0" * 70000])
def test_a_foreign_entry_is_built_again(content: bytes, compiles: Compiles) -> None:
    entry = Path(loaded())
    entry.write_bytes(content)
    loaded()
    assert compiles() == 2


def test_one_changed_byte_is_noticed(compiles: Compiles) -> None:
    entry = Path(loaded())
    content = bytearray(entry.read_bytes())
    content[len(content) // 2] ^= 1
    entry.write_bytes(content)
    loaded()
    assert compiles() == 2


def test_key_depends_on_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keys = {cache.key_of(TEXT, library_recipe()), cache.key_of(TEXT + " ", library_recipe())}
    keys |= {
        cache.key_of(TEXT, library_recipe(threads=True)),
        cache.key_of(TEXT, library_recipe(sanitize=True)),
    }
    monkeypatch.setenv("CC", f"{tmp_path}/bin/cc -DX")
    keys.add(cache.key_of(TEXT, library_recipe()))
    monkeypatch.setattr(cache, "_processor", lambda: "another")
    keys.add(cache.key_of(TEXT, library_recipe()))
    monkeypatch.setattr(cache, "FORMAT", "another")
    keys.add(cache.key_of(TEXT, library_recipe()))
    assert len(keys) == 7


def test_a_new_compiler_has_its_own_entries(
    compiles: Compiles, fake_compiler: FakeCompiler
) -> None:
    loaded()
    fake_compiler(COUNTING + "\n# a newer version")
    compilers._find.cache_clear()
    loaded()
    assert compiles() == 2


def test_files_are_for_their_owner_only(fresh_cache: Path) -> None:
    before = os.umask(0)
    try:
        entry = Path(loaded())
    finally:
        os.umask(before)
    assert entry.stat().st_mode & 0o077 == 0
    assert fresh_cache.stat().st_mode & 0o077 == 0


def test_a_folder_that_others_can_write_is_not_used(fresh_cache: Path) -> None:
    fresh_cache.mkdir(parents=True)
    fresh_cache.chmod(0o777)
    assert not Path(loaded()).exists(), "built in a folder that is gone"
    assert entries(fresh_cache) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs another owner")
def test_a_folder_of_somebody_else_is_not_used(fresh_cache: Path) -> None:
    fresh_cache.mkdir(parents=True)
    os.chown(fresh_cache, 12345, -1)
    assert not Path(loaded()).exists()
    assert entries(fresh_cache) == []


def nowhere(tmp_path: Path) -> list[str]:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "no" / "where")
    return [str(tmp_path / "file"), str(tmp_path / "dangling"), os.devnull, "/proc/none", "a\0b"]


@pytest.mark.parametrize("number", range(4))
def test_a_cache_that_cannot_be(
    number: int, compiles: Compiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("I_CACHE_DIR", nowhere(tmp_path)[number])
    assert not Path(loaded()).exists()
    assert compiles() == 1


def test_an_entry_that_is_a_folder() -> None:
    entry = Path(loaded())
    entry.unlink()
    entry.mkdir()
    loaded()


def test_a_disk_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_given: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", gone)
    assert not Path(loaded()).exists()


def test_full_while_compiling(fake_compiler: FakeCompiler, fresh_cache: Path) -> None:
    fake_compiler(
        'case "$PWD" in *compiled-*) echo "error: x.s: No space left on device" >&2; exit 1;; esac\n'
        'exec "$REAL" "$@"'
    )
    assert not Path(loaded()).exists()
    assert entries(fresh_cache) == []


def test_a_file_system_that_does_not_run_files(fresh_cache: Path) -> None:
    def load(path: str) -> str:
        if path.startswith(str(fresh_cache)):
            raise OSError("failed to map segment from shared object")
        return path

    assert not cache.library(TEXT, library_recipe(), load).startswith(str(fresh_cache))


def test_nowhere_to_load_from() -> None:
    def load(path: str) -> str:
        raise OSError(f"{path}: failed to map segment from shared object")

    with pytest.raises(ToolError) as caught:
        cache.library(TEXT, library_recipe(), load)
    assert caught.value.code == "E0908"


def test_no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("I_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    assert cache.cache_folder() is None
    loaded()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.cache_folder() == str(tmp_path / ".cache" / "i" / "compiled-1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache.cache_folder() == str(tmp_path / "x" / "i" / "compiled-1")


SOURCE = "what the text follows from"


def written(texts: list[str], source: str = SOURCE, variant: Recipe | None = None) -> str:
    """The path that the library of ``source`` is loaded from; ``texts`` are what it would be written as, in turn."""
    return cache.library_of(source, lambda: texts.pop(0), variant or library_recipe(), str)


def test_a_known_source_needs_no_text(compiles: Compiles, fresh_cache: Path) -> None:
    path = written([TEXT])
    assert path == written([]) == loaded()
    assert compiles() == 1
    assert sorted(file.suffix for file in fresh_cache.iterdir()) == ["", ".link", ".so"]


def test_a_source_is_known_by_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    written([TEXT])
    for source, variant in (
        (SOURCE + " ", library_recipe()),
        (SOURCE, library_recipe(threads=True)),
    ):
        with pytest.raises(IndexError):
            written([], source, variant)
    monkeypatch.setattr(cache, "_writer", lambda: "another")
    with pytest.raises(IndexError):
        written([])
    assert written([TEXT]) == written([])


def test_without_a_source_or_a_writer_nothing_is_remembered(
    monkeypatch: pytest.MonkeyPatch, fresh_cache: Path
) -> None:
    written([TEXT], source="")
    monkeypatch.setattr(cache, "_writer", lambda: None)
    written([TEXT])
    assert not list(fresh_cache.glob("*.link"))


def test_the_writer_is_our_own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = cache._writer()
    assert known
    assert "/core/pipeline.py:" in known
    assert "/codegen/targets/c.py:" in known
    assert "/codegen/targets/headers/cuda.cuh:" in known
    for name in ("core/a.py", "codegen/b/c.h"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("1")
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "codegen" / "compile" / "cache.py"))
    seen = set()
    for content in ("1", "22"):
        (tmp_path / "codegen/b/c.h").write_text(content)
        cache._writer.cache_clear()
        seen.add(cache._writer())
    cache._writer.cache_clear()
    assert len(seen) == 2


LOWERING = ("core.passes.nest_to_kernel", "core.schedule.choose.choice", "codegen.targets.c")
CALL = f"""
import sys, numpy
from ilang import i
i("ik*kj~ijk >> +ijk~ij")(numpy.ones((3, 4)), numpy.ones((4, 5)))
print([name for name in {LOWERING} if f"ilang.{{name}}" in sys.modules], "threading" in sys.modules)
"""


def test_what_an_earlier_run_has_called_is_neither_lowered_nor_written(fresh_cache: Path) -> None:
    assert not fresh_cache.exists()
    said = [
        subprocess.run(
            [sys.executable, "-c", CALL], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert said == [f"{list(LOWERING)} True\n", "[] False\n"]


@pytest.mark.parametrize("spoil", ["gone", "cut", "loop"])
def test_a_link_that_leads_nowhere_is_made_again(
    spoil: str, compiles: Compiles, fresh_cache: Path
) -> None:
    entry = Path(written([TEXT]))
    (link,) = fresh_cache.glob("*.link")
    if spoil == "gone":
        entry.unlink()
    elif spoil == "cut":
        entry.write_bytes(entry.read_bytes()[:5000])
    else:
        link.unlink()
        link.symlink_to(link.name)
    assert written([TEXT]) == written([]) == str(entry)
    assert compiles() == (1 if spoil == "loop" else 2)


def test_a_file_system_without_links(monkeypatch: pytest.MonkeyPatch, compiles: Compiles) -> None:
    def symlink(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "symlink", symlink)
    assert written([TEXT]) == written([TEXT])
    assert compiles() == 1


def test_links_go_when_the_cache_is_full(fresh_cache: Path) -> None:
    written([TEXT])
    cache.sweep(str(fresh_cache), 0)
    assert not list(fresh_cache.glob("*.link"))


def test_bounded_oldest_first(fresh_cache: Path) -> None:
    fresh_cache.mkdir(parents=True)
    for age in range(10):
        entry = fresh_cache / f"{age}.so"
        entry.write_bytes(b"x" * 1000)
        os.utime(entry, (1_000_000 - age, 1_000_000 - age))
    (fresh_cache / "notes.txt").write_text("not ours")
    cache.sweep(str(fresh_cache), 3500)
    assert [path.name for path in entries(fresh_cache)] == ["0.so", "1.so", "2.so"]
    assert (fresh_cache / "notes.txt").exists()


def test_leftovers_go_when_they_are_old(fresh_cache: Path) -> None:
    old, new = fresh_cache / "building-old", fresh_cache / "building-new"
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "program.c").write_text(TEXT)
    os.utime(old, (0, 0))
    cache.sweep(str(fresh_cache))
    assert (old.exists(), new.exists()) == (False, True)


def test_a_failed_compilation_stores_nothing(
    fake_compiler: FakeCompiler, fresh_cache: Path
) -> None:
    fake_compiler("exit 1")
    with pytest.raises(ToolError):
        loaded()
    assert entries(fresh_cache) == []


BUILDS = """
import sys
from ilang.codegen.compile import cache, toolchain
from ilang.codegen.compile.toolchain import Recipe, library_recipe
for number in sys.argv[1:]:
    text = "int answer(void) { return %s; }" % number
    load = lambda path: __import__("ctypes").CDLL(path).answer() == int(number) or sys.exit(5)
    cache.library(text, library_recipe(), load)
"""


def start(*numbers: int) -> subprocess.Popen[bytes]:
    """A process that builds and loads some programs through the cache."""
    command = [sys.executable, "-c", BUILDS, *map(str, numbers)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)


def test_eight_processes_at_once(compiles: Compiles, fresh_cache: Path) -> None:
    rng = random.Random(1)
    running = [start(*rng.sample(range(5), 5)) for _ in range(8)]
    for process in running:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said.decode()
    assert compiles() <= 10
    assert len(entries(fresh_cache)) == 5
    assert all(cache.is_whole(str(entry)) for entry in entries(fresh_cache))


def test_killed_at_any_moment(fresh_cache: Path) -> None:
    rng = random.Random(2)
    for number in range(12):
        process = start(number, number + 100)
        try:
            process.communicate(timeout=rng.uniform(0.0, 0.4))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        assert all(cache.is_whole(str(entry)) for entry in entries(fresh_cache))
    process = start(*range(12))
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said.decode()


FALLIBLE = (
    *(
        "builtins.open",
        "io.open",
        "os.chmod",
        "os.fsync",
        "os.mkdir",
        "os.open",
        "os.replace",
        "os.rmdir",
    ),
    *("os.scandir", "os.stat", "os.unlink", "os.utime", "fcntl.flock", "subprocess.Popen"),
)


@pytest.mark.deep
@pytest.mark.parametrize("name", FALLIBLE)
def test_every_call_may_fail(
    name: str, compiles: Compiles, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _, attribute = name.rpartition(".")
    working = getattr(sys.modules[module], attribute)
    for failing in range(1, 20):
        calls = 0

        def fail(*given: Any, failing: int = failing, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == failing:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return working(*given, **named)

        text = f"int answer(void) {{ return {failing}; }}\n"
        with monkeypatch.context() as faulty:
            faulty.setattr(name, fail)
            with contextlib.suppress(ToolError):
                cache.library(text, library_recipe(), str)
        made = compiles()
        assert loaded(text)
        assert compiles() <= made + 1
        assert all(cache.is_whole(str(entry)) for entry in entries(fresh_cache))
        if calls < failing:
            return
