"""Extents that follow from others, as C: random expressions, nested in each other, are what they mean."""

from __future__ import annotations

import itertools
import random
import subprocess
from pathlib import Path

import pytest

from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.targets.c_entry import FORMULAS
from ilang.core.calculus.extent import Extent, number, parts, quotient, reach, scaled, size

pytestmark = pytest.mark.usefixtures("real_compiler")

NAMES = "abc"
EXTENTS = tuple(itertools.product(range(4), repeat=len(NAMES)))


def drawn(draw: random.Random, depth: int) -> Extent:
    """A random expression over three sizes; below a quotient nothing is negative, as in programs."""
    if depth == 0:
        return draw.choice([size(draw.randrange(len(NAMES))), number(draw.randrange(5))])
    whole = drawn(draw, depth - 1)
    others = [drawn(draw, draw.randrange(depth)) for _ in range(draw.randint(1, 2))]
    match draw.randrange(6):
        case 0:
            return Extent("+", (whole, *others))
        case 1:
            return Extent("*", (whole, *others))
        case 2:
            return scaled(draw.randint(1, 3), whole)
        case 3:
            return quotient(whole, Extent("+", (others[0], number(1))))
        case 4:
            return parts(whole, draw.randint(1, 4))
        case _:
            return reach([(draw.randint(1, 3), each) for each in (whole, *others)], 0)


def test_c_computes_what_extents_mean(tmp_path: Path) -> None:
    draw = random.Random(20261129)
    extents = [drawn(draw, draw.randint(1, 4)) for _ in range(100)]
    rows = [f"(long long)({each.text(NAMES.__getitem__, FORMULAS)})" for each in extents]
    source, program = tmp_path / "formulas.c", tmp_path / "formulas"
    source.write_text(
        "\n".join(
            [
                "#include <stdio.h>",
                "int main(void) {",
                *(f"for (long long {n} = 0; {n} < 4; ++{n})" for n in NAMES),
                "{",
                *(f'printf("%lld\\n", {row});' for row in rows),
                "}",
                "}",
            ]
        )
    )
    subprocess.run([*find_compiler().command, "-O0", "-o", program, source], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    expected = [each.value(sizes) for sizes in EXTENTS for each in extents]
    assert [int(line) for line in printed.split()] == expected
    assert sum("?" in row for row in rows) > 20
