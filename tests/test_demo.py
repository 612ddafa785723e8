"""The demo's vectors are those of the package whose table it reads, it finds what it should, and it runs from any folder."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph import demo
from bnnsgraph.__main__ import main

ROOT = Path(__file__).parent.parent
TEXTS = [
    "The cat sleeps on the warm sofa.",
    "A kitten is napping on the couch.",
    "Interest rates rose again this quarter.",
    "The central bank makes borrowing more expensive.",
    "Boil the pasta in salted water for nine minutes.",
    "x",
    "Grüße aus Zürich, 東京 and 🙂",
    "one word after another " * 60,
]


@pytest.fixture(scope="module")
def model() -> demo.Model:
    return demo.load_model()


@pytest.fixture(scope="module")
def embed(model: demo.Model) -> bg.Context:
    return demo.make_embedder(model.table)


def test_vectors_are_those_of_wordllama(model: demo.Model, embed: bg.Context) -> None:
    import wordllama

    reference = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    # Both add float32 numbers below 1 in magnitude and divide once; only the order of the additions differs.
    np.testing.assert_allclose(demo.embed_texts(embed, model, TEXTS), reference.embed(TEXTS), rtol=0, atol=1e-6)


def test_numpy_has_the_same_vectors(model: demo.Model, embed: bg.Context) -> None:
    """What the demo times as NumPy's work is the same work."""
    token_lists = model.tokenize(TEXTS)
    [(tokens, mask)] = demo.padded(token_lists)
    vectors = np.asarray(embed(tokens, mask))
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(demo.embed_with_numpy(model.table, tokens, mask), vectors, rtol=0, atol=1e-6)
    one_by_one = [model.table[numbers].astype(np.float32).mean(axis=0) for numbers in token_lists]
    np.testing.assert_allclose(np.stack(one_by_one), vectors, rtol=0, atol=1e-6)


def test_empty_text_has_the_zero_vector(model: demo.Model, embed: bg.Context) -> None:
    assert model.tokenize([""]) == [[]]
    vectors = demo.embed_texts(embed, model, ["", TEXTS[0]])
    assert not vectors[0].any()
    assert vectors[1].any()
    assert demo.cosine_similarity(vectors, vectors[0]).tolist() == [0, 0]


def test_padding_changes_nothing(model: demo.Model, embed: bg.Context) -> None:
    alone = demo.embed_texts(embed, model, [TEXTS[0]])
    among_longer_ones = demo.embed_texts(embed, model, TEXTS)[:1]
    # The sums may run in another order over more zeros: rounding of float32 numbers below 1, no more.
    np.testing.assert_allclose(alone, among_longer_ones, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("query", "expected"),
    [("cat", {0, 1}), ("monetary policy", {2, 3}), ("cooking instructions", {4})],
)
def test_what_is_alike_ranks_first(model: demo.Model, embed: bg.Context, query: str, expected: set[int]) -> None:
    vectors = demo.embed_texts(embed, model, TEXTS[:5])
    scores = demo.cosine_similarity(vectors, demo.embed_texts(embed, model, [query])[0])
    assert set(np.argsort(-scores)[: len(expected)].tolist()) == expected
    assert np.all(np.abs(scores) <= 1 + 1e-6)  # cosines, up to the rounding of float32


def test_all_batches_have_one_shape() -> None:
    token_lists = [[7] * (1 + number % 40) for number in range(2 * demo.BATCH + 3)]
    batches = demo.padded(token_lists)
    assert [tokens.shape for tokens, _ in batches] == [(demo.BATCH, 48)] * 3
    masks = np.concatenate([mask for _, mask in batches])
    assert masks.sum(axis=1).tolist() == [len(numbers) for numbers in token_lists] + [0] * (demo.BATCH - 3)
    assert [mask.shape for _, mask in demo.padded([[]])] == [(1, 16)]


def test_passages_are_paragraphs_without_headings_and_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "# Title\n\nOne\ntwo.\n\n```python\ncode\n\nmore code\n```\nThree.\n- Four,\n  five.\n- Six.\n\n" + "long " * 100
    Path("notes.md").write_text(text, encoding="utf-8")
    passages = demo.read_passages(Path("notes.md"))
    assert passages[:4] == [
        ("notes.md:3", "One two."),
        ("notes.md:11", "Three."),
        ("notes.md:12", "- Four, five."),
        ("notes.md:14", "- Six."),
    ]
    assert {passage.place for passage in passages[4:]} == {"notes.md:16"}
    assert " ".join(passage.text for passage in passages[4:]).split() == ["long"] * 100
    assert all(len(passage.text) <= demo.PASSAGE_CHARACTERS for passage in passages)

    plain = tmp_path / "script.txt"
    plain.write_text("# not a heading here\n- nor an item", encoding="utf-8")
    assert demo.read_passages(plain) == [("script.txt:1", "# not a heading here - nor an item")]


def test_own_texts_in_a_clone_and_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert any("index_rule.md:" in passage.place for passage in demo.own_passages())
    monkeypatch.setattr(bg, "__file__", str(tmp_path / "bnnsgraph" / "__init__.py"))
    installed = dict(demo.own_passages())
    assert installed["Tensor.gather"].startswith("Slices along")
    assert all(installed.values())


def test_runs_from_a_scratch_folder(tmp_path: Path) -> None:
    (tmp_path / "pets.txt").write_text("\n\n".join(TEXTS[:5]), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "bnnsgraph", "demo", "pets.txt", "--query", "young cats", "--top", "2"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    graph, compiled, times, hits = done.stdout.split("\n\n")[1:8:2]
    assert "Gather(" in graph
    assert "demo.py:" in graph
    assert [line.split(" in ")[0].split() for line in compiled.splitlines()] == [
        ["tokens", "[5,", "16]"],
        ["tokens", "[1,", "16]"],
    ]
    assert [float(line.split("µs")[0]) > 0 for line in times.splitlines()] == [True] * 3
    assert "pets.txt:" in hits
    assert TEXTS[1] in done.stdout
    assert TEXTS[2] not in done.stdout


def test_absent_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "wordllama" else find_spec(name, *rest)
    )
    with pytest.raises(bg.MissingDependencyError, match=r'got no wordllama; run: pip install "bnnsgraph\[demo\]"'):
        demo.load_model()
    assert main(["demo"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_files_that_cannot_be_searched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty, binary = tmp_path / "empty.txt", tmp_path / "binary.txt"
    empty.write_text(" \n\n", encoding="utf-8")
    binary.write_bytes(b"\xff\xfe\x00")
    expected = {
        empty: "must hold text, got none",
        binary: "must be a text file that can be read, got: bytes that are not UTF-8",
        tmp_path / "absent.txt": "must be a text file that can be read, got: No such file or directory",
        tmp_path: "must be a text file that can be read, got: Is a directory",
    }
    for file, reason in expected.items():
        assert main(["demo", str(file)]) == 2
        assert capsys.readouterr() == ("", f"python -m bnnsgraph demo: {file} {reason}\n")
    assert main(["demo", "--query", " "]) == 2
    assert capsys.readouterr().err == "python -m bnnsgraph demo: --query must hold text, got none\n"


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_top_must_be_a_count(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["demo", f"--top={count}"])
    assert stopped.value.code == 2
    assert f"argument --top: must be a whole number of at least 1, got '{count}'" in capsys.readouterr().err


def test_help_tells_the_commands_and_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "search text by meaning" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main(["demo", "--help"])
    assert stopped.value.code == 0
    assert "python -m bnnsgraph demo notes.txt" in capsys.readouterr().out
