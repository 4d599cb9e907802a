"""Module files: named programs, one definition a line.

A definition is wired by combinators, or written over the names of its inputs (``application.py``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ilang.core.diagnostic import Error, Label, ModuleError, gathered, keep, place, visible
from ilang.core.ir import syntax
from ilang.core.library import LIBRARIES
from ilang.core.notation.advice import ADVISED
from ilang.core.notation.components.arity import Wires, wires_of_all
from ilang.core.notation.components.combinator import read_program
from ilang.core.notation.components.heads import read_parameters
from ilang.core.notation.index.lookahead import is_over_names
from ilang.core.notation.lines import (
    BEGINS_FUNCTION,
    BYTE_ORDER_MARK,
    collected,
    logical_lines,
    without_comments,
)
from ilang.core.notation.naming import refuse_reserved
from ilang.core.notation.reader import BLANKS, LATER, WORD, Reader, Token
from ilang.core.source import Source, Span

if TYPE_CHECKING:
    from ilang.core.ir.functions import Function, Routine
    from ilang.core.ir.functions import Head as FunctionHead

Head = tuple[str, Span, tuple[syntax.NamedInput, ...] | None]
"""Name of a definition, where it stands, and its inputs, if they are named."""
Begun = tuple[Reader, str, "FunctionHead"]
"""A tensor function or a routine whose body follows: its first word, and its head."""
NAMES_INPUTS = re.compile(r"^\s*[A-Za-z_]\w*\s*\([^()~]*\)\s*=(?![=>])", re.MULTILINE | re.ASCII)
"""A line on which a definition with named inputs begins; no index expression has one."""
BEGINS_USE = re.compile(r"use[ \t]+[A-Za-z_]", re.ASCII)
"""The beginning of a line that names libraries."""
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
"""A character that no file has: a control character, and a carriage return without a line feed."""
UNDOTTED = re.compile(r"\s*(?<![*/])(\*\*|[*/])(?![*./])\s*")
"""An operator that other languages have element by element; tensor functions write it with a dot."""
MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
SESSION_HELP = "`i run` and `i train` run it, `i build` writes it as C, in Python `m.session(...)` keeps what it has"


def decode_module(data: bytes, name: str) -> Source:
    """The text of a file; bytes that are not UTF-8 text are refused with their line and place."""
    if data.startswith(MARKS):
        message = f"{visible(name)} is UTF-16 or UTF-32, from line 1, byte 1 on"
        raise ModuleError("E0409", message, None, "save it as UTF-8")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _refuse_bytes(data, name, error.start)
    source = Source(name, text.removeprefix(BYTE_ORDER_MARK))
    _refuse_controls(source)
    return source


def _refuse_bytes(data: bytes, name: str, at: int) -> Source:
    before = data[:at]
    line = before.count(b"\n") + 1
    byte = at - (before.rfind(b"\n") + 1) + 1
    source = Source(name, data.decode("utf-8", "surrogateescape"))
    start = len(before.decode("utf-8"))
    message = f"byte 0x{data[at]:02x} at line {line}, byte {byte} is not UTF-8"
    raise ModuleError("E0409", message, Span(source, start, start + 1), "save the file as UTF-8")


def _refuse_controls(source: Source) -> None:
    """Refuse control characters other than tab, line feed, and carriage return before line feed."""
    control = CONTROL.search(source.text)
    if control is None:
        return
    c, span = control.group(), Span(source, control.start(), control.start() + 1)
    line = span.line_number()
    if c == "\r":
        message = f"line {line} holds a carriage return without a line feed"
        raise ModuleError("E0409", message, span, "end lines with a line feed")
    message = f"character 0x{ord(c):02x} on line {line} is a control character"
    raise ModuleError("E0409", message, span, "a file is plain text")


def parse_module(source: Source) -> syntax.Module:
    """The definitions of a file."""
    return read_module(source, None)


def text_module(text: str, name: str) -> syntax.Module | None:
    """The definitions of a text, one of which names its inputs; None of another text."""
    return parse_module(Source(name, text)) if names_inputs(text) else None


def names_inputs(text: str) -> bool:
    """Whether a text holds definitions, one of which names its inputs: ``f(x) = ...``."""
    return NAMES_INPUTS.search(without_comments(text)) is not None


def read_module(
    source: Source, trace: list[list[Token]] | None, implied: Sequence[str] = ()
) -> syntax.Module:
    """The definitions of a file; ``trace`` receives the tokens of each, in order where nothing is wrong.

    Libraries that are ``implied`` are used without a line ``use``.
    """
    module, refused = readable_module(source, trace, implied)
    if refused:
        raise gathered(sorted(refused, key=place))
    return module


def readable_module(
    source: Source, trace: list[list[Token]] | None = None, implied: Sequence[str] = ()
) -> tuple[syntax.Module, list[Error]]:
    """The definitions of a file that can be read, and what is wrong with the file; otherwise as ``read_module``.

    Raises:
        Error: what is wrong with the file as a whole: E0405, E0409, a line ``use``.
    """
    _refuse_controls(source)
    text = without_comments(source.text)
    readers: list[Reader] = []
    uses: list[Reader] = []
    lines = [Span(source, start, end) for start, end in logical_lines(text)]
    for start, end in ((line.start, line.end) for line in lines):
        tokens: list[Token] | None = None if trace is None else []
        is_use = BEGINS_USE.match(text, start, end) is not None
        (uses if is_use else readers).append(Reader(source, start, end, text, tokens))
        if trace is not None and tokens is not None:
            trace.append(tokens)
    if not readers:
        message = f"{source.name} holds no definition"
        help_line = "a definition is `name = program`: `total = +ij~i`"
        raise ModuleError("E0405", message, Span(source, 0, 0), help_line)
    refused: list[Error] = []
    heads, begun, names = _heads(readers, refused)
    if uses or implied:
        from ilang.core.notation.files.libraries import used_libraries

        libraries = [*implied, *(name for reader in uses for name in used_libraries(reader))]
        _add_libraries(libraries, (heads, begun, names), refused)
    functions, routines = _functions(begun, names, refused) if begun else ((), ())
    definitions, others = _components(heads, names, refused)
    components = {name for _, (name, *_) in heads}
    kinds = {head.name: kind for _, kind, head in begun if head.name not in components}
    refused += _wired_functions([*definitions, *others], kinds)
    refused += _misused(source, (definitions, others), begun, (*functions, *routines), names)
    refused = _first_of_blocks(refused, lines)
    for tokens in trace or ():  # the heads of all statements of a block are read first
        tokens.sort()
    return syntax.Module(source, tuple(definitions), functions, routines), refused


def _first_of_blocks(refused: list[Error], lines: list[Span]) -> list[Error]:
    """Errors without those of lines that are indented below a wrong line: they are its body, in another notation."""

    def within(error: Error, line: Span) -> bool:
        at = error.span
        return at is not None and at.source is line.source and line.start <= at.start <= line.end

    indent, is_wrong = 0, False
    for line in lines:
        if line.column() <= indent or not indent:
            indent, is_wrong = line.column(), any(within(error, line) for error in refused)
        elif is_wrong:
            refused = [error for error in refused if not within(error, line)]
    return refused


def _add_libraries(
    libraries: Sequence[str],
    known: tuple[list[tuple[Reader, Head]], list[Begun], dict[str, Span]],
    refused: list[Error],
) -> None:
    """Add the heads of what is used of libraries to those of a file.

    Raises:
        ModuleError: E0406, E0413, E0414.
    """
    from ilang.core.notation.files.libraries import needed_parts, words_of

    heads, begun, names = known
    wired, called = (
        {word for reader in readers for word in words_of(reader.text[reader.pos : reader.end])}
        for readers in ([reader for reader, _ in heads], [reader for reader, *_ in begun])
    )
    parts = needed_parts(libraries, wired, called, names)
    texts = {part.source.name: without_comments(part.source.text) for part in parts}
    for is_wired in (True, False):
        readers = [
            Reader(part.source, part.start, part.end, texts[part.source.name], None)
            for part in parts
            if part.wired is is_wired
        ]
        more_heads, more_begun, more_names = _heads(readers, refused)
        heads += more_heads
        begun += more_begun
        names.update(more_names)


def _components(
    heads: Sequence[tuple[Reader, Head]], names: dict[str, Span], refused: list[Error]
) -> tuple[list[syntax.Definition], list[syntax.Definition]]:
    """The components, then those of which a part is wrong; what is wrong goes to ``refused``."""
    definitions: list[syntax.Definition] = []
    others: list[syntax.Definition] = []
    for reader, (name, span, parameters) in heads:
        wrong: list[Error] = []
        try:
            body = _body(reader, name, parameters, names, wrong)
        except Error as error:
            keep(refused, _by_names(error, reader, span.start, parameters))
            continue
        if body is not None:
            if isinstance(body, syntax.ElementKernel):
                from ilang.core.notation.kernel import with_ranks

                body = with_ranks(body, parameters)
            whole = syntax.Definition(name, parameters, body, reader.span(span.start))
            (others if wrong else definitions).append(whole)
        refused += [_by_names(error, reader, span.start, parameters) for error in wrong]
    return definitions, others


def _by_names(
    error: Error, reader: Reader, start: int, parameters: Sequence[syntax.NamedInput] | None
) -> Error:
    """The same error; where a tensor function may compute what is written by the names of inputs, with that as help."""
    from ilang.core.notation.files.libraries import words_of

    text = reader.text[start : reader.end].strip()
    head, _, body = text.partition("=")
    inputs = {each.name for each in parameters or ()}
    if error.code not in ADVISED or "\n" in text or not inputs.intersection(words_of(body)):
        return error
    if (error.help or "").startswith("`use ") and _is_readable(text, ("std",)):
        return error
    function = f"op {head.strip()} = " + UNDOTTED.sub(r" \1. ", body.strip().replace("^", "**"))
    for library, use in (((), ""), (("std",), ", after a line `use std`")):
        if _is_readable(function, library):
            return error.with_help(f"to compute with inputs by name, write `{function}`{use}")
    return error


def _is_readable(text: str, libraries: Sequence[str]) -> bool:
    """Whether nothing is wrong with a file that has this text, after it has used some libraries."""
    with suppress(Error):
        return not readable_module(Source("<help>", text), implied=libraries)[1]
    return False


def _functions(
    begun: list[Begun], names: dict[str, Span], refused: list[Error]
) -> tuple[tuple[Function, ...], tuple[Routine, ...]]:
    """The tensor functions and the routines; what is wrong with them goes to ``refused``."""
    from ilang.core.ir.functions import Function
    from ilang.core.notation.functions.definitions import read_definition
    from ilang.core.notation.functions.tokens import Context

    read = collected(begun, lambda each: read_definition(*each, Context(names)), refused)
    functions = tuple(each for each in read if isinstance(each, Function))
    return functions, tuple(each for each in read if not isinstance(each, Function))


def _wired_functions(definitions: list[syntax.Definition], kinds: dict[str, str]) -> list[Error]:
    """The errors for components that use tensor functions or routines."""
    refused: list[Error] = []
    for definition in definitions if kinds else ():
        for node in uses_of(definition):
            if node.name not in kinds:
                continue
            kind = "tensor function" if kinds[node.name] == "op" else "routine"
            message = f"`{node.name}` is a {kind}, and a component is wired of components"
            help_line = f"make the definition that uses it an `op`, too: `op {definition.name}(x) = {node.name}(x)`"
            if kinds[node.name] == "cd":
                help_line = "routines are called by routines: `cd step(x) { ... }`"
            refused.append(ModuleError("E0440", message, node.span, help_line))
    return refused


def _misused(
    source: Source,
    wired: tuple[list[syntax.Definition], list[syntax.Definition]],
    begun: list[Begun],
    functions: Sequence[Function | Routine],
    names: dict[str, Span],
) -> list[Error]:
    """Errors in how definitions use each other: a circle, or else applications and calls that do not fit.

    ``wired`` are the components, then those in which something else is wrong: what these give is not known.
    """
    definitions, others = wired
    try:
        _refuse_cycles(definitions, names)
        _refuse_cycles(functions, names)
    except ModuleError as error:
        return [error]
    bodies = [each.body for each in (*definitions, *others) if syntax.over_names(each.body)]
    if not bodies and not functions:
        return []
    known = wires_of_all({each.name: each for each in definitions})
    refused: list[Error] = []
    if bodies:
        from ilang.core.notation.components.misapplied import misapplied

        refused += [error for body in bodies for error in misapplied(body, known)]
    if functions:
        borrowed = {each.name for each in definitions if each.span.source is not source}
        refused += _misused_functions(functions, begun, borrowed, known, names)
    return refused


def _misused_functions(
    functions: Sequence[Function | Routine],
    begun: list[Begun],
    borrowed: set[str],
    known: Mapping[str, Wires],
    names: dict[str, Span],
) -> list[Error]:
    """Errors in tensor functions and routines; of ``borrowed`` components a primitive of the same name is meant."""
    from ilang.core.ir.primitives import PRIMITIVES
    from ilang.core.notation.functions.environment import File
    from ilang.core.notation.functions.misused import misused

    heads = {word: {h.name: h for _, kind, h in begun if kind == word} for word in LATER}
    hidden = (borrowed & PRIMITIVES.keys()) - heads["op"].keys()
    called = {name: span for name, span in names.items() if name not in hidden}
    refused: list[Error] = []
    for text in dict.fromkeys(each.span.source for each in functions):
        # a tensor may have the name of a definition of another text
        in_text = [each for each in functions if each.span.source is text]
        taken = {name: span for name, span in names.items() if span.source is text}
        refused += misused(in_text, File(called, taken, heads["op"], heads["cd"], known))
    return refused


def _heads(
    readers: list[Reader], refused: list[Error]
) -> tuple[list[tuple[Reader, Head]], list[Begun], dict[str, Span]]:
    """The heads of programs, and of tensor functions and routines, and where names are defined.

    Lines without a name go to ``refused``.

    The name that a refused line most likely defines counts, so that its users are not refused as well.
    """
    heads: list[tuple[Reader, Head]] = []
    begun: list[Begun] = []
    names: dict[str, Span] = {}
    for reader in readers:
        start = reader.pos
        function = reader.matches(BEGINS_FUNCTION, start)
        start = start if function is None else function.end() - 1
        try:
            if function is None:
                name, span, _ = head = _head(reader)
                heads.append((reader, head))
            else:
                begun.append(_begun(reader))
                name, span = begun[-1][2].name, reader.span(start, reader.past(WORD, start))
        except Error as error:
            refused.append(error)
            stop = reader.past(WORD, start)
            names.setdefault(reader.text[start:stop], reader.span(start, stop))
            continue
        if name in names:
            labels = (Label(span, "again here"), Label(names[name], "first here"))
            message, help_line = f"`{name}` is defined twice", "give one of them another name"
            refused.append(ModuleError("E0402", message, span, help_line, labels))
        else:
            names[name] = span
    return heads, begun, names


def _begun(reader: Reader) -> Begun:
    from ilang.core.notation.functions.definitions import read_head

    return (reader, *read_head(reader))


def _body(
    reader: Reader,
    name: str,
    parameters: tuple[syntax.NamedInput, ...] | None,
    names: dict[str, Span],
    refused: list[Error],
) -> syntax.Tree | None:
    """The tree of a definition. A body over names is what can be read of it; what is wrong goes to ``refused``."""
    if not reader.skip():
        help_line = "a definition is `name = program`: `total = +ij~i`"
        raise reader.unexpected("E0108", f"the program of `{name}`", help_line)
    if is_over_names(reader, names):
        from ilang.core.notation.components.application import read_body

        return read_body(reader, names, parameters or (), refused)
    try:
        return read_program(reader, names)
    except ModuleError as error:
        word = None if error.span is None else error.span.text()
        if error.code != "E0401" or word not in {each.name for each in parameters or ()}:
            raise
        message = f"`{word}` is an input, and combinators join components"
        help_line = f"`I` is the inputs: `(I & f)`; their names are for `g({word})`, or a block, `{{ {word} }}`"
        raise ModuleError("E0401", message, error.span, help_line) from None


def _head(reader: Reader) -> Head:
    """``name(parameters) =``."""
    span = reader.take_name()
    if span is None:
        raise _no_definition(reader)
    name = span.text()
    follows = reader.skip()
    if follows not in ("(", "=") or reader.at("=="):
        reader.pos = span.start
        raise _no_definition(reader)
    parameters = read_parameters(reader) if follows == "(" else None
    if reader.skip() != "=":
        reader.pos = span.start
        raise _no_definition(reader)
    refuse_reserved(name, span)
    reader.take(reader.pos + 1, left=True, right=True)
    return name, span, parameters


def _no_definition(reader: Reader) -> ModuleError:
    line = reader.span(reader.pos, reader.end)
    first = line.text().partition("\n")[0].rstrip(BLANKS)
    span = reader.span(reader.pos, reader.pos + len(first))
    message = "a line of a file is `name = program`, and this one is not"
    help_line = "begin with a name and `=`: `total = +ij~i`; a comment begins with `#`"
    close = first.partition(" ")[0].rstrip("=(")
    if "~" in first and "=" not in first.replace("==", "").replace("!=", ""):
        help_line = f"give it a name: `total = {first}`" if len(first) < 60 else "give it a name"
    elif close in ("def", "fn", "fun", "func", "function"):
        help_line = "a tensor function is `op f(x) = x + 1`, a routine `cd step(x) { ... }`"
    elif close in ("use", "include", "import", "from"):
        named = [each for each in LIBRARIES if re.search(rf"\b{each}\b", first)]
        help_line = f"`use {named[0] if named else 'nn'}` makes the definitions of a library known"
    elif close == "let":
        help_line = "there is no keyword before the name"
    return ModuleError("E0406", message, span, help_line)


def _refuse_cycles(
    definitions: Sequence[syntax.Definition | Function | Routine], names: dict[str, Span]
) -> None:
    """Refuse definitions that need themselves, with the whole circle named."""
    uses: dict[str, tuple[syntax.Name, ...]] = {}
    for each in definitions:
        uses[each.name] = uses_of(each)
    done: set[str] = set()
    for root in uses:
        path: dict[str, None] = {}
        stack: list[tuple[str, int]] = [(root, 0)] if root not in done else []
        while stack:
            name, nth = stack.pop()
            if nth == len(uses[name]):
                path.pop(name, None)
                done.add(name)
                continue
            path[name] = None
            stack.append((name, nth + 1))
            used = uses[name][nth]
            if used.name not in uses:  # refused already
                continue
            if used.name in path:
                raise _cycle([*path][[*path].index(used.name) :], used, names)
            if used.name not in done:
                stack.append((used.name, 0))


def _cycle(circle: list[str], last: syntax.Name, names: dict[str, Span]) -> ModuleError:
    shown = [*circle, circle[0]] if len(circle) < 10 else [*circle[:8], "…", circle[0]]
    message = f"`{circle[0]}` is defined by itself: {' -> '.join(shown)}"
    labels = (Label(names[circle[0]], "needs itself"), Label(last.span, "here"))
    help_line = "leave out one of these uses"
    if len(circle) == 1:
        help_line = (
            "a definition does not call itself: in an `op`, `repeat(x; n in 3) { ... }` is a loop; "
            f"give it another name, where {circle[0]} is to be that of a library"
        )
    return ModuleError("E0403", message, names[circle[0]], help_line, labels)


def uses_of(definition: syntax.Definition | Function | Routine) -> tuple[syntax.Name, ...]:
    """The names a definition uses, each once; not what a tensor function or a routine binds itself."""
    if isinstance(definition, syntax.Definition):
        used = list(syntax.names_in(definition.body))
    else:
        from ilang.core.ir.functions import Called, Reference, bound_names, nodes_within

        bound, used = bound_names(definition), []
        for part in nodes_within(definition):
            if isinstance(part, Reference) and part.name not in bound:
                used.append(syntax.Name(part.name, part.span))
            elif isinstance(part, Called) and not isinstance(part.component, Reference):
                used += syntax.names_in(part.component)
    uses: dict[str, syntax.Name] = {}
    for name in used:
        uses.setdefault(name.name, name)
    return tuple(uses.values())


def only_export(module: syntax.Module) -> syntax.Definition:
    """The one definition that nothing else uses: what a text of definitions is.

    Raises:
        ModuleError: E0430, E0441.
    """
    exported = exports(module)
    if not exported:
        raise no_component(module)
    first, *others = exported
    if not others:
        return first
    names = ", ".join(f"`{d.name}`" for d in (first, *others[:20]))
    message = f"the text is to be one component, and nothing uses {len(others) + 1} of its definitions: {names}"
    labels = (Label(first.span, "one"), Label(others[0].span, "another"))
    help_line = "use all but one of them in others, or write them in a file and `load` it"
    raise ModuleError("E0430", message, others[0].span, help_line, labels)


def no_component(module: syntax.Module, name: str | None = None) -> ModuleError:
    """The error for a file without a component of its own, or for a name that is none, where one is wanted."""
    heads = {each.name: each.head for each in module.functions_and_routines()}
    if name is not None:
        is_function = any(name == each.name for each in module.functions)
        kind = "tensor function" if is_function else "routine"
        message = f"`{name}` is a {kind}, and a component is wanted here"
        return ModuleError("E0441", message, heads[name].span, SESSION_HELP)
    first = min(heads.values(), key=lambda head: head.span.start)
    definitions = [d for d in module.definitions if d.span.source.name == module.source.name]
    if definitions:
        message = f"tensor functions use every component of {module.source.name}"
        help_line = f"name one: `--def {definitions[0].name}`"
        return ModuleError("E0441", message, first.span, help_line)
    message = f"{module.source.name} holds tensor functions and routines alone, and no component"
    return ModuleError("E0441", message, first.span, SESSION_HELP)


def exports(module: syntax.Module) -> tuple[syntax.Definition, ...]:
    """The definitions that nothing else uses: what a build makes."""
    every = (*module.definitions, *module.functions_and_routines())
    used = {name.name for definition in every for name in uses_of(definition)}
    return tuple(d for d in module.definitions if d.name not in used)
