"""Run-time tensors of Apple's surface."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnsgraph.dtypes import DType, as_dtype
from bnnsgraph.spec import format_shape, row_major_stride


class BNNSTensor:
    """A named array, or the description of one (Swift ``BNNSTensor``). NumPy arrays serve everywhere this does.

    >>> BNNSTensor(np.zeros((2, 3), np.float32), "x")
    BNNSTensor(x: float32, shape: [2, 3] | stride: [3, 1])
    """

    __slots__ = ("data", "data_type", "name", "shape")

    def __init__(self, data: np.ndarray[Any, Any], name: str | None = None) -> None:
        self.data: np.ndarray[Any, Any] | None = data
        self.data_type: DType = as_dtype(data.dtype)
        self.shape: tuple[int, ...] = data.shape
        self.name = name

    @staticmethod
    def described(name: str, data_type: DType, shape: tuple[int, ...]) -> BNNSTensor:
        """A tensor without memory; sizes that are not known are -1.

        >>> BNNSTensor.described("x", as_dtype("float32"), (-1, 3)).count
        -1
        """
        tensor = BNNSTensor.__new__(BNNSTensor)
        tensor.data, tensor.data_type, tensor.shape, tensor.name = None, data_type, shape, name
        return tensor

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def stride(self) -> tuple[int, ...]:
        """Row-major distances between neighbours, in elements; -1 where a size is not known."""
        if -1 in self.shape:
            return tuple(
                -1 if -1 in self.shape[axis + 1 :] else int(np.prod(self.shape[axis + 1 :])) for axis in range(self.rank)
            )
        return tuple(int(step) for step in row_major_stride(self.shape))  # pyright: ignore[reportArgumentType]

    @property
    def count(self) -> int:
        """The number of elements; -1 when a size is not known."""
        return -1 if -1 in self.shape else int(np.prod(self.shape))

    @property
    def data_size_in_bytes(self) -> int:
        """The number of bytes of the elements; -1 when a size is not known."""
        return -1 if self.count < 0 else self.count * self.data_type.numpy.itemsize

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self.data is None:
            raise ValueError(f"{self!r} has no memory; call allocate_tensor")
        return np.array(self.data, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        memory = "" if self.data is not None else ", no memory"
        layout = f"shape: {format_shape(self.shape)} | stride: {format_shape(self.stride)}"
        return f"BNNSTensor({self.name}: {self.data_type.name}, {layout}{memory})"
