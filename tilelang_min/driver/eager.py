"""``@tilelang.jit`` over a function that is a kernel itself.

Called with tensors, it compiles for them, allocates outputs and launches.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MethodType
from typing import Any

from tilelang_min.driver.call_keys import Surroundings, frozen
from tilelang_min.driver.eager_lines import make
from tilelang_min.driver.eager_source import Body
from tilelang_min.driver.kernel import Kernel
from tilelang_min.errors import LanguageError, did_you_mean
from tilelang_min.language import Dynamic, Macro, PrimFunc
from tilelang_min.program.instrument import OPERATIONS
from tilelang_min.targets import Target

_MOST = 4096
"""Shapes of calls that a function remembers beside its kernels: one with runtime dimensions has many."""

_CHANGEABLE = (list, dict, set, bytearray)

_LASTING = (str, int, float, type(None))
"""Defaults whose keys are made once: an object may change between calls."""


def is_eager(function: Any) -> bool:
    """Whether a function names ``T.Kernel`` or ``T.const`` in its own body, or a macro that does the former.

    A factory does so in a function inside it, which it names by ``prim_func``.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    if "Kernel" in code.co_names or "prim_func" in code.co_names:
        return "Kernel" in code.co_names
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    values = [function.__globals__.get(name) for name in code.co_names]
    values += [cell.cell_contents for cell in cells.values() if _is_bound(cell)]
    return "const" in code.co_names or any(isinstance(value, Macro) and value.launches for value in values)


def _is_bound(cell: Any) -> bool:
    try:
        return bool(cell.cell_contents is not None)
    except ValueError:
        return False


class EagerFunction:
    """A function whose body is a kernel.

    Calling it with tensors launches the kernel compiled for their shapes and for the other arguments, and returns what
    ``T.empty`` made: one tensor or a tuple.  ``compile(...)`` takes the same arguments, or dimensions of ``T.const`` by keyword in
    place of tensors, and gives the :class:`Kernel`; ``prim_func(...)`` the kernel before compiling; ``for_target(name)`` and
    ``instrumented()`` the function for another target and with clock reads.
    """

    mode = "eager"

    def __init__(
        self,
        function: Callable[..., Any],
        compiler: Callable[..., Kernel],
        target: str | Target | None,
        options: dict[str, Any],
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._compiler = compiler
        self.target, self.options = target, options
        if options.get("out_idx") is not None:
            raise LanguageError(
                f"out_idx of {function.__name__}: its body is the kernel, which returns its outputs itself",
                remedy="leave out_idx out and make outputs with C = T.empty(shape, dtype)",
            )
        parameters = list(inspect.signature(function).parameters.values())
        for item in parameters:
            if isinstance(item.default, _CHANGEABLE):
                self._refuse_default(item)
        self._names = [item.name for item in parameters]
        self._places = {name: number for number, name in enumerate(self._names)}
        self._most_positional = sum(item.kind is not inspect.Parameter.KEYWORD_ONLY for item in parameters)
        self._defaults = [item.default for item in parameters]
        self._frozen = [frozen(item) if isinstance(item, _LASTING) else None for item in self._defaults]
        self._calls: dict[Any, tuple[Kernel, tuple[int, ...]]] = {}
        self._kernels: dict[Any, tuple[Kernel, tuple[int, ...]]] = {}
        self._sized: dict[Any, list[tuple[Kernel, tuple[int, ...]]]] = {}

    def __repr__(self) -> str:
        return f"<EagerFunction {self._function.__qualname__} for {self.target or 'auto'}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method: the instance is the first argument of a call, a constant like others."""
        return self if instance is None else MethodType(self, instance)

    def _refuse_default(self, parameter: inspect.Parameter) -> None:
        body = self._body
        arguments = body.source.function.args
        given = [*arguments.posonlyargs, *arguments.args]
        places = dict(zip([item.arg for item in reversed(given)], reversed(arguments.defaults), strict=False))
        places |= {a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None}
        kind = type(parameter.default).__name__
        raise body.error(
            places[parameter.name],
            f"the default of {parameter.name!r} is a {kind}, which can change between calls",
            "write a tuple" if kind in ("list", "set") else "write a value that cannot change",
        )

    @functools.cached_property
    def _body(self) -> Body:
        return Body(self._function)

    @functools.cached_property
    def _surroundings(self) -> Surroundings:
        return Surroundings(self._function)

    @functools.cached_property
    def _tensors(self) -> tuple[int, ...]:
        return tuple(self._places[name] for name in self._body.tensors)

    @functools.cached_property
    def _others(self) -> tuple[int, ...]:
        return tuple(number for number in range(len(self._names)) if number not in self._tensors)

    # -- calls -------------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Launch on these tensors; the first call for certain shapes and other arguments compiles."""
        values, constants = self._values(args, named)
        key = self._key(values, constants)
        found = self._calls.get(key)
        if found is None:
            self._check_given(values)
            found = self._prepared(key, values, constants)
        kernel, places = found
        return kernel(*[values[place] for place in places])

    def compile(self, *args: Any, **named: Any) -> Kernel:
        """The kernel for these arguments, not launched.  Tensors may be missing where dimensions of T.const are given by name."""
        values, constants = self._values(args, named)
        return self._prepared(self._key(values, constants), values, constants)[0]

    def prim_func(self, *args: Any, **named: Any) -> PrimFunc:
        """The kernel for these arguments before it is compiled; they are those of :meth:`compile`."""
        values, constants = self._values(args, named)
        return self._made(values, constants)

    get_tir = prim_func
    """TileLang's name of it."""

    def par_compile(
        self,
        configs: Iterable[Mapping[str, Any] | tuple[Any, ...]],
        num_workers: int | None = None,
        ignore_error: bool = False,
    ) -> list[Kernel | None]:
        """Kernels for several sets of arguments, by name or by position, as in TileLang; on threads, which share one interpreter.

        With ``ignore_error`` None stands where one cannot be compiled.
        """
        return par_compile(self.compile, configs, num_workers, ignore_error)

    def get_kernel_source(self, *args: Any, **named: Any) -> str:
        """The generated source for these arguments, as in TileLang."""
        return self.compile(*args, **named).get_kernel_source()

    def for_target(self, name: str | Target | None) -> EagerFunction:
        """The same function for another target."""
        return EagerFunction(self._function, self._compiler, name, self.options)

    def instrumented(self, kind: str = OPERATIONS) -> EagerFunction:
        """The same function built with clock reads."""
        return EagerFunction(self._function, self._compiler, self.target, {**self.options, "instrument": kind})

    # -- arguments ---------------------------------------------------------------------------------------------------

    def _values(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Values of all parameters in order, defaults and what is missing (``Parameter.empty``) included; other keywords."""
        if len(args) > self._most_positional:
            raise LanguageError(
                f"{self._function.__name__} takes {self._most_positional} arguments by position, {len(args)} given",
                remedy=f"its parameters are {', '.join(self._names)}",
            )
        values = [*args, *self._defaults[len(args) :]]
        constants = {}
        for name, value in named.items():
            place = self._places.get(name)
            if place is None:
                constants[name] = value
            elif place < len(args):
                raise LanguageError(
                    f"{self._function.__name__} is given {name!r} twice", remedy="pass it by position or by name"
                )
            else:
                values[place] = value
        return values, constants

    def _key(self, values: Sequence[Any], constants: Mapping[str, Any]) -> Any:
        """What calls of one kernel have in common: what stands around the function, shapes of tensors, and all other arguments."""
        parts: list[Any] = [self._surroundings.key()]
        defaults, known = self._defaults, self._frozen
        for place in self._others:
            value = values[place]
            parts.append((known[place] if value is defaults[place] else None) or frozen(value))
        for place in self._tensors:
            shape = getattr(values[place], "shape", frozen)
            parts.append(
                frozen(values[place]) if shape is frozen else shape if isinstance(shape, tuple) else frozen(shape)
            )
        if constants:
            parts.append(frozen(constants))
        return tuple(parts)

    def _check_given(self, values: Sequence[Any]) -> None:
        """Raise LanguageError where an argument of a call is missing or is no tensor."""
        name = self._function.__name__
        missing = [self._names[place] for place, value in enumerate(values) if value is inspect.Parameter.empty]
        if missing:
            raise LanguageError(
                f"{name} needs {', '.join(missing)}",
                remedy=f"call it as {name}({', '.join(self._names)}); {name}.compile(...) does without tensors",
            )

    def _made(self, values: Sequence[Any], constants: Mapping[str, Any]) -> PrimFunc:
        """The kernel for these arguments."""
        body, name = self._body, self._function.__name__
        plain: dict[str, Any] = {}
        tensors: dict[str, Any] = {}
        for number, value in enumerate(values):
            parameter = self._names[number]
            is_tensor = hasattr(value, "shape") and (hasattr(value, "dtype") or hasattr(value, "__dlpack__"))
            if number in self._tensors:
                if is_tensor:
                    tensors[parameter] = value
                elif value is None:
                    plain[parameter] = value
                elif value is not inspect.Parameter.empty:
                    raise LanguageError(
                        f"{parameter!r} of {name} is {type(value).__name__}, and the kernel annotates it as a tensor",
                        location=body.source.location(body.argument(parameter)),
                        remedy="pass a NumPy array or a torch tensor",
                    )
            elif value is inspect.Parameter.empty:
                raise LanguageError(
                    f"{name} needs {parameter}", remedy=f"{parameter} is known when it is compiled: {parameter}=..."
                )
            elif is_tensor and value.shape != ():
                raise body.missing_annotation(parameter)
            else:
                plain[parameter] = value
        for key, value in constants.items():
            if isinstance(value, Dynamic):
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
                near = did_you_mean(key, self._names)
                if near.startswith("did you mean"):
                    raise LanguageError(f"{name} has no parameter {key!r}", remedy=near)
                raise LanguageError(
                    f"{key}={value!r} of {name} is no dimension",
                    remedy="pass a positive integer by that name, or T.dynamic(...) for one of the launch",
                )
        return make(body, name, plain, tensors, constants)

    def _prepared(
        self, key: Any, values: Sequence[Any], constants: Mapping[str, Any]
    ) -> tuple[Kernel, tuple[int, ...]]:
        """The kernel for these arguments, and which of them it takes; kept for calls that follow."""
        around = key[0]
        others = (key[: 1 + len(self._others)], frozen(constants))
        found = next((item for item in self._sized.get(others, ()) if _fits(*item, values)), None)
        if found is None:
            found = self._compiled(self._made(values, constants), around)
            if found[0].sizes and found not in self._sized.get(others, ()):
                self._sized.setdefault(others, []).append(found)
        if len(self._calls) >= _MOST:
            self._calls.clear()
        if not any(value is inspect.Parameter.empty for value in values):  # a call that lacks tensors is an error
            self._calls[key] = found
        return found

    def _compiled(self, made: PrimFunc, around: Any) -> tuple[Kernel, tuple[int, ...]]:
        """The kernel, one object however its dimensions were given, and the arguments that it takes."""
        assert made.made is not None
        key = (around, frozen(made.made.values), repr(made.made.parameters))
        if key not in self._kernels:
            kernel = self._compiler(made, self.target, **self.options)
            self._kernels[key] = kernel, tuple(self._places[name] for name, _ in made.made.tensors)
        return self._kernels[key]


def _fits(kernel: Kernel, places: tuple[int, ...], values: Sequence[Any]) -> bool:
    """Whether a kernel with runtime dimensions takes tensors of these shapes."""
    for parameter, place in zip(kernel.parameters, places, strict=False):
        shape = getattr(values[place], "shape", None)
        if not isinstance(shape, tuple) or len(shape) != len(parameter.shape):
            return False
        if any(
            isinstance(extent, int) and extent != given for extent, given in zip(parameter.shape, shape, strict=True)
        ):
            return False
    return True


def par_compile(
    compiled: Callable[..., Kernel],
    configs: Iterable[Mapping[str, Any] | tuple[Any, ...]],
    num_workers: int | None = None,
    ignore_error: bool = False,
) -> list[Kernel | None]:
    """See :meth:`EagerFunction.par_compile`."""

    def one(config: Mapping[str, Any] | tuple[Any, ...]) -> Kernel | None:
        try:
            return compiled(**config) if isinstance(config, Mapping) else compiled(*config)
        except Exception:
            if not ignore_error:
                raise
            return None

    with ThreadPoolExecutor(num_workers, "tilelang-compile") as threads:
        return list(threads.map(one, configs))


__all__ = ["EagerFunction", "is_eager", "par_compile"]
