"""Kernels of PolyBench/C 4.2 (Pouchet and Yuki, 2016) without a recurrence, in f64: ``--suite polybench``.

A stencil is one step in time, as far as its results do not depend on the border. Kernels that need what they have just
written (Cholesky, LU, Durbin, Gram-Schmidt, triangular solvers, Seidel, ADI, Deriche, Floyd-Warshall, Nussinov) are no
tensor expressions. Symmetric results are computed whole, by everyone. ``C loops`` are the loops of a reader of the
kernel's definition, for those kernels that have no library call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench.suites import Task, arrays, kept

ALPHA, BETA = 1.5, 1.2

PRODUCT = "ik*kj~ijk >> +ijk~ij"
BY_ROWS = "(ij*j~ij >> +ij~i)"
BY_COLUMNS = "(ij*i~ij >> +ij~j)"
SUM = "ij+ij~ij"


def tasks(seed: int, count: int) -> Iterator[Task]:
    """All kernels, whatever the count."""
    del count
    for family in (_products, _triangles, _two_passes, _vectors, _statistics, _stencils):
        yield from family(seed)


def _times(value: float, axes: str = "ij") -> str:
    return f"(I | {value}) >> {axes}*.~{axes}"


class _Maker:
    """A task of a seed from what differs between kernels."""

    def __init__(self, seed: int, kind: str) -> None:
        self._seed = seed
        self._kind = kind

    def __call__(
        self,
        title: str,
        text: str,
        shapes: Sequence[Sequence[int]],
        meaning: Callable[..., Any],
        loops: tuple[str, Sequence[Sequence[int]]] = ("", ()),
    ) -> Task:
        """``loops``: the statements of the function in C, whose arrays are a, b, ..., and the shapes of its results."""
        body, outputs = loops
        names = "abcdefghijklm"[: len(shapes) + len(outputs)]
        given = ", ".join(
            f"{'const ' * (n < len(shapes))}double *restrict {name}" for n, name in enumerate(names)
        )
        c = f"#include <string.h>\nvoid run({given})\n{{\n{body}\n}}\n" if body else ""
        data = arrays(self._seed, "float64", *shapes)
        return Task(self._kind, text, data, meaning, title=title, loops=c, outputs=tuple(outputs))


def _products(seed: int) -> Iterator[Task]:
    task = _Maker(seed, "products")
    n, m, k = 600, 660, 720
    yield task(
        "gemm",
        f"({PRODUCT} >> {_times(ALPHA)} | {_times(BETA)}) >> {SUM}",
        ((n, k), (k, m), (n, m)),
        lambda _, a, b, c: ALPHA * (a @ b) + BETA * c,
    )
    yield task(
        "2mm",
        f"({PRODUCT} >> {_times(ALPHA)} >> {PRODUCT} | {_times(BETA)}) >> {SUM}",
        ((400, 550), (550, 450), (450, 600), (400, 600)),
        lambda _, a, b, c, d: (ALPHA * (a @ b)) @ c + BETA * d,
    )
    yield task(
        "3mm",
        f"(({PRODUCT}) | ({PRODUCT})) >> {PRODUCT}",
        ((400, 500), (500, 450), (450, 600), (600, 550)),
        lambda _, a, b, c, d: (a @ b) @ (c @ d),
    )
    yield task(
        "doitgen", "rqs*sp~rqps >> +rqps~rqp", ((150, 140, 160), (160, 160)), lambda _, a, c: a @ c
    )
    yield task(
        "syrk",
        f"((I & I) >> ik*jk~ijk >> +ijk~ij >> {_times(ALPHA)} | {_times(BETA)}) >> {SUM}",
        ((600, 500), (600, 600)),
        lambda _, a, c: ALPHA * (a @ a.T) + BETA * c,
    )
    yield task(
        "syr2k",
        f"(((I | I) & (~(I | I))) >> (ik*jk~ijk >> +ijk~ij | ik*jk~ijk >> +ijk~ij) >> {SUM}"
        f" >> {_times(ALPHA)} | {_times(BETA)}) >> {SUM}",
        ((600, 500), (600, 500), (600, 600)),
        lambda _, a, b, c: ALPHA * (a @ b.T + b @ a.T) + BETA * c,
    )


def _triangles(seed: int) -> Iterator[Task]:
    task = _Maker(seed, "triangles")
    n, m = 500, 600
    yield task(
        "trmm",
        f"(I | (I & I)) >> ((ki[i<k]*kj~ikj >> +ikj~ij) | I) >> {SUM} >> {_times(ALPHA)}",
        ((n, n), (n, m)),
        lambda xp, a, b: ALPHA * (xp.tril(a, -1).T @ b + b),
    )
    yield task(
        "symm",
        f"(((I & I) >> ik[k<=i]+ki[i<k]~ik | I) >> {PRODUCT} >> {_times(ALPHA)}"
        f" | {_times(BETA)}) >> {SUM}",
        ((n, n), (n, m), (n, m)),
        lambda xp, a, b, c: ALPHA * ((xp.tril(a) + xp.tril(a, -1).T) @ b) + BETA * c,
    )


ROWS = 1900
"""Rows and columns of the matrices that are multiplied by vectors."""


def _two_passes(seed: int) -> Iterator[Task]:
    task = _Maker(seed, "vectors")
    n, size = ROWS, f"    enum {{ n = {ROWS} }};\n"
    yield task(
        "atax",
        f"(I & {BY_ROWS}) >> {BY_COLUMNS}",
        ((n, n), (n,)),
        lambda _, a, x: (a @ x) @ a,
        (
            size
            + """    memset(c, 0, n * sizeof(double));
    for (int i = 0; i < n; ++i) {
        double sum = 0;
        for (int j = 0; j < n; ++j) sum += a[i * n + j] * b[j];
        for (int j = 0; j < n; ++j) c[j] += a[i * n + j] * sum;
    }""",
            ((n,),),
        ),
    )
    yield task(
        "bicg",
        f"~(I & {BY_COLUMNS}) >> (I | {BY_ROWS})",
        ((n, n), (n,), (n,)),
        lambda _, a, x, y: (x @ a, a @ y),
        (
            size
            + """    memset(d, 0, n * sizeof(double));
    for (int i = 0; i < n; ++i) {
        double sum = 0;
        for (int j = 0; j < n; ++j) {
            d[j] += b[i] * a[i * n + j];
            sum += a[i * n + j] * c[j];
        }
        e[i] = sum;
    }""",
            ((n,), (n,)),
        ),
    )


def _vectors(seed: int) -> Iterator[Task]:
    task = _Maker(seed, "vectors")
    n, size = ROWS, f"    enum {{ n = {ROWS} }};\n"
    yield task(
        "mvt",
        f"~(I & ({BY_ROWS} >> i+i~i)) >> (I | ({BY_COLUMNS} >> j+j~j))",
        ((n, n), (n,), (n,), (n,), (n,)),
        lambda _, a, y, u, z, v: (u + a @ y, v + z @ a),
    )
    yield task(
        "gesummv",
        f"~(I & (j*ij~ij >> +ij~i)) >> ({_times(ALPHA, 'i')} | (j*ij~ij >> +ij~i >> {_times(BETA, 'i')}))"
        " >> i+i~i",
        ((n,), (n, n), (n, n)),
        lambda _, x, a, b: ALPHA * (a @ x) + BETA * (b @ x),
        (
            size
            + f"""    for (int i = 0; i < n; ++i) {{
        double first = 0, second = 0;
        for (int j = 0; j < n; ++j) {{
            first += b[i * n + j] * a[j];
            second += c[i * n + j] * a[j];
        }}
        d[i] = {ALPHA} * first + {BETA} * second;
    }}""",
            ((n,),),
        ),
    )

    def gemver(_: Any, a: Any, *vectors: Any) -> Any:
        u1, v1, u2, v2, y, z, x = vectors
        h = a + u1[:, None] * v1 + u2[:, None] * v2
        new = x + BETA * (y @ h) + z
        return h, new, ALPHA * (h @ new)

    yield task(
        "gemver",
        f"(I | i*j~ij | i*j~ij) >> {SUM} >> {SUM} >> "
        f"(I & ({BY_COLUMNS} >> {_times(BETA, 'j')} >> j+j~j >> j+j~j)) >> "
        f"((I | I) & ({BY_ROWS} >> {_times(ALPHA, 'i')}))",
        ((n, n), *[(n,)] * 7),
        gemver,
    )


def _statistics(seed: int) -> Iterator[Task]:
    task = _Maker(seed, "statistics")
    n, m = 700, 600
    centered = f"(I & (+ij~j >> {_times(1 / n, 'j')})) >> ij-j~ij"
    gram = "(I & I) >> ki*kj~ijk >> +ijk~ij"

    def covariance(xp: Any, x: Any) -> Any:
        c = x - x.mean(0, **kept(xp))
        return c.T @ c / (n - 1)

    def correlation(xp: Any, x: Any) -> Any:
        c = x - x.mean(0, **kept(xp))
        scaled = c / xp.sqrt((c * c).sum(0))
        return scaled.T @ scaled

    yield task(
        "covariance", f"{centered} >> {gram} >> {_times(1 / (n - 1))}", ((n, m),), covariance
    )
    yield task(
        "correlation",
        f"{centered} >> (I & ((I & I) >> ij*ij~ij >> +ij~j >> (I | 0.5) >> j^.~j)) >> ij/j~ij"
        f" >> {gram}",
        ((n, m),),
        correlation,
    )


def _stencils(seed: int) -> Iterator[Task]:
    task = _Maker(seed, "stencils")
    for n in (4000, 2_000_000):
        yield task(
            f"jacobi-1d, {n}",
            f"+(i+u:3)~i >> {_times(0.33333, 'i')}",
            ((n,),),
            lambda _, a: 0.33333 * (a[:-2] + a[1:-1] + a[2:]),
            (
                f"    for (int i = 0; i < {n - 2}; ++i) b[i] = 0.33333 * (a[i] + a[i + 1] + a[i + 2]);",
                ((n - 2,),),
            ),
        )
    yield from _squares(task)
    yield from _cubes(task)


def _sum_of(terms: Sequence[str], axes: str) -> str:
    """The sum of views of one array."""
    total = terms[0]
    for term in terms[1:]:
        total = f"(({total}) & {term}) >> {axes}+{axes}~{axes}"
    return total


def _shifted(shifts: Sequence[int], extents: Sequence[int], axes: str) -> str:
    """A view of an array from these positions on, as long as the inside of its border."""
    parts = zip(axes, extents, shifts, strict=True)
    return f"{''.join(f'({axis}:{extent - 2}+{shift})' for axis, extent, shift in parts)}~{axes}"


def _squares(task: _Maker) -> Iterator[Task]:
    n, shape = 1300, (1300, 1300)
    cross = ((1, 1), (1, 0), (1, 2), (2, 1), (0, 1))

    def jacobi(_: Any, a: Any) -> Any:
        inside = a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]
        return 0.2 * (inside + a[2:, 1:-1] + a[:-2, 1:-1])

    yield task(
        "jacobi-2d",
        f"{_sum_of([_shifted(each, shape, 'ij') for each in cross], 'ij')} >> {_times(0.2)}",
        (shape,),
        jacobi,
        (
            f"""    enum {{ n = {n}, m = {n - 2} }};
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < m; ++j) {{
            const double *at = a + (i + 1) * n + j + 1;
            b[i * m + j] = 0.2 * (at[0] + at[-1] + at[1] + at[n] + at[-n]);
        }}""",
            ((n - 2, n - 2),),
        ),
    )

    def smoothed(_: Any, a: Any, w: Any) -> Any:
        parts = [w[u, v] * a[u : u + n - 2, v : v + n - 2] for u in range(3) for v in range(3)]
        return sum(parts[1:], parts[0])

    yield task(
        "convolution of 3 x 3",
        "(i+u)(j+v)*uv~ijuv >> +ijuv~ij",
        (shape, (3, 3)),
        smoothed,
        (
            f"""    enum {{ n = {n}, m = {n - 2} }};
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < m; ++j) {{
            double sum = 0;
            for (int u = 0; u < 3; ++u)
                for (int v = 0; v < 3; ++v) sum += b[3 * u + v] * a[(i + u) * n + j + v];
            c[i * m + j] = sum;
        }}""",
            ((n - 2, n - 2),),
        ),
    )
    before, after = _shifted((1, 0), shape, "ij"), _shifted((1, 2), shape, "ij")
    yield task(
        "difference of fdtd-2d",
        f"(I | (({after} & {before}) >> ij-ij~ij >> {_times(0.5)})) >> ij-ij~ij",
        ((n - 2, n - 2), shape),
        lambda _, e, h: e - 0.5 * (h[1:-1, 2:] - h[1:-1, :-2]),
    )


def _cubes(task: _Maker) -> Iterator[Task]:
    n, shape = 120, (120, 120, 120)
    around = ((2, 1, 1), (0, 1, 1), (1, 2, 1), (1, 0, 1), (1, 1, 2), (1, 1, 0))
    sides = _sum_of([_shifted(each, shape, "ijk") for each in around], "ijk")
    middle = _shifted((1, 1, 1), shape, "ijk")

    def heat(_: Any, a: Any) -> Any:
        rows = a[2:, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1] + a[1:-1, 2:, 1:-1] + a[1:-1, :-2, 1:-1]
        return 0.125 * (rows + a[1:-1, 1:-1, 2:] + a[1:-1, 1:-1, :-2]) + 0.25 * a[1:-1, 1:-1, 1:-1]

    yield task(
        "heat-3d",
        f"(({sides} >> {_times(0.125, 'ijk')}) & ({middle} >> {_times(0.25, 'ijk')})) >> ijk+ijk~ijk",
        (shape,),
        heat,
        (
            f"""    enum {{ n = {n}, m = {n - 2} }};
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < m; ++j)
            for (int k = 0; k < m; ++k) {{
                const double *at = a + ((i + 1) * n + j + 1) * n + k + 1;
                const double around = at[n * n] + at[-n * n] + at[n] + at[-n] + at[1] + at[-1];
                b[(i * m + j) * m + k] = 0.125 * around + 0.25 * at[0];
            }}""",
            ((n - 2, n - 2, n - 2),),
        ),
    )
