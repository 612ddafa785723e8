"""Core ML Tools' own folding of MIL operations as an oracle, in the long suite.

``pip install ".[test,coreml]" && pytest -m long tests/test_coreml_oracle.py``. The rows stand in ``coreml_mapping_*``.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

import bnnsgraph as bg
from tests import coreml_mapping_elementwise, coreml_mapping_layers, coreml_mapping_movement
from tests.coreml_mapping import TARGETS, NotFoldedError, Row, assert_same, fold, run
from tests.coreml_mapping_left_out import DIFFERENCES, OPERATIONS, REFUSED, Difference, Outcome

pytestmark = pytest.mark.long
pytest.importorskip("coremltools", minversion="9.0")

ROWS = [*coreml_mapping_elementwise.ROWS, *coreml_mapping_layers.ROWS, *coreml_mapping_movement.ROWS]


def numbered(rows: list[Row]) -> list[Any]:
    """Parameters named after the operation."""
    numbers: dict[str, Any] = {}
    return [pytest.param(row, id=f"{row.op}-{next(numbers.setdefault(row.op, count()))}") for row in rows]


@pytest.mark.parametrize("row", numbered(ROWS))
def test_row(row: Row) -> None:
    """In every version of Core ML's operation, with operands as arguments and as constants."""
    answers = run(row), run(row, constant=True)
    for target in TARGETS:
        if target >= row.since:
            outputs = fold(row, target)
            for answer in answers:
                for got, output in zip(answer, outputs, strict=True):
                    assert_same(row, got, output)


@pytest.mark.parametrize("row", numbered([row for row in ROWS if row.has_halves()]))
def test_row_of_halves(row: Row) -> None:
    for got, output in zip(run(row, half=True), fold(row, TARGETS[-1], half=True), strict=True):
        assert_same(row, got, output)


# Where the two part


def assert_outcome(function: Any, outcome: Outcome) -> None:
    if isinstance(outcome, list):
        for got, want in zip(function(), outcome, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-3)  # the numbers are written with four digits at least
    else:
        with pytest.raises(outcome) as error:
            function()
        assert type(error.value) is outcome


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.row.op}: {case.reason}") for case in DIFFERENCES])
def test_difference(case: Difference) -> None:
    """Both sides do what the table says, which is not the same."""
    assert repr(case.theirs) != repr(case.ours)
    assert_outcome(lambda: [output.val for output in fold(case.row, TARGETS[-1], half=case.half)], case.theirs)
    assert_outcome(lambda: run(case.row, half=case.half), case.ours)


@pytest.mark.parametrize(("row", "error"), [pytest.param(*case, id=case[0].op) for case in REFUSED])
def test_refused_by_both(row: Row, error: type[bg.GraphError]) -> None:
    with pytest.raises((ValueError, IndexError, AssertionError, OverflowError)):
        fold(row, TARGETS[-1])
    for constant in (False, True):
        with pytest.raises(bg.GraphError) as raised:
            run(row, constant=constant)
        assert type(raised.value) is error


# The table is complete


def definitions() -> dict[str, dict[Any, Any]]:
    """The operations that define how they fold: the class that each version of iOS has."""
    from coremltools.converters.mil.mil import Operation
    from coremltools.converters.mil.mil.ops.registry import SSAOpRegistry

    found = dict(SSAOpRegistry.core_ops) | {name: {None: cls} for name, cls in SSAOpRegistry.dialect_ops.items()}
    folding = {
        name: {version: cls for version, cls in versions.items() if cls.value_inference is not Operation.value_inference}
        for name, versions in found.items()
    }
    return {name: versions for name, versions in folding.items() if versions}


def test_every_operation_that_folds_has_a_row_or_a_reason() -> None:
    left_out = [op for ops in OPERATIONS.values() for op in ops]
    with_rows = {row.op for row in ROWS}
    print(f"\n{len(ROWS)} rows of {len(with_rows)} operations; {len(left_out)} operations left out")
    assert len(left_out) == len(set(left_out))
    assert not with_rows & set(left_out)
    assert with_rows | set(left_out) == definitions().keys()


def test_every_definition_is_run() -> None:
    """Some operations are defined anew in later versions of iOS."""
    import coremltools

    found = definitions()
    for op in {row.op for row in ROWS}:
        since = min(row.since for row in ROWS if row.op == op)
        used = {found[op].get(coremltools.target[f"iOS{target}"]) for target in TARGETS if target >= since}
        assert used >= set(found[op].values()), op


def test_operation_whose_folding_is_not_written() -> None:
    row = Row("reverse_sequence", {"x": np.ones((2, 3), np.float32), "lengths": np.array([1, 2], np.int32)}, lambda _, x, n: x)
    with pytest.raises(NotFoldedError):
        fold(row, TARGETS[-1])
