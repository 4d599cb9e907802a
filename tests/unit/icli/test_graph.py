"""``i graph``."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.unit.icli.front import i

NET = """
op net(x) = relu("w" * x + "b" 3)
cd step(x, t) {
  d = net(x) - t
  loss = sum(d *. d)
  backprop(loss)
  return loss
}
"""


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.svg", "<svg"), ("a.mmd", "flowchart"), ("a.dot", "digraph"), ("a.gv", "digraph"), ("a.txt", "data flow of")],
)  # fmt: skip
def test_the_end_of_a_name_says_the_form(tmp_path: Path, name: str, start: str) -> None:
    for _ in range(2):  # a file of the same kind is replaced
        done = i("graph", "+ij~i", "-o", name, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (tmp_path / name).read_text().startswith(start)
    (tmp_path / name).write_text("notes")
    assert "E0768" in i("graph", "+ij~i", "-o", name, cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("tokens", "code"),
    [
        (["-o", "a.png"], "E0812"),
        (["--json", "--format", "svg"], "E0830"),
        (["--json", "-o", "a.svg"], "E0830"),
        (["--ascii", "--format", "dot"], "E0830"),
        (["--format", "png"], "E0804"),
    ],
)
def test_refusals(tokens: list[str], code: str) -> None:
    done = i("graph", "+ij~i", *tokens)
    assert (done.returncode, done.stdout) == (2, "")
    assert code in done.stderr


def test_several_definitions_are_one_text_and_no_one_picture(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text("f(a[n]) = -i~i\ng(a[n]) = ^i~i\n")
    assert i("graph", "m.i", cwd=tmp_path).stdout.count("data flow of ") == 2
    assert "E0818" in i("graph", "m.i", "--format", "svg", cwd=tmp_path).stderr
    done = i("graph", "m.i", "--format", "svg", "--def", "g", cwd=tmp_path)
    assert ET.fromstring(done.stdout).find(".//{*}title").text.startswith("g(")  # type: ignore[union-attr]


def test_tensor_functions_and_routines(tmp_path: Path) -> None:
    (tmp_path / "net.i").write_text(NET)
    open_rows = i("graph", "net.i", "--def", "net", cwd=tmp_path).stdout
    assert "parameter w" in open_rows
    assert "kernel" not in open_rows
    shaped = i("graph", "net.i", "--def", "net", "--shape", "x=4|2", cwd=tmp_path).stdout
    assert "f32[3,2]" in shaped
    assert "kernel k0" in shaped
    step = i(
        "graph", "net.i", "--def", "step", "--shape", "x=4|2", "--shape", "t=4|3", cwd=tmp_path
    )
    assert step.returncode == 0
    assert "dw" in step.stdout


def test_json_and_targets() -> None:
    answer = json.loads(i("graph", "ik*kj~ijk >> +ijk~ij", "--json", "--target", "cuda").stdout)
    (flow,) = answer["graphs"]
    assert flow["edges"] == [[0, 2], [1, 2], [2, 3]]
    assert flow["kernels"] == [[2, 3]]
    assert flow["nodes"][2]["formula"] == "product[i,j,k] = in0[i,k]·in1[k,j]"
