"""The colon commands of the REPL: ``:loops``, ``:save``, ..."""

from __future__ import annotations

import time
from collections.abc import Callable

from ilang.core.diagnostic import CommandError, Error
from ilang.core.record import record
from ilang.core.suggestion import did_you_mean, nearest
from ilang.icli.calls import SeenFunction
from ilang.icli.session import ReplSession, Reply, Seen
from ilang.icli.shapes import parse_shape, shape_text, written_shapes

SECONDS = 0.3
"""The time for which ``:time`` measures."""


@record
class Colon:
    """A command: what follows it, what it does, and the function that does it."""

    usage: str
    says: str
    run: Callable[[ReplSession, str], Reply]


def command(session: ReplSession, line: str) -> Reply:
    """Run a colon command; as much of its name as tells it apart will do.

    Raises: CommandError E0817 if there is no such command.
    """
    word, _, rest = line[1:].partition(" ")
    return _named(word).run(session, rest.strip())


def _named(word: str) -> Colon:
    """The command that a word, or the beginning of one, names."""
    name = ALIASES.get(word, word)
    begun = [name] if name in COMMANDS else [known for known in COMMANDS if known.startswith(word)]
    if word and len(begun) == 1:
        return COMMANDS[begun[0]]
    raise CommandError(
        "E0817",
        f"there is no command :{word}",
        help=did_you_mean(word, tuple(COMMANDS), "`:help` lists them", ":{}"),
    )


def _help(session: ReplSession, rest: str) -> Reply:
    from ilang.core.explain.page import table
    from ilang.icli.signs import sign_page, word_page

    page = None
    if rest and rest not in session.names() and rest not in COMMANDS:
        page = sign_page(rest) or (word_page(rest) if rest.isidentifier() else None)
    if page is not None:
        return Reply((page[0],))
    known = any(name.startswith(rest) for name in COMMANDS) or nearest(rest, tuple(COMMANDS))
    if rest in session.names() or (rest.isidentifier() and not known):
        return session.feed(rest)

    usages = {
        name: (f":{name} {each.usage}".rstrip(), each.says) for name, each in COMMANDS.items()
    }
    if rest:
        chosen = _named(rest.removeprefix(":"))
        name = next(name for name, each in COMMANDS.items() if each is chosen)
        short = [f":{alias}" for alias, full in ALIASES.items() if full == name]
        also = [("also", ", ".join(short))] if short else []
        return Reply((table([usages[name], *also], "    "),))
    lines = [
        ("ik*kj~ijk >> +ijk~ij", "explain a program: formula, loops, work"),
        ("x = rand:4x8", "name an array; also [[1,2],[3,4]], x.npy, x.npz:name"),
        ("sums = +ij~i", "define a component; also sums(x[m,n]) = +ij~i"),
        ("op net(x) = ...", "define a tensor function; cd step(x, y) { ... } defines a routine"),
        ("sums x    +ij~i x", "apply one; the result is _, or y with y = sums x"),
        ("x    sums", "show an array; explain a component"),
        *usages.values(),
    ]
    return Reply((table(lines, "    "),))


def _names(session: ReplSession, _rest: str) -> Reply:
    from ilang.icli.values import head_text

    lines = [head_text(name, array) for name, array in session.arrays.items()]
    lines += list(session.texts.values())
    lines += [each.says(name) for name, each in session.waiting.items()]
    return Reply(("\n".join(lines) or "nothing is named yet",))


def _shape(session: ReplSession, rest: str) -> Reply:
    """Shapes by order, of components, or by name, of the inputs of an `op` or `cd`."""
    rows = session.calls.rows
    if rest == "off":
        session.shapes = None
        rows.clear()
    elif rest:
        pairs = written_shapes(rest.split())
        if pairs[0][0]:
            rows.update({name: _rows(name, shape) for name, shape in pairs})
        else:
            session.shapes = tuple(parse_shape(shape) for _, shape in pairs)
    told = [f"{name}={text}" for name, text in rows.items()]
    told += [] if session.shapes is None else [", ".join(map(shape_text, session.shapes))]
    if not told:
        return Reply(("shapes are those of the arrays at hand, else open",))
    return Reply((f"shapes are {'   '.join(told)}",))


def _rows(name: str, shape: str) -> str:
    """The shape of an input by name: ``32|1`` of a tensor function, ``32x64`` of it or of a component.

    Raises: CommandError E0810.
    """
    from ilang.icli.definitions import rows_given, sizes_apart

    rows_given(name, shape)
    return sizes_apart(shape)


def _last(session: ReplSession, rest: str) -> Seen | SeenFunction:
    """The subject of a command: the program that follows it, or the last one.

    Raises: CommandError E0819 if there is neither.
    """
    if rest:
        session.last = _named_program(session, rest)
    if session.last is None:
        raise CommandError("E0819", "there is no program yet", help="type one: +ij~i")
    return session.last


def _named_program(session: ReplSession, text: str) -> Seen | SeenFunction:
    """The program that follows a command, at the shapes of its arrays, or of the arrays at hand."""
    calls = session.calls
    if text in calls.heads:
        return calls.alone(text, session.arrays)
    call = calls.read(text, session.arrays, session.is_array)
    if call is not None:
        return calls.seen(call, session.given(call))
    subject, words = session.read(text)
    if words is None:
        return Seen(subject.graph, session.shapes_at_hand(subject.graph)[0])
    arrays = session.values(subject.written_dtypes(), words)
    return Seen(subject.graph, tuple(array.shape for array in arrays))


def _stage(stage: str) -> Callable[[ReplSession, str], Reply]:
    def show(session: ReplSession, rest: str) -> Reply:
        return Reply((_last(session, rest).stage(stage),))

    return show


def _explain(session: ReplSession, rest: str) -> Reply:
    return Reply((_last(session, rest).page(),))


def _time(session: ReplSession, rest: str) -> Reply:
    run = _timed(session, rest)
    run()
    best, calls, begin = float("inf"), 0, time.perf_counter()
    while time.perf_counter() - begin < SECONDS:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
        calls += 1
    return Reply((f"{_duration(best)} at best of {calls} calls",))


def _timed(session: ReplSession, text: str) -> Callable[[], object]:
    """A function that runs a program on its arrays. Raises: CommandError E0819 (there are none)."""
    call = session.calls.read(text, session.arrays, session.is_array) if text else None
    if call is not None:
        given = session.given(call)
        compiled = session.calls.session(call, given)
        return lambda: compiled(*given)
    subject, words = session.read(text) if text else (None, None)
    if subject is None or words is None:
        raise CommandError("E0819", ":time needs a program and its arrays", help=":time +ij~i x")
    arrays, component = session.values(subject.written_dtypes(), words), subject.component()
    return lambda: component(*arrays)


def _duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if scale <= seconds:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _save(session: ReplSession, rest: str) -> Reply:
    from ilang.codegen.runtime.outputs import FileKind, write_output
    from ilang.core.notation.layout import format_module
    from ilang.core.source import Source

    if not rest:
        raise CommandError("E0819", ":save needs a file", help=":save model.i")
    if not session.texts:
        raise CommandError("E0819", "there is no definition to save", help="make one: sums = +ij~i")
    text = format_module(Source(rest, "\n".join(session.texts.values()) + "\n"))
    kind = FileKind("a file of definitions that are all at hand", lambda path: _has(session, path))
    write_output(rest, kind, lambda stream: stream.write(text.encode()))
    return Reply(
        (f"{_count(len([name for name in session.texts if name.isidentifier()]))} saved to {rest}",)
    )


def _has(session: ReplSession, path: str) -> bool:
    """Whether a file has definitions of names that a session has, and nothing else: no comment between them."""
    from ilang.codegen.runtime.files import read_module
    from ilang.core.notation.layout import format_module
    from ilang.core.source import Source
    from ilang.icli.calls import texts_of

    try:
        module = read_module(path)
    except Error:
        return False
    texts = texts_of(module)
    alone = Source(path, "\n".join(texts.values()) + "\n")
    lines = [format_module(each).split() for each in (module.source, alone)]
    return lines[0] == lines[1] and texts.keys() <= session.texts.keys()


def _load(session: ReplSession, rest: str) -> Reply:
    from ilang.codegen.runtime.files import read_module
    from ilang.icli.calls import texts_of

    if not rest:
        raise CommandError("E0819", ":load needs a file", help=":load model.i")
    module = read_module(rest)
    texts = texts_of(module)
    session.define(texts)
    names = [name for name in texts if name.isidentifier()]
    return Reply((f"{_count(len(names))}: {', '.join(names)}",))


def _count(number: int) -> str:
    return "1 definition" if number == 1 else f"{number} definitions"


def _drop(session: ReplSession, rest: str) -> Reply:
    if not session.forget(rest):
        raise CommandError(
            "E0819", f"nothing is named {rest or '(empty)'}", help=":names lists all"
        )
    return Reply(())


def _quit(_session: ReplSession, _rest: str) -> Reply:
    return Reply((), leaves=True)


PROGRAM = "[PROGRAM [ARRAYS]]"
OF = "of a program, or of the last one"

COMMANDS: dict[str, Colon] = {
    "explain": Colon(PROGRAM, f"the page {OF}", _explain),
    "loops": Colon(PROGRAM, f"the loops {OF}", _stage("loops")),
    "c": Colon(PROGRAM, f"the C {OF}", _stage("c")),
    "shapes": Colon(PROGRAM, f"the tensors and extents {OF}", _stage("shapes")),
    "graph": Colon(PROGRAM, f"the assignments {OF}", _stage("graph")),
    "schedule": Colon(PROGRAM, f"the schedule {OF}", _stage("nests")),
    "time": Colon("PROGRAM ARRAYS", "how long it runs", _time),
    "shape": Colon("[32x64,64x16 | x=32|1 | off]", "the shapes of programs, and of inputs of an op or cd", _shape),
    "names": Colon("", "every array and definition", _names),
    "drop": Colon("NAME", "forget one", _drop),
    "save": Colon("FILE", "write the definitions to a file", _save),
    "load": Colon("FILE", "read definitions from a file", _load),
    "help": Colon("[WORD]", "this page, or a command, a sign or a name; so does ?WORD", _help),
    "quit": Colon("", "leave; so does Ctrl-D", _quit),
}  # fmt: skip

ALIASES = {
    "q": "quit",
    "exit": "quit",
    "h": "help",
    "?": "help",
    "t": "time",
    "l": "loops",
    "s": "shape",
}
