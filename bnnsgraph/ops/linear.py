"""Matrix products. float32 products are full float32; 16-bit products are summed in float32 and rounded once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bnnsgraph.dtypes import Number
from bnnsgraph.errors import ShapeError
from bnnsgraph.graph import Op
from bnnsgraph.handle import D, Handle, Operand
from bnnsgraph.spec import Shape, TensorSpec, broadcast_shapes, require_dtype, require_equal_size, require_same_dtype
from bnnsgraph.xla import accumulator, jnp, lax

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


@dataclass(frozen=True)
class MatMul(Op):
    transpose: bool = False
    transpose_other: bool = False

    def infer(self, x: TensorSpec, other: TensorSpec) -> TensorSpec:
        dtype = require_same_dtype(x=x, other=other)
        require_dtype(x, Number)
        for name, spec in (("x", x), ("other", other)):
            if spec.rank == 0:
                raise ShapeError(f"{name} must have rank 1 or more, got rank 0; write x * other for a scalar")
        left, right = _swapped(x.shape, self.transpose), _swapped(other.shape, self.transpose_other)
        inner = right[-min(2, len(right))]
        require_equal_size(left[-1], inner, "the last size of x and the second last of other (after transposes)")
        batch = broadcast_shapes(left[:-2], right[:-2])
        return TensorSpec(dtype, (*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else ())))

    def lower(self, x: jax.Array, other: jax.Array) -> jax.Array:
        left = x.mT if self.transpose and x.ndim > 1 else x
        right = other.mT if self.transpose_other and other.ndim > 1 else other
        product = jnp.matmul(left, right, precision=lax.Precision.HIGHEST, preferred_element_type=accumulator(x.dtype))
        return product.astype(x.dtype)


def _swapped(shape: Shape, transpose: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if transpose and len(shape) > 1 else shape


class LinearMethods(Handle[D]):
    """``matmul`` and ``@``."""

    __slots__ = ()

    def matmul(self, other: Operand[D], *, transpose: bool = False, transpose_other: bool = False) -> Tensor[D]:
        """The matrix product over the last two axes. Swift: ``matmul(transpose:other:transposeOther:)``

        ``[..., m, k] @ [..., k, n] -> [..., m, n]``; leading axes broadcast, and a vector is a row on the left and a column on
        the right whose axis disappears, as in NumPy. The flags swap the last two axes first; they do nothing to a vector.

        >>> x.matmul(x, transpose_other=True).shape
        (2, 2)

        Raises:
            ShapeError: the inner sizes differ, or an operand is a scalar.
        """
        return self._emit(MatMul(transpose, transpose_other), other)

    def __matmul__(self, other: Operand[D]) -> Tensor[D]:
        """The matrix product ``x @ y``; see :meth:`matmul`. Swift: ``matmul(transpose:other:transposeOther:)``

        >>> (x @ [1.0, 2.0, 3.0]).shape
        (2,)
        """
        return self._emit(MatMul(), other)

    def __rmatmul__(self, other: Operand[D]) -> Tensor[D]:
        """The matrix product ``y @ x``. Swift: ``matmul(transpose:other:transposeOther:)``

        >>> ([1.0, 2.0] @ x).shape
        (3,)
        """
        left: Tensor[D] = self._wrap(self._enter(other))
        return left._emit(MatMul(), self)
