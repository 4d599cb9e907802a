"""Register tiles compiled for several vector units: every extent, ragged or short, gives the sum that it means."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ilang import i, load
from ilang.codegen.compile import toolchain
from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.targets import c
from ilang.core.pipeline import (
    graph_of,
    infer,
    lower,
    program_graph,
    stage_text,
    text_component,
    text_program,
)
from ilang.core.schedule.shaped_to_schedule import shaped_to_schedule
from tests.conftest import QUICK
from tests.property import matrix, native

pytestmark = pytest.mark.usefixtures("shared_cache")

UNITS = {
    "machine": ("-O2", "-march=native"),
    "plain": ("-O2",),
    "avx2": ("-O2", "-mavx2", "-mfma"),
    "sanitized": ("-O1", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"),
}
EXTENTS = [
    *((1, 1, 1), (6, 512, 64), (7, 513, 65), (9, 33, 8), (13, 1, 48), (128, 128, 128)),
    *((3, 0, 70), (0, 4, 9), (9, 4, 0), (10, 1500, 33), (17, 40, 129), (8, 2, 63), (23, 1024, 10)),
    *((3, 40, 70), (1, 600, 64), (4, 1030, 128), (6, 0, 64), (12, 1025, 192)),
]


def function(
    text: str, flags: tuple[str, ...], place: Path, dtype: str | None = None
) -> ctypes.CDLL:
    """A program of two inputs compiled with some flags."""
    program = lower(infer(graph_of(text_component(text), "f"), (dtype, dtype)))
    source, library = place / "f.c", place / "f.so"
    source.write_text(c.emit(program))
    command = [*find_compiler().command, *toolchain.STANDARD, *flags]
    subprocess.run([*command, str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


@pytest.mark.deep
@pytest.mark.parametrize("unit", ["machine", "plain", native.AVX2, "sanitized"])
def test_products_of_ragged_extents(unit: str, tmp_path: Path) -> None:
    library = function("ik*kj~ijk >> +ijk~ij", UNITS[unit], tmp_path)
    library.f_work.restype = ctypes.c_size_t
    random = np.random.default_rng(0)
    for m, k, n in EXTENTS:
        a = random.standard_normal((m, k), dtype=np.float32)
        b = random.standard_normal((k, n), dtype=np.float32)
        out = np.full((m, n), np.nan, np.float32)
        sizes = (ctypes.c_int64 * 3)(m, k, n)
        work = np.full(library.f_work(sizes) // 4 + 16, np.nan, np.float32)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (a, b, out, work))
        assert library.f(sizes, *pointers) == 0
        exact = a.astype(np.float64) @ b.astype(np.float64)
        bound = 1e-5 * (np.abs(a).astype(np.float64) @ np.abs(b)) + 1e-30
        assert (np.abs(out - exact) <= bound).all(), (m, k, n)


@pytest.mark.parametrize(("rows", "row"), [(240, r"i1"), (250, r"from_i1")])
def test_a_row_is_last_in_an_index(rows: int, row: str) -> None:
    """Compilers then keep one address for all rows; where rows may end earlier, only parts with fewer ask for ends."""
    text = i("ik*kj~ijk >> +ijk~ij | i:24,j:16 | j i k i' j' 0").source("c", (rows, 64), (64, 16))
    assert f"in0[(TILE_I * i + first_row) * 64 + k + {row} * 64] * loaded0" in " ".join(
        text.split()
    )
    assert ("const int64_t from_i1 = all_rows ? i1 : il_min_i64(" in text) == (rows % 24 > 0)


def test_a_strip_of_windows_goes_from_registers_into_the_result() -> None:
    """Its few terms are unrolled; where the last strip is shorter it is copied, lane by lane."""
    component = i("(i+u)(j+v)*uv~ijuv >> +ijuv~ij")
    text = component.source("c", (20, 402), (3, 3))
    assert "const int stored_out_tile = il_HAS_VECTORS && TILE_J * (j + 1) <= 400;" in text
    assert "stored_out_tile ? &out[i * 400 + TILE_J * j] : out_tile);" in text
    assert text.count("#pragma GCC unroll 3\n") == 2
    assert "#pragma GCC unroll 9\n" not in component.source("c", (20, 402), (9, 9))
    random = np.random.default_rng(0)
    image, weights = (random.integers(-3, 4, n).astype(np.float32) for n in ((20, 402), (3, 3)))
    expected = component(image, weights, target="numpy")
    assert np.array_equal(component(image, weights), expected)


@pytest.mark.parametrize("acc", ["+", ">"])
def test_a_tile_takes_what_is_computed_outside_it(acc: str) -> None:
    """The factor of each row is a sum in a scalar variable, computed once, outside the function of the tile."""
    product = "c*jx~cjx | x:16,j:4 | c 0 x j j' x'"
    component = i(f"+ca~c >> {product} >> {acc}cjx~cx | x:16,j:4 | c x j j' x' 0")
    assert "_tile0_micro(" in component.source("c")
    random = np.random.default_rng(0)
    for shapes in (((3, 4), (2, 16)), ((1, 4), (5, 24)), ((2, 0), (9, 33)), ((2, 3), (0, 1))):
        sums, values = (random.integers(-3, 4, shape).astype(np.float32) for shape in shapes)
        expected = component(sums, values, target="numpy")
        assert np.array_equal(component(sums, values), expected)


def test_two_parts_of_an_axis_around_a_tile(tmp_path: Path) -> None:
    """Where a part ends depends on the other, so they are loops around the tile, not blocks of it."""
    place = tmp_path / "f.i"
    place.write_text(
        "f(a[i,k,9], b[k,9,j]) = ikl*klj~ijkl | i:6,j:16,k:64 | j 1 i k k' l i' j'"
        " >> +ijkl~ij | i:6,j:16,k:64 | j i k k' l i' j' 0\n",
        "utf-8",
    )
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, shape).astype(np.float32) for shape in ((7, 70, 9), (70, 9, 17)))
    np.testing.assert_array_equal(load(place)["f"](a, b), np.einsum("ikl,klj->ij", a, b))


PRODUCTS = {
    "batch": ("bik*bkj~bijk >> +bijk~bij", "bik,bkj->bij", ((3, 13, 40), (3, 40, 130))),
    "one for all": ("bik*kj~bijk >> +bijk~bij", "bik,kj->bij", ((2, 13, 600), (600, 64))),
    "right transposed": ("ik*jk~ijk >> +ijk~ij", "ik,jk->ij", ((13, 600), (130, 600))),
    "left transposed": ("ki*kj~ijk >> +ijk~ij", "ki,kj->ij", ((600, 13), (600, 130))),
    "two sums": ("ikl*klj~ijkl >> +ijkl~ij", "ikl,klj->ij", ((13, 40, 20), (40, 20, 70))),
    "result transposed": ("ik*kj~ijk >> +ijk~ij >> ij~ji", "ik,kj->ji", ((13, 600), (600, 130))),
    "large": ("ik*kj~ijk >> +ijk~ij", "ik,kj->ij", ((130, 200), (200, 64))),
    "few strips": ("ik*kj~ijk >> +ijk~ij", "ik,kj->ij", ((260, 1100), (1100, 200))),
}


@pytest.mark.deep
@pytest.mark.parametrize("what", PRODUCTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_are_those_of_one_thread(what: str, dtype: str, tmp_path: Path) -> None:
    text, sums, shapes = PRODUCTS[what]
    kind = {"float32": "f32", "float64": "f64"}[dtype]
    library = function(text, (*QUICK, "-march=native", "-fopenmp"), tmp_path, kind)
    library.f_work.restype = ctypes.c_size_t
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(dtype) for shape in shapes]
    exact = np.einsum(sums, *arrays, dtype=np.float64)
    left, right = sums.split("->")[0].split(",")
    extents = dict(zip(left + right, (*shapes[0], *shapes[1]), strict=True))
    sizes = (ctypes.c_int64 * len(extents))(*extents.values())
    work = np.full(library.f_work(sizes) // 8 + 16, np.nan)
    results = []
    for threads in (1, 2, 5):
        library.omp_set_num_threads(threads)
        out = np.full(exact.shape, np.nan, dtype)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (*arrays, out, work))
        assert library.f(sizes, *pointers) == 0
        results.append(out)
    assert all(np.array_equal(results[0], each) for each in results[1:])
    bound = 1e-5 * np.einsum(sums, *map(np.abs, arrays), dtype=np.float64)
    assert (np.abs(results[0] - exact) <= bound).all()


def test_a_tile_of_one_row_has_no_loop_over_rows() -> None:
    """A row that every kind of vector holds whole has one function that computes it, and one that calls it."""
    text = i("+ij~j").source("c", (100, 20))
    assert "tile_row" not in text
    assert "first_row" not in text
    assert "_tile0_loop" not in text
    assert "_tile0_full(0, in0, out_tile);" in text


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("jx~jx | x:8,j:2 | j x 0 x' j' >> +jx~j | x:8,j:2 | j x x' j' 0", [(5, 7)]),
        ("jx~jx | x:8,j:2 | j x 0 x' j' >> +jx~j | x:8,j:2 | j x x' j' 0", [(3, 600)]),
        ("-jx~jx >> jx~jx | x:8,j:2 | j x 0 x' j' >> +jx~j | x:8,j:2 | j x x' j' 0", [(5, 27)]),
        (
            "-c~c >> c*jx~cjx | x:2,j:4 | x j c 0 j' x' >> +cjx~x | x:2,j:4 | x j c j' x' 0",
            [(9,), (11, 5)],
        ),
    ],
)
def test_what_is_staged_between_the_blocks_of_a_tile(
    text: str, shapes: list[tuple[int, ...]]
) -> None:
    """The product that is reduced has a site of its own, inside a loop that could be a block of the tile."""
    random = np.random.default_rng(0)
    arrays = [random.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
    component = i(text)
    assert np.array_equal(component(*arrays), component(*arrays, target="numpy"))


def test_a_product_in_one_place_of_a_dimension_has_a_tile(tmp_path: Path) -> None:
    """As the gradient of the weights of a convolution that has one channel in."""
    path = tmp_path / "pinned.i"
    path.write_text('op f(a, b) = a *+ "i, k; k, j => i, 0, j" b\n')
    random = np.random.default_rng(0)
    for m, k, n in ((13, 700, 65), (40, 20, 33)):
        a, b = (random.integers(-3, 4, shape).astype(np.float32) for shape in ((m, k), (k, n)))
        session = load(path).session("f", shapes={"a": f"{m}, {k}", "b": f"{k}, {n}"})
        nests = shaped_to_schedule(session._solved.shaped()).nests
        assert any(nest is not None and all(nest.factors[:2]) for nest in nests), "rows and lanes"
        assert np.array_equal(session(a=a, b=b)[:, 0], a @ b)


KNOWN = """f(a[300, 13], b[300, 16], c[9, 20, 5, 23], d[9, 20, 5, 17], e[2, 13, 11], g[2, 13, 11, 19]) = {
  x = (ki*kj~ijk >> +ijk~ij)(a, b)
  y = (nxyi*nxyj~nxyij >> +nxyij~ij)(c, d)
  z = (nyxo*n(y+u:3-1)(x+v:3-1)~nyxuvo >> +nyxuvo~uvo)(g, e)
  x, y, z
}"""
"""Few lanes, so that a tile has more rows: side by side, or the windows of two dimensions. All extents are known."""


@pytest.mark.deep
@pytest.mark.parametrize("unit", ["machine", "plain", native.AVX2, "sanitized"])
def test_tiles_of_many_rows(unit: str, tmp_path: Path) -> None:
    program = lower(infer(program_graph(text_program(KNOWN))))
    explained = stage_text(program_graph(text_program(KNOWN)), "schedule")
    assert "i:15,j:16" in explained
    assert "i:32,j:6" in explained
    assert "in a register tile u v o' of 3 x 3 x 32" in explained
    source, library = tmp_path / "f.c", tmp_path / "f.so"
    source.write_text(c.emit(program))
    flags = [*UNITS[unit], "-O1"]
    command = [*find_compiler().command, *toolchain.STANDARD, *flags]
    subprocess.run([*command, str(source), "-o", str(library), "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    random = np.random.default_rng(0)
    shapes = (
        *((300, 13), (300, 16), (9, 20, 5, 23), (9, 20, 5, 17)),
        *((2, 13, 11), (2, 13, 11, 19)),
    )
    inputs = [random.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
    outputs = [np.zeros(shape, np.float32) for shape in ((13, 16), (23, 17), (3, 3, 19))]
    loaded.f_work.restype = ctypes.c_size_t
    sizes = ctypes.byref(ctypes.c_char())  # every extent is fixed
    work = np.zeros(loaded.f_work(sizes) // 4 + 16, np.float32)
    pointers = (ctypes.c_void_p(array.ctypes.data) for array in (*inputs, *outputs, work))
    assert loaded.f(sizes, *pointers) == 0
    padded = np.pad(inputs[4], [(0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    wanted = (
        inputs[0].T @ inputs[1],
        np.einsum("nxyi,nxyj->ij", inputs[2], inputs[3]),
        np.einsum("nyxuv,nyxo->uvo", windows, inputs[5]),
    )
    assert all(map(np.array_equal, outputs, wanted))


@pytest.mark.parametrize(("width", "rows"), [(13, 15), (14, 15), (17, 10), (28, 15)])
def test_windows_of_known_extents_have_rows_of_equal_parts(
    width: int, rows: int, tmp_path: Path
) -> None:
    path = tmp_path / "windows.i"
    path.write_text("use nn\nop f(x[b|h, w, i], k[u, v, i->o]) = convolve(x, k)\n")
    shapes = {"x": f"2|5, {width}, 3", "k": "3, 3, 3->16"}
    sessions = [load(path).session("f", shapes=shapes, target=target) for target in ("c", "numpy")]
    nests = shaped_to_schedule(sessions[0]._solved.shaped()).nests
    assert any(nest is not None and (rows,) in nest.factors for nest in nests)
    random = np.random.default_rng(0)
    arrays = {
        name: random.integers(-3, 4, tensor.shape.memory()).astype(np.float32)
        for name, tensor in sessions[0].inputs.items()
    }
    assert np.array_equal(*(session(**arrays) for session in sessions))


LEFT_OVER = (
    *(
        (1, 5, 33),
        (2, 5, 58),
        (3, 5, 16),
        (4, 5, 65),
        (5, 5, 130),
        (7, 5, 5),
        (8, 5, 63),
        (9, 5, 64),
    ),
    *((10, 5, 97), (14, 5, 41), (23, 5, 100), (11, 5, 72), (10, 5, 104), (7, 3, 76), (15, 5, 72)),
)
"""Rows, terms and lanes: of some only few registers or narrow vectors leave any over; the last four crashed."""


@pytest.mark.parametrize("mode", [mode for mode in matrix.modes() if mode != "neon"])
def test_tiles_of_known_extents_compute_what_is_left_over(mode: str) -> None:
    cells = [matrix.product((rows, terms), (terms, lanes)) for rows, terms, lanes in LEFT_OVER]
    compared, wrong = matrix.check(cells, mode)
    assert not wrong, wrong
    assert compared == 2 * len(cells)


def test_what_never_is_left_over_is_not_compiled() -> None:
    product = graph_of(text_component("ik*kj~ijk >> +ijk~ij"), "f")
    known = c.emit(lower(infer(product, shapes=[(200, 300), (300, 250)])))
    assert "tile_rows - row <= f_k0_tile0_few)" in known
    assert "tile_rows - row <= f_k0_tile0_some)" not in known
    assert "LEAVES(58, f_k0_tile0_lanes, 0, f_k0_tile0_lanes / 2)" in known
    opened = c.emit(lower(infer(product)))
    assert "LEAVES" not in opened
    assert "tile_rows - row <= f_k0_tile0_some)" in opened


def test_a_sum_of_one_term_in_a_tile() -> None:
    """Zero and the product of two vectors: the functions that add zero to scalars take no vectors."""
    rng = np.random.default_rng(4)
    x, y, z = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((17, 17), 17, (17, 17)))
    arrays = (x, y, z[:, :, None], z[:, None])
    wanted = np.einsum("ba,a,bac,bca->a", *arrays)
    np.testing.assert_array_equal(i('einsum("ba,a,bac,bca->a")')(*arrays), wanted)


def test_kernels_of_few_elements_are_compiled_apart() -> None:
    """GCC 12 took an element of the second gradient from a register that nothing had written."""
    rng = np.random.default_rng(0)
    shapes = ((2,), (3, 1, 2), (3, 1), (3,), (1,), (2, 3, 3))
    arrays = [rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
    gradient = i('einsum("e,abe,ab,d,b->eda")').grad()
    for found, wanted in zip(gradient(*arrays), gradient(*arrays, target="numpy"), strict=True):
        np.testing.assert_array_equal(found, wanted)
