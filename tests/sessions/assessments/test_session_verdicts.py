"""The sentence on top of a session, case by case, and on its page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions.actions.accounts.teams import local_team
from sessions.actions.assessments.assessments import keep_assessment, outdate
from sessions.actions.assessments.session_verdicts import (
    Missed,
    session_verdict,
    verdict_on_session,
)
from sessions.actions.live.live_sessions import SessionFields, put_session
from sessions.models import Assessment, FactLedger, Session
from tests.sessions.made import says, user
from tests.sessions.pages import page_of, signed_in
from tests.sessions.replay.test_revision_page import compacted, stored

_COMPACTION = "/sessions/{}/revisions/recorded/1/"


def props(of: Session) -> dict[str, Any]:
    """The props of the replay."""
    html = page_of(signed_in(), f"/sessions/{of.pk}/").html
    data = html.split('<script id="replay-props" type="application/json">')[1]
    return dict(json.loads(data.split("</script>")[0]))


@pytest.mark.parametrize(
    ("known", "tone", "sentence"),
    [
        (
            (31_400_000, 2_940_000, Missed(10), None),
            "bad",
            "Cost $31.40, ≈$2.94 (9 %) avoidable. 10 lost facts were needed again after the "
            "client's edits.",
        ),
        (
            (31_400_000, 1_000_000, Missed(0), None),
            "good",
            "Cost $31.40, ≈$1.00 (3 %) avoidable. No fact that the client's edits lost was needed "
            "again.",
        ),
        (
            (31_400_000, 1_570_000, None, None),
            "bad",
            "Cost $31.40, ≈$1.57 (5 %) avoidable. Nothing is known to have left the context.",
        ),
        (
            (31_400_000, 0, None, None),
            "good",
            "Cost $31.40, nothing avoidable. Nothing is known to have left the context.",
        ),
        (
            (31_400_000, None, None, None),
            "neutral",
            "Cost $31.40. Nothing is known to have left the context.",
        ),
        (
            (None, None, Missed(1), None),
            "bad",
            "Cost unknown. 1 lost fact was needed again after the client's edits.",
        ),
        (
            (0, 0, Missed(0), None),
            "good",
            "Cost $0, nothing avoidable. No fact that the client's edits lost was needed again.",
        ),
    ],
)
def test_a_session_says_its_cost_and_what_it_lost(known: Any, tone: str, sentence: str) -> None:
    found = session_verdict(*known, by="the client's edits")
    assert (found.tone, found.sentence, found.detail) == (tone, sentence, "")


def test_it_names_its_policy_bounds_and_its_losses() -> None:
    found = session_verdict(2_000_000, 0, Missed(2), 840_000, by="its policy", at_least=True)
    assert found.sentence == (
        "Cost at least $2.00, ≈$0.84 (42 %) avoidable. 2 lost facts were needed again after "
        "its policy."
    )
    again = "losses ≈$0.84 (calls made because text had left the context, and what came again)"
    assert found.detail == f"Avoidable: {again}."
    found = session_verdict(2_000_000, 200_000, Missed(2), 840_000, by="its policy")
    assert "≈$1.04 (52 %) avoidable." in found.sentence
    assert found.detail == f"Avoidable: cache breaks $0.20, {again}."


@pytest.mark.parametrize(
    ("missed", "tone", "sentence"),
    [
        (Missed(None), "neutral", "What its policy lost is unknown: its summary is encrypted."),
        (
            Missed(1),
            "neutral",
            "1 lost fact was used again after its policy, without a repair (no extra cost found).",
        ),
        (
            Missed(3),
            "neutral",
            "3 lost facts were used again after its policy, without a repair (no extra cost found"
            ").",
        ),
        (Missed(0), "good", "No fact that its policy lost was needed again."),
        (
            Missed(0, tested=False),
            "neutral",
            "No step followed its last compaction, so nothing that it lost can have been missed.",
        ),
    ],
)
def test_ledgers_say_what_was_lost(missed: Missed, tone: str, sentence: str) -> None:
    found = session_verdict(9, 0, missed, 0, by="its policy")
    assert (found.tone, found.sentence) == (tone, f"Cost $0.000009, nothing avoidable. {sentence}")


@pytest.mark.django_db
def test_the_replay_opens_with_it_and_reads_two_rows_for_it(django_assert_num_queries: Any) -> None:
    found = stored(compacted(says("c3", "src/f1.py and so on", key="z")))
    assert "verdict" not in props(found), "not assessed yet"
    keep_assessment(found)
    with django_assert_num_queries(2):
        verdict = verdict_on_session(found, managed=False)
    assert verdict is not None
    assert (
        verdict.sentence
        == "Cost unknown. No fact that the client's compaction lost was needed again."
    )
    assert props(found)["verdict"]["sentence"] == verdict.sentence
    outdate(found)
    assert "verdict" not in props(found), "assessed by other rules"


@pytest.mark.django_db
def test_it_names_who_lost_a_fact() -> None:
    found = stored(compacted(says("c3", "src/f1.py and so on", key="z")))
    keep_assessment(found)
    Assessment.objects.update(needs=2, lost=1, lost_facts=2)
    revision = found.runs.get(origin="recorded").revisions.get()
    ledger = {"missed": 2, "looked_until": 9}
    FactLedger.objects.update_or_create(revision=revision, defaults=ledger)
    said = []
    for managed, compactions in ((False, 1), (False, 0), (True, 1)):
        found.compaction_count = compactions
        verdict = verdict_on_session(found, managed=managed)
        assert verdict is not None
        said.append(verdict.sentence.removeprefix("Cost unknown. "))
        assert dict(verdict.proofs) == {
            "2 lost facts were used again": _COMPACTION.format(found.pk)
        }
    # Where contexts are ours, too, the agent may compact its own history.
    by = ("the client's compaction", "the client's edits", "the client's compaction")
    free = "without a repair (no extra cost found)."
    assert said == [f"2 lost facts were used again after {one}, {free}" for one in by]
    found.runs.filter(origin="recorded").update(origin="managed")
    verdict = verdict_on_session(found, managed=True)
    assert verdict is not None and verdict.sentence.endswith(f"after its policy, {free}")


@pytest.mark.django_db
def test_a_session_that_goes_on_has_none() -> None:
    found = stored([user("Go.", key="u"), says("c1", "yes", key="k")], external_id="live")
    Session.objects.update(source="api")
    keep_assessment(found)
    found.refresh_from_db()
    assert verdict_on_session(found, managed=False) is None
    put_session(local_team(), "live", SessionFields(outcome="succeeded"))
    found.refresh_from_db()
    assert verdict_on_session(found, managed=False) is not None


def test_text_can_be_brought_back_that_holds_no_fact_of_a_ledger() -> None:
    found = session_verdict(31_400_000, 0, Missed(0), 600_000, by="the client's edits")
    assert found.sentence == (
        "Cost $31.40, ≈$0.60 (2 %) avoidable. No single fact that the client's edits lost was "
        "needed again, but calls brought back its text."
    )
