"""ONNX operators in terms of the public API: the rules, what they leave out, and a run of many nodes in one context."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import bnnsgraph as bg
from tests import onnx_mapping_attention as attention
from tests import onnx_mapping_elementwise as elementwise
from tests import onnx_mapping_indexing as indexing
from tests import onnx_mapping_layers as layers
from tests import onnx_mapping_quantized as quantized
from tests import onnx_mapping_sequence as sequence
from tests import onnx_mapping_shape as shape
from tests import onnx_mapping_windows as windows
from tests.onnx_mapping_call import Call, Case, Rule, as_array, suite
from tests.onnx_mapping_left_out import reason

RULES: dict[str, Rule] = {
    **attention.RULES,
    **elementwise.RULES,
    **indexing.RULES,
    **layers.RULES,
    **quantized.RULES,
    **sequence.RULES,
    **shape.RULES,
    **windows.RULES,
}


@functools.cache
def outcomes(op: str, names: tuple[str, ...] | None = None) -> dict[str, str]:
    """What differs from the expected values in each case of an operator; empty where nothing does.

    The cases, all that are not left out or those of the names given, run in one context.
    """
    cases = [case for case in suite().values() if case.op == op]
    cases = [case for case in cases if (reason(case) is None if names is None else case.name in names)]
    result: dict[str, str] = {}
    arguments: dict[str, np.ndarray[Any, Any]] = {}
    made: dict[str, list[str]] = {}

    def block(builder: bg.Builder) -> dict[str, Any]:
        outputs: dict[str, Any] = {}
        for case in cases:
            call = Call(builder, case)
            try:
                tensors = call.record(RULES[op])
            except Exception as error:
                result[case.name] = f"{type(error).__name__}: {error}"
                continue
            finally:
                arguments.update(call.arguments)
            made[case.name] = [f"{case.name}_output_{index}" for index in range(len(tensors))]
            outputs.update(zip(made[case.name], tensors, strict=True))
        return outputs or {"nothing": builder.constant(value=0)}

    context = bg.make_context(block)
    values = context(**{name: arguments[name] for name in context.graph.argument_names})
    if not isinstance(values, tuple):
        values = (values,)
    by_name = dict(zip(context.graph.result_names, values, strict=True))
    for name, outputs in made.items():
        case = suite()[name]
        found = [difference(np.asarray(by_name[o]), as_array(e), case) for o, e in zip(outputs, case.expected, strict=True)]
        result[name] = "; ".join(filter(None, found))
    return result


def difference(actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], case: Case) -> str:
    """How two arrays differ; empty where they do not. The tolerances are those of the package's own runner."""
    if (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
        return f"got {actual.dtype}{list(actual.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if expected.dtype.kind in "biu":
        return "" if np.array_equal(actual, expected) else f"got {actual.ravel()[:8]}, expected {expected.ravel()[:8]}"
    rtol = max(case.rtol, 2**-6) if expected.dtype.name == "bfloat16" else case.rtol  # two units of its last place
    wide, wanted = actual.astype(np.float64), expected.astype(np.float64)
    close = np.isclose(wide, wanted, rtol=rtol, atol=case.atol, equal_nan=True)
    return (
        "" if close.all() else f"{(~close).sum()} of {close.size} differ, got {wide[~close][:4]}, expected {wanted[~close][:4]}"
    )
