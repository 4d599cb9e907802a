"""The colon commands of the REPL: ``:loops``, ``:save``, ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ilang.core.diagnostic import CommandError, Error
from ilang.core.names import Names
from ilang.core.record import record
from ilang.core.suggestion import did_you_mean, nearest
from ilang.icli.calls import RunRequest
from ilang.icli.files import ARRAY_FILES
from ilang.icli.lines import LAST, WHERE, split_words
from ilang.icli.readings import read, reading_of
from ilang.icli.replies import Reply
from ilang.icli.saving import counted_definitions, no_array, save, words_of
from ilang.icli.shapes import parse_shape, shape_text, written_shapes
from ilang.icli.staged import WHY, WRITTEN, ComponentAtShapes, ProgramAtShapes

if TYPE_CHECKING:
    from ilang.codegen.session.stored import Arrays
    from ilang.core.explain.explanation import Explanation
    from ilang.icli.programs import Subject
    from ilang.icli.session import ReplSession

WHOLE = "/* `i build` and `i explain --emit c` write what is around: checks, the workspace, what this calls */"
TUNING_SECONDS = 10.0
"""The time in which schedules are timed."""
WIDTH = 80
"""Columns of a picture where no terminal has a width."""


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
    name, rest = _named(word), rest.strip()
    chosen = COMMANDS[name]
    if rest and not chosen.usage and chosen.run is not _quit:
        message = f"`{rest}` is one too many: :{name} takes nothing"
        raise CommandError("E0806", message, help=ALONE.get(name, f":{name}"))
    return chosen.run(session, rest)


def _named(word: str) -> str:
    """The name of the command that a word, or the beginning of one, means."""
    name = ALIASES.get(word, word)
    begun = [name] if name in COMMANDS else [known for known in COMMANDS if known.startswith(word)]
    if word and len(begun) == 1:
        return begun[0]
    listed = f"there are :{', :'.join(begun if word and begun else COMMANDS)}"
    elsewhere = ELSEWHERE.get("!" if word.startswith("!") else word, "")
    hint = elsewhere or did_you_mean(word, (*COMMANDS, *ALIASES), listed, ":{}")
    raise CommandError("E0817", f"there is no command :{word}", help=hint)


def _help(session: ReplSession, rest: str) -> Reply:
    from ilang.core.explain.page import table
    from ilang.icli.codes import answer, is_code
    from ilang.icli.signs import WORD, near, sign_page, word_page

    page = None
    if rest and rest not in session.names() and rest not in COMMANDS:
        page = sign_page(rest) or (word_page(rest) if WORD.fullmatch(rest) else None)
        page = answer(rest) if is_code(rest) else page
    if page is not None:
        return Reply((page[0],))
    known = any(name.startswith(rest) for name in COMMANDS) or nearest(rest, tuple(COMMANDS))
    if rest in session.names():
        return session.feed(rest)
    if WORD.fullmatch(rest) and not known:  # letters of a program, or nothing
        reply = session.feed(rest)
        if " " not in rest and not any(
            isinstance(each, Error) and each.code == "E0401" for each in reply.parts
        ):
            return reply
        hint = near(rest, ":help", (*session.names(), *COMMANDS))
        raise CommandError("E0817", f"there is no help on {rest}", help=hint)

    usages = {
        name: (f":{name} {each.usage}".rstrip(), each.says) for name, each in COMMANDS.items()
    }
    if rest:
        name = _named(rest.removeprefix(":"))
        short = [f":{alias}" for alias, full in ALIASES.items() if full == name]
        also = [("also", ", ".join(short))] if short else []
        return Reply((table([usages[name], *also], "    "),))
    lines = [
        ("ik*kj~ijk >> +ijk~ij", "explain a program: formula, loops, work"),
        ("x = rand:4x8", "name an array: [[1,2],[3,4]], zeros(2,3), x.npy"),
        ("sums = +ij~i", "define a component; or sums(x[m,n]) = +ij~i"),
        ("op net(x) = ...", "define a tensor function; cd begins a routine"),
        ("sums x    +ij~i x", "apply one; the result is _, or y: y = sums x"),
        ("sums x + 1    x[0] * 2", "compute with arrays as NumPy does"),
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
    from ilang.icli.definitions import checked_rows

    rows = session.calls.rows
    if rest == "off":
        session.shapes = None
        rows.clear()
    elif rest:
        pairs = written_shapes(rest.split())
        if pairs[0][0]:
            rows.update({name: checked_rows(name, shape) for name, shape in pairs})
        else:
            session.shapes = tuple(parse_shape(shape) for _, shape in pairs)
    listed = [f"{name}={text}" for name, text in rows.items()]
    listed += [] if session.shapes is None else [", ".join(map(shape_text, session.shapes))]
    if not listed:
        return Reply(("shapes are those of the arrays at hand, else open",))
    return Reply((f"shapes are {'   '.join(listed)}",))


def _last(session: ReplSession, rest: str) -> ProgramAtShapes:
    """The subject of a command: the program that follows it, or the last one.

    Raises: CommandError E0819 if there is neither.
    """
    if rest:
        session.last = _named_program(session, rest)
    if session.last is None:
        raise CommandError("E0819", "there is no program yet", help="type one: +ij~i")
    return session.last


def _named_program(session: ReplSession, text: str) -> ProgramAtShapes:
    """The program that follows a command, at the shapes of its arrays, or of the arrays at hand."""
    calls = session.calls
    if text in calls.heads:
        return calls.alone(text, session.arrays)
    reading = reading_of(session, text)
    if isinstance(reading, RunRequest):
        return calls.seen(reading, session.values(reading.dtypes(), reading.words))
    subject, words = reading
    if words is None:
        from ilang.icli.staged import page_at_hand

        page_at_hand(session, subject.graph)  # at the shapes of the arrays at hand where they fit
        assert session.last is not None
        return session.last
    arrays = _given(session, subject, words)
    return ComponentAtShapes(subject.graph, tuple(array.shape for array in arrays))


def _given(session: ReplSession, subject: Subject, words: Sequence[str]) -> list[Any]:
    """The arrays that a component is applied to. Raises: DataError E0701 (another number of them)."""
    from ilang.codegen.call.arguments import check_shape_count

    check_shape_count(subject.graph, len(words), "array")
    return session.values(subject.graph.written_dtypes(), words)


def _stage(stage: str) -> Callable[[ReplSession, str], Reply]:
    def show(session: ReplSession, rest: str) -> Reply:
        if stage == "shapes" and rest in session.arrays:
            return session.feed(rest)
        return Reply((_last(session, rest).text(stage),))

    return show


def _loops(session: ReplSession, rest: str) -> Reply:
    from ilang.core.explain.first_page import loops_page

    last = _last(session, rest)
    page = last.explanation() if isinstance(last, ComponentAtShapes) else last.explanation().program
    text = loops_page(page, session.width() or WIDTH)
    return Reply((text.rpartition("\nmore  ")[0].rstrip(),))


def _c(session: ReplSession, rest: str) -> Reply:
    """The C of the kernels: what computes, without the library, the checks and the workspace around it."""
    from ilang.codegen.targets.c import emit_kernels
    from ilang.core.pipeline import lower

    return Reply((emit_kernels(lower(_last(session, rest).shaped())), WHOLE))


def _grad(session: ReplSession, rest: str) -> Reply:
    """The gradient, as a definition where the language has words for it."""
    from ilang.core.explain.assignments import gradient_text
    from ilang.core.transform.reverse import gradient
    from ilang.icli.definitions import head_of

    last = _last(session, rest)
    if not isinstance(last, ComponentAtShapes):
        message = f"{last.name} is an op or a cd, and :grad is of components"
        help_line = "backprop(loss) in a cd asks for gradients"
        name, inputs = last.name, [each.name for each in head_of(last.function).tensors]
        if len(inputs) == 1 and name not in {each.name for each in session.calls.module.routines}:
            help_line = f"`cd g(x) {{ t = track(x); loss = mean({name}(t)); backprop(loss); return t.grad }}`"
        raise CommandError("E0819", message, help=help_line)
    forward = last.shaped()
    return Reply((gradient_text(gradient(forward, range(len(forward.inputs)))),))


def _explain(session: ReplSession, rest: str) -> Reply:
    return Reply((_last(session, rest).page(),))


def _time(session: ReplSession, rest: str) -> Reply:
    from ilang.icli.timing import SECONDS, best_time, timing_text

    run, page, lasting = _timed(session, rest)
    before = [kept[path].copy() for kept, path in lasting]
    try:
        seconds, calls = best_time(run, SECONDS)
    finally:  # what is timed trains nothing
        for (kept, path), values in zip(lasting, before, strict=True):
            kept[path] = values
    rows = (*page.inputs, *page.outputs)
    dtype = "f64" if any(row.dtype == "f64" for row in rows) else "f32"
    return Reply((timing_text(seconds, calls, page.execution.cost, dtype),))


def _timed(
    session: ReplSession, text: str
) -> tuple[Callable[[], object], Explanation, list[tuple[Arrays, str]]]:
    """A function that runs a program on its arrays, its page, and what lasts from run to run.

    Raises: CommandError E0819 (there are no arrays).
    """
    from ilang.core.pipeline import explain

    alone = not text or text in session.calls.heads
    reading = (None, None) if alone else reading_of(session, text)
    if isinstance(reading, RunRequest):
        given = session.values(reading.dtypes(), reading.words)
        compiled, seen = session.calls.session(reading, given), session.calls.seen(reading, given)
        page = reading.function.explain(seen.shapes, reading.config).program
        lasting = [(kept, path) for kept in (compiled.parameters, compiled.state) for path in kept]
        return lambda: compiled(*given), page, lasting
    subject, words = reading
    if subject is None or words is None:
        help_line = f":time {text or '+ij~i'} x"
        raise CommandError("E0819", ":time needs a program and its arrays", help=help_line)
    arrays, component = _given(session, subject, words), subject.component()
    page = explain(subject.graph, tuple(array.shape for array in arrays))
    return lambda: component(*arrays, threads="auto"), page, []


def _tune(session: ReplSession, rest: str) -> Reply:
    """The fastest of the schedules that are timed in a few seconds."""
    from ilang.codegen.components.scheduled_text import scheduled_text
    from ilang.codegen.components.tuning import component
    from ilang.core.machine import CPU
    from ilang.core.notation.components.printer import print_tree
    from ilang.core.source import Source
    from ilang.icli.commands.tune import ScheduleSearch

    name = rest.split("(", maxsplit=1)[0].split(" ", maxsplit=1)[0]
    if name in session.calls.heads:
        message = f"{name} is an op or a cd, and :tune is of components"
        raise CommandError("E0819", message, help=f":time {name} x says how long it runs")
    subject, words = read(session, rest) if rest else (None, None)
    if subject is None or words is None:
        help_line = f":tune {rest or '+ij~i'} x"
        raise CommandError("E0819", ":tune needs a component and its arrays", help=help_line)
    arrays = _given(session, subject, words)
    shapes = [array.shape for array in arrays]
    name = Names(session.texts).fresh("tuned")
    lines = (*session.texts.values(), f"{name} = {print_tree(subject.tree)}\n")
    source = Source(WHERE, "\n".join(lines))
    program = component(source.name, source.text, name)
    task = {"name": source.name, "target": "c", "definition": name, "shapes": shapes}
    search = ScheduleSearch(task, scheduled_text(source, program, shapes), lambda _: None)
    search.compare(program, shapes, TUNING_SECONDS)
    return Reply((search.result(CPU),))


def _plot(session: ReplSession, rest: str) -> Reply:
    """A picture of an array, or of the last result; into a file where one is named."""
    from ilang.codegen.system.outputs import write_output
    from ilang.icli.plot import PICTURE, plot_svg, plot_text

    name, place, *more = [*split_words(rest or LAST), ""]
    if more and more != [""]:
        raise CommandError("E0806", f"`{more[0]}` is one too many", help=":plot x out.svg")
    if name == LAST and LAST not in session.arrays:
        raise CommandError("E0819", "there is no result yet", help=":plot x, or :plot x out.svg")
    if name in session.texts:
        message = f"`{name}` is a definition, and :plot draws an array"
        raise CommandError("E0820", message, help=f"y = {name} x, then :plot y")
    if not session.is_array(name):
        raise no_array(session, name)
    (array,) = session.values([], [name])
    if not place:
        return Reply((plot_text(name, array, session.width() or WIDTH, session.colored),))
    if not place.endswith(".svg"):
        raise CommandError("E0812", f"{place} must end in .svg", help=f":plot {name} out.svg")
    drawn = plot_svg(name, array).encode()
    write_output(place, PICTURE, lambda stream: stream.write(drawn))
    return Reply((f"{name} drawn in {place}",))


def _edit(session: ReplSession, rest: str) -> Reply:
    """A definition changed in an editor, as if it was typed anew."""
    import click

    if rest not in session.texts:
        known = [name for name in session.texts if name.isidentifier()]
        hint = did_you_mean(rest, known, "define it first: sums = +ij~i")
        if rest in session.arrays:
            message = f"`{rest}` is an array, and :edit changes a definition"
            raise CommandError("E0819", message, help=f"bind it anew: {rest} = [[1,2],[3,4]]")
        if rest:
            raise CommandError("E0819", f"no definition is named {rest}", help=hint)
        message = ":edit needs a definition" if known else "there is no definition to edit"
        raise CommandError("E0819", message, help=f":edit {known[-1]}" if known else hint)
    try:
        text = click.edit(session.texts[rest] + "\n", extension=".i")
    except click.ClickException as trouble:
        message = f"the editor did not run: {trouble.format_message()}"
        raise CommandError("E0831", message, help="EDITOR=vi i repl names one") from None
    if text is None or text.strip() == session.texts[rest].strip():
        return Reply((f"{rest} is as it was",))
    return session.feed(text.strip())


def _undo(session: ReplSession, _rest: str) -> Reply:
    changed = session.undo()
    if changed is None:
        raise CommandError("E0819", "there is nothing to undo", help=":names lists what there is")
    return Reply((f"undone: {', '.join(changed)}",))


def _load(session: ReplSession, rest: str) -> Reply:
    from ilang.codegen.system.files import read_module
    from ilang.icli.calls import texts_of

    rest = " ".join(words_of(rest)) or session.file
    if not rest:
        raise CommandError("E0819", ":load needs a file", help=":load model.i")
    if rest.endswith(ARRAY_FILES):
        message = f"{rest} has arrays, and :load reads definitions"
        raise CommandError("E0819", message, help=f"bind an array to a name: `x = {rest}`")
    module = read_module(rest)
    session.file = rest
    texts = texts_of(module)
    session.define(texts)
    names = ", ".join(name for name in texts if name.isidentifier())
    return Reply((f"{counted_definitions(texts)}: {names}",))


def _drop(session: ReplSession, rest: str) -> Reply:
    known = {*session.names(), *session.waiting}
    names = [rest] if rest in known else rest.replace(",", " ").split()
    for name in names or [rest]:
        if name not in known:
            hint = did_you_mean(name, sorted(session.names()), ":names lists all", ":drop {}")
            message = f"nothing is named {name}" if name else ":drop needs a name"
            raise CommandError("E0819", message, help=hint)
    session.forget(names)
    return Reply(())


def _quit(_session: ReplSession, _rest: str) -> Reply:
    return Reply((), leaves=True)


PROGRAM = "[PROGRAM [ARRAYS]]"
OF = "of a program, or the last"

COMMANDS: dict[str, Colon] = {
    "explain": Colon(PROGRAM, f"the page {OF}", _explain),
    "loops": Colon(PROGRAM, f"the loops {OF}", _loops),
    "c": Colon(PROGRAM, f"the C {OF}", _c),
    "grad": Colon(PROGRAM, f"the gradient {OF}", _grad),
    "shapes": Colon(PROGRAM, f"tensors and extents {OF}", _stage("shapes")),
    "graph": Colon(PROGRAM, f"the assignments {OF}", _stage("graph")),
    "schedule": Colon(PROGRAM, f"the schedule {OF}", _stage(WRITTEN)),
    "why": Colon(PROGRAM, f"why: prices of loops {OF}", _stage(WHY)),
    "time": Colon("PROGRAM ARRAYS", "how long it runs, and its share of this machine", _time),
    "tune": Colon("PROGRAM ARRAYS", "the fastest of other schedules in ten seconds", _tune),
    "shape": Colon("[SHAPES | off]", "shapes: 32x64,64x9 of programs, x=32|1 of an op", _shape),
    "names": Colon("", "every array and definition", _names),
    "drop": Colon("NAME...", "forget these", _drop),
    "plot": Colon("[ARRAY [out.svg]]", "draw an array: a line, or a heat map", _plot),
    "edit": Colon("NAME", "change a definition in $EDITOR", _edit),
    "undo": Colon("", "take back what the last line did to names", _undo),
    "save": Colon("FILE [NAMES]", "write definitions, or arrays: :save y.npy y", save),
    "load": Colon("[FILE]", "read definitions, from the last file again", _load),
    "help": Colon("[WORD]", "this page, or a WORD of `:help words`; or ?WORD", _help),
    "quit": Colon("", "leave; so does Ctrl-D", _quit),
}  # fmt: skip

ALIASES = {
    "q": "quit",
    "exit": "quit",
    "h": "help",
    "?": "help",
    "doc": "help",
    "i": "help",
    "info": "help",
    "t": "time",
    "timeit": "time",
    "l": "loops",
    "s": "shape",
    "type": "shapes",
    "ls": "names",
    "who": "names",
    "whos": "names",
    "browse": "names",
    "del": "drop",
    "delete": "drop",
    "unset": "drop",
    "asm": "c",
    "r": "load",
    "reload": "load",
    "run": "load",
}
"""Other words for commands, most of them from other shells."""

ALONE = {
    "undo": "`:undo` takes back what the last line did; `:drop NAME` forgets a name",
    "names": "a name alone shows what it is: `x`",
}
"""The help for words after commands that take none."""

ELSEWHERE = {
    "test": "`i test FILE` in a terminal runs the examples in its comments",
    "check": "`i check FILE` in a terminal; a definition that is typed is checked at once",
    "set": "there are no settings: `:shape 32x64` gives shapes, `:time PROGRAM ARRAYS` times",
    "clear": "Ctrl-L clears the screen; `:drop NAME` forgets a name, `:undo` takes the last line back",
    "reset": "`:drop NAME` forgets a name; `:quit` and `i repl` begin with nothing",
    "history": "the arrow up brings back the line before, Ctrl-R searches",
    "!": "commands of the system are typed in another terminal",
    "cd": "paths begin in the folder where `i repl` was started",
    "print": "a name alone shows its array: `x`",
    "show": "a name alone shows its array: `x`",
}
"""The help for commands of other shells that the REPL has not."""
