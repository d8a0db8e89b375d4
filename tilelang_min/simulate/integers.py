"""Integer arithmetic on :mod:`~tilelang_min.simulate.values`: keeps ``lane constant + uniform`` apart wherever it can.

``//`` and ``%`` are TIR's (floor).  What cannot be kept apart becomes an :class:`Array` of the expression's own type, so
that 32-bit arithmetic on loaded data wraps as on hardware.
"""

from __future__ import annotations

from tilelang_min.simulate.source import SourceText
from tilelang_min.simulate.values import Array, Lane, Linear, Uniform, numpy_name

Integer = Uniform | Lane | Array


class Integers:
    """Builds integer values; arrays that depend on lane constants alone go to the prologue of ``source``."""

    def __init__(self, source: SourceText) -> None:
        self.source = source

    def array(self, value: Integer) -> Array:
        """The value as source text of a Python integer or a typed array."""
        if isinstance(value, Array):
            return value
        if isinstance(value, Uniform):
            if value.dtype == "bool" and value.linear.is_const:  # conditions are Python's truth values
                return Array(str(value.linear.const != 0), value.dtype, constant=True)
            return Array(value.linear.source(), value.dtype, constant=value.linear.is_const)
        if value.dtype.startswith("uint") and value.offset != Linear():  # base and offset may be negative by themselves
            text = f"({value.base} + {value.offset.source()}).astype({numpy_name(value.dtype)})"
            constant = value.offset.is_const
            return Array(self.source.hoist(text) if constant else text, value.dtype, constant=constant)
        base = self.source.hoist(f"{value.base}.astype({numpy_name(value.dtype)})")
        if value.offset == Linear():
            return Array(base, value.dtype, constant=True)
        text = f"({base} + {value.offset.source()})"
        if value.offset.is_const:
            return Array(self.source.hoist(text), value.dtype, constant=True)
        return Array(text, value.dtype)

    def lane(self, base: str, offset: Linear, dtype: str) -> Lane:
        """A lane value with a named base."""
        return Lane(self.source.hoist(base), offset, dtype)

    def add(self, a: Integer, b: Integer, dtype: str) -> Integer:
        """``a + b``."""
        if isinstance(a, Array) or isinstance(b, Array):
            return self.plain("+", a, b, dtype)
        if isinstance(a, Uniform):
            if isinstance(b, Uniform):
                return Uniform(a.linear + b.linear, dtype)
            return Lane(b.base, b.offset + a.linear, dtype)
        if isinstance(b, Uniform):
            return Lane(a.base, a.offset + b.linear, dtype)
        return self.lane(f"({a.base} + {b.base})", a.offset + b.offset, dtype)

    def scale(self, a: Integer, factor: int, dtype: str) -> Integer:
        """``a * factor``."""
        if isinstance(a, Array):
            return self.plain("*", a, Uniform(Linear(factor), dtype), dtype)
        if factor == 0:
            return Uniform(Linear(), dtype)
        if isinstance(a, Uniform):
            return Uniform(a.linear.scaled(factor), dtype)
        base = a.base if factor == 1 else f"({a.base} * {factor})"
        return self.lane(base, a.offset.scaled(factor), dtype)

    def subtract(self, a: Integer, b: Integer, dtype: str) -> Integer:
        """``a - b``."""
        if isinstance(a, Array) or isinstance(b, Array):
            return self.plain("-", a, b, dtype)
        if isinstance(a, Lane) and isinstance(b, Lane):
            offset = a.offset + b.offset.scaled(-1)
            if a.base == b.base:
                return Uniform(offset, dtype)
            return self.lane(f"({a.base} - {b.base})", offset, dtype)
        return self.add(a, self.scale(b, -1, dtype), dtype)

    def multiply(self, a: Integer, b: Integer, dtype: str) -> Integer:
        """``a * b``."""
        for x, y in ((a, b), (b, a)):
            if isinstance(y, Uniform) and y.linear.is_const:
                return self.scale(x, y.linear.const, dtype)
        if isinstance(a, Uniform) and isinstance(b, Uniform):
            return Uniform(Linear.atom(f"({a.linear.source()} * {b.linear.source()})"), dtype)
        if isinstance(a, Lane) and isinstance(b, Lane) and a.offset.is_const and b.offset.is_const:
            return self.lane(f"(({a.base} + {a.offset.const}) * ({b.base} + {b.offset.const}))", Linear(), dtype)
        return self.plain("*", a, b, dtype)

    def floor_divide(self, a: Integer, b: Integer, dtype: str) -> Integer:
        """``a // b``, rounded down."""
        if isinstance(b, Uniform) and b.linear.is_const and b.linear.const > 0:
            divisor = b.linear.const
            if divisor == 1:
                return a
            if isinstance(a, Uniform) and a.linear.terms_divisible(divisor):
                return Uniform(a.linear.divided(divisor), dtype)
            if isinstance(a, Lane) and a.offset.terms_divisible(divisor):
                rest = a.offset.const % divisor
                inner = f"({a.base} + {rest})" if rest else a.base
                return self.lane(f"({inner} // {divisor})", a.offset.divided(divisor), dtype)
        return self.generic("//", a, b, dtype)

    def floor_modulo(self, a: Integer, b: Integer, dtype: str) -> Integer:
        """``a % b``, with the sign of ``b``."""
        if isinstance(b, Uniform) and b.linear.is_const and b.linear.const > 0:
            divisor = b.linear.const
            if isinstance(a, Uniform) and a.linear.terms_divisible(divisor):
                return Uniform(Linear(a.linear.const % divisor), dtype)
            if isinstance(a, Lane) and a.offset.terms_divisible(divisor):
                rest = a.offset.const % divisor
                inner = f"({a.base} + {rest})" if rest else a.base
                return self.lane(f"({inner} % {divisor})", Linear(), dtype)
        return self.generic("%", a, b, dtype)

    def extreme(self, name: str, a: Integer, b: Integer, dtype: str) -> Integer:
        """``min`` or ``max``."""
        if isinstance(a, Uniform) and isinstance(b, Uniform):
            difference = a.linear + b.linear.scaled(-1)
            if difference.is_const:
                smaller, larger = (a, b) if difference.const <= 0 else (b, a)
                return smaller if name == "min" else larger
            return Uniform(Linear.atom(f"{name}({a.linear.source()}, {b.linear.source()})"), dtype)
        function = "np.minimum" if name == "min" else "np.maximum"
        if not isinstance(a, Array) and not isinstance(b, Array):
            left, right = _parts(a), _parts(b)
            if left[1].without_const() == right[1].without_const():
                text = f"{function}({left[0]} + {left[1].const}, {right[0]} + {right[1].const})"
                return self.lane(text, left[1].without_const(), dtype)
        x, y = self.array(a), self.array(b)
        return self.result(f"{function}({x.source}, {y.source})", (x, y), dtype)

    def generic(self, symbol: str, a: Integer, b: Integer, dtype: str) -> Integer:
        """Any other operator: exact on uniform values and on values that are constant by lane."""
        if isinstance(a, Uniform) and isinstance(b, Uniform):
            text = f"({a.linear.source()} {symbol} {b.linear.source()})"
            if a.linear.is_const and b.linear.is_const:
                return Uniform(Linear(int(eval(text, {"__builtins__": {}}))), dtype)
            return Uniform(Linear.atom(text), dtype)
        if not isinstance(a, Array) and not isinstance(b, Array):
            (x, u), (y, v) = _parts(a), _parts(b)
            if u.is_const and v.is_const:
                left, right = (_signed(each.const) if symbol in "&|^" else each.const for each in (u, v))
                return self.lane(f"(({x} + {left}) {symbol} ({y} + {right}))", Linear(), dtype)
        return self.plain(symbol, a, b, dtype)

    def plain(self, symbol: str, a: Integer, b: Integer, dtype: str) -> Array:
        """An operator applied to arrays at run time (or in the prologue where both are constant)."""
        x, y = self.array(a), self.array(b)
        return self.result(f"({x.source} {symbol} {y.source})", (x, y), dtype)

    def result(self, text: str, operands: tuple[Array, ...], dtype: str) -> Array:
        """An array value; hoisted when all its operands are constant."""
        lanes = max(operand.lanes for operand in operands)
        if all(operand.constant for operand in operands):
            return Array(self.source.hoist(text), dtype, lanes, constant=True)
        return Array(text, dtype, lanes)

    def compare(self, operator: str, a: Integer, b: Integer) -> Array:
        """A condition from ``eq ne lt le gt ge`` on integers, decided without arrays where the bounds decide."""
        if operator in ("gt", "ge"):
            return self.compare("lt" if operator == "gt" else "le", b, a)
        if operator == "ne":
            inner = self.compare("eq", a, b)
            return self.result(f"negate({inner.source})", (inner,), "bool")
        if isinstance(a, Array) or isinstance(b, Array):
            symbol = {"eq": "==", "lt": "<", "le": "<="}[operator]
            return self.plain(symbol, a, b, "bool")
        difference = self.subtract(a, b, "int32")
        if isinstance(difference, Uniform):
            linear = difference.linear + Linear(-1 if operator == "le" else 0)
            symbol = "==" if operator == "eq" else "<"
            if linear.is_const:
                outcome = linear.const == 0 if operator == "eq" else linear.const < 0
                return Array(str(outcome), "bool", constant=True)
            return Array(f"({linear.source()} {symbol} 0)", "bool")
        assert isinstance(difference, Lane)
        offset = difference.offset + Linear(-1 if operator == "le" else 0)
        base = difference.base
        limits = self.source.hoist(f"bounds({base})")
        low, high = self.source.hoist(f"{limits}[0]"), self.source.hoist(f"{limits}[1]")
        function = "equal" if operator == "eq" else "less"
        text = f"{function}({base}, {low}, {high}, {offset.source()})"
        if offset.is_const:
            return Array(self.source.hoist(f"decide({text})"), "bool", constant=True)
        return Array(text, "bool")


def _signed(constant: int) -> int:
    """The number with the same 64 bits that bases, which are signed, can meet: descriptors have their highest bit set."""
    return constant - (1 << 64) if constant >> 63 == 1 else constant


def _parts(value: Uniform | Lane) -> tuple[str, Linear]:
    return ("0", value.linear) if isinstance(value, Uniform) else (value.base, value.offset)
