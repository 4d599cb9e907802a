"""The example of a project: a program that calls its first function, or runs its first session, on a few numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ilang.codegen.project.extents import settled_extents
from ilang.codegen.project.steps import tested_dims, tested_sizes
from ilang.codegen.targets.cfamily import C_TYPES, INDENT
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
    yield "{"
    settled = ((f, e) for f in functions if (e := settled_extents(f, _few(f))) is not None)
    function, extents = next((each for each in settled if _is_small(*each)), (None, ()))
    if function is None:
        yield f"{INDENT}return 0;"
        yield "}"
        return
    name, program, shaped = function.name(), function.program, function.shaped
    fields = initializer(function.arguments(extents))
    yield f"{INDENT}const {name}_sizes sizes = {fields};"
    words = ["&sizes"]
    values = zip(
        (*shaped.inputs, *shaped.outputs), (*program.inputs, *program.outputs), strict=True
    )
    for number, (value, buffer) in enumerate(values):
        c_type = C_TYPES[program.buffers[buffer].dtype]
        count = max(1, function.count(value, extents))
        array = f"{identifier(program.buffers[buffer].name)}_elements"
        if number < len(shaped.inputs) and count <= MOST_LISTED:
            listed = ", ".join(str(1 + n % 2) for n in range(count))
            yield f"{INDENT}const {c_type} {array}[] = {{{listed}}};"
        else:
            yield f"{INDENT}static {c_type} {array}[{count}];"
            if number < len(shaped.inputs):
                value_text = f"({c_type})(1 + n % 2)"
                yield f"{INDENT}for (int n = 0; n < {count}; ++n) {array}[n] = {value_text};"
        words.append(array)
    if on_device:
        yield f"{INDENT}const int status = {name}_host({', '.join(words)});"
    else:
        yield f"{INDENT}void *work = malloc({name}_work(&sizes));"
        yield f"{INDENT}const int status = {name}({', '.join([*words, 'work'])});"
        yield f"{INDENT}free(work);"
    yield f'{INDENT}printf("{name}: %s\\n", {name}_status(status));'
    if shaped.outputs:
        count = max(1, function.count(shaped.outputs[0], extents))
        array = words[1 + len(shaped.inputs)]
        yield f"{INDENT}for (int n = 0; n < {min(count, MOST_LISTED)} && status == 0; ++n) {{"
        yield f'{INDENT}{INDENT}printf("%g\\n", (double){array}[n]);'
        yield f"{INDENT}}}"
    yield f"{INDENT}return status != 0;"
    yield "}"


def _few(function: ExportedFunction) -> tuple[int, ...]:
    """Small extents for every size that is an argument."""
    return tuple(2 if size.is_argument() else size.fixed or 0 for size in function.shaped.sizes)


def _is_small(function: ExportedFunction, extents: Sequence[int]) -> bool:
    values = (*function.shaped.inputs, *function.shaped.outputs)
    return sum(function.count(value, extents) for value in values) <= MOST_ELEMENTS


def session_example(session: EmittedSession, stem: str, prefix: str) -> Iterator[str]:
    """A program that runs a session three times on zeros."""
    dims = tested_dims(session)
    name, words = session.name, ["&model", *session.inputs, *session.outputs]
    yield from SESSION_HEAD.replace("STEM", stem).replace("NAME", name).split("\n")
    yield "int main(void)"
    yield "{"
    if session.of_ranks():
        yield f"{INDENT}int rank, ranks;"
        yield f"{INDENT}{prefix}_begin(&rank, &ranks);"
    yield f"{INDENT}{name} model;"
    yield f"{INDENT}void *memory = malloc({name}_bytes());"
    yield f"{INDENT}TRY({name}_init(&model, memory, 0));"
    if session.is_open():
        words = [words[0], "&sizes", *words[1:], "work"]
        fields = initializer({each: tested_sizes(session)[each] for each in session.sizes()})
        yield f"{INDENT}const {name}_sizes sizes = {fields};"
        yield f"{INDENT}void *work = malloc({name}_work(&sizes));"
    for each in (*session.inputs, *session.outputs):
        count = max(1, math.prod(dims[each]))
        yield f"{INDENT}static {C_TYPES[session.tensors[each][0]]} {each}[{count}];"
    yield f"{INDENT}while (model.{session.counter} < 3) TRY({name}_run({', '.join(words)}));"
    yield f'{INDENT}printf("{name}: %d runs\\n", (int)model.{session.counter});'
    for each in session.outputs:
        if math.prod(dims[each]):
            yield f'{INDENT}printf("{each}[0]: %g\\n", (double){each}[0]);'
    yield from [f"{INDENT}free(work);"] if session.is_open() else []
    yield f"{INDENT}free(memory);"
    yield from [f"{INDENT}{prefix}_end();"] if session.of_ranks() else []
    yield f"{INDENT}return 0;"
    yield "}"


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
