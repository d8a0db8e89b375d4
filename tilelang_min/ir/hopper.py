"""What the Hopper path adds to a tile program: rings of stages that a producer fills.

A ring belongs to one pipelined loop.  One thread of a warp group of its own, the producer, asks the tensor memory accelerator for
the tiles of iteration after iteration, as long as stages are free; all other threads, the consumers, wait for a stage, work on it
and give it back.  Both count stages by themselves, across all executions of the loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelang_min.ir.nodes import Buffer, Copy, Loop, Statement
from tilelang_min.ir.plans import Split


@dataclass(frozen=True, eq=False)
class Barriers(Buffer):
    """Shared memory for mbarriers, of 8 bytes each."""

    @property
    def tvm_dtype(self) -> str:
        """What the instructions take."""
        return "uint64"


@dataclass(frozen=True, eq=False)
class Arrival:
    """Loads that are waited for together, since the same statements of the loop's body (``readers``, by operation) need them."""

    loads: tuple[Copy, ...]
    readers: frozenset[int]


@dataclass(frozen=True, eq=False)
class Ring:
    """``arrivals`` bring the tiles of one iteration of the loop; ``stage`` is the variable that names the consumers' stage.

    ``barriers`` is the shared buffer of mbarriers: for each arrival, of each stage one that says it is full, behind these one each
    that it is empty.  ``late``: a stage is given back one iteration later, when the matrix products that read it have ended;
    nothing else reads it.  ``bystanders``: statements other than matrix products of warp groups read the tiles.
    """

    stages: int
    arrivals: tuple[Arrival, ...]
    stage: Any
    barriers: Buffer
    late: bool
    bystanders: bool

    @property
    def loads(self) -> tuple[Copy, ...]:
        """All loads of an iteration."""
        return tuple(copy for arrival in self.arrivals for copy in arrival.loads)


@dataclass(frozen=True, eq=False)
class RingLoop(Loop):
    """A pipelined loop of which only the work stands in ``body``; the copies are in ``ring``."""

    ring: Ring | None = None


@dataclass(frozen=True, eq=False)
class ClusterSum(Statement):
    """``target[..] = sum of source[..]`` over the blocks of a cluster, ``target`` being the block's part of the columns; with one
    part it is ``source``.  Blocks that keep no part have no sum.

    ``scratch`` is the shared tile in which what the others send arrives.  All threads of the cluster meet, those of a producer too.
    """

    source: Buffer
    target: Buffer
    scratch: Buffer
    split: Split
