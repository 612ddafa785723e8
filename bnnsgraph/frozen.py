"""Frozen dataclasses that are made quickly: importing the package makes more than a hundred.

``dataclasses.dataclass(frozen=True)`` writes and compiles six methods for each class, at each start of Python. Five of them
say the same of every class, and stand here once. ``__init__`` has the names of the fields in it: it is compiled once for
classes with fields of the same names, and inherited by those without fields of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from types import CodeType, FunctionType
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T", bound="Frozen")


class Frozen:
    """The base of what :func:`frozen` decorates: compared, hashed and shown by the fields, which never change.

    >>> from bnnsgraph.ops.elementwise import Log
    >>> Log(0.5), Log(0.5) == Log(epsilon=0.5), Log(0.5) == Log(0.0)
    (Log(epsilon=0.5), True, False)
    """

    def __eq__(self, other: object, /) -> bool:
        return vars(self) == vars(other) if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({', '.join([f'{name}={value!r}' for name, value in vars(self).items()])})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """``dataclass(frozen=True)`` for a class that derives from :class:`Frozen`: what ``dataclasses`` offers works with it.

    A field may have a default and be ``kw_only``; nothing else of ``field`` is heeded.
    """
    if "__annotations__" in vars(cls):  # otherwise it has the fields of its base
        cls.__doc__ = cls.__doc__ or cls.__name__  # ``dataclass`` would look for the signature, which takes long
        made: Any = dataclass(init=False, repr=False, eq=False)(cls)
        if listed := fields(made):
            made.__init__ = _init(cls, listed)
    return cls


def _init(cls: type, listed: tuple[Field[Any], ...]) -> Callable[..., None]:
    """``__init__``, which sets the fields."""
    named = {field.name: field.default for field in listed if field.kw_only}
    code = _code(tuple([field.name for field in listed]), tuple(named))
    init = FunctionType(code, {"__name__": cls.__module__, "_set": object.__setattr__})
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {**{field.name: field.type for field in listed}, "return": None}
    init.__defaults__ = tuple([field.default for field in listed if not field.kw_only and field.default is not MISSING])
    init.__kwdefaults__ = {name: default for name, default in named.items() if default is not MISSING}
    return init


@functools.cache
def _code(names: tuple[str, ...], named: tuple[str, ...]) -> CodeType:
    """What every ``__init__`` does that sets fields of these names, some of which are given by name alone."""
    parameters = ", ".join(["self", *[name for name in names if name not in named], *(["*"] if named else []), *named])
    body = "".join([f"\n _set(self, {name!r}, {name})" for name in names])
    namespace: dict[str, Any] = {}
    exec(f"def __init__({parameters}):{body}", namespace)
    return namespace["__init__"].__code__
