"""OpenVINO's gather operations as functions of tensors, each by the rule of its own version.

The methods of :class:`bnnsgraph.Tensor` have one rule for all gathers. A model written for OpenVINO relies on the rule of the
operation and version that it names, which differ in the shape of the result (GatherND-5) and in what becomes of an index
outside its axis (Gather). The sources are the pages ``gather-1``, ``gather-7``, ``gather-8``, ``gather-nd-5``, ``gather-nd-8``
and ``gather-elements-6`` of
https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/movement/.

What they share: indices may be of any integer type, negative ones count from the end of their axis whatever the graph's options
say, and batch sizes must be equal (the GatherND pages also allow 1 against n; OpenVINO itself refuses that, and so does this
module). Each call is one ``lax.gather``. Error messages call ``batch_dims`` as Apple does, ``batch_dimension_count``.

>>> from bnnsgraph import openvino
>>> def merged_batches(b):
...     data = b.argument("data", bg.Float32, shape=["rows", "columns", 4])
...     return openvino.gather_nd(data, b.argument("i", bg.Int32, shape=["rows", "columns", 1, 1]), batch_dims=2, version=5)
>>> bg.make_context(merged_batches)
Context(data: float32[rows, columns, 4], i: int32[rows, columns, 1, 1] -> output_0: float32[columns*rows, 1]; 0 compilations)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from bnnsgraph.dtypes import Bool
from bnnsgraph.errors import ParameterError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import D, Handle
from bnnsgraph.ops.gathering import Gather, GatherAlongAxis, GatherND
from bnnsgraph.ops.indexed import IndexRule, Indices, emit_indexed, index_rule
from bnnsgraph.options import OutOfBounds, fill
from bnnsgraph.spec import TensorSpec, as_integer, element_count
from bnnsgraph.xla import jnp

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


@frozen
class MergeLeadingAxes(Op):
    """The first ``count`` axes as one, in row-major order: what GatherND-5 does to its batch axes."""

    count: int

    def infer(self, x: TensorSpec) -> TensorSpec:
        """The merged size is the product of the sizes, flexible ones included."""
        return x.with_shape((element_count(x.shape[: self.count]), *x.shape[self.count :]))

    def lower(self, x: jax.Array) -> jax.Array:
        """One reshape."""
        return jnp.reshape(x, (element_count(x.shape[: self.count]), *x.shape[self.count :]))  # pyright: ignore[reportArgumentType]


def gather(data: Tensor[D], indices: Indices, axis: int, batch_dims: int = 0, version: Literal[1, 7, 8] = 8) -> Tensor[D]:
    """Slices along ``axis``, chosen by index. OpenVINO: Gather-1, Gather-7, Gather-8

    ``result[p, i, q] = data[p, indices[i], q]``, with the first ``batch_dims`` axes shared by both; the result has shape
    ``D[:axis] + I[batch_dims:] + D[axis+1:]``. A slice whose index is outside [-n, n), n the size of ``axis``, is zero (False
    for Bool), for constant indices too. That is the rule of Gather-8. The pages of Gather-1 and Gather-7 promise nothing
    outside [0, n); OpenVINO's reference answers as Gather-8 does there, and so does this function.

    Args:
        data: a tensor of any type.
        indices: integers of any type; rank 0 removes the axis.
        axis: an axis of ``data``; negative ones count from the end.
        batch_dims: how many leading axes ``data`` and ``indices`` share, at most ``axis``; a negative number means
            + rank(indices). Gather-1 has no such attribute.
        version: 1, 7 or 8.

    >>> from bnnsgraph import openvino
    >>> def example_7_of_the_page(b):
    ...     return openvino.gather(b.constant(values=[1, 2, 3, 4, 5]), [3, 10, -20], axis=0)
    >>> bg.make_context(example_7_of_the_page)()
    Array([4, 0, 0], dtype=int32)

    Raises:
        ParameterError: another version, or ``batch_dims`` for Gather-1.
        ShapeError: axis, batch count or batch sizes do not fit.
        DTypeError: the indices are not integers.
    """
    subject = _require_tensor(data)
    _require_version(version, (1, 7, 8), "Gather")
    batch = as_integer(batch_dims, "batch_dims")
    if version == 1 and batch != 0:
        raise ParameterError(f"batch_dims must be 0 for Gather-1, which has no batch axes, got {batch}; write version=7")
    zero = fill(False if data.data_type is Bool else 0)
    return emit_indexed(subject, Gather(as_integer(axis, "axis"), batch, **_rule(subject, zero)), indices)


def gather_nd(data: Tensor[D], indices: Indices, batch_dims: int = 0, version: Literal[5, 8] = 8) -> Tensor[D]:
    """Slices chosen by index vectors. OpenVINO: GatherND-5, GatherND-8

    The last axis of ``indices``, of size k, holds vectors that address the k axes of ``data`` behind the b = ``batch_dims``
    batch axes. Version 8 gives shape ``I[:-1] + D[b+k:]``, as :meth:`Tensor.gather_nd` does. Version 5 gives the same elements
    with the batch axes merged into one, ``[prod(I[:b])] + I[b:-1] + D[b+k:]``, which differs from two batch axes on; its page
    calls that shape incorrect and refers to version 8. In a model file, opsets 5 to 7 mean version 5 and later ones version 8.

    Both pages require indices inside their axes and say nothing of others, so the graph's ``out_of_bounds`` option decides
    about those; its default is an error.

    Args:
        data: a tensor of any type, of rank 1 or more.
        indices: integers of any type, each in [-n, n) for the axis that its component addresses; 0 <= k <= rank(data) - b.
        batch_dims: how many leading axes ``data`` and ``indices`` share, in [0, min(rank(data), rank(indices))).
        version: 5 or 8.

    >>> from bnnsgraph import openvino
    >>> def batches(b, version):
    ...     data = b.constant(values=np.arange(1, 25).reshape(2, 3, 4))
    ...     return openvino.gather_nd(data, np.reshape([1, 0, 2, 0, 2, 2], (2, 3, 1, 1)), batch_dims=2, version=version)
    >>> bg.make_context(lambda b: batches(b, 5))().tolist()
    [[2], [5], [11], [13], [19], [23]]
    >>> bg.make_context(lambda b: batches(b, 8))().tolist()
    [[[2], [5], [11]], [[13], [19], [23]]]

    Raises:
        ParameterError: another version.
        ShapeError: the ranks, the batch count, the batch sizes or the length of the vectors do not fit.
        DTypeError: the indices are not integers.
        IndexOutOfBoundsError: a constant index is outside its axis; other indices are checked when the graph runs.
    """
    subject = _require_tensor(data)
    _require_version(version, (5, 8), "GatherND")
    batch = as_integer(batch_dims, "batch_dims")
    result = emit_indexed(subject, GatherND(batch, **_rule(subject, None)), indices)
    return result._emit(MergeLeadingAxes(batch)) if version == 5 and batch > 1 else result


def gather_elements(data: Tensor[D], indices: Indices, axis: int) -> Tensor[D]:
    """Elements along ``axis``, one for each index. OpenVINO: GatherElements-6

    ``result[p, j, q] = data[p, indices[p, j, q], q]``. ``indices`` has the shape of ``data`` except along ``axis``, and the
    result has the shape of ``indices``. The page requires indices in [0, n). OpenVINO itself also counts negative ones from the
    end, as here, and refuses others when the model runs; here the graph's ``out_of_bounds`` option decides about those, and its
    default is an error.

    >>> from bnnsgraph import openvino
    >>> def example_2_of_the_page(b):
    ...     return openvino.gather_elements(b.constant(values=[[1, 7], [4, 3]]), [[1, 1, 0], [1, 0, 1]], axis=1)
    >>> bg.make_context(example_2_of_the_page)()
    Array([[7, 7, 1],
           [3, 4, 3]], dtype=int32)

    Raises:
        ShapeError: the axis does not exist, or the shapes differ off the axis.
        DTypeError: the indices are not integers.
        IndexOutOfBoundsError: a constant index is outside the axis; other indices are checked when the graph runs.
    """
    subject = _require_tensor(data)
    return emit_indexed(subject, GatherAlongAxis(as_integer(axis, "axis"), **_rule(subject, None)), indices)


def _rule(data: Handle[Any], out_of_bounds: OutOfBounds | None) -> IndexRule:
    return {**index_rule(data, out_of_bounds, scatter=False), "negative_indices": "from_end"}


def _require_tensor(data: object) -> Handle[Any]:
    if not isinstance(data, Handle):
        raise ParameterError(
            f"data must be a tensor of the graph, got {type(data).__name__}; write builder.constant(values=data)"
        )
    return data  # pyright: ignore[reportUnknownVariableType]


def _require_version(version: object, versions: tuple[int, ...], name: str) -> None:
    if version not in versions or isinstance(version, bool):
        allowed = " or ".join([", ".join(map(str, versions[:-1])), str(versions[-1])])
        raise ParameterError(f"version of {name} must be {allowed}, got {version!r}")


__all__ = ["gather", "gather_elements", "gather_nd"]
