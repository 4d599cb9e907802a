"""The layout of blocks in C and CUDA."""

from __future__ import annotations

from ilang.codegen.targets.braces import braced, filled, indented
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
