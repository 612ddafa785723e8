"""Every symbol of Apple's builder has a counterpart by the naming rule, or a reason."""

from __future__ import annotations

import pytest

from tests import parity


def test_no_symbol_is_missing() -> None:
    assert [row.swift for row in parity.rows() if row.missing] == []


def test_the_inventory_is_whole() -> None:
    assert len(parity.rows()) == 267


def test_reasons_are_needed() -> None:
    """A reason for a symbol that has a counterpart would be out of date."""
    carried = {row.swift for row in parity.rows() if row.python}
    assert set(parity.REASONS) & carried == set()


def test_the_page_is_up_to_date() -> None:
    assert parity.PAGE.read_text() == parity.render(), "run: python -m tests.parity"


@pytest.mark.parametrize(
    ("swift", "python"),
    [("gatherND", "gather_nd"), ("leakyReLU", "leaky_relu"), ("bidirectionalLSTM", "bidirectional_lstm"), ("topK", "top_k"),
     ("applyResetGateAfterMatMul", "apply_reset_gate_after_mat_mul"),
     ("checkForNaNsAndInfinities", "check_for_nans_and_infinities"),
     ("log1p", "log1p"), ("logSumExp", "log_sum_exp"), ("relu6", "relu6"), ("argMax", "arg_max")],
)  # fmt: skip
def test_the_naming_rule(swift: str, python: str) -> None:
    assert parity.snake(swift) == python
