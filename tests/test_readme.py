"""What the documents say is true: every Python block runs, prints what stands below it, and every link leads somewhere."""

from __future__ import annotations

import contextlib
import io
import linecache
import pkgutil
import re
import tomllib
from inspect import ismodule
from pathlib import Path

import pytest

import bnnsgraph as bg
from bnnsgraph import openvino
from bnnsgraph.__main__ import COMMANDS
from tests.pictures import FOLDER, pictures

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
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


def name_of(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if programs(path.read_text(encoding="utf-8"))], ids=name_of)
def test_blocks_run_and_print_what_is_shown(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a document are one program, saved with one empty line between them under the name the messages show."""
    monkeypatch.chdir(tmp_path)  # where files go that a block writes
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
    commands = {add.__name__.removeprefix("add_") for add in COMMANDS}
    assert [name for name in names if name not in commands and not any(hasattr(owner, name) for owner in owners)] == []


def test_there_is_a_program_to_start_with() -> None:
    assert {path.name for path in DOCUMENTS} >= {"README.md", "index_rule.md", "tutorial.md"}
    assert len(programs((ROOT / "README.md").read_text(encoding="utf-8"))) >= 2
    assert len(programs((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8"))) >= 5


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", document.read_text(encoding="utf-8")))
    for target, place in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", text):
        if not target.startswith("https://"):
            page = document.parent / target if target else document
            assert page.exists(), f"{document.name} links to {target}"
            assert not place or place in places(page), f"{document.name} links to {target}#{place}"


def places(page: Path) -> set[str]:
    """What the headings of a page are called in addresses."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_has_its_place_in_the_site() -> None:
    listed = re.findall(r"- (\S+\.md)$", (ROOT / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    outside = {"CONTRIBUTING.md", "CHANGELOG.md", *(name for name in listed if name.startswith("notebooks/"))}
    assert pages == {*listed} - outside
    assert len(listed) == len({*listed})


def test_every_public_name_is_in_the_reference() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "reference").glob("*.md")))
    named = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    for name in named:
        pkgutil.resolve_name(name)
    public = {f"bnnsgraph.{name}" for name, value in vars(bg).items() if name[0] != "_" and not ismodule(value)}
    errors = {f"bnnsgraph.{name}" for name in vars(bg) if name.endswith("Error")}
    same = {"bnnsgraph.PoolingPadding"}  # another name of ConvolutionPadding
    assert public - errors - same - {*named} == set()
    assert "bnnsgraph.errors" in named
    assert bg.PoolingPadding is bg.ConvolutionPadding


def test_every_error_has_a_section() -> None:
    headings = places(ROOT / "docs" / "errors.md")
    assert {name.lower() for name in vars(bg) if name.endswith("Error")} - {"grapherror"} <= headings


def test_pictures_are_what_the_package_draws() -> None:
    """`python -m tests.pictures` draws them anew."""
    drawn = pictures()
    assert {path.name for path in FOLDER.iterdir()} == drawn.keys()
    assert [name for name, drawing in drawn.items() if (FOLDER / name).read_text(encoding="utf-8") != drawing] == []
    text = "\n".join(path.read_text(encoding="utf-8") for path in [*DOCUMENTS, ROOT / "docs" / "site" / "mkdocs.yml"])
    assert [name for name in drawn if f"pictures/{name}" not in text] == []


def test_commands_are_those_of_the_project() -> None:
    """The README's two commands name extras that exist; CONTRIBUTING has every check of ``.ci/run``, in its order."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert 'pip install ".[demo]" && python -m bnnsgraph demo' in readme
    assert 'pip install ".[test]" && pytest' in readme
    assert set(re.findall(r'pip install "\.\[(\w+)\]"', readme)) <= extras.keys()

    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    checks = script.rsplit("pip install", 1)[1].splitlines()[1:]
    commands = [line for line in checks if line.strip() and not line.startswith("#")]
    assert commands
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = [line for language, block in FENCE.findall(contributing) if language == "sh" for line in block.splitlines()]
    places = [shown.index(command) for command in commands]
    assert places == sorted(places)
