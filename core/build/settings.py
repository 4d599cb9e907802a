"""Configuration of tensor functions: what is known when a program is built, and what comes at run time.

Example, ``op layer(x; hid = 64) = "b" hid *. hid``: the extent fixes hid, arithmetic alone would read it at run time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from ilang.core.build.values import Owner, Stored, Tensor
from ilang.core.diagnostic import Label, MeaningError
from ilang.core.ir import functions as ast
from ilang.core.ir.graph import Graph
from ilang.core.ir.primitives import hides
from ilang.core.ir.scalar import minus
from ilang.core.ir.syntax import Definition, Module
from ilang.core.library import limits_in
from ilang.core.record import entity
from ilang.core.source import Span

Figure = float | int
"""A number that is known when a program is built."""


Value = Figure | tuple[Figure, ...] | str
"""A configuration value that is known when a program is built; a string names axes."""


@entity
class Setting:
    """A configuration value: its number, its list of numbers or its axes, and the tensor that arithmetic reads.

    The letters of axes are those of the head that has a ``scope``. ``names`` are the configuration values of the
    definition that is run that it depends on: used for more than arithmetic it fixes those. The number of a turn has
    the number of ``turns``.
    """

    value: Value
    span: Span
    tensor: Tensor | None = None
    names: tuple[str, ...] = ()
    scope: int = 0
    turns: int | None = None


@entity
class DefinitionInstance:
    """A use of a definition with its parameters, ``l = layer(; 64)``, not called yet."""

    function: ast.Function
    settings: Mapping[str, Setting]
    owner: Owner
    span: Span


Meaning = Tensor | Setting | DefinitionInstance


Einx = Callable[[Graph, Graph, Sequence[int]], Graph]
"""Of a component, the graph around it, and the values there that are its inputs: the component in assignments."""


@entity
class Around:
    """The surroundings of tensor functions: the definitions of their file, components, other files.

    ``component`` gives the graph of a component, by its name or its tree; ``load`` the array in a file; ``einx`` a
    component without operations in einx notation. ``ranks`` is how many processes run the program, each on a share of
    the data; None where that is known when it runs.
    """

    module: Module
    component: Callable[[object], Graph]
    load: Callable[[str, Span], object]
    einx: Einx
    ranks: int | None = 1


class Evaluation:
    """One evaluation of a body: what names mean in it, and whose parameters its strings are.

    The letters that its head writes for axes are those of a ``scope``.
    """

    scope = 0

    def __init__(
        self,
        owner: Owner,
        names: dict[str, Meaning],
        declared: Mapping[str, Sequence[ast.Declared]],
        turns: tuple[int, ...] = (),
        kept: dict[object, Owner] | None = None,
    ) -> None:
        """Begin with what a head binds.

        Args:
            owner: has the parameters.
            names: what names mean.
            declared: the strings of the body, by name.
            turns: which turn of each ``repeat`` around it this is.
            kept: the instances of a definition whose calls share one set, by the place of their calls.
        """
        self.owner = owner
        self.names = names
        self.declared = declared
        self.turns = turns
        self.kept = kept

    def within(self, names: Mapping[str, Meaning], turn: int | None = None) -> Evaluation:
        """A frame like this one with other names, in a turn of a ``repeat``."""
        turns = self.turns if turn is None else (*self.turns, turn)
        inner = Evaluation(self.owner, {**self.names, **names}, self.declared, turns, self.kept)
        inner.scope = self.scope
        return inner


class Configuration(ABC):
    """The definitions of a program by name, and what its configuration values are."""

    def __init__(self, around: Around) -> None:
        """For the definitions of a module."""
        module = around.module
        self.ranks = around.ranks
        self.source = module.source
        self.functions = {function.head.name: function for function in module.functions}
        self.routines = {routine.head.name: routine for routine in module.routines}
        self.components: dict[str, Definition] = {
            each.name: each
            for each in module.definitions
            if each.span.source is module.source or not hides(each.name, self.functions)
        }
        self.fixed: dict[str, Span] = {}
        self.limits: dict[str, tuple[str, str]] = {}
        """The values of the definition that is run which a library limits: what they are there, and the interval."""

    @abstractmethod
    def tensor(self, frame: Evaluation, term: ast.Term) -> Tensor:
        """The tensor that an expression is."""

    def settings(
        self, frame: Evaluation, head: ast.Head, given: Sequence[ast.Setting] | None
    ) -> tuple[dict[str, Setting], str | None]:
        """The configuration of a use of a definition, by name, and its label.

        The values are those that its head has, each of them once (``notation/functions/calling.py``).
        """
        wanted = {each.name: each for each in head.configuration or ()}
        values: dict[str, Setting] = {}
        label: str | None = None
        order = iter(wanted)
        for each in given or ():
            if each.name == "label" and isinstance(each.value, ast.Text):
                label = each.value.text
                continue
            values[each.name or next(order)] = self.setting(frame, each.value)
        for name, written in wanted.items():
            if name not in values:
                assert written.default is not None
                empty = Evaluation(frame.owner, dict(values), {})
                values[name] = self.setting(empty, written.default)
        self.check_limits(head, values)
        return values, label

    def check_limits(self, head: ast.Head, values: Mapping[str, Setting]) -> None:
        """Refuse numbers outside the intervals of a library; those that come at run time are checked then, too.

        Raises: MeaningError E0272.
        """
        for name, interval in limits_in(head.span.source).items():
            if name not in values:
                continue
            setting, subject = values[name], f"`{name}` of `{head.name}`"
            require_within(subject, _figure(setting.value, setting.span), interval, setting.span)
            if isinstance(setting.tensor, Stored) and setting.tensor.kind == "setting":
                self.limits[setting.tensor.name] = subject, interval

    def setting(self, frame: Evaluation, term: ast.Term) -> Setting:
        """The configuration value that an expression is: known numbers, and what arithmetic reads of it."""
        match term:
            case ast.Listed():
                parts = [self.setting(frame, item) for item in term.items]
                values = tuple(_figure(each.value, each.span) for each in parts)
                names = tuple(name for each in parts for name in each.names)
                return Setting(values, term.span, names=names)
            case ast.Nested(levels=((2, _),)):
                return Setting(tuple(map(_plain, term.numbers)), term.span)
            case ast.Number():
                return Setting(term.value, term.span)
            case ast.Text():
                return Setting(term.text, term.span, scope=frame.scope)
            case ast.Reference():
                meaning = frame.names.get(term.name)
                if isinstance(meaning, Setting):
                    return meaning
                message = (
                    f"`{term.name}` is a tensor, and this must be known when the program is built"
                )
                help_line = (
                    "it takes numbers and configuration values: those after the `;` of a head"
                )
                raise MeaningError("E0445", message, term.span, help_line)
            case ast.Unary():
                inner = self.setting(frame, term.operand)
                value = _applied(term.operator, [inner.value], term.span)
                return self._derived(frame, term, value, inner.names)
            case ast.Binary():
                sides = [self.setting(frame, side) for side in (term.left, term.right)]
                value = _applied(term.operator, [side.value for side in sides], term.span)
                names = tuple(dict.fromkeys(name for side in sides for name in side.names))
                return self._derived(frame, term, value, names)
            case ast.ScheduledExpression():
                return self.setting(frame, term.term)
            case _:
                message = "this must be known when the program is built"
                help_line = "it takes numbers, configuration values and arithmetic over them"
                raise MeaningError("E0445", message, term.span, help_line)

    def _derived(
        self, frame: Evaluation, term: ast.Term, value: Figure, names: tuple[str, ...]
    ) -> Setting:
        """A configuration value computed from others; those that come at run time, by a tensor."""
        return Setting(
            value, term.span, tensor=self.tensor(frame, term) if names else None, names=names
        )

    def known(self, setting: Setting) -> Value:
        """The value of a configuration value, which is fixed from then on, as is all that it depends on."""
        for name in setting.names:
            self.fixed.setdefault(name, setting.span)
        return setting.value

    def number(self, frame: Evaluation, term: ast.Term) -> Figure:
        """A number that must be known when the program is built."""
        return _figure(self.known(self.setting(frame, term)), term.span)

    def whole(self, frame: Evaluation, term: ast.Term, subject: str, least: int = 0) -> int:
        """A whole number of ``least`` or more that must be known when the program is built."""
        value = self.number(frame, term)
        if value < least or value != int(value):
            setting = self.setting(frame, term)
            given, turns = setting.span, setting.turns
            labels = [Label(term.span, f"{subject} here")]
            cause = f"{value} given here" if turns is None else f"counts from 0 to {turns - 1}"
            labels += [] if given == term.span else [Label(given, cause)]
            message = f"{subject} is a whole number of {least} or more, not {value}"
            is_quotient = value != int(value) and "/." in given.text()
            help_line = (
                "positions count from 0"
                if subject == "a position"
                else f"give numbers of which `{given.text()}` is a whole one"
                if is_quotient
                else f"for example {max(1, round(value))}"
                if turns is None
                else f"a list has one for each turn: `[{turns}]`"
            )
            raise MeaningError("E0270", message, term.span, help_line, labels)
        return int(value)


def evaluated(term: ast.Term, settings: Mapping[str, Setting]) -> Value:
    """The value of a default of a head: arithmetic over numbers and the values before it."""
    match term:
        case ast.Number():
            return term.value
        case ast.Text():
            return term.text
        case ast.Reference() if term.name in settings:
            return settings[term.name].value
        case ast.Listed():
            return tuple(_figure(evaluated(item, settings), item.span) for item in term.items)
        case ast.Nested(levels=((2, _),)):
            return tuple(map(_plain, term.numbers))
        case ast.Unary():
            return _applied(term.operator, [evaluated(term.operand, settings)], term.span)
        case ast.Binary():
            sides = [evaluated(side, settings) for side in (term.left, term.right)]
            return _applied(term.operator, sides, term.span)
        case _:
            message = "a default is a number, a list, or arithmetic over the values before it"
            raise MeaningError("E0445", message, term.span, "write a number: `hid = 64`")


def _figure(value: Value, span: Span) -> Figure:
    if isinstance(value, tuple | str):
        kind = "a list" if isinstance(value, tuple) else "a string"
        message = f"a number is wanted here, not {kind}"
        raise MeaningError("E0445", message, span, "write one number")
    return value


def require_within(subject: str, value: Figure, interval: str, span: Span | None) -> None:
    """Refuse a number outside the interval of a configuration value. Raises: MeaningError E0272."""
    end, closing = interval.split(", ")[1][:-1], interval[-1]
    if 0 <= value < float(end) or (closing == "]" and value == float(end)):
        return
    limits = "from 0 on" if end == "inf" else f"from 0 to {'below ' * (closing == ')')}{end}"
    example = "for example 0.00001" if end == "inf" else "for example 0.1"
    if end == "1" and 1 < value <= 100:
        example = f"{value:g} percent is {value / 100:g}"
    raise MeaningError("E0272", f"{subject} is a number {limits}, not {value}", span, example)


def _plain(number: float) -> Figure:
    return int(number) if number == int(number) and repr(number) != "-0.0" else number


def _applied(operator: str, values: Sequence[object], span: Span) -> Figure:
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) != len(values):
        raise MeaningError(
            "E0445", "arithmetic is of numbers, and not of lists", span, "write the list out"
        )
    try:
        return _ARITHMETIC[operator, len(numbers)](*numbers)
    except KeyError:
        message = f"`{operator}` is not for configuration values"
        raise MeaningError(
            "E0445", message, span, "compute with `+`, `-`, `*.`, `/.` and `**.`"
        ) from None
    except (ZeroDivisionError, OverflowError, ValueError):
        raise MeaningError(
            "E0270", f"`{span.text()}` has no value", span, "give it numbers for which it has one"
        ) from None


_ARITHMETIC: dict[tuple[str, int], Callable[..., Figure]] = {
    ("-", 1): minus,
    ("not", 1): lambda a: int(not a),
    ("!.", 1): lambda a: a,
    ("!..", 1): lambda a: a,
    ("?/", 1): lambda a: max(0, a),
    **dict.fromkeys([("+", 2), ("+.", 2)], lambda a, b: a + b),
    **dict.fromkeys([("-", 2), ("-.", 2)], lambda a, b: a - b),
    ("*.", 2): lambda a, b: a * b,
    ("/.", 2): lambda a, b: a // b if a % b == 0 and isinstance(a, int) else a / b,
    ("**.", 2): lambda a, b: a**b,
    ("<", 2): lambda a, b: int(a < b),
    ("<=", 2): lambda a, b: int(a <= b),
    (">", 2): lambda a, b: int(a > b),
    (">=", 2): lambda a, b: int(a >= b),
    ("=", 2): lambda a, b: int(a == b),
    ("<>", 2): lambda a, b: int(a != b),
    ("&&", 2): lambda a, b: int(bool(a) and bool(b)),
    ("||", 2): lambda a, b: int(bool(a) or bool(b)),
}
