"""Facts of a compiled program that its speed depends on, as lines that are checked against its kernels.

kernels 1            how many kernels there are
parallel loops 2     how many loops threads may share
lanes 16             some loop runs in so many lanes
tile 6x64            some register tile has so many rows and lanes
not stored t1        no element of the tensor is stored in memory
copies in1           the elements of the input are copied to where they are read again
transposes in0       the input is copied by squares of vectors
online               a reduction is read while it is partial: what it scaled is corrected
"""

from collections.abc import Iterator, Sequence

from ilang.core.ir.cpu import Tile, Transpose
from ilang.core.ir.kernel import Change, For, Program, Statement, Store, statements_within
from ilang.core.ir.scalar import Apply, Convert, Load, Local, Scalar
from ilang.core.ir.shaped import Shaped


def broken(facts: Sequence[str], shaped: Shaped, program: Program) -> list[str]:
    """The facts that do not hold."""
    return [fact for fact in facts if not _holds(fact, shaped, program)]


def _holds(fact: str, shaped: Shaped, program: Program) -> bool:
    inside = list(_statements(program))
    loops = [s for s in inside if isinstance(s, For)]
    *words, last = fact.split()
    match words:
        case ["kernels"]:
            return len(program.kernels) == int(last)
        case ["parallel", "loops"]:
            return sum(loop.parallel for loop in loops) == int(last)
        case ["lanes"]:
            return any(loop.lanes == int(last) for loop in loops)
        case ["tile"]:
            tiles = [program.buffers[s.buffer].dims for s in inside if isinstance(s, Tile)]
            extents = [[str(program.sizes[n].fixed) for n in dims] for dims in tiles]
            return last.split("x") in extents
        case ["not", "stored"]:
            stored = {program.buffers[s.buffer].name for s in inside if isinstance(s, Store)}
            return last in {tensor.name for tensor in shaped.tensors} and last not in stored
        case ["copies"]:
            copied = (s.value for s in inside if isinstance(s, Store))
            return any(_is_input(program, value, last) for value in copied)
        case ["transposes"]:
            sources = [s.nest()[2].value for s in inside if isinstance(s, Transpose)]
            return any(_is_input(program, value, last) for value in sources)
        case []:
            return last == "online" and any(_corrects(loop) for loop in loops)
        case _:
            raise ValueError(f"a structure section cannot say: {fact}")


def _statements(program: Program) -> Iterator[Statement]:
    for kernel in program.kernels:
        yield from statements_within(kernel.body)


def _is_input(program: Program, value: Scalar, name: str) -> bool:
    """Whether a scalar is an element of an input, converted or not."""
    if isinstance(value, Convert):
        value = value.argument
    return isinstance(value, Load) and _is_named(program, value.buffer, name)


def _is_named(program: Program, number: int, name: str) -> bool:
    """Whether a buffer is the input of a name."""
    buffer = program.buffers[number]
    return (buffer.role, buffer.name) == ("input", name)


def _corrects(loop: For) -> bool:
    """Whether a loop both scales an accumulator and adds to it."""
    updates: dict[str, set[object]] = {"mul": set(), "add": set()}
    for s in statements_within(loop.body):
        if not isinstance(s, (Change, Store)) or not isinstance(s.value, Apply):
            continue
        if s.value.primitive in updates and any(_is_target(s, a) for a in s.value.arguments):
            target = ("local", s.variable) if isinstance(s, Change) else ("buffer", s.buffer)
            updates[s.value.primitive].add(target)
    return bool(updates["mul"] & updates["add"])


def _is_target(s: Change | Store, argument: Scalar) -> bool:
    """Whether an argument is what the statement changes."""
    if isinstance(s, Change):
        return isinstance(argument, Local) and argument.variable == s.variable
    return isinstance(argument, Load) and (argument.buffer, argument.index) == (s.buffer, s.index)
