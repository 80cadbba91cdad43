"""A run compared with the recorded session: layouts against brute force, costs, payback."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.cache.economy import TTLSetting
from compaction.cache.uses import CacheUse
from compaction.context.blocks import Block
from compaction.context.edits import context_at
from compaction.context.session import Call, Session, Usage
from compaction.policies.policy import Policy, Step
from compaction.prices.prices import Price, micros
from compaction.simulation.layout import HIDDEN_BLOCKS, managed, recorded
from compaction.simulation.run import Terms, estimate_cache, payback_steps, simulate_cache, terms_of
from compaction.simulation.simulate import Run, simulate
from compaction.strategies.offload import Offload

SONNET = Price("claude-sonnet-5", 2000, 200, 2500, 4000, 10_000, "docs/sources.md", "2026-11-20")
HIDDEN = 12_000


def block(position: int, born: int, role: str, form: str, tokens: int, pair: str | None) -> Block:
    return Block(
        id=f"b{position}",
        position=position,
        message=position,
        born=born,
        turn=1,
        role=role,  # type: ignore[arg-type]
        type=form,  # type: ignore[arg-type]
        kind="result" if form == "tool_result" else "user",
        tokens=tokens,
        chars=tokens * 4,
        sha=f"{position:08x}",
        text=f"line_{position} " * (tokens // 2),
        call=f"c{born}" if role == "assistant" else None,
        tool_call=pair,
        tool="Read" if pair else None,
    )


def conversation(steps: int, sizes: list[int], seconds: int = 20) -> Session:
    """A user message, then a call of 300 tokens and its result per step."""
    blocks = [block(0, 1, "user", "text", 150, None)]
    for step in range(1, steps):
        size = sizes[step % len(sizes)]
        blocks.append(block(len(blocks), step + 1, "assistant", "tool_use", 300, f"t{step}"))
        blocks.append(block(len(blocks), step + 1, "tool", "tool_result", size, f"t{step}"))
    calls = tuple(Call(step, "m", step * seconds * 1000) for step in range(1, steps + 1))
    return Session(tuple(blocks), calls, "m", 1_000_000, HIDDEN)


def run(session: Session, age: int = 5, batch: int = 5, inputs: bool = False) -> Run:
    offload = Offload(age=age, batch=batch, inputs=inputs)
    policy = Policy("test", steps=(Step("offload", offload),))
    return simulate(session, policy, lambda text: max(len(text) // 4, 1))


NOTHING = Policy("nothing")


def plain(session: Session) -> Run:
    return simulate(session, NOTHING, len)


@settings(max_examples=40)
@given(
    st.integers(1, 25),
    st.lists(st.integers(1, 3000), min_size=1, max_size=5),
    st.integers(1, 6),
    st.integers(1, 4),
    st.booleans(),
)
def test_layouts_are_those_of_the_contexts(
    steps: int, sizes: list[int], age: int, batch: int, inputs: bool
) -> None:
    made = run(conversation(steps, sizes), age, batch, inputs)
    before: list[Block] = []
    for layout, alone in zip(managed(made), recorded(made), strict=True):
        now = list(context_at(made.entries, layout.step.step).values())
        assert layout.total == layout.prelude + sum(b.tokens for b in now)
        assert layout.blocks == HIDDEN_BLOCKS + len(now)
        stubs = [place for place, b in enumerate(now, 1) if b.replaces is not None]
        if stubs:
            standing = sum(b.tokens for b in now[: stubs[-1]])
            assert layout.frontier == (layout.prelude + standing, HIDDEN_BLOCKS + stubs[-1])
        else:
            assert layout.frontier == (0, 0)
        if before:
            new = [b for b in now if b.position > before[-1].position]
            assert layout.appended == sum(b.tokens for b in new)
        assert alone.total + layout.step.added >= layout.total
        assert alone.total - alone.unchanged == alone.appended
        before = now


@settings(max_examples=30)
@given(st.integers(1, 25), st.lists(st.integers(1, 3000), min_size=1, max_size=5), st.booleans())
def test_every_prompt_is_accounted_for(steps: int, sizes: list[int], frontier: bool) -> None:
    session = conversation(steps, sizes)
    made = run(session, 2, 2)
    judged = simulate_cache(made, session.calls, Terms(SONNET, frontier=frontier))
    assert [use.prompt for use in judged.uses] == [
        made.hidden + step.added + step.total for step in made.steps
    ]
    for use, step in zip(judged.uses[1:], made.steps[1:], strict=True):
        assert use.read <= made.hidden + step.added + step.unchanged_prefix
    assert 0 <= judged.cache_read_share <= 1
    assert judged.cost == pytest.approx(sum(use.cost or 0 for use in judged.uses), abs=steps)
    assert all(use.basis == "simulated" for use in (*judged.uses, *judged.recorded))


def test_without_edits_both_sides_are_the_same() -> None:
    session = conversation(30, [2000])
    judged = simulate_cache(plain(session), session.calls, Terms(SONNET))
    assert judged.uses == judged.recorded
    assert judged.cost == judged.recorded_cost
    assert judged.revisions == ()
    assert all(use.broken is None for use in judged.uses[1:])


def test_a_recorded_session_costs_what_the_worked_example_says() -> None:
    """docs/sources.md: results that never leave, 20 turns, outputs of 300 tokens: $0.3245."""
    session = conversation(21, [2000])
    twenty = Session(session.blocks[:-2], session.calls[:20], "m", 1_000_000, HIDDEN)
    judged = simulate_cache(plain(twenty), twenty.calls, Terms(SONNET))
    last_output = 300 * 10_000  # nothing after the last call shows what it wrote
    assert judged.cost is not None
    assert judged.cost + micros(last_output) == pytest.approx(324_500, abs=50)


def test_long_sessions_pay_back() -> None:
    for steps, cheaper in ((15, False), (80, True)):
        session = conversation(steps, [2000])
        judged = simulate_cache(run(session), session.calls, Terms(SONNET))
        assert judged.cost is not None and judged.recorded_cost is not None
        assert (judged.cost < judged.recorded_cost) == cheaper
        assert judged.prompt_cost is not None and judged.prompt_cost < judged.cost
    first, last = judged.revisions[0], judged.revisions[-1]
    assert first.paid and not last.paid
    assert first.rewritten > 0 and first.cleared > 0 and first.cost
    assert first.remaining + first.step == 80


def test_an_edit_of_a_cold_cache_is_free() -> None:
    session = conversation(40, [2000], seconds=400)
    judged = simulate_cache(run(session), session.calls, Terms(SONNET))
    assert {(p.rewritten, p.cost, p.steps) for p in judged.revisions} == {(0, 0, 0)}
    hour = simulate_cache(run(session), session.calls, Terms(SONNET, ttl="1h"))
    assert all(p.rewritten for p in hour.revisions)


def test_without_a_price_there_are_tokens_and_no_dollars() -> None:
    session = conversation(30, [2000])
    judged = simulate_cache(run(session), session.calls)
    assert (judged.cost, judged.recorded_cost, judged.prompt_cost) == (None, None, None)
    assert judged.cache_read_share > 0.5
    assert all(p.cost is None and p.rewritten for p in judged.revisions)


def test_more_than_twenty_blocks_in_a_step_need_the_steady_breakpoint() -> None:
    blocks = [block(0, 1, "user", "text", 5000, None)]
    for n in range(30):
        blocks.append(block(1 + n, 2, "user", "text", 100, None))
    session = Session(tuple(blocks), (Call(1, "m", 0), Call(2, "m", 1000)), "m", 10**6, HIDDEN)
    steady, missed = (
        simulate_cache(plain(session), session.calls, Terms(SONNET, steady=steady))
        for steady in (True, False)
    )
    assert steady.uses[1].read == HIDDEN + 5000
    assert missed.uses[1].read == HIDDEN
    assert missed.uses[1].broken and missed.uses[1].broken.cause == "look_back"


@pytest.mark.parametrize(
    ("cleared", "rewritten", "price", "steps"),
    [
        (10_000, 12_200, SONNET, 15),  # docs/sources.md, Payback: 1.22 x 11.5 is over 14
        (10_000, 0, None, 0),
        (0, 10, SONNET, None),
        (-5, 0, SONNET, None),
        (10_000, 12_200, None, None),
    ],
)
def test_payback(cleared: int, rewritten: int, price: Price | None, steps: int | None) -> None:
    use = CacheUse(1, "simulated", 0, 100, 0, 0)
    assert payback_steps(cleared, rewritten, use, price) == steps


def test_estimates_say_so_and_take_reported_output() -> None:
    session = conversation(3, [2000])
    calls = tuple(Call(c.step, c.model, c.at, Usage(output=77)) for c in session.calls)
    uses = estimate_cache(plain(session), calls, Terms(SONNET))
    assert {use.basis for use in uses} == {"estimated"}
    assert {use.output for use in uses} == {77}


def test_terms_are_those_the_session_shows() -> None:
    calls = (Call(1, "m", 0, Usage(cache_write_5m=5, cache_write_1h=6)), Call(2, "m", 0))
    found = terms_of(Session((), calls, "claude-opus-4-6", 200_000))
    assert (found.ttl, found.minimum, found.price and found.price.input) == ("1h", 4096, 5000)
    unknown = terms_of(Session((), (), "unknown-model", 200_000))
    assert (unknown.ttl, unknown.minimum, unknown.price) == ("5m", 1024, None)
    assert terms_of(Session((), calls, "m", 1), "5m").ttl == "5m"


def test_a_long_run_accounts_for_every_token_of_every_step() -> None:
    session = conversation(4000, [60])
    made = run(session, 5, 1)
    uses = simulate_cache(made, session.calls, Terms(SONNET)).uses
    assert [use.prompt for use in uses] == [
        step.total + made.hidden + step.added for step in made.steps
    ]


@pytest.mark.parametrize(
    ("ttl", "long", "short", "after"),
    [
        ("recorded", 1, 0, 1),
        ("1h", 1, 0, 1),
        ("5m", 0, 1, 0),
        ("mixed", HIDDEN, 1, HIDDEN),
    ],
)
def test_a_policy_says_how_long_its_entries_live(
    ttl: TTLSetting, long: int, short: int, after: int
) -> None:
    """What its first call writes for an hour and for five minutes, and what a call after a pause of
    six minutes still reads: at least 1, nothing, or the hidden prompt alone."""
    session = conversation(4, [2_000], seconds=360)
    made = simulate(session, Policy("p", ttl=ttl), len)
    judged = simulate_cache(made, session.calls, Terms(SONNET, ttl="1h"))
    first, second = judged.uses[:2]
    for found, said in ((first.write_1h, long), (first.write_5m, short), (second.read, after)):
        assert found == said if said in (0, HIDDEN) else found >= said
    # The session itself stays as it was recorded.
    assert all(use.write_5m == 0 for use in judged.recorded)


@pytest.mark.parametrize("name", ["gpt-5", "gemini-3-pro"])
def test_where_a_provider_keeps_what_it_pleases_no_ttl_changes_anything(name: str) -> None:
    session = replace(conversation(8, [2_000], seconds=120), model=name)
    terms = terms_of(session)
    costs = {
        simulate_cache(simulate(session, Policy("p", ttl=ttl), len), (), terms).cost
        for ttl in get_args(TTLSetting)
    }
    assert terms.rules != "anthropic"
    assert len(costs) == 1
