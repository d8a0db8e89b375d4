"""``tilelang.autotune``: a factory of kernels that finds the best configuration of each call by itself."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilelang_min.driver.call_keys import Surroundings, frozen
from tilelang_min.driver.devices import device_for
from tilelang_min.driver.kernel import Kernel
from tilelang_min.driver.keys import describe, kernel_key
from tilelang_min.driver.target_names import choose_target
from tilelang_min.errors import LanguageError, TileLangError, did_you_mean
from tilelang_min.targets import Target
from tilelang_min.tune.given import inputs_in_force
from tilelang_min.tune.given import supply_type as check_supply_type
from tilelang_min.tune.records import Tuned
from tilelang_min.tune.settings import Settings
from tilelang_min.tune.space import Configs, check_complete, expand, kept, named, without


def autotune(
    func: Callable[..., Any] | None = None,
    *,
    configs: Configs,
    warmup: int = 25,
    rep: int = 100,
    timeout: float = 100.0,
    supply_type: Any = "Auto",
    ref_prog: Callable[..., Any] | None = None,
    supply_prog: Callable[..., Any] | None = None,
    rtol: float = 1e-2,
    atol: float = 1e-2,
    max_mismatched_ratio: float = 0.01,
    skip_check: bool = False,
    manual_check_prog: Callable[..., Any] | None = None,
    cache_input_tensors: bool = True,
    do_not_specialize: Sequence[str] | None = None,
    early_stop: bool = True,
    early_stop_factor: float = 2.0,
    prune: bool = True,
    lower_stages: bool = True,
    workers: int | None = None,
    cache: bool = True,
    verbose: bool = False,
) -> Any:
    """Decorator for a ``@tilelang.jit`` factory, above it or below: a call compiles all ``configs`` and gives the best kernel.

    Over a function that is a kernel itself a call with tensors gives what the best kernel computes, ``compile(...)`` that
    kernel; it is searched on the tensors of the first call.

    ``configs``: a list of dictionaries, a dictionary of lists (all combinations), or a function of the factory's arguments that
    gives either.  Parameters that a call sets itself are not searched; a call that sets all of them compiles that one.

    ``warmup`` and ``rep``: launches before and in the measurement of each configuration that stays to the end.  ``timeout``:
    seconds for compiling one, and for running one.  ``ref_prog``: called with the inputs, returns what the kernel should write;
    without it the configurations are compared with one another (``rtol``, ``atol``, and ``max_mismatched_ratio`` of elements
    that may be off); ``manual_check_prog(outputs, wanted)`` compares instead and raises; ``skip_check`` compares nothing.
    ``supply_prog(parameters)`` returns inputs, :class:`~tilelang_min.tune.inputs.set_autotune_inputs` gives them for a ``with``
    block, ``supply_type`` says how random ones are filled; they are made once and are the same for every configuration (so
    ``cache_input_tensors`` changes nothing). ``do_not_specialize``: arguments whose values do not start a new search.

    ``early_stop``: give up whoever falls behind (at once where it is ``early_stop_factor`` times as slow).  ``prune``: leave
    out what compiling and the prediction speak against.  ``lower_stages``: where a block needs too much shared memory, take
    fewer stages instead of failing.  ``workers``: processes that compile (default: one a processor).  ``cache=False``: neither
    use nor keep results on disk. ``verbose``: say on standard error what is going on.

    The kernel has ``config``, ``latency`` and ``ref_latency`` (milliseconds), and ``tuned``, the record of all configurations
    (:class:`~tilelang_min.tune.records.Tuned`).  Without the device the best prediction is taken, and ``tuned.measured`` is
    False.

    Raises TuningError where no configuration works, with the reason of each.
    """
    if func is not None:
        raise LanguageError(
            "tilelang.autotune has no configurations",
            remedy="write @tilelang.autotune(configs=[...]) above @tilelang.jit",
        )
    settings = Settings(
        warmup,
        rep,
        timeout,
        supply_type,
        supply_prog,
        ref_prog,
        rtol,
        atol,
        max_mismatched_ratio,
        skip_check,
        manual_check_prog,
        cache_input_tensors,
        early_stop,
        early_stop_factor,
        prune,
        lower_stages,
        workers,
        verbose,
    ).checked()
    check_supply_type(supply_type)
    loose = tuple(do_not_specialize or ())

    def decorate(factory: Callable[..., Any]) -> Any:
        if not callable(factory) or isinstance(factory, type):
            raise LanguageError(
                f"tilelang.autotune decorates a factory of kernels, not {type(factory).__name__}",
                remedy="put it above @tilelang.jit",
            )
        if hasattr(factory, "for_target"):
            return Autotuned(factory, configs, settings, loose, cache)
        return _BelowJit(factory, configs, settings, loose, cache)

    return decorate


class _BelowJit:
    """What ``@tilelang.jit`` finds when ``@tilelang.autotune`` stands below it: it takes the factory, and hands back what
    tunes.
    """

    def __init__(
        self, factory: Callable[..., Any], configs: Configs, settings: Settings, loose: tuple[str, ...], cache: bool
    ) -> None:
        functools.update_wrapper(self, factory, updated=())
        self.factory = factory
        self.rest = (configs, settings, loose, cache)

    def under_jit(self, wrap: Callable[[Callable[..., Any]], Callable[..., Kernel]]) -> Autotuned:
        """Called by ``tilelang.jit`` with what makes a compiling factory of a plain one."""
        return Autotuned(wrap(self.factory), *self.rest)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise LanguageError(
            f"{getattr(self.factory, '__name__', 'this factory')} is tuned but not compiled",
            remedy="write @tilelang.jit(target=...) too, below @tilelang.autotune(...)",
        )


class Autotuned:
    """A factory whose call gives the best kernel; see :func:`autotune`."""

    def __init__(
        self, jitted: Any, configs: Configs, settings: Settings, loose: tuple[str, ...] = (), cache: bool = True
    ) -> None:
        functools.update_wrapper(self, jitted, updated=())  # not its for_target, which does not tune
        self.jitted = jitted
        self.configs = kept(configs)
        self.settings = settings
        self.loose = loose
        self.cache = cache
        self.mode: str = jitted.mode
        self.signature = inspect.signature(jitted)
        for name in loose:
            if name not in self.signature.parameters:
                raise LanguageError(
                    f"do_not_specialize names {name!r}, which is no parameter of the factory",
                    remedy=did_you_mean(name, self.signature.parameters),
                )
        self._found: dict[Any, Kernel] = {}
        self._configs: dict[str, dict[str, Any]] = {}
        self._lock = threading.RLock()

    def for_target(self, name: str | Target | None) -> Autotuned:
        """The same for another target."""
        return Autotuned(self.jitted.for_target(name), self.configs, self.settings, self.loose, self.cache)

    @functools.cached_property
    def _surroundings(self) -> Surroundings:
        return Surroundings(inspect.unwrap(self.jitted))

    def prim_func(self, *args: Any, **kwargs: Any) -> Any:
        """The uncompiled kernel of one configuration, which the call gives."""
        return self.jitted.prim_func(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The best kernel for these arguments; of a function that is a kernel itself, what that computes from these tensors."""
        kernel = self.compile(*args, **kwargs)
        if self.mode == "eager":
            return self.jitted(*args, **kwargs, **(kernel.config or {}))
        return kernel

    def compile(self, *args: Any, **kwargs: Any) -> Kernel:
        """The best kernel for these arguments: from a search, or from this process's or the disk's memory of one."""
        memo = self._surroundings.key(), _memo(args, kwargs)
        with self._lock:
            if memo not in self._found:
                self._found[memo] = self._best(args, kwargs)
            return self._found[memo]

    def _best(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Kernel:
        known = {name: value for name, value in kwargs.items() if name in self.signature.parameters}
        constants = {name: value for name, value in kwargs.items() if name not in known}
        if constants and self.mode != "eager":
            known, constants = dict(kwargs), {}
        fixed = named(self.signature, args, known) | constants  # dimensions of T.const by their names
        configs = without(expand(self.configs, self.signature, args, known), fixed)
        if self.mode != "eager":
            check_complete(self.signature, fixed, configs)
        if not configs:
            return _own(self.jitted.compile(*args, **kwargs))
        loose = describe({name: _identity(value) for name, value in fixed.items() if name not in self.loose})
        if self.loose and loose in self._configs:
            config = self._configs[loose]
            kernel = _own(self.jitted.compile(*args, **kwargs, **config))
            kernel.config = dict(config)
            return kernel
        tuned, kernel = self._search(configs, args, kwargs, fixed)
        self._configs[loose] = tuned.config
        kernel.config, kernel.tuned = dict(tuned.config), tuned
        kernel.latency, kernel.ref_latency = tuned.latency, tuned.ref_latency
        return kernel

    def _search(
        self, configs: list[dict[str, Any]], args: tuple[Any, ...], kwargs: Mapping[str, Any], fixed: dict[str, Any]
    ) -> tuple[Tuned, Kernel]:
        from tilelang_min.tune.search import search
        from tilelang_min.tune.store import fetch, key_of, store

        target = choose_target(self.jitted.target)
        device = device_for(target)
        given = inputs_in_force()
        if given is None and self.mode == "eager" and self.settings.supply_prog is None:
            order = [name for name in self.signature.parameters if name in fixed]
            given = tuple(fixed[name] for name in order if _is_tensor(fixed[name])) or None

        def make(config: Mapping[str, Any]) -> Kernel:
            kernel: Kernel = self.jitted.compile(*args, **kwargs, **config)
            return kernel

        key = None
        if self.cache:
            keys = self._keys(target, args, kwargs, configs)
            key = None if keys is None else key_of(keys, device, self._described(given))
            tuned = None if key is None else fetch(key)
            if tuned is not None and (tuned.best.asked or tuned.config) in configs:
                return tuned, _own(make(tuned.config))
        tuned, kernel = search(configs, make, target, device, self.settings, given)
        if key is not None:
            store(key, tuned)
        best = tuned.config
        kernel.rebuild = lambda kind: self.jitted.instrumented(kind).compile(*args, **kwargs, **best)
        return tuned, kernel

    def _keys(
        self, target: Target, args: tuple[Any, ...], kwargs: Mapping[str, Any], configs: list[dict[str, Any]]
    ) -> list[str] | None:
        """The keys of all configurations.  Made in a process that may die, as a factory of the author's may; None where it does."""
        from tilelang_min.tune.compiling import Send, run_all

        def job(send: Send) -> None:
            send("keys", [self._key(target, args, kwargs, config) for config in configs])

        (finished,) = run_all([job], timeout=self.settings.timeout)
        found: list[str] | None = finished.sent.get("keys")
        return found

    def _key(self, target: Target, args: tuple[Any, ...], kwargs: Mapping[str, Any], config: Mapping[str, Any]) -> str:
        """The content hash of one configuration's kernel; of one that cannot be made the reason."""
        options = {name: value for name, value in self.jitted.options.items() if name != "cache"}
        try:
            function = self.jitted.prim_func(*args, **kwargs, **config)
            return f"{describe(dict(config))} {kernel_key(function, f'{target.name}/{target.arch}', options)}"
        except TileLangError as error:
            return f"{describe(dict(config))} {error}"
        except Exception as error:
            return f"{describe(dict(config))} {type(error).__name__} {error}"

    def _described(self, given: tuple[Any, ...] | None) -> list[Any]:
        settings = self.settings
        functions = [settings.ref_prog, settings.supply_prog, settings.manual_check_prog]
        filled = check_supply_type(settings.supply_type).name
        return [settings.decisive(), filled, describe(functions), _identities(given)]


def _own(kernel: Kernel) -> Kernel:
    """The same kernel as an object that nobody else has: what a search found is written on it."""
    made = Kernel(kernel.bundle, kernel.out_idx)
    made.rebuild = kernel.rebuild
    return made


def _is_tensor(value: Any) -> bool:
    """Whether a value has elements; NumPy's own numbers have a shape too, and are numbers."""
    return hasattr(value, "dtype") and getattr(value, "shape", ()) != ()


def _identity(value: Any) -> Any:
    """A value, of a tensor its type and shape: what it holds does not decide which kernel is the best."""
    return (str(value.dtype), *map(int, value.shape)) if _is_tensor(value) else value


def _identities(tensors: Sequence[Any] | None) -> list[Any] | None:
    return None if tensors is None else [repr(_identity(each)) for each in tensors]


def _memo(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """What a call is remembered by."""
    given = inputs_in_force()
    return (
        tuple(map(_told, args)),
        tuple((name, _told(value)) for name, value in sorted(kwargs.items())) if kwargs else (),
        None if given is None else tuple(map(_told, given)),
    )


def _told(value: Any) -> Any:
    """The same for arguments that have the same best kernel; quick, since every call asks for it."""
    return (Autotuned, value.dtype, *value.shape) if _is_tensor(value) else frozen(value)
