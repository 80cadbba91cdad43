"""What waits on the dashboard, and what is still being assessed."""

from __future__ import annotations

from html import unescape

import pytest
from django.test import Client

from sessions.actions.accounts.teams import local_team
from sessions.models import (
    Approval,
    Assessment,
    Budget,
    FactLedger,
    Job,
    ReviewItem,
    Revision,
    Run,
    Session,
    Use,
)
from tests.sessions.dashboard.broken import made
from tests.sessions.pages import page_of, signed_in
from tests.sessions.reviews.queued import rank_again

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.fixture
def client() -> Client:
    return signed_in()


def test_what_waits_is_named_on_top_and_nothing_is_said(client: Client) -> None:
    made({})
    assert "Nothing needs you now" in page_of(client, "/dashboard/").text
    for used, more in (
        (850, {"title": "near"}), (850, {"outcome": "succeeded"}), (700, {"title": "roomy"}),
        (None, {}),
    ):  # fmt: skip
        made({}, source="api", window=1000, peak_tokens=950, used_tokens=used, **more)
    made({}, window=1000, used_tokens=900)
    made({}, source="api", window=1000, used_tokens=900, demo=True)
    page = page_of(client, "/dashboard/")
    found = " ".join(unescape(page.text).split())
    assert "Needs you now “near” is near its limit Its next prompt fills 85 % of its room." in found
    assert page.links["Open"] == f"/sessions/{Session.objects.get(title='near').pk}/"
    Session.objects.filter(title="near").update(used_tokens=100, paused={"by": "a"})
    found = " ".join(unescape(page_of(client, "/dashboard/").text).split())
    assert "“near” is paused Its agent waits" in found
    assert "“roomy” is" not in found
    Job.objects.create(team=local_team(), kind="import", state="failed")
    assert "1 job failed In the last 24 hours." in page_of(client, "/dashboard/").text


def test_a_demo_approval_does_not_wait_beside_real_sessions(client: Client) -> None:
    actor = made({}, demo=True)
    use = Use.objects.create(budget=Budget.objects.create(team=local_team(), scope="task"), key="k")
    Approval.objects.create(use=use, session=actor, tokens=1, microusd=1)
    assert "1 call waits for approval" in page_of(client, "/dashboard/").text
    made({})
    assert "waits for approval" not in page_of(client, "/dashboard/").text


def test_avoidable_spend_of_sessions_that_are_not_assessed_is_not_nothing(client: Client) -> None:
    def said() -> str:
        found = " ".join(page_of(client, "/dashboard/").text.split())
        return found.partition("Avoidable spend ")[2]

    one, other = made({}), made({})
    assert said().startswith("unknown No session in this range has been assessed yet.")
    columns = {"uncached_microusd": 1, "avoidable_microusd": 0}
    Assessment.objects.create(session=one, **columns)
    Session.objects.update(tallied_version=-1)
    assert said().startswith("unknown 1 of 2 sessions assessed so far")
    Assessment.objects.create(session=other, **columns)
    Session.objects.update(tallied_version=-1)
    assert said().startswith("$0 0 % of spend")


def test_what_is_being_assessed_is_not_called_clear(client: Client) -> None:
    one, other = made({}), made({})
    job = Job.objects.create(team=local_team(), kind="assess")
    run = Run.objects.get(session=one)
    revision = Revision.objects.create(run=run, number=3, step=2)
    page = page_of(client, "/dashboard/")
    assert "Assessing 2 sessions… Fixes, recall and reviews follow." in page.text
    assert "Known when 2 sessions of this range are assessed." in page.text
    assert (
        "Nothing needs you now" not in page.text and 'hx-trigger="moved, every 4s"' in page.markup
    )
    job.delete()
    page = page_of(client, "/dashboard/")
    assert "Nothing needs you now" in page.text and "Nothing to fix in this range" in page.text
    ReviewItem.objects.create(team=local_team(), revision=revision, wanted=1, reason="hand")
    page = page_of(client, "/dashboard/")
    assert "1 compaction waits for review" in page.text
    assert page.links[f"Step 2, {one}"] == f"/sessions/{one.pk}/revisions/recorded/3/"
    worse = Revision.objects.create(run=Run.objects.get(session=other), number=1, step=9)
    FactLedger.objects.create(revision=worse, missed=2)
    ReviewItem.objects.create(team=local_team(), revision=worse, wanted=1, reason="hand")
    rank_again(local_team())
    page = page_of(client, "/dashboard/")
    worst = f"Step 9, {other}"
    said = f"{worst} 2 lost facts were needed again Step 2, {one}"
    assert f"2 compactions wait for review The worst: {said}" in page.text
    assert page.links[worst] == f"/sessions/{other.pk}/revisions/recorded/1/"
    paid = {"microusd": 870_000, "at_least": False}
    FactLedger.objects.create(revision=revision, after=paid, missed=1)
    rank_again(local_team())
    first = f"Step 2, {one} ≈$0.87, 1 lost fact was needed again"
    page = page_of(client, "/dashboard/")
    assert f"The worst: {first} {worst}" in page.text, "what is known to cost comes first"
