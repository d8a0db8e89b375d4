"""Executes the thread program that the code generators print, on NumPy, and counts what it does to memory.

``tree`` reads the TIRx function, ``statements`` (with ``expressions``, ``integers``, ``instructions``) translates it to a
Python function once, ``machine`` runs that function for some blocks at once with ``sites``, ``transfers``, ``matrix`` and
``races``, and ``counting`` asks ``tilelang_min.access`` what the recorded addresses cost.  ``recording`` counts again for
shared tiles in other places (``placement``).

Where threads wait for one another (``hopper`` has the instructions, ``roles`` says who runs together) a ``cluster`` runs each
``strand`` as a machine of its own, with ``mbarriers``, ``bulk`` copies, ``wgmma`` (``warpgroup``), ``stmatrix``, and ``clocks`` in
the place of ``races``.
"""

from tilelang_min.simulate.placement import SWIZZLES, Placement, Tile
from tilelang_min.simulate.recording import Recording, merge_recordings
from tilelang_min.simulate.result import AccessCount, SimulationResult, merge_counts, merge_executed
from tilelang_min.simulate.simulation import runs_in_strands, simulate

__all__ = [
    "SWIZZLES",
    "AccessCount",
    "Placement",
    "Recording",
    "SimulationResult",
    "Tile",
    "merge_counts",
    "merge_executed",
    "merge_recordings",
    "runs_in_strands",
    "simulate",
]
