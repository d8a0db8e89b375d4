"""What must hold for every access pattern, and a plain-Python model that the vectorised counts agree with."""

from __future__ import annotations

import time
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelang_min.access import bank_conflicts, global_sectors
from tilelang_min.targets import resolve

RULES = [
    (target, rule.access, rule.width_bits)
    for target in ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942", "hip:gfx950")
    for rule in resolve(target).shared_phases
]
SETTINGS = settings(max_examples=150, deadline=None)


def plain(addresses: list[int], active: list[bool], target: str, access: str, width: int) -> tuple[int, int]:
    """Transactions and phases in use, straight from the definition; without the merging of equal pairs."""
    rule = resolve(target).phases_of(access, width)
    assert rule is not None
    total = used = 0
    for phase in rule.phases:
        words: dict[int, list[int]] = defaultdict(list)
        for lane in phase:
            if active[lane]:
                for word in range(addresses[lane] // 4, addresses[lane] // 4 + max(width // 32, 1)):
                    words[word % rule.banks].append(word)
        if words:
            used += 1
            total += max(len(each) if access == "cp_async" else len(set(each)) for each in words.values())
    return total, used


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, int, list[int], list[bool]]:
    target, access, width = draw(st.sampled_from(RULES))
    lanes = resolve(target).warp_size
    step = 16 if width == 96 else width // 8
    spread = draw(st.sampled_from([4, 64, 2048]))
    addresses = draw(st.lists(st.integers(0, spread - 1), min_size=lanes, max_size=lanes))
    everyone = draw(st.booleans())
    active = [True] * lanes if everyone else draw(st.lists(st.booleans(), min_size=lanes, max_size=lanes))
    return target, access, width, [address * step for address in addresses], active


def has_pairs(addresses: list[int], active: list[bool]) -> bool:
    on = [lane for lane in range(len(active)) if active[lane]]
    return any(all(active[lane ^ d] and addresses[lane] == addresses[lane ^ d] for lane in on) for d in (1, 2))


@SETTINGS
@given(requests())
def test_agrees_with_the_plain_model(request: tuple[str, str, int, list[int], list[bool]]) -> None:
    target, access, width, addresses, active = request
    if access == "load" and width >= 64 and target.startswith("cuda") and has_pairs(addresses, active):
        return
    result = bank_conflicts(addresses, access, width, target, mask=np.array(active))
    total, used = plain(addresses, active, target, access, width)
    assert result.transactions == total
    if target.startswith("cuda") and width >= 64 and access in ("load", "store", "cp_async"):
        assert result.transactions_ideal == -(-sum(active) * width // 1024)
    else:
        assert result.transactions_ideal == used


@SETTINGS
@given(requests())
def test_never_better_than_ideal(request: tuple[str, str, int, list[int], list[bool]]) -> None:
    target, access, width, addresses, active = request
    result = bank_conflicts(addresses, access, width, target, mask=np.array(active))
    assert result.transactions >= result.transactions_ideal >= (1 if any(active) else 0)
    assert result.conflicts == result.transactions - result.transactions_ideal
    assert result.ways <= result.transactions
    assert result.requests == int(any(active))


@SETTINGS
@given(requests(), st.randoms(use_true_random=False))
def test_order_within_a_phase_does_not_matter(request, random) -> None:  # type: ignore[no-untyped-def]
    target, access, width, addresses, active = request
    rule = resolve(target).phases_of(access, width)
    assert rule is not None
    if access == "load" and width >= 64 and target.startswith("cuda"):
        access = "store"  # loads depend on neighbours
        rule = resolve(target).phases_of(access, width)
        assert rule is not None
    order = list(range(len(addresses)))
    for phase in rule.phases:
        shuffled = list(phase)
        random.shuffle(shuffled)
        for place, lane in zip(phase, shuffled, strict=True):
            order[place] = lane
    mask = np.array(active)
    before = bank_conflicts(addresses, access, width, target, mask=mask)
    after = bank_conflicts(np.array(addresses)[order], access, width, target, mask=mask[order])
    assert after == before


@SETTINGS
@given(requests(), st.integers(0, 64))
def test_moving_all_lanes_by_all_banks_changes_nothing(
    request: tuple[str, str, int, list[int], list[bool]], times: int
) -> None:
    target, access, width, addresses, active = request
    mask = np.array(active)
    moved = np.array(addresses) + times * 256
    assert bank_conflicts(moved, access, width, target, mask=mask) == bank_conflicts(
        addresses, access, width, target, mask=mask
    )


@SETTINGS
@given(st.lists(requests(), min_size=2, max_size=4))
def test_requests_are_counted_one_by_one(many: list[tuple[str, str, int, list[int], list[bool]]]) -> None:
    target, access, width, _, _ = many[0]
    same = [each for each in many if each[:3] == (target, access, width)]
    addresses, mask = np.array([each[3] for each in same]), np.array([each[4] for each in same])
    together = bank_conflicts(addresses, access, width, target, mask=mask)
    alone = [bank_conflicts(a, access, width, target, mask=m) for a, m in zip(addresses, mask, strict=True)]
    assert together.per_request.tolist() == [each.transactions for each in alone]
    assert together.per_request_ideal.tolist() == [each.transactions_ideal for each in alone]
    assert together.ways == max(each.ways for each in alone)


@SETTINGS
@given(
    st.sampled_from(["cuda:sm_80", "hip:gfx90a", "hip:gfx942"]),
    st.sampled_from(["load", "store"]),
    st.sampled_from([8, 16, 32, 64, 128]),
    st.data(),
)
def test_sectors_agree_with_a_set_of_bytes(target: str, access: str, width: int, data: st.DataObject) -> None:
    lanes = resolve(target).warp_size
    index = data.draw(st.lists(st.integers(0, 500), min_size=lanes, max_size=lanes))
    active = data.draw(st.lists(st.booleans(), min_size=lanes, max_size=lanes))
    addresses = [i * (width // 8) + (1 << 45) for i in index]
    result = global_sectors(addresses, access, width, target, mask=np.array(active))
    touched = {
        (address + byte) // result.sector_bytes
        for address, on in zip(addresses, active, strict=True)
        for byte in range(width // 8)
        if on
    }
    assert result.sectors == len(touched)
    assert result.sectors_ideal == min(len(touched), -(-sum(active) * width // 8 // result.sector_bytes))


@pytest.mark.parametrize(
    ("access", "width", "target"),
    [
        ("load", 32, "cuda:sm_90a"),
        ("load", 128, "cuda:sm_90a"),
        ("store", 64, "cuda:sm_90a"),
        ("ldmatrix", 128, "cuda:sm_90a"),
        ("cp_async_bypass", 128, "cuda:sm_90a"),
    ],
)
def test_a_hundred_thousand_requests_take_well_under_a_second(access: str, width: int, target: str) -> None:
    addresses = np.random.default_rng(1).integers(0, 1024, (100_000, 32)) * 16
    seconds = []
    for _ in range(3):  # the best of three: other work may share the processor
        start = time.process_time()
        bank_conflicts(addresses, access, width, target)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.8
