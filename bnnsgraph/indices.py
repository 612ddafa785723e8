"""The one index rule, shared by every gather and scatter.

An index of an axis of size n is valid in [-n, n) and counts from the end when negative (in [0, n) where the options say so).
Indices of any integer dtype are widened before any arithmetic, so that neither the dtype nor the table's size changes an
answer. Each function takes the sizes of the addressed axes: one, or one for each component of the last axis of ``indices``
(``gather_nd``, ``scatter_nd``).
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict

import numpy as np

from bnnsgraph.dtypes import Bool, DType, Floating, Int32, Int64, Integer, as_dtype, is_signed
from bnnsgraph.errors import DTypeError, IndexOutOfBoundsError, ParameterError, ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import CheckedOp, Constant, Recorder, Value
from bnnsgraph.options import CompileOptions, Fill, NegativeIndices, OutOfBounds
from bnnsgraph.spec import Dimension, Shape, TensorSpec, is_static
from bnnsgraph.xla import UNROLLING, by_platform, jnp, lax

if TYPE_CHECKING:
    import jax

INT32_MAX = 2**31 - 1
MANY, COLUMNS = 1 << 13, 32
"""From so many indices on their check is made by columns, on the CPU."""


@frozen
class IndexOp(CheckedOp):
    """An operation that addresses axes of its first operand by the integers of its last."""

    out_of_bounds: OutOfBounds = field(default="raise", kw_only=True)
    negative_indices: NegativeIndices = field(default="from_end", kw_only=True)

    error: ClassVar[type[IndexOutOfBoundsError]] = IndexOutOfBoundsError

    def addressed(self, x: Shape, indices: Shape) -> tuple[int, ...]:
        """The axes of ``x`` that the indices address, in the order of their components."""
        raise NotImplementedError

    @property
    def needs_check(self) -> bool:
        return self.out_of_bounds == "raise"

    def assume_checked(self) -> Self:
        return replace(self, out_of_bounds="unchecked")

    def assume_in_range(self) -> Self:
        """The operation for indices that are inside their axes and count from the front."""
        return replace(self, out_of_bounds="unchecked", negative_indices="out_of_bounds")

    def sizes(self, x: Any, indices: Any) -> tuple[Any, ...]:
        """Sizes of the addressed axes of an array or spec."""
        return tuple(x.shape[axis] for axis in self.addressed(x.shape, indices.shape))

    def failed(self, *operands: jax.Array) -> jax.Array:
        x, indices = operands[0], operands[-1]
        sizes = self.sizes(x, indices)
        if not sizes:  # index vectors without components address whole tensors, which always exist
            return jnp.zeros((), bool)
        indices, limit = _widened(indices, sizes)
        from_end = _from_end(indices, self.negative_indices)

        def outside(indices: jax.Array, limit: Any) -> jax.Array:
            return ~_inside(indices, limit, -limit if from_end else None)

        def by_columns(indices: jax.Array) -> jax.Array:
            """As LLVM vectorises it: bytes, a row of them at a time."""
            bits = outside(indices.reshape(-1, COLUMNS), limit).astype(jnp.int8)
            return jnp.any(lax.reduce(bits, np.int8(0), lax.max, (0,)) != 0)

        def by_elements(indices: jax.Array) -> jax.Array:
            return jnp.any(outside(indices, limit))

        if len(sizes) > 1 or not _fills_columns(indices.shape):
            return by_elements(indices)
        return by_platform(indices, cpu=by_columns, default=by_elements)

    def explain(self, *operands: np.ndarray[Any, Any]) -> str:
        x, indices = operands[0], operands[-1]
        return describe_outside(indices, self.addressed(x.shape, indices.shape), self.sizes(x, indices), self.negative_indices)

    def require_indices(self, x: TensorSpec, indices: TensorSpec) -> None:
        """The part of the type rule that all index operations share; call it when ranks and axes are known to be right."""
        require_integer(indices.dtype)
        for axis in self.addressed(x.shape, indices.shape):
            if self.out_of_bounds == "clip" and x.shape[axis] == 0 and 0 not in indices.shape and is_static(indices.shape):
                raise ShapeError(f"axis {axis} must have an element to clip indices to, got size 0")


def require_integer(dtype: DType) -> None:
    """Refuse indices of another kind, by name."""
    if not issubclass(dtype, Integer):
        remedy = "to choose by a mask write mask.select(a, b)" if dtype is Bool else "write .cast(to=Int32) first"
        raise DTypeError(f"indices must be of an integer type, got {dtype.name}; {remedy}")


def choose_mode(given: OutOfBounds | None, options: CompileOptions, dtype: DType, *, scatter: bool) -> OutOfBounds:
    """The out-of-bounds mode of one call: the caller's, else the graph's. Raises if it makes no sense for the operation."""
    mode = options.out_of_bounds if given is None else given
    if isinstance(mode, Fill):
        if scatter:
            if given is not None:
                raise ParameterError(f"out_of_bounds must be 'raise', 'clip', 'drop' or 'unchecked' for a scatter, got {mode}")
            return "drop"
        _require_fill_value(mode, dtype)
        return mode
    allowed = ("raise", "clip", "drop", "unchecked") if scatter else ("raise", "clip", "unchecked")
    if mode not in allowed:
        last = "" if scatter else ", bnnsgraph.fill(value)"
        raise ParameterError(f"out_of_bounds must be one of {', '.join(map(repr, allowed))}{last}, got {mode!r}")
    return mode


def _require_fill_value(mode: Fill, dtype: DType) -> None:
    value = np.asarray(mode.value)
    kind = value.dtype.kind if value.ndim == 0 else "none"
    if issubclass(dtype, Floating):
        with np.errstate(over="ignore"):
            fits = kind in ("f", "i", "u", "V") and (np.isinf(value) or not np.isinf(value.astype(dtype.numpy)))
    elif issubclass(dtype, Integer):
        bounds = np.iinfo(dtype.numpy)
        fits = kind in ("i", "u") and bounds.min <= int(value) <= bounds.max
    else:
        fits = isinstance(mode.value, (bool, np.bool_))
    if not fits:
        raise ParameterError(f"out_of_bounds: the value of fill must be one {dtype.name}, got {mode.value!r}")


def missing_value(mode: OutOfBounds, dtype: Any) -> Any:
    """What a gathered element that does not exist becomes: the fill value, or one that cannot pass for data."""
    if isinstance(mode, Fill):
        return mode.value
    if jnp.issubdtype(dtype, jnp.floating):
        return float("nan")
    if jnp.issubdtype(dtype, jnp.integer):
        bounds = jnp.iinfo(dtype)
        return bounds.min if bounds.min < 0 else bounds.max
    return False


# Run-time indices


def _fills_columns(shape: Sequence[Any]) -> bool:
    """Whether so many indices are checked in half the time by columns: not where LLVM is told to unroll less."""
    count = math.prod(shape) if is_static(tuple(shape)) else 0
    return count >= MANY and count % COLUMNS == 0 and UNROLLING not in os.environ.get("XLA_FLAGS", "")


def _widened(indices: jax.Array, sizes: tuple[Any, ...]) -> tuple[jax.Array, Any]:
    """Indices in a dtype wide enough for their axes, and the sizes as they compare to them."""
    long = any(isinstance(size, int) and size > INT32_MAX for size in sizes)
    dtype = indices.dtype
    if dtype.itemsize < 4 or (dtype.itemsize == 4 and long):
        dtype = jnp.dtype("int64" if long else "int32")
    return indices.astype(dtype), _limits(sizes, dtype, indices.ndim)


def _from_end(indices: jax.Array, negative: NegativeIndices) -> bool:
    return negative == "from_end" and not jnp.issubdtype(indices.dtype, jnp.unsignedinteger)


def _counted(indices: jax.Array, sizes: tuple[Any, ...], negative: NegativeIndices) -> tuple[jax.Array, Any]:
    """Widened indices counted from the front, and the sizes."""
    indices, limit = _widened(indices, sizes)
    return (jnp.where(indices < 0, indices + limit, indices) if _from_end(indices, negative) else indices), limit


def _limits(sizes: tuple[Any, ...], dtype: Any, rank: int) -> Any:
    """The sizes as an array that compares with indices of ``rank``: a scalar, or one size a component of the last axis."""
    if len(sizes) == 1:
        return jnp.asarray(sizes[0], dtype)
    return jnp.stack([jnp.asarray(size, dtype) for size in sizes]).reshape((1,) * (rank - 1) + (len(sizes),))


def _inside(indices: jax.Array, limit: Any, lowest: Any = None) -> jax.Array:
    below = indices < limit
    if jnp.issubdtype(indices.dtype, jnp.unsignedinteger):
        return below
    return (indices >= (0 if lowest is None else lowest)) & below


def resolve(
    indices: jax.Array | np.ndarray[Any, Any], sizes: tuple[Any, ...], mode: OutOfBounds, negative: NegativeIndices
) -> tuple[jax.Array | np.ndarray[Any, Any], Any]:
    """Start indices for ``lax.gather`` or ``lax.scatter``, and the mode to give it. Numbers stay numbers where they may."""
    if not sizes:
        return jnp.asarray(indices).astype(jnp.int32), lax.GatherScatterMode.PROMISE_IN_BOUNDS
    target = jnp.dtype("int64") if any(isinstance(size, int) and size > INT32_MAX for size in sizes) else jnp.dtype("int32")
    if isinstance(indices, np.ndarray) and mode == "unchecked" and is_static(sizes):
        return count_from_front(indices, sizes, negative)[0].astype(target), lax.GatherScatterMode.PROMISE_IN_BOUNDS
    counted, limit = _counted(jnp.asarray(indices), sizes, negative)
    if mode == "unchecked":
        return counted.astype(target), lax.GatherScatterMode.PROMISE_IN_BOUNDS
    if mode == "clip":
        lowest = jnp.zeros((), counted.dtype)
        highest = limit - jnp.ones((), counted.dtype)
        return jnp.clip(counted, lowest, highest).astype(target), lax.GatherScatterMode.PROMISE_IN_BOUNDS
    if counted.dtype != target:  # an index that the narrower dtype cannot hold must stay out of bounds
        counted = jnp.where(_inside(counted, limit), counted, jnp.broadcast_to(limit, counted.shape)).astype(target)
    return counted, lax.GatherScatterMode.FILL_OR_DROP


# Indices known while building


class Facts(TypedDict):
    """What XLA may be told of start indices."""

    indices_are_sorted: bool
    unique_indices: bool


def facts(starts: jax.Array | np.ndarray[Any, Any], sizes: Sequence[Any], batch: Sequence[int]) -> Facts:
    """What is known of index vectors, the last axis of ``starts``: nothing unless they are numbers, of one table."""
    if not isinstance(starts, np.ndarray) or batch:
        return Facts(indices_are_sorted=False, unique_indices=False)
    strides = np.cumprod([1, *sizes[:0:-1]], dtype=np.int64)[::-1]
    places = starts.reshape(-1, len(sizes)).astype(np.int64) @ strides
    ordered = bool(np.all(places[1:] >= places[:-1]))
    return Facts(indices_are_sorted=ordered, unique_indices=np.unique(places).size == places.size)


def settle(recorder: Recorder, op: IndexOp, x: Value, indices: Value) -> tuple[IndexOp, Value]:
    """Check constant indices now: the operation without its run-time check, and the indices counted from the front.

    Raises:
        IndexOutOfBoundsError: an index is outside its axis and the mode is ``"raise"``.
    """
    constant = indices.node.op
    if not isinstance(constant, Constant):
        return op, indices
    axes = op.addressed(x.spec.shape, indices.spec.shape)
    sizes = tuple(x.spec.shape[axis] for axis in axes)
    if not is_static(sizes) or not sizes:
        return op, indices
    array = constant.array
    limits = np.asarray(sizes[0] if len(sizes) == 1 else sizes, np.int64)
    counted, inside = count_from_front(array, sizes, op.negative_indices)
    if not inside.all():
        if op.out_of_bounds == "raise":
            raise IndexOutOfBoundsError(describe_outside(array, axes, sizes, op.negative_indices))
        counted = np.clip(counted, 0, limits - 1) if op.out_of_bounds == "clip" else np.where(inside, counted, limits)
    if inside.all() or op.out_of_bounds == "clip":
        op = op.assume_checked()
    dtype = Int32 if limits.max() <= INT32_MAX else Int64
    settled: np.ndarray[Any, Any] = np.asarray(counted, dtype.numpy)  # asarray: NumPy makes scalars of rank-0 results
    if array.dtype == settled.dtype and np.array_equal(array, settled):
        return op, indices
    settled.flags.writeable = False
    return op, recorder.record(Constant(settled, TensorSpec(dtype, settled.shape), constant.name))[0]


def count_from_front(
    indices: np.ndarray[Any, Any], sizes: Sequence[Dimension], negative: NegativeIndices
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Constant indices counted from the front, and where they are inside their axes."""
    limit = np.asarray(sizes[0] if len(sizes) == 1 else sizes, np.int64)
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(2**63 - 1))
    wide = indices.astype(np.int64)
    counted = np.where(wide < 0, wide + limit, wide) if negative == "from_end" else wide
    return counted, (counted >= 0) & (counted < limit)


def describe_outside(
    indices: np.ndarray[Any, Any], axes: Sequence[int], sizes: Sequence[Any], negative: NegativeIndices
) -> str:
    """The first index, in row-major order, that is outside its axis."""
    _, inside = count_from_front(indices, sizes, negative)
    position = np.unravel_index(int(np.argmin(inside)), inside.shape) if inside.ndim else ()
    component = int(position[-1]) if position and len(axes) > 1 else 0
    size = int(sizes[component])
    lowest = -size if negative == "from_end" and is_signed(as_dtype(indices.dtype)) else 0
    count = int(inside.size - inside.sum())
    more = f" (the first of {count})" if count > 1 else ""
    place = f" at position {[int(part) for part in position]}" if inside.ndim else ""
    return f"indices must be in [{lowest}, {size}) on axis {axes[component]}, got {indices[position]}{place}{more}"


def index_array(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], DType]:
    """An array given as indices, as small as int32 where its values allow, and its element type."""
    dtype = as_dtype(array.dtype)
    if array.size == 0 and not issubclass(dtype, Integer):
        return array.astype(np.int32), Int32
    require_integer(dtype)
    if dtype.bits == 64 and (array.size == 0 or (int(array.min()) >= -(2**31) and int(array.max()) <= INT32_MAX)):
        return array.astype(np.int32), Int32
    return array, dtype
