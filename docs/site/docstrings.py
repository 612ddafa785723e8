"""Docstrings as Markdown: they are written for Python's ``help``, with roles such as ``:meth:`sum` `` and with doctests."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:meth|func|class|attr|mod):`([\w.]+)`")
CODE = re.compile(r"(``.+?``|`[^`\n]+`)", re.DOTALL)
GUIDES = {"bnnsgraph.recurrence": "weights-of-pytorch-keras-and-onnx", "bnnsgraph.naming.value_names": "names-of-values"}
"""What a page explains rather than the reference: the heading that a link leads to."""


class Docstrings(griffe.Extension):
    """Rewrites every docstring of the package once it is read."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Rewrite; ``pkg`` is the whole package."""
        self.public = pkg
        self.seen: set[int] = set()
        self.rewrite(pkg)

    def rewrite(self, owner: Any) -> None:
        """Rewrite the docstrings of ``owner`` and of all that it defines."""
        if owner.docstring is not None and id(owner.docstring) not in self.seen:
            self.seen.add(id(owner.docstring))
            owner.docstring.value = self.markdown(owner.docstring.value)
        for member in owner.members.values():
            if not member.is_alias:
                self.rewrite(member)

    def markdown(self, text: str) -> str:
        """A docstring as Markdown."""
        lines: list[str] = []
        fence, literal = "", -1
        for line in text.splitlines():
            blank, indent = not line.strip(), len(line) - len(line.lstrip())
            if fence and blank:
                lines.append(fence)
                fence = ""
            elif not fence and line.lstrip().startswith(">>>"):
                fence = f"{line[:indent]}```"
                lines.append(f"{fence}pycon")
            if not blank and indent <= literal:
                literal = -1
            if fence:
                shown = re.sub(r"\s*# doctest:.*", "", line)
                lines.append("" if shown.strip() == "<BLANKLINE>" else shown)
            elif literal >= 0:
                lines.append(line)
            else:
                literal = indent if line.endswith("::") else -1
                lines.append(self.prose(line))
        return "\n".join([*lines, fence] if fence else lines)

    def prose(self, line: str) -> str:
        """A line outside examples: roles become links, and stars outside code are stars."""
        line = re.sub(r"::$", ":", ROLE.sub(lambda match: self.link(match[1]), line))
        return "".join(part if part.startswith("`") else part.replace("*", r"\*") for part in CODE.split(line))

    def link(self, name: str) -> str:
        """A link to what ``name`` names: something public, or a member of one of the three classes that users work with."""
        if name in GUIDES:
            return f"[`{name}`][{GUIDES[name]}]"
        short = name.removeprefix("bnnsgraph.")
        for path in (short, f"Tensor.{short}", f"Builder.{short}", f"Context.{short}"):
            if self.knows(path):
                return f"[`{short}`][bnnsgraph.{path}]"
        return f"`{short}`"

    def knows(self, path: str) -> bool:
        """Whether the package has ``path``, inherited members included."""
        owner: Any = self.public
        for part in path.split("."):
            if part not in owner.all_members:
                return False
            owner = owner.all_members[part]
            owner = owner.final_target if owner.is_alias else owner
        return not owner.is_module
