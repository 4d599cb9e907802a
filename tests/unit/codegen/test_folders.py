"""What is compiled and loaded stands where no other user can put another file, and nothing of it is left behind."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ilang.codegen.compile import cache
from ilang.codegen.compile.toolchain import library_recipe
from ilang.codegen.system import folders
from ilang.core.diagnostic import ToolError
from tests.unit.codegen.conftest import FakeCompiler

ROOT = Path(__file__).resolve().parents[3]
TEXT = "int answer(void) { return 42; }\n"
ANOTHER = 12345
"""The number of another user."""

pytestmark = [
    pytest.mark.usefixtures("real_compiler"),
    pytest.mark.skipif(os.name != "posix", reason="needs owners and modes"),
]
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs another owner"
)


def entry() -> Path:
    """Where a library is loaded from."""
    return Path(cache.library(TEXT, library_recipe(), str))


def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose cache is used."""
    for name in ("I_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path / "home"


@pytest.mark.parametrize("umask", [0, 0o002, 0o022, 0o277])
def test_every_folder_is_made_for_its_owner_only(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, before = home(tmp_path, monkeypatch), os.umask(umask)
    try:
        assert entry().is_relative_to(where / ".cache" / "i" / "compiled-1")
    finally:
        os.umask(before)
    for path in (where / ".cache").rglob("**"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
@pytest.mark.parametrize("level", range(3))
def test_a_parent_that_others_can_write(
    level: int, mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a sticky one is of use: there, nobody renames what another owns."""
    parents = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    parents[-1].mkdir(parents=True)
    monkeypatch.setenv("I_CACHE_DIR", str(parents[-1]))
    assert entry().is_relative_to(parents[-1])
    parents[level].chmod(mode)
    is_sticky = mode & stat.S_ISVTX != 0
    assert entry().is_relative_to(parents[-1]) == is_sticky
    assert stat.S_IMODE(parents[level].stat().st_mode) == mode, (
        "a folder of the user stays as it is"
    )


@needs_root
@pytest.mark.parametrize("level", range(2))
def test_a_parent_of_another_user(
    level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parents = [tmp_path / "a", tmp_path / "a" / "b"]
    parents[-1].mkdir(parents=True)
    os.chown(parents[level], ANOTHER, -1)
    monkeypatch.setenv("I_CACHE_DIR", str(parents[-1]))
    assert not entry().exists()
    assert not list(tmp_path.rglob("compiled-*"))


def test_our_own_folder_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier version made the folder above the entries as the umask said."""
    ours = home(tmp_path, monkeypatch) / ".cache" / "i"
    ours.mkdir(parents=True)
    ours.chmod(0o777)
    assert entry().is_relative_to(ours)
    assert stat.S_IMODE(ours.stat().st_mode) == 0o700


def test_entries_once_open_to_others_are_never_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = home(tmp_path, monkeypatch) / ".cache" / "i" / "compiled-1"
    compiled.mkdir(parents=True)
    compiled.chmod(0o777)
    assert not entry().is_relative_to(tmp_path / "home")
    assert stat.S_IMODE(compiled.stat().st_mode) == 0o777


@pytest.mark.parametrize("spoil", ["link", "mode", "owner", "pipe"])
def test_an_entry_that_is_not_ours_is_built_again(spoil: str, tmp_path: Path) -> None:
    path = entry()
    content = path.read_bytes()
    if spoil in ("link", "pipe"):
        path.unlink()
        (tmp_path / "planted.so").write_bytes(content)
        if spoil == "link":
            path.symlink_to(tmp_path / "planted.so")
        else:
            os.mkfifo(path)
    elif spoil == "mode":
        path.chmod(0o622)
    elif os.geteuid() == 0:
        os.chown(path, ANOTHER, -1)
    else:
        pytest.skip("only root can give a file to another owner")
    assert not cache.is_whole(str(path))
    assert entry() == path
    assert cache.is_whole(str(path))
    assert path.stat().st_uid == os.geteuid()
    assert not path.is_symlink()


def test_a_link_leads_to_an_entry_beside_it_only(tmp_path: Path, fresh_cache: Path) -> None:
    texts = [TEXT, TEXT]
    path = Path(cache.library_of("source", texts.pop, library_recipe(), str))
    (link,) = fresh_cache.glob("*.link")
    planted = tmp_path / path.name
    planted.write_bytes(path.read_bytes())
    planted.chmod(0o600)
    link.unlink()
    link.symlink_to(planted)
    assert Path(cache.library_of("source", texts.pop, library_recipe(), str)) == path
    assert not texts


def test_a_path_that_leads_through_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is where it leads: macOS has ``/tmp`` behind a link, many a home is one."""
    for name, mode in (("safe", 0o700), ("open", 0o777)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
        (tmp_path / f"to-{name}").symlink_to(tmp_path / name)
    monkeypatch.setenv("I_CACHE_DIR", str(tmp_path / "to-safe"))
    assert entry().is_relative_to(tmp_path / "safe")
    monkeypatch.setenv("I_CACHE_DIR", str(tmp_path / "to-open"))
    assert not entry().is_relative_to(tmp_path)


def test_a_temporary_folder_that_others_can_rename_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loose = tmp_path / "loose"
    loose.mkdir()
    loose.chmod(0o777)
    monkeypatch.setenv("I_CACHE_DIR", os.devnull)
    monkeypatch.setattr(tempfile, "tempdir", str(loose))
    assert not entry().is_relative_to(loose)
    monkeypatch.setattr(folders, "TEMPORARY", ())
    with pytest.raises(ToolError) as caught:
        entry()
    assert caught.value.code == "E0907"
    assert f"other users can write to it ({loose})" in caught.value.message
    loose.chmod(0o1777)
    assert entry().is_relative_to(loose)


COMPILING = """
import os, signal, sys
from ilang.codegen.compile import cache
from ilang.codegen.compile.toolchain import library_recipe
if sys.argv[1] == "ignored":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
cache.library("int answer(void) { return 42; }", library_recipe(), str)
print("done")
"""


@pytest.mark.parametrize("place", ["cache", "temporary"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_neither_compiler_nor_folder(
    number: signal.Signals,
    place: str,
    tmp_path: Path,
    fake_compiler: FakeCompiler,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_compiler(f"sleep 600 & echo $$ $! >{tmp_path}/started; wait")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    if place == "temporary":
        monkeypatch.setenv("I_CACHE_DIR", os.devnull)
    process = compiling("")
    started = processes(tmp_path / "started")
    process.send_signal(number)
    said, _ = process.communicate(timeout=300)
    assert (process.returncode, said) == (-number, b"")
    assert all(is_gone(pid) for pid in started)
    assert not list(tmp_path.rglob("building-*"))


def test_a_signal_that_is_ignored_stays_so(tmp_path: Path, fake_compiler: FakeCompiler) -> None:
    fake_compiler(f'echo $$ >{tmp_path}/started; kill -HUP $PPID; exec "$REAL" "$@"')
    said, _ = compiling("ignored").communicate(timeout=300)
    assert said == b"done\n"


def compiling(word: str) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", COMPILING, word]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


def processes(log: Path) -> list[int]:
    """The processes that a script has noted, once it has."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if log.exists() and log.read_text().endswith("\n"):
            return [int(word) for word in log.read_text().split()]
    raise AssertionError("nothing was started")


def is_gone(process: int) -> bool:
    """Whether a process ends soon; a dead entry that nobody has collected yet counts as gone."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
    return False
