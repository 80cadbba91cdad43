"""Lanes: whose request is next, what a lane may hold, and what it is charged."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from contextlab.door.lanes import Full, LaneLimits, Lanes
from contextlab.door.rates import BURST_SECONDS, Bucket

LIMITS = LaneLimits(running=2, waiting=5, bytes_waiting=1000, requests=1e6, bytes=1e9)


@dataclass(eq=False)
class Asked:
    """A request of a payer."""

    of: str
    size: int = 10


def offer(lanes: Lanes, *payers: str, size: int = 10) -> list[Asked]:
    """A request of each payer, in that order."""
    works = [Asked(payer, size) for payer in payers]
    for work in works:
        lanes.offer(work.of, LIMITS, work)
    return works


def taken(lanes: Lanes, seconds: float = 0.01) -> list[str]:
    """Who goes, one after the other, when each request uses that many seconds."""
    order = []
    while (found := lanes.take()) is not None:
        payer, work = found
        assert isinstance(work, Asked) and work.of == payer
        order.append(payer)
        lanes.done(payer, seconds)
    return order


@pytest.mark.fault("E13")
def test_lanes_take_turns_however_many_wait_in_one() -> None:
    lanes = Lanes(threads=1)
    offer(lanes, *"aaaaa", "b", "c", "b")
    order = taken(lanes)
    assert sorted(order[:3]) == ["a", "b", "c"]
    assert sorted(order[3:5]) == ["a", "b"]
    assert order[5:] == ["a", "a", "a"]


def test_who_used_more_waits_longer() -> None:
    lanes = Lanes(threads=1)
    offer(lanes, "a", "b")
    for seconds in (1.0, 0.01):
        found = lanes.take()
        assert found is not None
        lanes.done(found[0], seconds)
    lazy = min(lanes.lanes, key=lambda payer: lanes.lanes[payer].used)
    greedy = max(lanes.lanes, key=lambda payer: lanes.lanes[payer].used)
    offer(lanes, *(greedy + lazy) * 3)
    assert taken(lanes) == [lazy] * 3 + [greedy] * 3


def test_large_bodies_count() -> None:
    lanes = Lanes(threads=1)
    lanes.offer("a", LIMITS, Asked("a", 900))
    offer(lanes, "b")
    taken(lanes, 0)
    assert lanes.lanes["a"].used > lanes.lanes["b"].used


def test_a_newcomer_is_owed_nothing_for_the_past() -> None:
    lanes = Lanes(threads=1)
    offer(lanes, *"aaaaa")
    taken(lanes, 10.0)
    offer(lanes, *"aaaa", *"bbbb")
    assert taken(lanes, 10.0)[:4] == list("baba")


def test_one_lane_leaves_threads_to_others() -> None:
    lanes = Lanes(threads=3)
    offer(lanes, *"aaaa")
    assert [lanes.take() is not None for _ in range(3)] == [True, True, False]
    offer(lanes, *"bb")
    found = lanes.take()
    assert found is not None and found[0] == "b"
    assert lanes.take() is None, "all threads are taken"
    assert lanes.running() == 3
    lanes.done("b", 0)
    assert lanes.take() is not None


@pytest.mark.fault("E13")
def test_a_full_lane_says_when_to_come_again() -> None:
    lanes = Lanes(threads=0)
    offer(lanes, *"aaaaa")
    with pytest.raises(Full, match="5 requests already wait") as full:
        offer(lanes, "a")
    assert full.value.seconds > 0
    offer(lanes, "b", size=5000)  # alone, whatever its size
    with pytest.raises(Full, match="MB already wait"):
        offer(lanes, "b", size=1)


def test_who_went_away_is_forgotten() -> None:
    lanes = Lanes(threads=1)
    first, second = offer(lanes, "a", "a")
    lanes.forget("a", first)
    lanes.forget("a", first)
    lanes.forget("missing", first)
    found = lanes.take()
    assert found is not None and found[1] is second
    assert not lanes.waiting


def test_what_waits_too_long_is_given_back() -> None:
    lanes = Lanes(threads=0)
    works = offer(lanes, "a", "b")
    assert lanes.overdue(60) == []
    assert [work for _, work in lanes.overdue(-1)] == works
    assert not lanes.waiting
    assert lanes.lanes["a"].size == 0


@pytest.mark.fault("E13")
def test_a_rate_allows_a_burst_and_then_its_pace() -> None:
    bucket = Bucket(10)
    burst = int(10 * BURST_SECONDS)
    assert [bucket.take(1, 100.0) for _ in range(burst)] == [0.0] * burst
    assert bucket.take(1, 100.0) == pytest.approx(0.1)
    assert bucket.take(1, 100.05) == pytest.approx(0.05)
    assert bucket.take(1, 100.11) == 0.0
    assert bucket.take(1, 100.11) > 0


def test_what_is_larger_than_a_burst_passes_once_it_is_full() -> None:
    bucket = Bucket(10)
    assert bucket.take(1000, 100.0) == 0.0
    assert bucket.take(1, 101.0) > 90
