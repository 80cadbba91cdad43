"""The sentence on top of a compaction, case by case, and on its page."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.losses.loss_cost import LossCost
from sessions.actions.reviews.compaction_verdicts import (
    RemovalFacts,
    is_missed,
    removal_verdict,
)
from sessions.actions.reviews.fact_ledgers import keep_ledger
from sessions.actions.web.verdicts import listed
from tests.sessions.made import reads, result, says
from tests.sessions.pages import page_of, signed_in
from tests.sessions.reviews.test_fact_ledgers import stored, talk

SIGNS = {"reread": 3, "repeat": 1, "error": 0, "correction": 1}


def judged(**known: Any) -> tuple[str, str]:
    found = removal_verdict(RemovalFacts(**{"step": 90, "watched": 99, "until": 139, **known}))
    return found.tone, found.sentence


@pytest.mark.parametrize(
    ("known", "tone", "sentence"),
    [
        ({"needed": [93]}, "bad", "1 lost fact was needed again at step 93."),
        (
            {"needed": [93, 112, 112]},
            "bad",
            "3 lost facts were needed again, first at step 93.",
        ),
        (
            {"needed": [93], "simulated": True},
            "bad",
            "1 lost fact is needed again at step 93.",
        ),
        ({"needed": [93], "lacking": True}, "bad", "1 lost fact was needed again at step 93."),
        (
            {"needed": [93], "cost": LossCost((), 0)},
            "neutral",
            "1 lost fact was used again at step 93, without a repair (no extra cost found).",
        ),
        (
            {"needed": [93, 95], "cost": LossCost((), 0), "simulated": True},
            "bad",
            "2 lost facts are needed again, first at step 93.",
        ),
        ({"needed": []}, "good", "Nothing that it lost was needed again up to step 139."),
        (
            {"needed": [], "simulated": True, "files": 2, "signs": SIGNS},
            "good",
            "Nothing that it lost is needed again up to step 139.",
        ),
        (
            {"needed": [], "files": 2, "signs": SIGNS},
            "neutral",
            "No lost fact was needed again, but 3 reads of 2 files repeated, 1 call repeated and 1 "
            "correction by the user.",
        ),
        (
            {"unreadable": True},
            "neutral",
            "What it lost is unknown: its summary is encrypted.",
        ),
        (
            {"unreadable": True, "files": 2, "signs": SIGNS},
            "neutral",
            "What it lost is unknown: its summary is encrypted, but then: 3 reads of 2 files "
            "repeated, 1 call repeated and 1 correction by the user.",
        ),
        (
            {"needed": [], "lacking": True},
            "neutral",
            "What it lost is unknown: the log lacks most of the text it replaced.",
        ),
        ({"needed": [], "watched": 89}, "neutral", "No model call came after it."),
        ({"signs": {"reread": 1}, "files": 1}, "neutral", "1 read of 1 file repeated."),
        ({}, "good", "Nothing that it removed was read or repeated up to step 99."),
        ({"simulated": True}, "neutral", "No summary was written, so no fact was compared."),
    ],
)
def test_the_sentence_says_first_whether_something_lost_was_needed(
    known: dict[str, Any], tone: str, sentence: str
) -> None:
    assert judged(**known) == (tone, sentence)


@pytest.mark.parametrize(
    ("known", "detail"),
    [
        ({"needed": [93]}, ""),
        (
            {"needed": [93], "files": 2, "signs": SIGNS, "cost": LossCost((91, 93, 95), 840_000)},
            "By step 99: 3 reads of 2 files repeated, 1 call repeated and 1 correction by the "
            "user. The loss cost ≈$0.84: 3 calls made because of it, cache breaks not included.",
        ),
        (
            {"needed": [], "files": 2, "signs": SIGNS, "cost": LossCost((91, 93, 95), 840_000)},
            "The loss cost ≈$0.84: 3 calls made because of it, cache breaks not included.",
        ),
        ({"files": 2, "signs": SIGNS, "cost": LossCost((91,), None, at_least=True)}, ""),
        ({"rewrite_cost": 66_980}, "The cache break cost $0.067."),
        (
            {"rewrite_cost": 66_980, "rewritten": 11_753, "payback": 1},
            "The cache break cost $0.067 (11.8k tokens), paid back after 1 step.",
        ),
        (
            {"rewrite_cost": 66_980, "rewritten": 940, "payback": 12, "simulated": True},
            "The cache break cost $0.067 (940 tokens), paid back after 12 steps.",
        ),
    ],
)
def test_the_detail_says_what_followed_and_what_it_cost(known: dict[str, Any], detail: str) -> None:
    found = removal_verdict(RemovalFacts(**{"step": 90, "watched": 99, "until": 139, **known}))
    assert found.detail == detail


def test_a_list_reads_as_a_sentence() -> None:
    assert [listed(["a", "b", "c"][:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]


@pytest.mark.django_db
def test_the_page_starts_with_it_and_each_missed_fact_leads_to_why() -> None:
    later = (
        reads("c3", "t3", "src/lost.py", key="a3"),
        result("t3", "again", key="b3"),
        says("c4", "done", key="a4"),
    )
    found, revision = stored(talk(*later, summary="Nothing of note."))
    for kept in (False, True):  # computed on the fly, then as stored
        if kept:
            keep_ledger(found, revision)
        page = page_of(signed_in(), f"/sessions/{found.pk}/revisions/recorded/1/")
        free = "1 lost fact was used again at step 3, without a repair (no extra cost found)."
        assert free in page.text
        assert '<section class="panel event-verdict bad"' in page.markup
        assert "Lost and needed again" in page.text
        rows = [line for line in page.text.splitlines() if "src/lost.py" in line]
        assert rows
        asked = "text=src%2Flost.py&run=recorded&step=3"
        assert page.links["Why?"] == f"/sessions/{found.pk}/why/?{asked}"
        assert "Weak: too much was removed; 1 lost fact" in page.text
        assert " targets for a good compaction met; missed: " in page.text
        assert page.links["What would have kept it"] == f"{page.links['Why?']}#policies"
        assert page.links["Try settings in the lab"] == f"/lab/?by=hand&ids={found.pk}"
    assert page_of(signed_in(), page.links["Why?"]).title.startswith("Why did it forget?")


@pytest.mark.parametrize("state", ["kept", "retrievable", "unsupported", "lost"])
def test_only_lost_facts_that_a_call_named_are_missed(state: str) -> None:
    assert is_missed({"state": state, "needed": 93}) == (state == "lost")
    assert not is_missed({"state": state, "needed": None})
