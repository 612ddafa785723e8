"""Figures taken now beside figures kept earlier, by their ratios: a slower machine is slower for the peers too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.benchmarks.timing import LIMIT, OURS, Row

SLACK = 1.15
"""Medians of ratios must differ by more than this too: where the compiler puts a loop differs from process to process."""


class Change(NamedTuple):
    """A ratio, ours to a peer's, outside the spread that it had.

    Attributes:
        before: our seconds divided by theirs: quartile, median, quartile.
        now: the same.
    """

    case: str
    who: str
    before: tuple[float, float, float]
    now: tuple[float, float, float]

    @property
    def worse(self) -> bool:
        """Whether we lost."""
        return self.now[1] > self.before[1]

    def __str__(self) -> str:
        """One line of the report."""
        kind = "slower" if self.worse else "faster"
        before, now = (f"{middle:.2f} ({low:.2f} - {high:.2f})" for low, middle, high in (self.before, self.now))
        return f"{kind}: {self.case}: ours / {self.who} was {before}, is {now}"


def changes(base: Sequence[Row], now: Sequence[Row]) -> list[Change]:
    """The ratios whose spreads do not meet, the worst first."""
    kept = {(row.case, row.who): row.ratio for row in base}
    found: list[Change] = []
    for row in now:
        before = kept.get((row.case, row.who))
        if before is None or row.ratio is None or row.who == LIMIT or row.who.startswith(OURS):
            continue
        slower = row.ratio[0] > before[2] and row.ratio[1] > SLACK * before[1]
        faster = row.ratio[2] < before[0] and row.ratio[1] * SLACK < before[1]
        if slower or faster:
            found.append(Change(row.case, row.who, before, row.ratio))
    return sorted(found, key=lambda change: change.before[1] / change.now[1])


def not_taken(base: Sequence[Row], now: Sequence[Row]) -> list[str]:
    """Cases that were kept and are not among those taken now."""
    taken = {row.case for row in now}
    return list(dict.fromkeys(row.case for row in base if row.case not in taken))
