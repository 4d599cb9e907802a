"""Legal factors and roles of any size give C that compiles, in little time, without large arrays on the stack."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ilang import i
from ilang.codegen.compile.compilers import find_compiler
from ilang.core.passes.cpu.versions import MOST_COPIES

SCHEDULES = {
    "one too many for gcc": "+ij~i | j:65535 | i j j' | j':u",
    "more": "+ij~i | j:70000 | i j j' | j':u",
    "most": "+ij~i | j:2147483647 | i j j' | j':u",
    "inside each other": "ij~ji | i:100,j:100 | j i j' i' | i':u,j':u",
    "both of one axis": "+ij~i | j:1000:1000 | i j j' j'' | j':u,j'':u",
    "of a reduction into several elements": "+ij~i | i:70000 | i j i' | i':u",
    "a tile of many elements": "ik*kj~ijk >> +ijk~ij | i:4096,j:4096 | i j k i' j' | i':u,j':u",
    "lanes": "i*i~i | i:70000 | i i' | i':v",
    "in registers": "ij~ij >> +ij~i | i:70000,j:70000 | i j 0 i' j' | 0:r,i':u",
    "staged whole": "ij~ij >> +ij~i | i:65535 | i 0 i' j | i':u",
    "packed": "ik*kj~ijk | i:70000,j:70000,k:70000 | j k 1 i i' k' j' >> +ijk~ij",
}
STACK = 16 * 1024
"""Bytes of an array in a function at most."""


@pytest.mark.deep
@pytest.mark.parametrize("name", SCHEDULES)
def test_any_factor_compiles(name: str, tmp_path: Path) -> None:
    text = i(SCHEDULES[name]).source("c")
    asked = [int(n) for n in re.findall(r"pragma GCC unroll (\d+)", text)]
    assert all(n <= MOST_COPIES for n in asked)
    arrays = re.findall(r"^ +(?:float|double|u?int\d+_t) \w+\[(\d+)\];", text, re.MULTILINE)
    assert all(8 * int(n) <= STACK for n in arrays)
    source = tmp_path / "f.c"
    source.write_text(text)
    strict = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unknown-pragmas")
    unrolled = ("-Wno-pass-failed",)  # Clang 14 warns where it does not unroll as a pragma asks
    command = [*find_compiler().command, *strict, *unrolled, "-O3", "-c", "-o", "f.o", str(source)]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=300)


@pytest.mark.parametrize(
    "text", ["+ij~i | j:70000 | i j j' | j':u", SCHEDULES["inside each other"]]
)
def test_what_is_unrolled_in_part_is_right(text: str) -> None:
    x = np.arange(3 * 211, dtype=np.float32).reshape(3, 211) % 7
    component = i(text)
    np.testing.assert_array_equal(component(x), component(x, target="numpy"))
