"""Frozen dataclasses that are made quickly: importing the package makes more than a hundred.

``dataclasses.dataclass(frozen=True)`` writes and compiles six methods for each class, at each start of Python. Five of them
say the same of every class, and stand here once. ``__init__`` has the names of the fields in it: it is compiled once for
classes with fields of the same names, and inherited by those without fields of their own. What ``dataclasses`` itself knows of
a class is made when it is first asked for: few programs ask, and of few classes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from types import CodeType, FunctionType
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeVar, cast, dataclass_transform

T = TypeVar("T", bound="Frozen")


class _Parameter(NamedTuple):
    """A parameter of ``__init__``."""

    type: str
    default: Any
    kw_only: bool


class _Described:
    """An attribute that ``dataclass`` gives to a class, and gives it when it is first read."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        made: Any = owner
        dataclass(init=False, repr=False, eq=False, match_args=False)(owner)
        made.__match_args__ = tuple([field.name for field in fields(owner) if not field.kw_only])
        return vars(owner)[self.name]


class Frozen:
    """The base of what :func:`frozen` decorates: compared, hashed and shown by the fields, which never change.

    >>> from bnnsgraph.ops.elementwise import Log
    >>> Log(0.5), Log(0.5) == Log(epsilon=0.5), Log(0.5) == Log(0.0)
    (Log(epsilon=0.5), True, False)
    """

    _parameters: ClassVar[Mapping[str, _Parameter]] = {}

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
    declared: dict[str, str] = vars(cls).get("__annotations__", {})
    if not declared:
        return cls  # it is as its base
    made: Any = cls
    cls.__doc__ = cls.__doc__ or cls.__name__  # ``dataclass`` would look for the signature, which takes long
    own: dict[str, Any] = {
        name: vars(cls).get(name, MISSING) for name, text in declared.items() if not text.startswith("ClassVar")
    }
    if any(isinstance(default, Field) for default in own.values()):
        dataclass(init=False, repr=False, eq=False)(cls)  # which puts the defaults in their places
    else:
        made.__dataclass_fields__ = _Described("__dataclass_fields__")
        made.__match_args__ = _Described("__match_args__")
    parameters: dict[str, _Parameter] = {}
    for base in cls.__mro__[:0:-1]:  # in the order of ``dataclass``
        parameters |= getattr(base, "_parameters", {})
    parameters |= {name: _parameter(declared[name], given) for name, given in own.items()}
    if parameters:
        made._parameters, made.__init__ = parameters, _init(cls, parameters)
    return cls


def _parameter(annotation: str, given: Any) -> _Parameter:
    """A field from what the class has in its place: a default, all that ``field`` says, or nothing."""
    if not isinstance(given, Field):
        return _Parameter(annotation, given, False)
    said = cast("Field[Any]", given)
    return _Parameter(annotation, said.default, said.kw_only is True)


def _init(cls: type, parameters: Mapping[str, _Parameter]) -> Callable[..., None]:
    """``__init__``, which sets the fields."""
    named = {name: given.default for name, given in parameters.items() if given.kw_only}
    init = FunctionType(_code(tuple(parameters), tuple(named)), {"__name__": cls.__module__, "_set": object.__setattr__})
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {**{name: given.type for name, given in parameters.items()}, "return": None}
    listed = [given.default for name, given in parameters.items() if name not in named]
    init.__defaults__ = tuple([default for default in listed if default is not MISSING])
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
