"""Repeat what stands under ellipses: how often follows from the ranks of tensors, and from sizes given as tuples.

Example:
    in:   b (s [r])... c -> b (s)... c, of rank 4, r=4
    out:  b (s_0 [r_0]) (s_1 [r_1]) c -> b (s_0) (s_1) c, r_0=4, r_1=4

The repetitions of an axis are the same wherever it stands, ellipsis by ellipsis from the outside; so are those of an
ellipsis that is written once. The rank of a tensor is a sum of such counts, of which one unknown at a time is found.
An ellipsis inside a composition whose count nothing gives stands for one axis: how it is divided changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.core.diagnostic import Label, ShapeError, counted
from ilang.core.einx_ops import EINX_OPS
from ilang.core.infer.unionfind import UnionFind
from ilang.core.ir import einx
from ilang.core.names import LETTERS, Names
from ilang.core.record import record, replace
from ilang.core.source import Span
from ilang.core.walks import left_unsettled

UNMARKED = str.maketrans("", "", "[]")
"""Takes brackets away: where they stand is no difference between axes."""
Monomial = tuple[int, ...]
"""A product of counts, by number, in order."""


@record
class RepeatedForm:
    """A form without ellipses; ``sizes`` of its axes, each by the name that it has now.

    ``counts`` are lines that say how often each ellipsis repeats, and what gives that.
    ``names`` has the repetitions of every axis as it was written, and how many ellipses are around it.
    """

    inputs: tuple[einx.Expression, ...]
    outputs: tuple[einx.Expression, ...]
    sizes: dict[str, einx.Parameter]
    counts: tuple[str, ...]
    names: dict[str, tuple[dict[tuple[int, ...], str], int]]

    def written(self) -> dict[str, int]:
        """The sizes as numbers."""
        sizes = {}
        for name, parameter in self.sizes.items():
            assert isinstance(parameter.value, int)
            sizes[name] = parameter.value
        return sizes


def repeat(form: einx.Form, ranks: Sequence[int | None], names: Sequence[str]) -> RepeatedForm:
    """Repeat what stands under the ellipses of a form.

    Args:
        form: the operation.
        ranks: of its inputs, None where it is not known.
        names: what messages call them.

    Raises:
        ShapeError: E0503 (a tensor of another rank), E0540 to E0542 (counts).
    """
    counts = _Counts(form)
    counts.take_parameters(form.parameters)
    counts.take_ranks(form.inputs, ranks, names)
    return _Repetitions(form, counts).run()


class _Counts:
    """The counts of the ellipses of a form, by number; those that must be the same have one.

    An ellipsis is known by its ``place`` in the text. The path of an axis has the counts of the ellipses around it, and
    is the same wherever the axis stands. ``known`` says how often an ellipsis repeats, what gives that, and where.
    """

    def __init__(self, form: einx.Form) -> None:
        self.form = form
        self.same = UnionFind(0)
        self.ellipses: dict[int, einx.Repetition] = {}
        self.known: dict[int, tuple[int, str, Span]] = {}
        self._by_place: dict[int, int] = {}
        self._paths: dict[str, tuple[tuple[int, ...], einx.Axis]] = {}
        self.places = [place for each in form.expressions() for place in einx.places(each)]
        for place in self.places:
            path = tuple(map(self._number, place.around))
            if isinstance(place.leaf, einx.Axis):
                self._join(place.leaf, path)

    def _number(self, ellipsis: einx.Repetition) -> int:
        if ellipsis.place not in self._by_place:
            number = self._by_place[ellipsis.place] = self.same.add()
            self.ellipses[number] = ellipsis
        return self._by_place[ellipsis.place]

    def find(self, number: int) -> int:
        """The number that stands for all that are the same."""
        return self.same.find(number)

    def of(self, ellipsis: einx.Repetition) -> int:
        """The number of the count of an ellipsis."""
        return self.find(self._number(ellipsis))

    def path(self, name: str) -> tuple[int, ...]:
        """The counts around an axis, the outermost first."""
        return self._paths[name][0]

    def _join(self, axis: einx.Axis, path: tuple[int, ...]) -> None:
        """The repetitions of an axis are the same wherever it stands. Raises ShapeError E0541."""
        known, first = self._paths.setdefault(axis.name, (path, axis))
        if len(known) != len(path):
            says = f"axis {axis.name}" if axis.name != einx.HIDDEN else "`...`"
            labels = [
                Label(item.span, f"repeated by {len(around)}" if around else "not repeated")
                for item, around in ((first, known), (axis, path))
            ]
            message = f"{says} is repeated in one place and not in another"
            if known and path:
                message = f"{says} is repeated by {len(known)} ellipses in one place and by {len(path)} in another"
            help_line = f"write `{axis.name}...` wherever the axis stands, or name the repetitions"
            raise ShapeError("E0541", message, axis.span, help_line, labels)
        for one, other in zip(known, path, strict=True):
            self.same.union(one, other)

    def take_parameters(self, parameters: Sequence[einx.Parameter]) -> None:
        """Sizes that are tuples say how often an axis is repeated.

        Raises:
            ShapeError: E0541 (of an axis that is not repeated so deep), E0542 (ragged, or two counts).
        """
        for parameter in parameters:
            path, value = self.path(parameter.name), parameter.value
            lengths = _lengths(parameter, value)
            if len(path) < len(lengths):
                name = parameter.name
                message = f"{name} is given as {value!r}, and axis {name} is not repeated"
                if path:
                    message = (
                        f"{name} is given {len(lengths)} tuples deep, and has {len(path)} ellipses"
                    )
                help_line = f"write a number, `{name}=4`, or repeat the axis: `{name}...`"
                labels = [Label(self._paths[name][1].span, "this axis")]
                raise ShapeError("E0541", message, parameter.span, help_line, labels)
            for number, length in zip(path, lengths, strict=False):
                self._give(self.find(number), length, f"{parameter.name}={value!r}", parameter.span)

    def _give(self, number: int, times: int, because: str, span: Span) -> None:
        before = self.known.setdefault(number, (times, because, span))
        if before[0] != times:
            text = einx.item_text(self.ellipses[number])
            message = f"`{text}` stands for {before[0]} repetitions ({before[1]}) and for {times} ({because})"
            labels = [Label(before[2], str(before[0])), Label(span, str(times))]
            labels += [Label(ellipsis.span, "") for ellipsis in self._alike(number)]
            help_line = "axes of one name are repeated equally often wherever they stand"
            raise ShapeError("E0542", message, self.ellipses[number].span, help_line, labels)

    def _alike(self, number: int) -> Iterator[einx.Repetition]:
        return (e for n, e in self.ellipses.items() if self.find(n) == number)

    def take_ranks(
        self, inputs: Sequence[einx.Expression], ranks: Sequence[int | None], names: Sequence[str]
    ) -> None:
        """The rank of each tensor is the number of its dimensions.

        Raises:
            ShapeError: E0503 (another rank), E0540 (a count that nothing gives), E0542 (two counts).
        """
        pending = [
            (given, rank, name)
            for given, rank, name in zip(inputs, ranks, names, strict=True)
            if rank is not None
        ]
        for given, rank, name in left_unsettled(pending, lambda each: self._settle(*each)):
            opened = [item for item in _rooted(given.items) if self.of(item) not in self.known]
            texts = " and ".join(f"`{einx.item_text(item)}`" for item in opened)
            message = f"{name} has rank {rank}, and nothing says how it is divided among {texts}"
            inner = next((axis for axis in _axes(opened) if axis.name != einx.HIDDEN), None)
            help_line = (
                f"give the sizes of one: `{inner.name}=(2, 3)`" if inner else "name its axes"
            )
            labels = [Label(item.span, "") for item in opened]
            raise ShapeError("E0540", message, opened[0].span, help_line, labels)

    def _settle(self, given: einx.Expression, rank: int, name: str) -> bool:
        """Whether the equation of one tensor is settled; one unknown count is found."""
        total = self._width(given.items)
        sure = total.pop((), 0)
        unknown = {number for monomial in total for number in monomial}
        if rank < sure or (not unknown and rank != sure):
            raise self._misfit(given, rank, sure, name, bool(unknown))
        if len(unknown) != 1 or any(len(monomial) > 1 for monomial in total):
            return not unknown
        ((monomial, factor),) = total.items()
        if (rank - sure) % factor:
            raise self._misfit(given, rank, sure + factor * ((rank - sure) // factor), name, False)
        text = einx.expression_text(given)
        because = f"{name} has rank {rank}, and `{text}` {counted(sure, 'dimension')} beside it"
        self._give(monomial[0], (rank - sure) // factor, because, given.span)
        return True

    def _width(self, items: Sequence[einx.Item]) -> dict[Monomial, int]:
        """The number of dimensions of items: a number for each product of counts that are not known yet."""
        total: dict[Monomial, int] = {}
        for item in items:
            if isinstance(item, einx.Repetition):
                number = self.of(item)
                times = self.known.get(number)
                for monomial, factor in self._width(item.items).items():
                    held = monomial if times else tuple(sorted((*monomial, number)))
                    total[held] = total.get(held, 0) + factor * (times[0] if times else 1)
            elif isinstance(item, einx.Bracket):
                for monomial, factor in self._width(item.items).items():
                    total[monomial] = total.get(monomial, 0) + factor
            else:
                total[()] = total.get((), 0) + 1
        return total

    def _misfit(
        self, given: einx.Expression, rank: int, wanted: int, name: str, more: bool
    ) -> ShapeError:
        text = einx.expression_text(given)
        takes = f"at least {wanted}" if more else f"{wanted}"
        message = f"{name} has rank {rank}, but `{text}` has rank {takes}"
        labels = [Label(given.span, f"rank {takes}")]
        help_line = f"write an axis for each dimension of {name}, or `...` for those in between"
        for item in _rooted(given.items):
            if self.of(item) in self.known:
                times, because, span = self.known[self.of(item)]
                message += f": `{einx.item_text(item)}` stands for {counted(times, 'repetition')} ({because})"
                labels.append(Label(span, because))
                break
        return ShapeError("E0503", message, given.span, help_line, labels)


def _axes(items: Sequence[einx.Item]) -> Iterator[einx.Axis]:
    for item in items:
        if isinstance(item, einx.Axis):
            yield item
        yield from _axes(einx.inside(item))


def _lengths(parameter: einx.Parameter, value: einx.Sizes) -> list[int]:
    """The lengths of nested tuples, the outermost first. Raises ShapeError E0542."""
    if not isinstance(value, tuple):
        return []
    inner = [_lengths(parameter, each) for each in value]
    if any(each != inner[0] for each in inner):
        message = f"{parameter.name} is given as {value!r}, whose parts differ in length"
        raise ShapeError("E0542", message, parameter.span, "an axis is repeated equally often")
    return [len(value), *(inner[0] if inner else [])]


class _Repetitions:
    """The expressions of a form, with each ellipsis repeated as often as its count says."""

    def __init__(self, form: einx.Form, counts: _Counts) -> None:
        self.form = form
        self.counts = counts
        self.plain = plain = {
            place.leaf.name
            for place in counts.places
            if isinstance(place.leaf, einx.Axis) and not place.around
        }
        self.unique = Names(plain)
        self.names: dict[tuple[str, tuple[int, ...]], str] = {}
        self.opaque: dict[str, str] = {}
        op = EINX_OPS.get(form.op)
        self.apart = {
            ellipsis.place
            for place in counts.places
            if place.marked and op is not None and op.apart
            for ellipsis in place.around
        }

    def run(self) -> RepeatedForm:
        """Every expression, and the sizes that are given."""
        inputs, outputs = (
            tuple(einx.Expression(self._items(each.items, ()), each.span) for each in side)
            for side in (self.form.inputs, self.form.outputs)
        )
        sizes = {
            name: einx.Parameter(parameter.name, _at(parameter.value, at), parameter.span)
            for parameter in self.form.parameters
            for (axis, at), name in (*self.names.items(), ((parameter.name, ()), parameter.name))
            if axis == parameter.name and len(at) == len(self.counts.path(axis))
        }
        shown: dict[int, str] = {}
        for number, ellipsis in self.counts.ellipses.items():
            times, because, _ = self.counts.known.get(
                self.counts.find(number), (None, "it stands in compositions alone", None)
            )
            many = "one axis" if times is None else f"{times} times"
            line = f"{einx.item_text(ellipsis)} {many}: {because}"
            shown.setdefault(self.counts.find(number), line)
        return RepeatedForm(inputs, outputs, sizes, tuple(shown.values()), self._written())

    def _written(self) -> dict[str, tuple[dict[tuple[int, ...], str], int]]:
        """The axes as they are written, each with its repetitions by their places."""
        written: dict[str, tuple[dict[tuple[int, ...], str], int]] = {}
        for place in self.counts.places:
            if isinstance(place.leaf, einx.Axis) and place.leaf.name != einx.HIDDEN:
                name, depth = place.leaf.name, len(place.around)
                alone: dict[tuple[int, ...], str] = {} if depth else {(): name}
                written[name] = (alone, depth)
        for (name, at), axis in self.names.items():
            if name in written:
                written[name][0][at] = axis
        return written

    def _items(self, items: Sequence[einx.Item], at: tuple[int, ...]) -> tuple[einx.Item, ...]:
        return tuple(each for item in items for each in self._item(item, at))

    def _item(self, item: einx.Item, at: tuple[int, ...]) -> tuple[einx.Item, ...]:
        """An item in repetition ``at`` of the ellipses around it."""
        match item:
            case einx.Axis():
                return (einx.Axis(self._name(item.name, at), item.span),) if at else (item,)
            case einx.UnnamedAxis():
                return (replace(item, at=at),)
            case einx.Composition() | einx.Concatenation() | einx.Bracket():
                return (replace(item, items=self._items(item.items, at)),)
            case einx.Repetition():
                return self._repeated(item, at)

    def _repeated(self, item: einx.Repetition, at: tuple[int, ...]) -> tuple[einx.Item, ...]:
        known = self.counts.known.get(self.counts.of(item))
        if known is None:
            return self._whole(item, at)
        return tuple(each for n in range(known[0]) for each in self._items(item.items, (*at, n)))

    def _whole(self, item: einx.Repetition, at: tuple[int, ...]) -> tuple[einx.Item, ...]:
        """An ellipsis that nothing counts, as one axis for all repetitions; no axis where it repeats 1.

        Raises:
            ShapeError: E0540 (each repetition matters: one has a size, a part is in brackets, or it is a dimension).
        """
        below = einx.places(item)
        if all(isinstance(p.leaf, einx.UnnamedAxis) and p.leaf.size == 1 for p in below):
            return ()
        names = [axis.name for axis in _axes(item.items)]
        sizes = {parameter.name for parameter in self.form.parameters}
        sized, marks = [n for n in names if n in sizes], {place.marked for place in below}
        if sized or item.place in self.apart or len(marks) != 1 or not self._hides(item):
            message = f"nothing says how often `{einx.item_text(item)}` is repeated"
            name = next(iter([*sized, *names]), "s")
            help_line = f"give the size of each repetition: `{name}=(2, 3)`"
            if name == einx.HIDDEN:
                help_line = "give it a name, `s...`, and the size of each repetition: `s=(2, 3)`"
            raise ShapeError("E0540", message, item.span, help_line)
        key = f"{einx.item_text(item).translate(UNMARKED)} {at}"
        if key not in self.opaque:
            word = "_".join(name for name in names if name != einx.HIDDEN)
            self.opaque[key] = self.unique.fresh(word or "dims")
        axis = einx.Axis(self.opaque[key], item.span)
        return (einx.Bracket((axis,), item.span),) if marks == {True} else (axis,)

    def _hides(self, item: einx.Repetition) -> bool:
        """Whether an ellipsis stands inside compositions wherever it stands."""
        number = self.counts.of(item)
        return not any(
            self.counts.of(each) == number
            for expression in self.form.expressions()
            for each in _rooted(expression.items)
        )

    def _name(self, name: str, at: tuple[int, ...]) -> str:
        if (name, at) not in self.names:
            word = "_".join((name, *map(str, at)))
            if name == einx.HIDDEN:
                taken = self.plain | self.unique.given
                word = next((each for each in LETTERS if each not in taken), "dim")
            self.names[name, at] = self.unique.fresh(word)
        return self.names[name, at]


def _rooted(items: Sequence[einx.Item]) -> Iterator[einx.Repetition]:
    for item in items:
        if isinstance(item, einx.Repetition):
            yield item
        if isinstance(item, einx.Repetition | einx.Bracket):
            yield from _rooted(item.items)


def _at(value: einx.Sizes, at: tuple[int, ...]) -> einx.Sizes:
    """The size of a repetition: that of its place in the tuples, or one number for all."""
    for place in at:
        value = value[place] if isinstance(value, tuple) else value
    return value
