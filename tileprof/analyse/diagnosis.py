"""The diagnosis of a run: every rule on every case, findings ranked by what they are estimated to save.

A rule is a function from the facts of a case to findings; it says nothing where it does not know.  The rules are listed here once;
``docs/diagnosis.md`` says of each when it fires, and tests hold a kernel on which it does and one on which it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tileprof.analyse import agreement, rules_execution, rules_latency, rules_memory
from tileprof.analyse.bounds import Facts, facts_of
from tileprof.analyse.findings import LEAST_GAIN, Finding, ranked
from tileprof.store.records import FAILED_STATUSES, CaseResult, Ceiling, Run

Rule = Callable[[Facts], Iterator[Finding]]

RULES: dict[str, Rule] = {
    "bank-conflicts": rules_memory.bank_conflicts,
    "uncoalesced": rules_memory.uncoalesced,
    "spills": rules_memory.spills,
    "memory-bound": rules_memory.memory_bound,
    "low-occupancy": rules_latency.low_occupancy,
    "few-blocks": rules_execution.few_blocks,
    "exposed-latency": rules_latency.exposed_latency,
    "matrix-unused": rules_execution.matrix_unused,
    "conversions": rules_execution.conversions,
    "pipeline-shallow": rules_latency.pipeline_depth,
    "pipeline-deep": rules_latency.pipeline_depth,
    "disagreement": agreement.disagreements,
}
"""Rule by the name that its findings carry."""

TITLES = {
    "bank-conflicts": "Shared-memory accesses take more passes than they need",
    "uncoalesced": "Global accesses touch more sectors than their bytes need",
    "spills": "Registers spill to local memory",
    "memory-bound": "Device memory is the limit",
    "low-occupancy": "Too few warps on a unit to hide latency",
    "few-blocks": "The grid leaves units idle",
    "exposed-latency": "Warps wait for global memory while nothing is at its limit",
    "matrix-unused": "A matrix product does not use the matrix units",
    "conversions": "An operation mostly converts types",
    "pipeline-shallow": "A pipelined loop copies and computes in turns",
    "disagreement": "Measured values are not what the compiler or the simulator says",
    "pipeline-deep": "Stages beyond what latency needs cost occupancy",
}


FAILED = frozenset(FAILED_STATUSES) - {"timeout"}
"""Results of cases that are to be mended before they are made faster."""


def diagnose(run: Run) -> list[Finding]:
    """Findings on all cases, by estimated gain."""
    return ranked(found for case in run.cases for found in diagnose_case(case, run.ceilings))


def diagnose_case(case: CaseResult, ceilings: tuple[Ceiling, ...]) -> list[Finding]:
    """Findings on one case, by estimated gain; none for one that was not compiled, or that failed.

    One that exceeded its time limit was compiled as it should be, and what makes it slow is what is asked.
    """
    if not case.metadata or case.status in FAILED:
        return []
    facts = facts_of(case, ceilings)
    if facts.target is None:
        return []
    found = [finding for rule in dict.fromkeys(RULES.values()) for finding in rule(facts)]
    return ranked(f for f in found if f.gain is None or f.predicted or f.gain >= LEAST_GAIN)
