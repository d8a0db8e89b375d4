"""Profiling one kernel from a script: ``tilelang.profile(kernel)`` and the :class:`Report` it returns.

No run directory, no child process.
"""

from tileprof.session.memory_conflicts import MemoryConflicts
from tileprof.session.report import Report, profile

__all__ = ["MemoryConflicts", "Report", "profile"]
