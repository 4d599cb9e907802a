"""The host program as text: arguments, checks, workspace, launches.

Example, of a program with an intermediate value:

Arguments:
      input   in0  f32[i,j]
      output  out  f32[i,j]
    checks
      take i j
    workspace of 64-byte lines
      t1  f32[i]
    sizes
      take i j
    launches
      k0  i j  reads in0     writes t1
      k1  i j  reads in0 t1  writes out
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from ilang.core.calculus.extent import CHOICE, PLAIN, PRODUCT, Extent, Operator
from ilang.core.diagnostic import counted
from ilang.core.explain.expression import aligned, size_text
from ilang.core.ir.host import Condition, Host, Launch, Look, Step
from ilang.core.ir.kernel import Count, Program
from ilang.core.ir.shaped import Derivation, Reach

INDENT = "  "


def _chunks(terms: str, elements: str, *_: str) -> str:
    return f"blocks of {terms} terms" + ("" if elements == "0" else f" for {elements} elements")


def _shares(whole: str, least: str, most: str, *tiles: str) -> str:
    """The number of parts with results of their own."""
    count = " x ".join(tiles) or "1"
    return f"parts of {least} or more of {whole}, as many as give {count} tiles {most} blocks"


FORMULAS = PLAIN | {
    "terms": Operator(lambda *words: " x ".join(words), PRODUCT, (PRODUCT,)),
    "ceil": Operator(lambda whole, step: f"parts of {step} in {whole}", CHOICE),
    "chunks": Operator(_chunks, CHOICE),
    "shares": Operator(_shares, CHOICE),
}
"""The spellings of operations in host programs."""


def host_text(host: Host) -> str:
    """A host program, section after section."""
    program = host.program
    lines = [
        "arguments",
        *_indented([[program.buffers[n].role, *_array(program, n)] for n in program.arguments()]),
    ]
    lines += _steps(program, "checks", host.checks)
    if host.has_workspace():
        lines.append(f"workspace of {program.machine.memory.line_bytes}-byte lines")
        lines += _indented([_array(program, n) for n in host.temporaries])
        lines += [INDENT + counted(host.marks, "mark")] if host.marks else []
    kernels = [launch.kernel for launch in host.kernels() if launch.scratch]
    for kernel, private in zip(kernels, host.scratch, strict=True):
        names = ", ".join(" ".join(_array(program, n)) for n in private)
        lines.append(f"{INDENT}scratch of {program.kernels[kernel].name}: {names}")
    views = dict.fromkeys(n for launch in host.launches() for n in launch.buffers)
    rows = [
        [*_array(program, n), f"of {program.memory(n).name}"]
        for n in views
        if program.owner(n) != n
    ]
    lines += ["views", *_indented(rows)] if rows else []
    lines += _steps(program, "sizes", host.sizes)
    for title, is_of_indices in (("ranges", True), ("finite", False)):
        looks = list(_looks(host, is_of_indices))
        lines += [title, *looks] if looks else []
    marked = {look.mark: look for look in host.looks()}
    launches = [list(_launch(program, each, marked)) for each in host.launches()]
    long = ", so many that compilers optimise nothing around them" if host.is_long() else ""
    return "\n".join([*lines, f"launches{long}", *_indented(launches)])


def _looks(host: Host, is_of_indices: bool) -> Iterator[str]:
    """The looks at indices, or at floats, each before a launch."""
    program = host.program
    looks: list[Look] = []
    for each in host.operations:
        if isinstance(each, Look):
            looks += [each] if each.is_of_indices() is is_of_indices else []
            continue
        before = f"{INDENT}before {program.kernels[each.kernel].name}:"
        for look in looks:
            if not is_of_indices:
                yield f"{before} whether every element of {_names(program, look)} is"
            for n, size in look.arrays if is_of_indices else ():
                name, extent = program.buffers[n].name, _size(program, size or 0)
                yield f"{before} every element of {name} is at least 0 and below {extent}"
        looks = []


def _names(program: Program, look: Look) -> str:
    return " and ".join(program.buffers[n].name for n, _ in look.arrays)


def _steps(program: Program, title: str, steps: Sequence[Step]) -> Iterator[str]:
    """A section of steps, those that a caller's sizes are on one line; none for no steps."""
    if steps:
        yield title
    taken = [step for step in steps if isinstance(step, int)]
    if taken:
        limited = any(isinstance(step, Derivation) for step in steps)
        limit = ", so small that nothing overflows" if limited else ""
        yield f"{INDENT}take {' '.join(_size(program, size) for size in taken)}{limit}"
    yield from (INDENT + _step(program, step) for step in steps if not isinstance(step, int))


def _indented(rows: list[list[str]]) -> list[str]:
    """Rows of words as indented lines with aligned columns; a row may lack the last ones."""
    columns = max(map(len, rows), default=0)
    whole = [row + [""] * (columns - len(row)) for row in rows]
    return [INDENT + line for line in aligned(whole)]


def _array(program: Program, number: int) -> list[str]:
    buffer = program.buffers[number]
    dims = ",".join(_size(program, size) for size in buffer.dims)
    return [buffer.name, f"{buffer.dtype}[{dims}]"]


def _size(program: Program, number: int) -> str:
    return size_text(program.sizes[number])


def _step(program: Program, step: Derivation | Count | Reach) -> str:
    match step:
        case Derivation():
            spread = " or ".join(f"1 < {_size(program, n)}" for n in step.spread)
            least = f"at least {step.least}" + (f", 1 if {spread}" if spread else "")
            sign = "must be" if step.known else "="
            is_exact = step.exact and step.divisor.constant() != 1
            exact = ", exactly" if is_exact else ""
            formula = _formula(program, step.value())
            return f"{_size(program, step.size)} {sign} {formula}{exact}, {least}"
        case Reach() as reach if reach.size is not None:
            return f"{reach.index.offset} < {_size(program, reach.size)}"
        case Reach() as reach:
            steps, number = reach.index.steps(), reach.index.offset
            ends = [f"{c if c != 1 else ''}({_size(program, n)} - 1)" for c, n in steps]
            offset = [str(number)] if number or not ends else []
            return f"{' + '.join(ends + offset)} stays within {reach.limit:,}: {reach.dtype}"
        case (size, value):
            return f"{_size(program, size)} = {_formula(program, value)}"
        case _:
            assert_never(step)


def _formula(program: Program, value: Extent) -> str:
    return value.text(lambda n: _size(program, n), FORMULAS)


def _launch(program: Program, launch: Launch, marked: Mapping[int, Look]) -> Iterator[str]:
    """A kernel, the sizes and arrays that it takes, and the scratch storage."""
    names = {n: program.buffers[n].name for n in launch.buffers}
    yield program.kernels[launch.kernel].name
    yield " ".join(_size(program, n) for n in launch.sizes) or "-"
    reads = " ".join(name for n, name in names.items() if n not in launch.writes)
    yield f"reads {reads}" if reads else "reads nothing"
    yield "writes " + " ".join(name for n, name in names.items() if n in launch.writes)
    if launch.conditions:
        yield f"where {' and '.join(_condition(program, each) for each in launch.conditions)}"
    if launch.infinite is not None:
        yield f"told whether {_names(program, marked[launch.infinite])} are finite"
    if launch.scratch:
        yield "scratch of each thread" if launch.divided else "scratch"
    if launch.grid is not None:
        grid = launch.grid
        loops = " x ".join(_size(program, n) for n in grid.sizes) or "1"
        further = [_size(program, n) if n is not None else "1" for n in grid.across]
        dimensions = f" by {' by '.join(further)}" if set(grid.across) != {None} else ""
        workers = grid.over if grid.over in ("blocks", "warps") else "threads"
        each = " x ".join(map(str, grid.shape or (grid.threads,)))
        grouped = "" if grid.vector == 1 else f", {grid.vector} for each"
        yield f"blocks of {each} for {loops}{dimensions} {workers}{grouped}"


def _condition(program: Program, condition: Condition) -> str:
    extent, few, many = condition
    return f"{few} < {_formula(program, extent)}{'' if many is None else f' <= {many}'}"
