"""Side-by-side timing: interleaved rounds, medians, spreads, and results compared before anything is timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Row:
    """One figure: a case, who ran it, and seconds a call (median, and the quartiles)."""

    case: str
    who: str
    seconds: float
    low: float
    high: float
    calls: int

    def as_dict(self) -> dict[str, Any]:
        """The row for a JSON file."""
        return asdict(self)


def settle(result: Any) -> Any:
    """Wait for results that are still being computed."""
    for part in result if isinstance(result, (tuple, list)) else [result]:
        wait = getattr(part, "block_until_ready", None)
        if wait is not None:
            wait()
    return result


def require_equal(case: str, functions: Mapping[str, Callable[[], Any]], tolerance: float) -> None:
    """Refuse to time programs that answer differently."""
    answers = {who: np.asarray(settle(function())) for who, function in functions.items()}
    first, wanted = next(iter(answers.items()))
    for who, got in answers.items():
        if got.shape != wanted.shape or not np.allclose(got, wanted, rtol=tolerance, atol=tolerance, equal_nan=True):
            raise AssertionError(f"{case}: {who} and {first} answer differently")


def side_by_side(
    case: str,
    functions: Mapping[str, Callable[[], Any]],
    *,
    seconds: float = 0.6,
    rounds: int = 15,
    tolerance: float | None = 1e-5,
) -> list[Row]:
    """Time the functions in interleaved rounds of equal length, after a warm-up.

    Args:
        case: what is timed.
        functions: who runs it, and how.
        seconds: about how long each function is run in all.
        rounds: how many times each function has its turn.
        tolerance: answers are compared first; None for functions without an answer.
    """
    if tolerance is not None:
        require_equal(case, functions, tolerance)
    counts: dict[str, int] = {}
    for who, function in functions.items():
        settle(function())
        start = time.perf_counter()
        settle(function())
        once = max(time.perf_counter() - start, 1e-7)
        counts[who] = max(1, int(seconds / rounds / once))
    samples: dict[str, list[float]] = {who: [] for who in functions}
    for _ in range(rounds):
        for who, function in functions.items():
            start = time.perf_counter()
            for _ in range(counts[who]):
                settle(function())
            samples[who].append((time.perf_counter() - start) / counts[who])
    rows: list[Row] = []
    for who, times in samples.items():
        low, middle, high = np.percentile(times, [25, 50, 75])
        rows.append(Row(case, who, float(middle), float(low), float(high), rounds * counts[who]))
    return rows


def table(rows: list[Row]) -> str:
    """The rows as text, with each median's ratio to the first of its case."""
    first: dict[str, float] = {}
    lines = [f"{'case':<44} {'who':<14} {'median':>12} {'quartiles':>23} {'ratio':>7}"]
    for row in rows:
        base = first.setdefault(row.case, row.seconds)
        spread = f"{row.low * 1e6:,.1f} - {row.high * 1e6:,.1f}"
        lines.append(f"{row.case:<44} {row.who:<14} {row.seconds * 1e6:>9,.1f} us {spread:>23} {row.seconds / base:>7.2f}")
    return "\n".join(lines)
