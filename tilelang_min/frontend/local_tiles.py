"""Local tiles: registers that every thread has for itself.

Which thread computes which point of a T.Parallel nest is the compiler's choice, so a local tile means the same on every target
only where threads cannot be told apart by it:

* written outside of nests, it holds the same value in all threads and may be read anywhere;
* written inside a nest, it belongs to one point of that nest: it may be read there, behind the write.

Everything else is an error here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilelang_min.errors import LanguageError
from tilelang_min.ir.nodes import Buffer
from tilelang_min.program import SourceLocation


class FragmentElement(LanguageError):
    """Elements of fragments stand where all threads must have the same value.  ``fragments`` are the places that made them.

    A fragment that nothing else than such statements uses is a local tile by another name.
    """

    def __init__(
        self, message: str, *, location: SourceLocation, remedy: str, fragments: Iterable[SourceLocation]
    ) -> None:
        super().__init__(message, location=location, remedy=remedy)
        self.fragments = frozenset(fragments)


@dataclass(frozen=True)
class LocalUse:
    """One access to an element (``indices`` as text) of a local tile, in the nest with operation ``nest`` or outside (None)."""

    location: SourceLocation
    buffer: Buffer
    indices: str
    writes: bool
    nest: int | None


def check_local_tiles(uses: list[LocalUse]) -> None:
    """Raise LanguageError at the first read whose value would depend on which thread reads.  ``uses`` in source order."""
    writing_nest = {use.buffer.name: use for use in reversed(uses) if use.writes and use.nest is not None}
    written: set[tuple[str, str, int]] = set()
    for use in uses:
        name = use.buffer.name
        if use.writes:
            if use.nest is not None:
                written.add((name, use.indices, use.nest))
            continue
        writer = writing_nest.get(name)
        if writer is None or (use.nest is not None and (name, use.indices, use.nest) in written):
            continue
        raise LanguageError(
            f"{name} is written in the T.Parallel nest of line {writer.location.line}, where it belongs to one point of the "
            "nest; its value cannot be read "
            + ("outside of it" if use.nest != writer.nest else "before it is written"),
            location=use.location,
            remedy="make it inside of the nest and give it a first value there (x = T.alloc_var(dtype, init=...)), use "
            "T.alloc_fragment and index it by the loop variables, or write the tile outside of T.Parallel",
        )
