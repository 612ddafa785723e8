"""Attention: values averaged with weights that queries and keys give."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from bnnsgraph.dtypes import Bool, Floating, as_dtype
from bnnsgraph.errors import DTypeError, ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import D, F, Handle, Operand, as_array
from bnnsgraph.spec import (
    TensorSpec,
    as_number,
    broadcast_shapes,
    equal_size,
    format_shape,
    require_dtype,
    require_equal_size,
    require_same_dtype,
)  # fmt: skip
from bnnsgraph.xla import accumulator, jnp, lax, level

if TYPE_CHECKING:
    import jax

    from bnnsgraph.tensor import Tensor


@frozen
class ScaledDotProductAttention(Op):
    causal: bool = False
    scale: float | None = None

    ends_fusion: ClassVar[bool] = True

    def infer(self, query: TensorSpec, key: TensorSpec, value: TensorSpec, mask: TensorSpec | None = None) -> TensorSpec:
        dtype = require_same_dtype(query=query, key=key, value=value)
        require_dtype(query, Floating, "query")
        for name, spec in (("query", query), ("key", key), ("value", value)):
            if spec.rank < 2:
                raise ShapeError(f"{name} must have rank 2 or more (..., length, features), got {format_shape(spec.shape)}")
        require_equal_size(query.shape[-1], key.shape[-1], "the last sizes of query and key")
        require_equal_size(key.shape[-2], value.shape[-2], "the second last sizes of key and value")
        batch = broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
        if mask is not None:
            self.require_mask(mask, dtype, (*batch, query.shape[-2], key.shape[-2]))
        return TensorSpec(dtype, (*batch, query.shape[-2], value.shape[-1]))

    def require_mask(self, mask: TensorSpec, dtype: Any, scores: tuple[Any, ...]) -> None:
        """A mask is a truth value or a summand for each score."""
        if mask.dtype is not Bool and mask.dtype is not dtype:
            raise DTypeError(f"mask must be of bool or {dtype.name}, got {mask.dtype.name}")
        aligned = scores[len(scores) - mask.rank :] if mask.rank <= len(scores) else ()
        fits = mask.rank <= len(scores) and all(
            size == 1 or equal_size(size, score) is not None for size, score in zip(mask.shape, aligned, strict=True)
        )
        if not fits:
            raise ShapeError(f"mask must broadcast to the scores, {format_shape(scores)}, got {format_shape(mask.shape)}")

    def lower(self, query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array | None = None) -> jax.Array:
        dtype = query.dtype
        wide = accumulator(dtype)
        query, key, value = level(query, key, value)
        width: Any = query.shape[-1]
        scale: Any = self.scale
        if scale is None:
            scale = 1 / math.sqrt(width or 1) if isinstance(width, int) else lax.rsqrt(jnp.asarray(width, wide))
        scores = jnp.matmul(query, key.mT, preferred_element_type=wide) * scale
        if mask is not None:
            scores, mask = level(scores, mask)
            scores = jnp.where(mask, scores, -jnp.inf) if mask.dtype == bool else scores + mask.astype(wide)
        if self.causal:
            shape = (1,) * (scores.ndim - 2) + scores.shape[-2:]
            rows, columns = (lax.broadcasted_iota(jnp.int32, shape, axis) for axis in (scores.ndim - 2, scores.ndim - 1))
            scores = jnp.where(columns <= rows, scores, -jnp.inf)
        # A softmax that gives a row without any key zeros where the plain one divides 0 by 0
        largest = lax.stop_gradient(jnp.max(scores, -1, keepdims=True, initial=-jnp.inf))
        weights = jnp.exp(scores - jnp.where(largest == -jnp.inf, jnp.zeros_like(largest), largest))
        total = jnp.sum(weights, -1, keepdims=True)
        weights = weights / jnp.where(total == 0, jnp.ones_like(total), total)
        return jnp.matmul(weights, value.astype(wide)).astype(dtype)


class AttentionMethods(Handle[D]):
    """``scaled_dot_product_attention``."""

    __slots__ = ()

    def scaled_dot_product_attention(
        self: Handle[F],
        key: Operand[F],
        value: Operand[F],
        mask: Operand[Bool] | Operand[F] | None = None,
        *,
        causal: bool = False,
        scale: float | None = None,
    ) -> Tensor[F]:
        """``softmax(scale * query @ key.T) @ value``, with ``self`` as the query. Not in Apple's builder.

        ``[..., L, E]``, ``[..., S, E]`` and ``[..., S, V]`` give ``[..., L, V]``; leading axes broadcast. 16-bit floats are
        computed in float32 and rounded once. A query that may see no key, because its mask is false or -infinity throughout,
        gets zeros.

        Args:
            key: what queries are compared with.
            value: what is averaged.
            mask: broadcasts to ``[..., L, S]``: truth values, where True lets a query see a key, or floats that are added to
                the scores.
            causal: let query ``i`` see keys ``0...i`` alone.
            scale: None for ``1 / sqrt(E)``.

        >>> x.scaled_dot_product_attention(x, x, causal=True).shape
        (2, 3)

        Raises:
            ShapeError: sizes do not fit, or the mask is larger than the scores.
            DTypeError: element types differ, or the mask is neither of truth values nor of the same floats.
        """
        op = ScaledDotProductAttention(causal, None if scale is None else as_number(scale, "scale"))
        if mask is None:
            return self._emit(op, key, value)
        if not isinstance(mask, Handle):
            given = as_dtype(as_array(mask).dtype)
            mask = self._wrap(self._enter(mask, None if issubclass(given, Floating) else given))
        return self._emit(op, key, value, mask)
