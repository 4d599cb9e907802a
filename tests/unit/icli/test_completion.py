"""Completion of words in shells: what is offered where, and the scripts in the shells themselves."""

import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.icli.front import ENTRY, environment, i

SHELLS = [
    pytest.param(
        shell, marks=pytest.mark.skipif(not shutil.which(shell), reason=f"{shell} is not installed")
    )
    for shell in ("bash", "zsh", "fish")
]
SECONDS = 300


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one program, arrays, another folder, and a file that no command reads."""
    for name in ("x.npy", "y.npz", "notes.txt", ".hidden.i", "a blank.i"):
        (tmp_path / name).touch()
    (tmp_path / "model.i").write_text("total = +ij~i\nmean = total >> i/2~i\n")
    (tmp_path / "broken.i").write_text("total = ij~k\nnothing\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "deep.i").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def offered(*words: str) -> list[str]:
    """What is offered for the last word, each as its type and itself."""
    line = {"COMP_WORDS": shlex.join(words), "COMP_CWORD": str(len(words) - 1)}
    done = i(env={"_I_COMPLETE": "bash", **line})
    assert (done.returncode, done.stderr) == (0, "")
    return [" ".join(line.split("\t")[:2]) for line in done.stdout.splitlines()]


def words_offered(*words: str) -> list[str]:
    return [line.partition(" ")[2] for line in offered(*words)]


def test_commands() -> None:
    assert {"explain", "run", "completion", "help"} <= set(words_offered("i", ""))
    assert offered("i", "ex") == ["plain explain"]
    assert words_offered("i", "--v") == ["--version"]
    assert words_offered("i", "help", "ex") == ["explain"]
    assert words_offered("i", "completion", "") == ["bash", "zsh", "fish"]
    assert offered("i", "nosuchcommand", "") == []


def test_options_and_their_choices() -> None:
    assert words_offered("i", "explain", "--s") == ["--shape", "--schedule"]
    assert words_offered("i", "explain", "x~x", "--emit", "l") == ["lowered", "lanes", "loops"]
    assert words_offered("i", "explain", "--emit=grap") == ["graph"]
    assert words_offered("i", "run", "--color", "a") == ["auto", "always"]
    assert offered("i", "explain", "-i~i") == []


def test_error_codes() -> None:
    assert words_offered("i", "explain", "E010")[:2] == ["E0101", "E0102"]
    assert words_offered("i", "explain", "e0813") == ["E0813"]
    assert offered("i", "check", "E010") == []


def test_files_of_the_kind_that_fits(folder: Path) -> None:
    programs = ["file a blank.i", "file broken.i", "file model.i", "folder more"]
    for command in ("explain", "run", "build", "check", "repl", "fmt"):
        assert offered("i", command, "") == programs
    assert offered("i", "explain", "more/") == ["file more/deep.i"]
    assert offered("i", "explain", f"{folder}/mod") == [f"file {folder}/model.i"]
    assert offered("i", "run", "-i~i", "") == ["folder more", "file x.npy", "file y.npz"]
    assert offered("i", "run", "-i~i", "-o", "x") == ["file x.npy"]
    assert offered("i", "build", "-o", "") == ["folder more"]
    assert offered("i", "explain", "nowhere/") == []
    assert offered("i", "fmt", ".h") == ["file .hidden.i"]


@pytest.mark.usefixtures("folder")
def test_definitions_of_the_file() -> None:
    assert words_offered("i", "run", "model.i", "--def", "") == ["total", "mean"]
    assert words_offered("i", "build", "model.i", "--def", "total", "--def", "m") == ["mean"]
    for program in ("broken.i", "absent.i", "-i~i", "more"):
        assert offered("i", "explain", program, "--def", "") == []
    assert offered("i", "explain", "--def", "") == []


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("shell", "word", "answer"),
    [("zsh", "fm", "plain\tfmt\tFormat a file\n"), ("fish", "fm", "fmt\tFormat a file\n")],
)
def test_meanings(shell: str, word: str, answer: str) -> None:
    typed = {"zsh": "1", "fish": word}[shell]
    done = i(env={"_I_COMPLETE": shell, "COMP_WORDS": f"i {word}", "COMP_CWORD": typed})
    assert done.stdout == answer


@pytest.mark.usefixtures("folder")
def test_values_after_an_equals_sign_in_fish() -> None:
    word = "--emit=grap"
    asked = {"_I_COMPLETE": "fish", "COMP_WORDS": f"i explain {word}", "COMP_CWORD": word}
    assert i(env=asked).stdout == "--emit=graph\n"


def test_a_shell_that_is_not_known() -> None:
    done = i(env={"_I_COMPLETE": "tcsh", "COMP_WORDS": "i", "COMP_CWORD": "1"})
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    assert "did you mean fish?" in i("completion", "fsh").stderr


@pytest.fixture
def entry(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose ``i`` is the one under test; no set-up of the user is read."""
    assert folder.is_dir()
    tools = tmp_path_factory.mktemp("tools")
    tool = tools / "i"
    tool.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{ENTRY}" "$@"\n')
    tool.chmod(0o755)
    path = os.pathsep.join((str(tools), os.environ["PATH"]))
    home = {"HOME": str(tools), "XDG_CONFIG_HOME": str(tools), "ZDOTDIR": str(tools)}
    return environment(PATH=path, **home)


BASH = """
eval "$(i completion bash)"
complete -p i
COMP_WORDS=({words}) COMP_CWORD={last}
_i_completion i
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def in_bash(entry: dict[str, str], *words: str) -> list[str]:
    written = shlex.join(shlex.quote(word) for word in words)  # the shell keeps the quotes of words
    line = BASH.format(words=written, last=len(words) - 1)
    done = subprocess.run(
        ["bash", "--norc", "-c", line], env=entry, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    first, *rest = done.stdout.splitlines()
    assert first.endswith("-F _i_completion i")
    return rest


def test_in_bash(entry: dict[str, str]) -> None:
    assert in_bash(entry, "i", "ex") == ["explain"]
    assert in_bash(entry, "i", "explain", "") == ["a blank.i", "broken.i", "model.i", "more"]
    assert in_bash(entry, "i", "run", "(I & +ij~i) >> ij/i~ij", "x") == ["x.npy"]


@pytest.mark.parametrize("shell", SHELLS[2:])
def test_in_fish(shell: str, entry: dict[str, str]) -> None:
    def offers(line: str) -> list[str]:
        code = f"i completion fish | source; complete -C {shlex.quote(line)}"
        done = subprocess.run(
            [shell, "-N", "-c", code], env=entry, capture_output=True, text=True, check=True
        )
        return [each.partition("\t")[0] for each in done.stdout.splitlines()]

    assert offers("i ex") == ["explain"]
    assert offers("i run -i~i ") == ["more/", "x.npy", "y.npz"]
    assert offers("i explain --emit=grap") == ["--emit=graph"]
    assert offers("i run model.i --def to") == ["total"]


BASH_PROMPT = r"""
eval "$(i completion bash)"
shown() { printf '|%s|\n' "$READLINE_LINE"; }
bind -x '"\C-t": shown'
bind 'set enable-bracketed-paste off'
"""
ZSH_PROMPT = r"""
autoload -U compinit; compinit -u -D
source <(i completion zsh)
shown() { zle -I; print -r -- "|$BUFFER|" }
zle -N shown
bindkey "^T" shown
"""
PROMPTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], BASH_PROMPT),
    "zsh": (["zsh", "-f", "-i"], ZSH_PROMPT),
}
"""How a shell starts without set-up, and what it is told: ^T shows the line that is typed, between two bars."""


@pytest.mark.parametrize("shell", SHELLS[:2])
@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("i expl", "i explain "),
        ("i explain mod", "i explain model.i "),
        ("i explain mor", "i explain more/"),
        ("i explain a", "i explain a\\ blank.i "),
        ("i explain model.i --emit=grap", "i explain model.i --emit=graph "),
        ("i explain --emit=c model.i --d", "i explain --emit=c model.i --def "),
        ("i run --target=c model.i --def to", "i run --target=c model.i --def total "),
        ("i run model.i --def to", "i run model.i --def total "),
    ],
)
def test_at_a_prompt(shell: str, typed: str, line: str, entry: dict[str, str]) -> None:
    """A tab after what is typed makes it the line."""
    words, setup = PROMPTS[shell]
    child, terminal = pty.fork()
    if not child:
        os.execvpe(words[0], words, entry)
    try:
        os.write(terminal, f"{setup}\necho rea''dy\n".encode())
        wait_for(terminal, "ready\r\n")
        os.write(terminal, f"{typed}\t\x14".encode())
        wait_for(terminal, f"|{line}|")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def wait_for(terminal: int, text: str) -> None:
    """Until a terminal shows a text."""
    shown, end = "", time.monotonic() + SECONDS
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert ready, shown
        shown += os.read(terminal, 4096).decode("utf-8", "replace")
