"""Bring what lies outside docs/ into the site: the notebooks as pages, and files of the repository that pages link to.

Links are written as they work in the repository. Here they are led to where the file stands in the site; MkDocs checks them.
"""

from __future__ import annotations

import html
import json
import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "notebooks/*.ipynb")
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)#\s]+)([^)\s]*\))|(```.*?^```|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
HOME = {"README.md": "index.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside, and whatever else the pages link to."""
    found = [path.relative_to(ROOT) for pattern in PAGES for path in sorted(ROOT.glob(pattern))]
    texts = [(Path("docs", file.src_uri), file.content_string) for file in files.documentation_pages()]
    texts += [(path, (ROOT / path).read_text(encoding="utf-8")) for path in found if path.suffix == ".md"]
    for page, text in texts:
        for match in LINK.finditer(text):
            target = _repository_path(page, match[2]) if match[2] and ":" not in match[2] else None
            outside = target and target.parts[:1] not in [("docs",), ("..",)] and target.as_posix() not in HOME
            if target and outside and (ROOT / target).is_file() and target not in found:
                found.append(target)
    listed: list[str] = next(section["Notebooks"] for section in config.nav or [] if "Notebooks" in section)
    for path in found:
        if path.suffix == ".ipynb":
            name = path.with_suffix(".md").as_posix()
            files.append(File.generated(config, name, content=_markdown(ROOT / path)))
            if name not in listed:
                listed.append(name)
        else:
            files.append(File(path.as_posix(), str(ROOT), config.site_dir, config.use_directory_urls))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lead links to where their files stand in the site."""
    inside = page.file.src_uri
    place = Path(inside if (ROOT / inside).exists() or inside.startswith("notebooks/") else f"docs/{inside}")

    def led(match: re.Match[str]) -> str:
        if not match[2] or ":" in match[2]:
            return match[0]
        target = _repository_path(place, match[2]).as_posix()
        name = HOME.get(target, target.removeprefix("docs/"))
        name = re.sub(r"^(notebooks/.*)\.ipynb$", r"\1.md", name)
        return match[1] + os.path.relpath(name, os.path.dirname(inside) or ".") + match[3]

    return LINK.sub(led, markdown)


def _repository_path(page: Path, target: str) -> Path:
    return Path(os.path.normpath(page.parent / target))


def _markdown(notebook: Path) -> str:
    """A notebook as a page: its texts, its programs, and below each what it put out when it was last executed."""
    parts: list[str] = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code":
            parts.append(_fenced(source, "python"))
            parts += [_output(output) for output in cell["outputs"]]
    return "\n\n".join(parts)


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _fenced("".join(output["text"]), "text")
    if output["output_type"] == "error":
        return _fenced(COLOUR.sub("", "\n".join(output["traceback"])), "text")
    data = {kind: "".join(text) if isinstance(text, list) else text for kind, text in output["data"].items()}
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            whole = re.sub(r"\n\s*\n", "\n", data[kind].strip())  # an empty line would end it for Markdown
            return f'<div class="output">\n{whole}\n</div>'
    if "image/png" in data:
        size = "".join(f' {name}="{number}"' for name, number in output["metadata"].get("image/png", {}).items())
        words = html.escape(data.get("text/plain", ""))
        return f'<img alt="{words}"{size} src="data:image/png;base64,{data["image/png"].strip()}">'
    return _fenced(data.get("text/plain", ""), "text")


def _fenced(text: str, language: str) -> str:
    marks = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text) or [""]))
    return f"{marks}{language}\n{text.rstrip()}\n{marks}"
