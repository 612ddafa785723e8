"""Programs spread over devices: the answers of one device, and of what is sent no more than must be.

The checks run in one process with 8 virtual devices of the CPU; two processes over loopback are among the long tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental import checkify
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import bnnsgraph as bg
from bnnsgraph import reuse
from bnnsgraph.dtypes import as_dtype
from tests.benchmarks.collectives import Collective, collectives, compiled_text
from tests.benchmarks.scaling import figures
from tests.compilations import Compilations
from tests.devices import failures

RNG = np.random.default_rng(7)
TABLE = RNG.normal(size=(64, 4)).astype(np.float32)
LARGE = RNG.integers(-(2**31), 2**31, (8192, 4)).astype(np.int32)  # a parameter of the program: 128 KiB
EDGES = np.array([0, 7, 8, 15, 16, 55, 56, 63, -1, -8, -9, -64], np.int32)  # 8 rows lie on each of 8 devices


def explicit() -> Mesh:
    """What ``jax.make_mesh`` makes, unless told otherwise."""
    mesh = jax.make_mesh((8,), ("x",))
    assert mesh.axis_types == (AxisType.Explicit,)
    return mesh


def spread(block: Callable[[bg.Builder], Any], shardings: Any, mesh: Any = None, **options: Any) -> bg.Context:
    mesh = explicit() if mesh is None else mesh
    return bg.make_context(block, options=bg.CompileOptions(mesh=mesh, shardings=shardings, **options))


def sent(context: bg.Context, **sizes: int) -> list[Collective]:
    return collectives(compiled_text(context, **sizes))


def constant_rows(b: bg.Builder) -> Any:
    return {"rows": b.constant("table", values=TABLE).gather(b.argument("i", bg.Int32, ["n"]), axis=0)}


def argument_rows(b: bg.Builder) -> Any:
    table = b.argument("table", bg.Float32, [64, 4])
    return {"rows": table.gather(b.argument("i", bg.Int32, ["n"]), axis=0)}


def large_rows(b: bg.Builder) -> Any:
    return {"rows": b.constant("table", values=LARGE).gather(b.argument("i", bg.Int32, ["n"]), axis=0)}


def network(b: bg.Builder) -> Any:
    x = b.argument("x", bg.Float32, ["batch", 16])
    w1 = b.constant("w1", values=(np.random.default_rng(1).normal(size=(16, 32)) / 4).astype(np.float32))
    return {"y": ((x @ w1).relu() @ b.argument("w2", bg.Float32, [32, 8])).softmax(axis=1)}


def counts(b: bg.Builder) -> Any:
    state = b.argument("state", bg.Int64, [64, 4], intent=bg.Intent.INPUT_OUTPUT)
    i = b.argument("i", bg.Int32, [2])
    state[:] = state.scatter(b.argument("added", bg.Int64, [2, 4]), i, bg.ScatterMode.ADD, axis=0)
    return {"highest": state.maximum(None)}


ALONE = bg.make_context(network)
X = RNG.normal(size=(16, 16)).astype(np.float32)
W2 = RNG.normal(size=(32, 8)).astype(np.float32)


def assert_near(got: Any, wanted: Any) -> None:
    """Probabilities of float32: sums of 32 products in another order, of numbers about 1, differ by less than 1e-6."""
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)


def message(run: Any) -> str:
    """What a refused call says first."""
    with pytest.raises(bg.GraphError) as caught:
        run()
    return str(caught.value).partition("\n")[0]


# Run on 8 devices


def check_results_into_memory() -> None:
    """Spread as the options say, and as XLA chose."""
    for shardings in ({"table": P("x"), "rows": P("x")}, {"table": P("x")}):
        context = spread(argument_rows, shardings)
        rows = np.arange(16, dtype=np.int32) * 4
        result = context(TABLE, rows)
        for step in range(3):
            before = result
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(reuse, "CLEARED", 0)  # as if the results were large
                result = context.run_into(before, TABLE + step, rows)
            assert before.is_deleted()
            assert np.array_equal(np.array(result), TABLE[rows] + step)


def check_many_indices_that_lie_on_several_devices() -> None:
    """They are looked at before the run, wherever they are."""
    context = bg.make_context(argument_rows)
    many = np.arange(256, dtype=np.int32) % 64
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    whole = NamedSharding(mesh, P())
    for sharding in (whole, NamedSharding(mesh, P("x")), jax.devices()[0]):
        given = jax.device_put(many, sharding)
        table = TABLE if sharding is jax.devices()[0] else jax.device_put(TABLE, whole)
        assert np.array_equal(context(table, given), TABLE[many])
        with np.testing.assert_raises_regex(bg.IndexOutOfBoundsError, r"got 64 at position \[1\]"):
            context(table, jax.device_put(many + 63, sharding))


def check_a_table_is_read_with_one_reduction_of_the_result() -> None:
    alone = bg.make_context(constant_rows)
    for block, mode in ((constant_rows, "raise"), (argument_rows, "raise"), (constant_rows, bg.fill(0))):
        before = (TABLE,) if block is argument_rows else ()
        context = spread(block, {"table": P("x")}, out_of_bounds=mode)
        assert sent(context, n=12) == [Collective("all-reduce", 12 * 4 * 4, 8)], mode
        rows = context(*before, EDGES)
        np.testing.assert_array_equal(rows, TABLE[EDGES])
        np.testing.assert_array_equal(rows, alone(EDGES))
        for outside in (64, -65):
            indices = EDGES.copy()
            indices[-1] = outside
            if mode == "raise":
                words = message(lambda context=context, before=before, indices=indices: context(*before, indices))
                assert words == f"Gather(axis=0): indices must be in [-64, 64) on axis 0, got {outside} at position [11]"
                assert words == message(lambda indices=indices: alone(indices))
            else:
                assert not context(indices)[-1].any()


def check_spread_indices_are_gathered_and_the_table_is_not() -> None:
    """Beside the reduction of the rows, the indices are sent, and with a check one Bool."""
    context = spread(constant_rows, {"table": P("x"), "i": P("x"), "rows": P("x")})
    assert sorted(sent(context, n=16)) == [
        Collective("all-gather", 16 * 4, 8),
        Collective("all-reduce", 1, 8),
        Collective("all-reduce", 16 * 4 * 4, 8),
    ]
    indices = RNG.integers(-64, 64, 16).astype(np.int32)
    rows = context(indices)
    np.testing.assert_array_equal(rows, TABLE[indices])
    assert rows.sharding.spec == P("x")
    indices[9] = 99
    assert message(lambda: context(indices)).endswith("got 99 at position [9]")


def check_elements_vectors_and_updates() -> None:
    """Integers to the bit, floats too: each sum has one update a row."""

    def block(b: bg.Builder) -> Any:
        table, wide = b.argument("table", bg.Float32, [64, 4]), b.constant("wide", values=LARGE[:64])
        columns, vectors = b.argument("columns", bg.Int32, [16, 4]), b.argument("vectors", bg.Int32, [16, 2])
        rows = b.argument("rows", bg.UInt8, [16])
        return {
            "elements": table.gather_along_axis(columns, axis=0),
            "whole": wide.gather_nd(vectors),
            "added": table.scatter(table[:16], rows, bg.ScatterMode.ADD, axis=0),
            "replaced": wide.scatter_nd(vectors[:, 0], vectors, bg.ScatterMode.UPDATE),
        }

    arrays: dict[str, Any] = {
        "table": TABLE,
        "columns": RNG.integers(-64, 64, (16, 4)).astype(np.int32),
        "vectors": np.stack([np.arange(0, 64, 4), RNG.integers(-4, 4, 16)], 1).astype(np.int32),
        "rows": RNG.permutation(64)[:16].astype(np.uint8),
    }
    context = spread(block, {"table": P("x"), "wide": P("x"), "added": P("x")})
    got, wanted = context(**arrays), bg.make_context(block)(**arrays)
    for name, array in wanted._asdict().items():
        np.testing.assert_array_equal(getattr(got, name), array, err_msg=name)
    np.testing.assert_array_equal(got.elements, np.take_along_axis(TABLE, arrays["columns"] % 64, 0))
    assert got.added.sharding.spec == P("x")
    assert max(found.bytes for found in sent(context)) < TABLE.nbytes


def check_a_batch_needs_no_collective() -> None:
    context = spread(network, {"x": P("x"), "y": P("x")})
    assert sent(context, batch=16) == []
    y = context(X, W2)
    assert y.sharding.spec == P("x")
    assert {shard.data.shape for shard in y.addressable_shards} == {(2, 8)}
    assert_near(y, ALONE(X, W2))


def check_split_weights_need_one_reduction() -> None:
    """Columns of the first matrix and rows of the second, then one sum of the products."""
    context = spread(network, {"w1": P(None, "x"), "w2": P("x")})
    assert sent(context, batch=16) == [Collective("all-reduce", 16 * 8 * 4, 8)]
    assert_near(context(X, W2), ALONE(X, W2))


def check_two_axes() -> None:
    """Batches over one axis of the mesh and the table over the other: half of the rows is summed among four devices."""
    mesh = jax.make_mesh((2, 4), ("data", "model"))
    context = spread(constant_rows, {"table": P("model"), "i": P("data"), "rows": P("data")}, mesh)
    assert sorted(sent(context, n=12)) == [Collective("all-reduce", 1, 2), Collective("all-reduce", 6 * 4 * 4, 4)]
    rows = context(EDGES)
    np.testing.assert_array_equal(rows, TABLE[EDGES])
    assert (rows.sharding.spec, rows.sharding.mesh.shape) == (P("data"), {"data": 2, "model": 4})
    graph = bg.make_context(constant_rows).graph  # as a graph that was loaded
    both = bg.Context(bg.placed(graph, mesh=Mesh(mesh.devices, mesh.axis_names), shardings={"table": P(("data", "model"))}))
    assert sent(both, n=12) == [Collective("all-reduce", 12 * 4 * 4, 8)]
    np.testing.assert_array_equal(both(EDGES), TABLE[EDGES])


def check_state_stays_where_it_is() -> None:
    context = spread(counts, {"state": P("x")})
    start, added = np.zeros((64, 4), np.int64), np.full((2, 4), 2**40)
    first = context(start, np.array([0, 63], np.int32), added)
    assert (first.highest.item(), first.state.sharding.spec, start.any()) == (2**40, P("x"), False)
    refused = message(lambda: context(first.state, np.array([0, 64], np.int32), added))
    assert refused.endswith("indices must be in [-64, 64) on axis 0, got 64 at position [1]")
    assert not first.state.is_deleted()
    second = context(first.state, np.array([-1, 9], np.int32), added)
    assert first.state.is_deleted()
    assert (second.highest.item(), np.asarray(second.state)[[0, 9, 63], 0].tolist()) == (2**41, [2**40, 2**40, 2**41])
    kept = spread(counts, {"state": P("x")}, donate=False)
    kept(second.state, np.array([0, 1], np.int32), added)
    assert not second.state.is_deleted()


def check_each_size_is_compiled_once() -> None:
    """And arrays that lie where they should are not moved."""
    context = spread(network, {"x": P("x"), "w1": P(None, "x"), "y": P("x")})
    context._runner.placed()
    with Compilations() as seen:
        context.warm_up(batch=[8, 16])
        assert seen.count == 2
        x, w2 = (jax.device_put(array, NamedSharding(explicit(), P(*spec))) for array, spec in ((X, ["x"]), (W2, [])))
        for arrays in ((X, W2), (X[:8], W2), (x, w2), (X, w2)):
            context(*arrays)
    assert seen.count == 2
    assert [compilation.sizes for compilation in context.compilations] == [{"batch": 8}, {"batch": 16}]
    placed = context._runner.placed().placement
    assert placed is not None
    there = placed.put([x, w2])
    assert [got is array for got, array in zip(placed.put(there), there, strict=True)] == [True, True]


def check_uneven_sizes_are_refused_in_our_words() -> None:
    context = spread(network, {"x": P("x")})
    words = "the sharding of 'x' must divide its axes evenly, got 9 elements on axis 0 of [9, 16] over 8 devices"
    x = np.ones((9, 16), np.float32)
    for run in (
        lambda: context(x, W2),
        lambda: context.trace(x, W2),
        lambda: context.compare("op by op", x, W2),
        lambda: context.warm_up(batch=9),
        lambda: context.cost(batch=9),
        lambda: context.stablehlo(batch=9),
        lambda: context.function(x, W2),
    ):
        assert message(run) == words
    shorter = spread(lambda b: {"y": b.argument("x", bg.Float32, ["n"])[1:]}, {"y": P("x")})
    assert shorter(np.arange(9, dtype=np.float32)).tolist() == list(range(1, 9))
    assert message(lambda: shorter(np.ones(8, np.float32))) == (
        "the sharding of 'y' must divide its axes evenly, got 7 elements on axis 0 of [7] over 8 devices"
    )


def check_what_is_wrong_is_said_when_the_context_is_made() -> None:
    mesh = jax.make_mesh((2, 4), ("a", "b"))
    for shardings, words in (
        ({"tabel": P("a")}, "CompileOptions.shardings must name arguments, constants or outputs (i, table, rows), got 'tabel'"),
        (
            {"table": P("c")},
            "the sharding of 'table' must use each axis of the mesh (a, b) at most once, got the unknown axis 'c' in P('c',)",
        ),
        (
            {"table": P("a", "a")},
            "the sharding of 'table' must use each axis of the mesh (a, b) at most once, got an axis twice in P('a', 'a')",
        ),
        (
            {"rows": P("a", None, "b")},
            "the sharding of 'rows' must have at most 2 parts, one an axis, got P('a', None, 'b')",
        ),
        (
            {"table": P(None, ("a", "b"))},
            "the sharding of 'table' must divide its axes evenly, got 4 elements on axis 1 of [64, 4] over 8 devices",
        ),
        ({"i": "a"}, "the sharding of 'i' must be a jax.sharding.PartitionSpec, got 'a'"),
    ):
        assert message(lambda shardings=shardings: spread(constant_rows, shardings, mesh)) == words
    nothing = Mesh(np.empty(0, object), ("x",))
    for wrong in (mesh.abstract_mesh, nothing, 8):
        assert message(lambda wrong=wrong: spread(constant_rows, {}, wrong)) == (
            f"CompileOptions.mesh must be a jax.sharding.Mesh of devices, got {wrong!r}"
        )


def check_functions() -> None:
    """A function is spread by the options inside of ``jit`` and ``grad``, and by its caller inside of ``shard_map``."""
    mesh = explicit()
    context, fixed = spread(large_rows, {"table": P("x")}, mesh), spread(argument_rows, {"table": P("x")}, mesh)
    wanted = LARGE[EDGES]
    lowered = jax.jit(context.function).lower(EDGES).compile()
    assert [found.kind for found in collectives(lowered.as_text() or "")] == ["all-reduce"]
    np.testing.assert_array_equal(context.function(EDGES), wanted)
    np.testing.assert_array_equal(jax.jit(jax.vmap(context.function))(np.stack([EDGES, EDGES]))[1], wanted)
    slope = jax.jit(jax.grad(lambda table: (fixed.function(table, EDGES) ** 2).sum()))(TABLE)
    assert slope.sharding.spec == P("x")
    expected = np.zeros_like(TABLE)
    np.add.at(expected, EDGES, 2 * TABLE[EDGES])
    np.testing.assert_allclose(slope, expected, rtol=1e-6)  # two of the rows are read twice
    automatic = Mesh(mesh.devices, mesh.axis_names)
    pieces = jax.shard_map(context.function, mesh=automatic, in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_array_equal(jax.jit(pieces)(np.tile(EDGES, 2)), np.tile(wanted, (2, 1)))
    checked = jax.jit(checkify.checkify(context.checked_function))
    assert (checked(EDGES)[0].get(), checked(EDGES + 9000)[0].get() or "")[1].startswith("Gather(axis=0): an index is outside")


def check_meshes_that_are_set() -> None:
    """``jax.set_mesh`` changes nothing for a context; with explicit axes a function needs ``auto_axes``, and says so."""
    mesh = explicit()
    context, function = spread(argument_rows, {"table": P("x")}, mesh), bg.make_context(argument_rows).function
    table = jax.device_put(TABLE, NamedSharding(mesh, P("x")))
    with jax.set_mesh(mesh):
        np.testing.assert_array_equal(context(table, EDGES), TABLE[EDGES])
        assert message(lambda: context(table, EDGES + 63)).startswith("Gather(axis=0): indices must be in [-64, 64)")
        rows = jax.jit(jax.sharding.auto_axes(function, out_sharding=P()))(table, EDGES)
        np.testing.assert_array_equal(rows, TABLE[EDGES])
        with pytest.raises(Exception, match="out_sharding") as caught:
            function(table, EDGES)
    assert any("explicit axes; call the context itself, with CompileOptions(mesh" in note for note in caught.value.__notes__)


def check_looking_inside() -> None:
    context = spread(network, {"x": P("x"), "w1": P(None, "x"), "y": P("x")})
    x = jax.device_put(X, jax.devices()[5])  # an array that lies elsewhere
    assert_near(context.trace(x, W2)["y"].value, ALONE(X, W2))
    assert context.compare("op by op", x, W2).ok
    assert context.cost(batch=16).peak_bytes < X.nbytes + 16 * 32 * 4 + W2.nbytes + 16 * 8 * 4  # what one device would have
    assert "sdy.mesh" in context.stablehlo(batch=16)
    context.check_for_nans_and_infinities = True
    assert_near(context(X, W2), ALONE(X, W2))
    x = X.copy()
    x[11, 3] = np.inf
    assert message(lambda: context(x, W2)).startswith("argument 'x' must be finite")
    exported = context.export()
    assert exported.nr_devices == 8
    whole, split = (NamedSharding(Mesh(np.array(jax.devices()), "x"), spec) for spec in (P(), P("x")))
    y = jax.jit(exported.call, in_shardings=(split, whole))(X, W2)["y"]
    assert y.sharding.spec == P("x")
    assert_near(y, ALONE(X, W2))


def check_a_device_by_its_number() -> None:
    def block(b: bg.Builder) -> Any:
        return b.argument("i", bg.Int64, ["n"]) + b.constant(values=np.full(9000, 2**40))[:1]

    context = bg.make_context(block, options=bg.CompileOptions(device="cpu:3"))
    with jax.enable_x64(True):
        elsewhere = jax.device_put(np.array([1, 2]), jax.devices()[5])
    for array in (np.array([1, 2]), elsewhere):
        result = context(array)
        assert (result.tolist(), result.devices()) == ([2**40 + 1, 2**40 + 2], {jax.devices()[3]})
    assert context.trace(np.array([3, 4]))["output_0"].value.devices() == {jax.devices()[3]}
    assert message(lambda: bg.make_context(block, options=bg.CompileOptions(device="cpu:8"))(np.array([1]))) == (
        "CompileOptions.device must be a device of this process (cpu:0, cpu:1, cpu:2, cpu:3, cpu:4, cpu:5, cpu:6, cpu:7), "
        "got 'cpu:8'"
    )


def check_what_is_written_out_for_the_cpu() -> None:
    """Many indices, the first of long rows and short convolutions, spread over one of two axes or over both."""
    mesh = Mesh(np.array(jax.devices()[:6]).reshape(2, 3), ("two", "three"))
    table, many = np.arange(600, dtype=np.float32), (np.arange(6 * 8192) % 600).astype(np.int32)

    def rows(b: bg.Builder) -> Any:
        return b.argument("table", bg.Float32, table.shape).gather(b.argument("i", bg.Int32, many.shape), axis=0)

    context = spread(rows, {"i": P(("two", "three"))}, mesh)
    np.testing.assert_array_equal(context(table, many), table[many])
    many[-1] = 600
    assert message(lambda: context(table, many)).endswith(f"got 600 at position [{many.size - 1}]")

    long = RNG.normal(size=(6, 12_000)).astype(np.float32)
    best = spread(lambda b: b.argument("x", bg.Float32, long.shape).top_k(5, axis=1), {"x": P("two", "three")}, mesh)
    np.testing.assert_array_equal(best(long)[1], np.argsort(-long, axis=1, kind="stable")[:, :5])

    for groups, channels in ((1, 3), (2, 3), (6, 1)):
        x, weight = (RNG.integers(-2, 3, shape).astype(np.float32) for shape in ((2, groups * channels, 7), (6, channels, 3)))

        def block(b: bg.Builder, x: Any = x, weight: Any = weight, groups: int = groups) -> Any:
            return b.argument("x", bg.Float32, x.shape).conv(b.argument("w", bg.Float32, weight.shape), [1], group_count=groups)

        alone = bg.make_context(block)
        for parts in (P(None, "three"), P("two", "three")):
            spread_out = jax.jit(alone.function, in_shardings=(NamedSharding(mesh, parts), NamedSharding(mesh, P("two"))))
            np.testing.assert_array_equal(spread_out(x, weight), alone(x, weight))


# Run by two processes with 4 devices each


def both_a_table_over_two_processes() -> None:
    """Whole arrays are the same on every process; parts are made where they belong; what fails fails on both."""
    assert (jax.process_count(), jax.device_count(), len(jax.local_devices())) == (2, 8, 4)
    wanted, mine = LARGE[EDGES[:8]], EDGES[:8][jax.process_index() * 4 :][:4]
    context = spread(large_rows, {"table": P("x")})
    assert sent(context, n=8) == [Collective("all-reduce", 8 * 4 * 4, 8)]
    np.testing.assert_array_equal(context(EDGES[:8]), wanted)
    assert message(lambda: context(EDGES[:8] + 8192)).endswith("got 8192 at position [0] (the first of 8)")
    parts = spread(large_rows, {"table": P("x"), "i": P("x"), "rows": P("x")})
    where = NamedSharding(explicit(), P("x"))
    given = jax.make_array_from_process_local_data(where, mine)
    for rows in (parts(given), parts.trace(given)["rows"].value, jax.jit(parts.function)(given), parts.function(given)):
        for shard in rows.addressable_shards:
            np.testing.assert_array_equal(shard.data, wanted[shard.index])
    last = np.where(np.arange(4) == 3, mine + 9000 * jax.process_index(), mine)  # wrong on one process, refused on both
    outside = jax.make_array_from_process_local_data(where, last)
    words = message(lambda: parts(outside))
    assert words == f"Gather(axis=0): indices must be in [-8192, 8192) on axis 0, got {EDGES[7] + 9000} at position [7]"
    words = message(lambda: context(EDGES[:8] + jax.process_index()))
    assert words.startswith("argument 'i' must be the same array on every process, got arrays that differ")


def both_what_differs_between_processes() -> None:
    own = RNG.normal(size=4) + np.full((8192, 4), jax.process_index())
    different = spread(lambda b: b.constant("own", values=own)[b.argument("i", bg.Int32, ["n"])], {"own": P("x")})
    words = message(lambda: different(EDGES))
    assert words == "Constant('own') must be the same on every process of the mesh, got other elements on some"
    theirs = [device for device in jax.devices() if device.process_index != jax.process_index()]
    refused = message(lambda: spread(constant_rows, {}, Mesh(np.array(theirs), ("x",))))
    assert refused.startswith("CompileOptions.mesh must have a device of this process, which is number ")
    refused = message(lambda: bg.make_context(constant_rows, options=bg.CompileOptions(device=theirs[0]))(EDGES))
    assert refused.startswith("CompileOptions.device must be a device of this process (cpu:0, cpu:1, cpu:2, cpu:3), got ")
    local = bg.make_context(constant_rows, options=bg.CompileOptions(device="cpu:1"))(EDGES)
    assert local.devices() == {jax.local_devices()[1]}


def both_state_over_two_processes() -> None:
    context = spread(counts, {"state": P("x")})
    highest, state = context(np.zeros((64, 4), np.int64), np.array([0, 63], np.int32), np.full((2, 4), 2**40))
    for _ in range(2):
        highest, state = context(state, np.array([0, 63], np.int32), np.full((2, 4), 2**40))
    assert highest.item() == 3 * 2**40
    assert message(lambda: context(state, np.array([0, 64], np.int32), np.zeros((2, 4), np.int64))).endswith("at position [1]")
    assert not state.is_deleted()


# Run on 6 of 8 devices, and long


def table_of_operations_over_two_axes() -> None:
    """Every row of the op table, each argument spread as far as it divides: to the bit, floats within the row's bound."""
    from tests.test_every_op import compare
    from tests.test_platforms import Table, one_of_at_most_32_bits

    table = Table(one_of_at_most_32_bits)
    mesh = Mesh(np.array(jax.devices()[:6]).reshape(2, 3), ("two", "three"))
    shardings: dict[str, P] = {}
    for number, array in enumerate(table.arrays):
        axes, parts = ["two", "three"], []
        for size in array.shape:
            part = next((axis for axis in axes if size and size % mesh.shape[axis] == 0), None)
            parts.append(part)
            axes = [axis for axis in axes if axis != part]
        if any(parts):
            shardings[f"a{number}"] = P(*parts)
    assert len(shardings) > 0.9 * len(table.arrays)
    got = bg.Context(bg.placed(table.context.graph, mesh=mesh, shardings=shardings), compile_now=False)(*table.arrays)
    for row, name, wanted in zip(table.rows, got._fields, table.context(*table.arrays), strict=True):
        compare(row, np.asarray(getattr(got, name)), np.asarray(wanted).astype(np.float64), as_dtype(wanted.dtype))


def table_of_convolutions_and_gradients_over_two_axes() -> None:
    """XLA counts sums twice where windows or groups are spread over one axis of several, unless they are kept whole."""
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("p", "q"))
    x, single = RNG.normal(size=(4, 4, 8, 8)).astype(np.float32), RNG.normal(size=(4, 4, 2, 2)).astype(np.float32)
    for method, weight, options in (
        ("conv", single, {"strides": [1, 1], "padding": bg.ConvolutionPadding.SAME}),
        ("conv", single[:, :2], {"strides": [1, 1], "padding": bg.ConvolutionPadding.SAME, "group_count": 2}),
        ("conv_transpose", single, {"strides": [2, 2]}),
    ):

        def block(b: bg.Builder, method: str = method, weight: Any = weight, options: Any = options) -> Any:
            tensors = b.argument("x", bg.Float32, x.shape), b.argument("w", bg.Float32, weight.shape)
            return {"y": getattr(tensors[0], method)(tensors[1], **options)}

        def loss(function: Any) -> Any:
            return jax.jit(jax.grad(lambda x, w: (function(x, w) ** 2).sum(), (0, 1)))

        graph = bg.make_context(block).graph
        wanted = bg.Context(graph)(x, weight), *loss(bg.Context(graph).function)(x, weight)
        for shardings in (
            {"x": P(None, "p"), "w": P(None, None, None, "q")},
            {"x": P(None, None, "p"), "w": P(None, "q")},
            {"x": P(None, None, None, "p"), "w": P("p", None, "q"), "y": P(None, "q")},
            {"x": P(None, "q"), "w": P("p"), "y": P("p", None, None, "q")},
            {"x": P("p"), "w": P("q"), "y": P("p", "q")},
        ):
            context = bg.Context(bg.placed(graph, mesh=mesh, shardings=shardings))
            for got, expected in zip(
                (context(x, weight), *loss(context.function)(x, weight)), wanted, strict=True
            ):  # sums of at most 256 products in float32
                np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def report(found: Mapping[str, str]) -> str:
    return "\n".join(f"{name}\n{text}" for name, text in found.items())


def test_eight_devices() -> None:
    """The checks of this module and of :mod:`tests.test_transformations`."""
    found = failures("tests.test_sharding", "tests.test_transformations")
    assert not found, report(found)


@pytest.mark.long
def test_two_processes() -> None:
    found = failures("tests.test_sharding", prefix="both_", processes=2)
    assert not found, report(found)


@pytest.mark.long
def test_every_operation_over_two_axes() -> None:
    found = failures("tests.test_sharding", prefix="table_")
    assert not found, report(found)


@pytest.mark.long
def test_the_benchmark() -> None:
    """Its programs give the answers of one device, or it would fail; the collectives do not depend on where devices are."""
    for count, processes in ((8, 1), (4, 2)):
        found = {figure.program: [kind for kind, *_ in figure.collectives] for figure in figures(count, processes, quick=True)}
        assert found == {"table rows": ["all-reduce"], "batch": [], "training step": ["all-reduce"]}


def test_constants_outlive_the_trace_that_used_them_first() -> None:
    for options in (None, bg.CompileOptions(device="cpu"), bg.CompileOptions(mesh=jax.make_mesh((1,), ("x",)))):
        context = bg.make_context(large_rows, options=options)
        np.testing.assert_array_equal(jax.jit(context.function)(EDGES), LARGE[EDGES])
        np.testing.assert_array_equal(context(EDGES), LARGE[EDGES])
