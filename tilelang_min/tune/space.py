"""From what an author gives as ``configs`` to a list of configurations, checked against the factory's parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from tilelang_min.driver.foreign_options import check_foreign
from tilelang_min.errors import LanguageError, did_you_mean

PASSES = "pass_configs"
"""A key of configurations for TileLang that is no parameter of the factory."""

Config = dict[str, Any]
"""Values by the names of the factory's parameters."""

Configs = Iterable[Mapping[str, Any]] | Mapping[str, Any] | Callable[..., Any]
"""A list of configurations, a dictionary of lists (every combination), or a function that gives either."""


def kept(configs: Configs) -> Configs:
    """The same, of which nothing is used up by reading: what an iterator gives once becomes a list."""
    if isinstance(configs, Mapping):
        return {name: list(values) if isinstance(values, Iterator) else values for name, values in configs.items()}
    return list(configs) if isinstance(configs, Iterator) else configs


def expand(
    configs: Configs, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Config]:
    """The configurations of one call, in the order given, each once.

    A function gets the factory's arguments by name; where it names others, the arguments of the call as they are.  Raises
    LanguageError for names that the factory does not have, and where nothing is left.
    """
    given = _called(configs, signature, args, kwargs) if callable(configs) else configs
    if isinstance(given, Mapping):
        given = _product(given)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise LanguageError(
            f"configs= is {type(given).__name__}, which holds no configurations",
            remedy='give a list of dictionaries, a dictionary of lists, or a function that returns one: {"block_M": [64, 128]}',
        )
    found: list[Config] = []
    for number, item in enumerate(given):
        if not isinstance(item, Mapping):
            raise LanguageError(
                f"configuration {number} is {type(item).__name__} instead of a dictionary",
                remedy='give each as {"block_M": 128, ...}',
            )
        config = dict(item)
        if PASSES in config and PASSES not in signature.parameters:  # of TileLang's passes: they change nothing here
            check_foreign({PASSES: config.pop(PASSES)})
        _check_names(config, signature)
        if config not in found:
            found.append(config)
    if not found:
        raise LanguageError(
            "there are no configurations to choose from",
            remedy="give at least one; a function of the arguments must not filter all of them out",
        )
    return found


def without(configs: list[Config], fixed: Mapping[str, Any]) -> list[Config]:
    """The configurations left where the call itself says what some parameters are, each once; empty where it says all."""
    left: list[Config] = []
    for config in configs:
        rest = {name: value for name, value in config.items() if name not in fixed}
        if rest and rest not in left:
            left.append(rest)
    return left


def check_complete(signature: inspect.Signature, fixed: Mapping[str, Any], configs: list[Config]) -> None:
    """Raise LanguageError for a parameter that has no default and is in neither the call nor a configuration."""
    for config in configs or [{}]:
        missing = [
            name
            for name, each in signature.parameters.items()
            if each.default is each.empty
            and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
            and name not in fixed
            and name not in config
        ]
        if missing:
            raise LanguageError(
                f"the factory needs {', '.join(missing)}, which {'are' if len(missing) > 1 else 'is'} in neither the call nor "
                + (f"configuration {config}" if config else "a configuration"),
                remedy=f"its parameters are {', '.join(signature.parameters)}",
            )


def named(signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, defaults left out.  LanguageError where they do not fit the factory."""
    try:
        bound = signature.bind_partial(*args, **kwargs)
    except TypeError as error:
        names = ", ".join(signature.parameters)
        raise LanguageError(f"the factory cannot be called so: {error}", remedy=f"its parameters are {names}") from None
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            found.update(value)
        elif kind is not inspect.Parameter.VAR_POSITIONAL:
            found[name] = value
    return found


def _called(
    function: Callable[..., Any], signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    own = inspect.signature(function)
    wanted = [
        each
        for each in own.parameters.values()
        if each.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    ]
    known = {parameter.name: parameter.default for parameter in signature.parameters.values()}
    known = {name: value for name, value in known.items() if value is not inspect.Parameter.empty}
    known |= named(signature, args, kwargs)
    lacking = [each.name for each in wanted if each.name not in known and each.default is each.empty]
    if not lacking and len(wanted) == len(own.parameters):
        positional = [known[each.name] for each in wanted if each.kind is each.POSITIONAL_ONLY and each.name in known]
        return function(
            *positional,
            **{
                each.name: known[each.name]
                for each in wanted
                if each.kind is not each.POSITIONAL_ONLY and each.name in known
            },
        )
    try:
        own.bind(*args, **kwargs)
    except TypeError:
        asked = ", ".join(lacking) or "other arguments"
        raise LanguageError(
            f"configs={getattr(function, '__name__', 'function')} asks for {asked}, which the call does not say",
            remedy=did_you_mean(lacking[0] if lacking else "", known),
        ) from None
    return function(*args, **kwargs)


def _product(lists: Mapping[str, Any]) -> list[Config]:
    """Every combination of the values in a dictionary of lists, the last name changing quickest."""
    columns = []
    for name, values in lists.items():
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            values = [values]
        columns.append([(name, value) for value in values])
    return [dict(combination) for combination in product(*columns)] if columns else []


def _check_names(config: Mapping[str, Any], signature: inspect.Signature) -> None:
    parameters = signature.parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return
    for name in config:
        if name not in parameters:
            raise LanguageError(
                f"a configuration sets {name!r}, which is no parameter of the factory",
                remedy=did_you_mean(str(name), parameters),
            )
