"""Batches of programs as one CUDA text, run on the emulator: threads in several orders, each load and store checked.

Every call is done in two orders of threads, or in all three, which must give the same bits. In the mode
``cuda-checked`` whatever the emulator finds, such as a race or a read of what nobody wrote, fails the call.

In that mode each program has kernels of one width of indices, 64 bits in every other program. As they are emitted they
have both and choose by the size of arrays: half of what is compiled would not run here, and that half would be the one
for large arrays in every program. A batch that runs in both modes has the other width in the mode ``cuda``, so that all
kernels run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ilang.codegen.call.native import Native
from ilang.codegen.emulator.program import load
from ilang.codegen.emulator.runtime import emulator
from ilang.codegen.targets import cuda
from ilang.codegen.targets.identifiers import function_identifier
from ilang.core.ir.kernel import Program
from tests import shares
from tests.property.meaning import TYPES
from tests.property.native import Answer, Call
from tests.shares import SIXTHS, Item, share

MODES = ("cuda", "cuda-checked")
ORDERS = (0, 1, 7)
"""Threads in order, in reverse, and in the random order of a seed; a call has the first, and by turns another one."""
UNWRITTEN = 0xFF
LAUNCH = re.compile(r"\b(\w+)(_k\d+)<decltype\(index\)><<<")
"""Of a kernel that has indices of two widths."""


def of_mode(items: Sequence[Item], mode: str) -> Sequence[Item]:
    """What runs in a mode: all of it with every load and store checked, a share without, where less would be told."""
    return items if mode == "cuda-checked" else share(items)


def run(
    batch: Sequence[Program], calls: Sequence[Call], mode: str, *, in_all_modes: bool = False
) -> list[Answer]:
    """The answers of all calls, in order; a batch that runs ``in_all_modes`` has each width in one of them."""
    checked, text = mode == "cuda-checked", cuda.emit_together(batch)
    if checked or in_all_modes:
        text = of_one_width(batch, text, first=64 - 32 * checked)
    loaded = load(text, "batch.cu", checked=checked)
    return [_answer(loaded, batch[call.program], call, n) for n, call in enumerate(calls)]


def agree(
    batch: Sequence[Program],
    calls: Sequence[Call],
    wanted: Sequence[Sequence[Any]],
    mode: str,
    tolerance: float,
) -> None:
    """Fail where a call of a batch that runs in all modes has trouble, or gives other outputs than are wanted."""
    answers = run(batch, calls, mode, in_all_modes=True)
    for call, answer, outputs in zip(calls, answers, wanted, strict=True):
        shapes = [array.shape for array in call.inputs]
        said = f"{batch[call.program].name} {shapes}: {answer.trouble}"
        assert not answer.trouble, said
        for got, want in zip(answer.outputs, outputs, strict=True):
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=said)


def of_widths(batch: Sequence[Program], text: str, first: int = 32) -> str:
    """A text of one width of indices in each program, or of both where a run of the tests takes everything."""
    return text if SIXTHS <= shares.fuzz else of_one_width(batch, text, first)


def of_one_width(batch: Sequence[Program], text: str, first: int = 32) -> str:
    """A text whose launches have indices of so many bits in the first program, and 32 and 64 by turns from there on.

    Programs of the text that are not in the batch keep both.
    """
    kinds = ("int", "int64_t") if first == 32 else ("int64_t", "int")
    widths = {function_identifier(program.name): kinds[n % 2] for n, program in enumerate(batch)}

    def of_its_width(launch: re.Match[str]) -> str:
        width = widths.get(launch[1])
        return launch[0] if width is None else f"{launch[1]}{launch[2]}<{width}><<<"

    return LAUNCH.sub(of_its_width, text)


def whole_statements(text: str) -> str:
    """A text whose statements in functions are a line each, so that what lines cost is what statements do."""
    lines, depth, goes_on, in_comment = list[str](), 0, False, False
    for line in text.split("\n"):
        words = line.strip()
        in_comment = in_comment or words.startswith("/*")
        is_code = not in_comment and not words.startswith("#") and not words.endswith("\\")
        in_comment = in_comment and "*/" not in words
        if goes_on and is_code:
            lines[-1] += f" {words}"
        else:
            lines.append(line)
        depth += line.count("{") - line.count("}") if is_code else 0
        ends = words.endswith(("{", "}", ";", ":", "*/")) or words.startswith(("for", "if"))
        goes_on = is_code and depth > 0 and bool(words) and not ends
    return "\n".join(lines)


def _answer(loaded: Native, program: Program, call: Call, number: int) -> Answer:
    """What a call of a number gives, and what was wrong with it in words."""
    machine, found, outputs = emulator(), [], list[Any]()
    inputs = [_raw(array) for array in call.inputs]
    before = [array.tobytes() for array in inputs]
    for order in ORDERS if SIXTHS <= shares.fuzz else (ORDERS[0], ORDERS[1 + number % 2]):
        outputs = [
            _empty(program.buffers[buffer].dtype, shape)
            for buffer, shape in zip(program.outputs, call.outputs, strict=True)
        ]
        sizes = np.array([*call.extents, 0], dtype=np.int64)
        with machine.settings(order=order):
            status = loaded.call(
                f"{function_identifier(program.name)}_host", sizes, *inputs, *outputs
            )
        findings = "; ".join(finding.says() for finding in machine.take_findings())
        if status or findings:
            return Answer(tuple(outputs), f"order {order}: status {status}: {findings}")
        found.append([array.tobytes() for array in outputs])
    if [array.tobytes() for array in inputs] != before:
        return Answer(tuple(outputs), "an input was written")
    if any(each != found[0] for each in found):
        return Answer(tuple(outputs), "the order of threads changes the result")
    return Answer(tuple(outputs))


def _raw(array: Any) -> Any:
    """An input as the program sees it: any byte but 0 is a true bool."""
    kind = np.uint8 if array.dtype == np.bool_ else array.dtype
    return np.ascontiguousarray(array).view(kind).reshape(array.shape)


def _empty(dtype: str, shape: tuple[int, ...]) -> Any:
    """An output that nobody has written."""
    kind = np.dtype(np.uint8) if dtype == "bool" else np.dtype(TYPES[dtype])
    return (
        np.full(int(np.prod(shape)) * kind.itemsize, UNWRITTEN, np.uint8).view(kind).reshape(shape)
    )
