"""Side-by-side timing: interleaved rounds, medians, spreads, and results compared before anything is timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

OURS = "bnnsgraph"
UNCHECKED = "bnnsgraph, unchecked"
INTO = "bnnsgraph, run_into"
"""Ours into the memory of the result before, as those peers do that always write into the same."""
BARE = "jax.jit"
NUMPY = "NumPy"
REFERENCES = {UNCHECKED, BARE, NUMPY}
"""Who must answer as we do."""
LIMIT = "memcpy"
"""The time that copying the output takes: a limit, not a peer."""


@dataclass(frozen=True)
class Row:
    """One figure: a case, who ran it, and seconds a call (median, and the quartiles).

    Attributes:
        ratio: our seconds divided by these, round by round: the quartiles and the median between them. None without ours.
        bytes: the most memory that the process held during the call, beyond what it held before.
    """

    case: str
    who: str
    seconds: float
    low: float
    high: float
    calls: int
    ratio: tuple[float, float, float] | None = None
    bytes: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The row for a JSON file."""
        return asdict(self)

    @staticmethod
    def from_dict(kept: Mapping[str, Any]) -> Row:
        """The row that :meth:`as_dict` gave."""
        fields: dict[str, Any] = {name: part for name, part in kept.items() if name != "suite"}
        if fields.get("ratio") is not None:
            fields["ratio"] = tuple(fields["ratio"])
        return Row(**fields)


class Clock:
    """The time that a whole run may take, so that it ends when it is said to end."""

    def __init__(self) -> None:
        self.start(None)

    def start(self, minutes: float | None) -> None:
        """Begin; None is without a limit."""
        self._begun = time.monotonic()
        self._seconds = minutes and minutes * 60
        self.left_out: list[str] = []

    @property
    def late(self) -> bool:
        """Whether the fewest rounds must do from here on."""
        return self._seconds is not None and time.monotonic() - self._begun > 0.75 * self._seconds

    def out(self, case: str) -> bool:
        """Whether no time is left, in which case ``case`` is noted as left out."""
        if self._seconds is None or time.monotonic() - self._begun < 0.93 * self._seconds:
            return False
        self.left_out.append(f"{case}: left out, the time was over")
        return True


CLOCK = Clock()
FEWEST, MOST = 5, 15  # rounds
LONG = 0.1
"""Seconds: what takes longer is not disturbed by what ran before it."""
SLOW = 5.0
"""Seconds: what takes longer than this is run once more after the answers are compared, and has no ratio."""


def settle(result: Any) -> Any:
    """Wait for results that are still being computed."""
    for part in result if isinstance(result, (tuple, list)) else [result]:
        wait = getattr(part, "block_until_ready", None)
        if wait is not None:
            wait()
    return result


def parts(answer: Any) -> list[np.ndarray]:
    """The arrays of an answer: one, or several."""
    return [np.asarray(part) for part in (answer if isinstance(answer, (tuple, list)) else [answer])]


def require_equal(case: str, functions: Mapping[str, Callable[[], Any]], tolerance: float) -> set[str]:
    """Refuse to time programs that answer differently from ours; the names of libraries whose answer is wrong.

    ONNX Runtime's ScatterND, for one, loses updates of repeated rows where its threads meet. When the programs written by
    hand (``jax.jit``, NumPy) say what ours says, such a library is left out and noted; otherwise ours is taken to be wrong.
    """
    answers = {who: [part.copy() for part in parts(settle(function()))] for who, function in functions.items()}
    first, wanted = next(iter(answers.items()))
    wrong = {
        who
        for who, got in answers.items()
        if len(got) != len(wanted) or not all(map(lambda a, b: _equal(a, b, tolerance), got, wanted))
    }
    if not wrong.isdisjoint(REFERENCES) or (wrong and REFERENCES.isdisjoint(answers)):
        raise AssertionError(f"{case}: {' and '.join(sorted(wrong))} and {first} answer differently")
    CLOCK.left_out += [f"{case}: {who} is left out: its answer differs from NumPy's" for who in sorted(wrong)]
    return wrong


def _equal(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    if a.shape != b.shape:
        return False
    if tolerance == 0 or a.dtype.kind not in "fV" or b.dtype.kind not in "fV":
        return np.array_equal(a, b)
    return np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance, equal_nan=True)


def side_by_side(
    case: str,
    functions: Mapping[str, Callable[[], Any]],
    *,
    seconds: float = 0.2,
    rounds: int = MOST,
    tolerance: float | None = 1e-5,
) -> list[Row]:
    """Time the functions in interleaved rounds of equal length, after a warm-up.

    Args:
        case: what is timed.
        functions: who runs it, and how.
        seconds: about how long each function is run in all; one that is slower has its turn in few rounds.
        rounds: how many times each function has its turn at most.
        tolerance: answers are compared first, exactly if 0; None for functions without an answer.
    """
    if CLOCK.out(case):
        return []
    if tolerance is not None:
        wrong = require_equal(case, functions, tolerance)
        functions = {who: function for who, function in functions.items() if who not in wrong}
    once: dict[str, float] = {}
    for who, function in functions.items():
        if tolerance is None:
            settle(function())
        start = time.perf_counter()
        settle(function())
        once[who] = max(time.perf_counter() - start, 1e-7)
    slow = [who for who, spent in once.items() if spent > SLOW and who != OURS]
    rows = [Row(case, who, once[who], once[who], once[who], 1) for who in slow]
    functions = {who: function for who, function in functions.items() if who not in slow}
    once = {who: once[who] for who in functions}
    fewest = min(FEWEST, rounds)
    fitting = int(seconds * len(functions) / sum(once.values()))
    rounds = fewest if CLOCK.late else max(fewest, min(rounds, fitting))
    counts = {who: max(1, int(seconds / rounds / spent)) for who, spent in once.items()}
    samples: dict[str, list[float]] = {who: [] for who in functions}
    for number in range(rounds):
        for who in list(functions)[:: 1 if number % 2 else -1]:
            function = functions[who]
            if once[who] < LONG:
                settle(function())  # which finds its memory, and the other libraries' threads, as they were left
            start = time.perf_counter()
            for _ in range(counts[who]):
                settle(function())
            samples[who].append((time.perf_counter() - start) / counts[who])
    ours = samples.get(OURS)
    for who, times in samples.items():
        low, middle, high = quartiles(times)
        ratio = None if ours is None else quartiles(np.divide(ours, times))
        rows.append(Row(case, who, middle, low, high, rounds * counts[who], ratio))
    return rows


def quartiles(samples: Any) -> tuple[float, float, float]:
    """The first quartile, the median and the third."""
    low, middle, high = np.percentile(samples, [25, 50, 75])
    return float(low), float(middle), float(high)


def cases(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each case, in the order in which they were taken."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.case, []).append(row)
    yield from found.items()


def best_peer(rows: Sequence[Row]) -> Row | None:
    """The fastest of those that are neither ours nor the limit."""
    return min(
        (row for row in rows if row.who != LIMIT and not row.who.startswith(OURS)), key=lambda row: row.seconds, default=None
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as text: medians, quartiles, and our time divided by each."""
    lines = [f"{'case':<48} {'who':<22} {'median':>14} {'quartiles':>25} {'ours / its':>10}"]
    for row in rows:
        spread = f"{row.low * 1e6:,.1f} - {row.high * 1e6:,.1f}"
        ratio = "" if row.ratio is None else f"{row.ratio[1]:.2f}"
        memory = "" if row.bytes is None else f"  {row.bytes / 2**20:,.1f} MiB"
        lines.append(f"{row.case:<48} {row.who:<22} {row.seconds * 1e6:>11,.1f} us {spread:>25} {ratio:>10}{memory}")
    return "\n".join(lines)
