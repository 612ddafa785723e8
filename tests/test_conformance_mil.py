"""Core ML's own cases, from its op tests, through the public API."""

from __future__ import annotations

import numpy as np
import pytest

import bnnsgraph as bg
from tests.conformance.cases import Case, load
from tests.conformance.mil_rules import build, options
from tests.conformance.suite import Suite, assert_same

FILE = "mil_gather_cases.json"
SUITE = Suite(load(FILE), build, options)
DEFINED = [case for case in SUITE.answered if case.expected is not None]
both = pytest.mark.parametrize("constant", [False, True], ids=["argument", "constant"])

# Where Core ML promises a shape and no values (its suite asks only that the program builds, or that a run differs from the
# answer for valid indices), ours are defined: a gathered element outside its axis is 0, a scattered update is skipped.
NOT_PROMISED = {
    "gather_nd_iOS16_batch1_bad_indices_build": [3, 6],  # negative indices still count from the end
    "gather_nd_iOS16_batch1_bad_indices_build_2": [2, 0],
    "gather_nd_iOS17_batch1_novalidate_negative_build": [0, 6],
    "gather_nd_iOS17_batch1_novalidate_too_large_build": [2, 0],
    "scatter_iOS17_novalidate_negative": [[9, 11, 13], [4, 5, 6]],
    "scatter_iOS17_novalidate_too_large": [[9, 11, 13], [4, 5, 6]],
}


def test_every_case_is_here() -> None:
    assert len(SUITE.cases) == len(load(FILE)) == 57
    assert len(DEFINED) + len(NOT_PROMISED) + len(SUITE.refused) == 57
    assert {case.name for case in SUITE.answered if case.expected is None} == NOT_PROMISED.keys()


@both
@pytest.mark.parametrize("case", DEFINED, ids=str)
def test_answer(case: Case, constant: bool) -> None:
    assert_same(SUITE.answer(case, constant=constant), case.expected)


@both
@pytest.mark.parametrize("name", NOT_PROMISED)
def test_answer_where_core_ml_promises_a_shape_only(name: str, constant: bool) -> None:
    case = next(case for case in SUITE.answered if case.name == name)
    got = SUITE.answer(case, constant=constant)
    assert (got.dtype, got.shape) == (case.dtype, case.shape)
    assert got.tolist() == NOT_PROMISED[name]
    if case.op == "scatter":
        valid = next(other for other in DEFINED if other.name == "scatter_default_mode_adds")
        assert all(np.array_equal(a, b) for a, b in zip(case.inputs[::2], valid.inputs[::2], strict=True))
        assert not np.array_equal(got, SUITE.answer(valid, constant=constant))


@both
@pytest.mark.parametrize("case", SUITE.refused, ids=str)
def test_refusal(case: Case, constant: bool) -> None:
    error = SUITE.refusal(case, constant=constant)
    assert type(error) is bg.IndexOutOfBoundsError
    assert "indices must be in [" in error.reason
