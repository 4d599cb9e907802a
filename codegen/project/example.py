"""The example of a project: a program that calls its first function, or runs its first session, on a few numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ilang.codegen.project.extents import settled_extents
from ilang.codegen.project.steps import tested_dims, tested_sizes
from ilang.codegen.targets.braces import braced, indented
from ilang.codegen.targets.cfamily import C_TYPES
from ilang.codegen.targets.identifiers import identifier, initializer
from ilang.codegen.targets.session import EmittedSession, ExportedFunction

MOST_LISTED = 16
"""Elements of an array that are written out, or printed."""
MOST_ELEMENTS = 1 << 24
"""Elements of all arrays of an example."""


def function_example(
    functions: Sequence[ExportedFunction], stem: str, on_device: bool = False
) -> Iterator[str]:
    """A program that calls the first function on a few numbers, on arrays of the host."""
    yield from HEAD.replace("STEM", stem).split("\n")
    yield "int main(void)"
    yield from indented(braced("", _function_calls(functions, on_device)), breaks=False)


def _function_calls(functions: Sequence[ExportedFunction], on_device: bool) -> Iterator[str]:
    """A call of the first function whose arrays are small, and its first results printed."""
    settled = ((f, e) for f in functions if (e := settled_extents(f, _few(f))) is not None)
    function, extents = next((each for each in settled if _is_small(*each)), (None, ()))
    if function is None:
        yield "return 0;"
        return
    name, program, shaped = function.name(), function.program, function.shaped
    given = function.arguments(extents)
    if given:
        yield f"const {name}_sizes sizes = {initializer(given)};"
    sizes = "&sizes" if given else "NULL"
    words = [sizes]
    values = zip(
        (*shaped.inputs, *shaped.outputs), (*program.inputs, *program.outputs), strict=True
    )
    for number, (value, buffer) in enumerate(values):
        c_type = C_TYPES[program.buffers[buffer].dtype]
        count = max(1, function.count(value, extents))
        array = f"{identifier(program.buffers[buffer].name)}_elements"
        if number < len(shaped.inputs) and count <= MOST_LISTED:
            listed = ", ".join(str(1 + n % 2) for n in range(count))
            yield f"const {c_type} {array}[] = {{{listed}}};"
        else:
            yield f"static {c_type} {array}[{count}];"
            if number < len(shaped.inputs):
                value_text = f"({c_type})(1 + n % 2)"
                yield f"for (int n = 0; n < {count}; ++n) {array}[n] = {value_text};"
        words.append(array)
    if on_device:
        yield f"const int status = {name}_host({', '.join(words)});"
    else:
        yield f"void *work = malloc({name}_work({sizes}));"
        yield f"const int status = {name}({', '.join([*words, 'work'])});"
        yield "free(work);"
    yield f'printf("{name}: %s\\n", {name}_status(status));'
    if shaped.outputs:
        count = max(1, function.count(shaped.outputs[0], extents))
        array = words[1 + len(shaped.inputs)]
        yield f"for (int n = 0; n < {min(count, MOST_LISTED)} && status == 0; ++n) {{"
        yield f'printf("%g\\n", (double){array}[n]);'
        yield "}"
    yield "return status != 0;"


def _few(function: ExportedFunction) -> tuple[int, ...]:
    """Small extents for every size that is an argument."""
    return tuple(2 if size.is_argument() else size.fixed or 0 for size in function.shaped.sizes)


def _is_small(function: ExportedFunction, extents: Sequence[int]) -> bool:
    values = (*function.shaped.inputs, *function.shaped.outputs)
    return sum(function.count(value, extents) for value in values) <= MOST_ELEMENTS


def session_example(session: EmittedSession, stem: str, prefix: str) -> Iterator[str]:
    """A program that runs a session three times on zeros."""
    yield from SESSION_HEAD.replace("STEM", stem).replace("NAME", session.name).split("\n")
    yield "int main(void)"
    yield from indented(braced("", _session_runs(session, prefix)), breaks=False)


def _session_runs(session: EmittedSession, prefix: str) -> Iterator[str]:
    """Three runs of a session on zeros, and the first element of each result printed."""
    dims = tested_dims(session)
    name, words = session.name, ["&model", *session.inputs, *session.outputs]
    if session.of_ranks():
        yield "int rank, ranks;"
        yield f"{prefix}_begin(&rank, &ranks);"
    yield f"{name} model;"
    yield f"void *memory = malloc({name}_bytes());"
    yield f"TRY({name}_init(&model, memory, 0));"
    if session.is_open():
        words = [words[0], "&sizes", *words[1:], "work"]
        fields = initializer({each: tested_sizes(session)[each] for each in session.sizes()})
        yield f"const {name}_sizes sizes = {fields};"
        yield f"void *work = malloc({name}_work(&sizes));"
    for each in (*session.inputs, *session.outputs):
        count = max(1, math.prod(dims[each]))
        yield f"static {C_TYPES[session.tensors[each][0]]} {each}[{count}];"
    yield f"while (model.{session.counter} < 3) TRY({name}_run({', '.join(words)}));"
    yield f'printf("{name}: %d runs\\n", (int)model.{session.counter});'
    for each in session.outputs:
        if math.prod(dims[each]):
            yield f'printf("{each}[0]: %g\\n", (double){each}[0]);'
    yield from ["free(work);"] if session.is_open() else []
    yield "free(memory);"
    yield from [f"{prefix}_end();"] if session.of_ranks() else []
    yield "return 0;"


HEAD = """\
/* STEM_example.c: a call of a function of STEM.h on a few numbers, from C. Written by `i build`. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "STEM.h"
"""

SESSION_HEAD = """\
/* STEM_example.c: a few runs of a session of STEM.h. Written by `i build`. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "STEM.h"

/* what a call gives other than 0 ends the program */
#define TRY(call) do { const int status = (call); if (status != 0) return stopped(status); } while (0)

static int stopped(int status)
{
    fprintf(stderr, "%s\\n", NAME_status(status));
    return 1;
}
"""
