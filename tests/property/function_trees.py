"""Random tensor functions and routines as data: all that a reader can make, decided by a seed alone.

Names mean nothing here: what needs a scope is checked elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import get_args

from ilang.core.ir import functions as ast
from ilang.core.ir.spec import Spec
from ilang.core.ir.syntax import Schedule, Tree
from ilang.core.notation.components.combinator import parse_program
from ilang.core.notation.einsum.specification import parse_spec
from ilang.core.notation.index.schedule import parse_schedule
from ilang.core.notation.reader import Reader
from ilang.core.source import Source, Span

NOWHERE = Span(Source("<random>", ""), 0, 0)
TENSORS = ("x", "y", "w_1", "h", "delta", "e5", "op_", "_z")
FUNCTIONS = ("f", "layer", "g2", "Norm", "exp", "max")
COMPONENTS = (
    "+ij~i >> -i~i",
    "I",
    "f64",
    'einsum("ij; jk => ik")',
    'einx.sum("a [b]")',
    'einx.vmap("a [b] -> a", op=(f >> +i~.))',
    "f & Norm",
    "ij*jk~ijk || i j k",
)
ONE = ("ij => ji", "...|... => 0", "b | time, c => b | c", "..v..|ijk => ..v..kji")
TWO = ("ij; jk => ik", "b | o<+k, c; k, c -> d => b | o, d", "...|i->o; ...|i => ...|o")
SCHEDULES = ("| i:8 | i i' j", "|| i j", "| i:2,j:4 | i j i' j' | i:p", "||")
NUMBERS = ("0", "2", "12", "0.5", "1e-3", "2.25", "1e3", "true")
INFIX = tuple(each for each in get_args(ast.Infix) if each not in ("*", "/", "**."))
LONGER = tuple(each for each in INFIX if each not in get_args(ast.Operator))
"""Operators that no operation of an assignment has."""


def number(random: Random) -> ast.Number:
    text = random.choice(NUMBERS)
    whole = text.isalnum() and "e" not in text.replace("true", "")
    value = 1 if text == "true" else int(text) if whole else float(text)
    return ast.Number(text, value, whole, NOWHERE)


def spec(random: Random, operands: int) -> Spec:
    return parse_spec(Source("<spec>", random.choice(ONE if operands == 1 else TWO)))


def schedule(random: Random) -> Schedule:
    return parse_schedule(Reader(Source("<schedule>", random.choice(SCHEDULES))), True)


def component(random: Random) -> ast.Reference | Tree:
    if random.random() < 0.6:
        return reference(random, FUNCTIONS)
    return parse_program(Source("<program>", random.choice(COMPONENTS)), FUNCTIONS)


def reference(random: Random, names: tuple[str, ...] = TENSORS) -> ast.Reference:
    return ast.Reference(random.choice(names), NOWHERE)


class Trees:
    """A source of random trees; ``code``: parts of tensors may stand there."""

    def __init__(self, random: Random, code: bool) -> None:
        self.random = random
        self.code = code

    def several(self, size: int, least: int = 0) -> tuple[ast.Term, ...]:
        return tuple(self.term(size - 1) for _ in range(self.random.randint(least, 3)))

    def term(self, size: int) -> ast.Term:
        """An expression of at most so many levels."""
        random = self.random
        makers: list[Callable[[int], ast.Term]] = [self.leaf]
        if size > 0:
            makers += [self.prefixed, self.binary, self.binary, self.einsum, self.called]
            makers += [self.sliced, self.scheduled, self.declared, self.repeated]
        return random.choice(makers)(size)

    def leaf(self, _: int) -> ast.Term:
        random = self.random
        if self.code and random.random() < 0.3:
            part = random.choice(get_args(ast.Part))
            return ast.Access(reference(random), part, NOWHERE)
        match random.randrange(5):
            case 0:
                return number(random)
            case 1:
                return ast.Unit("q", random.choice((2.0, -0.5, 1e-7, -0.0)), NOWHERE)
            case 2:
                return self.nested()
            case _:
                return reference(random)

    def nested(self) -> ast.Nested:
        random = self.random
        levels, count = [], 1
        for _ in range(random.randint(1, 3)):
            row = random.randrange(3)
            extent = random.randint(2 if row == 1 else 1, 3)
            levels.append((row, extent))
            count *= extent
        numbers = tuple(random.choice((1.0, -4.0, 0.5, 1e-9, -0.0)) for _ in range(count))
        return ast.Nested(numbers, tuple(levels), NOWHERE)

    def prefixed(self, size: int) -> ast.Term:
        operator = self.random.choice(get_args(ast.Prefix))
        return ast.Unary(operator, self.term(size - 1), NOWHERE)

    def binary(self, size: int) -> ast.Term:
        random = self.random
        left, right = self.term(size - 1), self.term(size - 1)
        if random.random() < 0.2:
            return ast.Binary("**.", left, right, NOWHERE, NOWHERE)
        if random.random() < 0.2:
            return ast.Binary(
                random.choice(("*", "/")), reference(random), self.called(size), NOWHERE, NOWHERE
            )
        return ast.Binary(random.choice(INFIX), left, right, NOWHERE, NOWHERE)

    def einsum(self, size: int) -> ast.Term:
        left = self.term(size - 1)
        if self.random.random() < 0.5:
            return ast.EinsumTerm((left,), spec(self.random, 1), NOWHERE)
        two = spec(self.random, 2)
        return ast.EinsumTerm((left, self.term(size - 1)), two, NOWHERE)

    def sliced(self, size: int) -> ast.Term:
        return ast.Sliced(self.term(size - 1), self.term(size - 1), NOWHERE)

    def scheduled(self, size: int) -> ast.Term:
        return ast.ScheduledExpression(self.term(size - 1), schedule(self.random), NOWHERE)

    def declared(self, size: int) -> ast.Term:
        random = self.random
        name = random.choice(TENSORS)
        match random.randrange(5):
            case 0:
                return ast.Declared(name, (reference(random),), None, NOWHERE)
            case 1:
                inner = (
                    ast.Binary("*.", reference(random), self.term(size - 1), NOWHERE, NOWHERE),
                    reference(random),
                )
                return ast.Declared(name, inner, None, NOWHERE)
            case 2:
                text = random.choice(("0.5", "-0.5", "1e-3"))
                return ast.Declared(
                    name, None, ast.Number(text, float(text), False, NOWHERE), NOWHERE
                )
            case 3:
                literal = self.nested()
                start = None if literal.levels[0][0] == 1 else literal
                return ast.Declared(name, None, start, NOWHERE)
            case _:
                return ast.Declared(name, None, None, NOWHERE)

    def called(self, size: int) -> ast.Term:
        settings = self.settings(size) if self.random.random() < 0.4 else None
        return ast.Called(component(self.random), self.several(size), settings, NOWHERE)

    def settings(self, size: int) -> tuple[ast.Setting, ...]:
        random = self.random
        names = [random.choice((None, "n", "lr")) for _ in range(random.randint(0, 2))]
        found = [ast.Setting(name, self.value(size), NOWHERE) for name in names]
        if random.random() < 0.3:
            found.append(ast.Setting("label", ast.Text("L1", NOWHERE), NOWHERE))
        return tuple(found)

    def value(self, size: int) -> ast.Term:
        """A configuration value: no literal, which a list would be taken for."""
        if self.random.random() < 0.3:
            return ast.Listed((number(self.random), reference(self.random)), NOWHERE)
        term = self.term(size - 1)
        plain = isinstance(term, ast.Binary | ast.Called | ast.Reference)
        return term if plain and not _brackets_first(term) else number(self.random)

    def repeated(self, size: int) -> ast.Term:
        random = self.random
        carried = random.choice(TENSORS)
        start = ast.Reference(carried, NOWHERE) if random.random() < 0.7 else self.term(size - 1)
        return ast.Repeated(
            carried, start, "n", self.value(size), self.body(size - 1), NOWHERE, NOWHERE, NOWHERE
        )

    def body(self, size: int) -> ast.Body:
        return ast.Body(
            tuple(self.bound_or_kept(size) for _ in range(self.random.randint(0, 2))),
            self.term(size),
            NOWHERE,
        )

    def bound_or_kept(self, size: int) -> ast.NameBinding | ast.StateUpdate:
        if self.random.random() < 0.8:
            return self.bound(size)
        initial = self.random.choice((None, ast.Number("0.5", 0.5, False, NOWHERE)))
        target = ast.Declared("mean", None, initial, NOWHERE, kept=True)
        return ast.StateUpdate(target, self.term(size), NOWHERE)

    def bound(self, size: int) -> ast.NameBinding:
        return ast.NameBinding(
            self.random.choice((None, *TENSORS)), self.term(size), NOWHERE, NOWHERE
        )

    # -- statements --------------------------------------------------------------------------------------------------

    def statements(self, size: int) -> tuple[ast.Statement, ...]:
        return tuple(
            self.statement(size) for _ in range(self.random.randint(1 if size > 1 else 0, 3))
        )

    def statement(self, size: int) -> ast.Statement:
        random = self.random
        match random.randrange(9 if size > 0 else 5):
            case 0 | 1:
                return self.assigned(size)
            case 2:
                return self.bound(size)
            case 3:
                word = random.choice(get_args(ast.TensorWord))
                return ast.TensorStatement(word, reference(random), NOWHERE)
            case 4:
                settings = self.settings(size) if random.random() < 0.5 else None
                return ast.Called(
                    reference(random, ("sgd", "step_2")), self.several(size), settings, NOWHERE
                )
            case 5:
                inside = self.statements(size - 1)
                return ast.ForEach("p", reference(random), inside, NOWHERE, NOWHERE)
            case 6:
                otherwise = self.statements(size - 1) if random.random() < 0.5 else ()
                return ast.Condition(self.term(size), self.statements(size - 1), otherwise, NOWHERE)
            case 7:
                says = (ast.Text("sum of", NOWHERE), reference(random), ast.Text("b", NOWHERE))
                return ast.Commented(says, self.statements(size - 1), NOWHERE)
            case _:
                return ast.Returned((reference(random), reference(random)), NOWHERE)

    def assigned(self, size: int) -> ast.Statement:
        random = self.random
        accumulator = random.choice((None, *get_args(ast.Accumulator)))
        fresh = accumulator is not None and random.random() < 0.5
        plain = (ast.Logic(".", None, NOWHERE), ast.Logic("T", None, NOWHERE))
        kinds = (*plain, ast.Logic("spec", spec(random, 2), NOWHERE))
        logic = random.choice((None, *kinds))
        target = random.choice((reference(random), ast.Declared("c", None, None, NOWHERE)))
        how = schedule(random) if random.random() < 0.3 else None
        return ast.Assigned(
            target, accumulator, fresh, self.right(size), logic, how, NOWHERE, NOWHERE
        )

    def right(self, size: int) -> ast.Single | ast.Term:
        random = self.random
        match random.randrange(6):
            case 0:
                return ast.Single(None, (self.operand(size),), NOWHERE)
            case 1:
                return ast.Single(random.choice(("-", "?/", "not")), (self.operand(size),), NOWHERE)
            case 2 | 3:
                operator = random.choice(("+", "-", "*", "/", "**", "-?/"))
                return ast.Single(operator, (self.operand(size), self.operand(size)), NOWHERE)
            case 4:
                return ast.Single("fma", tuple(self.term(size) for _ in range(3)), NOWHERE)
            case _:
                return ast.Binary(
                    random.choice(LONGER), self.term(size), self.term(size), NOWHERE, NOWHERE
                )

    def operand(self, size: int) -> ast.Term:
        """An operand: a call of a primitive would be an operation."""
        term = self.term(size)
        called = term.component if isinstance(term, ast.Called) else None
        primitive = isinstance(called, ast.Reference) and called.name in ("exp", "max")
        return reference(self.random) if primitive else term


def _brackets_first(term: ast.Term) -> bool:
    """Whether the text of a term begins with a bracket of a literal."""
    while isinstance(term, ast.Binary):
        term = term.left
    return not isinstance(term, ast.Reference | ast.Number | ast.Called)


def head(random: Random) -> ast.Head:
    names = random.sample(TENSORS, random.randint(0, 3))
    tensors = tuple(
        ast.TensorParameter(name, random.choice((None, "i64")), shape(random), NOWHERE)
        for name in names
    )
    configuration = None
    if random.random() < 0.5:
        default = ast.Listed((number(random),), NOWHERE)
        values = (None, number(random), default)
        bare, closed = ast.Configured("n", None, NOWHERE), random.choice(values)
        configuration = (bare, ast.Configured("k", closed, NOWHERE))
    return ast.Head("f", tensors, configuration, NOWHERE)


def shape(random: Random) -> ast.ShapeNote | None:
    if random.random() < 0.5:
        return None
    rows = tuple(_row(random, kind) for kind in ("batch", "input", "output"))
    if not any(
        len(row.leading) + len(row.trailing) + (row.variable is not None) > 1 for row in rows
    ):
        return None  # without a comma names of several letters are several axes
    return ast.ShapeNote((rows[0], rows[1], rows[2]), NOWHERE)


def _row(random: Random, kind: str) -> ast.RowNote:
    sizes, labels = ("b", "time", 3, 784), (None, "rgb")
    axes = [
        ast.AxisNote(random.choice(sizes), random.choice(labels), NOWHERE)
        for _ in range(random.randint(0, 3))
    ]
    if random.random() < 0.3:
        variable = random.choice((f"...{kind}", "v"))
        cut = random.randint(0, len(axes))
        return ast.RowNote(tuple(axes[:cut]), variable, tuple(axes[cut:]))
    return ast.RowNote((), None, tuple(axes))


def definition(seed: int, size: int = 3) -> ast.Function | ast.Routine:
    """A definition."""
    random = Random(seed)
    if random.random() < 0.5:
        return ast.Routine(head(random), Trees(random, True).statements(size), NOWHERE)
    if random.random() < 0.3:
        code = Trees(random, True)
        backward = code.statements(size - 1) if random.random() < 0.7 else None
        body = ast.CustomOperation(
            ast.Logic("@", None, NOWHERE), code.statements(size - 1), backward, NOWHERE
        )
        return ast.Function(head(random), body, NOWHERE)
    return ast.Function(head(random), Trees(random, False).body(size), NOWHERE)
