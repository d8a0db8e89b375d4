"""What the translator knows about the value of an expression before the program runs.

The whole speed of the simulator rests on one distinction: which part of an integer is the same for all lanes (and stays
a Python integer) and which part differs by lane but never changes (and becomes an array computed once).  A shared
address ``row(thread) * 40 + stage * 1280`` is a :class:`Lane` whose base is such an array and whose offset is the
:class:`Linear` form ``1280 * stage``; one iteration of the loop then costs an addition of two integers.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelang_min.program.dtypes import data_type
from tilelang_min.simulate.tree import Buffer


@dataclass(frozen=True, slots=True)
class Linear:
    """An integer that is the same for all lanes: ``const + sum(coefficient * atom)``.

    An atom is Python source text of an integer (a loop variable, or something non-linear such as ``(k % 3)``).
    """

    const: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    @classmethod
    def atom(cls, source: str) -> Linear:
        """The form that is one atom."""
        return cls(0, ((source, 1),))

    @property
    def is_const(self) -> bool:
        """Whether the value is known to the translator."""
        return not self.terms

    def __add__(self, other: Linear) -> Linear:
        terms = dict(self.terms)
        for atom, coefficient in other.terms:
            terms[atom] = terms.get(atom, 0) + coefficient
        return Linear(self.const + other.const, tuple(sorted((a, c) for a, c in terms.items() if c)))

    def scaled(self, factor: int) -> Linear:
        """``factor * self``."""
        if factor == 0:
            return Linear()
        return Linear(self.const * factor, tuple((a, c * factor) for a, c in self.terms))

    def terms_divisible(self, divisor: int) -> bool:
        """Whether everything but the constant is a multiple of ``divisor``."""
        return all(c % divisor == 0 for _, c in self.terms)

    def divided(self, divisor: int) -> Linear:
        """``self // divisor`` for a form whose terms are divisible (floor semantics)."""
        return Linear(self.const // divisor, tuple((a, c // divisor) for a, c in self.terms))

    def without_const(self) -> Linear:
        """The terms alone."""
        return Linear(0, self.terms)

    def source(self) -> str:
        """Python source text, safe to embed in a larger expression."""
        parts = [atom if c == 1 else f"{c} * {atom}" for atom, c in self.terms]
        if self.const or not parts:
            parts.append(str(self.const))
        return parts[0] if len(parts) == 1 and not self.terms else "(" + " + ".join(parts) + ")"


@dataclass(frozen=True, slots=True)
class Uniform:
    """An integer that is the same for all lanes."""

    linear: Linear
    dtype: str = "int32"


@dataclass(frozen=True, slots=True)
class Lane:
    """An integer of each lane: ``base + offset``, where ``base`` names an int64 array made before the program runs."""

    base: str
    offset: Linear
    dtype: str = "int32"


@dataclass(frozen=True, slots=True)
class Array:
    """Anything else, as Python source text.

    At run time it is a NumPy scalar or an array that broadcasts to ``(threads,)``, or ``(lanes, threads)`` for a vector;
    a condition may also be ``True`` or ``False`` (meaning: for all lanes).  ``constant`` values are computed once.
    ``fresh`` ones share no memory with a register.
    """

    source: str
    dtype: str
    lanes: int = 1
    constant: bool = False
    fresh: bool = True


@dataclass(frozen=True, slots=True)
class Address:
    """A pointer into a buffer; ``offset`` counts bytes from the buffer's start."""

    buffer: Buffer
    offset: Uniform | Lane | Array


Value = Uniform | Lane | Array | Address


def numpy_name(dtype: str) -> str:
    """How translated source names a NumPy type."""
    known = data_type(dtype)
    if known is not None and known.narrow:
        return f"ml.{known.numpy}"
    return "np.bool_" if dtype == "bool" else f"np.{dtype}"
