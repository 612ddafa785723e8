"""Search text by meaning: ``python -m bnnsgraph demo [FILES...] --query TEXT``. A program to read, from top to bottom.

The table of word vectors and its tokenizer are those of the package ``wordllama``, read as files: nothing is downloaded and no
code of that package runs. A text is a list of token numbers. Its vector is the mean of the rows that the numbers choose, and
two texts are alike when their vectors point the same way.
"""

from __future__ import annotations

import importlib.util
import inspect
import statistics
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

import bnnsgraph as bg

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Array: TypeAlias = np.ndarray[Any, Any]

QUERY = "what happens when an index is out of range?"
BATCH = 32  # small enough that the rows of a batch stay in the processor's cache
PASSAGE_CHARACTERS = 300


def make_embedder(table: Array) -> bg.Context:
    """The graph: token numbers in, one vector a text out."""

    @bg.make_context
    def embed(builder: bg.Builder) -> bg.Tensor[bg.Float32]:
        # A constant is part of the graph. An argument is given at each run; "batch" and "length" may differ from run to run.
        weights = builder.constant("weights", data_type=bg.Float16, values=table)
        tokens = builder.argument("tokens", bg.Int32, shape=["batch", "length"])
        mask = builder.argument("mask", bg.Bool, shape=["batch", "length"])

        # One gather reads all rows. A token number outside the table stops the run with an error: the default of every gather.
        rows = weights.gather(tokens, axis=0).cast(to=bg.Float32)

        # Dtypes never change by themselves, hence the casts. Padding counts 0; at least 1 keeps an empty text from 0 / 0.
        present = mask.cast(to=bg.Float32).unsqueeze(2)
        count = present.sum([1]).max(1.0)
        return (rows * present).sum([1]) / count

    return embed


def embed_with_numpy(table: Array, tokens: Array, mask: Array) -> Array:
    """The same steps in NumPy."""
    rows = table[tokens].astype(np.float32)
    present = mask.astype(np.float32)[:, :, None]
    count = np.maximum(present.sum(axis=1), 1.0)
    return (rows * present).sum(axis=1) / count


class Model(NamedTuple):
    """Trained word vectors, float16[32000, 256], and what turns text into their row numbers."""

    table: Array
    tokenizer: Tokenizer

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token numbers of each text; none for an empty one."""
        return [found.ids for found in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]


def load_model() -> Model:
    """Read the files inside the installed package ``wordllama``."""
    found = {package: importlib.util.find_spec(package) for package in ("wordllama", "safetensors", "tokenizers")}
    missing = [package for package, spec in found.items() if spec is None]
    if missing or found["wordllama"] is None or found["wordllama"].origin is None:
        raise bg.MissingDependencyError(
            f'the demo must have its word vectors, got no {", ".join(missing)}; run: pip install "bnnsgraph[demo]"'
        )
    from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]
    from tokenizers import Tokenizer

    folder = Path(found["wordllama"].origin).parent
    table = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
    return Model(table, Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")))


def padded(token_lists: Sequence[Sequence[int]]) -> list[tuple[Array, Array]]:
    """Batches of token numbers and masks, all of one shape.

    A context compiles once for each new shape. Here all texts share one: the longest text decides the length (rounded up to
    a multiple of 16, so that other texts meet the same program), and the last batch is filled up with empty texts. The query
    is a batch of its own, so the demo compiles twice, however many files it reads.
    """
    batch = min(len(token_lists), BATCH)
    length = 16 * -(-max(1, *map(len, token_lists)) // 16)
    batches: list[tuple[Array, Array]] = []
    for first in range(0, len(token_lists), batch):
        tokens = np.zeros((batch, length), np.int32)
        mask = np.zeros((batch, length), np.bool_)
        for row, numbers in enumerate(token_lists[first : first + batch]):
            tokens[row, : len(numbers)] = numbers
            mask[row, : len(numbers)] = True
        batches.append((tokens, mask))
    return batches


def embed_texts(embed: bg.Context, model: Model, texts: Sequence[str]) -> Array:
    """One vector a text, float32[texts, 256]."""
    vectors = [np.asarray(embed(tokens, mask)) for tokens, mask in padded(model.tokenize(texts))]
    return np.concatenate(vectors)[: len(texts)]


def cosine_similarity(vectors: Array, vector: Array) -> Array:
    """1 where a row points the way ``vector`` does, 0 at a right angle or where a vector is zero."""
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(vector)
    return (vectors @ vector) / np.maximum(lengths, 1e-12)


class Passage(NamedTuple):
    """A piece of text that can be found, and where it stands."""

    place: str
    text: str


def read_passages(path: Path) -> list[Passage]:
    """The paragraphs of a text file, long ones in pieces. Of Markdown, list items too, and neither headings nor fenced code."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "bytes that are not UTF-8"
        raise bg.ParameterError(f"{path} must be a text file that can be read, got: {reason}") from None
    markdown = path.suffix.lower() in (".md", ".markdown")
    paragraphs: list[tuple[int, list[str]]] = []
    in_code, in_paragraph = False, False
    for number, line in enumerate(map(str.strip, lines), start=1):
        fence = markdown and line.startswith("```")
        in_code ^= fence
        if not line or fence or in_code or (markdown and line.startswith("#")):
            in_paragraph = False
            continue
        if not in_paragraph or (markdown and line.startswith(("- ", "* ", "| "))):
            paragraphs.append((number, []))
            in_paragraph = True
        paragraphs[-1][1].append(line)
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    passages = [
        Passage(f"{shown}:{number}", piece)
        for number, paragraph in paragraphs
        for piece in textwrap.wrap(" ".join(paragraph), PASSAGE_CHARACTERS)
    ]
    if not passages:
        raise bg.ParameterError(f"{path} must hold text, got none")
    return passages


def own_passages() -> list[Passage]:
    """README and docs when run from a clone, else the first words of every docstring."""
    root = Path(bg.__file__).parent.parent
    if (root / "pyproject.toml").is_file():
        files = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
        return [passage for file in files for passage in read_passages(file)]
    return [
        Passage(f"{owner.__name__}.{name}", " ".join((inspect.getdoc(member) or "").split("\n\n")[0].split()))
        for owner in (bg.Builder, bg.Tensor, bg.Context)
        for name, member in inspect.getmembers(owner)
        if not name.startswith("_")
    ]


def microseconds(work: Callable[[], object], runs: int = 9) -> float:
    """The median time of several runs."""
    seconds: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds) * 1e6


def print_times(embed: bg.Context, model: Model, texts: Sequence[str]) -> None:
    """The graph's time and NumPy's for the same vectors; tokenizing is left out."""
    token_lists = model.tokenize(texts)
    batches = padded(token_lists)
    table = model.table
    graph = microseconds(lambda: [np.asarray(embed(*batch)) for batch in batches])
    same_steps = microseconds(lambda: [embed_with_numpy(table, *batch) for batch in batches])
    one_by_one = microseconds(lambda: [table[numbers].astype(np.float32).mean(axis=0) for numbers in token_lists])
    print(f"Time per passage: {len(texts)} passages in batches of {len(batches[0][0])}, median of 9 runs\n")
    print(f"  {graph / len(texts):6.1f} µs  the graph")
    print(f"  {same_steps / len(texts):6.1f} µs  NumPy, the same steps on the same arrays")
    print(f"  {one_by_one / len(texts):6.1f} µs  NumPy, one passage after the other, without padding\n")


def demo(files: Iterable[str], query: str, top: int) -> None:
    """Search, and print the graph, the times and the best hits."""
    if not query.strip():
        raise bg.ParameterError("--query must hold text, got none")
    passages = [passage for file in files for passage in read_passages(Path(file))] or own_passages()
    texts = [passage.text for passage in passages]
    model = load_model()

    embed = make_embedder(model.table)
    scores = cosine_similarity(embed_texts(embed, model, texts), embed_texts(embed, model, [query])[0])

    print(f"The graph: print(embed.graph)\n\n{textwrap.indent(str(embed.graph), '  ')}\n")
    print("Compiled once for each shape: embed.compilations\n")
    for compilation in embed.compilations:
        print(f"  tokens {list(compilation.shapes['tokens'])!s:<10} in {compilation.seconds:.2f} s, {compilation.reason}")
    print()
    print_times(embed, model, texts)
    print(f"Best hits for: {query}\n")
    for number in map(int, np.argsort(-scores, kind="stable")[:top]):
        print(f"  {scores[number]:.3f}  {passages[number].place}")
        text = texts[number]
        shown = text if len(text) <= 200 else text[:200].rsplit(" ", 1)[0] + " …"
        print(textwrap.indent(textwrap.fill(shown, 100), " " * 9) + "\n")
