"""Responses that took several requests: one prompt each, and the cost of all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.context.iterations import packed, unpacked
from compaction.context.session import MOST_TOKENS, Iteration, Usage
from sessions.actions.accounts.teams import local_team
from sessions.actions.imports.verified import verify_log
from sessions.actions.live.reports import report_call
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.importers.decoded import NotALog
from sessions.importers.delivered.delivered import Unacceptable
from sessions.importers.reported import anthropic_usage
from sessions.models import Session
from sessions.models.record.model_calls import calls_of
from sessions.models.record.tail import figures, stored
from tests.sessions.importers.claude_lines import log_of, responded, said, session_of
from tests.sessions.made import count

MODEL, ADVISOR = "claude-opus-4-5", "claude-fable-5"


def asked(
    uncached: int, read: int, written: int, output: int, form: str = "message", **more: Any
) -> dict[str, Any]:
    return {
        "type": form,
        "input_tokens": uncached,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": written},
        "output_tokens": output,
        **more,
    }


ADVISED = {
    **asked(4, 120_000, 3_000, 300),
    "iterations": [
        asked(2, 59_000, 2_000, 100),
        asked(50_000, 0, 0, 2_000, "advisor_message", model=ADVISOR),
        asked(2, 61_000, 1_000, 200),
    ],
}
"""Opus answers, asks an advisor, and goes on: prompts of 61,002, 50,000 and 62,002 tokens."""

ADVISED_MICROUSD = (
    # Opus 4.5 at $5, $0.50, $6.25 and $25 per million tokens, the advisor at $10 and $50.
    (4 * 5_000 + 120_000 * 500 + 3_000 * 6_250 + 300 * 25_000 + 50_000 * 10_000 + 2_000 * 50_000)
    // 1_000
)


def test_a_prompt_is_that_of_the_largest_request_of_the_model() -> None:
    usage = anthropic_usage(ADVISED).usage
    assert usage is not None
    assert (usage.prompt, usage.cache_read, usage.output) == (62_002, 61_000, 300)
    assert (usage.opening.prompt, usage.closing.prompt) == (61_002, 62_002)
    assert usage.billed == Usage(50_004, 120_000, 3_000, 0, 2_300)
    assert [one.model for one in usage.iterations] == ["", ADVISOR, ""]


def test_a_fallback_is_answered_by_the_last_model() -> None:
    raw = {
        **asked(2, 54_000, 0, 100),
        "iterations": [
            asked(2, 32_000, 22_000, 2, model=ADVISOR),
            asked(2, 54_000, 0, 100, "fallback_message", model=MODEL),
        ],
    }
    usage = anthropic_usage(raw).usage
    assert usage is not None
    assert (usage.prompt, usage.output) == (54_002, 100)
    assert [one.model for one in usage.iterations] == [ADVISOR, ""]


def test_one_iteration_is_the_response_itself() -> None:
    raw = {**asked(2, 54_000, 0, 100), "iterations": [asked(2, 54_000, 0, 100)]}
    usage = anthropic_usage(raw).usage
    assert usage == Usage(2, 54_000, 0, 0, 100)


def test_the_stored_form_is_read_back_and_checked() -> None:
    usage = anthropic_usage(ADVISED).usage
    assert usage is not None
    assert unpacked(packed(usage)) == usage.iterations
    assert packed(Usage(1)) is None
    assert unpacked('[["m",[1,2,3,4,5,6]]]') == (Iteration(Usage(1, 2, 3, 4, 5, 6), "m"),)
    for bad in ('[["m",[1]]]', '[["m",[1,2,3,4,5,true]]]', f'[["m",[{2**62},0,0,0,0,0]]]', "{"):
        with pytest.raises(ValueError):
            unpacked(bad)


def advised_lines() -> list[dict[str, Any]]:
    plain = asked(2, 50_000, 9_000, 100)
    return [
        said("u1", None),
        responded("a1", "u1", "m1", usage=plain, stop_reason="end_turn"),
        said("u2", "a1"),
        responded("a2", "u2", "m2", usage=ADVISED, stop_reason="end_turn"),
    ]


@pytest.mark.django_db
def test_an_import_has_the_peak_of_one_request_and_the_cost_of_all() -> None:
    session = append(local_team(), session_of(*advised_lines()), count, source="test").session
    measure(session)
    session.refresh_from_db()
    assert (session.peak_tokens, session.window) == (62_002, 200_000)
    one, two = session.calls.order_by("step")
    assert two.cost_microusd == ADVISED_MICROUSD
    assert session.cost_microusd == one.cost_microusd + ADVISED_MICROUSD
    assert session.uncached_tokens == 2 + 50_004
    assert session.cache_read_tokens == 50_000 + 120_000
    steps = figures(stored(session.runs.get())).steps
    sent = sum(sum(filter(None, steps[name])) for name in ("prompt", "beside"))
    read = sum(sum(filter(None, steps[name])) for name in ("read", "beside_read"))
    assert read / sent == session.cache_read_share, "the list and the replay show one share"
    assert session.break_count == 0


@pytest.mark.django_db
def test_a_second_reader_agrees() -> None:
    data = "\n".join(map(json.dumps, advised_lines())).encode()
    found = verify_log(data, "s.jsonl", count)
    assert found.differences == []
    assert found.prompt_tokens == 59_002 + 62_002


@pytest.mark.django_db
def test_a_report_of_a_live_agent_has_the_cost_of_all() -> None:
    session = append(local_team(), session_of(*advised_lines()[:2]), count, source="api").session
    call = report_call(session, {"step": 1, "model": MODEL, "usage": ADVISED})
    assert (call.cost_microusd, call.cache_read) == (ADVISED_MICROUSD, 61_000)
    (stored,) = calls_of(session)
    assert stored.usage == anthropic_usage(ADVISED).usage


@pytest.mark.parametrize("tokens", [2**62, MOST_TOKENS + 1])
def test_a_count_that_no_call_can_have_is_refused(tokens: int) -> None:
    lines = [
        said("u1", None),
        responded("a1", "u1", "m1", usage=asked(tokens, 0, 0, 1), stop_reason="end_turn"),
    ]
    with pytest.raises(NotALog, match=f"counts {tokens:,} tokens"):
        log_of(*lines)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "usage",
    [
        {"input_tokens": 2**62, "output_tokens": 1},
        {"input_tokens": MOST_TOKENS, "cache_read_input_tokens": MOST_TOKENS},
        {"prompt_tokens": 1, "completion_tokens": 2**40},
        {**asked(1, 0, 0, 1), "iterations": [asked(1, 0, 0, 1), asked(2**40, 0, 0, 1)]},
    ],
)
def test_a_report_that_no_call_can_have_is_refused(usage: dict[str, Any]) -> None:
    session = append(local_team(), session_of(*advised_lines()[:2]), count, source="api").session
    with pytest.raises(Unacceptable, match="counts more than"):
        report_call(session, {"step": 1, "usage": usage})


@pytest.mark.django_db
def test_the_largest_counts_add_up() -> None:
    session = append(local_team(), session_of(*advised_lines()[:2]), count, source="api").session
    report_call(session, {"step": 1, "model": MODEL, "usage": asked(MOST_TOKENS, 0, 0, 1)})
    measure(session)
    stored = Session.objects.get(pk=session.pk)
    assert (stored.uncached_tokens, stored.peak_tokens) == (MOST_TOKENS, MOST_TOKENS)
