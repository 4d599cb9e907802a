"""Calls as data do what the host program in CUDA does: the same statuses, workspaces, launches and arguments."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from ilang import i
from ilang.codegen.call.native import Address, Native
from ilang.codegen.compile import cache
from ilang.codegen.emulator import recipes
from ilang.codegen.emulator.runtime import emulator
from ilang.codegen.emulator.translate import translate
from ilang.codegen.targets import cuda
from ilang.codegen.targets.cuda_call import NUMBER, WORKSPACE, DeviceCall, Value, call_of
from ilang.codegen.targets.identifiers import function_identifier
from ilang.core.ir.host import Host
from ilang.core.ir.kernel import Program
from ilang.core.machine import GPU
from ilang.core.pipeline import host_of, infer, lower
from ilang.core.record import replace
from tests.golden.test_golden import graph_in
from tests.property.test_cuda import CAUSAL, GOLDEN, SCHEDULED

pytestmark = pytest.mark.deep

EXTENTS = (-1, 0, 1, 1, 2, 3, 5, 16, 33, 64, 100, 1000, 4096, 70_000, 1 << 20, (1 << 31) + 5)
LARGE = (1 << 33, 1 << 40, (1 << 60) - 1, 1 << 61, (1 << 63) - 1)
LOOKED_UP = (
    "bt@vd~btd",
    "(b@vd~bd) | (c@wd~cd)",
    "f(x[b], y: i64[v], z[w]) = { p = (b@v~b)(x, y); (b@w~b)(p, z) }",
)
CALLS = 40
"""Of each program, at extents drawn."""
FAILED = (1 << 64) - 1
"""What a workspace is where extents do not fit."""

BODY = re.compile(r"^(static __global__ .*?^)\{$.*?^\}$", re.DOTALL | re.MULTILINE)

RECORDED = """\
#include <cuda_runtime.h>
#include <string>

static std::string recorded;

template <class T> static void record(T value)
{
    recorded += " " + std::to_string((unsigned long long)value);
}

struct Recorded {
    Recorded(const char *kernel, dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
    {
        recorded += kernel;
        for (unsigned n : {grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared})
            recorded += " " + std::to_string(n);
        record(stream);
    }
    template <class... P> void operator()(void (*)(P...), std::decay_t<P>... a)
    {
        (record(a), ...);
        recorded += "\\n";
    }
};

static cudaError_t recorded_fill(void *start, int value, size_t bytes, cudaStream_t stream)
{
    recorded += "fill";
    record(start), record(value), record(bytes), record(stream);
    recorded += "\\n";
    return cudaSuccess;
}

extern "C" const char *take_recorded(void)
{
    static std::string taken;
    taken.swap(recorded);
    recorded.clear();
    return taken.c_str();
}

"""
"""Notes what is launched, and launches nothing."""

STREAM = 7


@functools.cache
def hosts() -> list[Host]:
    """The host program of each written schedule and each page of what a program becomes."""
    texts = [*(text for text, _ in SCHEDULED.values()), CAUSAL, *LOOKED_UP]
    graphs = [*(i(text).graph() for text in texts), *map(graph_in, GOLDEN)]
    shaped = [replace(infer(graph), name=f"p{n}") for n, graph in enumerate(graphs)]
    return [host_of(lower(each, GPU)) for each in shaped]


INDEX_TYPE = re.compile(r'"(\w+)<decltype\(index\)>"')
"""The name of a kernel whose type of indices is chosen when the program runs."""


def recorder(programs: Sequence[Program]) -> Native:
    """The emitted text of programs, whose kernels are empty, and whose launches are noted."""
    text = BODY.sub(r"\1{}", cuda.emit_together(programs))
    assert text.count("\n{}\n") >= len(programs)
    translated = translate(text, "calls.cu").replace("::cuda_emulator::Configured(", "Recorded(")
    translated = INDEX_TYPE.sub(r'sizeof(index) == 4 ? "\1<int>" : "\1<int64_t>"', translated)
    noted = RECORDED + translated.replace("cudaMemsetAsync(", "recorded_fill(")
    return cache.library(noted, recipes.program_recipe(emulator().content), Native)


def words_of(values: Sequence[Value], addresses: Sequence[int], start: int) -> Iterator[str]:
    """Arguments of a kernel, as they are noted."""
    bases = {**dict(enumerate(addresses)), WORKSPACE: start, NUMBER: 0}
    yield from (f" {bases[base] + offset}" for base, offset in values)


def noted(call: DeviceCall, addresses: Sequence[int], work: int) -> str:
    """What is enqueued, as it is noted."""
    lines, start = [], call.base(work)
    begin, count = call.marks
    lines += [f"fill {start + begin} 0 {count} {STREAM}\n"] if count else []
    for each in call.starts:
        shape = " ".join(map(str, (*each.grid, *each.block, 0)))
        values = "".join(words_of(each.values, addresses, start))
        lines.append(f"{each.kernel} {shape} {STREAM}{values}\n")
    return "".join(lines)


def extents_drawn(count: int, draw: random.Random) -> list[int]:
    """Extents, of which some do not fit."""
    largest = draw.choice((8, len(EXTENTS) - 1, len(EXTENTS)))
    some = [*EXTENTS[draw.randrange(2) :][:largest], *(LARGE if not draw.randrange(6) else ())]
    return [draw.choice(some) for _ in range(count)]


def test_calls_are_those_of_the_text() -> None:
    """At sizes large and small, some of which are refused; arrays are nowhere, since no kernel runs."""
    loaded, draw = recorder([host.program for host in hosts()]), random.Random(1)
    started, refused = set[str](), 0
    for host in hosts():
        name = function_identifier(host.program.name)
        count = sum(size.is_argument() for size in host.program.sizes)
        for work in range((1 << 50) + 1, (1 << 50) + 1 + CALLS):
            extents = extents_drawn(count, draw)
            said = f"{name} at {extents}"
            sizes = np.array(extents or [0], np.int64)
            call = call_of(host, extents)
            total = loaded.call(f"{name}_work", sizes, gives="size")
            assert total == (FAILED if call is None else call.total), said
            addresses = [(n + 1) << 40 for n in range(len(host.program.arguments()))]
            if not draw.randrange(8):
                addresses[draw.randrange(len(addresses))] = draw.choice((0, 1 << 40, 1 << 50))
            given = [Address(address) for address in addresses]
            status = loaded.call(name, sizes, *given, Address(work), Address(STREAM))
            wanted = 3 if call is None else call.status(addresses, work)
            assert status == wanted, said
            lines = loaded.call("take_recorded", gives="text")
            refused += wanted > 0
            if call is not None and not wanted:
                assert lines == noted(call, addresses, work), said
                started |= {line.split()[0] for line in lines.splitlines()}
    names = " ".join(started)
    assert refused > CALLS
    for kind in ("<int>", "<int64_t>", "outside_i64", "infinite_f32", "fill"):
        assert kind in names


@pytest.mark.parametrize("missing", [0, 1])
def test_a_missing_workspace_is_told(missing: int) -> None:
    call = next(call for host in hosts() if (call := _at_ones(host)) is not None and call.total)
    addresses = [(n + 1) << 40 for n in range(len(call.table))]
    assert call.status(addresses, 0 if missing else 1 << 50) == missing


def _at_ones(host: Host) -> DeviceCall | None:
    return call_of(host, [1] * sum(size.is_argument() for size in host.program.sizes))
