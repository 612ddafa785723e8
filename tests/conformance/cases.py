"""Cases of the peers' suites, read from the data files beside this module."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DTYPES: dict[str, type[np.generic]] = {
    "f32": np.float32, "f16": np.float16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "bool": np.bool_,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Case:
    """One question to an operation.

    Attributes:
        name: unique among all files.
        op: the peer's operation, such as ``GatherND-5``.
        opset: Core ML's deployment target, else "".
        attrs: the operation's attributes.
        inputs: data, indices and, for scatters, updates.
        error: whether the peer refuses it.
        dtype: dtype of the answer; None for an error.
        shape: shape of the answer.
        expected: the answer; None for an error, and where the peer leaves it undefined.
        otherwise: what the peer's fast implementation answers where that is not ``expected``; NaN for a crash.
    """

    name: str
    op: str
    opset: str
    attrs: Mapping[str, Any]
    inputs: tuple[np.ndarray, ...]
    error: bool
    dtype: np.dtype[Any] | None
    shape: tuple[int, ...]
    expected: np.ndarray | None
    otherwise: np.ndarray | None = None

    def __str__(self) -> str:
        return self.name


def _array(record: Mapping[str, Any]) -> np.ndarray:
    return np.array(record["values"], DTYPES[record["dtype"]]).reshape(record["shape"])


@functools.cache
def load(file: str) -> tuple[Case, ...]:
    """The cases of one data file, in its order."""
    cases: list[Case] = []
    for record in json.loads((Path(__file__).parent / file).read_text()):
        answer = record.get("expected")
        other = record.get("cpu_plugin_result")
        cases.append(
            Case(
                name=record["name"],
                op=record["op"],
                opset=record.get("opset", ""),
                attrs=record["attrs"],
                inputs=tuple(_array(given) for given in record["inputs"]),
                error=record.get("error", False),
                dtype=None if answer is None else np.dtype(DTYPES[answer["dtype"]]),
                shape=() if answer is None else tuple(answer["shape"]),
                expected=None if answer is None or record.get("undefined_values") else _array(answer),
                otherwise=None if other is None else np.array(other.get("values", np.nan)),
            )
        )
    return tuple(cases)
