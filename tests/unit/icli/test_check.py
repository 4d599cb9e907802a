"""What ``i check`` does with written schedules, apart from the usual case."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ilang.codegen.project import comparison
from ilang.codegen.project.checking import check_schedules
from ilang.core import pipeline
from ilang.core.diagnostic import DataError, InternalError, ToolError
from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Shaped
from tests.property.test_fuzz import needs_compiler
from tests.unit.icli.front import i

TEXT = "-i~i | i:4 | i' i"


def shaped(text: str) -> Shaped:
    return pipeline.infer(pipeline.graph_of(pipeline.text_component(text), "f"))


def no_compiler(*_: object) -> bool:
    raise ToolError("E0901", "no C compiler was found")


def broken_compiler(*_: object) -> bool:
    raise ToolError("E0903", "the C compiler failed")


def test_what_has_no_schedule_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "build_test", broken_compiler)
    assert check_schedules(shaped("-i~i")) is None


def test_without_a_compiler_only_legality_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "build_test", no_compiler)
    found = check_schedules(shaped(TEXT))
    assert found is not None
    assert found.runs == 0
    assert "not run" in str(found.says)


def test_a_compiler_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "build_test", broken_compiler)
    with pytest.raises(ToolError, match="E0903"):
        check_schedules(shaped(TEXT))


def test_large_programs_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "build_test", broken_compiler)
    checked = check_schedules(shaped(" >> ".join(["-i~i"] * 1000 + [TEXT])))
    assert checked is not None
    assert checked.says == "schedule legal; not run: 1,001 expressions, more than 1,000"


def test_large_parts_are_checked_in_what_uses_them() -> None:
    lines = ["a0 = -i~i", *(f"a{n + 1} = a{n} >> a{n}" for n in range(14)), "b = -i~i >> +ij~i"]
    done = i("check", "-", input="\n".join(lines) + "\n")
    assert done.returncode == 1
    assert "a12(in0[i]) -> [i]\n" in done.stdout
    assert "a13 of 8,192 expressions: checked in what uses it\n" in done.stdout
    assert "a14(in0[i]) -> [i]\n" in done.stdout  # what nothing uses is checked, whatever its size
    assert "E0501" in done.stderr


def test_what_comes_from_a_library_is_checked_in_what_uses_it() -> None:
    done = i("check", "-", input="use nn\nop f(x, s; n = 4) = lstm_cell(x, s; n)\n")
    assert (done.returncode, done.stdout) == (0, "op f(x, s; n = 4)\n")


def test_definitions_of_all_sizes_are_refused_at_once() -> None:
    lines = ["a0 = -i~i", *(f"a{n + 1} = a{n} >> a{n}" for n in range(60))]
    done = i("check", "-", input="\n".join(lines) + "\n")
    assert done.returncode == 1
    assert done.stderr.count("error[E0250]") == 44
    assert "a16 of 65,536 expressions" in done.stdout


@needs_compiler
def test_code_that_computes_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(program: Shaped) -> Program:
        other = pipeline.infer(pipeline.graph_of(pipeline.text_component("^i~i"), program.name))
        return pipeline.lower(other)

    monkeypatch.setattr(comparison, "lower", wrong)
    with pytest.raises(InternalError, match="E9905") as caught:
        check_schedules(shaped(TEXT))
    assert "expected" in caught.value.message


@pytest.mark.parametrize("said", ["out of memory", "ERROR: AddressSanitizer failed to allocate"])
def test_memory_that_ran_out_is_no_fault_of_the_compiler(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[bool] = []

    def build(*_: object, sanitize: bool = True) -> bool:
        tried.append(sanitize)
        return sanitize

    monkeypatch.setattr(comparison, "build_test", build)
    monkeypatch.setattr(comparison, "_trouble", lambda _folder: said)
    with pytest.raises(DataError) as caught:
        check_schedules(shaped(TEXT))
    assert tried == [True, False], "once more without sanitizers, which take memory of their own"
    assert (caught.value.code, caught.value.status) == ("E0713", 1)
    assert re.search(
        r"not enough memory to run f, scheduled: .* \d+ bytes at i=\d+", caught.value.message
    )


@needs_compiler
def test_a_test_that_memory_was_too_little_for(tmp_path: Path) -> None:
    """A program whose memory is limited says so itself."""
    (tmp_path / "test").write_text("#!/bin/sh\nkill -KILL $$\n")
    (tmp_path / "test").chmod(0o755)
    assert comparison._is_out_of_memory(comparison._trouble(tmp_path))
    (tmp_path / "test").write_text("#!/bin/sh\necho f: out of memory; exit 1\n")
    assert comparison._trouble(tmp_path) == "f: out of memory"


TEXTUAL = "a = +ij~k\nb = ij*jk\nbad line\nuser = bad >> a\nc = +ij~i\nc = I\n"
INFERRED = "a = ij~ij >> i~i\nuser = a >> I\nc = i~i >> ij~ij\nd = i32 >> ^i~i\ne = +ij~i\n"


@pytest.mark.parametrize("command", ["check", "build", "explain", "run"])
@pytest.mark.parametrize(
    ("text", "codes"),
    [(TEXTUAL, ["E0201", "E0104", "E0406", "E0402"]), (INFERRED, ["E0501", "E0501", "E0602"])],
)
def test_every_mistake_of_a_file_is_told_once(
    command: str, text: str, codes: list[str], tmp_path: Path
) -> None:
    if command == "run" and text is INFERRED:
        codes, count = ["E0818"], ""  # several definitions, of which one must be chosen
    else:
        count = f"\n{len(codes)} errors\n"
    (tmp_path / "m.i").write_text(text, encoding="utf-8")
    done = i(command, "m.i", cwd=tmp_path)
    told = [line[6:11] for line in done.stderr.splitlines() if line.startswith("error[")]
    assert told == codes
    assert done.returncode in (1, 2)
    assert done.stderr.endswith(count)
    assert not (tmp_path / "out").exists()


def test_what_holds_is_told_beside_what_does_not(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(INFERRED, encoding="utf-8")
    assert "e(in0[i,j]) -> [i]" in i("check", "m.i", cwd=tmp_path).stdout
    assert "sum += in0[i,j]" in i("explain", "m.i", "--shape", "2x3", cwd=tmp_path).stdout


def test_json_has_every_mistake(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text(TEXTUAL, encoding="utf-8")
    told = json.loads(i("check", "m.i", "--json", cwd=tmp_path).stderr)
    assert told["code"] == "E0201"
    assert [other["code"] for other in told["others"]] == ["E0104", "E0406", "E0402"]
    (tmp_path / "m.i").write_text(INFERRED, encoding="utf-8")
    definitions = json.loads(i("check", "m.i", "--json", cwd=tmp_path).stdout)["definitions"]
    assert [d["error"]["code"] for d in definitions if "error" in d] == [
        "E0501",
        "E0501",
        "E0501",
        "E0602",
    ]


def test_one_definition(tmp_path: Path) -> None:
    """Shapes are those of the named definition, which others may use."""
    (tmp_path / "m.i").write_text(
        'rows = +ij~i\ntotal = rows >> +i~.\nop half(x) = "w" *. x\nop net(x) = half(x) + half(x)\n',
        encoding="utf-8",
    )
    assert (
        i("check", "m.i", "--def", "rows", "--shape", "3x4", cwd=tmp_path).stdout
        == "rows(in0[3,4]) -> [3]\n"
    )
    said = i("check", "m.i", "--def", "half", "--shape", "x=4|3", cwd=tmp_path).stdout
    assert said == "op half(x)   1 parameter, 3 numbers\n"


def test_names_of_a_head_that_are_one_size_are_told(tmp_path: Path) -> None:
    """A head that promises more than its body gives, in `i check` and in `i build`."""
    text = (
        "f(x[n,m], y[m,n]) = ij+ij~ij\n"
        'g(x[n,m], y[n]) = elementwise("f: a, b -> a * b")\n'
        "h(x[a,b,c], y[b,c,a]) = ijk+ijk~ijk\n"
        "k(x[n,m], y[m,k], z[n,n]) = (ik*kj~ijk >> +ijk~ij) | ii~i\n"
        "l(x[p,q]) = k2(x, x)\n"
        "k2(x[n,m], y[n,m]) = ij+ij~ij\n"
    )
    (tmp_path / "m.i").write_text(text, "utf-8")
    lines = i("check", "m.i", cwd=tmp_path).stdout.splitlines()
    assert [line.partition("   ")[2] for line in lines] == [
        "the body makes n and m one size: write m for each",
        "the body makes n and m one size: write n for each",
        "the body makes a, b and c one size: write b for each",
        "",
        "",
        "",
    ]
    told = i("build", "m.i", "-o", "out", cwd=tmp_path).stderr
    assert "f: the body makes n and m one size: write m for each" in told
    assert told.count("one size") == 3
