"""The self-test of a generated project: a C program that compares every function with stored results.

An input is a short table repeated as often as it takes; the results come from the reference evaluator. A function with
run-time sizes is run on several: small and larger primes, what fills vectors, all ones, each extent 0. Everything else
a caller can get wrong (NULL, overlap, extents that do not fit) must give its status.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from ilang.codegen.project import sessiontest
from ilang.codegen.project.cases import Case, StoredOutput, case_of, is_positive, refused_cases
from ilang.codegen.project.extents import MOST_VARIED, extents_of
from ilang.codegen.project.parts import fixed_text
from ilang.codegen.project.steps import is_positive_session
from ilang.codegen.project.tables import (
    LETTERS,
    given_row,
    result_row,
    table_name,
    table_text,
    values_of,
)
from ilang.codegen.targets.cfamily import INDENT, listed
from ilang.codegen.targets.identifiers import identifier, initial_fields, member_identifier
from ilang.codegen.targets.session import EmittedSession, ExportedFunction

MOST_TESTS = 4 + MOST_VARIED + MOST_VARIED + 3

TEST_PARTS = ("call", "space", "entry", *(f"test_{n}" for n in range(1, MOST_TESTS + 1)))
"""Endings that the test appends to the name of a function for names of its own."""

TOO_LARGE = " (its arrays are too large for stored results)"
TESTED_IN_STEPS = " (its session is what runs it)"
"""Reasons why a function is not run by itself; nobody knows what a routine does with any values for its state."""


def own_names() -> set[str]:
    """The names of the test at file scope, whatever it tests."""
    tables = {table_name(dtype, positive) for dtype in LETTERS for positive in (False, True)}
    drivers = fixed_text("selftest.h") + fixed_text("gputest.h") + sessiontest.drivers()
    return tables | set(re.findall(r"\b(?:test|TEST)_\w+", drivers))


def selftest(
    functions: Sequence[ExportedFunction],
    stem: str,
    on_device: bool = False,
    sessions: Sequence[EmittedSession] = (),
) -> str:
    """The test program of a project; ``on_device`` for functions that take arrays of the host and run elsewhere."""
    body: list[str] = []
    names: list[str] = []
    tables: dict[str, list[str]] = {}
    alone = [function for each in sessions for function in each.functions()]
    for function in functions:
        body += _entry(function, on_device)
        positive = is_positive(function.shaped)
        runs, refused = (
            ([], []) if any(function is each for each in alone) else extents_of(function)
        )
        for value in function.shaped.inputs if runs else ():
            dtype = function.shaped.tensors[value].dtype
            tables[table_name(dtype, positive)] = table_text(dtype, positive)
        left = (
            ""
            if runs
            else TESTED_IN_STEPS
            if any(function is each for each in alone)
            else TOO_LARGE
        )
        for number, lines in enumerate(_tests(function, runs, refused, left), 1):
            names.append(f"{function.name()}_test_{number}")
            body += [f"static int {names[-1]}(void)", "{", *lines, "}", ""]
    if sessions:
        body += sessiontest.driver(on_device).split("\n")
    for session in sessions:
        names.append(f"{session.name}_test_session")
        positive = is_positive_session(session)
        for name in session.inputs:
            dtype = session.tensors[name][0]
            tables[table_name(dtype, positive)] = table_text(dtype, positive)
        body += sessiontest.lines(session, names[-1])
    values = [line for name in sorted(tables) for line in tables[name]]
    if values:
        values = ["/* The values that inputs repeat. */", *values, ""]
    head = fixed_text("selftest_head.h", STEM=stem, ON_DEVICE=ON_DEVICE if on_device else "")
    driver = fixed_text("selftest.h").split("\n")
    driver += fixed_text("gputest.h").split("\n") if on_device else []
    main = _main(names, stem, on_device)
    lines = [*head.split("\n"), *values, *driver, *body, *main]
    return "\n".join(lines) + "\n"


def _entry(function: ExportedFunction, on_device: bool) -> Iterator[str]:
    """A function behind the one face that the driver calls; on a device it takes no workspace of the host."""
    name, program = function.name(), function.program
    count = len(program.inputs) + len(program.outputs)
    words = ["sizes", *(f"arrays[{n}]" for n in range(count))]
    yield f"static int {name}_call(const void *sizes, void **arrays, void *work)"
    yield "{"
    if on_device:
        yield f"{INDENT}(void)work;"
        yield from listed(f"{INDENT}return {name}_host(", words, ");")
    else:
        yield from listed(f"{INDENT}return {name}(", [*words, "work"], ");")
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
    function: ExportedFunction,
    runs: Sequence[tuple[int, ...]],
    refused: Sequence[tuple[int, ...]],
    left: str,
) -> Iterator[list[str]]:
    """The body of every test of a function: runs at some extents, then what it must refuse; ``left`` out says why."""
    for extents in runs:
        yield _run(function, case_of(function, extents))
    for case in refused_cases(function, runs[0]) if runs else ():
        yield _run(function, case)
    name, free = function.name(), function.free()
    for extents in refused:
        sizes_text = function.arguments_text(extents)
        yield [
            _sizes(function, extents),
            f'{INDENT}return test_refused(&{name}_entry, "{sizes_text}", &sizes, 3);',
        ]
    if free:
        huge = ", ".join(
            f".{member_identifier(function.shaped.sizes[n].name)} = INT64_MAX" for n in free
        )
        yield [
            *listed(f"{INDENT}static const {name}_sizes sizes = {{", huge.split(", "), "};"),
            f'{INDENT}return test_refused(&{name}_entry, "with extents of 2^63-1", &sizes, 3);',
        ]
        yield [f'{INDENT}return test_refused(&{name}_entry, "without sizes{left}", NULL, 1);']
    elif not runs:
        yield [f'{INDENT}return test_without_arrays(&{name}_entry, "without arrays{left}");']


def _run(function: ExportedFunction, case: Case) -> list[str]:
    shaped, program = function.shaped, function.program
    rows: list[str] = []
    lines = [_sizes(function, case.extents)] if function.free() else []
    positive = is_positive(shaped)
    given = zip(shaped.inputs, program.inputs, case.starts, case.below, strict=True)
    for value, buffer, start, limit in given:
        dtype = shaped.tensors[value].dtype
        count, values = function.count(value, case.extents), table_name(dtype, positive)
        rows.append(given_row(program.buffers[buffer].name, dtype, count, values, start, limit))
    results = case.outputs or tuple(StoredOutput(np.zeros(0), 1, 0.0, 0.0) for _ in shaped.outputs)
    for value, buffer, output in zip(shaped.outputs, program.outputs, results, strict=True):
        dtype, name = shaped.tensors[value].dtype, program.buffers[buffer].name
        lines += values_of(identifier(name), output, dtype)
        count = function.count(value, case.extents)
        rows.append(result_row(name, dtype, count, identifier(name), output))
    lines.append(f"{INDENT}static const struct test_array arrays[] = {{")
    lines += [2 * INDENT + row for row in rows]
    lines.append(f"{INDENT}}};")
    sizes_text = function.arguments_text(case.extents)
    sizes = "&sizes" if function.free() else "NULL"
    call = f'test_run(&{function.name()}_entry, "{sizes_text}", {sizes}, arrays, {case.status()})'
    lines.append(f"{INDENT}return {call};")
    return lines


def _sizes(function: ExportedFunction, extents: Sequence[int]) -> str:
    fields = initial_fields(function.arguments(extents))
    head = f"{INDENT}static const {function.name()}_sizes sizes = {{"
    return "\n".join(listed(head, fields, "};"))


def _main(names: Sequence[str], stem: str, on_device: bool) -> Iterator[str]:
    yield "int main(void)"
    yield "{"
    if on_device:
        yield f'{INDENT}if (!test_finds_gpu("{stem}")) return TEST_NO_GPU;'
    yield from listed(f"{INDENT}static int (*const tests[])(void) = {{", names, "};")
    yield f"{INDENT}(void)test_run; /* which of them are unused depends on the functions */"
    yield f"{INDENT}(void)test_refused;"
    yield f"{INDENT}(void)test_without_arrays;"
    yield from MAIN.replace("STEM", stem).split("\n")


ON_DEVICE = (
    " * Where CUDA finds no GPU, a line says so, nothing is tested, and the exit status is 77.\n"
)

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
