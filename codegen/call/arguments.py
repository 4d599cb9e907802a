"""Arguments of a call, checked before anything runs: arrays, Python numbers, outputs, threads, shapes.

Arrays of the five element types are taken as they are, and so is what exports such memory, by a buffer or DLPack; what
is strided, byte-swapped or unaligned is copied. Smaller types are read as the next of ours that has all of their
numbers; no cast that could lose is silent. Numbers of Python, alone or in lists, have no type of their own: they get
that of the arrays beside them, else f32.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang.core.diagnostic import DataError, DataTypeError, counted, shorten
from ilang.core.dtype import FLOATS, INTEGER_ENDS, INTEGERS, LARGEST_FLOAT
from ilang.core.ir.graph import UNNAMED, Graph
from ilang.core.ir.shaped import Shaped

if TYPE_CHECKING:  # numpy.typing takes most of a millisecond, which a first call would pay
    import numpy.typing as npt

    Array = npt.NDArray[Any]

SUPPORTED: dict[np.dtype[Any], str] = {
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.int32): "i32",
    np.dtype(np.int64): "i64",
    np.dtype(np.bool_): "bool",
}
NUMPY_TYPES = {name: dtype for dtype, name in SUPPORTED.items()}
LISTED = "float32, float64, int32, int64 and bool"

LARGEST_EXACT = {"f32": 2**24, "f64": 2**53}
"""Integers up to here, and their negatives, are values of the float type."""

LONGEST_NUMBER = 256
"""Bits of a whole number that a message still writes out."""

Output = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and element type of a result."""

LISTS = (list, tuple)
MOST_NESTED = 26
"""Lists in lists of an array, as of a literal on the command line."""

MOST_LISTED = 20
"""Inputs that a message names."""

OVERLAP_WORK = 10_000
"""Effort spent on telling whether two arrays of interleaved elements share one."""

MEMORY_ORDER = (
    "has each input as many features as when it was saved, and is axis 0 its batch? "
    "axes are stored batch first, then output, then input"
)
"""Help for an array of another shape than a tensor has."""
AUTO = "auto"
"""Threads of a call: all cores where the work is enough."""

PLAIN = 0x101
"""Flags of an array that C can read as it is: C-contiguous and aligned."""


def checked_arrays(graph: Graph, given: Sequence[object]) -> list[Array]:
    """The inputs as arrays of supported types, not copied yet but for byte order.

    Raises:
        DataError: E0701 (number of arrays), E0702 (not an array), E0703 (element type), E0704 (masked), E0705 (a Python
            number that its type cannot hold).
    """
    names = graph.input_names()
    if len(given) != len(names):
        raise _wrong_count(graph, names, len(given))
    arrays_given = [
        None if _has_numbers(name, value) else _array(name, value)
        for name, value in zip(names, given, strict=True)
    ]
    others = {SUPPORTED[array.dtype] for array in arrays_given if array is not None}
    written = {
        annotation.value: annotation.dtype
        for annotation in graph.annotations
        if annotation.dtype is not None
    }
    return [
        array if array is not None else _number(name, value, written.get(graph.inputs[n]), others)
        for n, (name, value, array) in enumerate(zip(names, given, arrays_given, strict=True))
    ]


def listed_inputs(names: Sequence[str]) -> str:
    """The names of inputs, in a sentence."""
    return f"its inputs are {', '.join(names)}" if names else "it has no inputs"


def are_given(count: int, noun: str = "array") -> str:
    """A number of things, in a sentence: ``2 arrays are given``."""
    return f"{counted(count, noun)} {'is' if count == 1 else 'are'} given"


def _wrong_count(graph: Graph, names: Sequence[str], given: int) -> DataError:
    wanted = len(names)
    name = "the program" if graph.name == UNNAMED else f"`{graph.name}`"
    message = f"{name} takes {counted(wanted, 'array')}, and {are_given(given)}"
    if not wanted:
        return DataError("E0701", message, help="call it without arrays")
    read = [_read_as(graph, number) for number in range(min(wanted, MOST_LISTED))]
    inputs = f"its inputs are {', '.join(read)}" if wanted > 1 else f"its input is {read[0]}"
    missing = f"; missing: {', '.join(names[given:][:MOST_LISTED])}" if given < wanted else ""
    return DataError("E0701", message, help=inputs + missing)


def _read_as(graph: Graph, number: int) -> str:
    """An input by its name, and the indices it is read with."""
    text = graph.nodes[graph.inputs[number]].span.text()
    shown = text.isprintable() and text.isascii() and len(text) < 40 and text != "I"
    return f"{graph.input_name(number)} (`{text}`)" if shown and text else graph.input_name(number)


def _is_number(value: object) -> bool:
    """Whether a value is a number of Python itself: NumPy's have a type of their own."""
    return _is_of(value, (bool, int, float)) and not _is_of(value, np.generic)


def _has_numbers(name: str, value: Any) -> bool:
    """Whether a value is a number of Python, a range, or lists of numbers alone, which NumPy may then read.

    Raises:
        DataError: E0702 (lists are nested too deep, or hold themselves).
    """
    if not _is_of(value, LISTS):
        return _is_number(value) or _is_of(value, range)
    level = [value]
    for _ in range(MOST_NESTED):
        items = [item for each in level for item in each]
        inner = {id(item): item for item in items if _is_of(item, LISTS)}
        if not all(id(item) in inner or _is_number(item) for item in items):
            return False
        if not inner:
            return True
        level = list(inner.values())
    message = f"{name} is lists that are nested more than {MOST_NESTED} deep"
    raise DataTypeError("E0702", message, help="numbers in lists: [[1, 2], [3, 4]]")


def _is_of(value: object, kinds: type | tuple[type, ...]) -> bool:
    """``isinstance`` that asks no foreign object for its class: the answer may be an exception."""
    return issubclass(type(value), kinds)


def shown(value: object) -> str:
    """A value as messages show it: short, and there whatever its ``repr`` does."""
    if _is_of(value, int) and LONGEST_NUMBER < int(value).bit_length():  # type: ignore[call-overload]
        return f"a whole number of {int(value).bit_length()} bits"  # type: ignore[call-overload]
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    try:
        return shorten(repr(value), 200)
    except Exception:
        return f"a value of type {type(value).__name__}"


def read_array(name: str, value: object) -> Array:
    """The array that NumPy makes of a value, whatever a foreign class raises on the way.

    Raises:
        DataError: E0702 (no array, or one of Dask), E0704 (masked).
    """
    if hasattr(type(value), "__dask_graph__"):
        message = f"{name} is an array of Dask, which would be computed whole, in memory"
        raise DataTypeError("E0702", message, help="compute it where you see it: x.compute()")
    ma = sys.modules.get("numpy.ma")
    if ma is not None and _is_of(value, ma.MaskedArray):
        help_line = "fill the masked elements, x.filled(0), or use the data, x.data"
        raise DataError("E0704", f"{name} is a masked array", help=help_line)
    try:
        array = np.asarray(value)
    except Exception as error:
        raise _unreadable(name, error) from error
    if array.ndim or array.dtype.kind not in "OSU" or _is_of(value, (np.ndarray, np.generic, int)):
        return array
    raise _no_array(name, value)


def _no_array(name: str, value: object) -> DataError:
    message = f"{name} is of type {type(value).__name__}, not an array"
    hint = "pass a NumPy array, numbers in lists, or a number for an input of rank 0"
    return DataTypeError("E0702", message, help=hint)


def supported_array(name: str, value: object, preferred: type = np.int32) -> Array:
    """A value as an array of an element type of ours, as ``wider`` says. Raises DataError E0702, E0703."""
    array = read_array(name, value)
    if array.dtype in SUPPORTED:
        return array
    return array.astype(wider(name, array.dtype, preferred))


def rounded(name: str, array: Array, dtype: str) -> Array:
    """A copy of an array in another type, in C's order, where nothing is lost but the precision of floats.

    Raises:
        DataError: E0758 (a number that the type has not).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        result = np.array(array, NUMPY_TYPES[dtype], order="C", copy=True)
        back = result.astype(array.dtype)
    infinite = np.isinf(result) & np.isfinite(array)
    both_floats = dtype in FLOATS and SUPPORTED[array.dtype] in FLOATS
    lost = infinite if both_floats else back != array
    if lost.any():
        number, kept_dtype = array[lost].flat[0].item(), SUPPORTED[array.dtype]
        message = f"{name} is {dtype} in this session, and the array given for it has {number}, which {dtype} has not"
        help_line = (
            f"write its type in the head, `{name}: {kept_dtype}`, or give numbers that {dtype} has"
        )
        if dtype in INTEGERS and kept_dtype in FLOATS:
            help_line = "give whole numbers, such as the numbers of classes"
        raise DataError("E0758", message, help=help_line)
    return result


def cast(name: str, array: Array, dtype: np.dtype[Any]) -> Array:
    """An array of another element type, the same one where it has it; elements may be objects of any class.

    Raises:
        DataError: E0702 (an element cannot be converted).
    """
    try:
        return array.astype(dtype, copy=False)
    except Exception as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: Exception) -> DataError:
    try:
        reason = str(error)
    except Exception:
        reason = ""
    kind = type(error).__name__
    return DataTypeError(
        "E0702",
        f"{name} cannot be read as an array: {kind}{': ' if reason else ''}{shorten(reason, 300)}",
        help="np.asarray(x) raises it; pass a NumPy array",
    )


def _array(name: str, value: object) -> Array:
    """An array of a supported type in native byte order, the same memory where possible."""
    try:
        is_array = hasattr(value, "__array_interface__") or hasattr(value, "__array__")
    except Exception as error:
        raise _unreadable(name, error) from error
    shared = value if is_array or _is_of(value, LISTS) else _exported(value)
    if shared is None:
        raise _no_array(name, value)
    return supported_array(name, shared)


def _exported(value: object) -> object:
    """The memory that an object exports, by DLPack or as a buffer of numbers; None where it exports none."""
    if _is_of(value, (bytes, bytearray)):
        return None
    try:
        if hasattr(type(value), "__dlpack__"):
            return np.from_dlpack(value)  # type: ignore[arg-type]
        return memoryview(value)  # type: ignore[arg-type]
    except Exception:
        return None


def types_of(arrays: Sequence[Array]) -> tuple[str, ...]:
    """The element types of arrays that are checked."""
    return tuple(SUPPORTED[array.dtype] for array in arrays)


def wider(name: str, dtype: np.dtype[Any], preferred: type = np.int32) -> np.dtype[Any]:
    """The element type of ours that has all numbers of a type: that type, a preferred one, int32, int64, float32.

    Raises:
        DataError: E0703 (none has).
    """
    wide = [np.dtype(kind) for kind in (preferred, np.int32, np.int64, np.float32)]
    for kind in (dtype.newbyteorder("="), *wide):
        if kind in SUPPORTED and np.can_cast(dtype, kind, "safe"):
            return kind
    raise unsupported(name, dtype)


def unsupported(name: str, dtype: np.dtype[Any]) -> DataError:
    """The error for an array whose element type there is not, and is not widened."""
    help_line = f"element types are {LISTED}"
    if np.issubdtype(dtype, np.complexfloating):
        help_line += f"; pass {name}.real and {name}.imag"
    elif np.issubdtype(dtype, np.number):
        widest = "int64" if np.issubdtype(dtype, np.integer) else "float64"
        help_line += f"; convert it where you see what is lost: {name}.astype(np.{widest})"
    else:
        help_line += ", which are numbers"
    return DataTypeError(
        "E0703", f"{name} has element type {dtype}, which is not supported", help=help_line
    )


def _number(name: str, value: Any, written: str | None, others: set[str]) -> Array:
    """An array of a Python number, or of lists of some, in the written type or that of the arrays beside it."""
    values, kind = _python_numbers(name, value)
    if kind == "b":
        dtype = written or "bool"
    elif kind == "i":
        dtype = written or next((t for t in ("i64", "i32", "f64") if t in others), "f32")
    else:
        dtype = written or ("f64" if "f64" in others else "f32")
    lost = next((each for each in values if not _holds(dtype, each)), None)
    if lost is not None:
        numpy_type = NUMPY_TYPES[dtype].name
        subject = f"{name} is" if lost is value else f"{name} has"
        raise DataError(
            "E0705",
            f"{subject} {shown(lost)}, which is no value of its type {dtype}",
            help=f"pass a NumPy value of another type, or one that {numpy_type} can hold",
        )
    return np.array(value, NUMPY_TYPES[dtype])


def _python_numbers(name: str, value: Any) -> tuple[Sequence[Any], str]:
    """The least and the greatest of some numbers, or a number alone, and their kind as NumPy tells it: b, i, f.

    Raises:
        DataError: E0702 (lists of different lengths), E0703 (they hold no numbers).
    """
    if _is_number(value):
        return [value], "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f"
    array = read_array(name, value)
    if array.dtype.kind not in "biuf":
        raise unsupported(name, array.dtype)
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    ends = [finite.min().item(), finite.max().item()] if finite.size else []
    return ends, "f" if not array.size else array.dtype.kind.replace("u", "i")


def _holds(dtype: str, value: bool | float) -> bool:
    """Whether a type has a number (a float may be rounded, not overflow)."""
    if isinstance(value, bool):
        return True
    if dtype == "bool":
        return False
    if dtype in INTEGER_ENDS:
        least, most = INTEGER_ENDS[dtype]
        return isinstance(value, int) and least <= value <= most
    if isinstance(value, int):
        return abs(value) <= LARGEST_EXACT[dtype]
    return not math.isfinite(value) or abs(value) <= LARGEST_FLOAT[dtype]


def contiguous(array: Array) -> Array:
    """The array itself if C can read it as it is, else a copy. Raises DataError (E0713): there is no memory for it."""
    if array.flags.num & PLAIN == PLAIN:
        return array
    from ilang.codegen.call.memory import fitting

    with fitting("a copy whose elements are in a row", array.nbytes):
        return np.array(array, copy=True, order="C", subok=False)


def check_threads(threads: object) -> None:
    """Raise DataError (E0711) unless a number of threads is a positive integer, or "auto"."""
    if _is_of(threads, str) and threads == AUTO:
        return
    is_whole = _is_of(threads, (int, np.integer)) and not _is_of(threads, bool)
    if not is_whole or threads < 1:  # type: ignore[operator]
        message = f"threads is {shown(threads)}"
        help_line = 'pass a number of threads, 1 or more, or "auto"'
        raise DataError("E0711", message, help=help_line)


def shape_of(name: str, value: Any) -> tuple[int, ...]:
    """The shape of an array, which may be a device's. Raises DataError E0702 (no array), E0704 (masked)."""
    try:
        shape: tuple[int, ...] = np.shape(value)
    except Exception:
        shape = read_array(name, value).shape
    return shape


def check_is(
    value: object, classes: type | tuple[type, ...], code: str, says: str, example: str
) -> None:
    """Raise DataError of a code unless a value is of some classes; the message ``says`` what it is to be."""
    if not _is_of(value, classes):
        raise DataError(code, f"{says}, not {shown(value)}", help=example)


def check_flag(name: str, value: object) -> None:
    """Raise DataError (E0716) unless a value is true or false."""
    check_is(value, (int, np.bool_), "E0716", f"{name} is True or False", f"{name}=True")


def check_file_name(name: object) -> None:
    """Raise DataError (E0716) unless what a function and its files are called is a text, or None."""
    says = "a function and its files have a text as their name"
    check_is(name, (str, NoneType), "E0716", says, 'f.build("folder", "f")')


def check_is_list(shapes: object) -> None:
    """Raise DataError (E0715) unless shapes are a tuple or a list."""
    example = "one shape per input: ((2, 3), (3, 4))"
    check_is(shapes, (tuple, list), "E0715", "shapes are a tuple of shapes", example)


def checked_shapes(shapes: Sequence[object]) -> tuple[tuple[int, ...], ...]:
    """Shapes as tuples of integers; an array stands for its own. Raises DataError (E0715): something is no shape."""
    checked = []
    for each in shapes:
        shape = getattr(each, "shape", each)
        extents: Sequence[Any] = shape if _is_of(shape, (tuple, list)) else (None,)  # type: ignore[assignment]
        if not all(_is_of(extent, (int, np.integer)) for extent in extents):
            raise DataError(
                "E0715",
                f"{shown(shape)} is not a shape",
                help="give a tuple of extents per input: f.shapes((2, 3), (3, 4)); () is rank 0",
            )
        huge = [extent for extent in extents if LONGEST_NUMBER < int(extent).bit_length()]
        if huge:
            raise DataError(
                "E0715",
                f"an extent of a shape is {shown(huge[0])}",
                help="an extent is at least 0 and below 2^62",
            )
        checked.append(tuple(int(extent) for extent in extents))
    return tuple(checked)


def checked_dtypes(graph: Graph, dtypes: Sequence[object]) -> tuple[str | None, ...]:
    """The element types of the inputs by name; None stays open.

    Raises:
        DataError: E0701 (not one per input), E0703 (not an element type).
    """
    listed = [dtypes] if isinstance(dtypes, str) or not isinstance(dtypes, Sequence) else dtypes
    check_shape_count(graph, len(listed), "element type")
    return tuple(
        None if dtype is None else _dtype(graph.input_name(n), dtype)
        for n, dtype in enumerate(listed)
    )


def _dtype(name: str, dtype: Any) -> str:
    """The name of an element type: the name itself, or what NumPy takes for a type."""
    if isinstance(dtype, str) and dtype in NUMPY_TYPES:
        return dtype
    known = named_type(dtype)
    if known is None:
        raise DataTypeError(
            "E0703",
            f"the element type {shown(dtype)} of {name} is not supported",
            help=f"element types are {', '.join(NUMPY_TYPES)}, or NumPy's {LISTED}",
        )
    return SUPPORTED[known]


def named_type(dtype: Any) -> np.dtype[Any] | None:
    """The element type that NumPy takes something for; None where it is none of ours."""
    try:
        known = np.dtype(dtype).newbyteorder("=")
    except Exception:  # NumPy asks a foreign object what it is
        return None
    return known if known in SUPPORTED else None


def check_shape_count(graph: Graph, count: int, noun: str = "shape") -> None:
    """Raise DataError (E0701) unless there is a shape, or ``what`` is named, per input."""
    if count != len(graph.inputs):
        names = graph.input_names()
        message = f"the program takes {counted(len(names), 'array')}, and {are_given(count, noun)}"
        raise DataError("E0701", message, help=listed_inputs(names))


def result_of(results: Sequence[Array], out: object) -> Any:
    """The result of a call: what was given for the result, else the one output, else a tuple."""
    if out is not None:
        return out
    return results[0] if len(results) == 1 else tuple(results)


def names_of(shaped: Shaped) -> tuple[list[str], list[str]]:
    """The names of inputs and of outputs, as messages call arrays."""
    inputs, outputs = (
        [shaped.tensors[value].name for value in values]
        for values in (shaped.inputs, shaped.outputs)
    )
    return inputs, outputs


def outputs_of(shaped: Shaped, extents: Sequence[int]) -> list[Output]:
    """Shape and NumPy type of each output."""
    tensors = [shaped.tensors[value] for value in shaped.outputs]
    return [(tuple(extents[size] for size in t.dims), NUMPY_TYPES[t.dtype]) for t in tensors]


def checked_outs(
    out: object,
    names: tuple[Sequence[str], Sequence[str]],
    outputs: Sequence[Output],
    arrays: Sequence[Array],
) -> list[Array]:
    """The arrays of ``out=``: an array, or a tuple with one per output.

    Args:
        out: what was given.
        names: what messages call the inputs and the outputs.
        outputs: shape and element type of each result.
        arrays: the inputs.

    Raises:
        DataError: E0704 (masked), E0706 (not arrays, or another number of them), E0707 (shape), E0708 (element type),
            E0709 (overlap), E0710 (not contiguous, aligned or writable).
    """
    outs = list(out) if _is_of(out, tuple) else [out]  # type: ignore[call-overload]
    if len(outs) != len(outputs):
        message = f"out has {counted(len(outs), 'array')}, and the program has {counted(len(outputs), 'output')}"
        raise DataError("E0706", message, help=f"pass out=({', '.join(names[1])},)")
    taken = list(zip(names[0], arrays, strict=True))
    outs_checked: list[Array] = []
    for name, given, (shape, dtype) in zip(names[1], outs, outputs, strict=True):
        checked = _checked_out(name, given, shape, dtype)
        for other, array in taken:
            if np.may_share_memory(checked, array) and _shares(checked, array):
                raise DataError(
                    "E0709",
                    f"the output array for {name} overlaps {other}",
                    help="pass an array that shares no memory with another one",
                )
        taken.append((f"the one for {name}", checked))
        outs_checked.append(checked)
    return outs_checked


def check_writable(name: str, given: object) -> None:
    """Refuse what no result can be written to, whatever its layout.

    Raises:
        DataError: E0704 (masked), E0706 (no array), E0710 (not writable).
    """
    if not _is_of(given, np.ndarray):
        raise DataTypeError(
            "E0706",
            f"what is given as output array for {name} is of type {type(given).__name__}",
            help="pass a NumPy array, or leave `out=` out",
        )
    assert isinstance(given, np.ndarray)
    ma = sys.modules.get("numpy.ma")
    if ma is not None and _is_of(given, ma.MaskedArray):
        raise DataError(
            "E0704",
            f"the output array for {name} is a masked array",
            help="pass its data, out.data",
        )
    _check_flag(name, "writable", given.flags.writeable)


def _check_flag(name: str, wanted: str, held: bool) -> None:
    """Refuse an output array that lacks what C needs of it. Raises DataError E0710."""
    if not held:
        raise DataError(
            "E0710",
            f"the output array for {name} is not {wanted}",
            help="results are written in place: pass a plain array of its own",
        )


def _checked_out(name: str, given: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    check_writable(name, given)
    if given.shape != shape:
        message = f"the output array for {name} has shape {given.shape}, and the result has {shape}"
        raise DataError("E0707", message, help=f"np.empty({shape}, np.{dtype.name})")
    if given.dtype != dtype:
        message = f"the output array for {name} has element type {given.dtype}, and the result has {dtype}"
        raise DataTypeError("E0708", message, help=f"np.empty({shape}, np.{dtype.name})")
    _check_flag(name, "C-contiguous", given.flags.c_contiguous)
    _check_flag(name, "aligned", given.flags.aligned)
    checked: Array = given
    return checked


def _shares(one: Array, other: Array) -> bool:
    """Whether two arrays whose bounds meet share an element; where that is too hard to tell, yes."""
    try:
        return bool(np.shares_memory(one, other, max_work=OVERLAP_WORK))  # type: ignore[arg-type]
    except (np.exceptions.TooHardError, RuntimeError):
        return True
