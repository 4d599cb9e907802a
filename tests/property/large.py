"""Programs of any size, one family for each way in which programs get large, and how much work they are.

``make growth`` prints how the time of each stage grows with them; ``test_growth.py`` counts lines, not seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from ilang.codegen.session.model import Model, options_of
from ilang.codegen.session.solved import SolvedDefinition
from ilang.codegen.targets import c
from ilang.core import pipeline
from ilang.core.ir.graph import Graph
from ilang.core.ir.kernel import Program
from ilang.core.ir.known_extents import extents_of
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import CPU
from ilang.core.notation.files.module import parse_module
from ilang.core.source import Source
from ilang.core.transform.views import moved_views


def chain(count: int) -> str:
    return _main(" >> ".join(["-i~i"] * count))


def sharing(count: int) -> str:
    """Every step reads the one before twice: 2^count paths."""
    return _main("I >> " + " >> ".join(["(I & I) >> i+i~i"] * count))


def parallel(count: int) -> str:
    """As many inputs, outputs and kernels."""
    return _main(" | ".join(["-i~i"] * count))


def outputs(count: int) -> str:
    """One input, read by all."""
    return _main(" & ".join(["-i~i"] * count))


def inputs(count: int) -> str:
    """One sum of all."""
    return _main("i+i~i" + " >> i+i~i" * (count - 1))


def kept(count: int) -> str:
    """A chain whose every step is an output."""
    return _main("-i~i" + " >> (I & -i~i)" * count)


def normalised(count: int) -> str:
    """Rows, again and again: all in the block of one loop."""
    return _main(" >> ".join(["(I & +ij~i) >> ij/i~ij"] * count))


def sums(count: int) -> str:
    """As many reductions of inputs of their own."""
    return _main(" | ".join(["+ij~i"] * count))


def contractions(count: int) -> str:
    return _main(" >> ".join(["ik*kj~ijk >> +ijk~ij"] * count))


def tiles(count: int) -> str:
    """Contractions of the same inputs, in one kernel."""
    return _main(" & ".join(["(ik*kj~ijk >> +ijk~ij)"] * count))


def tail(count: int) -> str:
    """Pointwise work on a contraction."""
    return _main("ik*kj~ijk >> +ijk~ij" + " >> -ij~ij" * count)


def terms(count: int) -> str:
    """An elementwise kernel of as many terms."""
    return _main('elementwise("f: x[i] -> ' + " + ".join(["x"] * count) + '")')


def named(count: int) -> str:
    """A block of as many statements."""
    statements = "".join(f"  v{n + 1} = (i+i~i)(v{n}, x)\n" for n in range(count - 1))
    return f"main(x) = {{\n  v0 = (-i~i)(x)\n{statements}  v{count - 1}\n}}\n"


def einsums(count: int) -> str:
    return _main(" >> ".join(['einsum("ij;jk=>ik")'] * count))


def layers(count: int) -> str:
    """Contractions and softmax."""
    return (
        "m = ik*kj~ijk >> +ijk~ij\n"
        "s = (I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij\n"
        + _main(" >> ".join(["m >> s"] * count))
    )


def ladder(count: int) -> str:
    """Definitions inside definitions, each with an output more."""
    lines = [f"a{n} = ^ij~ij >> (+ij~i & a{n - 1})\n" for n in range(1, count)]
    return "a0 = +ij~i\n" + "".join(lines) + _main(f"a{count - 1}")


def doubled(count: int, text: str = "-i~i") -> str:
    """Definitions that double themselves; ``count`` expressions, rounded to a power of two."""
    names = count.bit_length() - 1
    lines = [f"a{n} = a{n - 1} >> a{n - 1}\n" for n in range(1, names + 1)]
    return f"a0 = {text}\n" + "".join(lines) + _main(f"a{names}")


FAMILIES: tuple[Callable[[int], str], ...] = (
    chain,
    sharing,
    parallel,
    outputs,
    inputs,
    kept,
    normalised,
    sums,
    contractions,
    tiles,
    tail,
    einsums,
    terms,
    named,
    layers,
    ladder,
    doubled,
)
"""Each takes a size and gives the text of a file whose definition ``main`` has that many steps."""


def _main(body: str) -> str:
    return f"main = {body}\n"


def graph_of(text: str) -> Graph:
    """The graph of ``main`` in the text of a file."""
    return pipeline.module_graph(parse_module(Source("large.i", text)), "main")


STAGES: dict[str, Callable[[Any], Any]] = {
    "graph": graph_of,
    "shapes": pipeline.infer,
    "loops": pipeline.lower,
    "c": c.emit,
}
"""What is done with a program, each to what the one before gave."""


def everything(text: str) -> str:
    """All that a program goes through, from text to C, and the page that explains it."""
    graph = graph_of(text)
    shaped: Shaped = pipeline.infer(graph)
    program: Program = pipeline.lower(shaped)
    pipeline.explain(graph, verbose=True)
    return c.emit(program)


def steps(work: Callable[[], object]) -> int:
    """The lines of Python that some work runs, a loop's once for each time around: the same number each time."""
    count = 0

    def trace(_: FrameType, event: str, __: object) -> Any:
        nonlocal count
        if event == "line":
            count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


TRAINED = """use nn
cd step(x, y) {
  h = repeat(h = x; n in COUNT) { ?/linear(h; 4) }
  loss = squared_error(h, y)
  backprop(loss)
  for p in params(loss) { p =- 0.1 *. p.grad }
  return loss
}
"""


READ = """cd step(x, y) {
  v = "w" * x
  h = repeat(h = v; n in COUNT) { h + v }
  loss = (h - y) *. (h - y) ++ "...|... => 0"
  backprop(loss)
  w =- 0.1 *. w.grad
  return loss
}
"""
"""One value that every turn reads."""


ATTENDING = """use nn
cd step(x, y) {
  h = repeat(h = x; n in COUNT) { ?/transformer_block(h; 64, 2, 64) }
  d = h - y
  loss = d *. d ++ "...|... => 0"
  backprop(loss)
  for p in params(loss) { p =- 0.1 *. p.grad }
  return loss
}
"""


def training_step(count: int, text: str = TRAINED, shape: str = "3|4") -> Shaped:
    """The step of training of so many layers."""
    model = Model(parse_module(Source("step.i", text.replace("COUNT", str(count)))))
    return SolvedDefinition(model, options_of("step", {"x": shape, "y": shape}, {}, {})).shaped()


def attending_step(count: int) -> Shaped:
    """The step of training of so many blocks of a transformer, whose matrices are larger than caches."""
    shaped = training_step(count, ATTENDING, "2,4000|64")
    return moved_views(shaped, extents_of(shaped, CPU))
