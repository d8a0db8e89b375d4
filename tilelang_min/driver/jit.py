"""``compile`` and ``jit``: from a prim_func, or a factory of them, to a :class:`Kernel`."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

from tilelang_min.driver.caching import cached
from tilelang_min.driver.eager import EagerFunction, is_eager, par_compile
from tilelang_min.driver.foreign_options import FOREIGN, check_foreign
from tilelang_min.driver.kernel import Kernel
from tilelang_min.driver.keys import kernel_key
from tilelang_min.driver.target_names import choose_target
from tilelang_min.errors import LanguageError, did_you_mean
from tilelang_min.language import PrimFunc
from tilelang_min.language.source_lines import remember_source
from tilelang_min.program.instrument import KINDS, OPERATIONS
from tilelang_min.runtime.bundle import Bundle
from tilelang_min.targets import Target

_Factory = TypeVar("_Factory", bound=Callable[..., Any])


def compile(
    prim_func: PrimFunc,
    target: str | Target | int | list[int] | tuple[int, ...] | None = None,
    *,
    out_idx: int | list[int] | tuple[int, ...] | None = None,
    instrument: str | None = None,
    arch_params: dict[str, Any] | None = None,
    cache: bool = True,
    options: dict[str, Any] | None = None,
    **foreign: Any,
) -> Kernel:
    """Compile a kernel, or take it from the disk cache.

    ``target``: see :mod:`tilelang_min.driver.target_names`.  ``out_idx``: numbers of the parameters that a call allocates
    and returns.  ``instrument="operations"`` makes a build that reads the clock around tile operations: after a launch
    ``kernel.cycles()`` says what each took (see ``docs/cycles.md``).  ``options``: ``hopper`` and
    ``double_buffer`` (``docs/hopper.md``, ``docs/mma-sync.md``), all others go to the code generator.  ``foreign``: TileLang's
    options that say how its compiler works, see :mod:`tilelang_min.driver.foreign_options`.

    Raises TileLangError subclasses that name place and remedy.
    """
    for name in check_foreign(foreign):
        raise LanguageError(f"tilelang.compile has no option {name!r}", remedy=did_you_mean(name, _options()))
    if isinstance(target, (int, list, tuple)):  # TileLang's second argument is out_idx
        target, out_idx = None, target if out_idx is None else out_idx
    if not isinstance(prim_func, PrimFunc):
        raise LanguageError(
            f"tilelang.compile takes a @T.prim_func, not {type(prim_func).__name__}",
            remedy="decorate the kernel with @T.prim_func",
        )
    if arch_params is not None:
        raise LanguageError("compile option arch_params is not supported by this version", remedy="leave it out")
    if instrument is not None and instrument not in KINDS:
        raise LanguageError(f"there is no instrument {instrument!r}", remedy=did_you_mean(str(instrument), KINDS))
    chosen = choose_target(target)
    decided = dict(options or {})
    if instrument is not None:
        decided["instrument"] = instrument
    key = kernel_key(prim_func, f"{chosen.name}/{chosen.arch}", decided)
    outputs = _output_indices(prim_func, out_idx)
    if cache:
        bundle = cached(key, lambda finished: _build(prim_func, chosen, options, key, finished, instrument))
    else:
        bundle = _build(prim_func, chosen, options, key, lambda bundle: None, instrument)
    kernel = _checked(Kernel(bundle, outputs), returned=prim_func.made is not None)
    kernel.rebuild = lambda kind: compile(
        prim_func, chosen, out_idx=out_idx, instrument=kind, cache=cache, options=options
    )
    return kernel


def _options() -> list[str]:
    """The options of ``compile`` and ``jit``."""
    own = [name for name in inspect.signature(compile).parameters if name not in ("prim_func", "target", "foreign")]
    return [*own, *FOREIGN]


def _build(
    prim_func: PrimFunc,
    target: Target,
    options: dict[str, Any] | None,
    key: str,
    finished: Callable[[Bundle], None],
    instrument: str | None,
) -> Bundle:
    from tilelang_min.driver.build import build  # imports TVM

    return build(prim_func, target, options or {}, key, finished, instrument)


def _checked(kernel: Kernel, *, returned: bool) -> Kernel:
    """The kernel; LanguageError when a call would allocate a parameter that the kernel reads."""
    for number in kernel.out_idx:
        parameter = kernel.parameters[number]
        if parameter.access != "out":
            if returned:
                raise LanguageError(
                    f"{parameter.name} of {kernel.name} is made by T.empty, and the kernel reads it: it holds nothing before",
                    remedy=f"take {parameter.name} as a parameter, and pass a tensor",
                )
            how = "read as well as written" if parameter.access == "inout" else "only read"
            raise LanguageError(
                f"parameter {parameter.name} of {kernel.name} is {how}: a call cannot allocate it",
                remedy="leave it out of out_idx and pass it",
            )
    return kernel


def _output_indices(prim_func: PrimFunc, out_idx: int | list[int] | tuple[int, ...] | None) -> tuple[int, ...]:
    if prim_func.made is not None:
        inputs = len(prim_func.made.tensors)
        return tuple(range(inputs, inputs + len(prim_func.made.outputs)))
    if out_idx is None:
        return ()
    count = prim_func.function.__code__.co_argcount
    wanted = (out_idx,) if isinstance(out_idx, int) else tuple(out_idx)
    for number in wanted:
        if not -count <= number < count:
            raise LanguageError(
                f"out_idx {number} does not exist: {prim_func.name} has {count} parameters",
                remedy=f"give numbers from 0 to {count - 1}, or from the end -1 to -{count}",
            )
    return tuple(sorted(number % count for number in wanted))


@overload
def jit(target: _Factory) -> Callable[..., Kernel]: ...
@overload
def jit(target: str | Target | None = None, **options: Any) -> Callable[[_Factory], Callable[..., Kernel]]: ...
def jit(target: Any = None, **options: Any) -> Any:
    """Decorator for factories: functions whose arguments are compile-time constants and which return a ``@T.prim_func``.

    Calling the factory gives a compiled :class:`Kernel`, and so does ``factory.compile(...)``.  ``factory.for_target(name)(...)``
    compiles for another target, ``factory.instrumented()(...)`` builds with clock reads; ``factory.prim_func(...)`` gives the
    uncompiled kernel.

    Over a function that is a kernel itself (its own body has ``with T.Kernel(...)``) it gives an :class:`EagerFunction`, which is
    called with tensors, and compiles and launches.
    """
    known = _options()
    for name in options:
        if name not in known:
            raise LanguageError(f"tilelang.jit has no option {name!r}", remedy=did_you_mean(name, known))
    options = check_foreign(options)
    if callable(target) and not isinstance(target, (str, Target)):
        remember_source(target)
        return _wrap(target, None, options)

    def wrap(factory: Callable[..., Any]) -> Callable[..., Any]:
        remember_source(factory)
        return _wrap(factory, target, options)

    return wrap


def _wrap(factory: Callable[..., Any], target: str | Target | None, options: dict[str, Any]) -> Callable[..., Any]:
    if hasattr(factory, "under_jit"):  # @tilelang.autotune stands below
        made: Callable[..., Any] = factory.under_jit(lambda plain: _wrap(plain, target, options))
        return made
    if is_eager(factory):
        return EagerFunction(factory, compile, target, options)

    @functools.wraps(factory)
    def compiled(*args: Any, **kwargs: Any) -> Kernel:
        return compile(prim_func(*args, **kwargs), target, **options)

    def prim_func(*args: Any, **kwargs: Any) -> PrimFunc:
        made = factory(*args, **kwargs)
        if not isinstance(made, PrimFunc):
            raise LanguageError(
                f"factory {factory.__name__} returned {type(made).__name__} instead of a @T.prim_func",
                remedy="end the factory with `return main`",
            )
        # Factories call their kernel `main`; profilers should show whose it is.
        return dataclasses.replace(made, label=factory.__name__) if made.name == "main" else made

    def for_target(name: str | Target | None) -> Callable[..., Kernel]:
        return _wrap(factory, name, options)

    def instrumented(kind: str = OPERATIONS) -> Callable[..., Kernel]:
        return _wrap(factory, target, {**options, "instrument": kind})

    def get_kernel_source(*args: Any, **kwargs: Any) -> str:
        return compiled(*args, **kwargs).get_kernel_source()

    compiled.get_tir = prim_func  # type: ignore[attr-defined]
    compiled.par_compile = functools.partial(par_compile, compiled)  # type: ignore[attr-defined]
    compiled.mode = "lazy"  # type: ignore[attr-defined]
    compiled.compile = compiled  # type: ignore[attr-defined]
    compiled.get_kernel_source = get_kernel_source  # type: ignore[attr-defined]
    compiled.instrumented = instrumented  # type: ignore[attr-defined]
    compiled.prim_func = prim_func  # type: ignore[attr-defined]
    compiled.for_target = for_target  # type: ignore[attr-defined]
    named = None if isinstance(target, (int, list, tuple)) else target
    compiled.target, compiled.options = named, options  # type: ignore[attr-defined]
    return compiled
