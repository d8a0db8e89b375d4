"""The shapes in which machine facts are written down: targets, devices, memories, matrix instructions, lane maps.

Plain frozen records without behaviour that depends on a vendor; the numbers are in ``nvidia.py``, ``amd.py`` and
``cpu.py``. Every record that holds numbers says in ``source`` where they come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Term:
    """One addend of a lane map: ``x // divisor % modulus * stride``, where x is the lane or the item."""

    source: str  # "lane" or "item"
    divisor: int
    modulus: int
    stride: int

    def __call__(self, lane: Any, item: Any) -> Any:
        """Value of the addend for integers, NumPy arrays or symbolic integers alike."""
        x = lane if self.source == "lane" else item
        return x // self.divisor % self.modulus * self.stride


@dataclass(frozen=True, slots=True)
class LaneMap:
    """Which element (row, column) of a small matrix is item ``item`` of lane ``lane``.

    ``lanes`` lanes hold ``items`` elements each, in the order of the instruction's operand registers (a packed pair of
    16-bit values is two items, the low half first).  Only ``//``, ``%``, ``*`` and ``+`` are used, so that lane and
    item may be Python integers, NumPy arrays or symbolic expressions.
    """

    row: tuple[Term, ...]
    column: tuple[Term, ...]
    lanes: int
    items: int

    def __call__(self, lane: Any, item: Any) -> tuple[Any, Any]:
        """(row, column) of the element."""
        return _sum(self.row, lane, item), _sum(self.column, lane, item)


def _sum(terms: tuple[Term, ...], lane: Any, item: Any) -> Any:
    total: Any = None
    for term in terms:
        value = term(lane, item)
        total = value if total is None else total + value
    return 0 if total is None else total


@dataclass(frozen=True, slots=True)
class MatrixInstruction:
    """A warp-wide ``d[m, n] = a[m, k] * b[k, n] + c[m, n]``.

    ``name`` is the PTX instruction or the LLVM intrinsic.  ``a_map`` gives (m, k), ``b_map`` (k, n), ``c_map`` (m, n)
    of each lane's items; d is laid out as c.

    ``a_operand``, ``b_operand`` and ``c_operand`` are the types in which a call takes the items.  On NVIDIA each names one
    register of several (``uint32`` holds two 16-bit or four 8-bit items, the lower in the lower bits; :meth:`registers`
    says how many); on AMD all items at once (``float16x4``, ``int16x4``, ``int64``: the same bits).  ``modifiers`` are
    the constants that follow c in the call of an LLVM intrinsic.

    ``input_format`` names the format to which a and b are cut down on the way in (``tf32``, ``xf32``: 10 bits of
    mantissa); such an instruction is :attr:`lossy`, and only for who asks for it.
    """

    name: str
    m: int
    n: int
    k: int
    a_dtype: str
    b_dtype: str
    c_dtype: str
    a_map: LaneMap
    b_map: LaneMap
    c_map: LaneMap
    source: str
    a_operand: str
    b_operand: str
    c_operand: str
    modifiers: tuple[int, ...] = ()
    input_format: str | None = None

    @property
    def lossy(self) -> bool:
        """Whether a and b lose precision that their types have."""
        return self.input_format is not None

    def registers(self, matrix: str) -> int:
        """How many registers of type ``{matrix}_operand`` hold the items of ``matrix`` (``a``, ``b`` or ``c``) in NVIDIA's
        calls."""
        items: int = getattr(self, f"{matrix}_map").items
        return items * _bits(getattr(self, f"{matrix}_dtype")) // _bits(getattr(self, f"{matrix}_operand"))


def _bits(dtype: str) -> int:
    """Bits of an element, from the digits of its type's name (``float8_e4m3``: 8)."""
    digits = "".join(c if c.isdigit() else " " for c in dtype).split()
    return int(digits[0])


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Shared memory (LDS) of one unit.  Sizes in bytes; ``banks`` and ``unit_bytes`` are None on a CPU, which has
    neither.

    ``static_limit`` is the most a block may declare statically, ``block_limit`` the most it may use at all,
    ``unit_bytes`` what a unit has, ``reserved_per_block`` what the system adds to each block, ``granule`` the
    allocation step. ``carveouts`` are the sizes that a unit can be set to, or None where there is nothing to set.
    """

    banks: int | None
    bank_bytes: int | None
    static_limit: int
    block_limit: int
    unit_bytes: int | None
    reserved_per_block: int
    granule: int
    carveouts: tuple[int, ...] | None
    source: str


@dataclass(frozen=True, slots=True)
class SharedPhases:
    """How one kind of shared memory instruction is served: the groups of lanes that go together, one group after
    another.

    ``access`` is ``load``, ``store``, ``cp_async``, ``ldmatrix``, ``stmatrix``, ``atomic``, ``atomic_increment`` or
    ``atomic_loop``; ``width_bits`` the width of one lane's access.  Within a phase each of ``banks`` banks serves one 4-byte word
    a pass.  ``certain`` is False where the rule is our best guess.
    """

    instruction: str
    access: str
    width_bits: int
    phases: tuple[tuple[int, ...], ...]
    banks: int
    certain: bool
    source: str


@dataclass(frozen=True, slots=True)
class GlobalTransfer:
    """The unit, in bytes, in which warp accesses to global memory are requested from the cache below the first."""

    load_bytes: int
    store_bytes: int
    source: str


@dataclass(frozen=True, slots=True)
class RegisterFile:
    """General registers.

    On GPUs: ``per_unit`` 32-bit registers a unit, in ``partitions`` equal parts; a thread can use ``per_thread``; a
    warp is given a multiple of ``granule`` (all its lanes together).  On a CPU ``per_thread`` counts vector registers
    and the other fields are None.
    """

    per_unit: int | None
    per_thread: int
    granule: int | None
    partitions: int | None
    source: str


@dataclass(frozen=True, slots=True)
class UnitLimits:
    """What one unit (SM, CU) can hold at once, apart from registers and shared memory.

    ``barriers`` are the block-wide barriers that all resident blocks share; where ``barriers_free_for_one_warp`` is
    set, blocks of a single warp use none.
    """

    max_warps: int
    max_blocks: int
    barriers: int
    barriers_free_for_one_warp: bool
    source: str


@dataclass(frozen=True, slots=True)
class Device:
    """A product that has the architecture: what is needed for datasheet ceilings.

    ``flops_per_clock_per_unit`` counts a fused multiply-add as 2, dense, by unit and type: ``matrix.float16``
    (products of float16 accumulated in float32), ``vector.float32``, ...  ``clock_hz`` is the highest clock;
    ``clock_hz_by_rate`` holds rates that the vendor states at another one.  ``shared_bytes_per_clock_per_unit`` is the
    shared memory bandwidth.  ``cache_bytes`` is the cache between the units and memory, all levels that they share together
    (None where nothing here needs it).  ``launch_ns`` is the time between two events around a kernel that does next to nothing,
    measured; None where nobody did.  ``clusters`` says how many clusters of 1, 2, 3,
    .. blocks run at once, a block on each unit: units come in groups that no cluster leaves, so that they are fewer than the units
    would hold.  Empty: not known.  ``l2_bytes_per_s``: from the cache that all units share to the units; None where not known.
    """

    name: str
    units: int
    clock_hz: int
    dram_bytes_per_s: int
    shared_bytes_per_clock_per_unit: int
    flops_per_clock_per_unit: Mapping[str, float] = field(hash=False)
    source: str
    clock_hz_by_rate: Mapping[str, int] = field(default_factory=dict, hash=False)
    cache_bytes: int | None = None
    launch_ns: int | None = None
    clusters: tuple[int, ...] = ()
    l2_bytes_per_s: int | None = None

    def clusters_at_once(self, blocks: int) -> int:
        """Clusters of so many blocks that run at once; where that is not known, as many as there are units for."""
        known = self.clusters[blocks - 1] if blocks <= len(self.clusters) else self.units
        return min(known, self.units // blocks)


@dataclass(frozen=True, slots=True)
class Target:
    """What the compiler compiles for.

    ``kind`` is ``cuda``, ``hip`` or ``cpu``; ``arch`` the vendor's name (``sm_80``, ``gfx942``, ``x86-64-v3``);
    ``name`` what :func:`tilelang_min.targets.resolve` takes; ``vendor`` ``nvidia``, ``amd`` or ``cpu``.  ``features``
    names groups of instructions the compiler can use (``ldmatrix``, ``cp_async``, ``mma_sync``, ``mfma``, ...).
    ``instruction_set`` are all matrix instructions that can be printed, compiled and simulated, of each type the best
    first; ``matrix_instructions`` those of them that lowering chooses from by itself, in that order.
    ``max_grid`` is how many blocks a launch may have in each direction, ``max_grid_threads`` how many threads (None: any).
    ``max_cluster`` is how many blocks may run together and reach one another's shared memory.
    ``vector_bits`` is the widest CPU vector (None on GPUs).  ``devices`` are known products, the first being the
    default for ceilings.
    """

    kind: str
    arch: str
    name: str
    vendor: str
    warp_size: int
    max_threads_per_block: int
    shared: SharedMemory
    registers: RegisterFile
    limits: UnitLimits | None
    matrix_instructions: tuple[MatrixInstruction, ...]
    features: frozenset[str]
    vector_bits: int | None
    devices: tuple[Device, ...]
    source: str
    shared_phases: tuple[SharedPhases, ...] = ()
    global_transfer: GlobalTransfer | None = None
    instruction_set: tuple[MatrixInstruction, ...] = ()
    max_grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    max_grid_threads: int | None = None
    max_cluster: int = 1

    def phases_of(self, access: str, width_bits: int) -> SharedPhases | None:
        """The phases of a shared memory access, or None where no rule is known."""
        for rule in self.shared_phases:
            if rule.access == access and rule.width_bits == width_bits:
                return rule
        return None
