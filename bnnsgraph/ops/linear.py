"""Matrix products. float32 products are full float32; 16-bit products are summed in float32 and rounded once."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from bnnsgraph.dtypes import Number
from bnnsgraph.errors import ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import D, Handle, Operand
from bnnsgraph.spec import (
    Shape,
    TensorSpec,
    broadcast_shapes,
    format_shape,
    require_dtype,
    require_equal_size,
    require_same_dtype,
)
from bnnsgraph.xla import accumulator, jnp, level

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


@frozen
class MatMul(Op):
    transpose: bool = False
    transpose_other: bool = False

    ends_fusion: ClassVar[bool] = True

    def infer(self, x: TensorSpec, other: TensorSpec, bias: TensorSpec | None = None) -> TensorSpec:
        _require_numbers(x=x, other=other, bias=bias)
        for name, spec in (("x", x), ("other", other)):
            if spec.rank == 0:
                raise ShapeError(f"{name} must have rank 1 or more, got rank 0; write x * other for a scalar")
        left, right = _swapped(x.shape, self.transpose), _swapped(other.shape, self.transpose_other)
        inner = right[-min(2, len(right))]
        require_equal_size(left[-1], inner, "the last size of x and the second last of other (after transposes)")
        batch = broadcast_shapes(left[:-2], right[:-2])
        product = (*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))
        return x.with_shape(product if bias is None else broadcast_shapes(product, bias.shape))

    def lower(self, x: jax.Array, other: jax.Array, bias: jax.Array | None = None) -> jax.Array:
        left = x.mT if self.transpose and x.ndim > 1 else x
        right = other.mT if self.transpose_other and other.ndim > 1 else other
        return _product(left, right, bias)


@frozen
class Linear(Op):
    ends_fusion: ClassVar[bool] = True

    def infer(self, x: TensorSpec, weight: TensorSpec, bias: TensorSpec | None = None) -> TensorSpec:
        _require_numbers(x=x, weight=weight, bias=bias)
        if x.rank == 0:
            raise ShapeError("x must have rank 1 or more, got rank 0")
        if weight.rank != 2:
            raise ShapeError(f"weight must have rank 2, [out, in], got rank {weight.rank}, {format_shape(weight.shape)}")
        require_equal_size(x.shape[-1], weight.shape[1], "the last size of x and of weight, [out, in],")
        if bias is not None:
            if bias.rank != 1:
                raise ShapeError(f"bias must have rank 1, [out], got rank {bias.rank}, {format_shape(bias.shape)}")
            require_equal_size(bias.shape[0], weight.shape[0], "the size of bias and the first of weight, [out, in],")
        return x.with_shape((*x.shape[:-1], weight.shape[0]))

    def lower(self, x: jax.Array, weight: jax.Array, bias: jax.Array | None = None) -> jax.Array:
        return _product(x, weight.mT, bias)


def _require_numbers(*, bias: TensorSpec | None, **operands: TensorSpec) -> None:
    require_same_dtype(**operands, **({} if bias is None else {"bias": bias}))
    require_dtype(operands["x"], Number)


def _swapped(shape: Shape, transpose: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if transpose and len(shape) > 1 else shape


def _product(left: jax.Array, right: jax.Array, bias: jax.Array | None) -> jax.Array:
    wide = accumulator(left.dtype)
    result = jnp.matmul(left, right, preferred_element_type=wide)
    if bias is not None:
        result, added = level(result, bias.astype(wide))
        result = result + added
    return result.astype(left.dtype)


class LinearMethods(Handle[D]):
    """``matmul``, ``@`` and ``linear``."""

    __slots__ = ()

    def matmul(
        self,
        other: Operand[D],
        *,
        transpose: bool = False,
        transpose_other: bool = False,
        bias: Operand[D] | None = None,
    ) -> Tensor[D]:
        """The matrix product over the last two axes, plus ``bias``.

        Swift: ``matmul(transpose:other:transposeOther:)``, ``matmul(transpose:other:transposeOther:bias:)``

        ``[..., m, k] @ [..., k, n] -> [..., m, n]``; leading axes broadcast, and a vector is a row on the left and a column on
        the right whose axis disappears, as in NumPy. The flags swap the last two axes first; they do nothing to a vector.
        ``bias`` broadcasts as in ``x @ other + bias``; 16-bit floats are rounded once, after it is added. Integers wrap modulo
        2**bits.

        >>> x.matmul(x, transpose_other=True, bias=[1.0, 2.0]).shape
        (2, 2)

        Raises:
            ShapeError: the inner sizes differ, shapes do not broadcast, or ``x`` or ``other`` is a scalar.
            DTypeError: the operands differ in dtype.
        """
        return self._emit(MatMul(transpose, transpose_other), *((other,) if bias is None else (other, bias)))

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

    def linear(self, weight: Operand[D], bias: Operand[D] | None = None) -> Tensor[D]:
        """``x @ weight.T + bias`` over the last axis, with ``weight`` ``[out, in]``. Swift: ``linear(weight:bias:)``

        Also Swift's ``linear(weight:)``. ``[..., in] -> [..., out]``; ``bias`` is ``[out]``, and 16-bit floats are rounded
        once, after it is added. The ``weight`` of PyTorch's ``Linear`` and of ONNX's ``Gemm`` with ``transB=1`` fits as it is;
        the kernel of Keras's ``Dense``, ``[in, out]``, needs ``.T``.

        >>> x.linear(np.ones((5, 3)), bias=np.zeros(5)).shape
        (2, 5)

        Raises:
            ShapeError: ``weight`` is no matrix, or sizes differ.
            DTypeError: the operands differ in dtype.
        """
        return self._emit(Linear(), *((weight,) if bias is None else (weight, bias)))
