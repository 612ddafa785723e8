"""Types are tested like values: what checkers must know (``reveal_*.py``), and what they must refuse (``reject_*.py``)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("basedpyright")

ROOT = Path(__file__).parent.parent
PROGRAMS = ROOT / "tests" / "typing"


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, list[str]]]:
    """For each file, the messages of basedpyright by line. The project's own settings leave the refused programs out."""
    folder = tmp_path_factory.mktemp("typing")
    files = [Path(shutil.copy(path, folder)) for path in sorted(PROGRAMS.glob("re*.py"))]
    settings = {
        "typeCheckingMode": "standard",
        "reportUnusedExpression": False,
        "pythonVersion": f"{sys.version_info.major}.{sys.version_info.minor}",  # that of the stubs that are installed
        "extraPaths": [str(ROOT)],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    answer: dict[str, Any] = json.loads(run.stdout)
    assert answer["summary"]["filesAnalyzed"] == len(files)
    found: dict[str, dict[int, list[str]]] = {path.name: {} for path in files}
    for report in answer["generalDiagnostics"]:
        lines = found[Path(report["file"]).name]
        lines.setdefault(report["range"]["start"]["line"] + 1, []).append(report["message"])
    return found


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("reveal_*.py")), ids=lambda path: path.name)
def test_types_are_known(path: Path, reports: dict[str, dict[int, list[str]]]) -> None:
    assert "assert_type(" in path.read_text()
    assert reports[path.name] == {}


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("reject_*.py")), ids=lambda path: path.name)
def test_wrong_programs_are_refused(path: Path, reports: dict[str, dict[int, list[str]]]) -> None:
    marked = {number for number, line in enumerate(path.read_text().splitlines(), 1) if line.endswith("# error")}
    assert marked
    found = reports[path.name]
    assert {number: found[number] for number in found.keys() - marked} == {}
    lines = path.read_text().splitlines()
    assert {number: lines[number - 1] for number in marked - found.keys()} == {}
