"""Expressions of the thread program as Python source on NumPy arrays.

Reads of memory go through access sites (``sites.py``); a read under a condition (``if_then_else``) writes a branch into
the body first.  ``min``/``max`` propagate NaN, so that poison from unwritten memory stays visible.
"""

from __future__ import annotations

from tilelang_min.errors import SimulationError
from tilelang_min.simulate.integers import Integer, Integers
from tilelang_min.simulate.layout import Layout
from tilelang_min.simulate.narrow import is_narrow
from tilelang_min.simulate.sites import Site
from tilelang_min.simulate.source import SourceText
from tilelang_min.simulate.tree import Buffer, Expression
from tilelang_min.simulate.values import Address, Array, Lane, Linear, Uniform, Value, numpy_name

UNARY_MATH = {
    "exp": "np.exp({})",
    "exp2": "np.exp2({})",
    "exp10": "np.power(10, {})",
    "log": "np.log({})",
    "log2": "np.log2({})",
    "log10": "np.log10({})",
    "sqrt": "np.sqrt({})",
    "rsqrt": "(1 / np.sqrt({}))",
    "tanh": "np.tanh({})",
    "sigmoid": "(1 / (1 + np.exp(-{})))",
    "sin": "np.sin({})",
    "cos": "np.cos({})",
    "fabs": "np.abs({})",
    "floor": "np.floor({})",
    "ceil": "np.ceil({})",
    "trunc": "np.trunc({})",
    "round": "np.rint({})",
    "nearbyint": "np.rint({})",
    "isnan": "np.isnan({})",
    "isinf": "np.isinf({})",
}
BINARY_MATH = {"pow": "np.power({}, {})", "fmod": "np.fmod({}, {})", "atan2": "np.arctan2({}, {})"}
FLOAT_OPERATORS = {
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "div": "({} / {})",
    "min": "np.minimum({}, {})",
    "max": "np.maximum({}, {})",
}
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
INTEGER_SYMBOLS = {"shl": "<<", "shr": ">>", "bitand": "&", "bitor": "|", "bitxor": "^"}


def is_float(dtype: str) -> bool:
    """Whether a type name is a floating-point type."""
    return "float" in dtype


class Expressions:
    """Translates expressions under a current mask.

    ``mask`` names the array of active lanes, or is None where all lanes are active.  ``operation`` is the tile operation
    that accesses belong to.
    """

    def __init__(self, source: SourceText, layout: Layout, environment: dict[int, Value]) -> None:
        self.source = source
        self.layout = layout
        self.environment = environment
        self.integers = Integers(source)
        self.sites: list[Site] = []
        self.mask: str | None = None
        self.operation = 0

    def value(self, e: Expression) -> Value:
        """The value of an expression."""
        kind = e.kind
        if kind == "const":
            return self.constant(e)
        if kind == "var":
            known = self.environment.get(e.value)
            if known is None:
                raise SimulationError("thread program reads a variable that nothing defines")
            return known
        if kind == "load":
            return self.load(e.value, e.args[0], e.dtype, e.lanes)
        if kind == "broadcast":
            inner = self.value(e.args[0])
            return Array(inner.source, inner.dtype, e.lanes, inner.constant) if isinstance(inner, Array) else inner
        if kind == "ramp":
            return self.ramp(e)
        if kind == "cast":
            return self.cast(e)
        if kind == "select":
            return self.select(e)
        if kind in ("and", "or"):
            a, b = (self.array(arg) for arg in e.args)
            return self.integers.result(
                f"{'both' if kind == 'and' else 'either'}({a.source}, {b.source})", (a, b), "bool"
            )
        if kind == "not":
            inner = self.array(e.args[0])
            return self.integers.result(f"negate({inner.source})", (inner,), "bool")
        if kind == "call":
            return self.call(e)
        return self.binary(e)

    def array(self, e: Expression) -> Array:
        """The value as source text."""
        return self.integers.array(self.integer(e))

    def integer(self, e: Expression) -> Integer:
        """The value of an integer expression."""
        return self.number(self.value(e))

    def number(self, value: Value) -> Integer:
        """A value that may be an address in shared memory as a number: bytes from the start of the block's shared memory."""
        if not isinstance(value, Address):
            return value
        place = self.layout.place(value.buffer)
        if place.space != "shared":
            raise SimulationError("an address in global memory is used as a number")
        return self.integers.add(value.offset, Uniform(Linear(place.offset), "uint32"), "uint32")

    def constant(self, e: Expression) -> Value:
        if is_float(e.dtype):
            # As text inside quotes, because Python has no name for an infinity or NaN.
            text = f"{numpy_name(e.dtype)}('{float(e.value)!r}')"
            return Array(self.source.hoist(text, "c"), e.dtype, constant=True)
        if e.dtype == "bool":
            return Array(str(bool(e.value)), "bool", constant=True)
        return Uniform(Linear(int(e.value)), e.dtype)

    def ramp(self, e: Expression) -> Array:
        base, stride = self.array(e.args[0]), self.array(e.args[1])
        steps = self.source.hoist(f"np.arange({e.lanes}, dtype=np.{e.dtype})[:, None]")
        result = self.integers.result(f"({base.source} + {steps} * {stride.source})", (base, stride), e.dtype)
        return Array(result.source, e.dtype, e.lanes, result.constant)

    def cast(self, e: Expression) -> Value:
        (inner,) = e.args
        value = self.value(inner)
        if isinstance(value, Address):
            if "64" not in e.dtype:
                return value
            value = self.number(value)  # part of a matrix descriptor
        if (
            isinstance(value, Uniform | Lane)
            and "int" in e.dtype
            and e.dtype not in ("int8", "uint8", "int16", "uint16")
        ):
            return (
                Uniform(value.linear, e.dtype)
                if isinstance(value, Uniform)
                else Lane(value.base, value.offset, e.dtype)
            )
        array = self.integers.array(value)
        if e.dtype == inner.dtype:
            return array
        function = "narrow" if is_narrow(e.dtype) else "cast"
        result = self.integers.result(f"{function}({array.source}, {numpy_name(e.dtype)})", (array,), e.dtype)
        return Array(result.source, e.dtype, e.lanes, result.constant)

    def select(self, e: Expression) -> Value:
        condition, a, b = (self.array(arg) for arg in e.args)
        result = self.integers.result(f"select({condition.source}, {a.source}, {b.source})", (condition, a, b), e.dtype)
        return Array(result.source, e.dtype, e.lanes, result.constant, fresh=False)

    def binary(self, e: Expression) -> Value:
        left, right = e.args
        kind = e.kind
        operand = left.dtype
        if kind in COMPARISONS and not is_float(operand) and operand != "bool" and max(left.lanes, right.lanes) == 1:
            return self.integers.compare(kind, self.integer(left), self.integer(right))
        if is_float(operand) or operand == "bool" or e.lanes > 1 or kind in COMPARISONS:
            return self.array_operator(e)
        first = self.value(left)
        if isinstance(first, Address) and kind in ("add", "sub"):
            shift = self.integer(right)
            step = shift if kind == "add" else self.integers.scale(shift, -1, "int32")
            return Address(first.buffer, self.integers.add(first.offset, step, "int32"))
        second = self.value(right)
        if isinstance(second, Address) and kind == "add" and not isinstance(first, Address):
            return Address(second.buffer, self.integers.add(second.offset, first, "int32"))
        return self.integer_operator(kind, self.number(first), self.number(second), e.dtype)

    def integer_operator(self, kind: str, a: Integer, b: Integer, dtype: str) -> Integer:
        integers = self.integers
        if kind == "add":
            return integers.add(a, b, dtype)
        if kind == "sub":
            return integers.subtract(a, b, dtype)
        if kind == "mul":
            return integers.multiply(a, b, dtype)
        if kind == "floordiv":
            return integers.floor_divide(a, b, dtype)
        if kind == "floormod":
            return integers.floor_modulo(a, b, dtype)
        if kind in ("min", "max"):
            return integers.extreme(kind, a, b, dtype)
        if kind in INTEGER_SYMBOLS:
            return integers.generic(INTEGER_SYMBOLS[kind], a, b, dtype)
        if kind in ("div", "mod"):
            function = "truncated_division" if kind == "div" else "truncated_remainder"
            if isinstance(a, Uniform) and isinstance(b, Uniform):
                return Uniform(Linear.atom(f"int({function}({a.linear.source()}, {b.linear.source()}))"), dtype)
            x, y = integers.array(a), integers.array(b)
            return integers.result(f"{function}({x.source}, {y.source})", (x, y), dtype)
        raise SimulationError(f"the simulator has no rule for {kind} on {dtype}")

    def array_operator(self, e: Expression) -> Array:
        """Element-wise operators on floats, and on vectors of anything."""
        a, b = self.array(e.args[0]), self.array(e.args[1])
        if e.kind in COMPARISONS:
            text = f"({a.source} {COMPARISONS[e.kind]} {b.source})"
        elif e.kind in FLOAT_OPERATORS and (e.kind != "div" or is_float(e.dtype)):
            text = self.by_float32(FLOAT_OPERATORS[e.kind], (a, b), e.dtype)
        elif e.kind in ("floordiv", "floormod"):
            text = f"({a.source} {'//' if e.kind == 'floordiv' else '%'} {b.source})"
        elif e.kind in INTEGER_SYMBOLS:
            text = f"({a.source} {INTEGER_SYMBOLS[e.kind]} {b.source})"
        else:
            raise SimulationError(f"the simulator has no rule for {e.kind} on {e.dtype}x{e.lanes}")
        result = self.integers.result(text, (a, b), e.dtype)
        return Array(result.source, e.dtype, e.lanes, result.constant)

    @staticmethod
    def by_float32(template: str, operands: tuple[Array, ...], dtype: str) -> str:
        """A template filled with operands: as they are, or narrow floats widened and the result rounded."""
        texts = [f"widen({each.source})" if is_narrow(each.dtype) else each.source for each in operands]
        text = template.format(*texts)
        return f"narrow({text}, {numpy_name(dtype)})" if is_narrow(dtype) else text

    def call(self, e: Expression) -> Value:
        name: str = e.value
        short = name.rsplit(".", 1)[-1]
        if short == "if_then_else":
            return self.if_then_else(e)
        if name in ("tirx.cuda.cvta_generic_to_shared", "tirx.reinterpret") and e.args[0].dtype == "handle":
            return self.value(e.args[0])
        if name == "tirx.address_of":
            return self.address(e)
        if name == "tirx.reinterpret":
            inner = self.array(e.args[0])
            if inner.dtype == e.dtype:
                return inner
            source = f"rt.spread({inner.source})"
            if inner.constant:  # a Python number, whose bits NumPy would make up
                source = f"np.asarray({source}, {numpy_name(inner.dtype)})"
            return Array(f"reinterpret({source}, {numpy_name(e.dtype)}, {e.lanes})", e.dtype, e.lanes)
        if short in UNARY_MATH and len(e.args) == 1:
            (a,) = (self.array(arg) for arg in e.args)
            result = self.integers.result(self.by_float32(UNARY_MATH[short], (a,), e.dtype), (a,), e.dtype)
            return Array(result.source, e.dtype, e.lanes, result.constant)
        if short in BINARY_MATH:
            a, b = (self.array(arg) for arg in e.args)
            result = self.integers.result(self.by_float32(BINARY_MATH[short], (a, b), e.dtype), (a, b), e.dtype)
            return Array(result.source, e.dtype, e.lanes, result.constant)
        return self.intrinsic(e)

    def intrinsic(self, e: Expression) -> Value:
        """Vendor intrinsics that return a value; ``instructions.py`` knows them."""
        raise SimulationError(f"the simulator has no rule for the call {e.value}")

    def uses_register(self, buffer: Buffer, index: Value, lanes: int) -> None:
        """Called before registers are read or written."""

    def address(self, e: Expression) -> Address:
        (load,) = e.args
        buffer: Buffer = load.value
        index = load.args[0]
        if index.kind == "ramp":
            index = index.args[0]
        size = self.layout.itemsize(buffer.dtype)
        return Address(buffer, self.integers.scale(self.integer(index), size, "int32"))

    def if_then_else(self, e: Expression) -> Array:
        condition = self.array(e.args[0])
        if condition.source in ("True", "False"):
            return self.array(e.args[1 if condition.source == "True" else 2])
        source, outer = self.source, self.mask
        name = source.fresh("q")
        source.line(f"{name} = {condition.source if condition.constant else f'decide({condition.source})'}")
        result = source.fresh("t")
        with source.block(f"if {name} is True:"):
            source.line(f"{result} = {self.array(e.args[1]).source}")
        with source.block(f"elif {name} is False:"):
            source.line(f"{result} = {self.array(e.args[2]).source}")
        with source.block("else:"):
            source.line(f"m_{name} = {name}" if outer is None else f"m_{name} = {name} & {outer}")
            self.mask = f"m_{name}"
            first = self.array(e.args[1]).source
            source.line(f"n_{name} = ~{name}" if outer is None else f"n_{name} = ~{name} & {outer}")
            self.mask = f"n_{name}"
            second = self.array(e.args[2]).source
            self.mask = outer
            source.line(f"{result} = np.where({name}, {first}, {second})")
        return Array(result, e.dtype, e.lanes, fresh=False)

    # ---- memory -----------------------------------------------------------------------------------------------------

    def load(self, buffer: Buffer, index: Expression, dtype: str, lanes: int) -> Array:
        """A read of one element or of consecutive ones."""
        base = self.base_index(index)
        if buffer.scope == "local":
            return Array(self.register(buffer, base, lanes), dtype, lanes, fresh=False)
        call = self.access("load", buffer, base, lanes)
        name = self.source.fresh("x")
        self.source.line(f"{name} = {call})")
        return Array(name, dtype, lanes, fresh=False)

    def base_index(self, index: Expression) -> Integer:
        """The first element of an access; vectors have stride 1."""
        if index.kind == "ramp":
            stride = index.args[1]
            if stride.kind != "const" or stride.value != 1:
                raise SimulationError("a vector access with a stride other than 1 is not part of a thread program")
            index = index.args[0]
        return self.integer(index)

    def access(self, kind: str, buffer: Buffer, index: Integer, lanes: int) -> str:
        """The head of a call of an access site, up to where further arguments follow."""
        site = self.site(kind, buffer, lanes)
        return self.site_call(site, index)

    def site(self, kind: str, buffer: Buffer, lanes: int, *, part: str = "") -> Site:
        """A new access site of the current operation."""
        place = self.layout.place(buffer)
        site = Site(len(self.sites), kind, place, lanes, self.operation, part)
        self.sites.append(site)
        return site

    def site_call(self, site: Site, index: Integer) -> str:
        if isinstance(index, Array):
            name = self.source.hoist(f"rt.general_site({site.number})", "s")
            return f"{name}({index.source}, {self.mask}"
        base, offset = self.split(index)
        if self.mask is None:
            return f"{self.source.hoist(f'rt.site({site.number}, {base})', 's')}({offset}"
        return f"{self.source.hoist(f'rt.masked_site({site.number}, {base})', 's')}({offset}, {self.mask}"

    @staticmethod
    def split(index: Uniform | Lane) -> tuple[str, str]:
        """Base name (or None) and offset text of an index or address."""
        if isinstance(index, Uniform):
            return "None", index.linear.source()
        return index.base, index.offset.source()

    def register(self, buffer: Buffer, index: Integer, lanes: int) -> str:
        """Source text of a view of registers: a row, ``lanes`` rows, or a gather where the index differs by lane."""
        self.uses_register(buffer, index, lanes)
        name = self.source.hoist(f"rt.local({buffer.key})", "r")
        if not isinstance(index, Uniform):
            return f"rt.gather_local({name}, {self.integers.array(index).source}, {lanes}, {self.mask})"
        linear = index.linear
        if linear.is_const:
            if not 0 <= linear.const <= buffer.elements - lanes:
                raise SimulationError(f"register index {linear.const} is outside {buffer.name}[{buffer.elements}]")
            start = linear.const
            text = f"{name}[{start}]" if lanes == 1 else f"{name}[{start}:{start + lanes}]"
            return self.source.hoist(text, "r")
        text = linear.source()
        return f"{name}[{text}]" if lanes == 1 else f"{name}[{text}:{text} + {lanes}]"
