"""Bank conflicts of shared memory accesses, given the address of each lane."""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np

from tilelang_min.access import atomics, copies, nvidia
from tilelang_min.access.arguments import Addresses, Mask, as_lanes, as_requests, check_alignment
from tilelang_min.access.passes import phase_passes
from tilelang_min.access.results import BankConflicts, Counted
from tilelang_min.errors import ShapeError, UnknownMemoryRule
from tilelang_min.targets import SharedPhases, Target, resolve

ACCESSES = (
    "load",
    "store",
    "ldmatrix",
    "stmatrix",
    "cp_async",
    "cp_async_bypass",
    "atomic",
    "atomic_increment",
    "atomic_loop",
    "atomic_loop_load",
)
COPIES = ("cp_async", "cp_async_bypass")
LOOPS = ("atomic_loop", "atomic_loop_load")


def bank_conflicts(
    addresses: Any,
    access: str = "load",
    width_bits: int = 128,
    target: str | Target = "cuda:sm_90a",
    mask: Any = None,
    source: Any = None,
    matrices: int | None = None,
    reads: Any = None,
) -> BankConflicts:
    """Passes and conflicts of warp-wide shared memory accesses.

    ``addresses``: byte offsets in shared memory, integers of shape (lanes,) or (requests, lanes).  ``width_bits``:
    bits a lane accesses (ldmatrix, stmatrix: ignored, a row is 16 bytes).  ``mask``: active lanes, booleans of the
    shape of ``addresses`` or (lanes,).  ``matrices``: 1, 2 or 4 for ldmatrix and stmatrix, whose lanes 8 j to 8 j + 7
    give the row addresses of matrix j; None takes as many as there are lanes for.

    For cp_async and cp_async_bypass, whose cost depends on both sides: ``source``, the global byte addresses, same shape
    (without them the sources are taken to lie well, and the rule is ``open``); ``reads``, lanes that read their source
    while the others fill with zeros, for the form of the instruction that has a size to read (None: the form without).

    ``atomic`` is one that NVIDIA's shared memory does itself (32-bit integers), ``atomic_increment`` the addition of the constant
    1 (from sm_80 on), where lanes with one address go together; any other is a loop, of which ``atomic_loop``
    counts the compare-and-swaps and ``atomic_loop_load`` the loads, all rounds together, ``ways`` of the former being the
    rounds: those of a warp that no other warp disturbs.

    Raises :class:`UnknownMemoryRule` where no rule is known, :class:`ShapeError` for arrays that do not fit and
    :class:`SimulationError` for misaligned addresses.  Sources of the rules: ``result.source``.
    """
    machine = resolve(target)
    if access not in ACCESSES:
        near = difflib.get_close_matches(access, ACCESSES, n=1)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        raise UnknownMemoryRule(f'unknown access "{access}"', remedy=f"{hint}Known accesses: {', '.join(ACCESSES)}")
    if machine.kind == "cpu":
        raise UnknownMemoryRule(
            f"{machine.name} has no banks: its tiles are ordinary memory", remedy="ask about a cuda or hip target"
        )
    requests, active = as_requests(addresses, mask, machine.warp_size)
    if access not in COPIES and not (source is None and reads is None):
        raise ShapeError(f"source or reads with {access}", remedy=f"they are for {' and '.join(COPIES)}")
    if source is not None and np.shape(source) != np.shape(addresses):
        raise ShapeError(
            f"source of shape {np.shape(source)} for a {access} with addresses of shape {np.shape(addresses)}",
            remedy="pass one global address for each shared address",
        )
    matrix = access in ("ldmatrix", "stmatrix")
    width_bits = 128 if matrix else width_bits
    rule = _rule(machine, access, width_bits)
    if matrix:
        active = _matrix_lanes(access, active, np.shape(addresses)[-1], matrices)
    elif matrices is not None:
        raise ShapeError(f"matrices={matrices} with {access}", remedy="matrices is for ldmatrix and stmatrix")
    if machine.vendor == "amd":
        return _amd(requests, active, rule)
    check_alignment(requests, active, width_bits // 8, f"misaligned {rule.instruction}")
    if access in COPIES:
        reading = None if reads is None else as_lanes(reads, np.shape(addresses), requests.shape, "reads") & active
        origin = None if source is None else _sources(source, active if reading is None else reading, rule)
        if access == "cp_async":
            counted = copies.count_through(requests, active, origin, reading, width_bits // 8)
        else:
            counted = copies.count_bypass(requests, active, origin, reading)
        told = copies.WITHOUT_SOURCE if source is None else copies.SOURCE
        return _result(counted, active, certain=source is not None, source=told)
    if access == "atomic":
        return _result(atomics.count_atomics(requests, active, rule), active, certain=True, source=copies.SOURCE)
    if access in LOOPS:
        loop = atomics.count_loops(requests, active, rule, _rule(machine, "load", width_bits))
        counted = loop.swaps if access == "atomic_loop" else loop.loads
        return _result(counted, active, certain=True, source=copies.SOURCE)
    return _result(nvidia.count_phases(requests, active, rule), active, certain=rule.certain, source=rule.source)


def _sources(source: Any, reading: Mask, rule: SharedPhases) -> Addresses:
    """Global addresses by request and lane, 0 for lanes that do not read."""
    given = np.atleast_2d(np.asarray(source))
    rest = reading.shape[1] - given.shape[1]
    filled = np.where(reading, np.pad(given, ((0, 0), (0, rest))), 0)
    requests, _ = as_requests(filled, None, reading.shape[1])
    check_alignment(requests, reading, rule.width_bits // 8, f"misaligned source of a {rule.instruction}")
    return requests


def _matrix_lanes(access: str, active: Mask, lanes: int, matrices: int | None) -> Mask:
    """The lanes whose addresses ldmatrix or stmatrix reads."""
    matrices = lanes // 8 if matrices is None else matrices
    if matrices not in (1, 2, 4) or 8 * matrices > lanes:
        raise ShapeError(
            f"{access} of {matrices} matrices with the addresses of {lanes} lanes",
            remedy="pass matrices=1, 2 or 4 and at least 8 row addresses for each",
        )
    return active & (np.arange(active.shape[1]) < 8 * matrices)


def _rule(machine: Target, access: str, width_bits: int) -> SharedPhases:
    # The bypassing form exists for 16 bytes only, where cp.async does.
    if access == "cp_async_bypass":
        rule = machine.phases_of("cp_async", 128) if width_bits == 128 else None
    else:
        rule = machine.phases_of("atomic_loop" if access in LOOPS else access, width_bits)
    if rule is not None:
        return rule
    if machine.vendor == "amd":
        verb = {"load": "ds_read", "store": "ds_write", "atomic": "ds_add"}.get(access)
        instruction = f"{verb}_b{width_bits}" if verb else f"{access} of {width_bits} bits"
    else:
        instruction = f"{access} of {width_bits} bits"
    known = ", ".join(f"{rule.access} {rule.width_bits}" for rule in machine.shared_phases)
    raise UnknownMemoryRule(
        f"no counting rule is known for {instruction} on {machine.arch}", remedy=f"known there: {known}"
    )


def _amd(addresses: Addresses, active: Mask, rule: SharedPhases) -> BankConflicts:
    """LDS cycles: the sum over phases of the most distinct dwords of one bank; ideal is a cycle for each phase in
    use."""
    width = rule.width_bits // 8
    check_alignment(addresses, active, min(width, 4), f"misaligned {rule.instruction}")
    # A vector that is only dword-aligned is split by the compiler into other instructions than the rule is for.
    natural = rule.width_bits == 96 or not bool(np.any(addresses[active] % width))
    passes = phase_passes(addresses, active, rule.phases, width_bytes=width, banks=rule.banks)
    counted = Counted(
        transactions=passes.sum(axis=1),
        ideal=np.count_nonzero(passes, axis=1).astype(np.int64),
        ways=passes.max(axis=1, initial=0),
        uncertain=np.zeros(len(addresses), dtype=np.bool_),
    )
    return _result(counted, active, certain=rule.certain and natural, source=rule.source)


def _result(counted: Counted, active: Mask, *, certain: bool, source: str) -> BankConflicts:
    transactions, ideal = int(counted.transactions.sum()), int(counted.ideal.sum())
    return BankConflicts(
        transactions=transactions,
        transactions_ideal=ideal,
        conflicts=transactions - ideal,
        ways=int(counted.ways.max(initial=0)),
        requests=int(np.count_nonzero(active.any(axis=1))),
        rule="known" if certain and not bool(counted.uncertain.any()) else "open",
        source=source,
        per_request=counted.transactions,
        per_request_ideal=counted.ideal,
        per_request_ways=counted.ways,
    )
