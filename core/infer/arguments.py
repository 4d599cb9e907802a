"""Arguments of a call beside what its head writes of them: the words where their rows do not fit.

Example, of ``squared_error(y[b|c], t[b|c])`` with t: 4|5:
    `squared_error` takes y[b|c] and t[b|c]: c is 2 in y (`linear(x; 2)`, [4|2]) and 5 in t ([4|5])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ilang.core.diagnostic import ShapeError, enumerated, shorten
from ilang.core.infer.conflicts import axis_texts
from ilang.core.ir.functions import AxisNote, RowNote
from ilang.core.ir.graph import Annotation, DefinitionCall
from ilang.core.ir.operation import Noted
from ilang.core.ir.rows import KINDS, MEMORY_ORDER, Known, Row, Shape, closed
from ilang.core.library.places import LONGEST_ARGUMENT
from ilang.core.library.targets import target_error

Note = Noted | Annotation
"""The rows of an argument as a head writes them: of a tensor function, or of a component, which has no rows."""


Unequal = tuple[str, int, str, str]
"""An axis that two arguments have, or that a head writes as a number: its name, whose it is first, both sizes.

The axes that a row variable stands for are one, of several sizes: ``2, 3``.
"""


class Arguments:
    """The arguments of a call: the rows of each so far, and what the head writes of it, by parameter."""

    def __init__(
        self, call: DefinitionCall, shapes: Mapping[int, Shape], notes: Mapping[int, Note]
    ) -> None:
        """``shapes`` has every argument whose rows are asked for, ``notes`` those of which a head says something."""
        self.call = call
        self.shapes = shapes
        self.notes = notes

    def subject(self, parameter: int) -> str:
        """``t is `target` [4|5]``, or, where both have one name, ``t is [4|5]``."""
        name, text = self._name(parameter), self._text(parameter)
        shape = shape_text(self.shapes[parameter])
        return f"{name} is {shape}" if text == name else f"{name} is `{text}` {shape}"

    def misfit(self, parameter: int, run: str) -> ShapeError:
        """The refusal of an argument.

        Args:
            parameter: what does not fit its head, or those of earlier ones.
            run: the argument as the head of the definition that is run writes it, where it is an input without rows.
        """
        counts = [
            (kind, note, row)
            for kind, note, row in _rows(self.notes[parameter], self.shapes[parameter])
            if _differ_in_count(note, row)
        ]
        unequal = None if counts else self._unequal(parameter)
        is_one = unequal is not None and "1" in unequal[2:]
        if is_one or any(kind == "output" for kind, *_ in counts):
            _, _, output = self.shapes[parameter]
            row = f"[{', '.join(axis_texts(output, '...'))}]" if output.axes() else ""
            targets = target_error(self.call, parameter, row, is_one)
            if targets is not None:
                return targets
        if counts:
            return self._wrong_count(parameter, counts, run)
        return self._wrong_size(parameter, unequal)

    def _wrong_count(
        self, parameter: int, counts: Sequence[tuple[str, RowNote, Row]], run: str
    ) -> ShapeError:
        """The refusal of an argument with another number of axes."""
        words = []
        for kind, note, row in counts:
            names = _names(note)
            most = "at least " * (note.variable is not None)
            takes = f"{most}{len(names)} ({', '.join(names)})" if names else "none"
            words.append(f"{_counted(row.count(), kind)} where it takes {takes}")
        message = (
            f"`{self.call.name}` takes {self.call.parameters[parameter]}, "
            f"and {self.subject(parameter)}: {enumerated(words)}"
        )
        name = self._text(parameter)
        name = name if name.isidentifier() else self._name(parameter)
        notes = [note for _, note, _ in _rows(self.notes[parameter], self.shapes[parameter])]
        axes = [axis for note in notes for axis in _names(note)]
        given = sum(row.count() for row in self.shapes[parameter])
        help_line = f"give {name} {_counted(len(axes), '')}{': ' * bool(axes)}{', '.join(axes)}"
        if any(note.variable is not None for note in notes):
            help_line = f"give {name} {_counted(len(axes), '')} or more"
        if run and len(axes) <= given and (given == len(axes) or "more" in help_line):
            rows = self.call.parameters[parameter].partition("[")[2]
            help_line = f"axis 0 is the batch unless the head says otherwise: `{run}[{rows}`"
        return ShapeError("E0512", message, None, help_line)

    def _wrong_size(self, parameter: int, unequal: Unequal | None) -> ShapeError:
        """The refusal of an argument with an axis of another size."""
        if unequal is None:
            subjects = enumerated([self.subject(n) for n in sorted(self.shapes)])
            message = f"`{self.call.name}` takes {enumerated(self.call.parameters)}, and {subjects}"
            return ShapeError("E0510", message, None, "axes of one name are one size in a head")
        axis, first, wanted, given = unequal
        takes = enumerated([self.call.parameters[n] for n in sorted({first, parameter})])
        message = f"`{self.call.name}` takes {takes}"
        if first == parameter:
            sizes = f"{given} where it takes {axis}"
            if not axis.isdigit():
                sizes = f"{axis} is {wanted} and {given}"
            message += f", and {self.subject(parameter)}: {sizes}"
            return ShapeError("E0510", message, None, f"give {self._name(parameter)} that size")
        axis = f"`{axis}`" if axis == "..." else axis
        message += (
            f": {axis} is {wanted} in {self._named(first)} and {given} in {self._named(parameter)}"
        )
        return ShapeError("E0510", message, None, f"give both one {axis}: no axis is repeated here")

    def _unequal(self, parameter: int) -> Unequal | None:
        """The first axis of an argument that has another size than its head, or an argument before it, says."""
        known: dict[str, tuple[str, int]] = {}
        for n in sorted(each for each in self.notes if each <= parameter):
            for kind, note, row in _rows(self.notes[n], self.shapes[n]):
                for axis, size in _sized(note, row):
                    key = axis if axis != "..." else f"{kind} {note.variable}"
                    wanted, first = known.setdefault(key, (size, n))
                    if axis.isdigit():
                        wanted, first = axis, n
                    if n == parameter and wanted != size:
                        return axis, first, wanted, size
        return None

    def _name(self, parameter: int) -> str:
        """The name of a parameter: what stands before its type and its rows."""
        return self.call.parameters[parameter].partition("[")[0].partition(":")[0].strip()

    def _text(self, parameter: int) -> str:
        """The text of an argument; an input of the definition that is run has its name."""
        text = self.call.arguments[parameter] if self.call.arguments else ""
        if not text or text == self.call.parameters[parameter]:
            return self._name(parameter)
        return shorten(" ".join(text.split()), LONGEST_ARGUMENT)

    def _named(self, parameter: int) -> str:
        """``t (`target`, [4|5])``, or ``t ([4|5])``."""
        name, text = self._name(parameter), self._text(parameter)
        shape = shape_text(self.shapes[parameter])
        return f"{name} ({shape})" if text == name else f"{name} (`{text}`, {shape})"


def shape_text(shape: Shape) -> str:
    """A shape as heads write it: ``[b|i->o]``, rows that have no axes left out."""
    batch, inner, output = (", ".join(axis_texts(row, "...")) for row in shape)
    return f"[{batch}{'|' * bool(batch)}{inner}{'->' * bool(inner)}{output}]"


def _rows(note: Note, shape: Shape) -> Iterator[tuple[str, RowNote, Row]]:
    """Each row as a head writes it, and that row; a component has all axes in one, in the order of memory."""
    if isinstance(note, Noted):
        yield from zip(KINDS, note.note.rows, shape, strict=True)
    elif all(row.variable is None for row in shape):
        axes = tuple(AxisNote(each, None, note.span) for each in note.dims or ())
        row = closed([axis for kind in MEMORY_ORDER for axis in shape[kind].axes()])
        yield "", RowNote((), None, axes), row


def _names(note: RowNote) -> list[str]:
    return [str(axis.size) for axis in (*note.leading, *note.trailing)]


def _differ_in_count(note: RowNote, row: Row) -> bool:
    """Whether a row cannot have as many axes as a head writes."""
    wanted, known = len(_names(note)), row.count()
    fewer = known < wanted and row.variable is None
    return fewer or (wanted < known and note.variable is None)


def _sized(note: RowNote, row: Row) -> Iterator[tuple[str, str]]:
    """The axes of a row of a head whose sizes are known; ``...`` for those that a row variable stands for."""
    is_closed = row.variable is None
    leading, trailing = (row.axes(), row.axes()) if is_closed else (row.leading, row.trailing)
    first = zip(note.leading, leading, strict=False)
    last = zip(reversed(note.trailing), reversed(trailing), strict=False)
    for axis, dim in (*first, *reversed([*last])):
        if isinstance(dim, Known) and isinstance(dim.size, int):
            yield str(axis.size), str(dim.size)
    if note.variable is not None and is_closed:
        middle = row.axes()[len(note.leading) : row.count() - len(note.trailing)]
        texts = axis_texts(closed(middle), "")
        if "?" not in texts:
            yield "...", ", ".join(texts) or "no axis"


def _counted(count: int, kind: str) -> str:
    """``2 output axes``, ``no batch axis``, ``3 axes``."""
    kind += " " * bool(kind)
    return f"{count or 'no'} {kind}{'axis' if count < 2 else 'axes'}"
