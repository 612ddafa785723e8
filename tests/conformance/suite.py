"""Runs cases through the public API, forty in one graph, which compiles in less than half of the time of forty graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import bnnsgraph as bg
from tests.conformance.cases import Case

Build = Callable[[bg.Builder, Case, Sequence[Any]], bg.Tensor[Any]]
"""Writes a case with the public API. The operands are tensors, except that constant indices come as an array."""

Options = Callable[[Case], bg.CompileOptions]
"""The options of the graph that a case needs."""

GROUP = 40


class Suite:
    """Cases, and how their peer's operations are written.

    ``constant`` makes all inputs constants: indices are checked and settled while building, and XLA folds the operation, which
    compiles several times faster than the program for arguments.
    """

    def __init__(self, cases: Iterable[Case], build: Build, options: Options = lambda case: bg.CompileOptions()) -> None:
        self.cases = tuple(cases)
        self.build = build
        self.options = options
        self.answered = [case for case in self.cases if not case.error]
        self.refused = [case for case in self.cases if case.error]
        self._group_of = {case: tuple(group) for group in self._groups() for case in group}
        self._answers: dict[tuple[Case, bool], np.ndarray | bg.GraphError] = {}

    def answer(self, case: Case, *, constant: bool) -> np.ndarray:
        """Our answer to one case. Those of its group are worked out with it."""
        if (case, constant) not in self._answers:
            for other, found in self._run_group(self._group_of[case], constant).items():
                self._answers[other, constant] = found
        answer = self._answers[case, constant]
        if isinstance(answer, bg.GraphError):
            raise answer
        return answer

    def refusal(self, case: Case, *, constant: bool) -> bg.GraphError | None:
        """The error that we raise, while building or running; None when there is an answer."""
        try:
            self._run([case], constant)
        except bg.GraphError as error:
            return error
        return None

    def _groups(self) -> list[list[Case]]:
        """Cases that may share a graph: of equal options, and apart by whether they need JAX's 64-bit mode."""
        kinds: dict[tuple[bg.CompileOptions, bool], list[Case]] = {}
        for case in self.answered:
            wide = any(array.dtype.itemsize == 8 for array in case.inputs)
            kinds.setdefault((self.options(case), wide), []).append(case)
        return [cases[start : start + GROUP] for cases in kinds.values() for start in range(0, len(cases), GROUP)]

    def _run_group(self, cases: Sequence[Case], constant: bool) -> dict[Case, np.ndarray | bg.GraphError]:
        try:
            return dict(zip(cases, self._run(cases, constant), strict=True))
        except bg.GraphError as error:
            if len(cases) == 1:
                return {cases[0]: error}
            return {case: self._run_group([case], constant)[case] for case in cases}

    def _run(self, cases: Sequence[Case], constant: bool) -> list[np.ndarray]:
        arrays: list[np.ndarray] = []

        def block(b: bg.Builder) -> list[bg.Tensor[Any]]:
            results: list[bg.Tensor[Any]] = []
            for number, case in enumerate(cases):
                operands: list[Any] = []
                for place, array in enumerate(case.inputs):
                    if constant:
                        operands.append(array if place == 1 else b.constant(values=array))
                    else:
                        arrays.append(array)
                        operands.append(b.argument(f"case_{number}_{place}", array.dtype, array.shape))
                results.append(self.build(b, case, operands))
            return results

        context = bg.make_context(block, options=self.options(cases[0]))
        results = context(*arrays)
        return [np.asarray(result) for result in (results if len(cases) > 1 else [results])]


def assert_same(got: np.ndarray, expected: np.ndarray | None) -> None:
    """Dtype, shape and every bit."""
    assert expected is not None
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)
    assert got.tobytes() == expected.tobytes()
