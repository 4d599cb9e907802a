"""Values that a thread of a GPU computes in turn share a kernel; numbers are computed where they are read."""

from __future__ import annotations

import numpy as np
import pytest

from ilang import i
from ilang.codegen.emulator.program import emulated
from tests.shares import one_in
from tests.unit.core.test_gpu_rows import scheduled

MOMENT = "m = (ij+ij~ij)(x, g); p = (ij-ij~ij)(y, m)"


@pytest.mark.parametrize(
    ("text", "kernels"),
    [
        (f"f(x[i,j], y[i,j], g[i,j]) = {{ {MOMENT}; m, p }}", 1),
        (
            "f(x[i,j], y[i,j]) = { a = (-ij~ij)(x); b = (ij*ij~ij)(a, y); c = (ij+ij~ij)(a, b); a, b, c }",
            1,
        ),
        (
            f"f(x[i,j], y[i,j], g[i,j]) = {{ {MOMENT}; q = (^ij~ij)(g); m, p, q }}",
            2,
        ),  # reads nothing
        ("f(x[i,j], y[j,i]) = { a = (-ij~ij)(x); b = (ij-ji~ji)(a, y); a, b }", 2),  # another order
        ("f(x[i,i]) = { a = (-ij~ij)(x); b = (ij-ji~ij)(a, a); a, b }", 2),  # other elements
        ("f(x[i], y[i,j]) = { a = (-i~i)(x); b = (i*ij~ij)(a, y); a, b }", 2),  # fewer loops
        ("f(x[i,j]) = { a = (-ij~ij)(x); s = (+ij~i)(a); b = (ij/i~ij)(a, s); a, b }", 2),
        ("f(x[i,j]) = { a = (-ij~ij)(x); s = (+ij~.)(a); a, s }", 2),
        ("f(x[b], t[v]) = { a = (b@v~b)(x, t); c = (b*b~b)(a, a); a, c }", 1),
        ("f(x[i,j], s[]) = { k = (.*.~.)(s, s); (ij*.~ij)(x, k) }", 1),  # a number
        ("f(x[i,j], s[]) = { k = (.*.~.)(s, s); y = (ij*.~ij)(x, k); y, k }", 2),  # which is stored
    ],
)
def test_kernels(text: str, kernels: int) -> None:
    assert len(scheduled(text).groups) == kernels


@pytest.mark.parametrize(
    "body",
    [
        f"{MOMENT}; q = (ij*ij~ij)(p, m); m, p, q",
        "s = (+ij~i)(x); a = (-i~i)(s); b = (i+i~i)(a, s); k = (ij+ij~ij)(y, g); a, b, k",
        "d = (ij*jk~ijk >> +ijk~ik)(x, g); e = (-ik~ik)(d); h = (ik/ik~ik)(e, y); d, e, h",
        "a = (ij+ij~ij)(x, y); b = (ij*ji~ij)(a, g); c = (ij+ij~ij)(a, b); a, b, c",
        "n = (ij*ij~ij)(x, y); s = (+ij~.)(g); k = (.*.~.)(s, s); p = (ij*.~ij)(n, k); n, p",
    ],
)
@pytest.mark.parametrize("size", one_in(3, [7, 1, 300]))
def test_results_are_those_of_the_reference(body: str, size: int) -> None:
    """Each thread reads what it has written, in whatever order threads run."""
    rng = np.random.default_rng(size)
    given = [rng.standard_normal((size, size)).astype(np.float32) for _ in range(3)]
    f = i(f"f(x[i,j], y[i,j], g[i,j]) = {{ {body} }}")
    wanted, device = f(*given, target="numpy"), emulated(checked=True)
    arrays = [device.array(each) for each in given]
    for result, right in zip(f(*arrays, target="cuda-emulated"), wanted, strict=True):
        np.testing.assert_allclose(result.get(), right, rtol=2e-4, atol=2e-4)
