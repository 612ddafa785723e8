"""Every error this package raises. ``except GraphError`` catches them all.

A message reads: what failed, what it must be, what it got, the operands with the lines that made them, and the user's line.
"""

from __future__ import annotations

from bnnsgraph.origin import here, outside, shell


class GraphError(Exception):
    """The base of all errors of this package. Every one of them ends with the user's line.

    Attributes:
        reason: what failed, what it must be and what it got, in one line.
        details: further lines, such as the operands.
        origin: the line of the user's program that was running.
    """

    def __init__(self, reason: str, *details: str) -> None:
        super().__init__(reason, *details)
        self.reason = reason
        self.details = details
        self.origin = here()

    def __str__(self) -> str:
        text = self.origin.text
        last = f"at {self.origin}:  {text}" if text else f"at {self.origin}"
        return "\n  ".join([self.reason, *self.details, last])

    def _render_traceback_(self) -> list[str]:
        """What IPython shows for this error: the user's lines, and none of this package's. ``%xmode --show`` shows all."""
        interactive = shell()
        if interactive is None:
            import traceback

            return traceback.format_exception(self)
        style = interactive.InteractiveTB
        frames = outside(self.__traceback__) if style.skip_hidden else self.__traceback__
        return style.structured_traceback(type(self), self, frames)


class ShapeError(GraphError, ValueError):
    """A rank, an axis or a size breaks an operation's rule."""


class DTypeError(GraphError, TypeError):
    """An element type breaks an operation's rule."""


class ParameterError(GraphError, ValueError):
    """A parameter that is not a tensor (a mode, a count, an option) is outside its domain."""


class IndexOutOfBoundsError(GraphError, IndexError):
    """An index addresses no element of its axis."""


class NotFiniteError(GraphError, ArithmeticError):
    """An operation made a NaN or an infinity while a context checks for them."""


class ForeignTensorError(GraphError, ValueError):
    """A tensor of another builder, or of a finished one, was used."""


class UndefinedValueError(GraphError, TypeError):
    """Python asked a tensor for a value (``bool``, ``len``, iteration) while the graph is only recorded."""


class UnableToMakeGraphError(GraphError, ValueError):
    """The builder block returned nothing, or something that is not tensors (Swift ``Error.unableToMakeGraph``)."""


class ArgumentError(GraphError, TypeError):
    """A run was given missing, unknown, doubled or unusable arguments."""


class UnableToSetDynamicShapesError(ShapeError):
    """Sizes given for flexible dimensions contradict the graph (Swift ``Error.unableToSetDynamicShapes``)."""


class FileFormatError(GraphError, ValueError):
    """A file is no graph of this package, is damaged, or holds what this version does not know."""


class UnsupportedOpsError(GraphError, NotImplementedError):
    """A graph holds operations that the target does not have; the message lists them all, with their lines."""


class MissingDependencyError(GraphError, ImportError):
    """An optional package is needed; the message names the extra that installs it."""
