"""What gathers and scatters share: the rules of their shapes, and how they are recorded."""

from __future__ import annotations

from typing import Any, TypeAlias, TypedDict, cast

from bnnsgraph.dtypes import Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64
from bnnsgraph.errors import GraphError, ShapeError
from bnnsgraph.graph import Constant, located
from bnnsgraph.handle import ArrayLike, Handle, as_array, own, own_copy
from bnnsgraph.indices import IndexOp, choose_mode, index_array, settle
from bnnsgraph.options import NegativeIndices, OutOfBounds
from bnnsgraph.spec import Shape, TensorSpec, format_shape, require_equal_size

Indices: TypeAlias = (
    Handle[Int8] | Handle[Int16] | Handle[Int32] | Handle[Int64]
    | Handle[UInt8] | Handle[UInt16] | Handle[UInt32] | Handle[UInt64]
    | ArrayLike
)  # fmt: skip
"""A tensor of any integer type, or integers that become a constant."""


def batch_sizes(x: Shape, indices: Shape, count: int) -> Shape:
    """The sizes of the shared leading axes, which must be equal and are never broadcast."""
    return tuple(
        require_equal_size(x[axis], indices[axis], f"batch sizes of x and indices on axis {axis}") for axis in range(count)
    )


def along_axis_shape(x: Shape, indices: Shape, axis: int, name: str) -> Shape:
    """The shape of an array that runs along ``axis`` of ``x`` and equals it elsewhere."""
    if len(indices) != len(x):
        raise ShapeError(f"{name} must have the rank of x, {len(x)}, got {len(indices)}")
    return tuple(
        size if other == axis else require_equal_size(x[other], size, f"sizes of x and {name} on axis {other}")
        for other, size in enumerate(indices)
    )


def nd_depth(x: Shape, indices: Shape, batch: int) -> int:
    """How many axes each index vector addresses: the last size of the indices."""
    if not indices:
        raise ShapeError("indices must have rank 1 or more, its last axis holding the index vectors, got rank 0")
    limit = max(1, min(len(x), len(indices)))
    if not 0 <= batch < limit:
        raise ShapeError(f"batch_dimension_count must be in [0, {limit}), below the ranks of x and indices, got {batch}")
    depth = indices[-1]
    if not isinstance(depth, int):
        raise ShapeError(f"indices must have a fixed last size, got {format_shape(indices)}")
    if batch + depth > len(x):
        raise ShapeError(
            f"the last size of indices must be in [0, {len(x) - batch}], the axes of x it can address, got {depth}"
        )
    return depth


class IndexRule(TypedDict):
    """What an operation does with negative and missing indices."""

    out_of_bounds: OutOfBounds
    negative_indices: NegativeIndices


def index_rule(x: Handle[Any], out_of_bounds: OutOfBounds | None, *, scatter: bool) -> IndexRule:
    """The index rule of one call: the caller's mode, or the graph's options."""
    options = x._recorder.options  # pyright: ignore[reportPrivateUsage]
    mode = choose_mode(out_of_bounds, options, x.data_type, scatter=scatter)
    return {"out_of_bounds": mode, "negative_indices": options.negative_indices}


def emit_indexed(x: Handle[Any], op: IndexOp, indices: object, *updates: object) -> Any:
    """Record an index operation on ``x``; constant indices are checked here, at the user's line."""
    recorder = x._recorder  # pyright: ignore[reportPrivateUsage]
    if isinstance(indices, Handle):
        value = own(recorder, cast("Handle[Any]", indices))
    else:
        array, dtype = index_array(as_array(indices))
        array = own_copy(array, needed=array is indices)
        value = recorder.record(Constant(array, TensorSpec(dtype, array.shape)))[0]
    operands = [x._enter(update) for update in updates]  # pyright: ignore[reportPrivateUsage]
    subject = x._value  # pyright: ignore[reportPrivateUsage]
    result = recorder.record(op, (subject, *operands, value))
    if isinstance(value.node.op, Constant):
        try:
            settled, counted = settle(recorder, op, subject, value)
        except GraphError as error:
            raise located(error, op, (subject, *operands, value)) from None
        if settled is not op or counted is not value:
            result = recorder.record(settled, (subject, *operands, counted))
    return x._wrap(result[0])  # pyright: ignore[reportPrivateUsage]
