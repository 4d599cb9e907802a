"""onnxruntime: a graph per workload, inputs and the output bound to arrays, weights known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from bench.peers import Arrays, Call, Calls
from bench.workloads import Workload

OPSET, IR_VERSION = 20, 9
FLOAT: Any = onnx.TensorProto.FLOAT

Prepare = Callable[[Workload, Arrays], Call]


def calls(threads: int) -> Calls:
    """What a graph of a few standard operators says."""
    onnxruntime.set_default_logger_severity(3)
    node = helper.make_node
    norm = node("LayerNormalization", ["x", "scale", "shift"], ["out"], axis=-1, epsilon=1e-5)
    graphs: dict[str, tuple[list[Any], tuple[str, ...]]] = {
        "matmul": ([node("MatMul", ["a", "b"], ["out"])], ()),
        "bmm": ([node("MatMul", ["a", "b"], ["out"])], ()),
        "matvec": ([node("MatMul", ["a", "x"], ["out"])], ()),
        "row_sum": (_sum([1]), ()),
        "column_sum": (_sum([0]), ()),
        "full_sum": (_sum([0, 1]), ()),
        "fma_relu": (_fma_relu(), ()),
        "attention": (_attention(), ()),
        "transpose": ([node("Transpose", ["x"], ["out"])], ()),
        "gelu": ([node("Gelu", ["x"], ["out"], approximate="tanh")], ()),
        "softmax": ([node("Softmax", ["x"], ["out"], axis=-1)], ()),
        "layer_norm": ([norm], ()),
        "conv3x3": ([node("Conv", ["x", "weights"], ["out"], pads=[1] * 4)], ("weights",)),
        "mlp": (_mlp(), ("w1", "b1", "w2", "b2", "w3", "b3")),
    }
    return {
        program: _prepare(nodes, constants, threads)
        for program, (nodes, constants) in graphs.items()
    }


def _sum(axes: Sequence[int]) -> list[Any]:
    value = onnx.numpy_helper.from_array(np.array(axes, np.int64))
    return [
        helper.make_node("Constant", [], ["axes"], value=value),
        helper.make_node("ReduceSum", ["x", "axes"], ["out"], keepdims=0),
    ]


def _fma_relu() -> list[Any]:
    return [
        helper.make_node("Mul", ["a", "b"], ["product"]),
        helper.make_node("Add", ["product", "c"], ["total"]),
        helper.make_node("Relu", ["total"], ["out"]),
    ]


def _attention() -> list[Any]:
    value = onnx.numpy_helper.from_array(np.array(0.125, np.float32))
    return [
        helper.make_node("Constant", [], ["scale"], value=value),
        helper.make_node("Transpose", ["k"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "turned"], ["scores"]),
        helper.make_node("Mul", ["scores", "scale"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["out"]),
    ]


def _mlp() -> list[Any]:
    return [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["t1"]),
        helper.make_node("Relu", ["t1"], ["h1"]),
        helper.make_node("Gemm", ["h1", "w2", "b2"], ["t2"]),
        helper.make_node("Relu", ["t2"], ["h2"]),
        helper.make_node("Gemm", ["h2", "w3", "b3"], ["out"]),
    ]


def _prepare(nodes: list[Any], constants: tuple[str, ...], threads: int) -> Prepare:
    def prepare(workload: Workload, arrays: Arrays) -> Call:
        given = [
            helper.make_tensor_value_info(name, FLOAT, array.shape)
            for name, array in arrays.items()
            if name not in constants
        ]
        made = [helper.make_tensor_value_info("out", FLOAT, workload.outputs[0])]
        known = [onnx.numpy_helper.from_array(arrays[name], name) for name in constants]
        graph = helper.make_graph(nodes, "workload", given, made, known)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        binding = session.io_binding()
        for name, array in arrays.items():
            if name not in constants:
                value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
                binding.bind_ortvalue_input(name, value)
        out = np.empty(workload.outputs[0], np.float32)
        binding.bind_output("out", "cpu", 0, np.float32, out.shape, out.ctypes.data)

        def call() -> Any:
            session.run_with_iobinding(binding)
            return out

        return call

    return prepare
