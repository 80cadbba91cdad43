"""Lost facts that were needed again: one count on every page, in the API and the CLI."""

from __future__ import annotations

import json
import re
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from sessions.actions.accounts.teams import local_team
from sessions.actions.assessments.assess import assess_session
from sessions.actions.assessments.lost_facts import count_lost, keep_lost, lost_by_removal
from sessions.actions.record.append import append
from sessions.importers import records
from sessions.models import Assessment, FactLedger, Revision, Session
from tests.sessions.made import count, reads, result, says, session, user
from tests.sessions.pages import page_of, signed_in

pytestmark = pytest.mark.django_db

AT = 1_795_000_000_000


def removed(key: str, summary: str = "") -> list[records.Record]:
    """A compaction, with a summary or without."""
    made: list[records.Record] = [records.Compaction("auto", key=key)]
    if summary:
        text = {"type": "text", "text": summary}
        made.append(records.Message("user", [text], key=f"{key}s", kind="summary"))
    return made


def searches(call: str, pattern: str, found: str) -> list[records.Record]:
    """A search for a name, and its result."""
    asked = {"type": "tool_use", "id": f"t{call}", "name": "Grep", "input": {"pattern": pattern}}
    return [
        records.Message("assistant", [asked], key=f"a{call}", call=call),
        result(f"t{call}", found, key=f"b{call}"),
    ]


def losing(external_id: str = "s1") -> Session:
    """Two names are lost without a summary and one with, and all are used again; a fourth comes
    back in a person's words before it is used."""
    made = [
        user("Go.", key="u1"),
        reads("c1", "t1", "src/a.py", key="a1"),
        result("t1", "def first_lost(): second_lost()", key="b1"),
        says("c2", "Read.", key="k2"),
        *removed("x1"),
        user("On.", key="u3"),
        *searches("c3", "first_lost", "nothing there"),
        *searches("c4", "second_lost", "third_lost and fourth_lost"),
        says("c5", "Read.", key="k5"),
        *removed("x2", "Files were read."),
        user("On.", key="u6"),
        *searches("c6", "third_lost", "nothing there"),
        user("Look at fourth_lost again.", key="u7"),
        *searches("c7", "fourth_lost", "nothing there"),
        says("c8", "Done.", key="k8"),
    ]
    of = session(*made, external_id=external_id)
    found = append(local_team(), of, count, source="test").session
    Session.objects.filter(pk=found.pk).update(ended_at=AT)
    found.refresh_from_db()
    assess_session(found)
    return found


def facts_of(client: Client, found: Session) -> list[int]:
    """The count of each compaction's page."""
    many = []
    for revision in Revision.objects.filter(run__session=found).order_by("number"):
        page = page_of(client, f"/sessions/{found.pk}/revisions/recorded/{revision.number}/")
        (said,) = re.findall(r"(\d+) lost facts? (?:was|were) (?:needed|used) again", page.text)
        many.append(int(said))
        assert "Lost and needed again" in page.text
    return many


def test_every_place_counts_the_same() -> None:
    client, both = signed_in(), [losing(), losing("s2")]
    for found in both:
        assert facts_of(client, found) == [2, 1]
        answer = client.get(f"/api/v1/sessions/{found.pk}/verdict").json()
        assert answer["lost_facts"] == 3
        assert [(one["step"], one["lost_facts"]) for one in answer["lost"]] == [(3, 2), (6, 1)]
        assert (
            "3 lost facts were used again after the client's compaction, without"
            in answer["sentence"]
        )
        assert answer["lost"][0]["url"].endswith(f"/sessions/{found.pk}/revisions/recorded/1/")
        assert answer["sentence"] in page_of(client, f"/sessions/{found.pk}/").html
        out = StringIO()
        call_command("show", found.external_id, stdout=out)
        assert out.getvalue().splitlines()[-1] == answer["sentence"]
        out = StringIO()
        call_command("show", found.external_id, json=True, stdout=out)
        assert json.loads(out.getvalue())["lost_facts"] == 3
    tiles = client.get("/api/v1/dashboard?range=all").json()["tiles"]
    recall = next(one for one in tiles if one["name"] == "recall")
    numbers = {one["name"]: one["value"] for one in recall["numbers"]}
    assert (numbers["facts"], numbers["losing"]) == (6, 2)
    page = page_of(client, "/dashboard/?range=all")
    assert "6 lost facts were used again in 2 sessions (no extra cost found)." in " ".join(
        page.text.split()
    )


def test_a_later_look_at_a_ledger_counts_again() -> None:
    found = losing()
    FactLedger.objects.update(missed=5)
    keep_lost(found)
    assert Assessment.objects.get().lost_facts == 7
    Assessment.objects.update(needs=None, lost_facts=None)
    keep_lost(found)
    assert Assessment.objects.get().lost_facts is None, "nothing left the context"


def test_what_only_the_provider_can_read_is_unknown_and_going_back_loses_nothing() -> None:
    found = losing()
    run = found.runs.get(origin="recorded")
    FactLedger.objects.all().delete()
    run.revisions.update(trigger="rewind")
    assert count_lost(found, run, {}) == 0
    encrypted = {"type": "compaction", "encrypted_content": "R"}
    hidden = [
        user("Go.", key="u1"),
        reads("c1", "t1", "src/a.py", key="a1"),
        result("t1", "def first_lost(): second_lost()", key="b1"),
        says("c2", "Read.", key="k2"),
        records.Compaction("auto", key="x1"),
        records.Message("assistant", [encrypted], key="x1s", kind="summary"),
        *searches("c3", "first_lost", "nothing there"),
    ]
    other = append(local_team(), session(*hidden, external_id="s2"), count, source="test").session
    assess_session(other)
    assert Assessment.objects.get(session=other).lost_facts is None
    said = signed_in().get(f"/api/v1/sessions/{other.pk}/verdict").json()["sentence"]
    assert said.endswith("What the client's compaction lost is unknown: its summary is encrypted.")


def test_a_session_that_is_not_assessed_has_no_verdict() -> None:
    found = losing()
    Assessment.objects.all().delete()
    answer = signed_in().get(f"/api/v1/sessions/{found.pk}/verdict").json()
    assert answer == dict.fromkeys(answer) | {"detail": "", "lost": []}
    assert lost_by_removal(found) == []
