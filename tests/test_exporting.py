"""Programs that leave Python, and files that are never half written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import export

import bnnsgraph as bg
from bnnsgraph.compile import LARGE
from bnnsgraph.files import write_atomically

TABLE = np.arange(LARGE, dtype=np.float32).reshape(-1, 4)
TOKENS = np.array([[1, 2, 3], [3, 4, -1]], np.int32)


def embedding(b: bg.Builder) -> Any:
    tokens = b.argument("tokens", bg.Int32, ["batch", "length"])
    rows = b.constant("table", values=TABLE).gather(tokens, axis=0)
    return {"mean": rows.mean([1]), "flat": rows.reshape(to=["batch*length", 4]), "inner": rows[:, 1:-1]}


def test_an_artifact_runs_without_the_package(tmp_path: Path) -> None:
    context = bg.make_context(embedding)
    path = tmp_path / "embedding.jax"
    context.export(path, constraints=["length >= 2"])
    np.save(tmp_path / "tokens.npy", TOKENS)
    program = (
        "import sys, numpy as np; from jax import export\n"
        f"found = export.deserialize(open(r'{path}', 'rb').read()).call(np.load(r'{tmp_path / 'tokens.npy'}'))\n"
        f"np.savez(r'{tmp_path / 'found.npz'}', **found)\n"
        "assert 'bnnsgraph' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""})
    wanted = context(TOKENS)
    with np.load(tmp_path / "found.npz") as found:
        for name in wanted._fields:
            np.testing.assert_array_equal(found[name], getattr(wanted, name))


def test_an_artifact_is_for_all_platforms_and_all_sizes() -> None:
    exported = bg.make_context(embedding).export(constraints=["length >= 2"])
    assert exported.platforms == ("cpu", "cuda", "tpu")
    assert exported.mlir_module().count('"stablehlo.gather"') == 1
    assert str(exported.out_avals[1]) == "float32[batch,length - 2,4]"
    for shape in [(1, 2), (5, 7)]:
        assert exported.call(np.zeros(shape, np.int32))["flat"].shape == (shape[0] * shape[1], 4)


def test_64_bit_artifacts() -> None:
    exported = bg.make_context(lambda b: {"y": b.argument("x", bg.Int64, [-1]) + 2**40}).export(platforms=["cpu"])
    with jax.enable_x64(True):
        found = export.deserialize(exported.serialize()).call(np.array([1, 2]))
    assert np.asarray(found["y"]).tolist() == [2**40 + 1, 2**40 + 2]


def test_what_cannot_be_exported() -> None:
    context = bg.make_context(embedding)
    with pytest.raises(bg.ParameterError) as caught:
        context.export(platforms=["cpu"])
    assert "constraints must say enough of the flexible sizes to export" in str(caught.value)
    assert "recorded at test_exporting.py" in str(caught.value)
    with pytest.raises(bg.ParameterError, match=r"platforms must be some of cpu, cuda, rocm, tpu, got \['metal'\]"):
        context.export(platforms=["metal"])


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    target = tmp_path / "data"
    write_atomically(target, b"old")

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, broken, full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(target, b"new")
    monkeypatch.undo()
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["data"]


def test_text_and_cost() -> None:
    context = bg.make_context(embedding)
    text = context.stablehlo(batch=2, length=5)
    assert "tensor<2x5xi32>" in text
    assert text.count('"stablehlo.gather"') == 1
    cost = bg.make_context(lambda b: b.argument("x", bg.Float32, [64, 32]) @ b.argument("y", bg.Float32, [32, 16])).cost()
    assert cost.flops == pytest.approx(2 * 64 * 32 * 16, rel=0.01)
    assert cost.bytes_accessed >= 4 * (64 * 32 + 32 * 16 + 64 * 16)
    assert cost.peak_bytes >= 4 * (64 * 32 + 32 * 16 + 64 * 16)


def test_warm_up() -> None:
    context = bg.make_context(embedding)
    context.warm_up(batch=[1, 2], length=3)
    assert [(c.reason, c.sizes) for c in context.compilations] == [
        ("warm-up", {"batch": 1, "length": 3}),
        ("warm-up", {"batch": 2, "length": 3}),
    ]
    context(TOKENS)
    assert len(context.compilations) == 2
    with pytest.raises(bg.ParameterError, match="warm_up must be given sizes for batch, length, got batch"):
        context.warm_up(batch=1)
    anonymous = bg.make_context(lambda b: b.argument("x", bg.Float32, [-1, "n"]) + 1)
    with pytest.raises(bg.ParameterError, match="got an argument with a size of -1"):
        anonymous.warm_up(n=2)
