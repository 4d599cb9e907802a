"""A program with inputs that are computed from its own outputs elsewhere, in phases: the next one waits for those.

Example, where n2 is an input that has the sum of output n3 over other processes:
    in:   n3[i] = n0[i] * n1[i];  n4[i] = n0[i] - n3[i] - n2[i];  outputs n3, n4
    out:  phase 1: n3[i] = n0[i] * n1[i], output n3
          phase 2: inputs n0, n2, n3;  n4[i] = n0[i] - n3[i] - n2[i], output n4

A value is computed in the first phase in which all that it needs is there, and later phases that read it take it as an
input. A program that waits for nothing is one phase.

Outputs that are awaited may come in buckets: then what waits for the same is cut once more, so that those of one bucket
are there before anything is computed that only later ones need.

Example, with n3 and n4 in two buckets:
    in:   n3[i] = exp n0[i];  n4[i] = n0[i] * n3[i];  n5[i] = n1[i] + n2[i];  n1 awaits n3, n2 awaits n4; output n5
    out:  phase 1: n3;  phase 2: n4 from n0 and n3;  phase 3: n5 from n1 and n2
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ilang.core.check.shaped import verify
from ilang.core.ir.assignments import renumbered, sources
from ilang.core.ir.ids import ValueId
from ilang.core.ir.shaped import Assignment, Input, InputDimension, Shaped, Size, View
from ilang.core.record import record, replace
from ilang.core.transform.building import ProgramBuilder, pruned
from ilang.core.walks import parts_first


@record
class Phase:
    """A part of a program, itself a program.

    ``takes`` numbers, input by input, the values of the whole program that it reads; ``gives`` those of its outputs.
    """

    program: Shaped
    takes: tuple[ValueId, ...]
    gives: tuple[ValueId, ...]


def phases(
    shaped: Shaped, awaited: Mapping[ValueId, ValueId], buckets: Sequence[Collection[int]] = ()
) -> tuple[Phase, ...]:
    """The phases of a program in order.

    Args:
        shaped: the program, gradients attached.
        awaited: for each input value that comes from an output value elsewhere, that output value.
        buckets: some of those output values, in the order in which they should be there.
    """
    if not awaited:
        return (Phase(shaped, shaped.inputs, shaped.outputs),)
    wait = _wait_of(shaped, awaited)
    bucket = _bucket_of(shaped, wait, buckets)
    keys = _written_at_once(shaped, list(zip(wait, bucket, strict=True)))
    numbers = {key: n for n, key in enumerate(sorted(set(keys)))}
    phase = [numbers[key] for key in keys]
    return tuple(_cut(shaped, phase, number) for number in range(max(phase) + 1))


def _wait_of(shaped: Shaped, awaited: Mapping[ValueId, ValueId]) -> list[int]:
    """The number of waits before each value: an input that is awaited does so once more than what it comes from."""
    phase: dict[int, int] = {}

    def before(value: ValueId) -> tuple[ValueId, ...]:
        return (awaited[value],) if value in awaited else sources(shaped.nodes[value])

    for value in parts_first(map(ValueId, range(len(shaped.nodes))), before):
        latest = max((phase[each] for each in before(value)), default=0)
        phase[value] = latest + (value in awaited)
    return [phase[value] for value in range(len(shaped.nodes))]


def _bucket_of(
    shaped: Shaped, wait: Sequence[int], buckets: Sequence[Collection[int]]
) -> list[int]:
    """The first bucket that needs each value, of what waits as often; the last of these where none does."""
    bucket: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, values in enumerate(buckets):
        todo = list(values)
        last |= {wait[value]: number for value in todo}
        while todo:
            value = todo.pop()
            if value in bucket:
                continue
            bucket[value] = number
            before = sources(shaped.nodes[value])
            todo += [each for each in before if wait[each] == wait[value]]
    return [bucket.get(value, last.get(wait[value], 0)) for value in range(len(shaped.nodes))]


def _written_at_once(shaped: Shaped, keys: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Keys with which all that is written in place is written in one phase, that of what writes it last."""
    for value in reversed(range(len(shaped.nodes))):
        node = shaped.nodes[value]
        if isinstance(node, Assignment) and node.base is not None:
            keys[node.base] = keys[value]
    return keys


def _cut(shaped: Shaped, phase: Sequence[int], number: int) -> Phase:
    """One phase: its values, earlier ones that it reads as inputs, and what it gives to later ones and the caller."""
    computed = {v for v in _computed(shaped) if phase[v] == number}
    takes = sorted(_read(shaped, computed) - computed)
    later = _read(shaped, {v for v in _computed(shaped) if number < phase[v]})
    asked = [v for v in shaped.outputs if v in computed]
    new = ProgramBuilder(shaped.sizes)
    place: dict[ValueId, ValueId] = {}
    for n, value in enumerate(takes):
        tensor = shaped.tensors[value]
        place[value] = new.add(
            Input(n, shaped.nodes[value].span), tensor.name, tensor.dtype, tensor.dims
        )
    for value, node in shaped.numbered():
        is_here = value in computed or isinstance(node, View)
        if value not in place and is_here and all(each in place for each in sources(node)):
            tensor = shaped.tensors[value]
            place[value] = new.add(renumbered(node, place), tensor.name, tensor.dtype, tensor.dims)
    gives = asked + sorted((later & computed) - set(asked))
    outputs: list[ValueId] = []
    for value in gives:
        outputs.append(_in_memory_of_its_own(new, place[value], outputs))
    program = pruned(
        replace(
            shaped,
            name=f"{shaped.name}_{number + 1}",
            nodes=tuple(new.nodes),
            tensors=tuple(new.tensors),
            sizes=_placed(new, len(takes)),
            inputs=tuple(map(ValueId, range(len(takes)))),
            outputs=tuple(outputs),
        )
    )
    verify(program)
    return Phase(program, tuple(takes), tuple(gives))


def _computed(shaped: Shaped) -> set[ValueId]:
    return {v for v, node in shaped.numbered() if not isinstance(node, Input)}


def _read(shaped: Shaped, values: Collection[ValueId]) -> set[ValueId]:
    """The values that others are computed from; a view is made anew where it is read, of what it is of."""
    read: set[ValueId] = set()
    for value in values:
        if not isinstance(shaped.nodes[value], View):
            read.update(shaped.owner(each) for each in sources(shaped.nodes[value]))
    return read


def _in_memory_of_its_own(
    new: ProgramBuilder, value: ValueId, outputs: Sequence[ValueId]
) -> ValueId:
    """A value, or a copy of one whose memory is an output already."""
    tensor = new.tensors[value]
    if new.owner(value) not in map(new.owner, outputs):
        return value
    return new.copied(value, tensor.dtype, tensor.name, tensor.name, new.nodes[value].span)


def _placed(new: ProgramBuilder, inputs: int) -> tuple[Size, ...]:
    """The sizes, with the dimensions of inputs that have them."""
    places: dict[int, list[InputDimension]] = {}
    for n in range(inputs):
        for dim, size in enumerate(new.tensors[n].dims):
            places.setdefault(size, []).append(InputDimension(n, dim, new.nodes[n].span))
    return tuple(
        replace(size, places=tuple(places.get(number, ()))) for number, size in enumerate(new.sizes)
    )
