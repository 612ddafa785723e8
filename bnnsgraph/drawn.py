"""How graphs are drawn, on the graph itself; the drawing is done by ``bnnsgraph.display`` when it is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from bnnsgraph.graph import Graph


class Drawn:
    """The base of :class:`bnnsgraph.Graph` that draws it. A notebook shows the drawing and a table by itself."""

    __slots__ = ()

    def to_svg(self, path: str | os.PathLike[str] | None = None, *, unfold: Iterable[str] | str | None = None) -> str:
        """The graph as an SVG picture, in rows from the arguments down to the outputs.

        The pointer shows the line that recorded an operation. The picture follows a light or dark surrounding, and the same
        graph always gives the same picture.

        Args:
            path: a file to write; an existing one is replaced only when the drawing succeeds.
            unfold: names of the groups to draw open, such as ``"encoder.0/attention"``; by itself, level by level, all that
                leave no more than 28 boxes.

        >>> graph = bg.make_context(lambda b: b.argument("x", bg.Float32, [2]) * 2).graph
        >>> graph.to_svg().startswith("<svg")
        True

        Raises:
            ParameterError: the graph has no group of a name in ``unfold``.
        """
        from bnnsgraph.display.svg import to_svg

        return to_svg(cast("Graph", self), path, unfold)

    def to_dot(self) -> str:
        """The graph in the language of Graphviz, groups as clusters.

        >>> graph = bg.make_context(lambda b: b.argument("x", bg.Float32, [2]) * 2).graph
        >>> print(graph.to_dot().splitlines()[-3])
          n0 -> n2 [label="float32[2]"]
        """
        from bnnsgraph.display.markup import to_dot

        return to_dot(cast("Graph", self))

    def to_mermaid(self) -> str:
        """The graph in the language of Mermaid, which many pages and editors draw; groups as subgraphs.

        >>> print(bg.make_context(lambda b: b.argument("x", bg.Float32, [2]) * 2).graph.to_mermaid())
        flowchart TD
          n0(["x"])
          n2["Multiply<br>× 2"]
          out0(["output_0"])
          n0 -->|"float32[2]"| n2
          n2 -->|"float32[2]"| out0
        <BLANKLINE>
        """
        from bnnsgraph.display.markup import to_mermaid

        return to_mermaid(cast("Graph", self))

    def _repr_html_(self) -> str:
        from bnnsgraph.display.html import graph_page

        return graph_page(cast("Graph", self))
