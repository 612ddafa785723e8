"""Core ML's gathers and scatters (the operations of its MIL programs), written with the public API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bnnsgraph as bg
from bnnsgraph import ScatterMode
from tests.conformance.cases import Case

MODES = {
    "update": ScatterMode.UPDATE,
    "add": ScatterMode.ADD,
    "sub": ScatterMode.SUBTRACT,
    "mul": ScatterMode.MULTIPLY,
    "div": ScatterMode.DIVIDE,
    "max": ScatterMode.MAXIMUM,
    "min": ScatterMode.MINIMUM,
}
FOLDED = ("gather", "gather_along_axis")
"""The operations that Core ML Tools works out itself while building; the others exist only at run time, on Apple's systems."""


def unspecified(case: Case) -> bool:
    """Whether Core ML leaves indices outside the axis undefined: those of iOS 17 without validation, and gather_nd's before."""
    return case.op not in FOLDED and case.opset in ("iOS16", "iOS17") and not case.attrs.get("validate_indices", False)


def options(case: Case) -> bg.CompileOptions:
    """From iOS 17 negative indices are invalid, except where Core ML Tools folds without validation, which wraps them."""
    invalid = case.opset == "iOS17" and (case.attrs.get("validate_indices", False) or unspecified(case))
    return bg.CompileOptions(negative_indices="out_of_bounds" if invalid else "from_end")


def build(b: bg.Builder, case: Case, operands: Sequence[Any]) -> bg.Tensor[Any]:
    """The case as a tensor. Where Core ML is undefined, gathers answer 0 and scatters skip the update."""
    data, indices, *updates = operands
    attrs = case.attrs
    axis = attrs.get("axis", 0)
    batch = attrs.get("batch_dims", 0)
    mode = MODES[attrs.get("mode", "add")]
    outside: Any = None
    if unspecified(case):
        outside = "drop" if updates else bg.fill(0)
    match case.op:
        case "gather":
            return data.gather(indices, axis, batch, out_of_bounds=outside)
        case "gather_along_axis":
            return data.gather_along_axis(indices, axis, out_of_bounds=outside)
        case "gather_nd":
            return data.gather_nd(indices, batch, out_of_bounds=outside)
        case "scatter":
            return data.scatter(*updates, indices, mode, axis, out_of_bounds=outside)
        case "scatter_along_axis":
            return data.scatter_along_axis(*updates, indices, mode, axis, out_of_bounds=outside)
        case "scatter_nd":
            return data.scatter_nd(*updates, indices, mode, out_of_bounds=outside)
        case _:
            raise AssertionError(case.op)
