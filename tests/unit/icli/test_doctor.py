"""``i doctor`` names what is missing and the remedy, and the manual page has every command and option."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from ilang.icli.commands import COMMANDS
from ilang.icli.manual import manual
from tests.property.commands import OPTIONS
from tests.rewritten import settle
from tests.unit.icli.front import ROOT, i

PAGE = ROOT / "docs" / "i.1"


def states(**env: str) -> tuple[int, dict[str, tuple[str, str]]]:
    done = i("doctor", "--json", env=env)
    checks = json.loads(done.stdout)["checks"]
    assert all(each["help"] for each in checks if each["state"] != "ok"), checks
    return done.returncode, {each["name"]: (each["state"], each["help"]) for each in checks}


def test_all_that_programs_need_is_here() -> None:
    status, found = states()
    assert status == 0
    for name in ("i", "Python", "system", "C compiler", "compiled C", "cache"):
        assert found[name][0] == "ok", name


def test_a_compiler_that_is_missing(tmp_path: Path) -> None:
    status, found = states(PATH=str(tmp_path), CC="")
    if "ziglang" not in found["C compiler"][1]:
        pytest.skip("ziglang is installed")
    assert status == 3
    assert found["C compiler"][0] == "missing"
    assert "apt install gcc" in found["C compiler"][1]
    assert found["GPU emulator"][0] == "missing"


def test_a_compiler_that_fails(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho broken 1.0\nexit 1\n")
    broken.chmod(0o700)
    status, found = states(CC=str(broken), I_CACHE_DIR=str(tmp_path / "cache"))
    assert status == 3
    assert found["compiled C"][0] == "broken"


def test_a_compiler_without_openmp(tmp_path: Path) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs gcc")
    plain = tmp_path / "plain"
    refuses = 'for w; do [ "$w" = -fopenmp ] && { echo "error: -fopenmp" >&2; exit 1; }; done'
    plain.write_text(f'#!/bin/sh\n{refuses}\nexec {compiler} "$@"\n')
    plain.chmod(0o700)
    status, found = states(CC=str(plain), I_CACHE_DIR=str(tmp_path / "cache"))
    assert status == 0
    assert found["OpenMP"][0] == "missing"
    assert "libomp" in found["OpenMP"][1]


def test_a_cache_that_others_can_change(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    status, found = states(I_CACHE_DIR=str(tmp_path / "open" / "cache"))
    assert status == 0
    assert found["cache"][0] == "missing"
    assert "I_CACHE_DIR" in found["cache"][1]


def test_the_text_says_what_to_do() -> None:
    done = i("doctor")
    assert done.stdout.startswith("ok       i ")
    assert done.stdout.endswith("everything that programs need is there\n")


def test_the_manual_page(update: bool) -> None:
    settle(PAGE, manual(), update)
    text = PAGE.read_text("utf-8")
    for command in COMMANDS:
        assert f".SS i {command}" in text
        for option in OPTIONS[command]:
            assert option.replace("-", "\\-") in text


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_reads_the_manual_page() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", str(PAGE)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "i run TEXT|FILE|-" in done.stdout.replace("\b", "") or "TEXT" in done.stdout
