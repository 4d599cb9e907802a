"""Programs on a GPU that the emulator plays: threads in any order, each load and store checked."""

from __future__ import annotations

import functools
import itertools
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang import i
from ilang.codegen.call.native import Native
from ilang.codegen.compile.compilers import find_compiler
from ilang.codegen.emulator.program import load
from ilang.codegen.project.cases import Case
from ilang.codegen.project.render import write_project
from ilang.codegen.system.files import read_module
from ilang.codegen.targets import cuda
from ilang.codegen.targets.identifiers import function_identifier
from ilang.codegen.targets.session import ExportedFunction
from ilang.core.ir.kernel import Program
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import GPU
from ilang.core.notation.files.module import exports
from ilang.core.pipeline import fit, graph_of, infer, lower, module_graph, text_component
from ilang.core.record import replace
from ilang.core.reference import evaluate
from ilang.icli.arrays import array_of
from tests.golden.test_golden import FOLDER, graph_in
from tests.property import emulated
from tests.property.batch import Batch, call_of, traffic_of
from tests.property.checking import check
from tests.property.meaning import TYPES
from tests.property.native import Call
from tests.property.self_tests import calls_of, trouble
from tests.property.trial import draw
from tests.shares import share

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "samples").glob("[0-9]*.i"))
GOLDEN = sorted((*FOLDER.glob("*.md"), *FOLDER.glob("cuda/*.md")))
GIVEN = re.compile(r"^# in \w+ = (.+)$", re.MULTILINE)
TOLERANCE = 1e-5
ATTENTION = """
md*nd~mnd | m:16,n:16 | n m m' n' d >> +mnd~mn | m:16,n:16 | n m m' n' d 0
>> (I & >mn~m | m:16,n:16 | n m 0 m' n') >> mn-m~mn | m:16,n:16 | n m 0 1 m' n'
>> ^mn~mn | m:16,n:16 | n m 0 m' n'
>> (I & +mn~m | m:16,n:16 | n m 0 m' n') >> mn/m~mn | m:16,n:16 | n m 0 1 m' n'
>> mn*nd~mdn | m:16,n:16 | n m m' d n' 0 >> +mdn~md | m:16,n:16 | n m m' d n' 0
"""
FLASH = """
md*nd~mnd | m:16:4,n:16:2,d:16 | m n d 0 1 d' m' n' m'' n''
>> +mnd~mn | m:16:4,n:16:2,d:16 | m n d d' m' n' m'' n'' 0 | m':t,n':t,m'':u,n'':u
>> (I & >mn~m | m:16:4,n:16:2 | m n 0 m' m'' n' n'' | m':t,m'':t)
>> mn-m~mn | m:16:4,n:16:2 | m n 0 1 m' n' m'' n''
>> ^mn~mn | m:16:4,n:16:2 | m n m' n' m'' n'' 0 | m':t,n':t,m'':u,n'':u
>> (I & +mn~m | m:16:4,n:16:2 | m n 0 m' m'' n' n'' | m':t,m'':t)
>> mn/m~mn | m:16:4,n:16:2 | m n 0 1 n' n'' m' m''
>> mn*ne~mne | m:16:4,e:16:4,n:16:2 | m e n 1 n' n'' m' e' m'' e'' 0
>> +mne~me | m:16:4,e:16:4,n:16:2 | m e n n' n'' m' e' m'' e'' 0 | m:p,e:p,m':t,e':t,m'':u,e'':u
"""
"""The same in tiles that threads share, which run: 64 rows and 32 columns, corrected in loops of each sum's own."""

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs g++")


@pytest.mark.parametrize("extent", [0, 1, 70, 4000, 4097])
def test_a_copy_that_is_shared_out_by_sectors_ends_with_its_array(extent: int) -> None:
    """How many elements a row of the copy has follows from the column, whose loop is split."""
    graph = graph_of(text_component(".!=r~r | r:64:64 | r 1 r'' r'"), "f")
    batch, shaped = Batch("cuda-checked"), infer(graph, ["i64", "i32"])
    batch.add(shaped)
    one, many = np.array(3, np.int64), np.arange(extent, dtype=np.int32)
    batch.call(shaped, (one, many), [one != many])
    batch.agree(0)


def test_one_block_reduces_along_an_axis_twice() -> None:
    """Both loops of a block go several iterations at a time, and name the first of those that are left."""
    x, y = np.arange(300, dtype=np.float32), np.arange(130, dtype=np.float32)
    sums = i("i+j~ij >> (I & +ij~i) >> ij-i~ij >> +ij~i")(x, y, target="cuda-emulated")
    np.testing.assert_allclose(sums, (1 - y.size) * (x[:, None] + y).sum(1), rtol=1e-6)


@pytest.mark.overflow
@pytest.mark.parametrize(("seed", "count", "mode"), [(5000, 6, "cuda"), (5025, 15, "cuda-checked")])
@pytest.mark.batches(1)
def test_random_programs(seed: int, count: int, mode: str, batch: int) -> None:
    seed += 50 * batch
    tally = check([draw(seed + n) for n in range(count)], mode)
    assert not tally.failures, tally.told()
    assert tally.counts["programs"] == count


@pytest.mark.parametrize("mode", emulated.MODES)
def test_samples(mode: str) -> None:
    """The program of each lesson, on the inputs that it names."""
    batch = Batch(mode)
    for path in emulated.of_mode(SAMPLES, mode):
        shaped, arrays = sample(path)
        batch.add(shaped)
        batch.call(shaped, arrays, exact=False)
    batch.agree(TOLERANCE, 0)


@functools.cache
def golden_programs(mode: str) -> tuple[list[Program], list[Call], list[tuple[str, Case]]]:
    """Each at small extents, each 0, all 1, and more than tiles: what the self-test of a project runs."""
    programs: list[Program] = []
    calls: list[Call] = []
    cases: list[tuple[str, Case]] = []
    for path in emulated.of_mode(GOLDEN, mode):
        shaped = replace(infer(graph_in(path)), name=f"g{len(programs)}")
        function = ExportedFunction(shaped, lower(shaped, GPU))
        for call, case in calls_of(function, len(programs)):
            calls.append(call)
            cases.append((f"{path.name} at {case.extents}", case))
        programs.append(function.program)
    return programs, calls, cases


@pytest.mark.overflow
@pytest.mark.parametrize("mode", emulated.MODES)
def test_golden_programs(mode: str) -> None:
    programs, calls, cases = golden_programs(mode)
    for (name, case), answer in zip(
        cases, emulated.run(programs, calls, mode, in_all_modes=True), strict=True
    ):
        said = trouble(case, answer)
        assert not said, f"{name}: {said}"


MATMUL = (
    ((33, 20), (20, 45)),
    ((64, 16), (16, 64)),
    ((1, 1), (1, 1)),
    ((0, 5), (5, 3)),
    ((7, 0), (0, 7)),
)
SOFTMAX = "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"
NORM = "(I & (+ij~i >> (I | 0.5) >> i*.~i)) >> ij-i~ij >> (I & ((I & I) >> ij*ij~ij >> +ij~i)) >> ij/i~ij"
ATTENTION = f"ik*jk~ijk >> +ijk~ij >> {SOFTMAX} >> ij*jd~ijd >> +ijd~id"
CAUSAL = (
    "ik*jk~ijk >> +ijk~ij >> (I & >ij[j<=i]~i) >> ij-i~ij >> ^ij~ij >> (I & +ij[j<=i]~i) >> ij[j<=i]/i~ij"
    " >> ij*jd~ijd >> +ijd~id"
)
WRITTEN = (
    "ik*kj~ijk | i:16,j:16,k:16 | i j k 0 1 k' i' j' "
    ">> +ijk~ij | i:16,j:16,k:16 | i j k k' i' j' 0 | i:y,j:x,i':ty,j':tx"
)
ROWS = (((5, 700),), ((300, 3),), ((4, 0),), ((0, 4),))
SCHEDULED = {
    "threads": (
        "ik*kj~ijk | i:16,j:16,k:8 | i j k 0 1 i' j' k' >> +ijk~ij | i:16,j:16,k:8 | i j k i' j' k' 0",
        MATMUL,
    ),
    "registers": (
        (
            "ik*kj~ijk | i:8:4,j:8:4,k:8 | i j k 0 1 i' j' k' i'' j'' "
            ">> +ijk~ij | i:8:4,j:8:4,k:8 | i j k i' j' k' i'' j'' 0"
        ),
        MATMUL,
    ),
    "sums": ("+ij~i", ROWS),
    "softmax": (SOFTMAX, ROWS),
    "norm": (NORM, ROWS[:2]),
    "turned_rows": (SOFTMAX.replace("^ij~ij", "^ij~ij || j i"), ROWS),
    "split_rows": (SOFTMAX.replace("+ij~i", "+ij~i | i:2,j:8 | j i i' 0 j'"), ROWS),
    "bare_rows": (SOFTMAX.replace("ij/i~ij", "ij/i~ij | i:4 |"), ROWS),
    "some_rows": (SOFTMAX.replace(">ij~i", ">ij~i || j i"), ROWS),
    "shift_of_rows": (SOFTMAX.replace("ij-i~ij", "ij-i~ij || 1 j i"), ROWS),
    "total": ("+ij~.", (((50, 700),), ((1, 1),), ((0, 4),))),
    "product": ("ik*kj~ijk >> +ijk~ij", MATMUL),
    "turned": ("ij~ji", (((50, 70),), ((0, 3),))),
    "moved_bools": ("v>=.~v | v:4:4 | v 1 v' v''", (((64,), ()), ((7,), ()))),
    "moved_integers": ("ij~ji | j:16:4 | j j'' j' i >> i32", (((3, 64),), ((3, 7),))),
    "moved_doubles": ("ij~ij | j:16:2 | i j j' j'' >> f64", (((3, 64),), ((3, 7),))),
    "transpose": ("ij~ji | i:32,j:32 | j i 0 j' i'", (((50, 70),), ((1, 33),), ((0, 3),))),
    "rows": (
        (
            "(I & >ij~i || i j) >> ij-i~ij || i 1 j >> ^ij~ij || i j 0 "
            ">> (I & +ij~i || i 0 j) >> ij/i~ij || i 0 1 j"
        ),
        (((5, 70),), ((300, 3),)),
    ),
    "dimensions": (
        "ij+ij~ij | j:32 | i j j' | i:y,j:x,j':tx",
        (((5, 70), (5, 70)), ((0, 3), (0, 3))),
    ),
    "three": (
        "ijk+ijk~ijk | k:8 | i j k k' | i:z,j:y,k:x,k':tx",
        (((3, 4, 70), (3, 4, 70)), ((0, 3, 1), (0, 3, 1))),
    ),
    "odd": (
        "ij+ij~ij | i:5,j:3 | i j i' j' | i':ty,j':tx",
        (((12, 70), (12, 70)), ((0, 3), (0, 3))),
    ),
    "named": (
        (
            "ik*kj~ijk | i:8:4,j:8:4,k:8 | i j k 0 1 i' j' k' i'' j'' >> +ijk~ij "
            "| i:8:4,j:8:4,k:8 | i j k i' j' k' i'' j'' 0 | i:y,j:x,i':ty,j':tx,i'':u,j'':u"
        ),
        MATMUL,
    ),
    "copied": (
        "ij~ji | i:32,j:8 | j i 0 j' i' | j:y,i:x,j':ty,i':tx,0:s",
        (((50, 70),), ((1, 33),), ((0, 3),)),
    ),
    "blocks": ("-ij~ij || i j | i:x", (((5, 70),), ((300, 3),))),
    "threads_of_rows": ("+ij~i || i j | i:x,j:tx", (((5, 700),), ((300, 3),), ((4, 0),))),
    "warps_of_rows": (">ij~i || i j | i:x,j:l", (((5, 700),), ((300, 3),), ((4, 0),), ((0, 4),))),
    "one_warp": ("i*i~i >> +i~. || i 0 | i:l", (((70,), (70,)), ((0,), (0,)))),
    "warps_along_y": ("+ij~i || i j | i:y,j:l", (((5, 70),), ((300, 3),))),
    "warps_of_squares": ("ij~ji | i:32,j:8 | j i 0 j' i' | i':l", (((50, 70),), ((1, 33),))),
    "double": (WRITTEN.replace("k' i' j' >>", "k' i' j' | 0:s2,1:s2 >>"), MATMUL),
    "double_and_single": (WRITTEN.replace("k' i' j' >>", "k' i' j' | 0:s2,1:s >>"), MATMUL),
    "double_parts": (
        (
            "ik*kj~ijk | i:8:4,j:8:4,k:2:8 | i j k k' 0 1 k'' i' j' i'' j'' | 0:s2,1:s2 "
            ">> +ijk~ij | i:8:4,j:8:4,k:2:8 | i j k k' k'' i' j' i'' j'' 0"
        ),
        (*MATMUL, ((9, 70), (70, 21))),
    ),
    "double_and_computed": (
        (
            "md*nd~mnd | m:16,n:16 | m n m' n' d >> +mnd~mn | m:16,n:16 | m n m' n' d 0 "
            ">> mn*ne~mne | m:16,n:16,e:16 | m e n 0 1 n' m' e' | 0:s2,1:s2 "
            ">> +mne~me | m:16,n:16,e:16 | m e n n' m' e' 0 | m:y,e:x,m':ty,e':tx"
        ),
        (((20, 3), (35, 3), (35, 20)), ((3, 2), (0, 2), (0, 2)), ((3, 0), (17, 0), (17, 2))),
    ),
    "double_of_warps": (
        "ij~ji | i:32,j:8 | j i 0 j' i' | j:x,i:q,i':l,0:s2",
        (((70, 50),), ((1, 33),), ((0, 3),)),
    ),
    "online_tiles": (FLASH, (((70, 20), (45, 20), (45, 9)), ((3, 2), (0, 2), (0, 2)))),
    "online": (ATTENTION, (((20, 8), (35, 8), (35, 8)), ((3, 2), (0, 2), (0, 2)))),
}


@pytest.mark.parametrize("mode", emulated.MODES)
def test_written_schedules(mode: str) -> None:
    """The programs above, on numbers drawn."""
    batch, numbers = Batch(mode), np.random.default_rng(1)
    for name, (text, shapes) in emulated.of_mode([*SCHEDULED.items()], mode):
        shaped = infer(graph_of(text_component(text), name))
        batch.add(shaped)
        for given in shapes:
            batch.call(shaped, [numbers.normal(size=s).astype(np.float32) for s in given])
    batch.agree(TOLERANCE)


def test_conditions_on_what_a_thread_keeps_are_heeded() -> None:
    """A guard on elements that are stored; the end of a reduction whose terms are less than what fills copies."""
    draw = np.random.default_rng(3)
    guarded = i("ts[s<=t]*se~tse >> +tse~te").grad(wrt="in0")
    w, v, cotangent = (draw.standard_normal(dims) for dims in ((20, 20), (20, 5), (20, 5)))
    largest = i(
        "ik+kj~ijk | i:8,j:8,k:8 | i j k 0 1 k' i' j' "
        ">> >ijk~ij | i:8,j:8,k:8 | i j k k' i' j' 0 | i:p,j:p,i':t,j':t,k':u"
    )
    a, b = (-1 - draw.random(dims) for dims in ((20, 13), (13, 9)))
    for program, arrays in ((guarded, (w, v, cotangent)), (largest, (a, b))):
        given = [array.astype(np.float32) for array in arrays]
        wanted = program(*given, target="numpy")
        np.testing.assert_allclose(program(*given, target="cuda-emulated"), wanted, 1e-5, 1e-6)


@pytest.mark.parametrize("text", ["ik*kj~ijk >> +ijk~ij", "+kj~j | k:8:16 | j k k' k''"])
def test_sums_of_f32_stay_within_their_bound(text: str) -> None:
    """Of 1e-5 of the sum of the sizes of their terms, however many these are."""
    shaped = infer(graph_of(text_component(text), "f"))
    numbers = np.random.default_rng(3)
    arrays = [numbers.uniform(1, 2, (3000, 3)).astype(np.float32) for _ in shaped.inputs]
    arrays[0] = np.ascontiguousarray(arrays[0].T) if len(arrays) > 1 else arrays[0]
    extents = fit(shaped, [array.shape for array in arrays])
    (wanted,) = evaluate(shaped, arrays, extents, exact=True)
    output = np.zeros(wanted.shape, np.float32)
    loaded = load(cuda.emit(lower(shaped, GPU)), "f.cu", checked=False)
    free = np.array(call_of(0, shaped, arrays).extents, np.int64)
    assert loaded.call("f_host", free, *arrays, output) == 0
    np.testing.assert_allclose(output, wanted, rtol=1e-5)


WIDE = ("product", "softmax", "turned", "total", "three")


def shaped_as(name: str) -> Shaped:
    """One of the programs above."""
    return infer(graph_of(text_component(SCHEDULED[name][0]), name))


@functools.cache
def large_from(most: int) -> Native:
    """Programs for which arrays of so many elements are large."""
    programs = [lower(shaped_as(name), GPU) for name in WIDE]
    text = cuda.emit_together(programs)
    source, tests = re.subn(r"are_below\([A-Z0-9_ <]+,", f"are_below({most},", text)
    assert tests >= len(WIDE)
    return load(source, "f.cu", checked=True)


@pytest.mark.parametrize("most", [1, 20])
@pytest.mark.parametrize("name", WIDE)
def test_indices_of_either_width(name: str, most: int) -> None:
    """As if arrays of so many elements were large: all of them, or some."""
    shaped, shapes, loaded = shaped_as(name), SCHEDULED[name][1], large_from(most)
    numbers = np.random.default_rng(5)
    for given in shapes:
        arrays = [numbers.normal(size=shape).astype(np.float32) for shape in given]
        (wanted,) = evaluate(shaped, arrays, fit(shaped, given), exact=True)
        (output,), _ = traffic_of(loaded, function_identifier(name), shaped, arrays)
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("flag", ["", "-DIL_WIDE"])
def test_a_flag_makes_every_index_64_bits_wide(
    flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project whose small arrays may not be indexed by 32 bits passes its test with the flag alone."""
    module = read_module(str(ROOT / "samples/06_matmul.i"))
    graphs = [module_graph(module, definition.name) for definition in exports(module)]
    write_project(graphs, tmp_path, module.source.text, "matmul", target="cuda")
    program = tmp_path / "matmul.cu"
    text, launches = re.subn(r"launch\(0\)", r"(abort(), \g<0>)", program.read_text("utf-8"))
    assert 0 < launches
    program.write_text(text, "utf-8")
    monkeypatch.setenv("I_EMULATOR_CHECK", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    nvcc = f"NVCC={sys.executable} -m ilang.codegen.emulator.nvcc"
    words = ["make", nvcc, f"NVCCFLAGS=-O3 {flag}", "test"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is bool(flag), done.stdout + done.stderr
    assert ("matmul: all " in done.stdout) is bool(flag)


MEASURED: tuple[tuple[str, tuple[tuple[int, ...], ...], float], ...] = (
    ("ik*kj~ijk >> +ijk~ij", ((128, 64), (64, 128)), 1.1),
    ("ik*jk~ijk >> +ijk~ij", ((128, 64), (128, 64)), 1.1),
    ("ki*kj~ijk >> +ijk~ij", ((64, 128), (64, 128)), 1.1),
    ("ki*jk~ijk >> +ijk~ij", ((64, 128), (128, 64)), 1.1),
    ("bik*bkj~bijk >> +bijk~bij", ((2, 128, 64), (2, 64, 128)), 1.1),
    (WRITTEN, ((64, 64), (64, 64)), 1.0),
    ("nc(y+u-1)(x+v-1)*ocuv~noyxcuv >> +noyxcuv~noyx", ((1, 2, 8, 32), (4, 2, 3, 3)), 1.0),
    ("ij~ji", ((128, 128),), 1.0),
    ("ij+ij~ij", ((64, 128), (64, 128)), 1.0),
    ("+ij~i", ((16, 512),), 1.0),
    (">ij~.", ((64, 512),), 1.0),
    (SOFTMAX, ((16, 512),), 1.0),
    (NORM, ((16, 512),), 1.0),
    (ATTENTION, ((64, 64), (64, 64), (64, 64)), 2.0),
    (CAUSAL, ((64, 64), (64, 64), (64, 64)), 2.0),
)
"""Texts, shapes, and what banks of shared memory may cost beside the least."""


@functools.cache
def measured() -> Native:
    """All of these, each named by its number."""
    texts = [graph_of(text_component(text), f"m{n}") for n, (text, _, _) in enumerate(MEASURED)]
    programs = [lower(infer(each), GPU) for each in texts]
    text = emulated.of_one_width(programs, cuda.emit_together(programs))
    return load(emulated.whole_statements(text), "f.cu", checked=True)


@pytest.mark.parametrize("number", range(len(MEASURED)), ids=lambda n: MEASURED[n][0])
def test_memory_is_read_and_written_in_whole_sectors(number: int) -> None:
    """Where threads that are neighbors touch neighbors; banks of shared memory are met by few threads at a time."""
    text, shapes, conflicts = MEASURED[number]
    shaped = infer(graph_of(text_component(text), "f"))
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    _, traffic = traffic_of(measured(), f"m{number}", shaped, arrays)
    assert {each.space for each in traffic} <= {"global", "shared"}
    assert max(each.ratio() for each in traffic if each.space == "global") <= 1.1
    shared = [each for each in traffic if each.space == "shared"]
    assert max((each.ratio() for each in shared), default=1.0) <= conflicts
    assert sum(each.cost for each in shared) <= 1.1 * sum(each.ideal for each in shared)


SIDE_BY_SIDE = (
    *itertools.product(
        ("ik*kj~ijk >> +ijk~ij", "bik*bjk~bijk >> +bijk~bij"), (66, 69, 127, 130), (None,)
    ),
    *itertools.product(("ik*kj~ijk >> +ijk~ij",), (69, 126, 130), (1, 3, 132)),
)
"""Texts, the length of a row, and the multiprocessors that known extents are compiled for, None where they are not."""


@pytest.mark.parametrize(
    ("dtype", "text", "length", "multiprocessors"),
    [
        *((np.float32, *case) for case in share(SIDE_BY_SIDE)),
        *((np.float64, *case) for case in share(SIDE_BY_SIDE, 3)),
    ],
)
def test_rows_of_any_length_are_stored_side_by_side(
    text: str, length: int, dtype: type[Any], multiprocessors: int | None
) -> None:
    """A row that begins inside of a sector costs one more for each run of a warp, and no more; a copy nothing.

    Of f32 that is 5 for 4; runs of f64 may have two sectors. Banks of shared memory are met once.

    This holds of known extents whichever tile they have: devices of few multiprocessors have other ones.
    """
    batch = (2,) if "b" in text else ()
    second = (64, length) if "kj" in text else (length, 64)
    arrays = [np.ones((*batch, *each), dtype) for each in ((130, 64), second)]
    name = "f32" if dtype is np.float32 else "f64"
    shapes = [array.shape for array in arrays] if multiprocessors else None
    shaped = infer(graph_of(text_component(text), "f"), [name, name], shapes=shapes)
    assert GPU.device is not None
    device = replace(GPU.device, multiprocessors=multiprocessors or GPU.device.multiprocessors)
    program = lower(shaped, replace(GPU, device=device))
    source = emulated.whole_statements(emulated.of_one_width([program], cuda.emit(program)))
    (output,), traffic = traffic_of(load(source, "f.cu", checked=True), "f", shaped, arrays)
    assert (output == 64).all()
    stored = [each for each in traffic if (each.space, each.access) == ("global", "write")]
    begun = 1.25 if dtype is np.float32 else 1.5
    assert sum(each.cost for each in stored) <= begun * sum(each.ideal for each in stored)
    shared = [each for each in traffic if each.space == "shared"]
    assert max(each.ratio() for each in shared if each.access == "read") == 1
    assert sum(each.cost for each in shared) <= 1.1 * sum(each.ideal for each in shared)


def sample(path: Path) -> tuple[Shaped, list[Any]]:
    """The program of a lesson, and the inputs that it names."""
    module = read_module(str(path))
    (definition,) = exports(module)
    words = GIVEN.findall(path.read_text("utf-8"))
    arrays = [array_of(word, None, n) for n, word in enumerate(words)]
    graph = module_graph(module, definition.name)
    dtypes = [next(name for name, kind in TYPES.items() if kind == a.dtype) for a in arrays]
    return infer(graph, dtypes, [a.ndim for a in arrays]), arrays


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("checked", ["0", "1"])
def test_a_project_passes_its_own_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: str
) -> None:
    path = ROOT / "samples/13_attention.i"
    module = read_module(str(path))
    graphs = [module_graph(module, definition.name) for definition in exports(module)]
    write_project(graphs, tmp_path, module.source.text, "attention", target="cuda")
    monkeypatch.setenv("I_EMULATOR_CHECK", checked)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    nvcc = f"NVCC={sys.executable} -m ilang.codegen.emulator.nvcc"
    done = subprocess.run(
        ["make", nvcc, "test", "example", "attention_bench"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "attention: all " in done.stdout
    monkeypatch.setenv("I_EMULATOR_DEVICES", "0")
    alone = subprocess.run(
        [tmp_path / "attention_test"], capture_output=True, text=True, check=False
    )
    told = "attention: nothing was tested, there is no GPU that CUDA can use: "
    assert (alone.returncode, alone.stdout.count("\n")) == (77, 1), alone.stdout
    assert alone.stdout.startswith(told)
    monkeypatch.delenv("I_EMULATOR_DEVICES")
    timed = subprocess.run(
        [tmp_path / "attention_bench", "small"], capture_output=True, text=True, check=False
    )
    assert timed.returncode == 0, timed.stderr
    assert '"name": "attention"' in timed.stdout
    bench = tmp_path / "attention_bench.cu"
    text = bench.read_text("ascii")
    bench.write_text(re.sub(r"return attention\(.*\);", "return -2;", text), "ascii")
    failing = subprocess.run(
        ["make", nvcc, "attention_bench"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert failing.returncode == 0, failing.stderr
    timed = subprocess.run(
        [tmp_path / "attention_bench", "small"], capture_output=True, text=True, check=False
    )
    assert timed.returncode == 1
    assert timed.stderr.endswith(": a call: out of memory\n"), timed.stderr


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_digits_are_read_as_on_a_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classifier as a CUDA library under the same C program, on the images held back from training."""
    folder = ROOT / "samples/digits"
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    nvcc = f"{sys.executable} -m ilang.codegen.emulator.nvcc"
    module = read_module(str(folder / "digits.i"))
    graphs = [module_graph(module, definition.name) for definition in exports(module)]
    write_project(graphs, tmp_path, module.source.text, "digits", target="cuda")
    (compiler,) = find_compiler().command
    for command in (
        ["make", f"NVCC={nvcc}", "libdigits.a", "test"],
        [
            compiler,
            "-std=c99",
            "-DGPU",
            "-I.",
            "-c",
            str(folder / "classify.c"),
            "-o",
            "classify.o",
        ],
        [*nvcc.split(), "classify.o", "libdigits.a", "-o", "classify"],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    with np.load(folder / "weights.npz") as stored:
        weights = [stored[name] for name in ("w1", "b1", "w2", "b2")]
    train = runpy.run_path(str(folder / "train.py"))
    x, answers = train["load_split"]()[2:]
    given = [array.astype(np.float32).tobytes() for array in (*weights, x)]
    (tmp_path / "input").write_bytes(b"".join((np.int64(len(x)).tobytes(), *given)))
    subprocess.run(["./classify", "input", "output", "1"], cwd=tmp_path, check=True)
    probabilities = np.fromfile(tmp_path / "output", np.float32).reshape(len(x), -1)
    assert int((probabilities.argmax(axis=1) == answers).sum()) == 441
