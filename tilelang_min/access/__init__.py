"""The counting rules: addresses of one access -> transactions, conflicts, sectors.

Public, NumPy only, for any number of requests at once: what the simulator counts with, and what one asks about an
access pattern before writing a kernel.  Machine facts come from :mod:`tilelang_min.targets`; rules that were measured
are in ``nvidia.py`` with what is known about them.
"""

from tilelang_min.access.global_memory import global_sectors
from tilelang_min.access.results import BankConflicts, Sectors
from tilelang_min.access.shared import ACCESSES, bank_conflicts

__all__ = ["ACCESSES", "BankConflicts", "Sectors", "bank_conflicts", "global_sectors"]
