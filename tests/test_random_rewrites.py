"""Random programs, as they are recorded and as they are rewritten: the same results, checks and errors, and no more work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bnnsgraph as bg
from bnnsgraph.graph import Graph
from bnnsgraph.ops.slicing import Slice, Span
from bnnsgraph.passes.rewriting import rewritten
from bnnsgraph.spec import element_count
from bnnsgraph.walking import walk
from tests.test_passes import compare, ints, record

MOVING = (0, 1, 2, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)
"""Kinds of steps that compute each element from single elements, or move them: equal to the bit also for floats."""
KINDS = range(21)
LAST = (9, 10, 11, 12, 13, 14, 15, 17)
"""Kinds that select."""

MODES: list[Any] = ["raise", "clip", bg.fill(7)]


def grown(b: bg.Builder, kinds: Sequence[int], seed: int, dtype: Any, modes: Sequence[Any] = MODES) -> list[Any]:
    """A program: each step reads what some steps before it made."""
    rng = np.random.default_rng(seed)
    made: list[Any] = [b.argument("x", dtype, [4, 6, 5]), b.argument("y", dtype, [4, 6, 5])]
    index = b.argument("i", bg.Int32, [2])
    pair = b.argument("p", bg.Int32, [4, 2])
    vectors = b.argument("v", bg.Int32, [3, 2])
    for kind in kinds:
        fitting = [each for each in made if each.rank and 0 not in each.shape]
        x = fitting[-1 - min(int(rng.geometric(0.6)) - 1, len(fitting) - 1)]
        step = Step(b, x, int(rng.integers(x.rank)), rng, dtype, modes)
        if kind < 9 or kind > 17:
            made += step.computed(kind, made)
        elif kind < 12:
            made += step.chosen(kind)
        else:
            made += step.gathered(kind, index, pair, vectors)
    return made[-1 - int(rng.integers(2)) :]


class Step:
    """One step of a random program."""

    def __init__(self, b: bg.Builder, x: Any, axis: int, rng: np.random.Generator, dtype: Any, modes: Any) -> None:
        self.b, self.x, self.axis, self.rng, self.dtype, self.modes = b, x, axis, rng, dtype, modes
        self.size = x.shape[axis]

    def numbers(self, low: int, high: int, shape: Sequence[int]) -> np.ndarray:
        """A constant of the program's dtype."""
        return self.rng.integers(low, high, shape).astype(self.dtype.numpy)

    def along(self, size: int) -> list[int]:
        """The shape of a tensor of this size on the axis, that broadcasts on all others."""
        return [size if own == self.axis else 1 for own in range(self.x.rank)]

    def computed(self, kind: int, made: Sequence[Any]) -> Sequence[Any]:
        """What is computed of a tensor."""
        x, axis, rng = self.x, self.axis, self.rng
        match kind:
            case 0:
                return [abs(x) - 3]
            case 1:
                return [x * 2 + next((each for each in reversed(made) if each is not x and each.shape == x.shape), x)]
            case 2:
                return [(x > 0).select(x, self.numbers(-9, 9, self.along(self.size)))]
            case 3:
                return [x @ self.numbers(-3, 3, (x.shape[-1], 4))]
            case 4:
                return [x.transpose(axes=rng.permutation(x.rank).tolist())]
            case 5:
                return [x.sum([axis], keep_dimensions=bool(rng.integers(2)))]
            case 6:
                return [self.b.concatenate([x, x + 1, x * 2][: int(rng.integers(2, 4))], axis=axis)]
            case 7:
                return [x.unsqueeze(axis=axis) if x.rank < 4 else x.reshape(to=[*x.shape[:-2], x.shape[-2] * x.shape[-1]])]
            case 8:
                return [x.top_k(min(2, self.size), axis=axis).values]
            case 18:
                return [x.softmax(axis) if self.dtype is bg.Float32 else x.cumulative_sum(axis)]
            case 19:
                return [x.tanh() if self.dtype is bg.Float32 else -x]
            case _:
                hot = self.b.constant(values=rng.integers(0, 40, (x.shape[0], 3)).astype(np.int32)).one_hot(40)
                return [hot.cast(to=self.dtype) @ self.numbers(-3, 3, (40, 5))]

    def chosen(self, kind: int) -> Sequence[Any]:
        """Positions that are known while building."""
        x, axis, rng, size = self.x, self.axis, self.rng, self.size
        items = [slice(None)] * x.rank
        match kind:
            case 9:
                return [x[tuple(self.span(each) if rng.integers(2) else slice(None) for each in x.shape)]]
            case 10:
                return [x[(*items[:axis], int(rng.integers(-size, size)), *items[axis + 1 :])]]
            case _:
                places = rng.integers(-size, size, int(rng.integers(1, 4))).astype(np.int32)
                return [x.gather(np.arange(size)[::-1][:2] if rng.integers(2) else places, axis=axis)]

    def span(self, size: int) -> slice:
        """Some of an axis."""
        start = int(self.rng.integers(size))
        return slice(start, start + 1 + int(self.rng.integers(size - start)), int(self.rng.integers(1, 3)))

    def gathered(self, kind: int, index: Any, pair: Any, vectors: Any) -> Sequence[Any]:
        """Positions that are known when the program runs, some of them outside."""
        x, axis, mode = self.x, self.axis, self.modes[int(self.rng.integers(len(self.modes)))]
        batched = x.rank > 1 and x.shape[0] == 4
        match kind:
            case 12:
                return [x.gather(index, axis=axis, out_of_bounds=mode)]
            case 13 if batched and axis > 0:
                return [x.gather(pair, axis=axis, batch_dimension_count=1, out_of_bounds=mode)]
            case 14 if x.rank > 1:
                return [x.gather_nd(vectors, out_of_bounds=mode)]
            case 15:
                shape = [2 if own == axis else size for own, size in enumerate(x.shape)]
                return [x.gather_along_axis(index.reshape(to=self.along(2)).broadcast_to(shape), axis=axis, out_of_bounds=mode)]
            case 16 if batched:
                return [x.gather_nd(pair.unsqueeze(axis=2), batch_dimension_count=1, out_of_bounds=mode)]
            case 17 if self.size > 1:
                return [x.split([1, -1], axis=axis)[int(self.rng.integers(2))]]
            case _:
                return []


def given_arrays(seed: int, dtype: Any) -> list[np.ndarray]:
    """The arguments; some indices are outside of some axes."""
    rng = np.random.default_rng(seed)
    draw = rng.normal(size=(2, 4, 6, 5)) if dtype is bg.Float32 else rng.integers(-9, 9, (2, 4, 6, 5))
    index = ints(-1, seed % 7 - 1)
    return [*draw.astype(dtype.numpy), index, rng.integers(-2, 3, (4, 2)).astype(np.int32), ints([0, 1], [0, 1], index)]


def check(kinds: Sequence[int], seed: int, dtype: Any) -> None:
    """Compare a program with what it is changed to."""
    kinds = [*kinds, LAST[seed % len(LAST)]]  # something is selected at last
    compare(lambda b: grown(b, kinds, seed, dtype), *given_arrays(seed, dtype))


def cost(graph: Graph, arrays: Sequence[np.ndarray]) -> tuple[float, float]:
    """What XLA counts in the program that it is given: operations, and bytes read and written."""
    lowered: Any = jax.jit(lambda *arrays: walk(graph, arrays, {}, checked=True).values).lower(*arrays)
    counted: dict[str, float] = lowered.cost_analysis()
    return counted.get("flops", 0.0), counted.get("bytes accessed", 0.0)


def turned(graph: Graph) -> int:
    """The bytes of slices that run backwards: a slice and a reversal, which XLA counts apart and computes together."""
    found = 0
    for node in graph.nodes:
        if isinstance(node.op, Slice) and any(isinstance(item, Span) and item.step < 0 for item in node.op.items):
            count = element_count(node.outputs[0].shape)
            assert isinstance(count, int)
            found += count * node.outputs[0].dtype.bits // 8
    return found


def check_work(kinds: Sequence[int], seed: int) -> None:
    """A changed program does no more than the recorded one, by XLA's own account, without what indices take to be checked."""
    arrays = given_arrays(seed, bg.Int32)
    options = bg.CompileOptions(out_of_bounds="unchecked", negative_indices="out_of_bounds")
    graph = record(lambda b: grown(b, [*kinds, LAST[seed % len(LAST)]], seed, bg.Int32, [None]), options)
    changed, records = rewritten(graph, [array.shape for array in arrays], checked=True)
    before, after = cost(graph, arrays), cost(changed, arrays)
    assert after[0] <= before[0], records
    assert after[1] <= before[1] + 2 * turned(changed), records


def examples(count: int) -> Callable[[Any], Any]:
    return settings(derandomize=True, max_examples=count, deadline=None)


SEEDS = st.integers(0, 2**16)


def programs(kinds: Sequence[int]) -> Any:
    return st.lists(st.sampled_from(kinds), min_size=3, max_size=9)


@examples(10)
@given(programs(KINDS), SEEDS)
def test_integers(kinds: list[int], seed: int) -> None:
    check(kinds, seed, bg.Int32)


@examples(5)
@given(programs(MOVING), SEEDS)
def test_floats_are_moved_to_the_bit(kinds: list[int], seed: int) -> None:
    check(kinds, seed, bg.Float32)


@examples(5)
@given(programs(KINDS), SEEDS)
def test_floats_are_summed_to_their_rounding(kinds: list[int], seed: int) -> None:
    check(kinds, seed, bg.Float32)


@examples(8)
@given(programs(KINDS), SEEDS)
def test_no_more_work(kinds: list[int], seed: int) -> None:
    check_work(kinds, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100))
def test_many(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = rng.choice(KINDS, int(rng.integers(3, 10))).tolist()
    check(kinds, seed, bg.Int32)
    check(rng.choice(MOVING, len(kinds)).tolist(), seed, bg.Float32)
    check(kinds, seed, bg.Float32)
    check_work(kinds, seed)
