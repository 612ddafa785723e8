"""Arguments, constants and the freezing of a graph."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.graph import Constant


def float64(values: Any) -> np.ndarray:
    return np.array(values, np.float64)


def float16(values: Any) -> np.ndarray:
    return np.array(values, np.float16)


def float32(values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def values_of(tensor: Any) -> np.ndarray:
    assert isinstance(tensor._value.node.op, Constant)
    return tensor._value.node.op.array


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (1, bg.Int32), (1.5, bg.Float32), (True, bg.Bool), ([1, 2], bg.Int32), ([[1.0], [2.0]], bg.Float32),
        (float16([1]), bg.Float16), (np.arange(3), bg.Int64), (np.array([True]), bg.Bool), (jnp.arange(3), bg.Int32),
        (jnp.ones(2, jnp.bfloat16), bg.BFloat16), ([], bg.Float32), (np.uint64(2**63), bg.UInt64),
    ],
)  # fmt: skip
def test_constants_take_the_dtype_of_what_is_given(given: Any, dtype: Any) -> None:
    tensor = bg.Builder().constant(values=given)
    assert tensor.data_type is dtype
    assert tensor.shape == np.shape(given)
    np.testing.assert_array_equal(values_of(tensor), np.asarray(given))


@pytest.mark.parametrize("dtype", [bg.Float16, bg.BFloat16, bg.Float64, bg.Int8, bg.UInt64, bg.Bool])
def test_constants_of_a_chosen_dtype(dtype: Any) -> None:
    given: list[Any] = [True, False] if dtype is bg.Bool else [1, 0]
    tensor = bg.Builder().constant("c", values=given, data_type=dtype)
    assert tensor.data_type is dtype
    assert tensor.name == "c"
    np.testing.assert_array_equal(values_of(tensor).astype(bool), [True, False])


def test_constants_in_each_of_apples_forms() -> None:
    b = bg.Builder()
    assert b.constant(value=2.0).shape == ()
    flat = b.constant(values=[1.0, 2.0, 3.0, 4.0], shape=[2, 2])
    nested = b.constant(values=[[1.0, 2.0], [3.0, 4.0]], row_major=True)
    np.testing.assert_array_equal(values_of(flat), values_of(nested))
    np.testing.assert_array_equal(values_of(b.constant(values=0.5, shape=[2, 3])), np.full((2, 3), 0.5))


def test_constants_are_copied() -> None:
    given = np.ones(3, np.float32)
    tensor = bg.Builder().constant(values=given)
    given[0] = 7
    assert values_of(tensor)[0] == 1
    assert not values_of(tensor).flags.writeable


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"values": [[1.0], [1.0, 2.0]]}, bg.ShapeError, "values must be a number or rows of equal length, got [[1.0], [1.0, 2.0]]"),
        ({"values": ["a"]}, bg.DTypeError, "values must be numbers, got ['a']"),
        ({"values": [300], "data_type": bg.Int8}, bg.DTypeError, "values must fit int8, [-128, 127], got 300"),
        ({"values": [-1], "data_type": bg.UInt8}, bg.DTypeError, "values must fit uint8, [0, 255], got -1"),
        ({"values": [1.5], "data_type": bg.Int32}, bg.DTypeError, "values must be integers to be used with a int32 tensor"),
        ({"values": [1e6], "data_type": bg.Float16}, bg.DTypeError, "values must fit float16, got 1000000.0, which would become"),
        ({"values": [70000], "data_type": bg.Float16}, bg.DTypeError, "values must fit float16, got 70000"),
        ({"values": [True], "data_type": bg.Float32}, bg.DTypeError, "values must be float32 to be used with a float32 tensor, got bool"),
        ({"values": [1, 2, 3], "shape": [2, 2]}, bg.ShapeError, "shape must hold the 3 values, got [2, 2] with 4"),
        ({"values": [1, 2], "shape": ["n"]}, bg.ShapeError, "the shape of a constant must be fixed, got [n]"),
        ({"value": [1, 2]}, bg.ShapeError, "value must be one number, got an array of shape [2]; write values="),
        ({}, bg.ParameterError, "constant must be given value= (one number) or values= (an array), and not both"),
        ({"values": [2**40]}, bg.DTypeError, "values must fit int32"),
    ],
)  # fmt: skip
def test_bad_constants(arguments: dict[str, Any], error: type[bg.GraphError], words: str) -> None:
    with pytest.raises(error) as caught:
        bg.Builder().constant(**arguments)
    assert words in str(caught.value)
    assert "test_builder.py" in str(caught.value)


def test_operands_become_constants_of_the_tensors_dtype() -> None:
    b = bg.Builder()
    half = b.argument("x", bg.Float16, [2])
    for other in (1, 1.5, [1, 2], float64([1, 2]), np.arange(2), jnp.ones(2)):
        assert (half + other).data_type is bg.Float16
        assert (other + half).data_type is bg.Float16
    count = b.argument("n", bg.UInt8, [2])
    assert (count + 255).data_type is bg.UInt8
    for bad in (256, -1, 1.0, [0.5, 1]):
        with pytest.raises(bg.DTypeError):
            count + bad
    with pytest.raises(bg.DTypeError, match="which would become infinite"):
        half + 1e6


def test_names_of_arguments() -> None:
    b = bg.Builder()
    assert b.argument(data_type=bg.Int8).name == "argument_0"
    assert b.argument(None, bg.Int8).name == "argument_1"
    for bad in ("two words", "", "3"):
        with pytest.raises(bg.ArgumentError, match="the name of an argument must be a Python identifier"):
            b.argument(bad, bg.Int8)
    with pytest.raises(bg.ArgumentError, match=r"names of arguments must differ, got 'argument_0' twice"):
        b.argument("argument_0", bg.Int8)


def test_names_of_outputs() -> None:
    def named(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, [2])
        return x, (x + 1).named("more"), x * 2

    assert bg.make_context(named).argument_names() == ["output_0", "more", "output_2", "x"]

    def dictionary(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, [2])
        return {"twice": x + x, "half": x / 2}

    context = bg.make_context(dictionary)
    assert context.argument_names() == ["twice", "half", "x"]
    assert context(float32([2, 4])).half.tolist() == [1, 2]

    def clash(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, [2])
        return {"x": x + 1}

    with pytest.raises(bg.UnableToMakeGraphError, match="names of outputs must differ from each other and from the arguments'"):
        bg.make_context(clash)


def test_one_call_of_the_block_and_none_after_it() -> None:
    calls: list[bg.Builder] = []

    def block(b: bg.Builder) -> Any:
        calls.append(b)
        return b.argument("x", bg.Float32, [2]) + 1

    context = bg.make_context(block)
    context(np.zeros(2, np.float32))
    context(np.ones(2, np.float32))
    assert len(calls) == 1
    with pytest.raises(bg.ForeignTensorError, match="the builder must still be recording"):
        calls[0].constant(value=1)


def test_unneeded_operations_are_dropped_and_unneeded_arguments_stay() -> None:
    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, [2])
        b.argument("unused", bg.Float32, [2])
        _ = x * 100
        return x + 1

    context = bg.make_context(block)
    assert [type(node.op).__name__ for node in context.graph.nodes] == ["Argument", "Argument", "Constant", "Add"]
    assert context.argument_names() == ["output_0", "x", "unused"]


def test_arguments_and_constants_can_be_outputs() -> None:
    context = bg.make_context(lambda b: [b.argument("x", bg.Float32, [2]), b.constant(values=[1, 2])])
    x, c = context(float32([3, 4]))
    assert x.tolist() == [3, 4]
    assert c.tolist() == [1, 2]
