"""The state of the REPL, without a terminal: ``ReplSession.feed(text) -> Reply``.

A line is one of:
    - ``name = rand:4x8``, ``name = [[1,2],[3,4]]``, ``name = x.npy``: binds an array;
    - ``name = program``, ``name(x[m,d], ...) = program``: defines a component, or defines it again; answers what it
      takes and gives;
    - ``op f(x) = ...``, ``cd step(x, y) { ... }``: defines a tensor function or a routine (``calls.py``);
    - ``program``: shows its shapes, projections and loops, with the shapes of the arrays at hand where they fit;
    - ``program x y``, ``name(x, f(y))``: applies it; the result is bound to ``_``, or with ``z = ...`` to z, and
      several with ``y, z = ...``;
    - ``:help`` and the like (``colon.py``), also as ``help``, ``?``, ``exit``, ``quit``.

Comments are as in files. A definition whose names come later waits for them (``waiting.py``).
A line that fails is looked at once more for what was meant (``advice.py``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError, Error, ModuleError, Note, counted
from ilang.core.ir.syntax import DISCARD, Module, Name, names_in
from ilang.core.notation.lines import without_comments
from ilang.core.notation.reader import RESERVED
from ilang.core.record import replace
from ilang.core.source import Source
from ilang.icli import respelling, staged
from ilang.icli.calls import Calls, RunRequest, defined_name, missing_values
from ilang.icli.failure import as_error
from ilang.icli.lines import (
    BINDS,
    DEFINES,
    GROUPED,
    LAST,
    WHERE,
    array_in_program,
    function_in_program,
    refuse_open,
    split_words,
)
from ilang.icli.literal import is_array, looks_literal, split_dtype
from ilang.icli.programs import Subject, defined, expressed, named_results
from ilang.icli.readings import asked_array, head_line, literals, reading_of
from ilang.icli.replies import Reply

if TYPE_CHECKING:
    from ilang.codegen.system.npy import Array
    from ilang.icli.waiting import WaitingDefinition

    Results = list[tuple[str, Array]]

ASKED = re.compile(r"\?\??\s*([^\s?/].*)|([\w.]+)\s*\?\??|help\(([\w.]+)\)")
"""A question in the spelling of IPython, or of Python."""
MAGIC = re.compile(r"%%?(\w+.*)|@b?(time\s.*)")
"""A command in the spelling of IPython, or of Julia."""
SAID = {
    **dict.fromkeys(("help", "?"), ":help"),
    **dict.fromkeys(("exit", "quit"), ":quit"),
    **dict.fromkeys(("dir", "locals", "globals", "varinfo", "ls", "who", "whos"), ":names"),
    **dict.fromkeys(("clear", "cls"), ":clear"),
    "history": ":history",
    "reset": ":reset",
}
"""The commands that words of other shells mean, where they name nothing."""

MOST_UNDONE = 100
"""Lines that can be undone."""


class ReplSession:
    """Arrays and definitions by name, and what the last line was about."""

    def __init__(
        self, width: Callable[[], int | None] = lambda: None, colored: bool = False
    ) -> None:
        """Start with nothing; ``width`` gives the columns that arrays are drawn in, or None."""
        self.width = width
        self.colored = colored
        self.arrays: dict[str, Array] = {}
        self.texts: dict[str, str] = {}
        self.calls = Calls(module_of({}))
        self.shapes: staged.Shapes | None = None
        self.last: staged.ProgramAtShapes | None = None
        self.file = ""
        self.drawn = self.drawn_before = 0
        """Arrays of random numbers so far, and before this line: each has other numbers, the same in each session."""
        self.held: dict[str, Array] = {}
        """Results of tensor functions inside the expression of the line."""
        self.remarks: tuple[str | Note, ...] = ()
        """Remarks on these runs."""
        self.waiting: dict[str, WaitingDefinition] = {}
        self._before: list[tuple[dict[str, Array], dict[str, str]]] = []

    def feed(self, text: str) -> Reply:
        """Take one line, which may have several, and answer it; failures are answers too."""
        self.held, self.remarks = {}, ()
        self.drawn_before = self.drawn
        try:
            line = text.strip()
            if not line or line.startswith("#"):
                return Reply(())
            word = without_comments(line).strip().removesuffix("()")
            if asked := ASKED.fullmatch(word):
                line = f":help {asked[1] or asked[2] or asked[3]}"
            elif magic := MAGIC.fullmatch(word):
                line = f":{magic[1] or magic[2]}"
            elif word not in self.names():
                line = SAID.get(word, line)
            before = dict(self.arrays), dict(self.texts)
            try:
                if line.startswith(":"):
                    from ilang.icli.colon import command

                    reply = command(self, line)
                else:
                    reply = self._line(line)
                if self.waiting:
                    from ilang.icli.waiting import settle

                    parts, failed = settle(self)
                    failed = reply.failed or failed
                    reply = replace(reply, parts=(*reply.parts, *parts), failed=failed)
                return reply
            finally:
                if not line.startswith((":undo", ":edit")) and self._changed(before):
                    self._before = [*self._before[1 - MOST_UNDONE :], before]
        except Exception as failure:
            error = as_error(failure)
            for each in (error, *error.others):
                each.help = each.help and respelling.in_repl(each.help)
            return Reply((error,), failed=True)

    def _changed(self, before: tuple[dict[str, Array], dict[str, str]]) -> list[str]:
        """The names that mean something else than before; the last result is none of them."""
        arrays, texts = before
        names = [*arrays, *self.arrays, *texts, *self.texts]
        return [
            name
            for name in dict.fromkeys(names)
            if name != LAST
            and (
                arrays.get(name) is not self.arrays.get(name)
                or texts.get(name) != self.texts.get(name)
            )
        ]

    def undo(self) -> list[str] | None:
        """Let names mean what they meant before the last line that changed some; which, or None where none did.

        What routines have trained stays trained.
        """
        if not self._before:
            return None
        before = self._before.pop()
        changed = self._changed(before)
        self.arrays, texts = before
        self._have(texts)
        return changed

    def _line(self, line: str) -> Reply:
        refuse_open(line)
        code = without_comments(line).rstrip()
        assigned = respelling.assignment(code)
        if assigned is not None:
            line = code = assigned
        try:
            return self._answer(line, code)
        except Error as error:
            from ilang.icli.advice import advised
            from ilang.icli.waiting import waits

            better = advised(self, code, error)
            reply = waits(self, line, code, better)
            if reply is None:
                raise better from None
            return reply

    def _answer(self, line: str, code: str) -> Reply:
        """Answer a line; ``code`` is the same line with its comments blanked."""
        function = defined_name(code)
        if function is not None:
            return self.define({function: line})
        binds, defines = BINDS.match(code), DEFINES.match(code)
        if binds is not None:
            names = [name.strip() for name in binds.group(1).split(",")]
            _refuse_repeated(names)
            return self._bind(names, binds.group(2).strip(), line)
        if defines is not None:
            return self.define({defines.group(1): line})
        grouped = GROUPED.fullmatch(code)
        code = code if grouped is None else grouped[1]
        asked = asked_array(code)
        head = None if asked is None else head_line(self, asked)
        if head is not None:
            return Reply((head,))
        words = split_words(code)
        arrays = literals(self, code, words)
        if arrays is not None:
            return Reply(self._shown([*zip(words, arrays, strict=True)]))
        if code.strip() in self.calls.heads:
            name = code.strip()
            if missing_values(self.calls.heads[name], {}):
                return Reply((self.calls.line(name),))
            self.last = self.calls.alone(name, self.arrays)
            return Reply((respelling.in_repl(self.last.page()),))
        reading = reading_of(self, code)
        if isinstance(reading, RunRequest):
            results, remarks = self.called(reading)
        else:
            subject, arguments = reading
            if arguments is None:
                return staged.library_line(self, code.strip(), subject) or staged.explained(
                    self, subject.graph
                )
            results, remarks = self.apply(subject, arguments), self.remarks
        if results:
            self.arrays[LAST] = results[0][1]
        return Reply((*remarks, *self._shown(results)))

    def _bind(self, names: Sequence[str], value: str, line: str) -> Reply:
        """``name = value``: an array where the value is one or an application, else a definition."""
        (first, *others) = names
        arrays = literals(self, value, [value])
        if arrays is not None:
            return self._keep(names, [(value, each) for each in arrays])
        try:
            reading = reading_of(self, value)
        except Error as error:
            if others:
                raise
            try:
                return self.define({first: line})
            except Error as other:
                if other.code == error.code:
                    raise  # the same trouble, told with the whole line
                raise error from None
        if isinstance(reading, RunRequest):
            return self._keep(names, *self.called(reading))
        subject, arguments = reading
        if arguments is None and not others:
            return self.define({first: line})
        return self._keep(names, self.apply(subject, arguments or []), self.remarks)

    def _keep(
        self, names: Sequence[str], results: Results, remarks: tuple[str | Note, ...] = ()
    ) -> Reply:
        """Bind results to names, in order."""
        from ilang.icli.values import head_text

        if len(results) != len(names):
            outputs, bound = counted(len(results), "output"), counted(len(names), "name")
            help_line = "name every output, in order, as in `y, z = f x`; `_` stands for one that is not needed"
            raise CommandError("E0815", f"{outputs} cannot be bound to {bound}", help=help_line)
        parts: list[str | Note] = [*remarks]
        for name, (_, array) in zip(names, results, strict=True):
            if name == DISCARD and len(names) != 1:
                continue
            if name in RESERVED:
                message = f"`{name}` is a word of the language and cannot name anything"
                help_line = f"another name will do, such as `{name}_`"
                raise ModuleError("E0404", message, help=help_line)
            self.arrays[name] = array
            if self.texts.pop(name, None) is not None:
                self._have(self.texts)
            parts.append(head_text(name, array))
        return Reply(tuple(parts))

    def define(self, texts: dict[str, str]) -> Reply:
        """Add definitions to the growing module, all or none; answer what the last of them takes and gives."""
        kept = {name: text for name, text in self.texts.items() if name not in texts}
        module = self.with_texts(texts)
        calls = Calls(module, self.calls)
        last = list(texts)[-1]
        if last in calls.heads:
            reply = Reply((calls.line(last),))
        elif last in {definition.name for definition in module.definitions}:
            reply = staged.signed(self, defined(module, last).graph)
        else:
            reply = Reply(())  # libraries
        self._have({**kept, **texts}, calls)
        for name in texts:
            self.arrays.pop(name, None)
            self.waiting.pop(name, None)
        return reply

    def with_texts(self, texts: dict[str, str]) -> Module:
        """The module of some definitions, and of those at hand that they do not replace.

        Raises: Error (what is wrong with them).
        """
        kept = {name: text for name, text in self.texts.items() if name not in texts}
        return module_of({**texts, **kept})

    def _have(self, texts: dict[str, str], calls: Calls | None = None) -> None:
        """Other definitions are at hand; ``calls`` are of these."""
        self.calls = calls or Calls(module_of(texts), self.calls)
        self.texts = texts

    def forget(self, names: Sequence[str]) -> None:
        """Drop arrays and definitions. Raises: CommandError E0819 (others use one of these, and stay)."""
        texts = {key: text for key, text in self.texts.items() if key not in names}
        if len(texts) < len(self.texts):
            try:
                self._have(texts)
            except Error as error:
                raise self._still_used(names) or error from None
        for name in names:
            self.arrays.pop(name, None)
            self.waiting.pop(name, None)

    def _still_used(self, names: Sequence[str]) -> CommandError | None:
        """The error for definitions that others use, which would stay without them; None where none does."""
        from ilang.core.notation.files.module import uses_of

        module = self.calls.module
        uses = {
            each.name: used
            for each in (*module.definitions, *module.functions_and_routines())
            if each.name in self.texts and each.name not in names
            if (used := [name.name for name in uses_of(each) if name.name in names])
        }
        if not uses:
            return None
        user, used = min(uses.items())
        help_line = f"drop {user} first, or `:drop {' '.join((*sorted(uses), *names))}`"
        return CommandError("E0819", f"{user} uses {used[0]}", help=help_line)

    def program(self, text: str) -> Subject:
        """The component that a program text is; it may use the definitions."""
        from ilang.core.notation.components.combinator import parse_program

        source, names, module = (
            Source(WHERE, text),
            {**self.texts, **self.arrays},
            self.calls.module,
        )
        try:
            tree = parse_program(source, names)
        except Error as error:
            from ilang.core.notation.files.pieces import program_with_pieces

            tree, pieces = program_with_pieces(source, names, error)
            module = replace(module, definitions=(*module.definitions, *pieces.values()))
        for node in names_in(tree):
            if node.name in self.arrays:
                raise array_in_program(node.span)
            if node.name in self.calls.heads:
                raise function_in_program(node.span)
        if isinstance(tree, Name) and tree.name in self.texts:
            return defined(self.calls.module, tree.name)
        return expressed(tree, module)

    def is_array(self, word: str) -> bool:
        """Whether a word is a bound array or spells one; ``0j~j`` begins like a number, and is a program."""
        if word in self.arrays or word.partition("(")[0] in self.texts:
            return word in self.arrays
        return is_array(word) and not ("~" in word and looks_literal(word))

    def values(self, dtypes: Sequence[str | None], words: Sequence[str]) -> list[Array]:
        """The arrays that words name or spell, given the element types that the program writes."""
        from ilang.icli.arrays import array_of
        from ilang.icli.filled import is_random

        wanted = (*dtypes, *(None for _ in words))
        known = {**self.held, **self.arrays}
        arrays: list[Array] = []
        for place, word in enumerate(words):
            number = place
            if word not in known and is_random(split_dtype(word)[1]):
                number += self.drawn_before
                self.drawn = max(self.drawn, number + 1)
            arrays.append(known[word] if word in known else array_of(word, wanted[place], number))
        return arrays

    def apply(self, subject: Subject, words: Sequence[str]) -> list[tuple[str, Array]]:
        """Run a component on arrays; its outputs by name."""
        arrays = self.values(subject.graph.written_dtypes(), words)
        answer = subject.component()(*arrays, threads="auto")
        self.last = staged.ComponentAtShapes(subject.graph, tuple(array.shape for array in arrays))
        return named_results(subject.graph.output_names(subject.graph.outputs), answer)

    def called(self, call: RunRequest) -> tuple[Results, tuple[str | Note, ...]]:
        """Run a tensor function or a routine: what it gives by name, and remarks."""
        arrays = self.values(call.dtypes(), call.words)
        self.last = self.calls.seen(call, arrays)
        return self.calls.run(call, arrays)

    def names(self) -> frozenset[str]:
        """Everything that has a name."""
        return frozenset((*self.arrays, *self.texts))

    def _shown(self, arrays: Results) -> tuple[str, ...]:
        from ilang.icli.values import array_text

        return tuple(array_text(name, array, self.width()) for name, array in arrays)


def module_of(texts: dict[str, str]) -> Module:
    """A module of definitions; the first one stands on line 1, as it was typed."""
    from ilang.core.notation.files.pieces import parse_with_pieces as parse_module

    if not texts:
        return Module(Source(WHERE, ""), ())
    source = Source(WHERE, "\n".join(texts.values()))
    if any(name.isidentifier() for name in texts):
        return parse_module(source)
    library = parse_module(Source(WHERE, f"{source.text}\n{LAST} = I"))  # a file has a definition
    definitions = tuple(each for each in library.definitions if each.name != LAST)
    return replace(library, source=source, definitions=definitions)


def _refuse_repeated(names: Sequence[str]) -> None:
    """Refuse to bind two outputs to one name."""
    for name in names:
        if name != DISCARD and names.count(name) > 1:
            message = f"`{name}` names an output already"
            raise ModuleError("E0423", message, help="a value has a name of its own")
