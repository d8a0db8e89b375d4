"""Results of ``mma.sync`` to memory in 16 bytes a lane, though four lanes hold what lies side by side.

Of the 8 columns of an instruction tile each lane of a quad has two.  Four neighbouring tiles give every lane four words of
32 bits; the quad exchanges them, so that lane q gets the whole row of tile q::

    lane 0:  a0 b0 c0 d0        a0 a1 a2 a3
    lane 1:  a1 b1 c1 d1   ->   b0 b1 b2 b3
    lane 2:  a2 b2 c2 d2        c0 c1 c2 c3
    lane 3:  a3 b3 c3 d3        d0 d1 d2 d3

in two rounds with the lanes one and two numbers away, four shuffles in all.  Then a quad stores 64 bytes in a row by one
instruction, where it would store 16 by each of four.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from tilelang_min.ir.expressions import index
from tilelang_min.ir.layout import FragmentLayout, MatrixLayout
from tilelang_min.lower.context import Context
from tilelang_min.lower.reduce import shuffle_xor

LANES, PAIR, TILE_COLUMNS = 4, 2, 8
"""Lanes of a quad, columns of each, columns of an instruction tile."""


@dataclass(frozen=True)
class QuadLayout:
    """The fragment of a MatrixLayout after the exchange: ``position`` of the first of the lane's 8 elements in the set
    (tile row, first tile column, half); the others follow in the row."""

    held: MatrixLayout

    def position(self, thread: Any, place: tuple[int, int, int]) -> tuple[Any, Any]:
        """(row, column) in the fragment."""
        row, column, half = place
        first = self.held.position(thread, self.held.register(row, column, half * PAIR))
        return first[0], first[1] + thread % LANES * (TILE_COLUMNS - PAIR)


def quads_of(layout: FragmentLayout) -> QuadLayout | None:
    """The layout after the exchange, for accumulators of 16 x 8 tiles in fours; None for all others."""
    if not isinstance(layout, MatrixLayout) or layout.warp_size != 32 or layout.column_pack != 1:
        return None
    if (layout.tile_n, layout.items) != (TILE_COLUMNS, 4) or layout.tiles[1] % LANES:
        return None
    lanes = range(layout.warp_size)
    places = [[tuple(layout.instruction_map(lane, item)) for item in range(4)] for lane in lanes]
    wanted = [[(lane // 4 + item // 2 * 8, lane % 4 * 2 + item % 2) for item in range(4)] for lane in lanes]
    return QuadLayout(layout) if places == wanted else None


class Exchange:
    """Collects the pairs that a nest would store, and stores sets of four; ``store`` writes 8 elements of a set."""

    def __init__(
        self, context: Context, layout: MatrixLayout, store: Callable[[tuple[int, int, int], Any], None]
    ) -> None:
        self.context, self.layout, self.store = context, layout, store
        self.pairs: dict[tuple[int, int, int], Any] = {}

    def add(self, register: int, pair: Any) -> None:
        """The pair of elements from ``register`` on, in a register array of two."""
        tile, item = divmod(register, self.layout.items)
        row, column = divmod(tile, self.layout.tiles[1])
        self.pairs[row, column, item // PAIR] = pair
        first, half = column - column % LANES, item // PAIR
        names = [(row, first + part, half) for part in range(LANES)]
        if all(name in self.pairs for name in names):
            self.finish((row, first, half), [self.pairs.pop(name) for name in names])

    def finish(self, place: tuple[int, int, int], pairs: list[Any]) -> None:
        """The exchange of one set."""
        context = self.context
        words = []
        for pair in pairs:
            word = tirx.Var(context.fresh("word"), "uint32")
            value = tirx.BufferLoad(pair, [tirx.Ramp(index(0), 1, PAIR)])
            context.emit(tirx.Bind(word, tirx.reinterpret("uint32", value)))
            words.append(word)
        odd, high = (tirx.NE(index(self.context.simplify(context.thread // bit % 2)), 0) for bit in (1, 2))
        halves = []
        for low, upper in (words[:2], words[2:]):
            got = self.moved(tirx.Select(odd, low, upper), 1)
            halves.append((self.named(tirx.Select(odd, got, low)), self.named(tirx.Select(odd, upper, got))))
        (first, second), (third, fourth) = halves
        got = [self.moved(tirx.Select(high, one, other), 2) for one, other in ((first, third), (second, fourth))]
        held = context.registers("quad", "uint32", LANES)
        wanted = [
            tirx.Select(high, got[0], first),
            tirx.Select(high, got[1], second),
            tirx.Select(high, third, got[0]),
            tirx.Select(high, fourth, got[1]),
        ]
        for number, value in enumerate(wanted):
            context.emit(tirx.BufferStore(held, value, [index(number)]))
        self.store(place, tirx.BufferLoad(held, [tirx.Ramp(index(0), 1, LANES)]))

    def moved(self, value: Any, distance: int) -> Any:
        """The value of the lane ``distance`` away."""
        return self.named(shuffle_xor(self.context, self.named(value), distance))

    def named(self, value: Any) -> Any:
        """A variable with the value."""
        variable = tirx.Var(self.context.fresh("word"), "uint32")
        self.context.emit(tirx.Bind(variable, value))
        return variable
