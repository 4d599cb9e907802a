"""Tensor functions and routines: what is printed reads as what it was, and no text ends in anything but an error."""

from __future__ import annotations

from random import Random

import pytest

from ilang.core.diagnostic import Error, InternalError, plain
from ilang.core.ir.functions import Function, Routine, alike
from ilang.core.notation.files.layout import format_module
from ilang.core.notation.files.module import parse_module
from ilang.core.notation.functions.definitions import read_definition, read_head
from ilang.core.notation.functions.printing import print_function, print_program
from ilang.core.notation.functions.tokens import Context
from ilang.core.notation.reader import Reader
from ilang.core.source import Source
from tests.property.function_trees import FUNCTIONS, definition

TEXTS = (
    """op layer(x[b|i]; hid) = ?/("w" * x + "b" hid)
op mlp(x; out = 10) = "v" * layer(layer(x; 64); 6) + "c" out
""",
    """op half(x) {
  m = x ++ "...|... => 0"  # the sum
  x -. m *.
      0.5
}
""",
    """op layer(x; h) = x *. h
op deep(x; hids = [64, 32]) = repeat(x; h in hids) { layer(x; h) }
""",
    """share = (I & +ij~i) >> ij/i~ij
op f(x) = share(x) @| 1 + [ (1, 2); (3, 4) ] * x + 'q' 2.0
""",
    """op swish(x) = prim ~logic:"." { v =: v1 * sigmoid(v1) } grad {
  s = sigmoid(v1)
  g1 =+ g * (s + v *. (1 - s))
}
""",
    """cd sgd(p; lr, m = 0.0) {
  "d" =: p.grad
  if m > 0 { "u" =: m *. u + d; d =: u } else {
    d =* 2
    # what is left
    if lr > 1 { d =+ 1 }
  }
  p =- lr *. d
}
op loss(x) = "w" * x
cd step(x) {
  y = loss(x)
  backprop(y)
  for p in params(y) { sgd(p; 0.1, m = 0.9) }
  return y
}
""",
    """cd run(a, b) {
  ~~("both" a "and" b; "d" =: a + b; "c" =: d *. 2)
  c =:+ a * b ~logic:"@" ~schedule:"| i:4 | i i'"
  return c, d
}
""",
)
FRAGMENTS = (
    *(
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "[|",
        '"',
        "'",
        ";",
        ",",
        "\n",
        ' ~logic:"@"',
        '~schedule:"|| i"',
        "@|",
    ),
    *(
        "**.",
        "*.",
        "?/",
        "!..",
        "++",
        "*+",
        "=:",
        "=",
        "=:+",
        "if ",
        "for ",
        "return ",
        "prim",
        "grad",
        "repeat(",
    ),
    *(
        "op ",
        "cd ",
        "1.5",
        "2",
        ".",
        ".grad",
        "x",
        "einx.sum(",
        "f32",
        "I",
        "~~(",
        "#",
        "é",
        "not ",
        "'q'",
        "else ",
    ),
)


def read(text: str) -> Function | Routine:
    """A definition, whose names are not looked at."""
    reader = Reader(Source("m.i", text))
    kind, head = read_head(reader)
    return read_definition(reader, kind, head, Context(FUNCTIONS[:4]))


@pytest.mark.parametrize("batch", range(4))
def test_what_is_printed_reads_as_what_it_was(batch: int) -> None:
    for seed in range(batch * 250, batch * 250 + 250):
        one = definition(seed)
        text = print_function(one)
        try:
            other = read(text)
        except Error as error:
            pytest.fail(f"seed {seed}: {text}\n{plain(error)}")
        assert alike(one, other), (seed, text, print_function(other))


@pytest.mark.parametrize("text", TEXTS)
def test_the_layout_of_tidy_texts_stays(text: str) -> None:
    source = Source("m.i", text)
    assert format_module(source) == text
    module = parse_module(source)
    again = parse_module(Source("m.i", print_program(module)))
    assert alike(module.functions, again.functions)
    assert alike(module.routines, again.routines)


def mutated(random: Random) -> str:
    """A text of which a few places are changed."""
    text = random.choice(TEXTS)
    for _ in range(random.randint(1, 3)):
        start = random.randrange(len(text) + 1)
        end = min(len(text), start + random.choice((0, 0, 1, 1, 2, 5, 20)))
        other = random.choice(TEXTS)
        at = random.randrange(len(other))
        new = random.choice(
            (
                "",
                random.choice(FRAGMENTS),
                other[at : at + random.randint(1, 30)],
                text[start:end] * 2,
            )
        )
        text = text[:start] + new + text[end:]
    return text


@pytest.mark.parametrize("batch", range(4))
def test_texts_gone_wrong_end_in_diagnostics(batch: int) -> None:
    random = Random(batch)
    for _ in range(300):
        text = mutated(random)
        try:
            tidy = format_module(Source("m.i", text))
        except InternalError as error:
            pytest.fail(f"{text}\n{plain(error)}")
        except Error as error:
            refused = (error, *error.others)
            if not all(plain(each) and each.span is not None for each in refused):
                pytest.fail(text)
        else:
            assert format_module(Source("m.i", tidy)) == tidy, text
