"""The language server: an editor's client on its streams, texts that are being written, places in UTF-16."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pygls", reason="pygls is not installed")

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from ilang.core.diagnostic import Error, NotationError
from ilang.core.library import LIBRARIES
from ilang.icli import server
from ilang.icli.document import Document
from ilang.icli.meanings import Meanings
from ilang.icli.positions import EditorPositions
from ilang.icli.repairs import repairs
from tests.unit.icli.front import ROOT, environment, i

SECONDS = 120
COMMAND = (sys.executable, "-m", "ilang", "lsp")
TEXT = """\
# π and 𝄞: names stand behind characters of two units
use nn, std

norm(x[m,n]) = (I & size)(x)   # no: see below
size = (I | 2) >> ij^.~ij >> +ij~i
rows = ik*kj~ijk >> +ijk~ij
op layer(x[b|n]; hid = 3, slope = 0.5) {
  y = "w" * x + "b" hid
  y *. slope
}
cd step(x, t; lr = 0.1) {
  loss = squared_error(layer(x; hid = 2), t)
  backprop(loss)
  for p in params(loss) { p =- lr *. p.grad }
  return loss
}
"""


class Editor:
    """An editor with one file."""

    def __init__(self, path: Path) -> None:
        self.client = LanguageClient("test", "1")
        self.uri = path.as_uri()
        self.file = lsp.TextDocumentIdentifier(self.uri)
        self.text = ""
        self.version = 0
        self.shown: asyncio.Queue[Any] = asyncio.Queue()
        published = lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS
        self.client.feature(published)(partial(self.shown.put_nowait))

    async def start(self, *encodings: str) -> Any:
        await self.client.start_io(*COMMAND, cwd=ROOT, env=environment())
        general = lsp.GeneralClientCapabilities(
            position_encodings=[lsp.PositionEncodingKind(each) for each in encodings] or None
        )
        about = lsp.InitializeParams(capabilities=lsp.ClientCapabilities(general=general))
        answer = await self.client.initialize_async(about)
        self.client.initialized(lsp.InitializedParams())
        return answer

    async def stop(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()

    def open(self, text: str) -> None:
        self.text = text
        item = lsp.TextDocumentItem(self.uri, "ilang", 0, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def change(self, old: str, new: str) -> None:
        """Write something else in the place of the first such text."""
        start = self.text.index(old)
        where = lsp.Range(self.at(start), self.at(start + len(old)))
        self.text = self.text.replace(old, new, 1)
        self.version += 1
        about = lsp.VersionedTextDocumentIdentifier(self.version, self.uri)
        change = lsp.TextDocumentContentChangePartial(where, new)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(about, [change]))

    def at(self, offset: int) -> lsp.Position:
        before = self.text[:offset]
        line = before.rpartition("\n")[2]
        return lsp.Position(before.count("\n"), len(line.encode("utf-16-le")) // 2)

    def of(self, text: str, inside: int = 0, nth: int = 0) -> dict[str, Any]:
        """The file, and the place of a text in it."""
        start = -1
        for _ in range(nth + 1):
            start = self.text.index(text, start + 1)
        return {"text_document": self.file, "position": self.at(start + inside)}

    def words(self, where: lsp.Range) -> str:
        """The text of a range."""
        places = EditorPositions(self.text)
        ends = (places.offset(each.line, each.character) for each in (where.start, where.end))
        return self.text[slice(*ends)]

    async def errors(self) -> list[Any]:
        told = await self.shown.get()
        assert told.uri == self.uri
        return list(told.diagnostics)


def edited(work: Callable[[Editor], Awaitable[None]], path: Path, *encodings: str) -> None:
    """Have an editor do something."""

    async def run() -> None:
        editor = Editor(path)
        await editor.start(*encodings)
        try:
            await work(editor)
        finally:
            await editor.stop()

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_errors_come_and_go_as_one_types(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        editor.open(TEXT)
        assert await editor.errors() == []
        editor.change("(I & size)(x)   # no: see below", "softmax >> size  # π 𝄞")
        await editor.errors()
        editor.change("+ij~i\n", "+ij~i >> ij~i\n")
        (wrong,) = await editor.errors()
        assert wrong.code == "E0501"
        assert wrong.severity == lsp.DiagnosticSeverity.Error
        assert editor.words(wrong.range) == "ij"
        assert "\nhelp: give the pattern one letter" in wrong.message
        assert [each.message for each in wrong.related_information] == [
            "reads rank 2",
            "gives rank 1",
        ]
        assert [editor.words(each.location.range) for each in wrong.related_information] == [
            "ij",
            "+ij~i",
        ]
        page, _, line = wrong.code_description.href.partition("#L")
        assert (ROOT / "icli/errors.md").as_uri() == page or page.endswith("icli/errors.md")
        heads = (ROOT / "icli/errors.md").read_text("utf-8").splitlines()
        assert heads[int(line) - 1].startswith("## E0501 ")
        editor.change(" >> ij~i\n", "\n")
        assert await editor.errors() == []
        editor.change("size = ", "size = (")
        assert [each.code for each in await editor.errors()] == ["E0109"]
        about = lsp.DidCloseTextDocumentParams(editor.file)
        editor.client.text_document_did_close(about)
        assert await editor.errors() == []

    edited(work, tmp_path / "a.i")


FINE = TEXT.replace("(I & size)(x)   # no: see below", "softmax >> size")


def test_what_stands_at_a_place(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        client = editor.client
        editor.open(FINE)

        async def hover(text: str, inside: int = 0, nth: int = 0) -> str:
            told = await client.text_document_hover_async(
                lsp.HoverParams(**editor.of(text, inside, nth))
            )
            return "" if told is None else str(told.contents.value)

        page = i("explain", "ik*kj~ijk >> +ijk~ij").stdout.partition("\nmore")[0].rstrip()
        assert page.splitlines()[0] in await hover("rows")
        assert "out[i,j] = Σ_k in0[i,j,k]" in await hover("+ijk~ij", 2)
        assert "op layer(x[b|n]; hid = 3, slope = 0.5)" in await hover("layer(x;", 1)
        assert "y: ...,?|...->...,3   value" in await hover("y *.")
        assert "softmax(x) = einx.softmax" in await hover("softmax >> size")
        assert "op squared_error(y[b|c], t[b|c])" in await hover("squared_error", 3)
        assert await hover("# π", 3) == ""

        where = await client.text_document_definition_async(
            lsp.DefinitionParams(**editor.of("size\n", 2))
        )
        assert (where.uri, editor.words(where.range)) == (editor.uri, "size")
        assert where.range.start.line == 4
        where = await client.text_document_definition_async(
            lsp.DefinitionParams(**editor.of("squared_error", 2))
        )
        line = (
            Path(where.uri.removeprefix("file://"))
            .read_text("utf-8")
            .splitlines()[where.range.start.line]
        )
        assert line.startswith("op squared_error(")
        places = await client.text_document_references_async(
            lsp.ReferenceParams(lsp.ReferenceContext(True), **editor.of("lr =", 1))
        )
        assert [editor.words(each.range) for each in places] == ["lr", "lr"]
        marks = await client.text_document_document_highlight_async(
            lsp.DocumentHighlightParams(**editor.of("kj~ijk", 0))
        )
        assert [editor.words(each.range) for each in marks] == ["k"] * 3
        marks = await client.text_document_document_highlight_async(
            lsp.DocumentHighlightParams(**editor.of("hid = 2", 1))
        )
        assert [each.range.start.line for each in marks] == [6, 7, 11]

    edited(work, tmp_path / "a.i")


def test_names_are_renamed(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        client = editor.client
        editor.open(FINE + "two(x) = (size & size)(x)\n")

        async def rename(text: str, new: str, inside: int = 0) -> str:
            params = lsp.RenameParams(new_name=new, **editor.of(text, inside))
            edit = await client.text_document_rename_async(params)
            renamed = editor.text
            places = EditorPositions(editor.text)
            for each in sorted(
                edit.changes[editor.uri],
                key=lambda e: -e.range.start.line * 1000 - e.range.start.character,
            ):
                start, end = (
                    places.offset(p.line, p.character) for p in (each.range.start, each.range.end)
                )
                renamed = renamed[:start] + each.new_text + renamed[end:]
            return renamed

        assert await rename("size = ", "length") == editor.text.replace("size", "length")
        renamed = await rename("hid = 2", "units", 1)
        assert renamed == editor.text.replace("hid", "units")
        assert '"v" * x' in await rename('"w"', "v", 1)
        for text, new in (
            ("size =", "op"),
            ("size =", "2x"),
            ("size =", "rows"),
            ("softmax", "soft"),
        ):
            with pytest.raises(Exception, match="name"):
                await rename(text, new)
        assert (
            await client.text_document_prepare_rename_async(
                lsp.PrepareRenameParams(**editor.of("softmax"))
            )
            is None
        )
        editor.change("(I | 2)", "(I | 2) + size")
        with pytest.raises(Exception, match="the file has mistakes"):
            await rename("size = ", "length")

    edited(work, tmp_path / "a.i")


def test_what_may_be_typed(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        client = editor.client
        editor.open(FINE)

        async def words(after: str) -> dict[str, Any]:
            params = lsp.CompletionParams(**editor.of(after, len(after)))
            return {
                each.label: each for each in await client.text_document_completion_async(params)
            }

        assert list(await words("use nn")) == list(LIBRARIES)
        inside = await words("softmax >> s")
        assert {"size", "rows", "softmax", "matmul", "f32", "einsum", "einx.", "x"} <= inside.keys()
        assert "exp" not in inside
        assert {">=", "&&"} <= (await words("(I | 2) ")).keys()
        assert inside["layer"].detail == "op layer(x[b|n]; hid = 3, slope = 0.5)   tensor function"
        inside = await words("y *. s")
        assert {"x", "hid", "slope", "y", "w", "b", "exp", "linear", "repeat"} <= inside.keys()
        assert "squared_error(" in inside["squared_error"].detail
        assert list(await words("p.g")) == ["grad", "merge", "value"]
        editor.change("rows = ik*kj~ijk >> +ijk~ij", "rows = einx.")
        assert {"sum", "mean", "dot"} <= (await words("einx.")).keys()

        async def head(text: str) -> tuple[str, str | None]:
            params = lsp.SignatureHelpParams(**editor.of(text, len(text)))
            told = await client.text_document_signature_help_async(params)
            if told is None:
                return "", None
            (one,) = told.signatures
            active = told.active_parameter
            return one.label, None if active is None else one.label[
                slice(*one.parameters[active].label)
            ]

        assert await head("layer(x") == ("op layer(x[b|n]; hid = 3, slope = 0.5)", "x[b|n]")
        assert await head("layer(x; hid") == ("op layer(x[b|n]; hid = 3, slope = 0.5)", "hid = 3")
        assert (await head("layer(x; hid = 2), t"))[1] == "t[b|c]"
        editor.change("backprop(loss)", "y = where(x, t, exp(")
        assert await head("where(x, t, ") == ("where(x, y, z)", "z")
        assert await head("exp(") == ("exp(x)", "x")
        assert await head("use nn") == ("", None)

    edited(work, tmp_path / "a.i")


def test_the_whole_file(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        client = editor.client
        editor.open(FINE + "g = nrom >> f32\nh=+ij~i|j:4|i j j'\n")
        shown = await client.text_document_document_symbol_async(
            lsp.DocumentSymbolParams(editor.file)
        )
        assert [(each.name, each.kind.name) for each in shown[:5]] == [
            ("use", "Module"),
            ("norm", "Variable"),
            ("size", "Variable"),
            ("rows", "Variable"),
            ("layer", "Function"),
        ]
        whole = lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0))
        hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(editor.file, whole))
        lines = editor.text.splitlines()
        assert [
            (lines[each.position.line][: each.position.character], each.label) for each in hints
        ] == [
            ("norm(x[m,n])", " -> [m]"),
            ("size", "(in0[i,j]) -> [i]"),
            ("rows", "(in0[i,k], in1[k,j]) -> [i,j]"),
            ("cd step(x, t", ": ?|2"),
            ("h", "(in0[i,j]) -> [i]"),
        ]
        context = lsp.CodeActionContext([])
        (action,) = await client.text_document_code_action_async(
            lsp.CodeActionParams(editor.file, whole, context)
        )
        (edit,) = action.edit.changes[editor.uri]
        assert (action.title, edit.new_text, editor.words(edit.range)) == (
            "Write `norm`",
            "norm",
            "nrom",
        )
        options = lsp.FormattingOptions(2, True)
        params = lsp.DocumentFormattingParams(editor.file, options)
        assert await client.text_document_formatting_async(params) is None
        editor.change("nrom", "norm")
        (edit,) = await client.text_document_formatting_async(params)
        assert editor.words(edit.range).startswith("=")
        assert edit.new_text == " = +ij~i | j:4 | "
        data = (
            await client.text_document_semantic_tokens_full_async(
                lsp.SemanticTokensParams(editor.file)
            )
        ).data
        told: list[tuple[str, str]] = []
        line = unit = 0
        for delta, step, length, kind, _ in zip(*[iter(data)] * 5, strict=True):
            line, unit = line + delta, step + (0 if delta else unit)
            where = lsp.Range(lsp.Position(line, unit), lsp.Position(line, unit + length))
            told.append((editor.words(where), server.SEMANTIC[kind]))
        assert told[0] == (editor.text.splitlines()[0], "comment")
        assert {
            ("norm", "function"),
            ("x", "parameter"),
            ("ijk", "typeParameter"),
            ("loss", "variable"),
            ("op", "keyword"),
            (">>", "operator"),
            ('"w"', "string"),
            ("lr", "parameter"),
        } <= set(told)

    edited(work, tmp_path / "a.i")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_places_in_every_encoding(encoding: str, tmp_path: Path) -> None:
    text = "f = -i~i  # π 𝄞 \u2028 one line\r\n" + 'cd s(x) { ~~("𝄞π" x; y = nrm + x); return y }\n'

    async def work(editor: Editor) -> None:
        editor.open(text)
        (wrong,) = await editor.errors()
        assert wrong.code == "E0401"
        assert wrong.range.start == lsp.Position(1, unit)

    before = 'cd s(x) { ~~("𝄞π" x; y = '
    unit = (
        len(before.encode(f"{encoding}-le" if encoding != "utf-8" else encoding))
        // {"8": 1, "6": 2, "2": 4}[encoding[-1]]
    )
    edited(work, tmp_path / "a.i", encoding)


def test_places_of_random_texts() -> None:
    source = random.Random(1)
    for _ in range(200):
        text = "".join(source.choices("ab\n\rπ𝄞\u2028\x0b ", k=30))
        for encoding in ("utf-8", "utf-16", "utf-32"):
            places = EditorPositions(text, encoding)
            for at in range(len(text) + 1):
                line, unit = places.place(at)
                back = places.offset(line, unit)
                assert back == at or text[back:at] in ("\r", "") or text[at - 1 : at + 1] == "\r\n"
            assert places.offset(10**6, 0) == len(text)
            assert places.offset(0, 10**6) == places.stops[0]


def test_changes_give_the_text_that_they_would_give_in_an_editor() -> None:
    source = random.Random(2)

    async def work() -> None:
        shown = SimpleNamespace(workspace=SimpleNamespace(position_encoding="utf-16"))
        files = server.OpenFiles(shown)
        text = "f = -i~i # π𝄞\r\ng = f\n"
        about = SimpleNamespace(uri="file:///a.i", version=1, text=text)
        server.did_open(files, SimpleNamespace(text_document=about))
        for _ in range(300):
            start, end = sorted(source.choices(range(len(text) + 1), k=2))
            new = "".join(source.choices("f𝄞\n= (", k=source.randrange(4)))
            places = EditorPositions(text)
            ends = [
                SimpleNamespace(line=p.line, character=p.unit)
                for p in map(places.place, (start, end))
            ]
            start, end = (places.offset(p.line, p.character) for p in ends)
            where = SimpleNamespace(start=ends[0], end=ends[1])
            change = SimpleNamespace(range=where, text=new)
            server.did_change(files, SimpleNamespace(text_document=about, content_changes=[change]))
            text = text[:start] + new + text[end:]
            assert files.open[about.uri].document.source.text == text
        whole = SimpleNamespace(text="g = +i~.\n")
        server.did_change(files, SimpleNamespace(text_document=about, content_changes=[whole]))
        assert files.open[about.uri].document.source.text == "g = +i~.\n"
        files.forget(about.uri)

    asyncio.run(work())


def features(text: str, at: int) -> Iterator[Any]:
    """What every feature says at a place of a text."""
    shown = SimpleNamespace(workspace=SimpleNamespace(position_encoding="utf-16"))
    files = server.OpenFiles(shown)
    files.open["file:///a.i"] = opened = server.OpenFile("file:///a.i", text, "utf-16")
    place = lsp.Position(*opened.positions.place(at))
    whole = opened.range(0, len(text))
    context = SimpleNamespace(include_declaration=False)
    about = lsp.TextDocumentIdentifier("file:///a.i")
    params = SimpleNamespace(
        text_document=about, position=place, context=context, range=whole, new_name="zz"
    )
    for name, feature, _ in server.FEATURES:
        if name != lsp.TEXT_DOCUMENT_RENAME:
            yield feature(files, params)
    yield [server.diagnostic(opened, each) for each in opened.document.read[1]]


@pytest.mark.parametrize(
    "path", ["samples/29_transformer.i", "samples/13_attention.i", "samples/training/moons.i"]
)
def test_no_unfinished_text_is_too_much(path: str) -> None:
    whole = (ROOT / path).read_text("utf-8")
    source = random.Random(3)
    for _ in range(12):
        at = source.randrange(len(whole))
        cut = source.choice(["", source.choice("()[]{}\"'~;,=|&#\\\0π")])
        rest = whole[at + source.randrange(3) :] if source.random() < 0.6 else ""
        assert list(features(whole[:at] + cut + rest, at))


@pytest.mark.parametrize(
    "text", ["", "\n", "#", "op", "op f", "cd f(", 'x = "', "use", "use ,", "\ufeff", "f(x) ="]
)
def test_short_texts(text: str) -> None:
    for at in range(len(text) + 1):
        assert list(features(text, at))


def test_a_file_of_a_thousand_lines_is_inferred_once() -> None:
    text = "".join(
        f"fn{n}(x[m,n]) = s{n} >> q{n}\ns{n} = (I & >ij~i) >> ij-i~ij\nq{n} = ^ij~ij\n\n"
        for n in range(12)
    )
    first = Meanings(Document("a.i", text))
    assert list(first.checks()) == [None] * 36
    assert len(first.kept) == 36
    later = Meanings(
        Document("a.i", "# a line\n" + text.replace("q3 = ^ij~ij", "q3 = -ij~ij")), first
    )
    assert list(later.checks()) == [None] * 36
    assert len(later.kept) == 38  # q3, and fn3, which uses it


def test_long_definitions_are_not_inferred() -> None:
    text = "c0 = -i~i\nop a0(x) = x + 1\n"
    text += "".join(f"c{n} = c{n - 1} >> c{n - 1}\n" for n in range(1, 14))
    text += "".join(f"op a{n}(x) = a{n - 1}(a{n - 1}(x))\n" for n in range(1, 14))
    meanings = Meanings(Document("a.i", text))
    known = {name: meanings.inferred(name) is not None for name in ("c2", "c13", "a2", "a13")}
    assert known == {"c2": True, "c13": False, "a2": True, "a13": False}
    assert meanings.page("c13") == "c13 = c12 >> c12"
    assert meanings.page("a13") == "op a13(x) = a12(a12(x))"


def test_messages_that_are_none() -> None:
    """What is no message is passed over, and the next one answered."""

    def message(**more: object) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", **more}).encode()
        return b"Content-Length: %d\r\n\r\n" % len(body) + body

    start = message(
        id=1, method="initialize", params={"capabilities": {}, "processId": None, "rootUri": None}
    )
    bad = b'Content-Length: 9\r\n\r\n{"broken"'
    odd = (
        message(id=2, method="textDocument/hover", params={"no": "place"}),
        message(id=3, method="no/such", params={}),
        message(method="textDocument/didChange", params={"textDocument": {"uri": "file:///not/open.i", "version": 1},
                                                           "contentChanges": [{"text": "x = +i~"}]}),
        message(id=4, method="textDocument/hover",
                params={"textDocument": {"uri": "file:///no.i"}, "position": {"line": 9, "character": 9}}),
    )  # fmt: skip
    end = message(id=5, method="shutdown") + message(method="exit")
    ran = subprocess.run(
        COMMAND,
        input=start + bad + b"".join(odd) + end,
        capture_output=True,
        cwd=ROOT,
        env=environment(),
        timeout=SECONDS,
        check=False,
    )
    answers = [
        json.loads(each.partition(b"\r\n\r\n")[2])
        for each in ran.stdout.split(b"Content-Length: ")[1:]
    ]
    answered = {each["id"]: each for each in answers if each.get("id") is not None}
    assert "result" in answered[1]
    told = [
        each["params"]["message"] for each in answers if each.get("method") == "window/showMessage"
    ]
    assert len(told) == 2
    assert told[1].endswith("Invalid Params")
    assert answered[3]["error"]["code"] == -32601
    assert answered[4]["result"] is None
    assert ran.returncode == 0


def test_a_refused_request_is_an_answer_alone(tmp_path: Path) -> None:
    """No message beside it, and nothing on standard error."""
    said = tmp_path / "said"

    async def work() -> None:
        client = LanguageClient("test", "1")
        shown: list[Any] = []
        client.feature(lsp.WINDOW_SHOW_MESSAGE)(partial(shown.append))
        aside = ("sh", "-c", 'said=$1; shift; exec "$@" 2> "$said"', "sh", str(said))
        await client.start_io(*aside, *COMMAND, cwd=ROOT, env=environment())
        about = lsp.InitializeParams(capabilities=lsp.ClientCapabilities())
        await client.initialize_async(about)
        uri = (tmp_path / "a.i").as_uri()
        item = lsp.TextDocumentItem(uri, "ilang", 0, "size = +ij~i\n")
        client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        where = lsp.TextDocumentIdentifier(uri)
        with pytest.raises(Exception, match="`op` cannot name anything"):
            await client.text_document_rename_async(
                lsp.RenameParams(where, lsp.Position(0, 0), new_name="op")
            )
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()
        assert shown == []

    asyncio.run(asyncio.wait_for(work(), SECONDS))
    assert said.read_bytes() == b""


def test_interrupted() -> None:
    """Ctrl-C ends it, though a read is under way."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        COMMAND, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT, env=environment()
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(b"Content-Length: 4\r\n\r\nnull")
        server.stdin.flush()
        assert server.stdout.read(1) == b"C"  # it answers, so it reads the next message
        server.send_signal(signal.SIGINT)
        assert server.wait(SECONDS) == 130
        *failures, last = server.stderr.read().decode().splitlines()
    assert last == "interrupted"
    assert [each.partition(":")[0] for each in failures] == ["Unable to handle message"]


def test_without_pygls_it_says_what_to_install() -> None:
    said = i("explain", "E0925")
    assert "pip install 'ilang[lsp]'" in said.stdout


def test_repairs() -> None:
    def offered(error: Error) -> list[tuple[str, str, str]]:
        return [(each.title, each.text, each.uses) for each in repairs(error)]

    module = Document("a.i", "op f(x) = sofmax(x)\n")
    (wrong,) = module.read[1]
    assert offered(wrong) == [("Write `softmax`", "softmax", "nn")]
    (wrong,) = Document("a.i", "op f(x) = linear(x; 3)\n").read[1]
    assert offered(wrong) == [("Use the library `nn`", "", "nn")]
    (wrong,) = Document("a.i", "op f(x; n) = x * n\n").read[1]
    assert offered(wrong) == [("Write `*.`", "*.", "")]
    (wrong,) = Document("a.i", "f = ij–ij~ij\n").read[1]
    assert [each[0] for each in offered(wrong)] == ["Write `-`"]
    assert offered(NotationError("E0103", "no place", None, "did you mean `x`?")) == []
