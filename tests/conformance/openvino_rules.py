"""OpenVINO's gathers and scatters, written with the public API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import bnnsgraph as bg
from bnnsgraph import ScatterMode, openvino
from tests.conformance.cases import Case

MODES = {
    "none": ScatterMode.UPDATE,
    "sum": ScatterMode.ADD,
    "sub": ScatterMode.SUBTRACT,
    "prod": ScatterMode.MULTIPLY,
    "max": ScatterMode.MAXIMUM,
    "min": ScatterMode.MINIMUM,
}


def options(case: Case) -> bg.CompileOptions:
    """ScatterUpdate refuses negative indices; every other operation counts them from the end."""
    return bg.CompileOptions(negative_indices="out_of_bounds" if case.op == "ScatterUpdate-3" else "from_end")


def build(b: bg.Builder, case: Case, operands: Sequence[Any]) -> bg.Tensor[Any]:
    """The case as a tensor: one call, but for the cases listed in ``COMPOSED``."""
    return (composed if case.name in COMPOSED else one_call)(b, case, operands)


def one_call(b: bg.Builder, case: Case, operands: Sequence[Any]) -> bg.Tensor[Any]:
    """The operation of ours that corresponds to the peer's."""
    data, indices, *updates = operands
    attrs = case.attrs
    name, _, digits = case.op.partition("-")
    version: Any = int(digits)
    match name:
        case "Gather":
            return openvino.gather(data, indices, attrs["axis"], attrs.get("batch_dims", 0), version)
        case "GatherND":
            return openvino.gather_nd(data, indices, attrs["batch_dims"], version)
        case "GatherElements":
            return openvino.gather_elements(data, indices, attrs["axis"])
        case "ScatterUpdate":
            return data.scatter(*updates, indices, ScatterMode.UPDATE, attrs["axis"])
        case "ScatterNDUpdate":
            return data.scatter_nd(*updates, indices, MODES[attrs.get("reduction", "none")])
        case "ScatterElementsUpdate":
            return data.scatter_along_axis(*updates, indices, MODES[attrs.get("reduction", "none")], attrs["axis"])
        case _:
            raise AssertionError(case.op)


# What takes several calls of ours, and why

BOOL = "reductions of Bool are logic, which our scatter modes leave to integers"
PART = "off the axis, indices may be smaller than data and address its leading part, which ours wants named by a slice"
FRESH = "use_init_val=False: the first update replaces the old value, which no mode of ours does"
MEAN = "there is no mode for the mean"

COMPOSED: dict[str, tuple[str, ...]] = {
    "scatter_nd_update_15_3x3_by_1_bool_sum": (BOOL,),
    "scatter_nd_update_15_3x3_by_1_bool_prod": (BOOL,),
    "scatter_nd_update_15_3x3_by_1_bool_max": (BOOL,),
    "scatter_nd_update_15_3x3_by_1_bool_min": (BOOL,),
    "scatter_nd_update_15_3x3_by_1_bool_sub": (BOOL,),
    "scatter_elements_12_min_noinit": (FRESH,),
    "scatter_elements_12_mean_init": (PART, MEAN),
    "scatter_elements_12_mean_noinit": (PART, MEAN, FRESH),
    "scatter_elements_12_sum_noinit": (PART, FRESH),
    "scatter_elements_12_prod_init": (PART,),
    "doc_scatter_elements_12_ex2": (FRESH,),
    "doc_scatter_elements_12_ex3": (PART,),
    "doc_scatter_elements_12_ex4": (PART,),
    "doc_scatter_elements_12_ex5": (PART,),
    "scatter_elements_12_rand_02_sum_noinit_i32_neg": (PART, FRESH),
    "scatter_elements_12_rand_04_min_init_i32": (PART,),
    "scatter_elements_12_rand_05_max_init_f32": (PART,),
    "scatter_elements_12_rand_07_sum_init_f32": (PART,),
    "scatter_elements_12_rand_08_prod_init_i32": (PART,),
    "scatter_elements_12_rand_10_max_init_i32": (PART,),
    "scatter_elements_12_rand_11_none_init_f32": (PART,),
    "scatter_elements_12_rand_12_sum_init_i32_neg": (PART,),
    "scatter_elements_12_rand_13_prod_init_f32": (PART,),
    "scatter_elements_12_rand_14_min_noinit_i32_neg": (FRESH,),
    "scatter_elements_12_rand_15_max_noinit_f32_neg": (PART, FRESH),
    "scatter_elements_12_rand_16_none_init_i32": (PART,),
    "scatter_elements_12_rand_17_sum_noinit_f32": (PART, FRESH),
    "scatter_elements_12_rand_18_prod_init_i32": (PART,),
    "scatter_elements_12_rand_19_min_noinit_f32": (PART, FRESH),
    "scatter_elements_12_rand_20_max_init_i32_neg": (PART,),
    "scatter_elements_12_rand_21_none_init_f32_neg": (PART,),
    "scatter_elements_12_rand_24_min_noinit_i32": (FRESH,),
    "scatter_elements_12_rand_25_max_init_f32": (PART,),
    "scatter_elements_12_rand_27_sum_init_f32": (PART,),
    "scatter_elements_12_rand_28_prod_noinit_i32_neg": (PART, FRESH),
    "scatter_elements_12_rand_29_min_init_f32": (PART,),
}


def composed(b: bg.Builder, case: Case, operands: Sequence[Any]) -> bg.Tensor[Any]:
    """The peer's operation from several of ours."""
    data, indices, updates = operands
    if case.op == "ScatterNDUpdate-15":
        return of_bits(data, indices, updates, case.attrs["reduction"])
    return leading_part(data, indices, updates, **case.attrs)


def of_bits(data: bg.Tensor[Any], indices: Any, updates: bg.Tensor[Any], reduction: str) -> bg.Tensor[Any]:
    """For Bool, "sum" and "max" are OR, "prod" and "min" AND, and "sub" is XOR."""
    old, new = data.cast(to=bg.Int32), updates.cast(to=bg.Int32)
    if reduction == "sub":
        return old.scatter_nd(new, indices, ScatterMode.ADD) % 2 != 0
    mode = ScatterMode.MAXIMUM if reduction in ("sum", "max") else ScatterMode.MINIMUM
    return old.scatter_nd(new, indices, mode) != 0


def leading_part(
    data: bg.Tensor[Any], indices: Any, updates: bg.Tensor[Any], axis: int, reduction: str, use_init_val: bool
) -> bg.Tensor[Any]:
    """The part of ``data`` that indices of their size address, and its result put back."""
    axis %= data.rank
    part = tuple(slice(None) if other == axis else slice(0, size) for other, size in enumerate(indices.shape))
    return data.update[part](reduced(data[part], indices, updates, axis, reduction, use_init_val))


def reduced(
    old: bg.Tensor[Any], indices: Any, new: bg.Tensor[Any], axis: int, reduction: str, use_init_val: bool
) -> bg.Tensor[Any]:
    """A place that is to forget its old value first gets the one that changes no result. Integer means round down."""
    if not use_init_val and reduction != "none":
        neutral = np.full(new.shape, neutral_value(reduction, new.dtype), new.dtype)
        old = old.scatter_along_axis(neutral, indices, ScatterMode.UPDATE, axis)
    if reduction != "mean":
        return old.scatter_along_axis(new, indices, MODES[reduction], axis)
    total = old.scatter_along_axis(new, indices, ScatterMode.ADD, axis)
    ones = np.ones(new.shape, new.dtype)
    counts = (old * 0 + int(use_init_val)).scatter_along_axis(ones, indices, ScatterMode.ADD, axis)
    counts = counts.max(1)  # a place without an update keeps its value
    return total / counts if new.dtype.kind == "f" else total // counts


def neutral_value(reduction: str, dtype: np.dtype[Any]) -> Any:
    """The value that the reduction starts from without a trace."""
    if reduction in ("max", "min"):
        if dtype.kind == "f":
            return -np.inf if reduction == "max" else np.inf
        return np.iinfo(dtype).min if reduction == "max" else np.iinfo(dtype).max
    return 1 if reduction == "prod" else 0
