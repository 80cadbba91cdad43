"""The prompt cache: published vectors and the worked example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from compaction.cache.simulator import Breakpoint, CacheState, Request, advance
from compaction.cache.uses import Break, CacheUse
from compaction.prices.prices import Price, micros, nanos

SONNET = Price("claude-sonnet-5", 2000, 200, 2500, 4000, 10_000, "docs/sources.md", "2026-11-20")
MINUTE = 60_000


def at(offset: int, position: int | None = None, ttl: str = "5m") -> Breakpoint:
    return Breakpoint(offset, position, ttl)  # type: ignore[arg-type]


def send(*requests: Request) -> list[CacheUse]:
    state = CacheState()
    return [advance(state, request, SONNET) for request in requests]


def parts(use: CacheUse) -> tuple[int, int, int, int]:
    return use.read, use.write_5m, use.write_1h, use.uncached


def cause(use: CacheUse) -> str | None:
    return use.broken.cause if use.broken else None


def test_the_documented_look_back() -> None:
    """Entries after 10 and 15 blocks, then 35 blocks: 20 positions from 35 on end at 16."""
    first = Request(1, 1000, 0, (at(1000, 10),))
    second = Request(2, 1500, 1000, (at(1500, 15),))
    missed = send(first, second, Request(3, 3500, 1500, (at(3500, 35),)))[2]
    assert parts(missed) == (0, 3500, 0, 0)
    assert cause(missed) == "look_back"
    assert missed.broken and missed.broken.rewritten == 1500
    found = send(first, second, Request(3, 3500, 1500, (at(1500, 15), at(3500, 35))))[2]
    assert parts(found) == (1500, 2000, 0, 0)
    assert found.broken is None


@pytest.mark.parametrize(("position", "read"), [(34, 1500), (35, 0)])
def test_the_look_back_counts_the_breakpoint_itself(position: int, read: int) -> None:
    use = send(Request(1, 1500, 0, (at(1500, 15),)), Request(2, 3000, 1500, (at(3000, position),)))
    assert use[1].read == read


def test_mixed_ttls_are_billed_by_stretch() -> None:
    """Read to A, one-hour writes to B, five-minute writes to C, the rest uncached."""
    uses = send(
        Request(1, 3000, 0, (at(1000, ttl="1h"),)),
        Request(2, 5000, 3000, (at(1000, ttl="1h"), at(2000, ttl="1h"), at(4500))),
    )
    assert [parts(use) for use in uses] == [(0, 0, 1000, 2000), (1000, 2500, 1000, 500)]
    assert uses[1].cost == micros(1000 * 200 + 2500 * 2500 + 1000 * 4000 + 500 * 2000)


def test_the_longer_ttl_outlives_the_shorter() -> None:
    places = (at(1000, ttl="1h"), at(4000))
    uses = send(
        Request(1, 4000, 0, places, at=0),
        Request(2, 4000, 4000, places, at=6 * MINUTE),
    )
    assert parts(uses[1]) == (1000, 3000, 0, 0)
    assert uses[1].broken == Break("ttl", 3000, 6900, 6 * MINUTE, 5 * MINUTE, after=1000)
    assert str(uses[1].broken) == "TTL expired (idle 6 m 0 s)"


@pytest.mark.parametrize(("gap", "read"), [(5 * MINUTE, 4000), (5 * MINUTE + 1, 0)])
def test_a_ttl_counts_from_the_start_of_the_last_use(gap: int, read: int) -> None:
    places = (at(4000),)
    uses = send(
        Request(1, 4000, 0, places, at=0),
        Request(2, 4000, 4000, places, at=4 * MINUTE),
        Request(3, 4000, 4000, places, at=4 * MINUTE + gap),
    )
    assert [use.read for use in uses] == [0, 4000, read]


def test_reading_a_longer_prefix_keeps_the_shorter_warm() -> None:
    uses = send(
        Request(1, 2000, 0, (at(2000),), at=0),
        Request(2, 4000, 2000, (at(4000),), at=4 * MINUTE),
        Request(3, 4000, 4000, (at(4000),), at=8 * MINUTE),
        Request(4, 3000, 2500, (at(3000),), at=12 * MINUTE, changed="rewind", revision=3),
    )
    assert uses[3].read == 2000
    assert str(uses[3].broken) == "rewound at revision 3"


def test_below_the_minimum_nothing_is_cached() -> None:
    uses = send(
        Request(1, 1000, 0, (at(1000),), minimum=1024),
        Request(2, 1023, 1000, (at(1023),), minimum=1024),
        Request(3, 1024, 1023, (at(1024),), minimum=1024),
        Request(4, 2000, 1024, (at(2000),), minimum=1024),
    )
    assert [parts(use) for use in uses] == [
        (0, 0, 0, 1000),
        (0, 0, 0, 1023),
        (0, 1024, 0, 0),
        (1024, 976, 0, 0),
    ]
    assert [cause(use) for use in uses] == ["cold_start", "minimum", None, None]


def test_a_switch_of_models_and_back() -> None:
    def request(step: int, model: str, total: int, before: int) -> Request:
        return Request(step, total, before, (at(total),), model, at=step * 1000)

    uses = send(
        request(1, "opus", 4000, 0),
        request(2, "haiku", 5000, 4000),
        request(3, "opus", 6000, 5000),
    )
    assert [use.read for use in uses] == [0, 0, 4000]
    assert [cause(use) for use in uses] == ["cold_start", "model", "model"]
    assert [use.broken and use.broken.rewritten for use in uses] == [0, 4000, 1000]


@pytest.mark.parametrize(
    ("unchanged", "named"), [(500, "tools"), (1500, "system"), (2500, "edit"), (3500, "edit")]
)
def test_a_cut_is_named_by_its_layer(unchanged: int, named: str) -> None:
    places = (at(1000), at(2000), at(4000))
    use = send(
        Request(1, 4000, 0, places),
        Request(2, 4000, unchanged, places, tools=1000, system=2000, changed="edit", revision=7),
    )[1]
    assert cause(use) == named
    assert use.read == unchanged // 1000 * 1000 if unchanged < 3000 else 2000
    assert use.broken and use.broken.rewritten == 4000 - use.read


def test_an_edit_of_a_cold_cache_is_not_to_blame() -> None:
    use = send(
        Request(1, 4000, 0, (at(4000),), at=0),
        Request(2, 3000, 1000, (at(3000),), at=6 * MINUTE, changed="edit", revision=1),
    )[1]
    assert cause(use) == "ttl"


def test_a_volatile_tail_after_the_last_breakpoint_is_no_break() -> None:
    uses = send(
        Request(1, 5000, 0, (at(4000),)),
        Request(2, 6000, 4000, (at(5000),), appended=1000),
    )
    assert parts(uses[1]) == (4000, 1000, 0, 1000)
    assert uses[1].broken is None


@pytest.mark.parametrize(
    "request_",
    [
        Request(1, 100, 0, tuple(at(n) for n in (10, 20, 30, 40, 50))),
        Request(1, 100, 0, (at(10), at(20, ttl="1h"))),
        Request(1, 100, 0, (at(20), at(10))),
        Request(1, 100, 0, (at(101),)),
        Request(1, 100, 1),
    ],
)
def test_impossible_requests_are_refused(request_: Request) -> None:
    with pytest.raises(ValueError, match="breakpoint|prefix"):
        advance(CacheState(), request_)


@dataclass
class Example:
    """docs/sources.md, Worked cache example: 300 + 2,000 tokens a turn, stubs of 60."""

    turns: int
    batch: int = 0
    frontier: bool = False
    pause: int = 20_000

    def run(self) -> tuple[float, float, int]:
        state, gone, before, now = CacheState(), 0, 0, 0
        spent = read = prompt = peak = 0
        for turn in range(1, self.turns + 1):
            done, cut = turn - 1, before
            if self.batch and done - 5 - gone >= self.batch:
                cut = 12_150 + gone * 360 + 300
                gone = done - 5
            total = 12_150 + gone * 360 + (done - gone) * 2300
            places = [at(12_000, 1), at(total, 2 + 2 * done)]
            if self.frontier and gone:
                places.insert(1, at(12_150 + gone * 360, 2 + 2 * gone))
            now += self.pause if turn > 1 and (turn - 1) % 10 == 0 else 20_000
            use = advance(
                state,
                Request(turn, total, cut, tuple(places), at=now, minimum=1024, output=300),
                SONNET,
            )
            spent += nanos(use.usage, SONNET)
            read, prompt, peak = read + use.read, prompt + total, max(peak, total)
            before = total
        return round(spent / 1e9, 4), round(100 * read / prompt, 1), peak


@pytest.mark.parametrize(
    ("batch", "frontier", "dollars", "hit", "peak", "paused"),
    [
        (0, False, (0.3245, 0.8103, 2.3339), 97.6, 193_850, 3.9736),
        (1, False, (0.6703, 1.8018, 5.1448), 34.0, 50_290, None),
        (1, True, (0.5915, 1.3270, 2.8843), 68.4, 50_290, 3.2769),
        (5, False, (0.3508, 0.8225, 2.0511), 83.7, 58_050, 2.2443),
        (5, True, (0.3460, 0.7584, 1.6696), 88.9, 58_050, 2.0391),
        (10, True, (0.3348, 0.7499, 1.7656), 89.7, 65_950, None),
        (20, True, (0.3245, 0.7319, 1.6829), 93.6, 81_750, None),
    ],
)
def test_the_worked_example(
    batch: int,
    frontier: bool,
    dollars: tuple[float, ...],
    hit: float,
    peak: int,
    paused: float | None,
) -> None:
    runs = [Example(turns, batch, frontier).run() for turns in (20, 40, 80)]
    assert tuple(run[0] for run in runs) == dollars
    assert runs[2][1:] == (hit, peak)
    if paused is not None:
        assert Example(80, batch, frontier, pause=400_000).run()[0] == paused


@pytest.mark.parametrize(
    ("change", "read", "cause"),
    [
        ({}, 5000, None),
        ({"images": True}, 2000, "images"),
        ({"settings": "tool_choice none"}, 2000, "settings"),
        ({"toggles": "web search"}, 1000, "settings"),
        ({"toggles": "web search", "images": True}, 1000, "settings"),
    ],
)
def test_what_stands_beside_the_bytes_ends_a_layer(
    change: dict[str, Any], read: int, cause: str | None
) -> None:
    places = (at(1000, position=1), at(2000, position=2), at(5000, position=9))
    layers = {"tools": 1000, "system": 2000}
    uses = send(
        Request(1, 5000, 0, places, at=0, **layers),
        Request(2, 6000, 5000, (*places, at(6000, position=10)), at=MINUTE, **layers, **change),
        Request(3, 6000, 6000, (*places, at(6000, position=10)), at=MINUTE, **layers, **change),
    )
    assert uses[1].read == read
    assert (uses[1].broken.cause if uses[1].broken else None) == cause
    assert uses[2].read == 6000 and uses[2].broken is None
