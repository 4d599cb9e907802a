"""The compiler: how it is found, and every way in which it can fail."""

import errno
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ilang.codegen.compile import compiler_process, toolchain
from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.compile.toolchain import Recipe, build, library_recipe
from ilang.core.diagnostic import ToolError
from tests.unit.codegen.conftest import FakeCompiler

TEXT = "int answer(void) { return 42; }\n"


pytestmark = pytest.mark.usefixtures("real_compiler")


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_refused", set())


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work folder"
    folder.mkdir()
    return folder


def refusal(work: Path, variant: Recipe | None = None) -> ToolError:
    with pytest.raises(ToolError) as caught:
        build(TEXT, work, variant or library_recipe())
    return caught.value


def test_builds_a_library(work: Path) -> None:
    assert build(TEXT, work, library_recipe()).startswith(b"\x7fELF")


def test_finds_the_first_of_the_usual_names(fake_compiler: FakeCompiler) -> None:
    fake = fake_compiler("exit 1")
    assert find_compiler().command == (str(fake),)


def test_cc_may_have_arguments(monkeypatch: pytest.MonkeyPatch, real_compiler: str) -> None:
    monkeypatch.setenv("CC", f"{real_compiler} -DX='a b'")
    assert find_compiler().command == (real_compiler, "-DX=a b")


def test_cc_may_have_blanks_in_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real_compiler: str, work: Path
) -> None:
    program = tmp_path / "my own cc"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(real_compiler)} "$@"\n')
    program.chmod(0o755)
    for spelling in (str(program), shlex.join([str(program), "-DX"])):
        monkeypatch.setenv("CC", spelling)
        assert find_compiler().command[0] == str(program)
    assert build(TEXT, work, library_recipe())


@pytest.mark.parametrize("wanted", ["no-such-cc", "no-such-cc -O2", "'", "  'a", os.devnull])
def test_cc_that_is_none(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", wanted)
    with pytest.raises(ToolError) as caught:
        find_compiler()
    assert caught.value.code == "E0902"


def test_no_compiler_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(ToolError) as caught:
        find_compiler()
    assert caught.value.code == "E0901"
    assert "clang" in caught.value.message


def test_it_fails(fake_compiler: FakeCompiler, work: Path) -> None:
    fake_compiler("echo noise; echo 'program.c:1: error: no such thing' >&2; exit 4")
    error = refusal(work)
    assert error.code == "E0903"
    assert "exit status 4: program.c:1: error: no such thing" in error.message
    assert error.help is not None
    assert shlex.quote(str(work)) in error.help
    assert (work / "program.c").read_text() == TEXT


def test_it_fails_with_megabytes_of_words(fake_compiler: FakeCompiler, work: Path) -> None:
    fake_compiler("yes 'warning: something' | head -c 10000000 >&2; exit 1")
    assert len(refusal(work).message) < 2000


def test_it_succeeds_with_megabytes_of_words(fake_compiler: FakeCompiler, work: Path) -> None:
    fake_compiler('yes \'warning: something\' | head -c 10000000 >&2; exec "$REAL" "$@"')
    assert build(TEXT, work, library_recipe())


def test_what_it_says_last_is_read_as_well(fake_compiler: FakeCompiler, work: Path) -> None:
    fake_compiler(
        "yes 'warning: something' | head -c 3000000 >&2; echo 'program.c:9: error: the end' >&2; exit 1"
    )
    assert "program.c:9: error: the end" in refusal(work).message
    assert sum(path.stat().st_size for path in work.iterdir()) < 10_000


def test_what_it_left_behind_ends_with_it(
    fake_compiler: FakeCompiler, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler_process, "LINGERING", 0.1)
    fake_compiler(f'yes & echo $! >{tmp_path}/child; exec "$REAL" "$@"')
    assert build(TEXT, work, library_recipe())
    assert is_gone(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize("said", ["", "program.c: fatal error: x.s: No space left on device"])
def test_a_full_disk_is_no_fault_of_the_compiler(
    said: str, fake_compiler: FakeCompiler, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if not said:
        monkeypatch.setattr(os, "fsync", full)
    fake_compiler(f"echo {said}; exit 1")
    error = refusal(work)
    assert (error.code, "No space left" in error.message) == ("E0907", True)
    assert [path.name for path in work.iterdir()] == ["program.c"]


def test_a_signal_ends_it(fake_compiler: FakeCompiler, work: Path) -> None:
    fake_compiler("kill -SEGV $$")
    error = refusal(work)
    assert (error.code, "SIGSEGV" in error.message) == ("E0904", True)


@pytest.mark.parametrize("told", [True, False])
def test_it_hangs(
    told: bool,
    fake_compiler: FakeCompiler,
    work: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not told:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    child = tmp_path / "child"
    fake_compiler(f"sleep 600 & echo $! >{child}.new; mv {child}.new {child}; wait")
    for seconds in (0.3, 3, 30, 300):  # on a busy machine the compiler takes a while to start
        monkeypatch.setattr(compiler_process, "SECONDS", seconds)
        assert refusal(work).code == "E0905"
        if child.exists():
            break
    assert is_gone(int(child.read_text()))


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="nothing tells when a process ends")
def test_nobody_looks_again_and_again_whether_it_has_ended(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_seconds: float) -> None:
        raise AssertionError("slept")

    monkeypatch.setattr(time, "sleep", refuse)
    assert build(TEXT, work, library_recipe())


def is_gone(process: int) -> bool:
    """Whether a process ends soon; a dead entry that nobody has collected yet counts as gone."""
    for _ in range(6000):
        try:
            if Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False


def test_interrupted_it_leaves_no_process(
    fake_compiler: FakeCompiler, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler interrupts once it is waited for."""
    os.mkfifo(tmp_path / "waits")
    fake_compiler(
        f"echo $$ >{tmp_path}/child; read go <{tmp_path}/waits; kill -INT $PPID; sleep 600"
    )
    wait = compiler_process._exit_status

    def told(child: subprocess.Popen[bytes]) -> int:
        (tmp_path / "waits").write_text("go\n")
        return wait(child)

    monkeypatch.setattr(compiler_process, "_exit_status", told)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            build(TEXT, work, library_recipe())
    finally:
        signal.signal(signal.SIGINT, before)
    assert is_gone(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 0", "no library"),
        (": >program.so", "empty"),
        ('"$REAL" "$@" && head -c 9000 program.so >x && mv x program.so', "half a library"),
        ('"$REAL" "$@" && head -c 40 program.so >x && mv x program.so', "half a library"),
        (
            "echo hello, this is no library at all, whatever it says on the tin >program.so",
            "no library",
        ),
        (
            '"$REAL" "$@" && printf "\\377\\377" | dd of=program.so bs=1 seek=18 conv=notrunc status=none',
            "another machine",
        ),
    ],
)
def test_it_writes_no_good_library(
    script: str, words: str, fake_compiler: FakeCompiler, work: Path
) -> None:
    fake_compiler(script)
    error = refusal(work)
    assert (error.code, words in error.message) == ("E0906", True)


def test_every_cut_of_a_library_is_noticed(work: Path) -> None:
    content = build(TEXT, work, library_recipe())
    assert not toolchain.broken(content)
    assert all(toolchain.broken(content[:cut]) for cut in range(0, len(content), 97))


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("-march=native", "error: the compiler does not support '-march=native'"),
        ("-fopenmp", "error: unsupported option '-fopenmp'"),
    ],
)
def test_flags_it_may_do_without(
    flag: str, said: str, fake_compiler: FakeCompiler, work: Path, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    fake_compiler(
        f'echo x >>{log}; case " $* " in *" {flag} "*) echo "{said}" >&2; exit 1;; esac; exec "$REAL" "$@"'
    )
    for _ in range(2):
        assert build(TEXT, work, library_recipe(threads=True))
    assert len(log.read_text().split()) == 3, "asked once, then known"


def test_a_folder_that_is_gone(work: Path) -> None:
    work.rmdir()
    assert refusal(work).code == "E0907"


def test_a_program_that_cannot_start(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "cc"
    program.write_bytes(b"\0\0")
    program.chmod(0o755)
    monkeypatch.setenv("CC", str(program))
    assert refusal(work).code == "E0909"


def test_it_does_not_get_the_terminal_s_interrupt(fake_compiler: FakeCompiler, work: Path) -> None:
    fake_compiler('[ "$(ps -o pgid= $$ | tr -d " ")" = $$ ] || exit 3; exec "$REAL" "$@"')
    assert build(TEXT, work, library_recipe())
