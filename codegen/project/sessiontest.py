"""The self-test of a session in C: what ``steps.py`` has found, and how the driver in ``sessiontest.h`` calls it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ilang.codegen.project.cases import StoredOutput
from ilang.codegen.project.parts import fixed_text
from ilang.codegen.project.steps import (
    LASTING,
    SEED,
    Steps,
    is_positive_session,
    steps_of,
    tested_dims,
    tested_sizes,
)
from ilang.codegen.project.tables import given_row, result_row, table_name, values_of
from ilang.codegen.targets.cfamily import INDENT, listed
from ilang.codegen.targets.identifiers import initializer
from ilang.codegen.targets.session import EmittedSession
from ilang.core.ir.session import KeptTensor

PARTS = ("test_init", "test_run", "test_save", "test_load", "test_kept", "test_session")
"""Endings that the test appends to the name of a session for names of its own."""


def driver(on_device: bool) -> str:
    """The common part of tests of sessions, from the C files beside this one; their memory may be a device's."""
    return (
        fixed_text("devicetest.h" if on_device else "hosttest.h")
        + "\n"
        + fixed_text("sessiontest.h")
    )


def drivers() -> str:
    """Both of them."""
    return driver(on_device=False) + driver(on_device=True)


def lines(session: EmittedSession, test: str) -> Iterator[str]:
    """The test of a session, a function of a name."""
    kept = [each for each in session.kept if each.role in LASTING]
    yield from _entries(session, kept)
    yield f"static int {test}(void)"
    yield "{"
    steps = steps_of(session)
    yield from _rows("first", kept, steps.first)
    yield from _rows("last", kept, steps.last)
    yield from _results(session, steps.runs)
    yield from _given(session, steps)
    name = session.name
    struct = session.struct.name
    yield f"{INDENT}{struct} models[2];"
    yield f"{INDENT}const struct test_session tested = {{"
    words = [
        f'"{name}"',
        f'"{name}_test.safetensors"',
        "{&models[0], &models[1]}",
        f"{struct}_bytes",
    ]
    words += [f"{name}_{part}" for part in PARTS[:-1]]
    words += [str(SEED), *map(str, (len(session.inputs), len(session.outputs), len(kept)))]
    words += [str(len(steps.runs)), "given", "first", "results", "last"]
    yield from (f"{INDENT}{INDENT}{word}," for word in words)
    yield f"{INDENT}}};"
    yield f"{INDENT}return test_steps(&tested);"
    yield "}"
    yield ""


def _entries(session: EmittedSession, kept: Sequence[KeptTensor]) -> Iterator[str]:
    """The functions of a session behind the face that the driver calls."""
    name = session.name
    count = len(session.inputs) + len(session.outputs)
    stream = ["NULL"] if session.on_device() else []
    calls = {
        "init": ("void *model, void *memory, uint64_t seed", ["memory", "seed", *stream]),
        "run": ("void *model, void **arrays", [f"arrays[{n}]" for n in range(count)]),
        "save": ("const void *model, const char *path", ["path", *stream]),
        "load": ("void *model, const char *path", ["path", *stream]),
    }
    for part, (head, words) in calls.items():
        yield f"static int {name}_test_{part}({head})"
        yield "{"
        if part == "run" and not count:
            yield f"{INDENT}(void)arrays;"
        if part == "run":
            yield from _run(session, words)
            continue
        of = session.struct.name if part == "init" else name
        yield from listed(f"{INDENT}return {of}_{part}(", ["model", *words], ");")
        yield "}"
        yield ""
    yield f"static void {name}_test_kept(const void *model, void **lasting)"
    yield "{"
    yield f"{INDENT}const {session.struct.name} *const given = model;"
    yield f"{INDENT}(void)lasting;"
    if not kept:
        yield f"{INDENT}(void)test_kept;"
    for n, each in enumerate(kept):
        yield f"{INDENT}test_kept(&lasting[{n}], given->{each.name}, {each.bytes()});"
    yield f"{INDENT}(void)given;"
    yield "}"
    yield ""


def _run(session: EmittedSession, words: Sequence[str]) -> Iterator[str]:
    """The rest of a function that runs a session, on arrays of the host; the sizes of a run may come with it."""
    sizes = tested_sizes(session)
    on_device, name = session.on_device(), session.name
    called = f"{name}_run_host(" if on_device else f"{name}_run("
    if session.is_open():
        yield f"{INDENT}static const {name}_sizes sizes = {initializer(sizes)};"
    given = ["model", "&sizes", *words] if session.is_open() else ["model", *words]
    if session.is_open() and not on_device:
        yield f"{INDENT}void *const work = test_allocate({name}_work(&sizes) + 1);"
        yield from listed(f"{INDENT}const int status = {called}", [*given, "work"], ");")
        yield f"{INDENT}free(work);"
        yield f"{INDENT}return status;"
    else:
        yield from listed(f"{INDENT}return {called}", given, ");")
    yield "}"
    yield ""


def _rows(
    table_name: str, kept: Sequence[KeptTensor], outputs: Sequence[StoredOutput]
) -> Iterator[str]:
    """The table of what is stored of kept arrays; ``start`` is 1 for those that no file has."""
    rows = []
    for each, output in zip(kept, outputs, strict=bool(outputs)):
        values = f"{table_name}_{each.name}"
        yield from values_of(values, output, each.dtype)
        row = result_row(each.path, each.dtype, each.count(), values, output)
        if each.role == "gradient":
            row = f"{row.removesuffix('},')}, .start = 1}},"
        rows.append(row)
    yield from _table(table_name, rows)


def _results(session: EmittedSession, runs: Sequence[Sequence[StoredOutput]]) -> Iterator[str]:
    dims = tested_dims(session)
    rows = []
    for number, outputs in enumerate(runs, 1):
        for name, output in zip(session.outputs, outputs, strict=True):
            dtype, values = session.tensors[name][0], f"{name}_of_run_{number}"
            yield from values_of(values, output, dtype)
            count = prod(dims[name])
            rows.append(result_row(name, dtype, count, values, output))
    yield from _table("results", rows)


def _given(session: EmittedSession, steps: Steps) -> Iterator[str]:
    """The table of inputs, and then of outputs."""
    positive, dims = is_positive_session(session), tested_dims(session)
    rows = []
    for name in (*session.inputs, *session.outputs):
        dtype = session.tensors[name][0]
        start, limit = steps.starts.get(name, 0), steps.below.get(name)
        values = table_name(dtype, positive) if name in session.inputs else "NULL"
        rows.append(given_row(name, dtype, prod(dims[name]), values, start, limit))
    yield from _table("given", rows)


def _table(name: str, rows: Sequence[str]) -> Iterator[str]:
    """A table of arrays, with one more row after them."""
    yield f"{INDENT}static const struct test_array {name}[] = {{"
    yield from (2 * INDENT + row for row in rows)
    yield f"{INDENT}{INDENT}{{.count = 0}},"
    yield f"{INDENT}}};"
