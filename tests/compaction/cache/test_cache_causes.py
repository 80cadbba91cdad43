"""Every cause of a break says what to do and where it was."""

from __future__ import annotations

from typing import get_args

import pytest

from compaction.cache.causes import (
    ADVICE,
    advice,
    detail,
    is_avoidable,
    sentence,
    title,
    why_ttl_stays,
)
from compaction.cache.uses import Break, Cause


def test_every_cause_has_a_title_and_one_sentence_of_advice() -> None:
    assert set(ADVICE) == set(get_args(Cause))
    for cause in get_args(Cause):
        assert str(Break(cause)) and advice(cause).endswith(".")


def test_the_place_is_given_where_it_is_known() -> None:
    assert (
        detail(Break("tools", 5000))
        == "5,000 tokens were paid again although they had been cached."
    )
    assert detail(Break("edit", 5000, after=1200)) == (
        "5,000 tokens were written again after the edit, after the first 1,200, which could still "
        "be read."
    )
    assert detail(Break("model", 5000, after=0)).endswith("no part of the prompt could be read.")


@pytest.mark.parametrize(
    ("broken", "cost", "edit", "said"),
    [
        (
            Break("ttl", 62_026, idle=587_000),
            "≈+$0.21",
            "",
            "TTL expired (idle 9 m 47 s): 62,026 tokens written again (≈+$0.21), avoidable.",
        ),
        (
            Break("edit", 5_000, revision=3),
            "",
            "",
            "Context edited at revision 3: 5,000 tokens written again, avoidable.",
        ),
        (
            Break("edit", 5_000, revision=3),
            "",
            "automatic compaction by Claude Code",
            "Automatic compaction by Claude Code: 5,000 tokens written again, not avoidable.",
        ),
        (
            Break("edit", 5_000, revision=3),
            "",
            "",
            "Context edited at revision 3: 5,000 tokens written again, avoidable.",
        ),
        # Only edits are named after the revision.
        (
            Break("rewind", 5_000, revision=3),
            "",
            "automatic compaction by pi",
            "Rewound at revision 3: 5,000 tokens written again, not avoidable.",
        ),
        (
            Break("restart", 5_000, guess=True),
            "",
            "",
            "Client restarted, probably: 5,000 tokens written again, avoidable.",
        ),
        (Break("unexplained", 7), "≈+$1", "", "Unexplained: 7 tokens written again (≈+$1)."),
    ],
)
def test_a_break_is_said_in_one_sentence(broken: Break, cost: str, edit: str, said: str) -> None:
    assert sentence(broken, cost, edit) == said


def test_what_a_product_edits_is_not_blamed_on_a_revision_or_on_batches() -> None:
    broken = Break("edit", 5_000, revision=3)
    assert title(broken, "compaction by pi") == "compaction by pi"
    assert "batches" not in advice("edit", "compaction by pi")
    assert title(broken) == "context edited at revision 3"
    assert "batches" in advice("edit")
    assert advice("rewind", "compaction by pi") == advice("rewind")


HOUR, FIVE = 3_600_000, 300_000


@pytest.mark.parametrize(
    ("idle", "ttl", "hour_saved", "why"),
    [
        (HOUR, FIVE, 1, ""),
        (None, FIVE, 1, ""),
        (HOUR + 1, FIVE, 1, "no TTL keeps a cache for 1 h 0 m"),
        (10 * HOUR + 51 * 60_000, FIVE, 1, "no TTL keeps a cache for 10 h"),
        (HOUR + 9_000, HOUR, 1, "no TTL keeps a cache for 1 h 0 m"),
        (HOUR, 600_000, 1, "no five-minute TTL was requested"),
        (HOUR, None, 1, "no five-minute TTL was requested"),
        (HOUR, FIVE, 0, "an hour's TTL would have cost more in this session"),
        (HOUR, FIVE, -1, "an hour's TTL would have cost more in this session"),
        (HOUR, FIVE, None, "an hour's TTL is not known to cost less in this session"),
    ],
)
def test_an_expired_ttl_is_avoidable_only_if_an_hour_keeps_it_and_pays(
    idle: int | None, ttl: int | None, hour_saved: int | None, why: str
) -> None:
    assert why_ttl_stays(idle, ttl, hour_saved) == why


def test_no_ttl_keeps_what_an_edit_removes_at_the_same_step() -> None:
    why = "the context was edited at this step, and no TTL keeps what left it"
    assert why_ttl_stays(HOUR, FIVE, 1, cut=True) == why


def test_an_edit_by_the_agents_product_is_not_avoidable() -> None:
    assert is_avoidable("edit")
    assert not is_avoidable("edit", "compaction by pi")
