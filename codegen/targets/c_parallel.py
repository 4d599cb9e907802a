"""Parallel loops in C: each is a function of a range of its iterations, which one thread calls or several.

    static void f_k0_loop0(int64_t first, int64_t last, ...);     iterations first to last - 1 of loop i

Loops with nothing between them are one loop over the product of their extents.
Of parallel loops inside each other one at a time has several threads: the first that has enough work, and iterations
for all of them. Private buffers stand at the start of a thread's part of the scratch storage, those of a loop behind
those of the loops around it; the first thread of a loop goes on in the part of the thread that came to the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ilang.codegen.targets.c_entry import WIDEST, wrapped
from ilang.codegen.targets.c_stop import shared
from ilang.codegen.targets.c_tile import late_name
from ilang.codegen.targets.cfamily import C_TYPES, INDENT, Spelling
from ilang.codegen.targets.identifiers import identifier
from ilang.core.cost import Work, of_loop
from ilang.core.ir.cpu import Transpose
from ilang.core.ir.kernel import (
    Define,
    For,
    Kernel,
    Part,
    Program,
    Statement,
    Store,
    Tile,
    blocks_of,
    statements_within,
)
from ilang.core.lower.uses import touched, use_of

Parameter = tuple[str, str]
"""A declaration, and the argument."""


class Function:
    """What one function of a kernel computes: parallel loops with nothing between them, or (no loops) the kernel."""

    def __init__(self, name: str, loops: Sequence[For], body: Sequence[Statement]) -> None:
        """A function that has nothing yet."""
        self.name = name
        self.loops = tuple(loops)
        self.body = body
        self.calls: list[Function] = []
        self.private: tuple[int, ...] = ()

    def has_scratch(self) -> bool:
        """Whether it, or what it calls, keeps anything in scratch storage."""
        return bool(self.private) or any(inner.has_scratch() for inner in self.calls)


Steps = Mapping[int, int]
"""How far apart the parts of split dimensions are, by size number."""


def steps_of(program: Program) -> Steps:
    """The steps of a program."""
    return {part.size: part.step for part in program.parts if isinstance(part, Part)}


class Functions:
    """The functions of one kernel, and the text of their parameters and calls."""

    def __init__(
        self,
        program: Program,
        kernel: Kernel,
        spelling: Spelling,
        name: str,
        steps: Steps,
        stoppable: bool = False,
    ) -> None:
        """For a kernel whose function is called ``name``; ``steps`` are those of the program.

        ``stoppable`` says that its threads are to be.
        """
        self.program = program
        self.stoppable = stoppable
        self.kernel = kernel
        self.spelling = spelling
        self.steps = steps
        self.top = Function(name, (), kernel.body)
        self.of_loop: dict[int, Function] = {}
        self.ordered: list[Function] = []
        self.homes: dict[int, tuple[Function, ...]] = {}
        self._explore(self.top, kernel.body, (self.top,))
        self.ordered.append(self.top)
        for buffer, path in self.homes.items():
            path[-1].private = tuple(sorted((*path[-1].private, buffer)))
        self.defined = {
            s.variable: s for s in statements_within(kernel.body) if isinstance(s, Define)
        }

    def _explore(
        self, function: Function, body: Sequence[Statement], path: tuple[Function, ...]
    ) -> None:
        """Find the functions inside a function, inner ones first, and where private buffers are used."""
        for s in body:
            for buffer in touched(s):
                described = self.program.buffers[buffer]
                if described.private and described.role != "tile":
                    known = self.homes.get(buffer, path)
                    common = [a for a, b in zip(known, path, strict=False) if a is b]
                    self.homes[buffer] = tuple(common)
            if isinstance(s, For) and s.parallel:
                loops = _together(self.program, s)
                made = Function(f"{self.top.name}_loop{len(self.of_loop)}", loops, loops[-1].body)
                function.calls.append(made)
                self.of_loop[id(s)] = made
                self._explore(made, made.body, (*path, made))
                self.ordered.append(made)
                continue
            for block in blocks_of(s):
                self._explore(function, block, path)

    # -- parameters ----------------------------------------------------------------------------------------------------

    def parameters(self, function: Function) -> list[Parameter]:
        """What a function takes, but for the range of its loop and the scratch storage."""
        inside = {buffer for f in self._all(function) for buffer in f.private}
        use = use_of(self.program, function.body, function.loops, frozenset(inside))
        sizes = [n for n in use.sizes if self.program.sizes[n].fixed is None]
        names = [self.spelling.size(n) for n in sizes]
        names += [self.spelling.variable(n) for n in use.variables]
        found = [(f"int64_t {name}", name) for name in names]
        for variable in use.locals:
            s, name = self.defined[variable], self.spelling.name(variable)
            kind = self.spelling.kind(s)
            kind = f"const {kind} *" if s.lanes > 1 else f"{kind} "
            found.append((f"{kind}{name}", name))
        for copy in _filled_inside(function.body):
            name = late_name(self.program, copy)
            found.append((f"int {name}", name))
        for number in use.shared:
            buffer = self.program.buffers[number]
            const, name = "" if number in use.written else "const ", identifier(buffer.name)
            found.append((f"{const}{C_TYPES[buffer.dtype]} *restrict {name}", name))
        return found

    def _all(self, function: Function) -> Iterator[Function]:
        """A function, and all that it calls."""
        yield function
        for inner in function.calls:
            yield from self._all(inner)

    def extra(self, function: Function) -> list[Parameter]:
        """The scratch storage of a function, and what it needs to give work to threads."""
        found = []
        if function.has_scratch():
            found.append(("char *scratch", "scratch"))
        if any(inner.has_scratch() for inner in function.calls):
            found.append(("size_t scratch_bytes", "scratch_bytes"))
        if function.calls and function.loops:
            found.append(("int team", "team"))
        return found

    # -- text ----------------------------------------------------------------------------------------------------------

    def head(self, function: Function) -> Iterator[str]:
        """The head of a function and its private buffers, as far as its loop or its first statement."""
        words = [declared for declared, _ in self.parameters(function)]
        words += [declared for declared, _ in self.extra(function)]
        if function.loops:
            names = [self.spelling.variable(loop.variable) for loop in function.loops]
            told = (
                f"loop {names[0]}" if len(names) == 1 else f"the loops {', '.join(names)} together"
            )
            yield f"/* iterations first to last - 1 of {told} */"
            words = ["int64_t first", "int64_t last", *words]
        yield wrapped(f"static void {function.name}(", words, ")")
        yield "{"
        shared = any(inner.has_scratch() for inner in function.calls)
        for number in function.private:
            buffer = self.program.buffers[number]
            kind, name = C_TYPES[buffer.dtype], identifier(buffer.name)
            yield f"{INDENT}{kind} *restrict {name} = ({kind} *)(void *)scratch;"
            if shared or number != function.private[-1]:
                count = " * ".join(f"(size_t){self.spelling.size(size)}" for size in buffer.dims)
                yield f"{INDENT}scratch += padded({count} * sizeof({kind}));"
        if function.calls and not function.loops:
            yield f"{INDENT}const int team = threads({'scratch_bytes' if shared else '0'});"

    def call(self, loop: For, indent: str) -> Iterator[str]:
        """A parallel loop where it stands: by one thread, or by several."""
        function, inside = self.of_loop[id(loop)], indent + INDENT
        words = [argument for _, argument in self.parameters(function)]
        extra = [argument for _, argument in self.extra(function)]
        alone = ["0", "iterations", *words, *extra]
        parts = ["share(iterations, thread())", "share(iterations, thread() + 1)", *words, *extra]
        own = {"scratch": "scratch + (size_t)thread() * scratch_bytes", "team": "1"}
        parts = [own.get(word, word) for word in parts]
        yield f"{indent}{{"
        yield f"{inside}const int64_t iterations = {self._whole(function)};"
        yield f"{inside}const int sharing = {self._sharing(function)};"
        yield f"{inside}if (sharing < 2) {{"
        yield filled(f"{inside}{INDENT}{function.name}(", alone, ");")
        yield f"{inside}}} else {{"
        if self.stoppable:
            yield from shared(function.name, parts, inside + INDENT)
        else:
            yield "#ifdef _OPENMP"
            yield "#pragma omp parallel num_threads(sharing)"
            yield "#endif"
            yield filled(f"{inside}{INDENT}{function.name}(", parts, ");")
        yield f"{inside}}}"
        yield f"{indent}}}"

    def opened(self, function: Function, indent: str) -> Iterator[str]:
        """The head of the loops of a function that has several."""
        names = [self.spelling.variable(loop.variable) for loop in function.loops]
        yield f"{indent}if (last <= first) return;"
        sizes = [self.spelling.size(loop.size) for loop in function.loops]
        for n, name in enumerate(names):
            inner = " * ".join(sizes[n + 1 :])
            value = "first" + (
                f" / ({inner})" if len(sizes[n + 1 :]) > 1 else f" / {inner}" if inner else ""
            )
            yield f"{indent}int64_t {name} = {value}{f' % {sizes[n]}' if n else ''};"
        yield f"{indent}for (int64_t at = first; at < last; ++at) {{"

    def closed(self, function: Function, indent: str) -> Iterator[str]:
        """The end of the loops of a function that has several: the next iteration."""
        *outer, last = [
            (self.spelling.variable(loop.variable), self.spelling.size(loop.size))
            for loop in function.loops
        ]
        text = f"++{outer[0][0]};"
        for name, size in (*outer[1:], last):
            text = f"if (++{name} == {size}) {{ {name} = 0; {text} }}"
        yield f"{indent}{INDENT}{text}"
        yield f"{indent}}}"

    def _whole(self, function: Function) -> str:
        """How many iterations the loops of a function have."""
        first = function.loops[0]
        words = [self.spelling.size(loop.size) for loop in function.loops]
        if first.rest is not None:
            words[0] = f"min_i64({words[0]}, {self.spelling.rest(first.rest)})"
        return " * ".join(words)

    def _sharing(self, function: Function, whole: str = "iterations") -> str:
        """How many threads are to share a loop: a test of its work, and of the largest loop inside."""
        better = "0"
        if function.calls:
            best = max(function.calls, key=lambda inner: self._work(inner)[0])
            sizes = " * ".join(self.spelling.size(loop.size) for loop in best.loops)
            better = f"1 < {self._sharing(best, sizes)}"
        return f"shares(team, {whole}, {self._work(function)[1]}, {better})"

    def _work(self, function: Function) -> tuple[float, str]:
        """The work of all iterations of a loop, in its largest nest: how to compare it, and how to compute it."""
        sizes = self.program.sizes
        works = of_loop(self.program, function.loops[0])
        best = max(works, key=lambda work: work.usual(sizes, self.steps), default=Work((), 0, 0.0))
        known, unknown = best.split(sizes)
        words = [f"(double){self.spelling.size(n)}" for n in unknown]
        words += [f"{known:.15g}"] if known != 1 or not words else []
        return best.usual(sizes, self.steps), " * ".join(words)


def filled(head: str, words: Sequence[str], tail: str) -> str:
    """A list in parentheses, as many words a line as fit."""
    indent = " " * (len(head) - len(head.lstrip())) + INDENT
    lines = [head]
    for n, word in enumerate(words):
        text = word + ("," if n < len(words) - 1 else tail)
        if len(lines[-1]) + 1 + len(text) <= WIDEST:
            lines[-1] += (" " if n and len(lines[-1]) > len(indent) else "") + text
        else:
            lines.append(indent + text)
    return "\n".join(lines)


def _together(program: Program, loop: For) -> list[For]:
    """A parallel loop and those inside it that are all that it does, but for the innermost loop of a nest.

    The place in a loop is a remainder by its extent, which is therefore not known to be 0.
    """
    found = [loop]
    while len(found[-1].body) == 1:
        inner = found[-1].body[0]
        if not isinstance(inner, For) or not inner.parallel or inner.rest is not None:
            break
        if program.sizes[inner.size].fixed == 0:
            break
        if not any(isinstance(s, (For, Tile, Transpose)) for s in inner.body):
            break
        found.append(inner)
    return found


def _filled_inside(body: Sequence[Statement]) -> Iterator[int]:
    """The copies that tiles may fill whose loops are further out."""
    inside = [s for s in statements_within(body) if isinstance(s, For) and s.late]
    own = {
        s.buffer for loop in inside for s in statements_within(loop.body) if isinstance(s, Store)
    }
    for s in statements_within(body):
        if isinstance(s, Tile) and s.fill is not None and s.fill.buffer not in own:
            yield s.fill.buffer
