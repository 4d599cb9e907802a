"""Frozen records: the one way this code base declares data.

A record is a class whose annotated fields become constructor arguments, equality, hash and repr. A record does what a
frozen dataclass does, at a small part of its import cost (sixty frozen dataclasses cost several times
``python -c pass``; see docs/decisions/0002-records.md).

A field whose name ends in ``span`` says where in the text a thing stands. A place is no part of equality, hash or
repr, which is what makes ``parse(print(tree)) == tree`` a statement about meaning.

A record that is asked the same again and again keeps answers in slots beside its fields, which no copy has: its hash in
``_hash``, that of a method marked ``once`` in the method's name with an underscore. The class lists these slots after
``__dict__`` in its ``__slots__``; a pickle has the fields alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from types import CodeType, FunctionType
from typing import Any, TypeVar, dataclass_transform

S = TypeVar("S")
T = TypeVar("T")
Init = Callable[..., None]


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Turn an annotated class into a frozen record; class attributes are the defaults."""
    fields = tuple(cls.__annotations__)
    defaults = {name: cls.__dict__[name] for name in fields if name in cls.__dict__}
    compared = tuple(name for name in fields if not name.endswith("span"))
    __init__ = _constructor(cls, fields, defaults)
    __hash__ = _hash(cls.__name__, compared, "_hash" in cls.__dict__.get("__slots__", ()))

    def __eq__(self: Any, other: object) -> bool:  # noqa: N807
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        fields, other_fields = self.__dict__, other.__dict__
        for name in compared:  # noqa: SIM110 - a loop takes half the time of a generator
            if not fields[name] == other_fields[name]:
                return False
        return True

    def __repr__(self: Any) -> str:  # noqa: N807
        inner = ", ".join(f"{name}={self.__dict__[name]!r}" for name in compared)
        return f"{cls.__name__}({inner})"

    def __getstate__(self: Any) -> dict[str, object]:  # noqa: N807
        return self.__dict__  # type: ignore[no-any-return]

    def __setattr__(_self: Any, name: str, _value: object) -> None:  # noqa: N807
        raise AttributeError(f"{cls.__name__} is frozen: cannot set {name}")

    methods = (__init__, __eq__, __hash__, __repr__, __getstate__, __setattr__)
    for method in methods:
        if method.__name__ not in cls.__dict__ or method is __hash__:
            setattr(cls, method.__name__, method)
    cls.__match_args__ = fields  # type: ignore[attr-defined, misc]
    return cls


def _hash(title: str, compared: Sequence[str], is_kept: bool) -> Callable[[Any], int]:
    """A function that takes the hash of a record of some fields: each time, or once where a slot keeps it."""

    def __hash__(self: Any) -> int:  # noqa: N807
        fields = self.__dict__
        return hash((title, *[fields[name] for name in compared]))

    def kept(self: Any) -> int:
        try:
            return self._hash  # type: ignore[no-any-return]
        except AttributeError:
            answer = __hash__(self)
            object.__setattr__(self, "_hash", answer)
            return answer

    kept.__name__ = __hash__.__name__
    return kept if is_kept else __hash__


@dataclass_transform(eq_default=False, frozen_default=True)
def entity(cls: type[T]) -> type[T]:
    """Turn an annotated class into a frozen record that equals itself alone, whatever its fields are."""
    one_thing: Any = record(cls)
    one_thing.__eq__ = object.__eq__
    one_thing.__hash__ = object.__hash__
    return cls


def once(method: Callable[[S], T]) -> Callable[[S], T]:
    """A method without arguments whose answer a record keeps, since its fields never change."""
    name = f"_{method.__name__}"

    @wraps(method)
    def kept(self: S) -> T:
        try:
            return getattr(self, name)  # type: ignore[no-any-return]
        except AttributeError:
            answer = method(self)
            object.__setattr__(self, name, answer)
            return answer

    return kept


@cache
def _template(count: int) -> CodeType:
    """The code of a constructor of ``count`` fields, which are called ``f0``, ``f1``, ..."""
    names = [f"f{number}" for number in range(count)]
    body = "".join(f"; _fields[{name!r}] = {name}" for name in names)
    namespace: dict[str, Any] = {}
    exec(f"def __init__({', '.join(('_self', *names))}): _fields = _self.__dict__{body}", namespace)
    return namespace["__init__"].__code__  # type: ignore[no-any-return]


def _constructor(cls: Any, fields: Sequence[str], defaults: Mapping[str, object]) -> Init:
    """A constructor that takes the fields of a record as arguments of those names.

    A first call makes it and puts it in its own place, since a process uses only some of the classes that it imports.
    """
    last = fields[len(fields) - len(defaults) :]
    if defaults.keys() != set(last):
        raise TypeError(f"{cls.__name__}: fields with defaults are the last, not {tuple(defaults)}")

    def __init__(_self: Any, *values: object, **named: object) -> None:  # noqa: N807
        cls.__init__ = _specialized(fields, tuple([defaults[field] for field in last]))
        cls.__init__(_self, *values, **named)

    return __init__


def _specialized(fields: Sequence[str], defaults: tuple[object, ...]) -> Init:
    """The constructor of these fields, the last of which have defaults.

    The code of each number of fields is compiled once, and a class has it under the names of its fields.
    """
    code = _template(len(fields))
    name = {f"f{number}": field for number, field in enumerate(fields)}
    code = code.replace(
        co_varnames=tuple([name.get(each, each) for each in code.co_varnames]),
        co_consts=tuple([name.get(each, each) for each in code.co_consts]),
    )
    return FunctionType(code, globals(), "__init__", defaults)


def replace(instance: T, **changes: object) -> T:
    """A copy of a record with some fields changed."""
    fields = instance.__dict__
    if not changes.keys() <= fields.keys():
        raise TypeError(f"{type(instance).__name__}: fields {tuple(fields)}, got {tuple(changes)}")
    copy = object.__new__(type(instance))
    copy.__dict__.update(fields, **changes)
    return copy


# -- traversal, derived from the types of fields -----------------------------------------------------------------------

_RECORDS: dict[type, tuple[str, ...]] = {}
"""The fields of each record that other records may stand in, by its class."""
_PLAIN = frozenset(
    (
        "int",
        "str",
        "float",
        "bool",
        "None",
        "tuple",
        "frozenset",
        "Span",
        "BufferId",
        "LocalId",
        "VariableId",
        "ValueId",
    )
)
"""The words of an annotation that names no record."""


def _nested(cls: type) -> tuple[str, ...]:
    """The fields of a record that other records may stand in: those whose types are more than numbers and text."""
    names = _RECORDS.get(cls)
    if names is None:
        types = cls.__annotations__ if hasattr(cls, "__match_args__") else {}
        words = {name: set(re.findall(r"\w+", str(each))) for name, each in types.items()}
        names = _RECORDS[cls] = tuple(name for name, each in words.items() if each - _PLAIN)
    return names


def mapped(value: T, kinds: type | tuple[type, ...], change: Callable[[Any], Any]) -> T:
    """A record, or a tuple, in which each outermost instance of some classes is changed; itself where none changes.

    Example: ``mapped(statement, Affine, lambda index: index.substituted(place))``.
    """
    if isinstance(value, kinds):
        return change(value)  # type: ignore[no-any-return]
    if isinstance(value, tuple):
        parts = [mapped(part, kinds, change) for part in value]
        same = all(old is new for old, new in zip(value, parts, strict=True))
        return value if same else tuple(parts)  # type: ignore[return-value]
    return mapped_inside(value, kinds, change)


def mapped_inside(instance: T, kinds: type | tuple[type, ...], change: Callable[[Any], Any]) -> T:
    """A record whose fields are ``mapped``: an instance of the classes itself stays, and what stands in it changes."""
    changes: dict[str, object] = {}
    for name in _nested(type(instance)):
        old = instance.__dict__[name]
        new = mapped(old, kinds, change)
        if new is not old:
            changes[name] = new
    return replace(instance, **changes) if changes else instance
