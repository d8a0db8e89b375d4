"""Collects the Python source of a translated program: the part that runs once, and the body."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

INDENT = "  "


@dataclass
class SourceText:
    """Source under construction.

    ``prologue`` lines run once before the body, in the order they were asked for; :meth:`hoist` puts an expression there
    and names it, the same text being computed once only.
    """

    prologue: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    depth: int = 0
    names: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def fresh(self, prefix: str) -> str:
        """A name nobody has used."""
        number = self.numbers.get(prefix, 0)
        self.numbers[prefix] = number + 1
        return f"{prefix}{number}"

    def hoist(self, source: str, prefix: str = "h") -> str:
        """The name of a value computed once, before the body."""
        if source.isidentifier():
            return source
        name = self.names.get(source)
        if name is None:
            name = self.names[source] = self.fresh(prefix)
            self.prologue.append(f"{name} = {source}")
        return name

    def line(self, text: str) -> None:
        """One line of the body at the current depth."""
        self.body.append(INDENT * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """An indented block under ``head``; an empty one gets a ``pass``."""
        self.line(head)
        start = len(self.body)
        self.depth += 1
        yield
        if len(self.body) == start:
            self.line("pass")
        self.depth -= 1

    def function(self, name: str, parameter: str, result: str) -> str:
        """The whole as one function."""
        lines = [f"def {name}({parameter}):"]
        lines += [INDENT + line for line in self.prologue]
        lines += [INDENT + line for line in self.body]
        lines.append(f"{INDENT}return {result}")
        return "\n".join(lines) + "\n"
