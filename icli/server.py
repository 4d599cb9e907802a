"""The language server, ``i lsp``: the protocol that editors speak, on standard input and output.

Texts are kept as editors send them, whole or by changes; ``document.py`` and ``meanings.py`` say what is in them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from lsprotocol import types as lsp
from pygls import uris
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from ilang import __version__
from ilang.core.diagnostic import Error, gathered
from ilang.core.library import LIBRARIES
from ilang.core.notation.files.layout import format_module
from ilang.core.notation.files.occurrences import NamedPlace
from ilang.core.notation.functions.tokens import NO_NAMES
from ilang.core.source import Span
from ilang.icli.codes import heading_line
from ilang.icli.document import SAYS, WORD, Document
from ilang.icli.highlight import TOKENS, tokens
from ilang.icli.meanings import Meanings
from ilang.icli.positions import EditorPositions
from ilang.icli.repairs import repairs
from ilang.icli.signs import sign_page, word_page

WAIT = 0.2
"""Seconds without a change before a text is checked."""
SEMANTIC = tuple(
    dict.fromkeys(
        (*(r.semantic for r in TOKENS if r.semantic), "parameter", "variable", "property")
    )
)
OF_RULES = {rule.kind: rule.semantic for rule in TOKENS}
OF_NAMES = {
    "input": "parameter",
    "configuration": "parameter",
    "value": "variable",
    "parameter": "property",
}
COMPLETED = {
    "function": lsp.CompletionItemKind.Function,
    "keyword": lsp.CompletionItemKind.Keyword,
    "member": lsp.CompletionItemKind.Field,
    "module": lsp.CompletionItemKind.Module,
    "operator": lsp.CompletionItemKind.Operator,
    "type": lsp.CompletionItemKind.TypeParameter,
    "variable": lsp.CompletionItemKind.Variable,
}
SYMBOLS = {
    "component": lsp.SymbolKind.Variable,
    "op": lsp.SymbolKind.Function,
    "cd": lsp.SymbolKind.Method,
    "use": lsp.SymbolKind.Module,
}


class RefusedRequest(JsonRpcInvalidParams):  # type: ignore[misc]
    """A request that is refused, with the reason as its answer."""


class OpenFile:
    """A file that is open in an editor: its text, and what is known of it; ``errors`` once it was checked."""

    def __init__(self, uri: str, text: str, encoding: str, earlier: OpenFile | None = None) -> None:
        self.uri = uri
        self.positions = EditorPositions(text, encoding)
        self.document = Document(uris.to_fs_path(uri) or uri, text)
        self.meanings: Meanings = Meanings(
            self.document, None if earlier is None else earlier.meanings
        )
        self.errors: Sequence[Error] = ()

    def offset(self, position: lsp.Position) -> int:
        """The place of a position in the text."""
        return self.positions.offset(position.line, position.character)

    def range(self, start: int, end: int) -> lsp.Range:
        """A range of the text."""
        return lsp.Range(*(lsp.Position(*self.positions.place(at)) for at in (start, end)))

    def of(self, span: Span) -> lsp.Range:
        """The range of a span."""
        return self.range(span.start, span.end)

    def location(self, span: Span) -> lsp.Location | None:
        """The place of a span: in this text, or in the file that has the text of a library."""
        if span.source.name == self.document.source.name:
            return lsp.Location(self.uri, self.of(span))
        library = span.source.name.removesuffix(".i")
        if library not in LIBRARIES:
            return None
        path = str(import_module(f"ilang.core.library.{library}").__file__)
        before = Path(path).read_text("utf-8").partition('TEXT = """\\\n')[0].count("\n") + 1
        place = EditorPositions(span.source.text, self.positions.encoding)
        ends = [
            lsp.Position(before + p.line, p.unit) for p in map(place.place, (span.start, span.end))
        ]
        return lsp.Location(str(uris.from_fs_path(path)), lsp.Range(*ends))


class OpenFiles:
    """The open files of one editor."""

    def __init__(self, server: LanguageServer) -> None:
        self.server = server
        self.open: dict[str, OpenFile] = {}
        self.waiting: dict[str, asyncio.Task[None]] = {}

    def at(self, params: Any) -> tuple[OpenFile, int]:
        """The file and the place that a request is about."""
        file = self.of(params)
        return file, file.offset(params.position)

    def of(self, params: Any) -> OpenFile:
        """The file that a request is about; one that is not open is empty."""
        uri = params.text_document.uri
        return self.open.get(uri) or OpenFile(uri, "", self._encoding())

    def _encoding(self) -> str:
        asked = self.server.workspace.position_encoding
        return str(getattr(asked, "value", asked) or "utf-16")

    def put(self, uri: str, text: str, version: int | None) -> None:
        """A file has this text from now on; it is checked when no change follows."""
        self.open[uri] = OpenFile(uri, text, self._encoding(), self.open.get(uri))
        self.forget(uri)
        self.waiting[uri] = asyncio.ensure_future(self._check(self.open[uri], version))

    def forget(self, uri: str) -> None:
        """End the check of a text that has changed, or is closed."""
        if uri in self.waiting:
            self.waiting.pop(uri).cancel()

    async def _check(self, file: OpenFile, version: int | None) -> None:
        await asyncio.sleep(WAIT)
        errors = list(file.document.read[1])
        for error in file.meanings.checks():
            errors += [] if error is None else [error]
            await asyncio.sleep(0)  # a change or a request comes first
        file.errors = distinct(errors)
        self.publish(file.uri, [diagnostic(file, each) for each in file.errors], version)

    def publish(self, uri: str, diagnostics: list[lsp.Diagnostic], version: int | None) -> None:
        """Show what is wrong with a file."""
        params = lsp.PublishDiagnosticsParams(uri, diagnostics, version)
        self.server.text_document_publish_diagnostics(params)


def distinct(errors: Sequence[Error]) -> Sequence[Error]:
    """Errors and those that they bring, each once."""
    if not errors:
        return ()
    first = gathered(errors)
    return (first, *first.others)


def diagnostic(file: OpenFile, error: Error) -> lsp.Diagnostic:
    """An error as editors show it."""
    places = [each for each in (error.span, *(label.span for label in error.labels)) if each]
    name = file.document.source.name
    first = next((each for each in places if each.source.name == name), None)
    start, end = (0, 0) if first is None else (first.start, max(first.end, first.start + 1))
    related = [(label.text, file.location(label.span)) for label in error.labels if label.text]
    page = Path(__file__).parent / "errors.md"
    address = f"{uris.from_fs_path(str(page))}#L{heading_line(error.code)}"
    return lsp.Diagnostic(
        file.range(start, end),
        "\n".join((error.message, *([f"help: {error.help}"] if error.help else []))),
        lsp.DiagnosticSeverity.Error,
        error.code,
        lsp.CodeDescription(address),
        "i",
        related_information=[
            lsp.DiagnosticRelatedInformation(at, text) for text, at in related if at
        ],
    )


# -- texts -------------------------------------------------------------------------------------------------------------


def did_open(files: OpenFiles, params: lsp.DidOpenTextDocumentParams) -> None:
    """A file is opened."""
    opened = params.text_document
    files.put(opened.uri, opened.text, opened.version)


def did_change(files: OpenFiles, params: lsp.DidChangeTextDocumentParams) -> None:
    """A file changes, whole or in ranges, one after the other."""
    file = files.of(params)
    text = file.document.source.text
    for change in params.content_changes:
        positions = EditorPositions(text, file.positions.encoding)
        changed = getattr(change, "range", None)
        if changed is None:
            text = change.text
            continue
        start, end = (
            positions.offset(at.line, at.character) for at in (changed.start, changed.end)
        )
        text = text[:start] + change.text + text[max(start, end) :]
    files.put(params.text_document.uri, text, params.text_document.version)


def did_close(files: OpenFiles, params: lsp.DidCloseTextDocumentParams) -> None:
    """A file is closed: its errors are shown no longer."""
    uri = params.text_document.uri
    files.forget(uri)
    files.open.pop(uri, None)
    files.publish(uri, [], None)


# -- what stands at a place --------------------------------------------------------------------------------------------


def hover(files: OpenFiles, params: lsp.HoverParams) -> lsp.Hover | None:
    """The page of what is at a place: a definition, an expression, a name, a sign."""
    file, at = files.at(params)
    text, span = _hovered(file, at)
    if not text:
        return None
    shown = lsp.MarkupContent(lsp.MarkupKind.Markdown, f"```ilang\n{text.rstrip()}\n```")
    return lsp.Hover(shown, None if span is None else file.of(span))


def _hovered(file: OpenFile, at: int) -> tuple[str, Span | None]:
    document, meanings = file.document, file.meanings
    named, word = document.named(at), document.word_at(at)
    if named is not None and named.kind in SAYS:
        return meanings.page(named.name), named.span
    if named is not None:
        inside = document.around(at)
        try:
            inferred = None if inside is None else meanings.inferred(inside.name.text())
        except Exception:  # a diagnostic says it
            inferred = None
        shown = "" if inferred is None else inferred.types.get(named.name, "")
        return (
            f"{named.name}: {shown}   {named.kind}" if shown else f"{named.name}   {named.kind}",
            named.span,
        )
    tree = document.expression(at)
    page = None if tree is None else meanings.explained_tree(tree)
    if page is not None and tree is not None:
        return page, tree.span
    sign = next(
        (s for s in (document.code[at : at + 2], document.code[at : at + 1]) if sign_page(s)), ""
    )
    help_page = word_page(word.text()) if word is not None else sign_page(sign)
    return ("", None) if help_page is None else (help_page[0], word)


def completion(files: OpenFiles, params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
    """The words that may stand at a place."""
    file, at = files.at(params)
    words = {each.word: each for each in reversed(list(file.document.completions(at)))}
    return [
        lsp.CompletionItem(each.word, kind=COMPLETED[each.kind], detail=each.says or None)
        for each in reversed(words.values())
    ]


def signature_help(files: OpenFiles, params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
    """The head of what is called at a place."""
    file, at = files.at(params)
    call = file.document.call(at)
    if call is None:
        return None
    parts = [lsp.ParameterInformation(label=part) for part in call.parts]
    return lsp.SignatureHelp(
        [lsp.SignatureInformation(call.head, parameters=parts)], 0, call.active
    )


def definition(files: OpenFiles, params: lsp.DefinitionParams) -> lsp.Location | None:
    """The place that binds the name at a place."""
    file, at = files.at(params)
    named = file.document.named(at)
    return None if named is None else file.location(named.bound)


def references(files: OpenFiles, params: lsp.ReferenceParams) -> list[lsp.Location]:
    """Every place of the name at a place."""
    file, at = files.at(params)
    named = file.document.named(at)
    spans = [] if named is None else file.document.same(named)
    if named is not None and not params.context.include_declaration:
        spans = [each for each in spans if each.start != named.bound.start]
    return [lsp.Location(file.uri, file.of(span)) for span in spans]


def document_highlight(
    files: OpenFiles, params: lsp.DocumentHighlightParams
) -> list[lsp.DocumentHighlight]:
    """Every place of the name at a place, or of the axis in its expression."""
    file, at = files.at(params)
    named = file.document.named(at)
    spans = file.document.letters(at) if named is None else file.document.same(named)
    return [lsp.DocumentHighlight(file.of(span)) for span in spans]


def prepare_rename(files: OpenFiles, params: lsp.PrepareRenameParams) -> lsp.Range | None:
    """The range of the name at a place, if it can be renamed: one of a library cannot."""
    file, at = files.at(params)
    named = file.document.named(at)
    return file.of(named.span) if named is not None and _is_of(file, named) else None


def _is_of(file: OpenFile, named: NamedPlace) -> bool:
    return named.bound.source.name == file.document.source.name


def rename(files: OpenFiles, params: lsp.RenameParams) -> lsp.WorkspaceEdit:
    """The edits that rename the name at a place."""
    file, at = files.at(params)
    document, new = file.document, params.new_name
    named = document.named(at)
    if named is None or not _is_of(file, named):
        raise RefusedRequest("this is no name that the file binds")
    if not WORD.fullmatch(new) or new in NO_NAMES:
        raise RefusedRequest(f"`{new}` cannot name anything")
    if new != named.name and any(each.name == new for each in document.names):
        raise RefusedRequest(f"`{new}` is a name of the file already")
    places = {each.span.start for each in document.names if each.name == named.name}
    words = {m.start() for m in WORD.finditer(document.code) if m[0] == named.name}
    if document.read[1] and words - places:
        raise RefusedRequest("the file has mistakes: a name is renamed where all of it can be read")
    edits = [lsp.TextEdit(file.of(span), new) for span in document.same(named)]
    return lsp.WorkspaceEdit(changes={file.uri: edits})


# -- the whole file ----------------------------------------------------------------------------------------------------


def document_symbol(files: OpenFiles, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    """The definitions of a file."""
    file = files.of(params)
    return [
        lsp.DocumentSymbol(
            each.name.text(), SYMBOLS[each.kind], file.of(each.span), file.of(each.name)
        )
        for each in file.document.outline
    ]


def formatting(files: OpenFiles, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
    """The lines that ``i fmt`` changes; none of a file that it refuses."""
    file = files.of(params)
    text = file.document.source.text
    try:
        tidy = format_module(file.document.source)
    except Error:
        return None
    start = 0
    while start < min(len(text), len(tidy)) and text[start] == tidy[start]:
        start += 1
    end = 0
    while end < min(len(text), len(tidy)) - start and text[-1 - end] == tidy[-1 - end]:
        end += 1
    if start == len(text) == len(tidy):
        return []
    return [lsp.TextEdit(file.range(start, len(text) - end), tidy[start : len(tidy) - end])]


def inlay_hint(files: OpenFiles, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    """The types that are inferred of what stands in a range."""
    file = files.of(params)
    ends = file.offset(params.range.start), file.offset(params.range.end)
    return [
        lsp.InlayHint(
            lsp.Position(*file.positions.place(hint.at)), hint.text, lsp.InlayHintKind.Type
        )
        for hint in file.meanings.hints(*ends)
    ]


def code_action(files: OpenFiles, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """The corrections that the help of errors in a range names."""
    file = files.of(params)
    start, end = file.offset(params.range.start), file.offset(params.range.end)
    actions: list[lsp.CodeAction] = []
    for error in distinct([*file.document.read[1], *file.errors]):
        shown = diagnostic(file, error)
        if error.span is None or error.span.end < start or end < error.span.start:
            continue
        for repair in repairs(error):
            edits = (
                [lsp.TextEdit(file.range(repair.start, repair.end), repair.text)]
                if repair.text
                else []
            )
            if repair.uses and repair.uses not in file.document.libraries:
                edits.append(lsp.TextEdit(file.range(0, 0), f"use {repair.uses}\n"))
            changes = lsp.WorkspaceEdit(changes={file.uri: edits})
            kind = lsp.CodeActionKind.QuickFix
            actions.append(lsp.CodeAction(repair.title, kind, [shown], edit=changes))
    return actions


def semantic_tokens(files: OpenFiles, params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
    """The kind of every token: those of names as they are bound, others as the table of tokens says."""
    file = files.of(params)
    kinds = {each.span.start: OF_NAMES.get(each.kind, "function") for each in file.document.names}
    data: list[int] = []
    before = (0, 0)
    for kind, start, end in _tokens(file):
        semantic = kinds.get(start, OF_RULES.get(kind, ""))
        if not semantic:
            continue
        (line, unit), (_, stop) = file.positions.place(start), file.positions.place(end)
        data += [
            line - before[0],
            unit - before[1] * (line == before[0]),
            stop - unit,
            SEMANTIC.index(semantic),
            0,
        ]
        before = line, unit
    return lsp.SemanticTokens(data)


def _tokens(file: OpenFile) -> Iterator[tuple[str, int, int]]:
    positions = file.positions
    for begin, stop in zip(positions.starts, positions.stops, strict=True):
        for kind, start, end in tokens(positions.text[begin:stop]):
            yield kind, begin + start, begin + end


TEXTS: Mapping[str, Callable[..., None]] = {
    lsp.TEXT_DOCUMENT_DID_OPEN: did_open,
    lsp.TEXT_DOCUMENT_DID_CHANGE: did_change,
    lsp.TEXT_DOCUMENT_DID_CLOSE: did_close,
}
"""Handlers of texts, in place of the library's, which count other characters as ends of lines."""
FEATURES: Sequence[tuple[str, Callable[..., Any], Any]] = (
    (lsp.TEXT_DOCUMENT_HOVER, hover, None),
    (lsp.TEXT_DOCUMENT_COMPLETION, completion, lsp.CompletionOptions(trigger_characters=["."])),
    (lsp.TEXT_DOCUMENT_SIGNATURE_HELP, signature_help, lsp.SignatureHelpOptions(["(", ",", ";"])),
    (lsp.TEXT_DOCUMENT_DEFINITION, definition, None),
    (lsp.TEXT_DOCUMENT_REFERENCES, references, None),
    (lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, document_highlight, None),
    (lsp.TEXT_DOCUMENT_PREPARE_RENAME, prepare_rename, None),
    (lsp.TEXT_DOCUMENT_RENAME, rename, lsp.RenameOptions(prepare_provider=True)),
    (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, document_symbol, None),
    (lsp.TEXT_DOCUMENT_FORMATTING, formatting, None),
    (lsp.TEXT_DOCUMENT_INLAY_HINT, inlay_hint, None),
    (
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        code_action,
        lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix]),
    ),
    (
        lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL,
        semantic_tokens,
        lsp.SemanticTokensLegend(list(SEMANTIC), []),
    ),
)


class Server(LanguageServer):  # type: ignore[misc]
    """A server that answers a refused request, and shows no message about it beside the answer."""

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Show an error that no answer has."""
        if not isinstance(error, RefusedRequest):
            super().report_server_error(error, source)


class FailureLog(logging.StreamHandler[Any]):
    """Failures on standard error, a line each; refused requests and tracebacks only with ``I_DEBUG=1``."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of a failure."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and os.environ.get("I_DEBUG") != "1":
            if isinstance(error, RefusedRequest):
                return
            record.msg, record.args = "%s: %s", (record.getMessage(), error)
            record.exc_info = record.exc_text = None
        super().emit(record)


class Requests:
    """The bytes of an editor, up to their end or to Ctrl-C; a separate thread reads, since nothing ends a read."""

    def __init__(self) -> None:
        read, self.write = os.pipe()
        self.stream: BinaryIO = os.fdopen(read, "rb")
        self.is_interrupted = False
        threading.Thread(target=self._copy, daemon=True).start()

    def _copy(self) -> None:
        try:
            while data := os.read(sys.stdin.fileno(), 1 << 16):
                while data:
                    data = data[os.write(self.write, data) :]
        except OSError:  # the server has left
            return
        self._end()

    def _end(self) -> None:
        write, self.write = self.write, -1  # no thread closes a file that is another one by now
        with suppress(OSError):
            os.close(write)

    def interrupt(self, *_: Any) -> None:
        """End the requests."""
        self.is_interrupted = True
        self._end()


def serve() -> None:
    """Answer an editor until it leaves.

    Raises: KeyboardInterrupt (Ctrl-C).
    """
    server = Server("i", __version__)
    files = OpenFiles(server)
    for name, handler in TEXTS.items():
        server.protocol.fm.add_builtin_feature(name, partial(handler, files))
    for name, handler, options in FEATURES:
        server.feature(name, options)(partial(handler, files))
    logging.getLogger("pygls").addHandler(FailureLog(sys.stderr))
    requests = Requests()
    before = signal.signal(signal.SIGINT, requests.interrupt)
    try:
        answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")  # the library closes it
        server.start_io(requests.stream, answers)
    finally:
        signal.signal(signal.SIGINT, before)
    if requests.is_interrupted:
        raise KeyboardInterrupt
