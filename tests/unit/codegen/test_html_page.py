"""The page for a browser: what it links, that it is well-formed and alone, and that it highlights."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ilang import i, load
from ilang.codegen.components.html_page import html_page
from ilang.core import pipeline
from ilang.core.diagnostic import DataError
from ilang.core.machine import MACHINES
from ilang.core.pipeline import stages_of

PROGRAMS = {
    "matmul": "ik*kj~ijk >> +ijk~ij",
    "rows": "(I & +ij~i) >> ij/i~ij",
    "softmax": 'einx.softmax("s h [t]")',
    "view": 'einx.id("(a b) c -> a (b c)", a=2)',
    "comparison": 'elementwise("f: x[i,j], y[j] -> where(lt(x, y), x, y)")',
    "convolution": "(i+k)*k~ik >> +ik~i",
}
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None
)
VOID = {"meta", "br"}
RUNNING_JAVASCRIPT = """<script>
document.querySelector('.chip[data-gives="out"]').dispatchEvent(new MouseEvent("mouseover"));
const hits = [];
for (const each of document.querySelectorAll(".panes section")) {
  hits.push(each.id + "=" + each.querySelectorAll(".hit").length);
}
document.querySelector('.chip[data-gives="out"]').dispatchEvent(new MouseEvent("mouseout"));
const left = document.querySelectorAll(".hit, .near").length;
const pane = document.getElementById("loops");
pane.focus();
for (let n = 0; n < 2; ++n) pane.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
const line = pane.querySelector(".current").textContent;
pane.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
pane.blur();
const kept = document.querySelectorAll("#runs .hit").length;
document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
const free = document.querySelectorAll(".hit").length;
document.getElementById("theme").click();
document.body.innerHTML = "";
document.title = JSON.stringify({ hits, left, line, kept, free, theme: document.documentElement.dataset.theme });
</script>"""  # fmt: skip


class Page(HTMLParser):
    """A page whose tags are balanced: its marks by pane, and the text of each line that has one."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str]]] = []
        self.pane = ""
        self.marks: list[tuple[str, str, dict[str, set[str]]]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "section":
            self.pane = given["id"]
        if tag not in VOID:
            self.open.append((tag, given))
        if any(name.startswith("data-") for name in given):
            sets = {w: {*given.get(f"data-{w}", "").split()} for w in ("gives", "reads", "along")}
            self.marks.append((self.pane or "chips", "", sets))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self.open and any(name.startswith("data-") for name in self.open[-1][1]):
            pane, text, sets = self.marks[-1]
            self.marks[-1] = (pane, text + data, sets)


def page_of(text: str, target: str = "c") -> str:
    graph = pipeline.program_graph(pipeline.text_program(text))
    return html_page(graph, pipeline.infer(graph), target)


@pytest.mark.parametrize("target", ["c", "cuda"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_link_has_a_partner(name: str, target: str) -> None:
    text = page_of(PROGRAMS[name], target)
    page = Page(text)
    panes = {pane for pane, _, _ in page.marks}
    assert panes >= {"chips", "formula", "flow", "loops", "runs", target}
    given = {
        t: {p for p, _, s in page.marks if t in s["gives"]}
        for _, _, s in page.marks
        for t in s["gives"]
    }
    for _, _, sets in page.marks:
        assert sets["reads"] <= given.keys()
    for tensor, places in given.items():
        assert 1 < len(places), tensor
    extents = {
        e: {p for p, _, s in page.marks if e in s["along"]}
        for _, _, s in page.marks
        for e in s["along"]
    }
    assert all(1 < len(places) for places in extents.values())


@pytest.mark.parametrize("target", ["c", "cuda"])
def test_lines_know_what_they_are_of(target: str) -> None:
    """Each loop has its extent, and each line that computes has a tensor."""
    page = Page(page_of(PROGRAMS["matmul"], target))
    for pane in ("loops", "runs"):
        for _, text, sets in (each for each in page.marks if each[0] == pane):
            of = sets["along"] if text.strip().startswith("for ") else sets["gives"] | sets["reads"]
            assert of, text
    named = {
        (text.strip(), *sorted(sets["gives"]), *sorted(sets["reads"]))
        for pane, text, sets in page.marks
        if pane == "loops"
    }
    assert ("sum += in0[i,k]·in1[k,j]", "out", "in0", "in1") in named
    code = [(text, sets) for pane, text, sets in page.marks if pane == "c" and "y_copy[" in text]
    assert all(sets["gives"] for _, sets in code)


@pytest.mark.parametrize("target", ["c", "cuda"])
def test_a_page_stands_alone_and_has_every_stage(target: str) -> None:
    text = page_of(PROGRAMS["softmax"], target)
    assert ("<b>edges</b>" in text) is (target == "c")
    assert set(re.findall(r"https?://[^\"' ]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(src|href)=|@import|url\((?!#)", text)
    later = (
        "expanded",
        "extents",
        "loops",
    )  # what is inferred stands in the shapes, the loops are the last pass
    for stage in (each for each in stages_of(MACHINES[target]) if each not in later):
        assert f"<b>{stage}</b>" in text


def test_texts_are_escaped() -> None:
    text = page_of(PROGRAMS["comparison"])
    Page(text)
    assert "&lt;" in text


def test_tensor_functions(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text('op net(x) = relu("w" * x + "b" 3)\n')
    place = tmp_path / "net.html"
    load(tmp_path / "m.i").net.explain({"x": "4|2"}, html=place)
    page = Page(place.read_text("utf-8"))
    assert {"w", "b", "x", "out"} <= {t for _, _, s in page.marks for t in s["gives"] | s["reads"]}


def test_a_component_writes_it(tmp_path: Path) -> None:
    place = tmp_path / "f.html"
    for _ in range(2):
        i("+ij~i").explain((4, 3), html=place)
    assert "i = 4" in place.read_text("utf-8")
    for other in ("notes", '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'):
        place.write_text(other)
        with pytest.raises(DataError, match="E0768"):
            i("+ij~i").explain(html=place)
        assert place.read_text() == other


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_in_a_browser(tmp_path: Path) -> None:
    page = page_of(PROGRAMS["rows"]).replace("</body>", f"{RUNNING_JAVASCRIPT}</body>")
    (tmp_path / "page.html").write_text(page, "utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    command = [str(BROWSER), *flags, "--dump-dom", f"file://{tmp_path}/page.html"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title is not None, done.stderr[-500:]
    assert title[1] == (
        '{"hits":["formula=1","loops=1","runs=1","flow=1","c=15"],"left":0,"line":"  sum = Σ_j in0[i,j]",'
        '"kept":5,"free":0,"theme":"dark"}'
    )
