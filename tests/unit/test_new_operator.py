"""An operator is two rows of ``core/ops.py``: one that is added works everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRIMITIVE = """
        Primitive(
            "hypot", 2, "float", "length", Wording("length"), Notation("hypot"), cost=8,
            derivative=Derivative(lambda p, g, z, x, y: (g * x / z, g * y / z)),
        ),"""
OPERATOR = """
        Op("%", "hypot", "square"),"""
END = "\n    )\n}\n# fmt: on\n"
SCRIPT = """
import numpy as np
from ilang import i

x, y = np.float32([[3, 1], [8, 0.5]]), np.float32([[4, 2], [6, 0.25]])
program = i("ij%ij~ij")
np.testing.assert_allclose(program(x, y, target="cuda-emulated"), np.hypot(x, y), rtol=1e-6)
for target in ("numpy", "c"):
    np.testing.assert_allclose(program(x, y, target=target), np.hypot(x, y), rtol=1e-6)
    np.testing.assert_allclose(i("%ij~ij")(x, target=target), x * x, rtol=1e-6)
    dx, dy = program.grad()(x, y, np.ones_like(x), target=target)
    np.testing.assert_allclose(dx, x / np.hypot(x, y), rtol=1e-6)
    np.testing.assert_allclose(dy, y / np.hypot(x, y), rtol=1e-6)
kernel = i('elementwise("f: x[i,j], y[i,j] -> hypot(x, y)")')
np.testing.assert_allclose(kernel(x, y), np.hypot(x, y), rtol=1e-6)
page = str(program.explain())
assert "hypot(" in page, page
assert "hypotf(" in program.source("c") and "hypotf(" in program.source("cuda")
"""


def with_rows(folder: Path) -> None:
    """A copy of the product whose table has another operator."""
    for layer in ("core", "codegen", "icli", "ilang"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / layer, folder / layer, symlinks=True, ignore=ignored)
    table = folder / "core" / "ops.py"
    primitives, operators, rest = table.read_text("utf-8").split(END)
    table.write_text(END.join((primitives + PRIMITIVE, operators + OPERATOR, rest)), "utf-8")


def test_an_operator_is_two_rows(tmp_path: Path) -> None:
    with_rows(tmp_path)
    settings = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
