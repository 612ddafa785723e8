"""OpenVINO's own cases, from its suite, from its operation pages, and drawn at random, through the public API.

Every expected answer is met. What takes several of our operations is listed, with the reason, as ``COMPOSED`` in
``conformance/openvino_rules.py``; all other cases are one call.
"""

from __future__ import annotations

import numpy as np
import pytest

import bnnsgraph as bg
from tests.conformance.cases import Case, load
from tests.conformance.openvino_rules import BOOL, COMPOSED, MEAN, MODES, PART, build, one_call, options
from tests.conformance.suite import Suite, assert_same

FILES = {
    "openvino_gather_cases.json": 214,
    "openvino_random_gather_cases.json": 195,
    "openvino_random_scatter_cases.json": 85,
}
SUITE = Suite([case for file in FILES for case in load(file)], build, options)
both = pytest.mark.parametrize("constant", [False, True], ids=["argument", "constant"])

FLOAT_INDICES = {"gather_nd_5_err_float_indices", "gather_nd_8_err_float_indices"}
OUT_OF_BOUNDS = {
    "gather_elements_1D_out_of_range",
    "gather_elements_2D_out_of_range",
    "gather_elements_6_err_out_of_range",
    "scatter_nd_update_2x3_out_of_bounds",
    "scatter_nd_15_err_too_large",
    "scatter_nd_15_err_too_small",
    "scatter_elements_12_err_too_large",
    "scatter_update_3_err_too_large",
    "scatter_update_3_err_negative",
}


def test_every_case_is_here() -> None:
    assert {file: len(load(file)) for file in FILES} == FILES
    assert len(SUITE.answered) + len(SUITE.refused) == 214 + 195 + 85
    assert len({case.name for case in SUITE.cases}) == len(SUITE.cases)
    assert {case.name for case in SUITE.refused} >= FLOAT_INDICES | OUT_OF_BOUNDS


@both
@pytest.mark.parametrize("case", SUITE.answered, ids=str)
def test_answer(case: Case, constant: bool) -> None:
    assert_same(SUITE.answer(case, constant=constant), case.expected)


@pytest.mark.parametrize("name", COMPOSED)
def test_one_call_is_not_enough(name: str) -> None:
    """What the list says of a case is so: our one call refuses it, or answers something else."""
    case = next(case for case in SUITE.answered if case.name == name)
    if MEAN in COMPOSED[name]:
        assert case.attrs["reduction"] == "mean"
        assert "mean" not in MODES
        assert set(MODES.values()) == {mode for mode in bg.ScatterMode if mode is not bg.ScatterMode.DIVIDE}
        return
    single = Suite([case], one_call, options)
    error = single.refusal(case, constant=True)
    if BOOL in COMPOSED[name]:
        assert type(error) is bg.DTypeError
        assert "x must be of a number type unless mode is ScatterMode.UPDATE, got bool" in error.reason
    elif PART in COMPOSED[name]:
        assert type(error) is bg.ShapeError
        assert "sizes of x and indices on axis" in error.reason
    else:
        assert error is None
        assert case.expected is not None
        assert case.attrs["use_init_val"] is False
        assert not np.array_equal(single.answer(case, constant=True), case.expected)


# Where OpenVINO's CPU plugin does not give what its reference does, ours gives what the reference does

PLUGIN_DIFFERS = {
    "gather_1_2d_negative_and_positive_indices_axis_0_2d_input": "answers 0 for a negative index",
    "gather_7_2d_negative_and_positive_indices_axis_0_2d_input": "answers 0 for a negative index",
    "gather_8_rand_096_r4_a-2_b2_bool_i64_neg": "crashes when every batch size is 1",
    "gather_8_rand_105_r6_a-5_b1_i32_i32_neg": "crashes when every batch size is 1",
    "gather_8_rand_108_r3_a1_b-1_bool_i64": "crashes when every batch size is 1",
    "gather_8_rand_118_r3_a-2_b1_i64_i32_neg": "crashes when every batch size is 1",
    "gather_7_rand_132_r3_a-2_b1_bool_i64": "crashes when every batch size is 1",
}


def test_differences_of_the_plugin() -> None:
    cases = {case.name: case for case in SUITE.answered if case.otherwise is not None}
    assert cases.keys() == PLUGIN_DIFFERS.keys()
    for name, reason in PLUGIN_DIFFERS.items():
        plugin = cases[name].otherwise
        assert plugin is not None
        got = SUITE.answer(cases[name], constant=False)
        assert np.isnan(plugin).all() == reason.startswith("crashes")
        assert plugin.ndim == 0 or not np.allclose(plugin, got.ravel(), atol=0.05)


@both
@pytest.mark.parametrize("case", SUITE.refused, ids=str)
def test_refusal(case: Case, constant: bool) -> None:
    error = SUITE.refusal(case, constant=constant)
    if case.name in OUT_OF_BOUNDS:
        assert type(error) is bg.IndexOutOfBoundsError
    elif case.name in FLOAT_INDICES:
        assert type(error) is bg.DTypeError
    else:
        assert type(error) is bg.ShapeError
    assert " must " in error.reason
    assert ", got " in error.reason
