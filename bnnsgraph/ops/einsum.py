"""Einstein summation: the equation read and checked while building."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from bnnsgraph.dtypes import Number
from bnnsgraph.errors import ParameterError, ShapeError
from bnnsgraph.frozen import frozen
from bnnsgraph.graph import Op
from bnnsgraph.sizes import Dimension
from bnnsgraph.spec import (
    Shape,
    TensorSpec,
    broadcast_shapes,
    format_shape,
    require_dtype,
    require_equal_size,
    require_same_dtype,
)  # fmt: skip
from bnnsgraph.xla import accumulator, jnp

if TYPE_CHECKING:
    import jax

DOTS = "..."


class Equation(NamedTuple):
    """One text of letters an operand, and that of the result; ``...`` marks the axes that broadcast."""

    terms: tuple[str, ...]
    result: str

    def __str__(self) -> str:
        return f"{','.join(self.terms)}->{self.result}"

    def is_one_product(self) -> bool:
        """Whether two tensors are multiplied and summed in one step, without a diagonal or a sum of one of them before."""
        if len(self.terms) != 2:
            return False
        left, right = (term.replace(DOTS, "") for term in self.terms)
        kept = set(self.result)
        return len({*left}) == len(left) and len({*right}) == len(right) and ({*left} ^ {*right}) <= kept


def read(equation: object) -> Equation:
    """The parts of an equation.

    >>> read("ij, jk"), read("...i -> ...")
    (Equation(terms=('ij', 'jk'), result='ik'), Equation(terms=('...i',), result='...'))
    """
    if not isinstance(equation, str):
        raise ParameterError(f"equation must be text such as 'ij,jk->ik', got {equation!r}")
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = tuple(left.split(","))
    for term in (*terms, result):
        letters = term.replace(DOTS, "", 1)
        if any(not (letter.isascii() and letter.isalpha()) for letter in letters):
            raise ParameterError(f"equation must be letters, commas, '...' and one '->', got {equation!r}")
    written = "".join(terms).replace(DOTS, "")
    if not arrow:
        once = sorted(letter for letter in set(written) if written.count(letter) == 1)
        return Equation(terms, (DOTS if any(DOTS in term for term in terms) else "") + "".join(once))
    names = result.replace(DOTS, "")
    for letter in names:
        if letter not in written:
            raise ParameterError(f"letters of the result must occur on the left of '->', got {letter!r} in {equation!r}")
        if names.count(letter) > 1:
            raise ParameterError(f"letters of the result must differ, got {letter!r} twice in {equation!r}")
    if DOTS not in result and any(DOTS in term for term in terms):
        raise ParameterError(f"the result must have the '...' of the operands, got {equation!r}")
    return Equation(terms, result)


@frozen
class Einsum(Op):
    equation: str

    ends_fusion: ClassVar[bool] = True

    def infer(self, *tensors: TensorSpec) -> TensorSpec:
        dtype = require_same_dtype(**{f"tensors[{index}]": spec for index, spec in enumerate(tensors)})
        require_dtype(tensors[0], Number, "tensors[0]")
        terms, result = read(self.equation)
        if len(terms) != len(tensors):
            raise ParameterError(f"equation must have one term for each of the {len(tensors)} tensors, got {len(terms)}")
        sizes: dict[str, Dimension] = {}
        spread: list[Shape] = []
        for index, (term, spec) in enumerate(zip(terms, tensors, strict=True)):
            before, dots, after = term.partition(DOTS)
            named = len(before) + len(after)
            if spec.rank < named or (spec.rank > named and not dots):
                least = " or more" if dots else ""
                raise ShapeError(f"tensors[{index}] must have rank {named}{least} for {term!r}, got {format_shape(spec.shape)}")
            end = spec.rank - len(after)
            spread.append(spec.shape[len(before) : end])
            for letter, size in zip(before + after, (*spec.shape[: len(before)], *spec.shape[end:]), strict=True):
                sizes[letter] = require_equal_size(sizes.get(letter, size), size, f"sizes of {letter!r}")
        before, dots, after = result.partition(DOTS)
        middle = broadcast_shapes(*spread) if dots else ()
        return TensorSpec(dtype, (*[sizes[letter] for letter in before], *middle, *[sizes[letter] for letter in after]))

    def lower(self, *tensors: jax.Array) -> jax.Array:
        equation = read(self.equation)
        dtype = tensors[0].dtype
        wide = accumulator(dtype)
        if not equation.is_one_product():  # several steps, rounded once after the last
            tensors = tuple(tensor.astype(wide) for tensor in tensors)
        product = jnp.einsum(str(equation), *tensors, preferred_element_type=wide)
        return product.astype(dtype)
