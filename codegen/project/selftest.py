"""The self-test of a generated project: a C program that compares every function with stored results.

An input is a short table repeated as often as it takes; the results come from the reference evaluator. A function with
run-time sizes is run on several: small and larger primes, what fills vectors, all ones, each extent 0. Everything else
a caller can get wrong (NULL, overlap, extents that do not fit) must give its status.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ilang.codegen.project.extents import MOST_VARIED, Function, extents_of
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, literal
from ilang.codegen.targets.identifiers import identifier
from ilang.core.diagnostic import DataError
from ilang.core.dtype import FLOATS
from ilang.core.ir.scalar import Apply, walk
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.record import record
from ilang.core.reference import NUMPY_TYPES, evaluate

Array = npt.NDArray[Any]

TABLE = 61
"""Values of the table that an input repeats: a prime, so that rows of an array differ."""
STRIDE, SHIFT = 17, 5
"""How far apart the inputs of a function begin in their table, and two attempts at the same input."""
ATTEMPTS = 4

STORED = 1024
"""Elements of an output that are stored one by one; of a larger one, about ``SAMPLES`` at equal distances."""
SAMPLES = 1000

OUT_OF_RANGE = 4
"""The status of a function that is given an index that is none."""

EPSILON = {"f32": 2.0**-23, "f64": 2.0**-52}
SLACK = 16
"""Roundings that a result may differ by, one more for each term of its sums."""
MOST_TERMS = 1024
NUDGE = 2.0**-20
LARGEST_SCALE = 1024.0

MOST_TESTS = 4 + MOST_VARIED + MOST_VARIED + 3

TEST_PARTS = ("call", "space", "entry", *(f"test_{n}" for n in range(1, MOST_TESTS + 1)))
"""What the test appends to the name of a function for names of its own."""
LETTERS = {"f32": "f", "f64": "d", "i32": "i", "i64": "l", "bool": "b"}
WIDTH = 100


@record
class Output:
    """Stored results of one output: every ``step``-th element, and how far a float may be from them."""

    values: Any
    step: int
    relative: float
    scale: float


@record
class Case:
    """A function at some extents: where each input begins in its table, and each output.

    ``below`` is what the indices in an input are less than, None of other inputs. Without outputs the function must
    refuse what is no index of its axis.
    """

    extents: tuple[int, ...]
    starts: tuple[int, ...]
    below: tuple[int | None, ...]
    outputs: tuple[Output, ...] | None

    def status(self) -> int:
        """What the function returns."""
        return OUT_OF_RANGE if self.outputs is None else 0


def _table(dtype: str, positive: bool) -> Array:
    """Small values, different enough; floats are sixteenths, so that short sums of products are exact."""
    state, values = 1, []
    for _ in range(TABLE):
        state = state * 48271 % 2147483647
        if dtype == "bool":
            values.append(float(state % 2))
        elif dtype in FLOATS:
            k = state % 24
            values.append(
                (k + 8 + (8 <= k)) / 16 if positive else (k + 1) / 16 * (1 - state // 24 % 2 * 2)
            )
        else:
            values.append(float(state % 8 + 2 if positive else state % 13 - 5))
    return np.array(values, NUMPY_TYPES[dtype])


def _is_positive(shaped: Shaped) -> bool:
    """Whether a program takes logarithms, powers or roots, which want positive inputs (none of them 1)."""
    return any(
        isinstance(part, Apply) and part.primitive in ("ln", "log", "pow", "sqrt")
        for node in shaped.nodes
        if isinstance(node, Assignment)
        for part in walk(node.scalar)
    )


def inputs_of(
    shaped: Shaped, extents: Sequence[int], starts: Sequence[int], below: Sequence[int | None]
) -> list[Array]:
    """The inputs of a case."""
    arrays, positive = [], _is_positive(shaped)
    for value, start, limit in zip(shaped.inputs, starts, below, strict=True):
        tensor = shaped.tensors[value]
        shape = tuple(extents[size] for size in tensor.dims)
        places = (start + np.arange(math.prod(shape))) % TABLE
        if limit:
            arrays.append((places % limit).astype(NUMPY_TYPES[tensor.dtype]).reshape(shape))
        else:
            arrays.append(_table(tensor.dtype, positive)[places].reshape(shape))
    return arrays


def limits_of(shaped: Shaped, extents: Sequence[int], more: int = 0) -> tuple[int | None, ...]:
    """What the elements of each input are less than that are indices; ``more`` than they may be."""
    limits: dict[int, int] = {}
    for node in shaped.nodes:
        for each in node.lookups() if isinstance(node, Assignment) else ():
            extent = extents[each.size] + more
            source = shaped.owner(each.source)
            limits[source] = min(extent, limits.get(source, extent))
    return tuple(limits.get(value) for value in shaped.inputs)


def _starts(shaped: Shaped, attempt: int) -> tuple[int, ...]:
    return tuple((n * STRIDE + attempt * SHIFT) % TABLE for n in range(len(shaped.inputs)))


def case_of(function: Function, extents: tuple[int, ...]) -> Case:
    """Results at some extents, for inputs that leave none to the luck of a rounding if there are such."""
    shaped, below = function.shaped, limits_of(function.shaped, extents)
    found: list[tuple[int, int, Case]] = []
    for attempt in range(ATTEMPTS):
        starts = _starts(shaped, attempt)
        arrays = inputs_of(shaped, extents, starts, below)
        if _is_outside(shaped, arrays, extents):
            return Case(extents, starts, below, None)
        plain = evaluate(shaped, arrays, extents)
        exact = evaluate(shaped, arrays, extents, exact=True)
        relative = _relative(shaped, extents)
        scales = _scales(shaped, arrays, extents, exact)
        outputs, doubtful = [], 0
        for value, a, b, scale in zip(shaped.outputs, plain, exact, scales, strict=True):
            result, unlike = _result(a, b, relative, scale)
            doubtful += unlike
            count = result.size
            step = 1 if count <= STORED else -(-count // SAMPLES) | 1
            exactly = shaped.tensors[value].dtype not in FLOATS
            bounds = (0.0, 0.0) if exactly else (relative, scale)
            outputs.append(Output(result.reshape(-1)[::step], step, *bounds))
        found.append((doubtful, attempt, Case(extents, starts, below, tuple(outputs))))
        if not doubtful:
            break
    return min(found, key=lambda one: one[:2])[2]


def _outside(function: Function, extents: tuple[int, ...]) -> Iterator[Case]:
    """A case in which an index is out of range, if there is one."""
    shaped = function.shaped
    below = limits_of(shaped, extents, more=1)
    starts = tuple(m - 1 if m else n for n, m in zip(_starts(shaped, 0), below, strict=True))
    if any(below) and _is_outside(shaped, inputs_of(shaped, extents, starts, below), extents):
        yield Case(extents, starts, below, None)


def _is_outside(shaped: Shaped, arrays: Sequence[Array], extents: Sequence[int]) -> bool:
    """Whether an element that is looked up is no index of its axis."""
    if not any(isinstance(node, Assignment) and node.lookups() for node in shaped.nodes):
        return False
    try:
        evaluate(shaped, arrays, extents)
    except DataError:
        return True
    return False


def _result(plain: Array, exact: Array, relative: float, scale: float) -> tuple[Array, int]:
    """What to store, and how many elements depend on roundings along the way.

    The exact result is stored where both agree: unlike the other it is the same on every machine, since no two
    libraries round e^x alike.
    """
    if plain.dtype.kind != "f":
        return plain, int(np.count_nonzero(plain != exact))
    with np.errstate(all="ignore"):
        rounded = exact.astype(plain.dtype)
        near = np.abs(exact - plain) <= relative * (np.abs(exact) + scale)
    same = near | (plain == rounded) | (np.isnan(plain) & np.isnan(exact))
    return np.where(near & np.isfinite(rounded), rounded, plain), int(np.count_nonzero(~same))


def _relative(shaped: Shaped, extents: Sequence[int]) -> float:
    """The relative error of a result: so many roundings of its coarsest type, more where sums are long."""
    types = {tensor.dtype for tensor in shaped.tensors}
    terms = sum(
        math.prod(extents[node.sizes[axis]] for axis in node.reduced_axes())
        for node in shaped.nodes
        if isinstance(node, Assignment) and node.acc is not None
    )
    return EPSILON["f32" if "f32" in types else "f64"] * (SLACK + min(terms, MOST_TERMS))


def _scales(
    shaped: Shaped, arrays: Sequence[Array], extents: Sequence[int], exact: Sequence[Array]
) -> list[float]:
    """How far each output moves with its inputs: roundings move it as changes of the inputs of that size would.

    A power of two, and bounded: a comparison that flips would otherwise excuse anything.
    """
    scales = [0.0] * len(exact)
    for period in (1, 2):
        nudged = []
        for array in arrays:
            signs = 1.0 - np.arange(array.size).reshape(array.shape) // period % 2 * 2
            nudged.append(array * (1.0 + NUDGE * signs) if array.dtype.kind == "f" else array)
        moved = evaluate(shaped, nudged, extents, exact=True)
        for n, (before, after) in enumerate(zip(exact, moved, strict=True)):
            with np.errstate(all="ignore"):
                change = np.abs(after.astype(np.float64) - before) / NUDGE
            scales[n] = max(scales[n], _largest(change))
    bounds = [LARGEST_SCALE * (1.0 + _largest(np.abs(array.astype(np.float64)))) for array in exact]
    return [
        2.0 ** math.ceil(math.log2(min(s, b))) if s else 0.0
        for s, b in zip(scales, bounds, strict=True)
    ]


def _largest(array: Array) -> float:
    """The largest finite element, 0 if there is none."""
    finite = array[np.isfinite(array)]
    return float(finite.max()) if finite.size else 0.0


def own_names() -> set[str]:
    """What the test names at file scope, whatever it tests."""
    tables = {_table_name(dtype, positive) for dtype in LETTERS for positive in (False, True)}
    return tables | set(re.findall(r"\b(?:test|TEST)_\w+", _driver()))


def selftest(functions: Sequence[Function], stem: str, on_device: bool = False) -> str:
    """The test program of a project; ``on_device`` for functions that take arrays of the host and run elsewhere."""
    body: list[str] = []
    names: list[str] = []
    tables: dict[str, list[str]] = {}
    for function in functions:
        body += _entry(function, on_device)
        positive = _is_positive(function.shaped)
        runs, refused = extents_of(function)
        for value in function.shaped.inputs if runs else ():
            dtype = function.shaped.tensors[value].dtype
            tables[_table_name(dtype, positive)] = _table_text(dtype, positive)
        for number, lines in enumerate(_tests(function, runs, refused), 1):
            names.append(f"{function.name()}_test_{number}")
            body += [f"static int {names[-1]}(void)", "{", *lines, "}", ""]
    values = [line for name in sorted(tables) for line in tables[name]]
    if values:
        values = ["/* The values that inputs repeat. */", *values, ""]
    head = HEAD.replace("STEM", stem).split("\n")
    lines = [*head, *values, *_driver().split("\n"), *body, *_main(names, stem)]
    return "\n".join(lines) + "\n"


def _driver() -> str:
    """What every test program has in common, from the C file beside this one."""
    return Path(__file__).with_name("selftest.h").read_text("ascii")


def _entry(function: Function, on_device: bool) -> Iterator[str]:
    """A function behind the one face that the driver calls; on a device it takes no workspace of the host."""
    name, program = function.name(), function.program
    count = len(program.inputs) + len(program.outputs)
    words = ["sizes", *(f"arrays[{n}]" for n in range(count))]
    yield f"static int {name}_call(const void *sizes, void **arrays, void *work)"
    yield "{"
    if on_device:
        yield f"{INDENT}(void)work;"
        yield from _listed(f"{INDENT}return {name}_host(", words, ");")
    else:
        yield from _listed(f"{INDENT}return {name}(", [*words, "work"], ");")
    yield "}"
    yield ""
    yield f"static size_t {name}_space(const void *sizes)"
    yield "{"
    bytes_ = f"{name}_work(sizes)"
    yield f"{INDENT}return {f'{bytes_} == SIZE_MAX ? SIZE_MAX : 0' if on_device else bytes_};"
    yield "}"
    yield ""
    yield f"static const struct test_function {name}_entry = {{"
    yield f'{INDENT}"{name}", {name}_call, {name}_space, {len(program.inputs)}, {count}'
    yield "};"
    yield ""


def _tests(
    function: Function, runs: Sequence[tuple[int, ...]], refused: Sequence[tuple[int, ...]]
) -> Iterator[list[str]]:
    """The body of every test of a function: runs at some extents, then what it must refuse."""
    for extents in runs:
        yield _run(function, case_of(function, extents))
    for case in _outside(function, runs[0]) if runs else ():
        yield _run(function, case)
    name, free = function.name(), function.free()
    for extents in refused:
        said = _sizes_text(function, extents)
        yield [
            _sizes(function, extents),
            f'{INDENT}return test_refused(&{name}_entry, "{said}", &sizes, 3);',
        ]
    if free:
        huge = ", ".join(f".{identifier(function.shaped.sizes[n].name)} = INT64_MAX" for n in free)
        yield [
            *_listed(f"{INDENT}static const {name}_sizes sizes = {{", huge.split(", "), "};"),
            f'{INDENT}return test_refused(&{name}_entry, "with extents of 2^63-1", &sizes, 3);',
        ]
    left = "" if runs else " (its arrays are too large for stored results)"
    yield [f'{INDENT}return test_refused(&{name}_entry, "without sizes{left}", NULL, 1);']


def _run(function: Function, case: Case) -> list[str]:
    """The body of one test that runs a function."""
    shaped, program = function.shaped, function.program
    lines, rows = [_sizes(function, case.extents)], []
    positive = _is_positive(shaped)
    given = zip(shaped.inputs, program.inputs, case.starts, case.below, strict=True)
    for value, buffer, start, limit in given:
        dtype = shaped.tensors[value].dtype
        indices = f", .below = {limit}" if limit else ""
        rows.append(
            f"{{.name = \"{program.buffers[buffer].name}\", .type = '{LETTERS[dtype]}', "
            f".count = {_count(function, value, case)}, .values = {_table_name(dtype, positive)}, "
            f".stored = {TABLE}, .start = {start}{indices}}},"
        )
    results = case.outputs or tuple(Output(np.zeros(0), 1, 0.0, 0.0) for _ in shaped.outputs)
    for value, buffer, output in zip(shaped.outputs, program.outputs, results, strict=True):
        dtype, name = shaped.tensors[value].dtype, program.buffers[buffer].name
        words = [_number(v, dtype) for v in output.values] or ["0"]
        lines += _listed(
            f"{INDENT}static const {C_TYPES[dtype]} {identifier(name)}[] = {{", words, "};"
        )
        bounds = (
            f", .relative = {output.relative:.3g}, .scale = {output.scale:g}"
            if dtype in FLOATS
            else ""
        )
        rows.append(
            f"{{.name = \"{name}\", .type = '{LETTERS[dtype]}', .count = {_count(function, value, case)}, "
            f".values = {identifier(name)}, .stored = {len(output.values)}, .step = {output.step}{bounds}}},"
        )
    lines.append(f"{INDENT}static const struct test_array arrays[] = {{")
    lines += [2 * INDENT + row for row in rows]
    lines.append(f"{INDENT}}};")
    said = _sizes_text(function, case.extents)
    call = f'test_run(&{function.name()}_entry, "{said}", &sizes, arrays, {case.status()})'
    lines.append(f"{INDENT}return {call};")
    return lines


def _count(function: Function, value: int, case: Case) -> int:
    return math.prod(case.extents[size] for size in function.shaped.tensors[value].dims)


def _sizes(function: Function, extents: Sequence[int]) -> str:
    """The declaration of the extents."""
    fields = [
        f".{identifier(function.shaped.sizes[n].name)} = {extents[n]}" for n in function.free()
    ]
    head = f"{INDENT}static const {function.name()}_sizes sizes = {{"
    return "\n".join(_listed(head, fields or ["0"], "};"))


def _sizes_text(function: Function, extents: Sequence[int]) -> str:
    return " ".join(f"{function.shaped.sizes[n].name}={extents[n]}" for n in function.free())


def _table_name(dtype: str, positive: bool) -> str:
    return f"test_{dtype}" + ("_positive" if positive else "")


def _table_text(dtype: str, positive: bool) -> list[str]:
    words = [_number(value, dtype) for value in _table(dtype, positive)]
    return list(
        _listed(f"static const {C_TYPES[dtype]} {_table_name(dtype, positive)}[] = {{", words, "};")
    )


def _listed(head: str, words: Sequence[str], tail: str) -> Iterator[str]:
    """A list on one line where it fits, else filled into indented lines."""
    one = head + ", ".join(words) + tail
    if len(one) <= WIDTH:
        yield one
        return
    yield head
    indent = " " * (len(head) - len(head.lstrip()))
    line = indent + INDENT + words[0]
    for word in words[1:]:
        if WIDTH < len(line) + len(word) + 3:
            yield f"{line},"
            line = indent + INDENT + word
        else:
            line += f", {word}"
    if tail.startswith("}"):
        yield line
        yield indent + tail
    else:
        yield line + tail


def _number(value: Any, dtype: str) -> str:
    """A stored value: the shortest decimal that reads back as the same number."""
    if dtype not in FLOATS:
        return literal(int(value), dtype)
    if np.isnan(value):
        return "NAN"
    if np.isinf(value):
        return "INFINITY" if 0 < value else "-INFINITY"
    if value == 0 or 1e-4 <= abs(value) < 1e9:
        text = np.format_float_positional(value, unique=True, trim="0")
    else:
        text = np.format_float_scientific(value, unique=True, trim="0")
    return text + ("f" if dtype == "f32" else "")


def _main(names: Sequence[str], stem: str) -> Iterator[str]:
    yield "int main(void)"
    yield "{"
    yield from _listed(f"{INDENT}static int (*const tests[])(void) = {{", names, "};")
    yield f"{INDENT}(void)test_run; /* unused where every function is too large to be run */"
    yield from MAIN.replace("STEM", stem).split("\n")


HEAD = """\
/* STEM_test.c: every function of STEM.h on stored inputs, compared with stored results.
 *
 * Prints a line for each test; the exit status is 1 if one fails. Written by `i build`.
 *
 * An input repeats a short table: its element i is values[(start + i) % stored]. Results come from the reference
 * evaluator of the compiler; of a long output every step-th element is stored. Integers and truth values must be
 * equal; a float may be off by relative * (its size + scale), where scale says how strongly roundings move it.
 */

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "STEM.h"
"""

MAIN = """\
    const size_t count = sizeof tests / sizeof *tests;
    size_t failed = 0;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* what was wrong before a crash is told */
    for (size_t n = 0; n < count; ++n) {
        if (tests[n]() != 0) ++failed;
    }
    if (failed == 0) {
        printf("STEM: all %zu tests passed\\n", count);
        return EXIT_SUCCESS;
    }
    printf("STEM: %zu of %zu tests failed\\n", failed, count);
    return EXIT_FAILURE;
}"""
