"""Uses of a definition that is wired already: the graph is as if each had been wired anew."""

from __future__ import annotations

from typing import Any

import pytest

from ilang.core.ir import graph
from ilang.core.notation.files.module import parse_module
from ilang.core.passes import syntax_to_graph as wiring
from ilang.core.pipeline import definitions_of, module_graph
from ilang.core.source import Source

PROGRAMS = {
    "a chain": "d0 = -i~i\nd1 = d0 >> d0\nd2 = d1 >> d1\nmain = d2 >> d2\n",
    "inputs, swapped and shared": (
        "sub = i-j~ij\nboth = (sub & sub) >> ij*ij~ij\nmain = ~(both | sub) >> both\n"
    ),
    "an input that is given as it is": "keep = I | (I >> -i~i)\nmain = keep >> (keep | keep)\n",
    "heads and blocks": (
        "scaled(x[n,m], y: f64[m]) = { s = (ij*j~ij)(x, y); (+ij~i)(s) }\n"
        "twice(a, b) = { u = scaled(a, b); v = scaled(a, b); (i+i~i)(u, v) }\n"
        "main(a, b) = { w = twice(a, b); (i*i~i)(w, scaled(a, b)) }\n"
    ),
    "an input that is a result twice": "f = I & I\nmain = f >> f >> f\n",
    "numbers, conversions and contractions": (
        "half = i*.~i\nf = half << (I | 0.5) >> f64\ng = einsum('ij,jk,kl->il')\nmain = f >> f >> g >> g\n"
    ),
    "einx and kernels": (
        "k = elementwise('f: x0[2], x1[2] -> x0 + x1')\ns = einx.sum('a b -> a')\nmain = (k >> s) | (k >> s)\n"
    ),
    "a maximum's place": "w = >@ij~i\nmain = w | w | w\n",
    "a library": (
        "use nn\nf(x) = { causal_softmax(x) }\nmain(x) = { (bhts+bhts~bhts)(f(causal_softmax(x)), f(f(x))) }\n"
    ),
}


class _Forgetful(dict[str, Any]):
    """Uses of definitions none of which is there."""

    def __contains__(self, name: object) -> bool:
        return False


def _graph(text: str) -> graph.Graph:
    module = parse_module(Source("uses.i", text))
    return module_graph(module, "main", definitions_of(module))


@pytest.mark.parametrize("title", PROGRAMS)
def test_a_repeated_use_is_the_use_written_out(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = _graph(PROGRAMS[title])
    start = wiring._GraphBuilder.__init__

    def forget(self: wiring._GraphBuilder, *args: Any) -> None:
        start(self, *args)
        self.uses = _Forgetful()

    monkeypatch.setattr(wiring._GraphBuilder, "__init__", forget)
    anew = _graph(PROGRAMS[title])
    assert program == anew
    spans = [[each.span for each in one.nodes] for one in (program, anew)]
    assert spans[0] == spans[1]
