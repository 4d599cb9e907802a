"""What verifiers find in the second use of a definition, whose parts are the very objects of the first."""

from __future__ import annotations

import pytest

from ilang.core.check import graph as graphs
from ilang.core.check import shaped as shapes
from ilang.core.diagnostic import InternalError
from ilang.core.ir import graph, shaped
from ilang.core.notation.files.module import parse_module
from ilang.core.pipeline import definitions_of, infer, module_graph
from ilang.core.record import replace
from ilang.core.source import Source


def _twice() -> graph.Graph:
    module = parse_module(Source("twice.i", "d0 = -i~i\nd1 = d0 >> d0\n"))
    return module_graph(module, "d1", definitions_of(module))


def test_uses_share_their_parts() -> None:
    program = infer(_twice())
    first, second = (node for node in program.nodes if isinstance(node, shaped.Assignment))
    assert first.scalar is second.scalar
    assert first.axes is second.axes
    assert first.target is second.target


def test_a_second_use_that_reads_itself() -> None:
    program = _twice()
    second = program.nodes[2]
    assert isinstance(second, graph.Assignment)
    wrong = replace(second, reads=(replace(second.reads[0], value=2),))
    with pytest.raises(InternalError, match="a node reads smaller numbers"):
        graphs.verify(replace(program, nodes=(*program.nodes[:2], wrong)))
    wrong_axes = replace(second, axes=())
    with pytest.raises(InternalError, match="axes holds every axis"):
        graphs.verify(replace(program, nodes=(*program.nodes[:2], wrong_axes)))


def test_a_second_use_of_another_type() -> None:
    program = infer(_twice())
    second = program.nodes[2]
    assert isinstance(second, shaped.Assignment)
    wrong = replace(second, reads=(replace(second.reads[0], value=2),))
    with pytest.raises(InternalError, match="a node reads smaller numbers"):
        shapes.verify(replace(program, nodes=(*program.nodes[:2], wrong)))
    tensors = (program.tensors[0], replace(program.tensors[1], dtype="f64"), program.tensors[2])
    with pytest.raises(InternalError, match="operands have their type"):
        shapes.verify(replace(program, tensors=tensors))
    flat = replace(program.tensors[1], dims=())
    tensors = (program.tensors[0], program.tensors[1], replace(flat, name=program.tensors[2].name))
    with pytest.raises(InternalError, match="the target has the tensor's rank"):
        shapes.verify(replace(program, tensors=tensors))
