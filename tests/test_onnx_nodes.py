"""The node tests of the onnx package, as a peer's suite, through the public API. Run with ``-s`` to see the counts.

Every plain case runs, unless ``onnx_mapping_left_out`` says why not.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests import onnx_mapping_left_out as left_out
from tests.onnx_mapping import RULES, outcomes
from tests.onnx_mapping_call import suite

pytest.importorskip("onnx", minversion="1.23")


@pytest.mark.parametrize("op", sorted(RULES))
def test_operator(op: str) -> None:
    found = outcomes(op)
    wrong = {name: text for name, text in found.items() if text}
    print(f"\n{op}: {len(found) - len(wrong)} of {len(found)} cases pass")
    assert found, f"every case of {op} is left out, so its rule is not needed"
    assert not wrong


def test_count() -> None:
    """Passed and left out make all; the numbers in the table, which the documentation shows, are those of the suite.

    A case that is not left out passes, or ``test_operator`` fails for its operator.
    """
    passed = sum(case.op in RULES and left_out.reason(case) is None for case in suite().values())
    reasons = Counter(filter(None, map(left_out.reason, suite().values())))
    print(f"\n{passed} of {len(suite())} cases pass")
    for text, number in sorted(reasons.items()):
        print(f"{number:5} left out: {text}")
    assert len(suite()) == left_out.CASES
    assert left_out.summary() == (passed, sorted(reasons.items()))
    assert passed + reasons.total() == left_out.CASES


def test_operators_left_out_exist_and_have_no_rule() -> None:
    cases = Counter(case.op for case in suite().values())
    for operators in left_out.OPERATORS.values():
        for op, number in operators.items():
            assert cases[op] == number, op
            assert op not in RULES


def test_cases_left_out_exist_and_are_named_once() -> None:
    names = [name for names in left_out.NAMED.values() for name in names]
    assert len(names) == len(set(names))
    for name in names:
        case = suite()[name]
        assert case.op in RULES, f"{name} is left out with its operator"
        assert left_out.reason(case) == left_out.named_reason(name), f"{name} is left out already"


@pytest.mark.parametrize("name", sorted(name for names in left_out.NAMED.values() for name in names))
def test_case_left_out_does_not_pass(name: str) -> None:
    case = suite()[name]
    assert any(outcomes(case.op, (name,)).values())
