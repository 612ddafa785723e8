"""What of the onnx package's node cases does not run here, and why: by operator, by element type, or by case.

The numbers are those of onnx 1.23.2; ``test_onnx_nodes.py`` holds them to the suite.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

CASES = 1404
"""All plain cases."""

PASSED = 1004
"""Those that run, and give what is expected."""

OPERATORS: dict[str, dict[str, int]] = {
    "operations on bits: no counterpart": {"BitCast": 10, "BitwiseAnd": 4, "BitwiseNot": 3, "BitwiseOr": 4, "BitwiseXor": 4},
    "control flow: a graph has no branches or loops": {"If": 3, "Loop": 3, "Scan": 4},
    "the shape of the result depends on the elements": {"Compress": 5, "NonMaxSuppression": 10, "NonZero": 1, "Unique": 7},
    "determinant: no counterpart": {"Det": 2},
    "linear attention, a recurrence of matrices: no counterpart": {"LinearAttention": 14},
    "models other than networks (trees, labels, n-grams)": {"LabelEncoder": 4, "TfIdfVectorizer": 7, "TreeEnsemble": 2},
    "optional values": {"OptionalGetElement": 4, "OptionalHasElement": 7},
    "random numbers": {"Bernoulli": 3},
    "resizing and sampling of images": {
        "AffineGrid": 4, "DeformConv": 4, "GridSample": 18, "ImageDecoder": 9, "Resize": 39, "RoiAlign": 3, "Upsample": 1,
    },
    "running product: no counterpart": {"CumProd": 9},
    "sequences of tensors": {"SequenceInsert": 2, "SequenceMap": 6, "SplitToSequence": 3},
    "signal processing (Fourier transforms, windows, mel weights)": {
        "BlackmanWindow": 2, "DFT": 10, "HammingWindow": 2, "HannWindow": 2, "MelWeightMatrix": 1, "STFT": 2,
    },
    "strings": {"RegexFullMatch": 3, "StringConcat": 5, "StringNormalizer": 6, "StringSplit": 6},
    "training: optimisers": {"Adagrad": 2, "Adam": 2, "Momentum": 3},
}  # fmt: skip
"""Operators none of whose cases run."""

STRINGS = "strings"
VALUES = "sequences of tensors"
TYPES = "element types that are not here: 8-bit and 4-bit floats, 4-bit and 2-bit integers"

SMALL = ("FLOAT8", "FLOAT4", "INT4", "UINT4", "INT2", "UINT2")

ELEMENT_TYPES: dict[str, int] = {STRINGS: 2, VALUES: 2, TYPES: 116}
"""Cases of other operators, with values that no tensor here can hold."""

NAMED: dict[str, tuple[str, ...]] = {
    "an extremum over no elements is an error here": (
        "test_reduce_max_empty_set", "test_reduce_max_empty_set_bool", "test_reduce_min_empty_set",
    ),
    "dilated windows of poolings": (
        "test_averagepool_2d_dilations", "test_lppool_2d_dilations", "test_maxpool_2d_dilations",
    ),
    "graphs inside attention": (
        "test_flexattention_causal_mask", "test_flexattention_prob_mod", "test_flexattention_relative_positional",
        "test_flexattention_score_mod", "test_flexattention_soft_cap",
    ),
    "peepholes of an LSTM": ("test_lstm_with_peepholes",),
    "positions of the maxima of a pooling": (
        "test_maxpool_with_argmax_2d_precomputed_pads", "test_maxpool_with_argmax_2d_precomputed_strides",
    ),
    "three spatial axes": (
        "test_averagepool_3d_default",
        "test_averagepool_3d_dilations_large_count_include_pad_is_0_ceil_mode_is_False",
        "test_averagepool_3d_dilations_large_count_include_pad_is_0_ceil_mode_is_True",
        "test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_False",
        "test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True",
        "test_averagepool_3d_dilations_small",
        "test_col2im_5d",
        "test_convtranspose_3d",
        "test_lppool_3d_default",
        "test_maxpool_3d_default",
        "test_maxpool_3d_dilations",
        "test_maxpool_3d_dilations_use_ref_impl",
        "test_maxpool_3d_dilations_use_ref_impl_large",
    ),
    "training: statistics and dropout": (
        "test_batchnorm_epsilon_training_mode", "test_batchnorm_example_training_mode", "test_training_dropout",
        "test_training_dropout_default", "test_training_dropout_default_mask", "test_training_dropout_mask",
        "test_training_dropout_zero_ratio", "test_training_dropout_zero_ratio_mask",
    ),
}  # fmt: skip
"""Single cases of operators that do run."""


def reason(case: Any) -> str | None:
    """Why a case is left out; None for one that runs."""
    for text, operators in OPERATORS.items():
        if case.op in operators:
            return text
    return type_reason(case) or named_reason(case.name)


def named_reason(name: str) -> str | None:
    """Why a case is left out by its name."""
    return next((text for text, names in NAMED.items() if name in names), None)


def type_reason(case: Any) -> str | None:
    """Why a case is left out by the values that it has."""
    for value in (*case.inputs, *case.expected):
        if isinstance(value, list):
            return VALUES
        if hasattr(value, "data_type") and _name(value.data_type).startswith(SMALL):
            return TYPES
        if isinstance(value, np.ndarray) and value.dtype.kind == "O":
            return STRINGS
    return None


def _name(element_type: int) -> str:
    from onnx import TensorProto

    return TensorProto.DataType.Name(element_type)


def summary() -> tuple[int, list[tuple[str, int]]]:
    """How many of the cases pass, and each reason with the number of cases that it leaves out. Needs no onnx package."""
    counts: Counter[str] = Counter()
    for text, operators in OPERATORS.items():
        counts[text] += sum(operators.values())
    counts.update(ELEMENT_TYPES)
    for text, names in NAMED.items():
        counts[text] += len(names)
    return PASSED, sorted(counts.items())
