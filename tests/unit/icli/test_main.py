"""The whole command line: tokens, statuses, streams."""

import fcntl
import json
import os
import signal
import site
import subprocess
import sys
import termios
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.unit.icli.front import ENTRY, ROOT, environment, i, wait_until_computing

MATMUL = "ik*kj~ijk >> +ijk~ij"


def test_version_and_overview() -> None:
    assert i("--version").stdout.startswith("i ")
    assert i().stdout == i("--help").stdout
    assert "explain" in i().stdout


@pytest.mark.parametrize("program", ["-i~i", "--x~y", "-ij~ij", "--help~i"])
def test_a_token_with_a_tilde_is_a_program(program: str) -> None:
    assert "E080" not in i("explain", program).stderr


@pytest.mark.parametrize("program", ["-i~i", "!!i~i", "$i~i", "- i ~ i"])
def test_signs_need_no_escape(program: str) -> None:
    done = i("explain", program)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_value_of_an_option_is_whatever_follows_it() -> None:
    assert "E0810" in i("explain", "+ij~i", "--shape", "-i~i").stderr
    assert "E0810" in i("explain", "+ij~i", "--shape", "--json").stderr


def test_a_negative_number_is_an_operand() -> None:
    assert i("run", "-.~.", "-3").stdout == "out  .  f32\n3.\n"


def test_two_dashes_end_the_options() -> None:
    assert "--json" in i("explain", "--", "--json").stderr
    assert i("explain", "--", "+i~.").returncode == 0


@pytest.mark.parametrize(
    ("tokens", "code", "status"),
    [
        (["explian", "+ij~i"], "E0801", 2),
        (["build", "softmax"], "E0816", 2),
        (["build", 'einx.sum("a [b]")'], "E0816", 2),
        (["explain", "--shpae", "3"], "E0802", 2),
        (["explain", "+ij~i", "--shape"], "E0803", 2),
        (["explain", "+ij~i", "--emit", "lops"], "E0804", 2),
        (["explain", "--loops"], "E0805", 2),
        (["check"], "E0805", 2),
        (["explain", "+ij~i", "+i~."], "E0806", 2),
        (["--version", "x"], "E0806", 2),
        (["-V", "x"], "E0806", 2),
        (["explain", "ij~"], "E0103", 1),
        (["run", "+ij~i", "nofile.npy"], "E0725", 1),
        (["explain", "+ij~i", "--emit", "bind", "--target", "c"], "E0804", 2),
        (["explain", "E0999"], "E0813", 2),
    ],
)
def test_statuses(tokens: list[str], code: str, status: int) -> None:
    done = i(*tokens)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(f"error[{code}]: ")


@pytest.mark.parametrize(
    ("tokens", "guess"),
    [
        (["explian", "x"], "i explain"),
        (["explain", "--shpae", "3"], "--shape"),
        (["explain", "+ij~i", "--emit", "lops"], "loops"),
    ],
)
def test_suggestions(tokens: list[str], guess: str) -> None:
    assert f"did you mean {guess}" in i(*tokens).stderr.replace("`", "")


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["help", "nosuchcommand"], "there is no command nosuchcommand"),
        (["help", "buidl"], "did you mean `i help build`?"),
        (["--help", "expl"], "did you mean `i help explain`?"),
        (["help", "E0202"], "did you mean `i explain E0202`?"),
        (["help", "run", "check"], "check is one too many"),
        (["help", "--bad"], "i has no option --bad"),
    ],
)
def test_help_for_what_there_is(tokens: list[str], said: str) -> None:
    done = i(*tokens)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_help_for_a_command() -> None:
    assert i("help", "run").stdout == i("run", "--help").stdout
    assert i("help", "--help").stdout == i("help").stdout == i("--help").stdout


ZEROS = "0" * 12000


@pytest.mark.parametrize("number", [f"{ZEROS}7", f"-{ZEROS}7", "1" * 12000, f"{ZEROS}1.5"])
@pytest.mark.parametrize(
    "tokens",
    [
        ["explain", "%s"],
        ["explain", "I | %s"],
        ["explain", "(i+%s)~i"],
        ["explain", "+ij~i | i:%s"],
        ["explain", "ij~i", "--shape", "%sx2"],
        ["run", "-i~i", "[%s]"],
        ["run", "-i~i", "rand:%s"],
        ["run", "i*.~i", "[1]", "%s"],
    ],
)
def test_numbers_of_many_digits(tokens: list[str], number: str) -> None:
    """Python reads no whole number of more than 4300 digits."""
    done = i(*(token.replace("%s", number) for token in tokens))
    assert done.returncode in (0, 1, 2)
    assert "internal" not in done.stderr


def test_lone_surrogates_are_escaped(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/x\xff.i"
    Path(os.fsdecode(path)).write_text("f = ij~k\n")
    for tokens in ([b"check", path], [b"check", b"--json", path], [b"run", b"no\xff.i", b"1"]):
        done = i(*tokens, errors="strict")
        assert done.returncode == 1
        assert "\\xff" in done.stdout + done.stderr
        assert "internal" not in done.stdout + done.stderr


def test_a_page_of_a_code() -> None:
    page = i("explain", "E0103").stdout
    assert page.startswith("E0103 · ")
    assert page == i("explain", "e0103").stdout


def test_every_command_has_help() -> None:
    from ilang.icli.commands import COMMANDS

    for name in COMMANDS:
        done = i(name, "--help")
        assert done.returncode == 0
        assert f"Usage: i {name}" in done.stdout


def test_json_explanation_and_error() -> None:
    page = json.loads(i("explain", MATMUL, "--shape", "64x32,32x16", "--json").stdout)
    assert page["cost"]["flops"] == 2 * 64 * 32 * 16
    assert [row["name"] for row in page["inputs"]] == ["in0", "in1"]
    done = i("explain", "ij~", "--json")
    error = json.loads(done.stderr)
    assert (done.stdout, error["code"], error["column"]) == ("", "E0103", 4)


def test_same_bytes_at_any_width_and_locale() -> None:
    outputs = {
        i("explain", MATMUL, env={"COLUMNS": columns, "LC_ALL": locale, "TERM": term}).stdout
        for columns, locale, term in (
            ("20", "C.UTF-8", "dumb"),
            ("400", "C.UTF-8", "xterm-256color"),
            ("80", "C", "xterm"),
        )
    }
    assert len(outputs) == 1


def test_ascii_where_the_stream_has_nothing_else() -> None:
    done = i("explain", MATMUL, "--shape", "4x4,4x4", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "sum_k in0[i,k]" in done.stdout


def test_color_is_asked_for_or_not_there() -> None:
    assert "\x1b[" in i("explain", "+ij~i", "--color", "always").stdout
    assert "\x1b[" in i("explain", "ij~", "--color=always").stderr
    assert "\x1b[" not in i("explain", "+ij~i").stdout
    assert "\x1b[" in i("explain", "+ij~i", "--color", "always", env={"NO_COLOR": "1"}).stdout


@pytest.mark.parametrize("name", ["\x1b[31mx", "a\nb", "\u202eabc", "tab\there"])
def test_nothing_raw_is_echoed(name: str) -> None:
    for tokens in (("explain", name), (name,), ("run", "+i~.", name), ("build", name)):
        error = i(*tokens).stderr
        assert name not in error
        assert "\x1b" not in error


def test_tokens_that_are_not_utf8() -> None:
    for tokens in ((b"\xff",), ("explain", b"\xff\xfe~"), ("run", "+i~.", b"\xff.npy")):
        done = i(*tokens)
        assert done.returncode in (1, 2)
        assert "\\xff" in done.stderr


@pytest.mark.parametrize(
    "tokens", [["--version"], ["--help"], ["explain", "+ij~i"], ["explain", "E0103"]]
)
def test_a_full_disk_is_told(tokens: list[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:  # noqa: PTH123
        done = i(*tokens, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error[E0735]: standard output cannot be written: No space left on device",
        "help: print to another file, or free space",
    ]


@pytest.mark.parametrize(
    "tokens", [["--version"], ["--help"], ["explain", "+ij~i"], ["explain", "E0103"]]
)
def test_a_closed_pipe_is_no_failure(tokens: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = i(*tokens, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("closing", [">&-", "2>&-", "<&-", ">&- 2>&-"])
@pytest.mark.parametrize("tokens", ["--version", "explain '+ij~i'", "explain 'ij~'", "repl"])
def test_closed_streams(closing: str, tokens: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -c \"$1\" {tokens} {closing}", "-", ENTRY],
        env=environment(),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 1)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_interrupted() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ENTRY, "explain", "-"],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"+ij~i")
        process.stdin.flush()
        wait_until_read(process.stdin.fileno())
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=300)
    assert (process.returncode, error) == (130, b"interrupted\n")


def test_interrupted_before_the_command_is_imported() -> None:
    code = (
        "import os, signal, sys; from ilang.__main__ import run\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        name == 'ilang.icli.main' and os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.exit(run())\n"
    )
    done = alone(code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_interrupted_while_computing() -> None:
    words = ["run", "i*j~ij >> +ij~.", "rand:1000000", "rand:1000000"]
    with subprocess.Popen(
        [sys.executable, "-c", ENTRY, *words],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        wait_until_computing(process.pid)
        process.send_signal(signal.SIGINT)
        said, error = process.communicate(timeout=300)
    assert (process.returncode, said, error) == (130, b"", b"interrupted\n")


def wait_until_read(pipe: int) -> None:
    """Until the process at the other end of a pipe has taken what was written, and waits for more."""
    for _ in range(6000):
        if not int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder):
            return
        time.sleep(0.01)
    pytest.fail("standard input is not read")


def test_our_bug_is_one_coded_line() -> None:
    breaks = "from ilang.icli import programs\ndef f(a): raise ValueError('a\\nb')\nprograms.is_file = f\n"
    code = breaks + ENTRY.replace("sys.exit(main())", "sys.exit(main(['build', 'a~']))")
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 70
    assert done.stderr.startswith("error[E9900]: internal error: ValueError: a b\n")
    assert "Traceback" not in done.stderr


def test_the_version_costs_nothing() -> None:
    code = (
        "import sys; from ilang.icli.main import main; main(['--version'])\n"
        "sys.exit(' '.join(n for n in sys.modules if n.startswith(('ilang.core', 'ilang.codegen'))) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_ending_looks_for_no_cycles() -> None:
    code = (
        "import atexit, gc; from ilang.icli.main import main\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 0))\n"
        "main(['explain', '+ij~i'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("True\n")


def alone(code: str) -> subprocess.CompletedProcess[str]:
    """Run Python that imports nothing by itself."""
    path = os.pathsep.join((str(ROOT), *site.getsitepackages()))
    return subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=environment(PYTHONPATH=path),
        capture_output=True,
        text=True,
        check=False,
    )


RARE = [
    *(
        f"ilang.core.{name}"
        for name in (
            *("notation.files.module", "notation.index.schedule", "notation.einsum.contraction"),
            "notation.einx.op_argument",
            *("infer.fit", "infer.projections", "infer.caps", "schedule.online", "explain.story"),
            *("ir.functions", "ir.einx", "einx_ops", "passes.kernels", "occupancy", "suggestion"),
            *("transform.moving", "transform.building", "schedule.matrices.apart_copies"),
        )
    ),
    *(
        f"ilang.icli.{name}"
        for name in (
            *("completion", "configuration", "definitions", "refusals", "shapes"),
            *("commands.run", "commands.build"),
        )
    ),
]
"""Modules that a command on a plain index expression does not import."""


def test_importing_little() -> None:
    assert all(find_spec(name) for name in RARE)
    done = alone(
        "import sys; from ilang.icli.main import main; main(['explain', 'ik*kj~ijk >> +ijk~ij'])\n"
        "heavy = {'numpy', 'rich', 'prompt_toolkit', 'cffi', 'json', 'pathlib', 'dataclasses'}\n"
        "heavy |= {'struct', 'unicodedata', 'heapq', 'ast', 'datetime', 'gettext', 'inspect', 'platform', 'uuid'}\n"
        f"heavy.update({RARE})\n"
        "sys.exit(' '.join(heavy & set(sys.modules)) or 0)"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_help_without_importing_click() -> None:
    done = alone(
        "import sys; from ilang.icli.main import main; main(['--help']); main(['--version'])\n"
        "sys.exit('click' in sys.modules)"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_click_imports_later_is_itself_when_it_is_used() -> None:
    done = alone(
        "import sys; from ilang.icli.main import main; main(['explain', '+ij~i'])\n"
        "assert not {'datetime', 'gettext', 'inspect', 'uuid'} & {*sys.modules}\n"
        "import click, click.core, click.types, uuid\n"
        "assert click.core.inspect.cleandoc(' a') == 'a'\n"
        "import gettext, inspect\n"
        "assert str(inspect.signature(main)).startswith('(argv')\n"
        "assert click.core.inspect.signature is inspect.signature\n"
        "assert click.core._('a') == gettext.gettext('a') == 'a'\n"
        "assert click.types.uuid.UUID is uuid.UUID\n"
        "assert isinstance(click.UUID.convert('0' * 32, None, None), uuid.UUID)\n"
        "assert click.UUID.convert(uuid.UUID(int=0), None, None) == uuid.UUID(int=0)\n"
        "moment = click.DateTime().convert('2001-02-03', None, None)\n"
        "assert click.DateTime().convert(moment, None, None) is moment\n"
        "import datetime\n"
        "assert moment == datetime.datetime(2001, 2, 3)\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_imported_already_stays() -> None:
    done = alone(
        "import inspect, sys; from ilang.icli.main import main; main(['explain', '+ij~i'])\n"
        "import click.core\n"
        "assert click.core.inspect is inspect is sys.modules['inspect']\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["build", "no.i", "--target", "c", "-o=out"], "E0725"),
        (["explain", "+ij~i", "-v=3"], "--verbose takes no value"),
        (["explain", "+ij~i", "-vx"], "--verbose takes no value"),
        (["explain", "+ij~i", "--json=3"], "--json takes no value"),
        (["explain", "+ij~i", "--json", "--json"], "--json is given twice"),
        (["explain", "+ij~i", "-v", "--verbose"], "--verbose is given twice"),
        (["explain", "+ij~i", "--emit", "c", "--emit=c"], "--emit is given twice"),
        (["explain", "+ij~i", "--emit="], "--emit cannot be empty"),
        (["build", "no.i", "-o"], "-o needs a value: -o DIR"),
        (["explain", "+ij~i", "-shape", "3"], "did you mean --shape?"),
        (["explain", "-x", "+ij~i"], "i explain has no option -x"),
        (["build", "m.i", "--emit", "c"], "--emit is an option of `i explain`, "),
        (["check", "m.i", "--lr", "1"], "--config lr=0.1"),
        (["explain", "--def", "-x", "-y=3"], "i explain has no option -y"),
        (["fmt", "--check", "--", "-x", "y"], "-x cannot be read"),
        (["repl", "--", "-x", "y"], "y is one too many"),
        (["check", "+ij~i", "foo.x"], "takes one operand, and foo.x is one too many"),
        (["check", "+ij~i", "[[1,2]]"], "its arrays are given by their shapes: --shape 1x2"),
        (["run"], "i run needs TEXT|FILE|- [ARRAY...]"),
        (["explain", ""], "E0101"),
    ],
)
def test_what_is_said_of_tokens(tokens: list[str], said: str) -> None:
    assert said in i(*tokens).stderr


def test_an_attached_value_may_begin_with_an_equals_sign(tmp_path: Path) -> None:
    for words in (["-o=a.npy"], ["-oa.npy"], ["-o", "a.npy"]):
        done = i("run", "-i~i", "[1]", *words, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        (tmp_path / "a.npy").unlink()
    assert i("run", "-i~i", "[1]", "-o", "=a.npy", cwd=tmp_path).returncode == 0
    assert (tmp_path / "=a.npy").exists()


def test_a_form_without_an_output_is_given_one(tmp_path: Path) -> None:
    """`ij+ij` on a matrix is a form; on a vector, or under other names, it is an expression of Python."""
    assert "help: name the output: `ij+ij~ij`" in i("run", "ij+ij", "[[1]]", cwd=tmp_path).stderr
    assert "help: in `i repl`" in i("run", "ab+ab", "[1]", cwd=tmp_path).stderr
    assert "help: in `i repl`" in i("run", "x+x", "[1]", cwd=tmp_path).stderr
