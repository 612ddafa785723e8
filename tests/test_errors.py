"""What a user reads when something is wrong: subject, requirement, got, the operands, and the user's line.

Each case is a small program whose wrong line bears the comment ``# here`` (and, where the message also tells where the
operation was recorded, ``# recorded``). The first line of the message is asserted word by word.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph import demo

INT = "write .cast(to=Int32) first"


class Case(NamedTuple):
    """A wrong program and what it must say."""

    program: Callable[[], Any]
    kind: type[bg.GraphError]
    first: str
    details: tuple[str, ...]


CASES: list[Case] = []


def says(kind: type[bg.GraphError], first: str, *details: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Declare the error of a program: its class, its first line, and lines that must follow."""

    def declare(program: Callable[[], Any]) -> Callable[[], Any]:
        CASES.append(Case(program, kind, first, details))
        return program

    return declare


def marked(program: Callable[[], Any], mark: str) -> tuple[int, str] | None:
    """The number and the text of the line that bears the mark."""
    lines, start = inspect.getsourcelines(program)
    return next(((start + n, line.strip()) for n, line in enumerate(lines) if mark in line), None)


def x(shape: Any = (2, 3), dtype: Any = bg.Float32) -> bg.Tensor[Any]:
    return bg.Builder().argument("x", dtype, shape=shape)


def context(shape: Any = (3,), dtype: Any = bg.Float32) -> bg.Context:
    return bg.make_context(lambda b: b.argument("x", dtype, shape=shape) + b.argument("y", dtype, shape=shape))


# Element types


@says(
    bg.DTypeError,
    "Add(): x and y must have one dtype, got float32 and int32; write .cast(to=Float32) on y, or .cast(to=Int32) on x",
    "x  float32[3]  made at test_errors.py:",
    "y  int32[3]    made at test_errors.py:",
)
def operands_of_two_dtypes() -> None:
    builder = bg.Builder()
    real, whole = builder.argument("real", bg.Float32, shape=[3]), builder.argument("whole", bg.Int32, shape=[3])
    real + whole  # here # pyright: ignore


@says(bg.DTypeError, "values must be integers to be used with a int32 tensor, got float64; cast the tensor: .cast(to=Float32)")
def a_float_for_an_integer_tensor() -> None:
    x(dtype=bg.Int32) + 1.5  # here


@says(bg.DTypeError, "values must fit int8, [-128, 127], got 200")
def a_number_too_large_for_its_tensor() -> None:
    x(dtype=bg.Int8) * 200  # here


@says(bg.DTypeError, "Add(): x must be of a number type, got bool; write .cast(to=Float32) first", "x  bool[2, 3]")
def arithmetic_of_masks() -> None:
    mask = x(dtype=bg.Bool)
    mask + mask  # here


@says(bg.DTypeError, "Not(): x must be of bool, got float32", "x  float32[2, 3]")
def the_opposite_of_a_number() -> None:
    ~x()  # here


@says(bg.DTypeError, "ReduceMean(axes=(0,)): x must be of a float type, got int32; write .cast(to=Float32) first")
def the_mean_of_integers() -> None:
    x(dtype=bg.Int32).mean([0])  # here


@says(bg.DTypeError, "Divide(): x must be of a float type, got int32; write x // y, or .cast(to=Float32) on both first")
def a_quotient_of_integers() -> None:
    x(dtype=bg.Int32) / 2  # here


@says(
    bg.DTypeError,
    "Select(): value_if_true or value_if_false must be a tensor, got two plain values; write builder.constant(...) for one",
)
def a_choice_between_two_plain_numbers() -> None:
    x(dtype=bg.Bool).select(1.0, 0.0)  # here


@says(
    bg.DTypeError,
    "the element type must be one of float16, bfloat16, float32, float64, int8, int16, int32, int64, "
    "uint8, uint16, uint32, uint64, bool; got 'complex64'",
)
def an_element_type_that_does_not_exist() -> None:
    bg.Builder().argument("x", "complex64", shape=[3])  # here


@says(bg.DTypeError, "Number is a group of element types; name one, such as Float32 or Int32")
def a_group_of_element_types() -> None:
    from bnnsgraph.dtypes import Number

    x().cast(to=Number)  # here


# Ranks, axes, sizes


@says(
    bg.ShapeError,
    "Add(): shapes must broadcast (trailing sizes equal, or 1), got [2, 3] and [4]: 3 against 4",
    "x  float32[2, 3]  made at test_errors.py:",
    "y  float32[4]     made at test_errors.py:",
)
def shapes_that_do_not_broadcast() -> None:
    x() + np.ones(4)  # here


@says(bg.ShapeError, "ReduceSum(axes=(2,)): axes must be in [-2, 2), got 2")
def an_axis_that_does_not_exist() -> None:
    x().sum([2])  # here


@says(bg.ShapeError, "ReduceSum(axes=(0, -2)): axes must be different from each other, got [0, -2]")
def an_axis_named_twice() -> None:
    x().sum([0, -2])  # here


@says(bg.ParameterError, "axes must be an integer, got 1.0")
def an_axis_that_is_no_integer() -> None:
    x().sum(1.0)  # here # pyright: ignore[reportArgumentType]


@says(bg.ShapeError, "Gather(axis=0): axis must name an axis, but the tensor has rank 0, got 0")
def an_axis_of_a_scalar() -> None:
    x(()).gather([0], axis=0)  # here


@says(bg.ShapeError, "Reshape(to=(4, -1)): to must divide the 6 elements of x, got [4, -1]")
def a_reshape_that_does_not_divide() -> None:
    x().reshape(to=[4, -1])  # here


@says(bg.ShapeError, "Reshape(to=(4, 2)): to must have as many elements as x, 6, got [4, 2] with 8")
def a_reshape_to_more_elements() -> None:
    x().reshape(to=[4, 2])  # here


@says(bg.ShapeError, "Squeeze(axes=(1,)): axis must have size 1, got size 3 on axis 1")
def a_squeeze_of_a_long_axis() -> None:
    x().squeeze(axis=1)  # here


@says(bg.ShapeError, "Transpose(axes=(0,)): axes must name each of the 2 axes once, got [0]")
def a_transpose_that_forgets_an_axis() -> None:
    x().transpose(axes=[0])  # here


@says(
    bg.ShapeError,
    "MatMul(): the last size of x and the second last of other (after transposes) must be equal, got 3 against 2",
    "x      float32[2, 3]",
    "other  float32[2, 3]",
)
def inner_sizes_that_differ() -> None:
    both = x()
    both @ both  # here


@says(bg.ShapeError, "Concatenate(axis=0): tensors must have one rank, got 2 for tensors[0] and 1 for tensors[1]")
def tensors_of_two_ranks_side_by_side() -> None:
    builder = bg.Builder()
    first = builder.argument("first", bg.Float32, shape=[2, 3])
    builder.concatenate([first, first[0]], axis=0)  # here


@says(bg.ParameterError, "tensors must hold at least one tensor, got 2 without any")
def a_concatenation_without_a_tensor() -> None:
    bg.Builder().concatenate([[1.0], [2.0]], axis=0)  # here


# Gather and scatter


@says(bg.DTypeError, f"Gather(axis=0): indices must be of an integer type, got float32; {INT}", "x        float32[2, 3]")
def indices_that_are_floats() -> None:
    data = x()
    data.gather(data[0], axis=0)  # here


@says(bg.DTypeError, "GatherND(): indices must be of an integer type, got bool; to choose by a mask write mask.select(a, b)")
def indices_that_are_a_mask() -> None:
    data = x([2, 2])
    data.gather_nd(data > 0)  # here # pyright: ignore[reportArgumentType]


@says(bg.DTypeError, f"indices must be of an integer type, got float64; {INT}")
def indices_that_are_a_list_of_floats() -> None:
    x().gather([0.0, 1.0], axis=0)  # here


@says(bg.ShapeError, "Gather(axis=2): axis must be in [-2, 2), got 2")
def a_gather_along_no_axis() -> None:
    x().gather([0], axis=2)  # here


@says(
    bg.ShapeError,
    "Gather(axis=1, batch_dimension_count=1): batch sizes of x and indices on axis 0 must be equal, got 2 against 3",
    "x        float32[2, 3]  made at test_errors.py:",
    "indices  int32[3, 1]    made at test_errors.py:",
)
def batch_sizes_that_differ() -> None:
    x().gather([[0], [1], [2]], axis=1, batch_dimension_count=1)  # here


@says(bg.ShapeError, "Gather(axis=0, batch_dimension_count=1): batch_dimension_count must be at most axis, 0, got 1")
def more_batch_axes_than_the_axis_allows() -> None:
    x().gather([[0], [1]], axis=0, batch_dimension_count=1)  # here


@says(
    bg.ShapeError,
    "Gather(axis=1, batch_dimension_count=2): batch_dimension_count must be in [-1, 1] for indices of rank 1, got 2",
)
def more_batch_axes_than_the_indices_have() -> None:
    x().gather([0, 1], axis=1, batch_dimension_count=2)  # here


@says(
    bg.ShapeError,
    "GatherND(batch_dimension_count=-1): batch_dimension_count must be in [0, 2), below the ranks of x and indices, got -1",
)
def a_negative_batch_count_of_gather_nd() -> None:
    x().gather_nd([[0], [1]], batch_dimension_count=-1)  # here


@says(bg.ShapeError, "GatherND(): indices must have rank 1 or more, its last axis holding the index vectors, got rank 0")
def gather_nd_by_a_single_number() -> None:
    x().gather_nd(0)  # here


@says(
    bg.ShapeError,
    "GatherND(): the last size of indices must be in [0, 2], the axes of x it can address, got 3",
    "x        float32[2, 3]",
    "indices  int32[1, 3]",
)
def vectors_longer_than_the_rank() -> None:
    x().gather_nd([[0, 0, 0]])  # here


@says(bg.ShapeError, "GatherND(): indices must have a fixed last size, got [2, n]")
def vectors_of_unknown_length() -> None:
    builder = bg.Builder()
    data, where = builder.argument("x", bg.Float32, shape=[2, 3]), builder.argument("i", bg.Int32, shape=[2, "n"])
    data.gather_nd(where)  # here


@says(bg.ShapeError, "GatherAlongAxis(axis=0): indices must have the rank of x, 2, got 1")
def gather_along_axis_by_another_rank() -> None:
    x().gather_along_axis([0, 1, 0], axis=0)  # here


@says(bg.ShapeError, "GatherAlongAxis(axis=0): sizes of x and indices on axis 1 must be equal, got 3 against 2")
def gather_along_axis_of_other_sizes() -> None:
    x().gather_along_axis([[0, 1]], axis=0)  # here


@says(
    bg.IndexOutOfBoundsError,
    "Gather(axis=1): indices must be in [-3, 3) on axis 1, got 3 at position [1] (the first of 2)",
    "x        float32[2, 3]",
    "indices  int32[3]",
)
def a_constant_index_outside() -> None:
    x().gather([0, 3, -4], axis=1)  # here


@says(bg.IndexOutOfBoundsError, "GatherND(): indices must be in [-3, 3) on axis 1, got -4 at position [1, 1]")
def a_constant_component_outside() -> None:
    x().gather_nd([[0, 0], [1, -4]])  # here


@says(
    bg.IndexOutOfBoundsError,
    "Scatter(mode=ScatterMode.ADD, axis=0): indices must be in [-2, 2) on axis 0, got 2 at position [0]",
)
def a_constant_scatter_index_outside() -> None:
    x().scatter([[1.0, 1.0, 1.0]], [2], bg.ScatterMode.ADD, axis=0)  # here


@says(bg.ShapeError, "Gather(axis=0, out_of_bounds='clip'): axis 0 must have an element to clip indices to, got size 0")
def nothing_to_clip_to() -> None:
    x([0, 3]).gather([0], axis=0, out_of_bounds="clip")  # here


@says(
    bg.ShapeError,
    "Scatter(mode=ScatterMode.ADD, axis=0): updates must have shape D[:axis] + I + D[axis+1:] = [2, 3], got [3]",
    "x        float32[2, 3]",
    "updates  float32[3]",
    "indices  int32[2]",
)
def updates_of_another_shape() -> None:
    x().scatter([1.0, 2.0, 3.0], [0, 1], bg.ScatterMode.ADD, axis=0)  # here


@says(bg.ParameterError, "mode must be a ScatterMode, such as ScatterMode.ADD, got 'add'")
def a_scatter_mode_by_name() -> None:
    x().scatter([[1.0, 1.0, 1.0]], [0], "add", axis=0)  # here # pyright: ignore[reportArgumentType]


@says(
    bg.DTypeError,
    "Scatter(mode=ScatterMode.DIVIDE, axis=0): x must be of a float type to divide, got int32; write .cast(to=Float32) first",
)
def a_scattered_quotient_of_integers() -> None:
    x([3], bg.Int32).scatter([1], [0], bg.ScatterMode.DIVIDE, axis=0)  # here


@says(bg.ParameterError, "out_of_bounds: the value of fill must be one int32, got 1.5")
def a_fill_of_another_kind() -> None:
    x(dtype=bg.Int32).gather([0], axis=0, out_of_bounds=bg.fill(1.5))  # here


@says(bg.ParameterError, "out_of_bounds: the value of fill must be one uint8, got 256")
def a_fill_that_does_not_fit() -> None:
    x(dtype=bg.UInt8).gather([0], axis=0, out_of_bounds=bg.fill(256))  # here


@says(bg.ParameterError, "out_of_bounds: the value of fill must be one float16, got 100000.0")
def a_fill_that_would_become_infinite() -> None:
    x(dtype=bg.Float16).gather([0], axis=0, out_of_bounds=bg.fill(1e5))  # here


@says(bg.ParameterError, "out_of_bounds: the value of fill must be one bool, got 0")
def a_number_to_fill_a_mask() -> None:
    x(dtype=bg.Bool).gather([0], axis=0, out_of_bounds=bg.fill(0))  # here


@says(bg.ParameterError, "out_of_bounds: the value of fill must be one float32, got 'nan'")
def a_fill_that_is_no_number() -> None:
    x().gather([0], axis=0, out_of_bounds=bg.fill("nan"))  # here # pyright: ignore[reportArgumentType]


@says(bg.ParameterError, "out_of_bounds must be one of 'raise', 'clip', 'unchecked', bnnsgraph.fill(value), got 'drop'")
def a_gather_that_drops() -> None:
    x().gather([0], axis=0, out_of_bounds="drop")  # here


@says(bg.ParameterError, "out_of_bounds must be one of 'raise', 'clip', 'unchecked', bnnsgraph.fill(value), got 'wrap'")
def an_unknown_out_of_bounds_mode() -> None:
    x().gather([0], axis=0, out_of_bounds="wrap")  # here # pyright: ignore[reportArgumentType]


@says(bg.ParameterError, "out_of_bounds must be 'raise', 'clip', 'drop' or 'unchecked' for a scatter, got fill(0)")
def a_scatter_that_fills() -> None:
    x().scatter([[1.0, 1.0, 1.0]], [0], bg.ScatterMode.ADD, axis=0, out_of_bounds=bg.fill(0))  # here


# Tensors used where they do not belong


@says(bg.ForeignTensorError, "a tensor must be used with the builder that made it, got float32[2, 3] of another builder")
def a_tensor_of_another_builder() -> None:
    x() + x()  # here


@says(bg.ForeignTensorError, "a tensor must be used with the builder that made it, got int32[2] of another builder")
def indices_of_another_builder() -> None:
    x().gather(x([2], bg.Int32), axis=0)  # here


@says(bg.ForeignTensorError, "a tensor must be used with the builder that made it, got float32[3] of another builder")
def a_result_of_another_builder() -> None:
    other = x([3])
    bg.make_context(lambda builder: other)  # here


@says(
    bg.ForeignTensorError,
    "Add(): the builder must still be recording, but its block ended at test_errors.py:",
)
def a_tensor_used_after_its_block_ended() -> None:
    kept: list[bg.Tensor[Any]] = []

    def block(builder: bg.Builder) -> bg.Tensor[Any]:
        kept.append(builder.argument("x", bg.Float32, shape=[3]))
        return kept[0] * 2

    bg.make_context(block)
    kept[0] + kept[0]  # here


@says(bg.ForeignTensorError, "Argument('y'): ")
def a_builder_used_after_its_block_ended() -> None:
    builder = bg.Builder()
    builder.finish(builder.argument("x", bg.Float32, shape=[3]))
    builder.argument("y", bg.Float32, shape=[3])  # here


def undefined(what: str, remedy: str) -> tuple[type[bg.GraphError], str]:
    return (
        bg.UndefinedValueError,
        f"{what}: a tensor must have a value for this, got float32[2, 3] that is only recorded; {remedy}",
    )


RESULT = "return the tensor from the block and read the context's result"


@says(*undefined("bool(tensor)", "compare with tensor operations and choose with mask.select(a, b)"))
def truth() -> None:
    if x():  # here # pyright: ignore
        pass


@says(*undefined("len(tensor)", "read tensor.shape[0]"))
def length() -> None:
    len(x())  # here


@says(*undefined("iterating over a tensor", "index it: tensor[0], tensor[1], ..."))
def iteration() -> None:
    for _ in x():  # here # pyright: ignore
        pass


@says(*undefined("float(tensor)", RESULT))
def a_float_of_a_tensor() -> None:
    float(x())  # here


@says(*undefined("int(tensor)", RESULT))
def an_int_of_a_tensor() -> None:
    int(x())  # here


@says(*undefined("using a tensor as a Python index", "use tensor.gather(indices, axis)"))
def a_list_indexed_by_a_tensor() -> None:
    [1, 2, 3][x()]  # here


@says(*undefined("numpy.asarray(tensor)", RESULT))
def numpy_of_a_tensor() -> None:
    np.asarray(x())  # here


@says(*undefined("numpy.asarray(tensor)", RESULT))
def a_numpy_function_of_a_tensor() -> None:
    np.sum(np.array(x()))  # here


# What a block returns

NOTHING = "the block must return a tensor, several, or a dictionary of them, got nothing; is a return missing?"


@says(bg.UnableToMakeGraphError, NOTHING)
def a_block_without_return() -> None:
    def block(builder: bg.Builder) -> Any:
        builder.argument("x", bg.Float32, shape=[3]) * 2

    bg.make_context(block)  # here


@says(bg.UnableToMakeGraphError, NOTHING)
def a_block_that_returns_an_empty_list() -> None:
    bg.make_context(lambda builder: [])  # here


@says(bg.UnableToMakeGraphError, "the block must return tensors, got int (3)")
def a_block_that_returns_a_number() -> None:
    bg.make_context(lambda builder: 3)  # here # pyright: ignore


@says(bg.UnableToMakeGraphError, "the block must return tensors, got float (1.5)")
def a_block_that_returns_numbers_among_tensors() -> None:
    bg.make_context(lambda builder: [builder.argument("x", bg.Float32), 1.5])  # here # pyright: ignore


@says(bg.UnableToMakeGraphError, "the block must return tensors, got ndarray (array([1., 1.]))")
def a_block_that_returns_an_array() -> None:
    bg.make_context(lambda builder: np.ones(2))  # here # pyright: ignore


@says(bg.UnableToMakeGraphError, "the name of an output must be a Python identifier without a leading underscore, got 'a b'")
def an_output_with_a_bad_name() -> None:
    bg.make_context(lambda builder: {"a b": builder.argument("x", bg.Float32)})  # here


@says(bg.UnableToMakeGraphError, "the name of an output must be a Python identifier without a leading underscore, got 0")
def an_output_named_by_a_number() -> None:
    bg.make_context(lambda builder: {0: builder.argument("x", bg.Float32)})  # here # pyright: ignore


@says(bg.UnableToMakeGraphError, "names of outputs must differ from each other and from the arguments', got 'x'")
def an_output_named_as_an_argument() -> None:
    bg.make_context(lambda builder: {"x": builder.argument("x", bg.Float32) + 1})  # here


@says(bg.UnableToMakeGraphError, "names of outputs must differ from each other and from the arguments', got 'twice'")
def two_outputs_of_one_name() -> None:
    def block(builder: bg.Builder) -> Any:
        data = builder.argument("x", bg.Float32)
        return [(data * 2).named("twice"), (data + data).named("twice")]

    bg.make_context(block)  # here


@says(bg.UnableToMakeGraphError, "the name of an output must be a Python identifier without a leading underscore, got 'class'")
def an_output_named_by_a_keyword() -> None:
    bg.make_context(lambda b: [b.argument("x", bg.Float32).named("y") * 2, (b.constant(value=1.0) + 1).named("class")])  # here


@says(bg.UnableToMakeGraphError, "the name of an output must be a Python identifier without a leading underscore, got '_y'")
def an_output_with_a_leading_underscore() -> None:
    bg.make_context(lambda b: {"_y": b.argument("x", bg.Float32) * 2, "z": b.constant(value=1.0)})  # here


@says(bg.ShapeError, "in-out argument 'state' must keep its type, float32[3], got float32[2]")
def an_in_out_argument_that_changes_its_shape() -> None:
    def block(builder: bg.Builder) -> Any:
        state = builder.argument("state", bg.Float32, shape=[3], intent=bg.Intent.INPUT_OUTPUT)
        state._value = state[:2]._value
        return state.sum(None)

    bg.make_context(block)  # here


# Arguments and constants


@says(bg.ArgumentError, "names of arguments must differ, got 'x' twice", "first declared at test_errors.py:")
def an_argument_declared_twice() -> None:
    builder = bg.Builder()
    builder.argument("x", bg.Float32)
    builder.argument("x", bg.Int32)  # here


@says(bg.ArgumentError, "the name of an argument must be a Python identifier, got 'my input'")
def an_argument_with_a_bad_name() -> None:
    bg.Builder().argument("my input", bg.Float32)  # here


@says(bg.ArgumentError, "the name of an argument must be a Python identifier, got <class 'bnnsgraph.dtypes.Float32'>")
def a_dtype_in_the_place_of_the_name() -> None:
    bg.Builder().argument(bg.Float32, shape=[3])  # here # pyright: ignore


@says(bg.ArgumentError, "the name of an argument must be a Python identifier, got 'lambda'")
def an_argument_named_by_a_keyword() -> None:
    bg.Builder().argument("lambda", bg.Float32)  # here


@says(bg.ParameterError, "intent must be Intent.INPUT or Intent.INPUT_OUTPUT, got 'output'")
def an_unknown_intent() -> None:
    bg.Builder().argument("x", bg.Float32, intent="output")  # here # pyright: ignore


@says(bg.ShapeError, "shape must be a sequence of sizes such as [2, 3], got 3")
def a_shape_that_is_a_number() -> None:
    bg.Builder().argument("x", bg.Float32, shape=3)  # here # pyright: ignore


@says(bg.ShapeError, "a dimension must be at least 0, or -1 for a flexible one, got -2")
def a_negative_size() -> None:
    bg.Builder().argument("x", bg.Float32, shape=[-2])  # here


@says(bg.ShapeError, "a dimension must be an integer or a name, got 2.0")
def a_fractional_size() -> None:
    bg.Builder().argument("x", bg.Float32, shape=[2.0])  # here


@says(bg.ParameterError, "a named dimension must be a Python identifier such as 'batch', got 'two words'")
def a_badly_named_size() -> None:
    bg.Builder().argument("x", bg.Float32, shape=["two words"])  # here


@says(bg.ShapeError, "values must be a number or rows of equal length, got [[1, 2], [3]]")
def rows_of_two_lengths() -> None:
    bg.Builder().constant(values=[[1, 2], [3]])  # here


@says(bg.DTypeError, "values must be integers to be used with a int32 tensor, got float64; cast the tensor: .cast(to=Float32)")
def a_fractional_integer_constant() -> None:
    bg.Builder().constant(values=[1, 2.5], data_type=bg.Int32)  # here


@says(bg.DTypeError, "values must fit uint8, [0, 255], got 300")
def a_constant_that_does_not_fit() -> None:
    bg.Builder().constant(values=[1, 300], data_type=bg.UInt8)  # here


@says(bg.DTypeError, "values must fit int32, [-2147483648, 2147483647], got 1099511627776")
def a_large_python_integer() -> None:
    bg.Builder().constant(value=2**40)  # here


@says(bg.DTypeError, "values must fit float32, got 1e+300, which would become infinite")
def a_constant_that_would_become_infinite() -> None:
    bg.Builder().constant(value=1e300)  # here


@says(bg.ShapeError, "shape must hold the 3 values, got [2, 2] with 4")
def values_that_do_not_fill_their_shape() -> None:
    bg.Builder().constant(values=[1, 2, 3], shape=[2, 2])  # here


@says(bg.ShapeError, "the shape of a constant must be fixed, got [-1]")
def a_flexible_constant() -> None:
    bg.Builder().constant(values=[1, 2, 3], shape=[-1])  # here


@says(bg.ShapeError, "value must be one number, got an array of shape [2]; write values=")
def several_values_for_one() -> None:
    bg.Builder().constant(value=[1, 2])  # here


@says(bg.ParameterError, "constant must be given value= (one number) or values= (an array), and not both")
def a_constant_without_values() -> None:
    bg.Builder().constant("c")  # here


@says(bg.DTypeError, "values must be numbers or an array, got a tensor, which can be used as it is")
def a_constant_of_a_tensor() -> None:
    builder = bg.Builder()
    builder.constant(values=builder.argument("x", bg.Float32))  # here # pyright: ignore


@says(bg.DTypeError, "values must be numbers, got 'three'")
def a_constant_of_text() -> None:
    bg.Builder().constant(value="three")  # here


@says(bg.DTypeError, "values must be numbers that fit float32, got [1, None]")
def a_hole_in_an_operand() -> None:
    x([2]) * [1, None]  # here # pyright: ignore


# Options


@says(
    bg.ParameterError, "CompileOptions.out_of_bounds must be 'raise', 'clip', 'unchecked' or bnnsgraph.fill(value), got 'drop'"
)
def options_with_an_unknown_mode() -> None:
    bg.CompileOptions(out_of_bounds="drop")  # here


@says(bg.ParameterError, "CompileOptions.negative_indices must be 'from_end' or 'out_of_bounds', got True")
def options_with_an_unknown_rule() -> None:
    bg.CompileOptions(negative_indices=True)  # here # pyright: ignore[reportArgumentType]


@says(bg.ParameterError, "CompileOptions.use_single_thread must be True or False, got 1")
def options_with_a_number_for_a_flag() -> None:
    bg.CompileOptions(use_single_thread=1)  # here # pyright: ignore[reportArgumentType]


@says(bg.ParameterError, "CompileOptions.optimization_preference must be an OptimizationPreference, got 'performance'")
def options_with_a_preference_by_name() -> None:
    bg.CompileOptions(optimization_preference="performance")  # here # pyright: ignore[reportArgumentType]


@says(bg.ParameterError, "out_of_bounds: the value of fill must be one int32, got 0.5")
def a_fill_of_the_options_that_does_not_fit_a_gather() -> None:
    @bg.make_context(options=bg.CompileOptions(out_of_bounds=bg.fill(0.5)))
    def _(builder: bg.Builder) -> Any:
        return builder.argument("x", bg.Int32, shape=[3]).gather([0], axis=0)  # here


# Running


@says(bg.ArgumentError, "every argument must be given, got none for y")
def a_missing_argument() -> None:
    context()(np.zeros(3, np.float32))  # here


@says(bg.ArgumentError, "the name of an argument must be one of x, y, got 'z'")
def an_unknown_argument() -> None:
    context()(x=np.zeros(3, np.float32), z=np.zeros(3, np.float32))  # here


@says(bg.ArgumentError, "argument 'x' must be given once, got it by position and by name")
def an_argument_given_twice() -> None:
    context()(np.zeros(3, np.float32), x=np.zeros(3, np.float32))  # here


@says(bg.ArgumentError, "the graph must be given 2 arguments (x, y), got 3")
def too_many_arguments() -> None:
    context()(1, 2, 3)  # here


@says(
    bg.DTypeError, "argument 'y' must be of dtype float32, got int32; pass y.astype('float32')", "declared at test_errors.py:"
)
def an_array_of_another_dtype() -> None:
    context()(np.zeros(3, np.float32), np.zeros(3, np.int32))  # here


@says(bg.ShapeError, "argument 'x' must have shape [3], got [4]", "declared at test_errors.py:")
def an_array_of_another_shape() -> None:
    context()(np.zeros(4, np.float32), np.zeros(4, np.float32))  # here


@says(bg.ShapeError, "argument 'y' must have rank 1, [3], got rank 2, [1, 3]", "declared at test_errors.py:")
def an_array_of_another_rank() -> None:
    context()(np.zeros(3, np.float32), np.zeros((1, 3), np.float32))  # here


@says(bg.ShapeError, "argument 'y': size n must be 3, as in 'x', got 2 on axis 0", "declared at test_errors.py:")
def two_sizes_for_one_name() -> None:
    context(["n"])(np.zeros(3, np.float32), np.zeros(2, np.float32))  # here


@says(
    bg.DTypeError, "argument 'x': values must be integers to be used with a int32 tensor, got float64; cast the tensor: .cast"
)
def a_fractional_list_for_integers() -> None:
    context(dtype=bg.Int32)([1, 2, 2.5], [1, 2, 3])  # here


@says(bg.DTypeError, "argument 'x': values must be numbers that fit float32, got 'three'")
def text_for_an_argument() -> None:
    context(())("three", 1.0)  # here


@says(
    bg.IndexOutOfBoundsError,
    "Gather(axis=0): indices must be in [-4, 4) on axis 0, got 4 at position [1]",
    "recorded at test_errors.py:",
)
def a_run_time_index_outside() -> None:
    @bg.make_context
    def rows(builder: bg.Builder) -> bg.Tensor[Any]:
        table = builder.argument("table", bg.Float32, shape=[4, 2])
        return table.gather(builder.argument("rows", bg.Int32, shape=[-1]), axis=0)  # recorded

    rows(np.zeros((4, 2), np.float32), np.array([0, 4], np.int32))  # here


@says(
    bg.ShapeError,
    "Add(): shapes must broadcast (trailing sizes equal, or 1), got [3] and [2]: 3 against 2",
    "x  float32[3]  made at test_errors.py:",
    "recorded at test_errors.py:",
)
def sizes_that_a_rule_refuses_when_they_are_known() -> None:
    @bg.make_context
    def total(builder: bg.Builder) -> bg.Tensor[Any]:
        first = builder.argument("first", bg.Float32, shape=[-1])
        return first + builder.argument("second", bg.Float32, shape=[-1])  # recorded

    total(np.zeros(3, np.float32), np.zeros(2, np.float32))  # here


@says(bg.DTypeError, "argument 'x' must be of dtype float32, got int32; pass x.astype('float32')")
def an_array_of_another_dtype_for_the_pure_function() -> None:
    pure = context().function
    jax.jit(pure)(np.zeros(3, np.int32), np.zeros(3, np.float32))  # here


@says(
    bg.ShapeError,
    "Slice[:3]: the result must have shape [3] for these sizes, got [2]",
    "recorded at test_errors.py:",
)
def sizes_that_a_rule_refuses_in_the_pure_function() -> None:
    @bg.make_context
    def start(builder: bg.Builder) -> bg.Tensor[Any]:
        return builder.argument("x", bg.Float32, shape=["n"])[:3]  # recorded

    jax.vmap(start.function)(np.zeros((5, 2), np.float32))  # here


# Apple's argument surface


@says(bg.ArgumentError, "arguments must be 3 arrays (output_0, x, y), got 2")
def too_few_arrays_to_execute() -> None:
    context().execute_function([np.zeros(3, np.float32), np.zeros(3, np.float32)])  # here


@says(bg.ArgumentError, "arguments must be named output_0, x, y, got output, x, y")
def arrays_to_execute_with_wrong_names() -> None:
    zeros = np.zeros(3, np.float32)
    context().execute_function({"output": zeros, "x": zeros, "y": zeros})  # here


@says(bg.ArgumentError, "output 'output_0' must be a NumPy array that can be written to, got a read-only array")
def a_read_only_output() -> None:
    zeros, output = np.zeros(3, np.float32), np.zeros(3, np.float32)
    output.flags.writeable = False
    context().execute_function([output, zeros, zeros])  # here


@says(bg.ArgumentError, "output 'output_0' must be a NumPy array that can be written to, got list")
def an_output_that_is_a_list() -> None:
    zeros = np.zeros(3, np.float32)
    context().execute_function([[0, 0, 0], zeros, zeros])  # here


@says(bg.ArgumentError, "output 'output_0' must be a NumPy array that can be written to, got ")
def an_output_that_is_a_jax_array() -> None:
    zeros = np.zeros(3, np.float32)
    context().execute_function([jax.numpy.zeros(3), zeros, zeros])  # here


@says(bg.ShapeError, "output 'output_0' must have shape [3], got [4]")
def an_output_of_another_size() -> None:
    zeros = np.zeros(3, np.float32)
    context().execute_function([np.zeros(4, np.float32), zeros, zeros])  # here


@says(bg.DTypeError, "output 'output_0' must be of dtype float32, got float64")
def an_output_of_another_dtype() -> None:
    zeros = np.zeros(3, np.float32)
    context().execute_function([np.zeros(3), zeros, zeros])  # here


@says(bg.ArgumentError, "the name of an argument must be one of output_0, x, y, got 'z'")
def the_position_of_an_unknown_argument() -> None:
    context().argument_position("z")  # here


@says(bg.ArgumentError, "the name of a function must be 'main', got 'other'")
def an_unknown_function() -> None:
    context().argument_names("other")  # here


@says(
    bg.ShapeError,
    "the sizes of 'x' must be known to allocate it, got [-1]; call set_batch_size or set_dynamic_shapes first",
)
def memory_for_an_unknown_size() -> None:
    context([-1]).allocate_tensor("x")  # here


@says(
    bg.UnableToSetDynamicShapesError,
    "set_batch_size: flexible sizes must be first axes, got [2, -1] for 'x'; call set_dynamic_shapes",
    "declared at test_errors.py:",
)
def a_batch_size_for_another_axis() -> None:
    context([2, -1]).set_batch_size(3)  # here


@says(bg.ParameterError, "batch_size must be an integer, got 2.0")
def a_fractional_batch_size() -> None:
    context([-1]).set_batch_size(2.0)  # here # pyright: ignore[reportArgumentType]


@says(bg.UnableToSetDynamicShapesError, "set_dynamic_shapes must be given 3 shapes (output_0, x, y), got 1")
def too_few_dynamic_shapes() -> None:
    context(["n"]).set_dynamic_shapes([[3]])  # here


@says(bg.UnableToSetDynamicShapesError, "argument 'y': size n must be 3, as in 'x', got 4 on axis 0")
def dynamic_shapes_that_disagree() -> None:
    context(["n"]).set_dynamic_shapes([[], [3], [4]])  # here


@says(bg.UnableToSetDynamicShapesError, "argument 'x' must have shape [n, 3], got [5, 4]")
def a_dynamic_shape_against_the_declaration() -> None:
    context(["n", 3]).set_dynamic_shapes([[], [5, 4], [5, 3]])  # here


@says(bg.UnableToSetDynamicShapesError, "output 'output_0' must have shape [3] for these inputs, got [4]")
def a_dynamic_shape_against_the_rules() -> None:
    context(["n"]).set_dynamic_shapes([[4], [3], []])  # here


@says(bg.UnableToSetDynamicShapesError, "the sizes of 'x' must be given, got [-1]", "declared at test_errors.py:")
def a_dynamic_shape_that_nothing_tells() -> None:
    context([-1]).set_dynamic_shapes([[], [], [3]])  # here


# Results that are not finite


@says(
    bg.NotFiniteError, "Divide(): the result must be finite while check_for_nans_and_infinities is on, got a NaN or an infinity"
)
def a_quotient_by_zero_while_it_is_looked_for() -> None:
    @bg.make_context
    def quotient(builder: bg.Builder) -> bg.Tensor[Any]:
        return builder.argument("x", bg.Float32, shape=[2]) / builder.argument("y", bg.Float32, shape=[2])  # recorded

    quotient.check_for_nans_and_infinities = True
    quotient(np.ones(2, np.float32), np.zeros(2, np.float32))  # here


# Files


@says(bg.FileFormatError, f"{__file__}: the header must fit the file, ")
def a_file_that_holds_no_graph() -> None:
    bg.load(__file__)  # here


# Other languages


@says(
    bg.UnsupportedOpsError,
    "to_swift: every operation must exist in Apple's builder, got 2 without a counterpart",
    "Argument('x'): Apple's builder has no element type Float64; recorded at test_errors.py:",
    "Constant(1.0): Apple's builder has no element type Float64; recorded at test_errors.py:",
)
def a_graph_of_types_that_apple_lacks() -> None:
    graph = bg.make_context(lambda b: b.argument("x", bg.Float64) + 1).graph
    graph.to_swift()  # here


PARENTS: dict[type[bg.GraphError], type[Exception]] = {
    bg.ShapeError: ValueError,
    bg.DTypeError: TypeError,
    bg.ParameterError: ValueError,
    bg.IndexOutOfBoundsError: IndexError,
    bg.ForeignTensorError: ValueError,
    bg.UndefinedValueError: TypeError,
    bg.UnableToMakeGraphError: ValueError,
    bg.ArgumentError: TypeError,
    bg.UnableToSetDynamicShapesError: bg.ShapeError,
    bg.FileFormatError: ValueError,
    bg.MissingDependencyError: ImportError,
    bg.NotFiniteError: ArithmeticError,
    bg.UnsupportedOpsError: NotImplementedError,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.program.__name__)
def test_message(case: Case) -> None:
    with pytest.raises(bg.GraphError) as caught:
        case.program()
    error = caught.value
    lines = str(error).splitlines()
    assert type(error) is case.kind
    assert lines[0].startswith(case.first)
    for detail in case.details:
        assert any(line.startswith("  " + detail) for line in lines[1:]), f"{detail!r} is not among {lines[1:]}"
    here = marked(case.program, "# here")
    assert here is not None
    number, text = here
    assert lines[-1].startswith(f"  at test_errors.py:{number} (")
    assert lines[-1].endswith(f"):  {text}")
    recorded = marked(case.program, "# recorded")
    if recorded is not None:
        assert any(f"recorded at test_errors.py:{recorded[0]} (" in line and line.endswith(recorded[1]) for line in lines)
    assert not [word for word in ("jax", "xla", "stablehlo", "tracer") if word in lines[0].lower()]


def test_every_public_error_has_a_message_here_and_a_parent_of_python() -> None:
    public = {value for value in vars(bg).values() if isinstance(value, type) and issubclass(value, bg.GraphError)}
    public.remove(bg.GraphError)
    assert public == PARENTS.keys()
    shown = {case.kind for case in CASES} | {bg.MissingDependencyError}  # below
    assert shown == public
    for kind, parent in PARENTS.items():
        assert issubclass(kind, parent)


def test_an_error_says_what_it_is_made_of() -> None:
    with pytest.raises(bg.ShapeError) as caught:
        x().sum([5])
    error = caught.value
    assert error.reason == "ReduceSum(axes=(5,)): axes must be in [-2, 2), got 5"
    assert [detail.split("  made")[0] for detail in error.details] == ["x  float32[2, 3]"]
    assert error.origin.file == __file__
    assert error.origin.function == "test_an_error_says_what_it_is_made_of"
    assert error.origin.text == "x().sum([5])"


def test_a_missing_package_is_told_with_the_extra_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(bg.MissingDependencyError) as caught:
        demo.load_model()
    assert str(caught.value).splitlines()[0] == (
        'the demo must have its word vectors, got no wordllama, safetensors, tokenizers; run: pip install "bnnsgraph[demo]"'
    )


# Notebooks

CELL = """import bnnsgraph as bg
x = bg.Builder().argument("x", bg.Float32, shape=[2, 3])
y = x.sum([5])
"""


@pytest.fixture(params=["/tmp/ipykernel_4711/3405691582.py", "<ipython-input-3-cafebabe>"])
def cell(request: pytest.FixtureRequest) -> Iterator[str]:
    """The file name under which a notebook compiles a cell, with the source where tracebacks find it."""
    name = str(request.param)
    register(name, CELL)
    yield name
    del linecache.cache[name]


def register(name: Any, source: Any) -> None:
    """Put the source where tracebacks find it, as a notebook does."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)


def test_an_error_in_a_notebook_names_the_line_of_the_cell(cell: str) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    with pytest.raises(bg.ShapeError) as caught:
        exec(compile(CELL, cell, "exec"), names)
    assert str(caught.value).splitlines() == [
        "ReduceSum(axes=(5,)): axes must be in [-2, 2), got 5",
        "  x  float32[2, 3]  made at notebook cell:2 (<module>)",
        "  at notebook cell:3 (<module>):  y = x.sum([5])",
    ]
    assert repr(names["x"]) == "x: float32[2, 3] Argument  notebook cell:2"


def test_a_failed_run_in_a_notebook_names_both_lines() -> None:
    name = "/tmp/ipykernel_4711/1.py"
    source = (
        "import numpy as np, bnnsgraph as bg\n"
        "@bg.make_context\n"
        "def rows(builder):\n"
        "    table = builder.argument('table', bg.Float32, shape=[4])\n"
        "    return table.gather(builder.argument('i', bg.Int32, shape=[1]), axis=0)\n"
        "rows(np.zeros(4, np.float32), np.array([9], np.int32))\n"
    )
    register(name, source)
    try:
        with pytest.raises(bg.IndexOutOfBoundsError) as caught:
            exec(compile(source, name, "exec"), {"__name__": "__main__"})
        assert str(caught.value).splitlines() == [
            "Gather(axis=0): indices must be in [-4, 4) on axis 0, got 9 at position [0]",
            "  recorded at notebook cell:5 (rows):  return table.gather(builder.argument('i', bg.Int32, shape=[1]), axis=0)",
            "  at notebook cell:6 (<module>):  rows(np.zeros(4, np.float32), np.array([9], np.int32))",
        ]
    finally:
        del linecache.cache[name]


def test_a_program_from_a_file_is_named_by_its_file(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(CELL)
    with pytest.raises(bg.ShapeError, match=r"at model\.py:3 \(<module>\):  y = x\.sum\(\[5\]\)"):
        exec(compile(CELL, str(path), "exec"), {"__name__": "__main__"})
