"""OpenAI's automatic cache: each rule, and runs that are priced by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.cache.automatic import AutomaticState, advance, whole_steps
from compaction.cache.providers.openai import EARLY
from compaction.cache.rules import rules_of
from compaction.cache.simulator import Request
from compaction.cache.uses import Cause
from compaction.context.session import Call, Session
from compaction.policies.policy import Policy, Step
from compaction.prices.prices import Price
from compaction.simulation.run import Terms, simulate_cache, terms_of
from compaction.simulation.simulate import Run, simulate
from compaction.strategies.offload import Offload
from tests.build import coding, rough

MINUTE = 60_000
GPT = Price("gpt-5", 1250, 125, 1250, 1250, 10_000, "docs/sources.md", "2026-11-20")


def send(*requests: Request) -> list[tuple[int, int, Cause | None]]:
    """(read, uncached, cause of a break) of requests sent one after the other."""
    state = AutomaticState()
    uses = [advance(state, request, GPT) for request in requests]
    return [(use.read, use.uncached, use.broken and use.broken.cause) for use in uses]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("tokens", "read"), [(0, 0), (1023, 0), (1024, 1024), (1151, 1024), (1152, 1152)]
)
def test_a_prefix_counts_from_1024_in_steps_of_128(tokens: int, read: int) -> None:
    assert whole_steps(tokens) == read


def test_what_stood_before_is_read_and_the_rest_is_fresh() -> None:
    assert send(Request(1, 2000, 0), Request(2, 3000, 2000), Request(3, 3100, 3000)) == [
        (0, 2000, "cold_start"),
        (1920, 1080, None),
        (2944, 156, None),
    ]


def test_writing_has_no_price() -> None:
    state = AutomaticState()
    advance(state, Request(1, 2000, 0), GPT)
    use = advance(state, Request(2, 3000, 2000, output=10), GPT)
    assert (use.write_5m, use.write_1h) == (0, 0)
    assert use.cost == (1920 * 125 + 1080 * 1250 + 10 * 10_000) // 1000


def test_a_short_prompt_is_never_cached() -> None:
    assert send(Request(1, 500, 0), Request(2, 900, 500), Request(3, 1500, 900)) == [
        (0, 500, "cold_start"),
        (0, 900, "minimum"),
        (0, 1500, None),
    ]


def test_an_edit_leaves_what_stood_before_it() -> None:
    last = Request(2, 4000, 1500, changed="edit", revision=7)
    assert send(Request(1, 4000, 0), last)[1] == (1408, 2592, "edit")
    state = AutomaticState()
    advance(state, Request(1, 4000, 0), GPT)
    broken = advance(state, last, GPT).broken
    assert broken is not None and (broken.revision, broken.rewritten) == (7, 2560)
    assert broken.cost == 2560 * (1250 - 125) // 1000


def test_cuts_in_tools_and_system_are_named() -> None:
    first = Request(1, 4000, 0)
    assert send(first, Request(2, 4000, 10, tools=2000, system=3000))[1][2] == "tools"
    assert send(first, Request(2, 4000, 2500, tools=2000, system=3000))[1][2] == "system"


def test_ten_minutes_without_use_end_it() -> None:
    first = Request(1, 4000, 0, at=0)
    assert send(first, Request(2, 4100, 4000, at=EARLY.ttl))[1] == (3968, 132, None)
    assert send(first, Request(2, 4100, 4000, at=EARLY.ttl + 1))[1] == (0, 4100, "ttl")


def test_models_have_caches_of_their_own() -> None:
    assert send(
        Request(1, 4000, 0, model="a"),
        Request(2, 4100, 4000, model="b"),
        Request(3, 4200, 4100, model="a"),
    ) == [(0, 4000, "cold_start"), (0, 4100, "model"), (3968, 232, "model")]


def test_an_impossible_prefix_is_refused() -> None:
    with pytest.raises(ValueError, match="unchanged"):
        advance(AutomaticState(), Request(1, 10, 11))


@given(st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 9000), st.integers(0, 10**6))))
def test_every_token_is_accounted_for(calls: list[tuple[int, int, int]]) -> None:
    state, at, before = AutomaticState(), 0, 0
    for step, (total, unchanged, later) in enumerate(calls, 1):
        unchanged, at = min(total, unchanged, before), at + later
        use = advance(state, Request(step, total, unchanged, at=at), GPT)
        assert use.prompt == total and 0 <= use.read <= unchanged and use.read % 128 == 0
        assert use.broken is None or 0 <= use.broken.rewritten <= use.uncached
        before = total


@pytest.mark.parametrize(
    ("model", "rules"),
    [
        ("claude-opus-5-5", "anthropic"),
        ("us.anthropic.claude-sonnet-4-v1:0", "anthropic"),
        ("gpt-5.3-codex-spark", "openai"),
        ("openai/gpt-5", "openai"),
        ("o3", "openai"),
        ("o4-mini", "openai"),
        ("codex-mini-latest", "openai"),
        ("gemini-2.5-pro", "gemini"),
        ("google/gemini-3-flash", "gemini"),
        ("deepseek-chat", "prefix"),
        ("oasis-1", "unknown"),
        ("", "unknown"),
    ],
)
def test_the_name_of_a_model_tells_whose_rules_hold(model: str, rules: str) -> None:
    assert rules_of(model) == rules


def test_terms_follow_the_model_of_the_session() -> None:
    calls = (Call(1, "gpt-5", 0),)
    terms = terms_of(Session((), calls, "gpt-5", 1))
    assert terms.rules == "openai" and terms.price is not None
    unknown = terms_of(Session((), calls, "oasis-1", 1))
    assert unknown.rules == "unknown" and unknown.price is None


def edited(session: Session) -> Run:
    return simulate(session, Policy("test", steps=(Step("offload", Offload()),)), rough)


def test_a_run_is_sent_by_openais_rules() -> None:
    session = coding(200)
    run = edited(session)
    found = simulate_cache(run, session.calls, Terms(GPT, rules="openai"))
    assert run.revisions and len(found.uses) == len(run.steps)
    for use, step in zip(found.uses, run.steps, strict=True):
        assert use.prompt == step.total + run.hidden + step.added and use.read % 128 == 0
        assert use.write_5m == use.write_1h == 0
    assert {use.broken.cause for use in found.recorded if use.broken} <= {"cold_start", "minimum"}
    assert any(use.broken and use.broken.cause == "edit" for use in found.uses)
    assert all(payback.cost is not None for payback in found.revisions)


def test_without_rules_nothing_is_claimed() -> None:
    session = coding(100)
    found = simulate_cache(edited(session), session.calls, Terms(rules="unknown"))
    assert found.cost is None and found.recorded_cost is None and found.cache_read_share is None
    assert found.uses == found.recorded == found.revisions == ()


def test_models_that_price_writing_write_all_that_is_not_read() -> None:
    state = AutomaticState()
    first = advance(state, Request(1, 20_000, 0, model="gpt-5.6-sol", at=0))
    assert (first.read, first.write_5m, first.uncached) == (0, 20_000, 0)
    second = advance(state, Request(2, 21_000, 20_000, model="gpt-5.6-sol", at=20 * MINUTE))
    assert (second.read, second.write_5m) == (19_200, 1_800)
    assert second.confidence == "best-effort" and second.broken is None
    late = advance(state, Request(3, 21_000, 21_000, model="gpt-5.6-sol", at=51 * MINUTE))
    assert late.read == 0 and late.broken and late.broken.cause == "ttl"


def test_gemini_reads_whole_steps_from_its_minimum_on() -> None:
    state = AutomaticState("gemini")
    model = "gemini-3-flash"
    advance(state, Request(1, 4_000, 0, model=model))
    assert advance(state, Request(2, 9_000, 4_000, model=model)).read == 0
    # The second step is read once 1,220 tokens follow it.
    assert advance(state, Request(3, 9_500, 9_000, model=model)).read == 4_096
    use = advance(state, Request(4, 9_600, 9_500, model=model))
    assert (use.read, use.uncached, use.confidence) == (8_192, 1_408, "best-effort")


def test_a_provider_without_a_cache_has_every_token_fresh() -> None:
    state = AutomaticState("none")
    for step, total in enumerate((5_000, 6_000), 1):
        use = advance(state, Request(step, total, min(5_000, state.total)), GPT)
        assert (use.read, use.uncached, use.broken) == (0, total, None)
        assert use.confidence == "guaranteed" and use.cost is not None


def test_the_last_image_takes_the_messages_with_it() -> None:
    state = AutomaticState()
    advance(state, Request(1, 20_000, 0, system=4_096, images=True))
    use = advance(state, Request(2, 21_000, 20_000, system=4_096))
    assert use.read == 4_096 and use.broken and use.broken.cause == "images"


def test_who_lists_no_price_for_reading_again_has_no_cache() -> None:
    def rules(model: str) -> str:
        return terms_of(Session((), (Call(1, model, 0),), model, 1)).rules

    assert rules("deepseek-chat") == "prefix"
    assert rules("codestral-latest") == "none"
    assert rules("gemini-2.5-pro") == "gemini"
