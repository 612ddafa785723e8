"""The tensor: every family of operations on one handle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from bnnsgraph.handle import D
from bnnsgraph.ops.activation import ActivationMethods
from bnnsgraph.ops.arithmetic import ArithmeticMethods
from bnnsgraph.ops.attention import AttentionMethods
from bnnsgraph.ops.axiswise import AxiswiseMethods
from bnnsgraph.ops.casting import CastingMethods
from bnnsgraph.ops.comparison import ComparisonMethods
from bnnsgraph.ops.convolution import ConvolutionMethods
from bnnsgraph.ops.elementwise import ElementwiseMethods
from bnnsgraph.ops.gathering import GatherMethods
from bnnsgraph.ops.linear import LinearMethods
from bnnsgraph.ops.lstm import LSTMMethods
from bnnsgraph.ops.movement import MovementMethods
from bnnsgraph.ops.normalization import NormalizationMethods
from bnnsgraph.ops.padding import PaddingMethods
from bnnsgraph.ops.pooling import PoolingMethods
from bnnsgraph.ops.rearrangement import RearrangementMethods
from bnnsgraph.ops.recurrent import RecurrentMethods
from bnnsgraph.ops.reduction import ReductionMethods
from bnnsgraph.ops.scattering import ScatterMethods
from bnnsgraph.ops.slicing import SliceIndex, SlicingMethods, is_array
from bnnsgraph.ops.sorting import SortingMethods
from bnnsgraph.ops.trigonometry import TrigonometryMethods
from bnnsgraph.spec import format_shape

if TYPE_CHECKING:
    from bnnsgraph.graph import Value
    from bnnsgraph.ops.indexed import Indices


class Tensor(
    ArithmeticMethods[D],
    ElementwiseMethods[D],
    TrigonometryMethods[D],
    ActivationMethods[D],
    ComparisonMethods[D],
    CastingMethods[D],
    MovementMethods[D],
    PaddingMethods[D],
    SlicingMethods[D],
    GatherMethods[D],
    ScatterMethods[D],
    ReductionMethods[D],
    AxiswiseMethods[D],
    NormalizationMethods[D],
    SortingMethods[D],
    RecurrentMethods[D],
    LSTMMethods[D],
    RearrangementMethods[D],
    AttentionMethods[D],
    LinearMethods[D],
    ConvolutionMethods[D],
    PoolingMethods[D],
):
    """A typed value of a graph under construction (Swift ``BNNSGraph.Builder.Tensor``).

    A tensor has a dtype, a shape and a line of source, and no elements: those exist when the graph runs. Make one with
    :meth:`Builder.argument` or :meth:`Builder.constant`; every operation gives another.

    >>> x = bg.Builder().argument("x", bg.Float32, shape=[2, 3])
    >>> x
    x: float32[2, 3] Argument
    >>> str(x)
    'shape: [2, 3] | stride: [3, 1]'
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def __getitem__(self, key: SliceIndex | tuple[SliceIndex, ...] | Indices) -> Tensor[D]:
        """A part of the tensor. Swift: ``subscript(_:) get``

        One item an axis: an integer (removes the axis), ``a:b``, ``a:b:step``, :class:`SliceRange`, or ``...`` for all axes not
        named. Negative positions count from the end. A tensor or array of integers alone gathers rows: ``gather(indices,
        axis=0)``.

        >>> x[1].shape, x[..., 1:].shape, x[:, ::-1].shape, x[[0, 1, 1]].shape
        ((3,), (2, 2), (2, 3), (3, 3))

        Raises:
            IndexOutOfBoundsError: an integer is outside its axis.
            ShapeError: more items than axes, or a range that ends before it starts.
        """
        if is_array(key):
            return self.gather(cast("Any", key), 0)
        return self._slice(key)

    def __repr__(self) -> str:
        from bnnsgraph.display.text import describe

        return describe(cast("Value", self._value), self._name)

    def _repr_html_(self) -> str:
        from bnnsgraph.display.html import tensor_page

        return tensor_page(self._recorder, cast("Value", self._value), self._name, repr(self))

    def __str__(self) -> str:
        """Apple's form: sizes and row-major strides, in elements."""
        return f"shape: {format_shape(self.shape)} | stride: {format_shape(self.stride)}"
