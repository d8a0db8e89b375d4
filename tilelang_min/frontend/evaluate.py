"""Expressions of a kernel: Python syntax -> Python constants, TVM expressions, tiles and accesses."""

from __future__ import annotations

import ast
import builtins
import difflib
import operator
from typing import Any

from tvm import tirx

from tilelang_min.errors import LanguageError, ShapeError, TileLangError
from tilelang_min.frontend.helpers import computes, inline_value
from tilelang_min.frontend.operators import BINARY, Operators
from tilelang_min.frontend.values import (
    Access,
    Variable,
    as_expression,
    common_type,
    constant,
    convert,
    dtype_of,
    in_float32,
    is_expression,
    plain_number,
)
from tilelang_min.ir.nodes import Buffer
from tilelang_min.language import DTYPES, Construct, Tensor
from tilelang_min.language.eager import Output
from tilelang_min.language.kernel_source import KernelSource
from tilelang_min.language.sizes import Computed, Dynamic
from tilelang_min.language.types import NOT_HELD, DType, normal_dtype
from tilelang_min.program.dtypes import DATA_TYPES, is_float

_UNARY_MATH = {
    "exp": tirx.exp,
    "exp2": tirx.exp2,
    "log": tirx.log,
    "sqrt": tirx.sqrt,
    "rsqrt": tirx.rsqrt,
    "tanh": tirx.tanh,
    "sigmoid": tirx.sigmoid,
    "log2": tirx.log2,
    "floor": tirx.floor,
    "ceil": tirx.ceil,
    "abs": tirx.abs,
}


_COMPUTE = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}

REPORT = "write it another way; if it is right as it stands, please report it with the kernel's source"
"""What to do about what TVM refuses, whose words are for others than kernel authors."""


NOT_HELD_REMEDY = "hold its bits in a wider type (two 4-bit numbers in a uint8) and take them apart with >> and &"
"""What to do about a data type that TileLang names and that no tile can have here."""


def first_line(error: Exception) -> str:
    """What an exception says, in one line."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__).strip()


class Evaluator(Operators):
    """Evaluates expression nodes in a stack of name tables; the outermost holds the function's own surroundings."""

    def __init__(self, source: KernelSource, names: dict[str, Any]) -> None:
        self.source = source
        self.frames: list[dict[str, Any]] = [names]
        self.sizes: dict[str, Any] = {}
        self.depth = 0  # functions inside functions
        self.tensors: dict[int, Buffer] = {}

    # -- names -----------------------------------------------------------------------------------------------------

    def lookup(self, node: ast.Name) -> Any:
        """Value of a name, innermost first."""
        for frame in reversed(self.frames):
            if node.id in frame:
                return frame[node.id]
        if hasattr(builtins, node.id):
            return getattr(builtins, node.id)
        known = [name for frame in self.frames[1:] for name in frame]
        near = difflib.get_close_matches(node.id, known, n=1)
        raise self.error(
            node,
            f"the name {node.id!r} is not defined here",
            f"did you mean {near[0]!r}?"
            if near
            else "define it before the kernel, or make it an argument of its factory",
        )

    def bind(self, name: str, value: Any) -> None:
        """Give ``name`` a value in the innermost table."""
        self.frames[-1][name] = value

    # -- errors ----------------------------------------------------------------------------------------------------

    def error(
        self, node: ast.AST, message: str, remedy: str | None = None, kind: type[LanguageError] = LanguageError
    ) -> LanguageError:
        """An error that points at ``node``."""
        return kind(message, location=self.source.location(node), remedy=remedy)

    # -- evaluation ------------------------------------------------------------------------------------------------

    def raw(self, node: ast.expr) -> Any:
        """Any value: constant, construct, tile, access, expression, tuple."""
        method = getattr(self, f"_eval_{type(node).__name__}", None)
        if method is None:
            raise self.error(
                node,
                f"{type(node).__name__} expressions are not part of the tile language",
                "use arithmetic, comparisons, tile accesses and the T.* functions",
            )
        try:
            return method(node)
        except TileLangError:
            raise
        except Exception as error:  # what TVM refuses, such as a constant that does not fit 32 bits
            raise self.error(node, f"this expression cannot be compiled: {first_line(error)}", REPORT) from error

    def value(self, node: ast.expr) -> Any:
        """A number or expression; a full tile access is read."""
        return self.as_value(node, self.raw(node))

    def as_value(self, node: ast.AST, result: Any) -> Any:
        """Turn an access into the element it reads; tiles and other objects are errors."""
        if isinstance(result, Access):
            return self.load(node, result)
        if isinstance(result, Buffer):
            raise self.error(
                node,
                f"{result.name} is a whole tile where one value is needed",
                f"index it inside T.Parallel: {result.name}[{', '.join('ijkl'[: len(result.shape)])}]",
            )
        if is_expression(result):
            return result
        number = plain_number(result)
        if number is not None:
            return number
        quoted = isinstance(result, str) and result.lstrip("-").isdecimal()
        raise self.error(
            node,
            f"a number or expression is needed here, not {type(result).__name__}",
            f"write {result} without quotes" if quoted else "pass a number, or compute with tiles and indices",
        )

    def condition(self, node: ast.expr) -> Any:
        """An expression, or True or False by Python's rules for anything that is known now (text, None, ...)."""
        result = self.raw(node)
        if isinstance(result, (Access, Buffer)) or is_expression(result):
            return self.as_value(node, result)
        return bool(result)

    def load(self, node: ast.AST, access: Access) -> Any:
        """The element that ``access`` names."""
        if access.has_slice:
            raise self.error(
                node,
                f"a slice of {access.buffer.name} cannot be used as one value",
                "slices belong in T.copy and T.gemm",
            )
        return access.buffer.var[self.element(node, access)]

    def element(self, node: ast.AST, access: Access) -> tuple[Any, ...]:
        """Indices of one element as expressions; those of a tile must be inside it where that is known now."""
        buffer = access.buffer
        for axis, (index, extent) in enumerate(zip(access.indices, buffer.shape, strict=True)):
            number = constant(index)
            if number is not None and isinstance(extent, int) and not 0 <= number < extent:
                raise self.error(
                    node,
                    f"index {number} is outside dimension {axis} of {buffer.name}, which has {extent} elements",
                    f"use 0 to {extent - 1}",
                    ShapeError,
                )
        return tuple(as_expression(index) for index in access.indices)

    def integer(self, node: ast.expr, what: str, minimum: int | None = None) -> int:
        """A compile-time integer, or an error naming ``what``."""
        number = constant(self.value(node))
        if isinstance(number, bool) or not isinstance(number, int):
            raise self.error(
                node,
                f"{what} must be an integer known at compile time",
                "pass it as an argument of the kernel's factory",
            )
        if minimum is not None and number < minimum:
            raise self.error(
                node,
                f"{what} is {number}, it must be at least {minimum}",
                f"write {minimum} or more, or look at what the factory was given",
            )
        return number

    def flag(self, node: ast.expr, what: str) -> bool:
        """A compile-time yes or no, or an error naming ``what``."""
        number = constant(self.value(node))
        if number is None:
            raise self.error(node, f"{what} must be True or False, known at compile time")
        return bool(number)

    def _eval_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def _eval_Name(self, node: ast.Name) -> Any:
        value = self.lookup(node)
        if isinstance(value, (Dynamic, Computed, Tensor, Output)):
            return self.meant(value)
        return Access(value.buffer, (0,)) if isinstance(value, Variable) else value

    def meant(self, value: Any) -> Any:
        """What stands in kernels for an object of the surroundings: a size for a runtime dimension, a tensor for its annotation."""
        if isinstance(value, (Dynamic, Computed)):
            return self.size(value)
        return self.tensors.get(id(value), value) if isinstance(value, (Tensor, Output)) else value

    def size(self, dimension: Dynamic | Computed | Any) -> Any:
        """The variable of a runtime dimension, one for each name, or the expression of what is computed of them."""
        if isinstance(dimension, Computed):
            return _COMPUTE[dimension.operator](self.size(dimension.left), self.size(dimension.right))
        if not isinstance(dimension, Dynamic):
            return dimension
        if dimension.name not in self.sizes:
            self.sizes[dimension.name] = tirx.Var(dimension.name, "int32")
        return self.sizes[dimension.name]

    def _eval_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.raw(element) for element in node.elts)

    def _eval_List(self, node: ast.List) -> Any:
        return tuple(self.raw(element) for element in node.elts)

    def _eval_Attribute(self, node: ast.Attribute) -> Any:
        owner = self.raw(node.value)
        if isinstance(owner, Buffer):
            if node.attr == "shape":
                return owner.shape
            if node.attr == "dtype":
                return DType(owner.dtype)
            raise self.error(node, f"a tile has no attribute {node.attr!r}", "tiles have .shape and .dtype")
        if node.attr == "dtype" and (isinstance(owner, Access) or is_expression(owner)):
            return DType(owner.buffer.dtype if isinstance(owner, Access) else dtype_of(owner))
        try:
            value = getattr(owner, node.attr)
            return self.meant(value)
        except Exception as error:  # whatever the author's own objects raise
            message, _, remedy = (str(error) or type(error).__name__).partition("; ")
            known = getattr(owner, "__name__", "") == "tilelang_min.language" and remedy
            raise self.error(node, message if known else str(error) or message, remedy if known else None) from error

    def _eval_Subscript(self, node: ast.Subscript) -> Any:
        owner = self.raw(node.value)
        if not isinstance(owner, Buffer):
            if isinstance(owner, Access):
                raise self.error(
                    node, "an element cannot be indexed again", "write all indices in one pair of brackets: A[i, j]"
                )
            key = self.raw(node.slice)
            try:
                value = owner[key]
                return self.meant(value)
            except Exception as error:  # whatever the author's own objects raise
                raise self.error(node, f"cannot index this value: {type(error).__name__}: {error}") from error
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(parts) != len(owner.shape):
            raise self.error(
                node,
                f"{owner.name} has {len(owner.shape)} dimension{'s' if len(owner.shape) != 1 else ''} "
                f"{owner.shape}, but {len(parts)} {'indices are' if len(parts) != 1 else 'index is'} given",
                f"write {owner.name}[{', '.join('ijklmn'[: len(owner.shape)])}]",
                ShapeError,
            )
        return Access(owner, tuple(self._index(part, extent) for part, extent in zip(parts, owner.shape, strict=True)))

    def _index(self, node: ast.expr, extent: int) -> Any:
        for part in (node.lower, node.upper) if isinstance(node, ast.Slice) else (node,):
            if (
                isinstance(part, ast.UnaryOp)
                and isinstance(part.op, ast.USub)
                and isinstance(part.operand, ast.Constant)
            ):
                raise self.error(
                    part,
                    "indices count from the start; negative ones do not count from the end as in Python",
                    f"write {extent} {self.source.segment(part).replace('-', '- ', 1)}",
                )
        if not isinstance(node, ast.Slice):
            value = self.value(node)
            if isinstance(value, float) or (is_expression(value) and not dtype_of(value).startswith(("int", "uint"))):
                raise self.error(node, "an index must be an integer", "use // instead of /")
            if is_expression(value) and not dtype_of(value).endswith("int32"):
                return convert(value, "int32")
            return value
        if node.step is not None:
            raise self.error(
                node.step, "slices have no step in the tile language", "copy a dense box and index it in T.Parallel"
            )
        start = 0 if node.lower is None else self._index(node.lower, extent)
        stop = extent if node.upper is None else self._index(node.upper, extent)
        return (start, stop)

    def _eval_JoinedStr(self, node: ast.JoinedStr) -> Any:
        raise self.error(node, "f-strings are not part of the tile language")

    # -- calls -----------------------------------------------------------------------------------------------------

    def known_value(self, node: ast.expr) -> Any:
        """Any value; an access to one element is read."""
        value = self.raw(node)
        return self.load(node, value) if isinstance(value, Access) and not value.has_slice else value

    def _eval_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
            owner = self.raw(node.func.value)
            if isinstance(owner, (Access, Buffer)) or is_expression(owner):
                if len(node.args) != 1 or node.keywords:
                    raise self.error(node, "astype takes one data type", "write x.astype('float32')")
                return convert(self.as_value(node.func.value, owner), self.dtype(node.args[0]))
        function = self.raw(node.func)
        if isinstance(function, Construct):
            if function.kind != "math":
                place = {
                    "alloc": "on the right of an assignment",
                    "variable": "on the right of an assignment",
                    "loop": "as the iterable of a for loop",
                    "layout": "inside T.annotate_layout({tile: ...})",
                }
                raise self.error(
                    node,
                    f"T.{function.name} cannot be used inside an expression",
                    f"use it {place.get(function.kind, 'as a statement of its own')}: {function.signature}",
                )
            return self._math(node, function)
        if isinstance(function, DType):
            return self._conversion(node, function)
        if not callable(function):
            raise self.error(node, "this value cannot be called")
        arguments = [self.raw(argument) for argument in node.args]
        keywords = {keyword.arg: self.raw(keyword.value) for keyword in node.keywords if keyword.arg}
        if len(keywords) < len(node.keywords):
            raise self.error(node, "** is not part of the tile language", "name the arguments")
        arguments = [self.load(node, item) if isinstance(item, Access) else item for item in arguments]
        source = computes(self, function, [*arguments, *keywords.values()])
        if source is not None:
            named = {k: self.load(node, v) if isinstance(v, Access) else v for k, v in keywords.items()}
            return inline_value(self, node, function, source, arguments, named)
        if function in (builtins.max, builtins.min) and any(is_expression(item) for item in arguments):
            name = "max" if function is builtins.max else "min"
            raise self.error(node, f"Python's {name} cannot compare expressions", f"use T.{name}")
        try:
            return self.meant(function(*arguments, **keywords))
        except TileLangError as error:
            if error.location is None and isinstance(error, LanguageError):
                raise self.error(node, error.message, error.remedy, type(error)) from None
            raise
        except Exception as error:
            raise self.error(
                node,
                f"calling {self.source.segment(node.func)} failed: {type(error).__name__}: {error}",
                f"its arguments here are {', '.join([*map(str, arguments), *(f'{k}={v}' for k, v in keywords.items())])}",
            ) from error

    def _conversion(self, node: ast.Call, dtype: DType) -> Any:
        """``T.float32(x)``: a number or an expression in that type."""
        if len(node.args) != 1 or node.keywords:
            raise self.error(node, f"T.{dtype}(...) converts one value", f"write T.{dtype}(x)")
        return convert(self.value(node.args[0]), self.dtype(node.func))

    def _math(self, node: ast.Call, function: Construct) -> Any:
        names = [name.strip() for name in function.signature.partition("(")[2].rstrip(")").split(",")]
        expected = len(names)
        arguments = list(node.args)
        for keyword in node.keywords:
            place = names.index(keyword.arg) if keyword.arg in names else -1
            if place != len(arguments):
                raise self.error(
                    node, f"T.{function.name} has no argument {keyword.arg!r} here", f"write {function.signature}"
                )
            arguments.append(keyword.value)
        if len(arguments) != expected:
            raise self.error(
                node,
                f"T.{function.name} takes {expected} argument{'s' if expected > 1 else ''}, {len(arguments)} given",
                f"write {function.signature}",
            )
        if function.name == "infinity":
            dtype = self.dtype(arguments[0])
            if not is_float(dtype) or DATA_TYPES[dtype].size == 1:
                raise self.error(node, f"{dtype} has no infinity in the language", "use a float of at least 16 bits")
            return tirx.FloatImm(dtype, float("inf"))
        if function.name in ("cast", "Cast"):
            operand, kind = arguments if function.name == "cast" else arguments[::-1]
            return convert(self.value(operand), self.dtype(kind))
        if function.name in BINARY:
            return self.binary(node, BINARY[function.name](), *arguments)
        values = [self.value(argument) for argument in arguments]
        if function.name == "if_then_else":
            return self._select(*values)
        if function.name == "bitwise_not":
            return self.inverted(node, values[0])
        if function.name == "clamp":
            return self._larger(self._larger(values[0], values[2], "min"), values[1], "max")
        if function.name in ("max", "min"):
            return self._larger(values[0], values[1], function.name)
        if function.name == "pow":
            return self._power(node, *values)
        operand = as_expression(values[0], None if is_expression(values[0]) else "float32")
        if function.name != "abs" and not is_float(dtype_of(operand)):
            raise self.error(
                node, f"T.{function.name} needs a floating-point value, not {dtype_of(operand)}", "use T.cast first"
            )
        return in_float32(_UNARY_MATH[function.name], operand)

    @staticmethod
    def _larger(left: Any, right: Any, which: str) -> Any:
        """The larger of two values (``max``), or the smaller (``min``)."""
        if not is_expression(left) and not is_expression(right):
            return max(left, right) if which == "max" else min(left, right)
        return (tirx.Max if which == "max" else tirx.Min)(*common_type(left, right))

    def dtype(self, node: ast.expr) -> str:
        """A data type name, or an error with the nearest valid word."""
        value = self.raw(node)
        found = normal_dtype(value)
        if found is None:
            if str(value) in NOT_HELD:
                raise self.error(node, f"no tile of {value} can be made in this version", NOT_HELD_REMEDY)
            near = difflib.get_close_matches(str(value), list(DTYPES), n=1)
            raise self.error(
                node,
                f"{value!r} is not a supported data type",
                f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(DTYPES)}",
            )
        return found


__all__ = ["Evaluator", "normal_dtype"]
