"""The method of graphs that writes Swift."""

from __future__ import annotations

import os
from typing import Any, cast


class Emitted:
    """What :class:`bnnsgraph.Graph` can be written as."""

    __slots__ = ()

    def to_swift(self, path: str | os.PathLike[str] | None = None) -> str:
        """The graph as Swift source against Apple's ``BNNSGraph.Builder``: one function that makes a context.

        Variables are called as in the Python program where its source shows their names, and comments tell the lines. What
        Apple's builder lacks is written with what it has; :func:`bnnsgraph.portability` lists that, and what may differ.
        Constants of more than 32 elements, not all equal, are read from a raw file, whose layout is in the first comment.

        Args:
            path: a file that ends with ``.swift``, to be written; the constants go into a file beside it that ends with
                ``.weights``. Without it nothing is written, and the text names ``graph.weights``.

        >>> def block(b):
        ...     x = b.argument("x", bg.Float32, shape=[8])
        ...     return x.exp() * 2
        >>> text = bg.make_context(block).graph.to_swift()
        >>> [line.partition("//")[0].strip() for line in text.splitlines() if "exp" in line]
        ['let output0 = x.exp() * Float(2)']

        Raises:
            UnsupportedOpsError: operations or element types have no counterpart; it names all of them, with their lines.
            ParameterError: the path does not end with ``.swift``.
        """
        from bnnsgraph.swift.emit import to_swift

        return to_swift(cast("Any", self), path)
