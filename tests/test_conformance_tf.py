"""TensorFlow's own cases, from its gather and gather_nd tests, through the public API.

Every expected answer is met; there is no list of differences.
"""

from __future__ import annotations

import pytest

import bnnsgraph as bg
from tests.conformance.cases import Case, load
from tests.conformance.suite import Suite, assert_same
from tests.conformance.tf_rules import build, options

FILE = "tf_gather_cases.json"
SUITE = Suite(load(FILE), build, options)
both = pytest.mark.parametrize("constant", [False, True], ids=["argument", "constant"])


def test_every_case_is_here() -> None:
    assert len(SUITE.cases) == len(load(FILE)) == 38
    assert len(SUITE.answered) + len(SUITE.refused) == 38


@both
@pytest.mark.parametrize("case", SUITE.answered, ids=str)
def test_answer(case: Case, constant: bool) -> None:
    assert_same(SUITE.answer(case, constant=constant), case.expected)


@both
@pytest.mark.parametrize("case", SUITE.refused, ids=str)
def test_refusal(case: Case, constant: bool) -> None:
    error = SUITE.refusal(case, constant=constant)
    assert type(error) is (bg.ShapeError if "bad_axis" in case.name else bg.IndexOutOfBoundsError)
    assert " must " in error.reason
    assert ", got " in error.reason
