"""What the documents say is true: every Python block runs, prints what stands below it, and every link leads somewhere."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import tomllib
from pathlib import Path

import pytest

import bnnsgraph as bg
from bnnsgraph import openvino

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def programs(text: str) -> list[tuple[str, str]]:
    """Each Python block, and the ``text`` block directly below it: what it prints."""
    blocks = list(FENCE.finditer(text))
    found: list[tuple[str, str]] = []
    for block, below in zip(blocks, [*blocks[1:], None][: len(blocks)], strict=True):
        if block[1] == "python":
            shown = below is not None and below[1] == "text" and not text[block.end() : below.start()].strip()
            found.append((block[2], below[2] if shown and below else ""))
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_blocks_run_and_print_what_is_shown(document: Path, tmp_path: Path) -> None:
    """The blocks of a document are one program, saved with one empty line between them under the name the messages show."""
    blocks = programs(document.read_text(encoding="utf-8"))
    program = tmp_path / {"README": "first.py"}.get(document.stem, f"{document.stem}.py")
    program.write_text("\n".join(source for source, _ in blocks), encoding="utf-8")
    linecache.checkcache(str(program))
    namespace: dict[str, object] = {"__name__": "__main__"}
    line = 0
    for source, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + source, str(program), "exec"), namespace)
        assert printed.getvalue() == shown, f"printed by the block of {document.name} that begins:\n{source[:200]}"
        line += source.count("\n") + 1


def test_every_name_in_the_table_of_what_works_exists() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").split("## What works today")[1].split("\n## ")[0]
    names = re.findall(r"`([a-z_]+)`", "\n".join(line for line in table.splitlines() if line.startswith("| ")))
    owners = (bg, bg.Tensor, bg.Builder, bg.Graph, bg.Context, openvino)
    assert {"gather_nd", "sum", "argument_names"} <= set(names)
    assert [name for name in names if not any(hasattr(owner, name) for owner in owners)] == []


def test_there_is_a_program_to_start_with() -> None:
    assert {path.name for path in DOCUMENTS} >= {"README.md", "index_rule.md", "tutorial.md"}
    assert len(programs((ROOT / "README.md").read_text(encoding="utf-8"))) >= 2
    assert len(programs((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8"))) >= 5


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", document.read_text(encoding="utf-8")))
    for target in re.findall(r"\]\(([^)#]+)", text):
        if not target.startswith("https://"):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_commands_are_those_of_the_project() -> None:
    """The README's two commands name extras that exist; CONTRIBUTING has every check of ``.ci/run``, in its order."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert 'pip install ".[demo]" && python -m bnnsgraph demo' in readme
    assert 'pip install ".[test]" && pytest' in readme
    assert set(re.findall(r'pip install "\.\[(\w+)\]"', readme)) <= extras.keys()

    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    checks = script.split("pip install", 1)[1].splitlines()[1:]
    commands = [line for line in checks if line.strip() and not line.startswith("#")]
    assert commands
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = [line for language, block in FENCE.findall(contributing) if language == "sh" for line in block.splitlines()]
    places = [shown.index(command) for command in commands]
    assert places == sorted(places)
