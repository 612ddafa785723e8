"""TensorFlow's gathers, written with the public API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bnnsgraph as bg
from tests.conformance.cases import Case


def options(case: Case) -> bg.CompileOptions:
    """TensorFlow refuses negative indices."""
    return bg.CompileOptions(negative_indices="out_of_bounds")


def build(b: bg.Builder, case: Case, operands: Sequence[Any]) -> bg.Tensor[Any]:
    """The case as a tensor."""
    data, indices = operands
    batch = case.attrs["batch_dims"]
    return data.gather(indices, case.attrs["axis"], batch) if case.op == "gather" else data.gather_nd(indices, batch)
