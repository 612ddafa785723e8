"""``@frozen`` makes what ``@dataclass(frozen=True)`` makes, which is the reference here."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import field
from typing import Any, ClassVar

import pytest

from bnnsgraph.frozen import Frozen, frozen
from bnnsgraph.graph import Argument, Constant, Op
from bnnsgraph.ops.elementwise import Abs, Log, Reciprocal
from bnnsgraph.ops.gathering import Gather
from bnnsgraph.spec import TensorSpec


@frozen
class Point(Frozen):
    x: float
    y: float = 0.0
    UNIT: ClassVar[float] = 1.0
    unit: str = field(default="m", kw_only=True)


@frozen
class Place(Point):
    """A point with a name."""

    name: str = ""


@frozen
class Here(Place):
    pass


@dataclasses.dataclass(frozen=True)
class WantedPoint:
    x: float
    y: float = 0.0
    UNIT: ClassVar[float] = 1.0
    unit: str = field(default="m", kw_only=True)


@dataclasses.dataclass(frozen=True)
class WantedPlace(WantedPoint):
    name: str = ""


@dataclasses.dataclass(frozen=True)
class WantedHere(WantedPlace):
    pass


PAIRS: list[tuple[Any, Any]] = [(Point, WantedPoint), (Place, WantedPlace), (Here, WantedHere)]


@pytest.mark.parametrize(("made", "wanted"), PAIRS)
def test_what_dataclasses_say_of_the_class(made: Any, wanted: Any) -> None:
    assert inspect.signature(made) == inspect.signature(wanted)
    assert [repr(each) for each in dataclasses.fields(made)] == [repr(each) for each in dataclasses.fields(wanted)]
    assert made.__match_args__ == wanted.__match_args__
    assert dataclasses.is_dataclass(made)


@pytest.mark.parametrize(("made", "wanted"), PAIRS)
def test_objects(made: Any, wanted: Any) -> None:
    one, same, other = made(1, 2.0, unit="km"), made(y=2.0, x=1, unit="km"), made(1)
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert repr(one) == repr(wanted(1, 2.0, unit="km")).replace("Wanted", "")
    assert dataclasses.asdict(one) == dataclasses.asdict(wanted(1, 2.0, unit="km"))
    assert dataclasses.replace(other, y=2.0, unit="km") == one
    assert repr(other) == repr(wanted(1)).replace("Wanted", "")
    for copied in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert type(copied) is made
        assert copied == one
        assert hash(copied) == hash(one)


@pytest.mark.parametrize(("made", "wanted"), PAIRS)
def test_refusals(made: Any, wanted: Any) -> None:
    point = made(1)
    for change in (lambda it: setattr(it, "x", 2), lambda it: setattr(it, "z", 2), lambda it: delattr(it, "x")):
        told: list[str] = []
        for it in (point, wanted(1)):
            with pytest.raises(dataclasses.FrozenInstanceError) as error:
                change(it)
            told.append(str(error.value))
        assert told[0] == told[1]
    for arguments, keywords in (((), {}), ((1, 2, "name", "km"), {}), ((1,), {"x": 1}), ((1,), {"z": 1})):
        told = []
        for cls in (made, wanted):
            with pytest.raises(TypeError) as refused:
                cls(*arguments, **keywords)
            told.append(str(refused.value).partition(".")[2])
        assert told[0] == told[1]


def test_objects_of_different_classes_differ() -> None:
    assert Log(0.5) != Reciprocal(0.5)
    assert Place(1) != Point(1)
    assert Abs() == Abs()
    assert len({Log(0.5), Reciprocal(0.5), Log(0.5), Abs(), Abs()}) == 3


def test_operations_are_values() -> None:
    op = Gather(1, out_of_bounds="clip")
    assert repr(op) == "Gather(out_of_bounds='clip', negative_indices='from_end', axis=1, batch_dimension_count=0)"
    assert str(op) == "Gather(axis=1, out_of_bounds='clip')"
    assert {op: "found"}[Gather(axis=1, out_of_bounds="clip")] == "found"
    assert dataclasses.replace(op, axis=2).axis == 2


def test_constants_are_compared_by_identity() -> None:
    import numpy as np

    from bnnsgraph.dtypes import Float32

    spec = TensorSpec(Float32, (2,))
    one: Op = Constant(np.zeros(2, np.float32), spec)
    assert one == one
    assert one != Constant(np.zeros(2, np.float32), spec)
    assert len({one, Constant(np.zeros(2, np.float32), spec)}) == 2
    assert Argument("x", spec) == Argument("x", spec)
    assert Argument("x", spec) != Argument("y", spec)


def test_what_dataclasses_know_is_there_in_any_order() -> None:
    @frozen
    class Base(Frozen):
        x: int

    @frozen
    class Derived(Base):
        y: int = 2

    class Plain(Derived):
        pass

    for kind, names in ((Plain, ("x", "y")), (Derived, ("x", "y")), (Base, ("x",))):
        assert kind.__match_args__ == names  # asked for before anything else, of the last class first
        assert tuple(field.name for field in dataclasses.fields(kind)) == names
    match Derived(1):
        case Derived(x, y):
            assert (x, y) == (1, 2)
