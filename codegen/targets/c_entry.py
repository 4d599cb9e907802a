"""The host program in C: workspace layout, argument checks, and the calls of its kernels in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from ilang.codegen.targets.cfamily import C_TYPES, INDENT, Spelling, affine
from ilang.codegen.targets.identifiers import identifier
from ilang.core.ir.affine import Affine
from ilang.core.ir.host import (
    Count,
    Derive,
    Follow,
    Hold,
    Host,
    Launch,
    Ranges,
    Require,
    Step,
    Take,
)
from ilang.core.ir.kernel import Blocks, Part, Window
from ilang.core.ir.shaped import Derivation, Reach
from ilang.core.machine import CPU

STATUS = {
    0: "done",
    1: "a pointer is NULL",
    2: "an output overlaps another array or the workspace",
    3: "an extent is negative, or an array would be larger than memory can be",
    4: "an index read from an array is out of range",
}
"""What a generated function returns."""

MOST_THREADS, ENOUGH = CPU.threads.most, CPU.threads.enough_work
MOST_BLOCKS, BLOCK_WORK = CPU.threads.most_blocks, CPU.threads.block_work
WIDEST = 100
"""Columns of a list of parameters that stays on one row."""


def wrapped(head: str, words: Sequence[str], tail: str) -> str:
    """A list in parentheses on one line where it fits, else one word a line."""
    one = head + (", ".join(words) or ("void" if head.startswith("static") else "")) + tail
    if len(one) <= WIDEST:
        return one
    indent = " " * (len(head) - len(head.lstrip())) + INDENT
    return head + "\n" + ",\n".join(indent + word for word in words) + tail


class Entry:
    """Text of ``NAME_plan``, ``NAME_work`` and ``NAME``: a host program in C."""

    def __init__(self, host: Host, signature: str) -> None:
        """For a host program, and the declaration of the program's function."""
        self.host = host
        self.program = host.program
        self.signature = signature
        self.name = identifier(host.program.name)
        self.spelling = Spelling(host.program, None)

    def lines(self) -> Iterator[str]:
        """All three functions."""
        yield from self._plan()
        yield f"size_t {self.name}_work(const {self.name}_sizes *sizes)"
        yield "{"
        yield f"{INDENT}{self.name}_layout plan = {{0}};"
        yield f"{INDENT}if (sizes == NULL) return SIZE_MAX;"
        yield f"{INDENT}return {self.name}_plan(sizes, &plan) ? plan.total : SIZE_MAX;"
        yield "}"
        yield ""
        yield from self._function()

    def _plan(self) -> Iterator[str]:
        table, layout = self.host.in_table(), self.host.layout
        yield "/* bytes of each argument, then where temporaries and scratch stand in the workspace */"
        yield "typedef struct {"
        if table:
            yield f"{INDENT}size_t bytes[{len(table)}];"
        yield from (f"{INDENT}size_t at_{self._array(n)};" for n in layout.temporaries)
        yield from self._fields()
        yield f"}} {self.name}_layout;"
        yield ""
        yield "/* fill in the layout; 0 if an extent does not fit */"
        yield f"static int {self.name}_plan(const {self.name}_sizes *sizes, {self.name}_layout *plan)"
        yield "{"
        yield from self._checks()
        for position, argument in enumerate(table):
            yield f"{INDENT}if (!{self._measure(argument.buffer, f'&plan->bytes[{position}]')}) return 0;"
        if not layout.is_empty():
            yield f"{INDENT}size_t bytes = 0;"
        for number in layout.temporaries:
            yield f"{INDENT}plan->at_{self._array(number)} = plan->total;"
            yield f"{INDENT}if (!{self._measure(number, '&bytes')} || !{self._added('bytes')}) return 0;"
        yield from self._scratch()
        if layout.is_empty():
            yield f"{INDENT}return 1;"
        else:
            yield f"{INDENT}return {self._added('1')}; /* one line more, to align the first */"
        yield "}"
        yield ""

    def _fields(self) -> Iterator[str]:
        """The fields of a layout that every program has."""
        yield f"{INDENT}size_t scratch, scratch_bytes, total;"

    def _added(self, bytes_: str) -> str:
        """A C call that adds to the bytes of the workspace, false if they do not fit."""
        return f"add(&plan->total, {bytes_})"

    def _scratch(self) -> Iterator[str]:
        """Room for the private buffers of the kernel that needs most, once per thread."""
        if not self.host.layout.scratch:
            return
        yield f"{INDENT}plan->scratch = plan->total;"
        yield f"{INDENT}size_t scratch;"
        for private in self.host.layout.scratch:
            yield f"{INDENT}scratch = 0;"
            for number in private:
                yield f"{INDENT}if (!{self._measure(number, '&bytes')} || !add(&scratch, bytes)) return 0;"
            yield f"{INDENT}if (scratch > plan->scratch_bytes) plan->scratch_bytes = scratch;"
        yield f"{INDENT}for (int t = 0; t < scratches(plan->scratch_bytes); ++t) {{"
        yield f"{INDENT}{INDENT}if (!add(&plan->total, plan->scratch_bytes)) return 0;"
        yield f"{INDENT}}}"

    def _array(self, number: int) -> str:
        """The name of a buffer."""
        return identifier(self.program.buffers[number].name)

    def _measure(self, number: int, target: str) -> str:
        """A C call that computes the bytes of a buffer, false if they do not fit."""
        buffer = self.program.buffers[number]
        extents = ", ".join(self.spelling.size(size) for size in buffer.dims)
        listed = f"(const int64_t[]){{{extents}}}" if extents else "NULL"
        return f"measure({target}, sizeof({C_TYPES[buffer.dtype]}), {len(buffer.dims)}, {listed})"

    def _checks(self) -> Iterator[str]:
        """Every extent, and what must hold of them."""
        checks = self.host.checks
        if not any(isinstance(step, Take) for step in checks):
            yield f"{INDENT}(void)sizes;"
        declared = False
        for step in checks:
            if isinstance(step, Derive) and not declared:
                declared = True
                if any(isinstance(each, Derive) and each.known for each in checks):
                    yield f"{INDENT}int64_t derived;"
            yield from self._step(step)

    def _step(self, step: Step) -> Iterator[str]:
        """The lines of one step."""
        size = self.spelling.size
        match step:
            case Take():
                name = size(step.size)
                field = identifier(self.program.sizes[step.size].name)
                yield f"{INDENT}const int64_t {name} = sizes->{field};"
                if step.limited:
                    yield f"{INDENT}if ({name} < 0 || {name} > INT64_MAX / 8) return 0;"
            case Derive() if step.known:
                derived = self._derive(step, "derived")
                yield f"{INDENT}if (!{derived} || derived != {size(step.rule.size)}) return 0;"
            case Derive():
                name = size(step.rule.size)
                yield f"{INDENT}int64_t {name};"
                yield f"{INDENT}if (!{self._derive(step, name)}) return 0;"
            case Follow():
                value = self._formula(step.rule)
                yield f"{INDENT}const int64_t {size(step.rule.size)} = {value};"
            case Require():
                yield f"{INDENT}if ({size(step.bound.size)} <= {step.bound.position}) return 0;"
            case Hold():
                yield from self._hold(step.reach)
            case Count():
                yield f"{INDENT}const int64_t {size(step.part.size)} = {self._count(step.part)};"
            case _:
                assert_never(step)

    def _hold(self, reach: Reach) -> Iterator[str]:
        """That positions are what their type holds, on both sides of 0."""
        for sign, relation in ((1, ">"), (-1, "<")):
            words = [
                f"{c} * ((double){self.spelling.size(size)} - 1)"
                for c, size in reach.terms
                if 0 < c * sign
            ]
            if words or reach.limit < sign * reach.offset:
                total = " + ".join([*words, str(reach.offset)])
                yield f"{INDENT}if ({total} {relation} {sign * reach.limit}.0) return 0;"

    def _count(self, part: Part | Window | Blocks) -> str:
        """How many parts, elements or blocks there are."""
        size = self.spelling.size
        match part:
            case Window():
                reach = " + ".join(f"{c} * ({size(n)} - 1)" for c, n in part.reach)
                empty = " || ".join(f"{size(n)} < 1" for _, n in part.reach)
                return f"{empty} ? 0 : {reach} + 1"
            case Part():
                whole = size(part.whole)
                return f"{whole} / {part.step} + ({whole} % {part.step} != 0)"
            case Blocks():
                return f"blocks({' * '.join(f'(double){size(n)}' for n in part.loops)})"

    def _derive(self, step: Derive, name: str) -> str:
        """A C call that computes a derived extent, false if there is none."""
        rule = step.rule
        words = [f"{c}, {self.spelling.size(size)}" for c, size in rule.terms]
        least = " || ".join(f"1 < {self.spelling.size(size)}" for size in step.spread)
        rules = f"{rule.offset}, {rule.divisor}, {int(rule.exact)}, {least or step.least}"
        return f"derive(&{name}, {self._terms(words)}, {rules})"

    def _terms(self, words: Sequence[str]) -> str:
        """The arguments of a call that are a list of terms."""
        return f"{len(words)}, (const int64_t[]){{{', '.join(words)}}}"

    def _formula(self, rule: Derivation) -> str:
        """A derived extent as an expression, where it is known to be one."""
        total = Affine((), rule.offset, False, rule.terms)
        text = affine(total, str, self.spelling.size)
        return text if rule.divisor == 1 else f"({text}) / {rule.divisor}"

    def _function(self) -> Iterator[str]:
        host, table = self.host, self.host.in_table()
        yield self.signature
        yield "{"
        yield f"{INDENT}{self.name}_layout plan = {{0}};"
        yield f"{INDENT}if (sizes == NULL) return 1;"
        yield f"{INDENT}if (!{self.name}_plan(sizes, &plan)) return 3;"
        if table:
            yield from self._checked_arrays("work, plan.total")
        for step in host.sizes:
            yield from self._step(step)
        if not host.layout.is_empty():
            yield f"{INDENT}char *const base = aligned(work);"
        for number in host.layout.temporaries:
            c_type, name = C_TYPES[self.program.buffers[number].dtype], self._array(number)
            yield f"{INDENT}{c_type} *{name} = ({c_type} *)(void *)(base + plan.at_{name});"
        for number, launch in enumerate(host.launches):
            yield from (self._range(each) for each in host.ranges if each.launch == number)
            yield self._launch(launch)
        yield f"{INDENT}return 0;"
        yield "}"
        yield ""

    def _checked_arrays(self, work: str) -> Iterator[str]:
        """That arrays are there and do not overlap, nor with a workspace."""
        table = self.host.in_table()
        pointers = ", ".join(self._array(argument.buffer) for argument in table)
        yield f"{INDENT}const void *arrays[{len(table)}] = {{{pointers}}};"
        read = sum(argument.role == "input" for argument in table)
        call = f"check(arrays, plan.bytes, {len(table)}, {read}, {work})"
        yield f"{INDENT}const int status = {call};"
        yield f"{INDENT}if (status != 0) return status;"

    def _range(self, ranges: Ranges) -> str:
        """What refuses an array of indices that has one out of range."""
        buffer = self.program.buffers[ranges.buffer]
        size = self.spelling.size
        count = " * ".join(size(n) for n in buffer.dims) or "1"
        call = (
            f"are_below_{buffer.dtype}({self._array(ranges.buffer)}, {count}, {size(ranges.size)})"
        )
        return f"{INDENT}if (!{call}) return 4;"

    def _launch(self, launch: Launch) -> str:
        """The call of a kernel."""
        words = [self.spelling.size(n) for n in launch.sizes]
        words += [self._array(n) for n in launch.buffers]
        words += ["base + plan.scratch"] if launch.scratch else []
        words += ["plan.scratch_bytes"] if launch.divided else []
        kernel = f"{self.name}_{self.program.kernels[launch.kernel].name}"
        return wrapped(f"{INDENT}{kernel}(", words, ");")


ENTRY_HELPERS = tuple(
    f"""/* each thread of a parallel loop has scratch storage of its own in the workspace */
#ifdef _OPENMP
#define MOST_THREADS {MOST_THREADS}
#else
#define MOST_THREADS 1
#endif
#define MOST_SCRATCH ((size_t){CPU.threads.scratch_bytes >> 20} << 20)

/* how many threads have so many bytes of scratch storage each */
static inline int scratches(size_t scratch_bytes)
{{
    if (scratch_bytes <= MOST_SCRATCH / MOST_THREADS) return MOST_THREADS;
    return scratch_bytes <= MOST_SCRATCH ? (int)(MOST_SCRATCH / scratch_bytes) : 1;
}}

/* the threads that there are: what OpenMP would take, as far as there is scratch storage */
static inline int threads(size_t scratch_bytes)
{{
#ifdef _OPENMP
    const int most = omp_get_max_threads();
#else
    const int most = 1;
#endif
    return most < scratches(scratch_bytes) ? most : scratches(scratch_bytes);
}}

/* the number of the calling thread among those that share a loop */
static inline int thread(void)
{{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}}

/* how many of a team share a loop: one, where there is little work or a loop inside has more iterations to share */
static inline int shares(int team, int64_t iterations, double work, int inside)
{{
    if (team < 2 || iterations < 2 || work < {ENOUGH}) return 1;
    if (inside && iterations < 4 * (int64_t)team && iterations % team != 0) return 1;
    return iterations < team ? (int)iterations : team;
}}

/* the first iteration of a thread's part; of many iterations, parts are multiples of 16 */
static inline int64_t share(int64_t iterations, int number)
{{
#ifdef _OPENMP
    const int64_t count = omp_get_num_threads();
#else
    const int64_t count = 1;
#endif
    const int64_t more = iterations % count, at = iterations / count * number + (number < more ? number : more);
    return iterations < 1024 * count || number == count ? at : at / 16 * 16;
}}

/* a number of bytes rounded up to whole cache lines */
static inline size_t padded(size_t bytes)
{{
    return (bytes + 63) / 64 * 64;
}}

/* add a padded number of bytes to a total; 0 if that is more than memory can be */
static inline int add(size_t *total, size_t bytes)
{{
    if (bytes > SIZE_MAX / 4 || padded(bytes) > SIZE_MAX / 4 - *total) return 0;
    *total += padded(bytes);
    return 1;
}}

/* the bytes of an array; 0 if an extent is negative or the bytes are more than memory can be */
static int measure(size_t *bytes, size_t element, int rank, const int64_t *extents)
{{
    size_t most = element;
    *bytes = element;
    for (int d = 0; d < rank; ++d) {{
        if (extents[d] < 0) return 0;
        if (extents[d] > 0 && (uint64_t)extents[d] > (SIZE_MAX / 4) / most) return 0;
        most *= extents[d] > 0 ? (size_t)extents[d] : 1;
        *bytes *= (size_t)extents[d];
    }}
    return 1;
}}

/* an extent that follows from others: (sum of factor * extent + offset) / divisor, rounded down; 0 if there is none */
static int derive(
    int64_t *size, int count, const int64_t *terms, int64_t offset, int64_t divisor, int exact, int64_t least)
{{
    int64_t total = offset;
    for (int n = 0; n < count; ++n) {{
        const int64_t factor = terms[2 * n], extent = terms[2 * n + 1], times = factor < 0 ? -factor : factor;
        if (extent > INT64_MAX / 8 / times) return 0;
        if (total > INT64_MAX / 2 || total < -(INT64_MAX / 2)) return 0;
        total += factor * extent;
    }}
    *size = total / divisor - (total % divisor < 0);
    if (*size < least || *size > INT64_MAX / 8) return 0;
    return !exact || total % divisor == 0;
}}

/* how many blocks a reduction is computed in, from the number of its terms */
static inline int64_t blocks(double terms)
{{
    return terms < {MOST_BLOCKS * BLOCK_WORK} ? (int64_t)(terms / {BLOCK_WORK}) + 1 : {MOST_BLOCKS};
}}

/* the first iteration of a block: all but the last ones have equally many, a multiple of some number */
static inline int64_t start_of(int64_t iterations, int64_t count, int64_t multiple, int64_t block)
{{
    const int64_t length = (iterations + count * multiple - 1) / (count * multiple) * multiple;
    if (length == 0) return 0;
    return block <= iterations / length ? block * length : iterations;
}}

/* whether all of so many indices are at least 0 and below an extent */
static int are_below_i32(const int32_t *indices, int64_t count, int64_t extent)
{{
    int outside = 0;
    for (int64_t n = 0; n < count; ++n) outside |= (indices[n] < 0) | (extent <= indices[n]);
    return !outside;
}}

/* whether all of so many indices are at least 0 and below an extent */
static int are_below_i64(const int64_t *indices, int64_t count, int64_t extent)
{{
    int outside = 0;
    for (int64_t n = 0; n < count; ++n) outside |= (indices[n] < 0) | (extent <= indices[n]);
    return !outside;
}}

/* the first cache line that starts at or after an address */
static inline char *aligned(void *address)
{{
    return (char *)address + (64 - (uintptr_t)address % 64) % 64;
}}

/* whether two stretches of memory share a byte */
static inline int overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{{
    const uintptr_t p = (uintptr_t)a, q = (uintptr_t)b;
    return a_bytes > 0 && b_bytes > 0 && p < q + b_bytes && q < p + a_bytes;
}}

/* status 1 if a pointer to something is NULL, 2 if what is written overlaps anything else */
static int check(const void **arrays, const size_t *bytes, int count, int inputs, const void *work, size_t work_bytes)
{{
    if (work == NULL && work_bytes > 0) return 1;
    for (int a = 0; a < count; ++a) {{
        if (arrays[a] == NULL && bytes[a] > 0) return 1;
        if (overlap(arrays[a], bytes[a], work, work_bytes)) return 2;
        for (int b = 0; b < a; ++b) {{
            if (a >= inputs && overlap(arrays[a], bytes[a], arrays[b], bytes[b])) return 2;
        }}
    }}
    return 0;
}}
""".split("\n")
)


def entry_helpers(body: Sequence[str]) -> Iterator[str]:
    """The helpers that a text calls, and those that they call (compilers warn of a function that nobody calls)."""
    text, kept = "\n".join(body), []
    for helper in reversed("\n".join(ENTRY_HELPERS).strip("\n").split("\n\n")):
        name = re.search(r"^static [\w *]*?(\w+)\(", helper, re.MULTILINE)
        if name is None or f"{name.group(1)}(" in text:
            kept.append(helper)
            text += helper
    for helper in reversed(kept):
        yield from (*helper.split("\n"), "")
