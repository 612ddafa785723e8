"""Graphs as values, and contexts in pickles: for other processes, for ``copy``, and for static arguments of ``jax.jit``."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph import describing


def scaled(builder: bg.Builder, factor: float = 2.0, *, name: str = "x", shape: Any = ("n",)) -> bg.Graph:
    x = builder.argument(name, bg.Float32, shape)
    return builder.finish({"y": x * np.array([factor], np.float32)})


def test_a_context_comes_back_and_compiles_when_it_runs() -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, [3]) ** 0.5)
    context.check_for_nans_and_infinities = True
    assert len(context.compilations) == 1
    copied = pickle.loads(pickle.dumps(context))
    assert copied.graph == context.graph
    assert copied.compilations == []
    np.testing.assert_array_equal(copied([1.0, 4.0, 9.0]), [1, 2, 3])
    assert [each.reason for each in copied.compilations] == ["first run with these sizes"]
    with pytest.raises(bg.NotFiniteError, match="Power"):
        copied([-1.0, 4.0, 9.0])


def test_sizes_that_were_set_come_back() -> None:
    context = bg.Context(scaled(bg.Builder(), shape=["n", 3]))
    assert pickle.loads(pickle.dumps(context)).tensor("x").shape == (-1, 3)
    context.set_batch_size(4)
    copied = copy.deepcopy(context)
    assert copied.tensor("x").shape == copied.tensor("y").shape == (4, 3)
    assert copied.tensor("x", fill_known_dynamic_shapes=False).shape == (-1, 3)
    assert copied.compilations == []


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_constants_of_a_pickle(protocol: int) -> None:
    builder = bg.Builder()
    table = builder.constant("table", values=np.arange(6, dtype=np.float32).reshape(2, 3))
    half = builder.constant("half", values=np.arange(6, dtype=bg.BFloat16.numpy))
    graph = builder.finish(
        [table + 1, half, builder.constant(values=np.zeros((0, 2), np.uint64)), builder.constant(value=True)]
    )
    buffers: list[pickle.PickleBuffer] = []
    arguments: dict[str, Any] = {"buffer_callback": buffers.append} if protocol >= 5 else {}
    copied = pickle.loads(pickle.dumps(graph, protocol, **arguments), buffers=buffers)
    assert copied == graph
    assert str(copied) == str(graph)
    arrays = describing.pickled(copied)[1]
    assert all(not array.flags.writeable for array in arrays.values())
    if buffers:  # handed over without a copy
        assert np.shares_memory(arrays["table"], describing.pickled(graph)[1]["table"])


def test_another_process_reads_a_pickle_without_jax() -> None:
    graph = scaled(bg.Builder())
    program = "import pickle, sys; print(pickle.load(sys.stdin.buffer)); assert 'jax' not in sys.modules"
    run = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(graph), capture_output=True, cwd=Path(__file__).parents[1]
    )
    assert (run.stdout.decode(), run.stderr.decode()) == (f"{graph}\n", "")


def test_equal_graphs() -> None:
    graph = scaled(bg.Builder())
    same = scaled(bg.Builder())
    assert graph == same
    assert hash(graph) == hash(same)
    assert {graph: 1}[same] == 1
    assert copy.copy(graph) == copy.deepcopy(graph) == graph
    others = [
        scaled(bg.Builder(), 3.0),
        scaled(bg.Builder(), -2.0),
        scaled(bg.Builder(), name="z"),
        scaled(bg.Builder(), shape=["m"]),
        scaled(bg.Builder(), shape=[5]),
        scaled(bg.Builder(bg.CompileOptions(out_of_bounds="clip"))),
        scaled(bg.Builder(bg.CompileOptions(device="cpu"))),
    ]
    assert len({graph, same, *others}) == 1 + len(others)
    assert graph != "graph"
    zeros = [scaled(bg.Builder(), factor) for factor in (0.0, -0.0)]
    assert zeros[0] != zeros[1]  # equal numbers, and yet another program


def test_a_line_elsewhere_changes_nothing() -> None:
    builder = bg.Builder()
    elsewhere = builder.finish({"y": builder.argument("x", bg.Float32, ["n"]) * np.array([2], np.float32)})
    assert elsewhere == scaled(bg.Builder())
    assert str(elsewhere) != str(scaled(bg.Builder()))


def test_graphs_are_static_arguments() -> None:
    """Two loads of one graph are one static argument; nothing is traced again."""
    traced: list[bg.Graph] = []

    def run(graph: bg.Graph, x: Any) -> Any:
        traced.append(graph)
        return bg.Context(graph, compile_now=False).function(x) + 1

    compiled = jax.jit(run, static_argnums=0)
    graph = scaled(bg.Builder(), shape=[2])
    x = np.array([1, 2], np.float32)
    for each in (graph, pickle.loads(pickle.dumps(graph)), scaled(bg.Builder(), shape=[2])):
        assert compiled(each, x).tolist() == [3, 5]
    assert len(traced) == 1
    assert compiled(scaled(bg.Builder(), 3.0, shape=[2]), x).tolist() == [4, 7]
    assert len(traced) == 2


def test_nothing_is_hashed_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise AssertionError("the digest was computed")

    graph = scaled(bg.Builder())
    monkeypatch.setattr(describing, "digest", refuse)
    assert bg.Context(graph)([1.0]).tolist() == [2.0]
    assert graph == graph
    with pytest.raises(AssertionError, match="the digest was computed"):
        hash(graph)
