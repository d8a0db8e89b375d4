"""YAML text -> plain Python values, and the place in the text of every value.

Scalars follow the YAML 1.2 core schema: ``true`` and ``false`` are the only booleans (``no`` and ``on`` are strings), ``1:30`` is a
string.  A number with an exponent and no fraction, ``1e3``, is a whole number when its value is one.  Duplicate keys, tags, cycles
and non-scalar keys are problems.  This module knows nothing of workloads.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import yaml

from tileprof.workload.problems import Mark, Problem

Path = tuple[str | int, ...]

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WHOLE_EXPONENT = re.compile(r"[-+]?[0-9]+[eE][+]?[0-9]+")
_MOST_NODES = 200_000  # aliases of aliases can make a small file huge

_STRING_TAG = "tag:yaml.org,2002:str"
_CONTAINER_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Composes nodes only; scalars stay text, so that :func:`_scalar` alone decides what they are."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}


@dataclass
class Document:
    """A parsed YAML file: its ``value``, its ``lines``, where each path stands, and what is wrong with it so far.

    ``value_marks`` maps a path (keys and list indices from the root) to the place of its value, ``key_marks`` to the place of
    its key.  ``quoted`` holds the paths whose scalar stands in quotes or a block.
    """

    file: str
    lines: Sequence[str]
    value: Any = None
    value_marks: dict[Path, Mark] = field(default_factory=dict)
    key_marks: dict[Path, Mark] = field(default_factory=dict)
    quoted: set[Path] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def mark(self, path: Path, *, key: bool = False) -> Mark:
        """The place of ``path``, of its key where ``key`` is set; the nearest enclosing one where the path is not in the file."""
        if key and path in self.key_marks:
            return self.key_marks[path]
        for end in range(len(path), -1, -1):
            if path[:end] in self.value_marks:
                return self.value_marks[path[:end]]
        return Mark(0, 0)

    def keys(self, path: Path) -> list[str]:
        """Keys of the mapping at ``path``; none where there is no mapping."""
        node = self._at(path)
        return list(node) if isinstance(node, dict) else []

    def is_mapping(self, path: Path) -> bool:
        """Whether there is a mapping at ``path``."""
        return isinstance(self._at(path), dict)

    def _at(self, path: Path) -> Any:
        """The value at ``path``; None where there is none."""
        node = self.value
        for part in path:
            is_there = part in node if isinstance(node, dict) else isinstance(node, list) and part in range(len(node))
            if not is_there:
                return None
            node = node[part]
        return node

    def report(self, path: Path, message: str, *, key: bool = False, offset: int | None = None) -> None:
        """Note a problem at ``path``; ``offset`` is a place inside the text of a scalar on one line."""
        mark = self.mark(path, key=key)
        if offset is not None and not key:
            mark = Mark(mark.line, mark.column + offset + (1 if path in self.quoted else 0))
        self.problems.append(Problem(mark, message))


def parse_yaml(text: str, file: str) -> Document:
    """The document in ``text``; ``file`` is the name shown in messages.  Syntax errors become its one problem."""
    document = Document(file, text.splitlines())
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        place = error.problem_mark or error.context_mark
        what = ": ".join(part for part in (error.context, error.problem) if part) or "cannot be read"
        mark = Mark(place.line, place.column) if place is not None else Mark(0, 0)
        document.problems.append(Problem(mark, f"not valid YAML: {what}"))
        return document
    except yaml.YAMLError as error:
        document.problems.append(Problem(Mark(0, 0), f"not valid YAML: {error}"))
        return document
    finally:
        loader.dispose()
    if node is None:
        document.problems.append(Problem(Mark(0, 0), "the file is empty"))
        return document
    builder = _Builder(document)
    document.value = builder.build(node, (), ())
    return document


class _Builder:
    """Turns composed nodes into values and fills the marks of a document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.count = 0

    def build(self, node: yaml.Node, path: Path, above: tuple[int, ...]) -> Any:
        document = self.document
        mark = Mark(node.start_mark.line, node.start_mark.column)
        document.value_marks[path] = mark
        self.count += 1
        if id(node) in above:
            document.problems.append(Problem(mark, "an alias refers to itself"))
            return None
        if self.count > _MOST_NODES:
            if self.count == _MOST_NODES + 1:
                document.problems.append(Problem(mark, f"the file expands to more than {_MOST_NODES:,} values"))
            return None
        above = (*above, id(node))
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        if node.tag not in _CONTAINER_TAGS:
            document.problems.append(Problem(mark, f"the tag '{node.tag}' has no meaning here"))
        if isinstance(node, yaml.SequenceNode):
            return [self.build(child, (*path, index), above) for index, child in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path, above)
        return None

    def mapping(self, node: yaml.MappingNode, path: Path, above: tuple[int, ...]) -> dict[str, Any]:
        document = self.document
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            mark = Mark(key_node.start_mark.line, key_node.start_mark.column)
            if not isinstance(key_node, yaml.ScalarNode):
                document.problems.append(Problem(mark, "a key must be a single word"))
                continue
            key = str(key_node.value)
            if key in values:
                first = document.key_marks[(*path, key)]
                document.problems.append(
                    Problem(mark, f"duplicate key '{key}'; it stands in line {first.line + 1} already")
                )
                continue
            document.key_marks[(*path, key)] = mark
            values[key] = self.build(value_node, (*path, key), above)
        return values

    def scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        text = str(node.value)
        if node.tag != _STRING_TAG:
            mark = self.document.value_marks[path]
            self.document.problems.append(Problem(mark, f"the tag '{node.tag}' has no meaning here"))
            return text
        if node.style is not None:
            self.document.quoted.add(path)
            return text
        try:
            return plain_scalar(text)
        except ValueError:
            self.document.report(path, f"the number '{text[:24]}' is out of range")
            return None


def plain_scalar(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar by the YAML 1.2 core schema; ValueError for a number that is out of range."""
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        if text.startswith("0o"):
            return int(text[2:], 8)
        return int(text[2:], 16) if text.startswith("0x") else int(text)
    if _FLOAT.fullmatch(text):
        value = float(
            text.replace(".inf", "inf").replace(".Inf", "inf").replace(".INF", "inf").lower().replace(".nan", "nan")
        )
        if math.isinf(value) and "inf" not in text.lower():
            raise ValueError(text)
        if _WHOLE_EXPONENT.fullmatch(text) and value.is_integer():
            return int(value)
        return value
    return text
