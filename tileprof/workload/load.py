"""A workload file -> :class:`Workload`, or one error that holds every problem with its place."""

from __future__ import annotations

import json
import re
import shlex
import types
import typing
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from tileprof.errors import WorkloadError
from tileprof.workload.problems import nearest, render_problems, unknown
from tileprof.workload.records import Workload
from tileprof.workload.schema import WorkloadModel
from tileprof.workload.semantics import build_workload
from tileprof.workload.units import describe
from tileprof.workload.yaml_source import Document, parse_yaml, plain_scalar
from tileprof.workload.yaml_source import Path as YamlPath


def load_workload(path: Path | str) -> Workload:
    """The validated workload in the file at ``path``.

    Raises WorkloadError, whose message lists every problem as ``file:line:column`` with source line, caret and nearest valid word.
    """
    path = Path(path)
    shown = str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise WorkloadError(f"there is no workload file {shown}", remedy=_file_remedy(path)) from None
    except IsADirectoryError:
        raise WorkloadError(f"{shown} is a directory", remedy="name the YAML file in it") from None
    except UnicodeDecodeError as error:
        raise WorkloadError(f"{shown} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise WorkloadError(f"{shown} cannot be read: {error.strerror}") from None
    document = parse_yaml(text, shown)
    workload = None
    # a syntax error leaves nothing to validate; a duplicate key does
    if document.value is not None or not document.problems:
        model = _validate(document)
        workload = build_workload(model, document, path) if model is not None else None
        if model is None:
            _check_parts(document, path)
    if document.problems or workload is None:
        count = len(set(document.problems))
        message = render_problems(shown, document.lines, document.problems)
        raise WorkloadError(f"{message}\n{count} problem{'s' if count != 1 else ''} in {shown}")
    return workload


def _file_remedy(path: Path) -> str | None:
    folder = path.parent if path.parent.is_dir() else None
    names = [p.name for p in folder.iterdir() if p.suffix in {".yaml", ".yml"}] if folder else []
    guess = nearest(path.name, names)
    if guess is not None:
        return f"did you mean {path.parent / guess}?"
    return f"{path.parent} does not exist either" if folder is None else None


def _validate(document: Document) -> WorkloadModel | None:
    """The model, or None with the document's problems extended."""
    try:
        return WorkloadModel.model_validate(document.value)
    except ValidationError as error:
        for item in error.errors(include_url=False):
            _report(document, item)
        return None


def _check_parts(document: Document, path: Path) -> None:
    """Report what can be said about the parts that are valid by themselves, so that one run shows every problem.

    The parts that pydantic refused are taken out, and what is left is checked for names, files and expressions.
    """
    value = document.value
    if not isinstance(value, dict):
        return
    for _ in range(MOST_DEPTH):  # taking a part out can make its parent invalid
        try:
            model = WorkloadModel.model_validate(value)
        except ValidationError as error:
            value = _without(value, {_to_drop(item) for item in error.errors(include_url=False)})
        else:
            build_workload(model, document, path)
            return


MOST_DEPTH = 12
"""Mappings and lists of the format inside one another, and some more."""


def _to_drop(item: Any) -> tuple[str | int, ...]:
    """The part that one of pydantic's errors makes unusable: what it is about, or what lacks a key."""
    location: tuple[str | int, ...] = item["loc"]
    if location and location[-1] == "[key]":
        return location[:-1]
    # the keys that the file itself and a kernel need are stood in for
    stood_in = len(location) == 1 or (len(location) == 3 and location[0] == "kernels")
    return location[:-1] if item["type"] == "missing" and not stood_in else location


def _without(value: Any, dropped: set[tuple[str | int, ...]]) -> Any:
    """A copy of ``value`` in which the parts at ``dropped`` are replaced by something harmless or left out."""

    def prune(node: Any, path: tuple[str | int, ...]) -> Any:
        if isinstance(node, dict):
            return {k: prune(v, (*path, k)) for k, v in node.items() if (*path, k) not in dropped}
        if isinstance(node, list):
            if path == ("kernels",):
                return [prune(v, (*path, i)) if isinstance(v, dict) else {} for i, v in enumerate(node)]
            # an index in a message must stay true, so other lists are dropped as a whole unless they hold mappings
            if any((*path, i) in dropped for i in range(len(node))) and not all(isinstance(v, dict) for v in node):
                return []
            return [prune(v, (*path, i)) for i, v in enumerate(node)]
        return node

    pruned = prune(value, ())
    pruned.setdefault("version", 1)
    pruned.setdefault("name", "unnamed")
    if not pruned.get("targets"):
        pruned["targets"] = {"unnamed": {"target": "cpu"}}
    if not pruned.get("kernels"):
        pruned["kernels"] = [{}]  # no kernel of the file: nothing is said of it
    for index, kernel in enumerate(pruned["kernels"]):
        kernel.setdefault("name", f"unnamed-{index}")
    return pruned


def _report(document: Document, item: Any) -> None:
    """Add one of pydantic's errors to the document, in the words of the file."""
    kind, location, found = item["type"], item["loc"], item["input"]
    path = _existing(document, location)
    if kind == "workload":
        index = item["ctx"]["index"]
        document.report((*path, index) if index >= 0 else path, item["ctx"]["message"])
    elif kind == "extra_forbidden":
        keys = valid_keys(location[:-1])
        document.report(location, unknown("key", str(location[-1]), keys), key=True)
    elif kind == "missing":
        document.report(path, f"the key '{location[-1]}' is missing", key=bool(path))
    elif kind == "literal_error":
        document.report(path, f"expected {item['ctx']['expected']}, found {describe(found)}" + _version_hint(location))
    elif location and location[-1] == "[key]":
        document.report(location[:-1], f"'{location[-2]}' cannot be a name: {_name_rule(kind)}", key=True)
    else:
        document.report(path, _wording(kind, item, found))


def _existing(document: Document, location: tuple[str | int, ...]) -> YamlPath:
    """The longest beginning of ``location`` that stands in the file."""
    for end in range(len(location), 0, -1):
        if location[:end] in document.value_marks:
            return location[:end]
    return ()


def _version_hint(location: tuple[str | int, ...]) -> str:
    return "; this tileprof reads version 1 of the format" if location == ("version",) else ""


def _name_rule(kind: str) -> str:
    if kind == "string_too_long":
        return "it is longer than 100 characters"
    return "use letters, digits, '.', '_', '+' and '-', with a letter or digit first"


def _wording(kind: str, item: Any, found: Any) -> str:
    context = item.get("ctx", {})
    quotes = "; put it in quotes" if isinstance(found, int | float) else ""
    expected = {
        "string_type": "expected text",
        "int_type": "expected a whole number",
        "int_from_float": "expected a whole number",
        "float_type": "expected a number",
        "bool_type": "expected true or false",
        "list_type": "expected a list",
        "dict_type": "expected a mapping",
        "model_type": "expected a mapping",
        "model_attributes_type": "expected a mapping",
        "greater_than_equal": f"expected {context.get('ge')} or more",
        "less_than_equal": f"expected {context.get('le')} or less",
        "less_than": f"expected less than {context.get('lt')}",
    }.get(kind)
    if kind == "string_type":
        return f"{expected}, found {describe(found)}{quotes}"
    if kind == "list_type":
        return f"{expected}, found {describe(found)}; write [{_as_list(item['loc'], found)}]"
    if expected is not None:
        return f"{expected}, found {describe(found)}"
    if kind in {"string_pattern_mismatch", "string_too_long"}:
        return f"{describe(found)} cannot be a name: {_name_rule(kind)}"
    if kind == "too_short":
        return "needs at least one entry"
    return str(item["msg"])


_BARE = re.compile(r"(?!-$)[\w./+=@%-][\w./+=@% -]*(?<! )")


def _as_list(location: tuple[str | int, ...], found: Any) -> str:
    """What stands in the list that was meant: the words of a command, else the value itself."""
    if isinstance(found, dict):
        inside = ", ".join(f"{key}: {value}" for key, value in found.items())
        return f"{{{inside}}}" if len(inside) <= 60 else "{...}"
    if not isinstance(found, str):
        return str(found)
    words = [found]
    if location[-1] == "command":
        with suppress(ValueError):  # an open quote
            words = shlex.split(found)
    return ", ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    """A word as YAML takes it for text."""
    try:
        bare = _BARE.fullmatch(word) is not None and isinstance(plain_scalar(word), str)
    except ValueError:
        bare = False
    return word if bare else json.dumps(word, ensure_ascii=False)


def valid_keys(location: tuple[str | int, ...]) -> list[str]:
    """Keys that the schema allows in the mapping at ``location``."""
    annotation: Any = WorkloadModel
    for part in location:
        annotation = _step(_unwrap(annotation), part)
    model = _unwrap(annotation)
    return list(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []


def _unwrap(annotation: Any) -> Any:
    """The type inside Annotated and ``| None``."""
    while True:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif origin in (typing.Union, types.UnionType):
            annotation = next(a for a in typing.get_args(annotation) if a is not type(None))
        else:
            return annotation


def _step(annotation: Any, part: str | int) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields
        return fields[part].annotation if isinstance(part, str) and part in fields else None
    arguments = typing.get_args(annotation)
    return arguments[-1] if arguments else None
