"""The verdict on a draft while it is tuned, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.actions.lab.draft_verdicts import draft_verdict
from sessions.actions.policies.bounds import defaults
from tests.sessions.lab.test_simulation_verdicts import recorded, side


def judged(draft: dict[str, Any], *, over: bool = True, same: str = "") -> dict[str, Any]:
    steps = {"steps": 10}
    return draft_verdict(
        draft | steps,
        side(read_backs_microusd=10_000) | steps,
        recorded(200_000, 0.5),
        (4, 4 if over else 9),
        defaults(),
        active_name=same,
        over=over,
    )


@pytest.mark.parametrize(
    ("draft", "tone", "propose"),
    [
        (side(88_000, 0.812), "good", True),
        (side(96_000, 0.79), "neutral", True),
        (side(110_000, 0.7), "bad", False),
        (side(88_000, 0.70), "bad", False),
        (side(150_000, 0.9), "bad", False),
    ],
)
def test_a_draft_is_proposed_unless_it_is_worse_or_breaks_the_guardrail(draft, tone, propose):
    found = judged(draft)
    assert (found["tone"], found["propose"]) == (tone, propose)


def test_a_broken_guardrail_is_named_first():
    assert judged(side(88_000, 0.70))["detail"].startswith(
        "Breaks the guardrail. Recall in context: 70.0 %, at least 75 % allowed."
    )


def test_nothing_is_proposed_before_all_sessions_are_through():
    found = judged(side(88_000, 0.812), over=False)
    assert (found["tone"], found["propose"]) == ("neutral", False)
    assert found["sentence"].startswith("So far, 4 of 9 sessions.")


def test_an_unchanged_draft_is_named():
    found = judged(side(), same="balanced@4")
    assert found == {
        "tone": "neutral",
        "sentence": "Same as balanced@4, the active policy. Move a setting to try a change.",
        "detail": "Recorded: $0.20, 50.0 % recall. "
        "Active, reading back included: $0.11, 80.0 % recall.",
        "propose": False,
    }
