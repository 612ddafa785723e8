"""How graphs, tensors and contexts are shown."""

from __future__ import annotations

from typing import Any

import pytest

import bnnsgraph as bg


def test_groups_nest_and_end_with_their_block() -> None:
    builder = bg.Builder()
    x = builder.argument("x", bg.Float32, shape=[2, 3])

    @builder.group("head")
    def head(x: Any) -> Any:
        return x.relu()

    with builder.group("encoder.0"):
        a = x + 1
        with builder.group("attention/scores"):
            b = head(a)
        with pytest.raises(bg.ShapeError), builder.group("broken"):
            b.matmul(b)
        c = head(b)
    graph = builder.finish(head(c * 2))
    operations = [node for node in graph.nodes if node.inputs]
    assert [node.group for node in operations] == [
        "encoder.0", "encoder.0/attention/scores/head", "encoder.0/head", "", "head"
    ]  # fmt: skip
    assert graph.arguments[0].node.group == ""


@pytest.mark.parametrize("name", ["", "/", "a/", "/a", "a//b", 3])
def test_names_of_groups_are_checked(name: Any) -> None:
    with (
        pytest.raises(bg.ParameterError, match="the name of a group must be a text with nothing empty around a slash, got"),
        bg.Builder().group(name),
    ):
        pass
