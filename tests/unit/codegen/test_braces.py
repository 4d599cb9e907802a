"""The layout of blocks in C and CUDA."""

from __future__ import annotations

import pytest

from ilang.codegen.targets.braces import braced, broken, filled, indented
from ilang.codegen.targets.marked_lines import MarkedLine
from ilang.core.explain.marks import LineMark


def test_lines_are_indented_by_the_braces_around_them() -> None:
    inner = braced("for (;;)", ["#pragma once", "x = {0};", "if (x) { y = 1; }"])
    assert "\n".join(indented(braced("", [*inner, "} else {", "z = 2;"]))) == (
        "{\n    for (;;) {\n#pragma once\n        x = {0};\n        if (x) { y = 1; }\n    }\n"
        "} else {\n    z = 2;\n}"
    )


def test_a_list_is_filled_where_its_line_begins() -> None:
    words = [f"argument_{n}" for n in range(9)]
    (line,) = indented([filled("f(", words, ");")])
    assert [len(each) <= 100 for each in line.split("\n")] == [True, True]
    _, deeper, _ = indented(braced("", [filled("f(", words, ");")]))
    assert deeper.startswith("    f(argument_0, ")
    assert deeper.split("\n")[1].startswith("        argument_")
    assert "".join(deeper.split()) == f"f({','.join(words)});"


def test_marks_of_lines_stay() -> None:
    mark = LineMark(gives=("t1",))
    _, line, _ = indented(braced("", [MarkedLine.of("t1 = 0;", mark)]))
    assert isinstance(line, MarkedLine)
    assert (line, line.mark) == ("    t1 = 0;", mark)


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("    x = y;", ["    x = y;"]),
        (
            f"    {'a' * 60}[i] = {'b' * 60}[i];",
            [f"    {'a' * 60}[i] =", f"        {'b' * 60}[i];"],
        ),
        (
            f"for (int i = 0; i < n; ++i) {'a' * 40}[i] = {'b' * 44}[i];",
            ["for (int i = 0; i < n; ++i)", f"    {'a' * 40}[i] = {'b' * 44}[i];"],
        ),
        (
            f"x = (i < n) ? {'f' * 50}(i, {'j' * 30}) : {'g' * 40};",
            [f"x = (i < n) ? {'f' * 50}(i, {'j' * 30})", f"    : {'g' * 40};"],
        ),
        (f"#define {'x' * 120} 1 + 2", [f"#define {'x' * 120} 1 + 2"]),
        (f"/* {'x ' * 60} + */", [f"/* {'x ' * 60} + */"]),
    ],
)
def test_long_lines_go_on_in_the_next(line: str, lines: list[str]) -> None:
    assert broken(line).split("\n") == lines
    assert "".join(line.split()) == "".join(broken(line).split())
