"""Core ML Tools' folding and this package: operations without a row, answers that differ on purpose, calls that both refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import bnnsgraph as bg
from bnnsgraph import Padding, ScatterMode, SortOrder
from tests.coreml_mapping import STRICT, Row

OPERATIONS = {
    "no computation: it is how a program holds a constant, here builder.constant": ["const", "_const_symbolic"],
    "no computation: a branch chosen while building is an if of Python": ["cond"],
    "lists of tensors are Python's": ["list_length"],
    "the shape of its result depends on values, which a compiled program cannot have": ["non_zero"],
    "its folding is not written: it leaves .val empty": ["reverse_sequence"],
    "complex numbers exist inside Core ML Tools' converter alone": ["complex_shape"],
}
"""Operations that define how they fold, without a row, by reason."""

Outcome = list[Any] | type[Exception]
"""The outputs as nested lists, or what is raised."""


@dataclass(frozen=True)
class Difference:
    reason: str
    row: Row
    theirs: Outcome
    ours: Outcome
    half: bool = False


def row(
    op: str, build: Callable[..., Any], operands: Mapping[str, np.ndarray] | Sequence[np.ndarray], since: int = 18, **given: Any
) -> Row:
    options = STRICT if given.get("validate_indices") else bg.CompileOptions()
    return Row(op, operands, build, given, since=since, options=options)


def floats(*values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def integers(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def on(op: str, build: Callable[[Any], Any], x: np.ndarray, **given: Any) -> Row:
    return row(op, lambda _, x: build(x), {"x": x}, **given)


inf, nan = np.inf, np.nan
ENDS = floats(-inf, inf)
LIMIT = "at infinity the folded formula multiplies 0 by it; here it is the limit"
WHOLE = "integers: the folded float is cut to int32; here the type error names what to write"
UNFOLDED = "the folding raises; here it is an ordinary call"
PAIR = floats([1, 2], [3, 4])

DIFFERENCES = [
    Difference(
        "negative axis beside batch_dims: the folding subtracts batch_dims from it, and gathers along another axis",
        row(
            "gather",
            lambda _, x, i: x.gather(i, -1, 1),
            {"x": floats([[1, 2, 3], [4, 5, 6]]), "indices": integers([1])},
            axis=-1,
            batch_dims=1,
        ),
        [[[[4, 5, 6]]]],
        [[[[2], [5]]]],
    ),
    Difference(
        "more batch axes than axis allows: the folding goes on with a negative axis; here it is an error, as in tf.gather",
        row("gather", lambda _, x, i: x.gather(i, 0, 1), {"x": PAIR, "indices": integers([1], [0])}, axis=0, batch_dims=1),
        [[[2], [3]]],
        bg.ShapeError,
    ),
    Difference(
        "scatter modes: the folding writes the updates whatever the mode is",
        row(
            "scatter_along_axis",
            lambda _, data, indices, updates: data.scatter_along_axis(updates, indices, ScatterMode.ADD, 1),
            {"data": PAIR, "indices": integers([0], [1]), "updates": floats([10], [20])},
            axis=1,
            mode="add",
        ),
        [[[10, 2], [3, 20]]],
        [[[11, 2], [3, 24]]],
    ),
    Difference(
        "interleaved concatenation: the folding does not interleave; here it is a stack and a reshape",
        row("concat", lambda b, x, y: b.stack([x, y], 2).reshape([2, 4]), [PAIR, PAIR + 4], axis=1, interleave=True),
        [[[1, 2, 5, 6], [3, 4, 7, 8]]],
        [[[1, 5, 2, 6], [3, 7, 4, 8]]],
    ),
    Difference(
        "an upper bound below 0: the folding adds it twice, once for each side of 0",
        on("clamped_relu", lambda x: x.clamped_relu(0.5, -1.0), floats(1, -3), alpha=0.5, beta=-1.0),
        [[-2, -2.5]],
        [[-1, -1.5]],
    ),
    Difference(
        "off the band the folding multiplies by 0, which leaves NaN; here there are zeros",
        on("band_part", lambda x: x.band_part(0, 0), floats([1, nan], [inf, 2]), lower=0, upper=0),
        [[[1, nan], [nan, 2]]],
        [[[1, 0], [0, 2]]],
    ),
    Difference(
        "size 0: the folding takes all that is left",
        on("slice_by_size", lambda x: x[1:1], floats(1, 2, 3), begin=[1], size=[0]),
        [[2, 3]],
        [[]],
    ),
    Difference(
        "0 in a shape: Core ML copies the size, here it is a size of 0",
        on("reshape", lambda x: x.reshape([0, 2]), PAIR, shape=[0, 2]),
        [[[1, 2], [3, 4]]],
        bg.ShapeError,
    ),
    Difference(
        "a reflection wider than the axis: NumPy reflects the reflection; here it is an error, as in Core ML's documents",
        on("pad", lambda x: x.pad(Padding.REFLECTION, [3, 0]), floats(1, 2, 3), pad=[3, 0], mode="reflect"),
        [[2, 3, 2, 1, 2, 3]],
        bg.ShapeError,
    ),
    Difference(
        "parts that do not fill the axis: the folding gives the rest to the last one",
        on("split", lambda x: x.split([1, 1], 0), floats(1, 2, 3), split_sizes=[1, 1], axis=0),
        [[1], [2, 3]],
        bg.ShapeError,
    ),
    Difference(
        "NaN, largest first: the folding sorts negated numbers, NaN last; here NaN is the largest number in every order",
        on("argsort", lambda x: x.arg_sort(0, SortOrder.DESCENDING), floats(1, nan, 3), axis=0),
        [[2, 0, 1]],
        [[1, 2, 0]],
    ),
    Difference(
        "NaN among the largest: the same",
        on("topk", lambda x: tuple(x.top_k(2, 0)), floats(1, nan, 3), k=2, axis=0),
        [[3, 1], [2, 0]],
        [[nan, 3], [1, 2]],
    ),
    Difference(
        "the smallest int32, largest first: its negation is itself, and so the folding puts it first",
        on("argsort", lambda x: x.arg_sort(0, SortOrder.DESCENDING), integers(-(2**31), 3, 4), axis=0),
        [[0, 2, 1]],
        [[2, 1, 0]],
    ),
    Difference(
        "the smallest int32 among the largest: the same",
        on("topk", lambda x: tuple(x.top_k(2, 0)), integers(-(2**31), 3, 4), k=2, axis=0),
        [[-(2**31), 4], [0, 2]],
        [[4, 3], [2, 1]],
    ),
    Difference(
        "Core ML's epsilon, 1e-45, is subnormal: XLA's programs take it for 0",
        on("log", lambda x: x.log(1e-45), floats(0)),
        [[-103.27893]],
        [[-inf]],
    ),
    Difference(
        "float16: the folding's e**12 overflows; here float16 is computed in float32",
        on("sigmoid", lambda x: x.sigmoid(), floats(-12)),
        [[0]],
        [[6.139e-06]],
        half=True,
    ),
    Difference(
        "the folding's e**100 overflows; softplus here does not",
        row(
            "softplus_parametric",
            lambda _, x, a, b: x.softplus(1.0),
            {"x": floats([[100]]), "alpha": floats(1), "beta": floats(1)},
        ),
        [[[[inf]]]],
        [[[[100]]]],
    ),
    Difference(LIMIT, on("gelu", lambda x: x.gelu(), ENDS), [[nan, inf]], [[0, inf]]),
    Difference(
        LIMIT, on("gelu", lambda x: x.gelu_tanh_approximation(), ENDS, mode="TANH_APPROXIMATION"), [[nan, inf]], [[0, inf]]
    ),
    Difference(
        LIMIT,
        on("gelu", lambda x: x.gelu_sigmoid_approximation(), ENDS, mode="SIGMOID_APPROXIMATION"),
        [[nan, inf]],
        [[0, inf]],
    ),
    Difference(
        "infinity divided by infinity is NaN in the folding; here it is the limit",
        on("softsign", lambda x: x.softsign(), ENDS),
        [[nan, nan]],
        [[-1, 1]],
    ),
    Difference(
        "infinity minus infinity is NaN in the folding; here a largest element that is infinite is the answer",
        on("reduce_log_sum_exp", lambda x: x.log_sum_exp([1]), floats([-inf, -inf], [inf, 0]), axes=[1]),
        [[nan, nan]],
        [[-inf, inf]],
    ),
    Difference(
        "a query that may see no key: NaN in the folding, zeros here",
        row(
            "scaled_dot_product_attention",
            lambda _, query, *others: query.scaled_dot_product_attention(*others),
            {
                "query": floats([[1]]),
                "key": floats([[1], [2]]),
                "value": floats([[3], [4]]),
                "attn_mask": np.zeros((1, 2), bool),
            },
        ),
        [[[[nan]]]],
        [[[[0]]]],
    ),
    Difference(WHOLE, on("exp2", lambda x: x.exp2(), integers(3, -1)), [[8, 0]], bg.DTypeError),
    Difference(
        WHOLE, row("real_div", lambda _, x, y: x / y, {"x": integers(7, -7), "y": integers(2, 2)}), [[3, -3]], bg.DTypeError
    ),
    *[
        Difference(
            WHOLE, on(op, lambda x, name=name: getattr(x, name)([0]), integers(1, 2, 5), axes=[0]), [answer], bg.DTypeError
        )
        for op, name, answer in (
            ("reduce_mean", "mean", 2),
            ("reduce_l2_norm", "l2_norm", 5),
            ("reduce_log_sum", "log_sum", 2),
            ("reduce_log_sum_exp", "log_sum_exp", 5),
        )
    ],
    Difference(
        UNFOLDED, on("cumsum", lambda x: x.cumulative_sum(0) - x, floats(1, 2, 3), exclusive=True), TypeError, [[0, 1, 3]]
    ),
    Difference(UNFOLDED, on("squeeze", lambda x: x.squeeze(0).squeeze(0), floats([5])), ValueError, [5]),
    Difference(UNFOLDED, on("flatten2d", lambda x: x.reshape([1, 2]), floats([1, 2]), axis=0), TypeError, [[[1, 2]]]),
    Difference(
        UNFOLDED, on("layer_norm", lambda x: x.layer_norm(axes=[0, 1], epsilon=0.0), floats([1, 3])), ValueError, [[[-1, 1]]]
    ),
    Difference(UNFOLDED, on("tile", lambda x: x.tile([2]), floats([1, 2]), reps=[2]), ValueError, [[[1, 2, 1, 2]]]),
    Difference(UNFOLDED, on("tile", lambda x: x.tile([0]), floats(1, 2), reps=[0]), ValueError, [[]]),
]

X = floats([1, 2, 3], [4, 5, 6])


def gather(indices: np.ndarray, axis: int, batch: int = 0, **given: Any) -> Row:
    operands = {"x": X, "indices": indices}
    return row("gather", lambda _, x, i: x.gather(i, axis, batch), operands, axis=axis, batch_dims=batch, **given)


def along(indices: np.ndarray, **given: Any) -> Row:
    return row("gather_along_axis", lambda _, x, i: x.gather_along_axis(i, 1), {"x": X, "indices": indices}, axis=1, **given)


def scatter(indices: np.ndarray, updates: np.ndarray = X[:, :1], **given: Any) -> Row:
    return row(
        "scatter_along_axis",
        lambda _, data, indices, updates: data.scatter_along_axis(updates, indices, ScatterMode.UPDATE, 1),
        {"data": X, "indices": indices, "updates": updates},
        axis=1,
        mode="update",
        **given,
    )


REFUSED: list[tuple[Row, type[bg.GraphError]]] = [
    (gather(integers(2), 0), bg.IndexOutOfBoundsError),
    (gather(integers(0, -3), 0), bg.IndexOutOfBoundsError),
    (gather(integers([1], [3]), 1, 1), bg.IndexOutOfBoundsError),
    (gather(integers(-1), 0, validate_indices=True), bg.IndexOutOfBoundsError),
    (gather(integers(2), 0, validate_indices=True), bg.IndexOutOfBoundsError),
    (gather(integers(1), 2), bg.ShapeError),
    (gather(integers([1], [1], [1]), 1, 1), bg.ShapeError),
    (gather(floats(1), 0), bg.DTypeError),
    (along(integers([3], [0])), bg.IndexOutOfBoundsError),
    (along(integers([-4], [0])), bg.IndexOutOfBoundsError),
    (along(integers([-1], [0]), validate_indices=True), bg.IndexOutOfBoundsError),
    (along(integers(0)), bg.ShapeError),
    (along(integers([0])), bg.ShapeError),  # sizes of 1 are not broadcast
    (scatter(integers([3], [0])), bg.IndexOutOfBoundsError),
    (scatter(integers([-4], [0])), bg.IndexOutOfBoundsError),
    (scatter(integers([-1], [0]), validate_indices=True), bg.IndexOutOfBoundsError),
    (scatter(integers([1], [0]), X), bg.ShapeError),
    (on("reshape", lambda x: x.reshape([4]), X, shape=[4]), bg.ShapeError),
    (on("reshape", lambda x: x.reshape([-1, -1]), X, shape=[-1, -1]), bg.ShapeError),
    (on("reshape", lambda x: x.reshape([4, -1]), X, shape=[4, -1]), bg.ShapeError),
    (row("concat", lambda b, *values: b.concatenate(values, 1), [X, X[:1]], axis=1), bg.ShapeError),
    (row("concat", lambda b, *values: b.concatenate(values, 0), [X[0], integers(1)], axis=0), bg.DTypeError),
    (row("stack", lambda b, *values: b.stack(values, 1), [X, X[:1]], axis=1), bg.ShapeError),
    (on("split", lambda x: x.split(2, 1), X, num_splits=2, axis=1), bg.ShapeError),
    (on("transpose", lambda x: x.transpose([0, 0]), X, perm=[0, 0]), bg.ShapeError),
    (on("squeeze", lambda x: x.squeeze(0), X, axes=[0]), bg.ShapeError),
    (on("expand_dims", lambda x: x.unsqueeze(3), X, axes=[3]), bg.ShapeError),
    (on("reverse", lambda x: x.reverse([2]), X, axes=[2]), bg.ShapeError),
    (on("band_part", lambda x: x.band_part(0, 0), X[0], lower=0, upper=0), bg.ShapeError),
    (on("slice_by_index", lambda x: x[3:1], floats(1, 2, 3, 4), begin=[3], end=[1]), bg.ShapeError),
    (on("slice_by_index", lambda x: x[2], X[0, :2], begin=[2], end=[3], squeeze_mask=[True]), bg.IndexOutOfBoundsError),
    (on("pad", lambda x: x.pad(Padding.constant(0.0), [1] * 6), X, pad=[1] * 6), bg.ShapeError),
    (on("pad", lambda x: x.pad(Padding.constant(0.0), [-1, 0]), X, pad=[-1, 0]), bg.ParameterError),
    (row("range_1d", lambda b: b.arange(0, 3, 0), {}, start=0, end=3, step=0), bg.ParameterError),
    (on("topk", lambda x: tuple(x.top_k(4, 1)), X, k=4), bg.ShapeError),
    (row("matmul", lambda _, x, y: x.matmul(y), {"x": X, "y": X}), bg.ShapeError),
    (row("linear", lambda _, x, weight: x.linear(weight), {"x": X, "weight": X.T.copy()}), bg.ShapeError),
    (
        row("einsum", lambda b, *values: b.einsum("chw,whr->chr", *values), [X[None], X[None]], equation="chw,whr->chr"),
        bg.ShapeError,
    ),
    (row("add", lambda _, x, y: x + y, {"x": X, "y": integers(1)}), bg.DTypeError),
    (row("add", lambda _, x, y: x + y, {"x": X, "y": X[:, :2]}), bg.ShapeError),
    (row("select", lambda _, cond, a, b: cond.select(a, b), {"cond": X, "a": X, "b": X}), bg.DTypeError),
    (on("logical_not", lambda x: ~x, X), bg.DTypeError),
    (on("exp", lambda x: x.exp(), integers(1)), bg.DTypeError),
    (row("prelu", lambda _, x, alpha: x.prelu(alpha), {"x": X[None], "alpha": floats(1, 1, 1)}), bg.ShapeError),
    (on("reduce_sum", lambda x: x.sum([2]), X, axes=[2]), bg.ShapeError),
    (on("reduce_max", lambda x: x.maximum([0]), floats([1])[:0], axes=[0]), bg.ShapeError),
    (on("reduce_argmax", lambda x: x.arg_max(2), X, axis=2), bg.ShapeError),
    (on("reduce_argmin", lambda x: x.arg_min(0), floats([1])[:0], axis=0), bg.ShapeError),
    (on("softmax", lambda x: x.softmax(2), X, axis=2), bg.ShapeError),
    (on("cumsum", lambda x: x.cumulative_sum(2), X, axis=2), bg.ShapeError),
    (
        row("layer_norm", lambda _, x, gamma: x.layer_norm(gamma, axes=[1]), {"x": X, "gamma": floats(1, 2)}, axes=[1]),
        bg.ShapeError,
    ),
    (on("l2_norm", lambda x: x.l2_norm(epsilon=1e-3), X, epsilon=1e-3), bg.ShapeError),
]
"""Calls that are wrong for both."""
