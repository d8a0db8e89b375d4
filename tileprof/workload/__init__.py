"""workload.yaml -> validated cases with stable ids.  Runs nothing and imports no kernel.

``load_workload(path)`` gives a :class:`Workload` or raises ``WorkloadError`` with every problem of the file;
``expand_cases(workload)`` gives its cases.
"""

from tileprof.workload.expand import expand_cases
from tileprof.workload.load import load_workload
from tileprof.workload.records import (
    Case,
    FunctionReference,
    KernelEntry,
    TargetEntry,
    TimingPolicy,
    Tolerance,
    Workload,
)
from tileprof.workload.schema import workload_json_schema

__all__ = [
    "Case",
    "FunctionReference",
    "KernelEntry",
    "TargetEntry",
    "TimingPolicy",
    "Tolerance",
    "Workload",
    "expand_cases",
    "load_workload",
    "workload_json_schema",
]
