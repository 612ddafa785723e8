"""Every notebook runs from top to bottom and prints what is checked in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


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


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebook(path: Path) -> None:
    kept = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent.parent)}}
    NotebookClient(fresh, timeout=600, kernel_name="python3", resources=resources).execute()
    assert texts(fresh) == texts(kept)


def test_there_are_notebooks() -> None:
    assert "first_steps" in [path.stem for path in NOTEBOOKS]
