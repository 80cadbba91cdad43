"""The prompt cache: laws that hold for any session."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from compaction.cache.simulator import CacheState, Request, advance
from tests.compaction.cache.test_cache import MINUTE, SONNET, at, parts, send


@st.composite
def conversations(draw: st.DrawFn) -> list[Request]:
    requests: list[Request] = []
    total = now = 0
    for step in range(1, draw(st.integers(1, 25)) + 1):
        unchanged = total if draw(st.booleans()) else draw(st.integers(0, total))
        total = unchanged + draw(st.integers(1, 5000))
        now += draw(st.sampled_from([1000, 4 * MINUTE, 6 * MINUTE, 70 * MINUTE]))
        offsets = sorted(draw(st.sets(st.integers(1, total), max_size=4)))
        hours = draw(st.integers(0, len(offsets)))
        places = tuple(
            at(offset, offset // 200, "1h" if place < hours else "5m")
            for place, offset in enumerate(offsets)
        )
        model = draw(st.sampled_from(["a", "a", "a", "b"]))
        requests.append(Request(step, total, unchanged, places, model, now, minimum=500))
    return requests


@given(conversations())
def test_every_token_is_paid_once_and_only_what_stood_is_read(requests: list[Request]) -> None:
    for request, use in zip(requests, send(*requests), strict=True):
        assert use.prompt == request.total
        assert min(parts(use)) >= 0
        assert use.read <= request.unchanged
        assert use.broken is None or 0 <= use.broken.rewritten <= request.total - use.read


@given(conversations(), st.integers(0, 25))
def test_folding_is_incremental(requests: list[Request], cut: int) -> None:
    state = CacheState()
    first = [advance(state, request, SONNET) for request in requests[:cut]]
    kept = copy.deepcopy(state)
    rest = [advance(kept, request, SONNET) for request in requests[cut:]]
    assert first + rest == send(*requests)


@given(conversations())
def test_a_longer_ttl_never_reads_less(requests: list[Request]) -> None:
    def with_ttl(ttl: str) -> int:
        state, read = CacheState(), 0
        for r in requests:
            places = tuple(p._replace(ttl=ttl, position=None) for p in r.breakpoints)
            request = Request(r.step, r.total, r.unchanged, places, "m", r.at)
            read += advance(state, request).read
        return read

    assert with_ttl("5m") <= with_ttl("1h")


def test_after_many_steps_all_but_what_is_new_is_read() -> None:
    state = CacheState()
    for step in range(1, 20_001):
        total = step * 1000
        use = advance(
            state,
            Request(step, total, total - 1000, (at(12, 1), at(total, step * 2)), at=step * 1000),
            SONNET,
        )
        assert (use.read, use.write_5m) == (total - 1000, 1000)
