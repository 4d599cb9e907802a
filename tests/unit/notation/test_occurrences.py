"""Where the names of a file stand and are bound, and what can be read of a file with mistakes."""

import pytest

from ilang.core.diagnostic import Error
from ilang.core.notation.files.module import parse_module, readable_module
from ilang.core.notation.files.occurrences import named_at, occurrences, outline
from ilang.core.source import Source

TEXT = """\
use std
f(x[n], y) = {
  a, _ = (g & g)(x, x)
  h(a, y)
}
g = i*i~i
h = i+i~i >> relu
op layer(x; hid = 3) = ?/("w" * x + "b" hid) + "w" * x
cd step(x, t; lr = 0.1) {
  y = repeat(x; k in 2) { layer(x; hid = k) } - (g)(t, t)
  e = repeat(q = y; k in 2) { q *. q }
  loss = sum(e)
  backprop(loss)
  for p in params(loss) { p =- lr *. p.grad }
  return loss
}
"""


def told(text: str) -> list[str]:
    """Every name of the text, as kind, name, line and column, and line and column of its binding, in order."""
    module, _ = readable_module(Source("a.i", text))
    mine = [each for each in occurrences(module) if each.span.source is module.source]
    assert all(each.span.text() == each.name == each.bound.text() for each in mine)
    return [
        f"{each.kind} {each.name} {each.span.line_number()}:{each.span.column()}"
        + (
            ""
            if each.span == each.bound and each.span.start == each.bound.start
            else f" {each.bound.source.name}:{each.bound.line_number()}"
        )
        for each in sorted(mine, key=lambda each: each.span.start)
    ]


def test_every_name_knows_where_it_is_bound() -> None:
    assert told(TEXT) == [
        "component f 2:1",
        "input x 2:3",
        "input y 2:9",
        "value a 3:3",
        "component g 3:11 a.i:6",
        "component g 3:15 a.i:6",
        "input x 3:18 a.i:2",
        "input x 3:21 a.i:2",
        "component h 4:3 a.i:7",
        "value a 4:5 a.i:3",
        "input y 4:8 a.i:2",
        "component g 6:1",
        "component h 7:1",
        "component relu 7:14 std.i:7",
        "op layer 8:4",
        "input x 8:10",
        "configuration hid 8:13",
        "parameter w 8:28",
        "input x 8:33 a.i:8",
        "parameter b 8:38",
        "configuration hid 8:41 a.i:8",
        "parameter w 8:49 a.i:8",
        "input x 8:54 a.i:8",
        "cd step 9:4",
        "input x 9:9",
        "input t 9:12",
        "configuration lr 9:15",
        "value y 10:3",
        "input x 10:14 a.i:9",
        "configuration k 10:17",
        "op layer 10:27 a.i:8",
        "input x 10:33 a.i:9",
        "configuration hid 10:36 a.i:8",
        "configuration k 10:42 a.i:10",
        "component g 10:50 a.i:6",
        "input t 10:53 a.i:9",
        "input t 10:56 a.i:9",
        "value e 11:3",
        "value q 11:14",
        "value y 11:18 a.i:10",
        "configuration k 11:21 a.i:10",
        "value q 11:31 a.i:11",
        "value q 11:36 a.i:11",
        "value loss 12:3",
        "value e 12:14 a.i:11",
        "value loss 13:12 a.i:12",
        "value p 14:7",
        "value loss 14:19 a.i:12",
        "value p 14:27 a.i:14",
        "configuration lr 14:32 a.i:9",
        "value p 14:38 a.i:14",
        "value loss 15:10 a.i:12",
    ]


def test_what_can_be_read_of_a_file_with_mistakes() -> None:
    source = Source("a.i", "f = g >> h(\nop k(x) = x + 1\ng = i*i~i\nw = ij~\n")
    module, refused = readable_module(source)
    assert [each.code for each in refused] == ["E0401", "E0103"]
    assert [each.name for each in module.definitions] == ["g"]
    assert [each.head.name for each in module.functions] == ["k"]
    assert [(each.kind, each.name.text()) for each in outline(source)] == [
        ("component", "f"),
        ("op", "k"),
        ("component", "g"),
        ("component", "w"),
    ]
    found = named_at(occurrences(module), source, source.text.index("k(x)") + 1)
    assert found is not None
    assert found.kind == "op"
    assert named_at(occurrences(module), source, 0) is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("f(x) = { (g(x)\ncd step(x) { y = x\n}\ng = -i~i\n", ["f", "step", "g"]),
        ("f(x) = {\n  y = g(x)\n  y\ng(x[n]) = (-i~i)(x)\n", ["f", "g"]),
        ("cd step(x) {\n  if 1 > 0 {\n    y = x\nop f(x) = x\n", ["step", "f"]),
    ],
)
def test_a_forgotten_bracket_ends_with_its_definition(text: str, names: list[str]) -> None:
    source = Source("a.i", text)
    with pytest.raises(Error) as refused:
        parse_module(source)
    assert "E0110" in {each.code for each in (refused.value, *refused.value.others)}
    assert [each.name.text() for each in outline(source)] == names


def test_a_comparison_ends_a_tensor_function() -> None:
    text = "op f(x) {\ng(x) = 0.5\n}\nop g(x) = x\n"
    module = parse_module(Source("a.i", text))
    assert [each.head.name for each in module.functions] == ["f", "g"]
