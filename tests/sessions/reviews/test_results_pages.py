"""What reviews found, and what is taken into the queue."""

from __future__ import annotations

import pytest

from sessions.actions.accounts import audit
from sessions.actions.reviews import review_rules
from sessions.actions.reviews.review_rules import Rules
from sessions.models import Review, ReviewItem, Team
from tests.sessions.pages import Page, page_of
from tests.sessions.reviewing import (
    browser,
    compaction,
    item,
    judge,
    member,
)
from tests.sessions.reviews.queue_pages import results

pytestmark = pytest.mark.django_db


def test_results_are_narrowed_and_nothing_matches_is_said(ours: Team):
    ann = member(ours)
    client = browser(ann)
    for name, verdict in (("1", "pass"), ("2", "fail"), ("3", "fail")):
        judge(item(ours, name), ann, verdict, note=f"note of {name}")
    ReviewItem.objects.filter(revision__run__session__external_id="3").update(reason="share")
    Review.objects.filter(note="note of 1").update(submitted="2026-01-01T00:00Z")
    ReviewItem.objects.filter(reviews__note="note of 1").update(finished="2026-01-01T00:00Z")
    narrowed = {
        "": ["note of 1", "note of 2", "note of 3"],
        "verdict=fail": ["note of 2", "note of 3"],
        "verdict=fail&reason=share": ["note of 3"],
        "range=7d": ["note of 2", "note of 3"],
        "range=today&reason=hand": ["note of 2"],
        "verdict=nonsense&from=x&policy=x&reason=x": ["note of 1", "note of 2", "note of 3"],
    }
    for query, expected in narrowed.items():
        assert results(page_of(client, f"/review/?{query}")) == expected, query
    nothing = page_of(client, "/review/?verdict=fix")
    assert "Nothing matches" in nothing.text and results(nothing) == []
    assert "Nothing matches" in page_of(client, f"/review/?policy={9 * 10**16}").text


def test_more_are_taken_by_hand(ours: Team):
    client = browser(member(ours))
    compaction(ours)
    assert "1 compaction added" in page_of(client, client.post("/review/more/").url).text
    assert "Nothing to add" in page_of(client, client.post("/review/more/").url).text


def test_a_compaction_is_added_from_its_page_and_its_results_stand_there(ours: Team):
    ann = member(ours)
    client, revision = browser(ann), compaction(ours)
    session = revision.run.session
    body = {"session": str(session.pk), "run": str(revision.run_id), "revision": "1"}
    back = client.post("/review/add/", body).url
    assert back == f"/sessions/{session.pk}/revisions/recorded/1/#reviews"
    one = ReviewItem.objects.get()
    assert (one.reason, one.added_by) == ("hand", ann)
    client.post("/review/add/", body)
    assert ReviewItem.objects.count() == 1
    for wrong in ({"revision": "9"}, {"revision": "x"}, {"run": "nothing"}, {"session": "\x00"}):
        assert client.post("/review/add/", {**body, **wrong}).status_code == 404
    revision.edits.update(summary=None)
    ReviewItem.objects.all().delete()
    assert client.post("/review/add/", body).status_code == 404


def test_rules_are_tried_kept_and_refused_beside_their_field(ours: Team):
    client = browser(member(ours, "eve", "editor"))
    compaction(ours, score=100)
    address = "/review/rules/"
    page = page_of(client, address)
    assert "The rules as they are would have picked 1 of the last 1 compaction" in page.text
    tried = "share=0&low_score=5&double=0&minutes=30"
    page = page_of(client, f"{address}?csrfmiddlewaretoken=x&{tried}")
    assert "These rules would have picked 0 of the last 1 compaction" in page.text
    assert "not saved yet" in page.text and review_rules.rules_of(ours) == Rules()
    saved = client.post(address, dict(pair.split("=") for pair in tried.split("&")))
    assert "Saved" in page_of(client, saved.url).text
    assert review_rules.rules_of(ours) == Rules(0, 5, False, 0, 30)
    wrong = client.post(address, {"share": "200", "low_score": "5", "double": "0", "minutes": "1"})
    page = Page(wrong.content.decode())
    assert wrong.status_code == 400 and "from 0 to 100" in page.text
    assert 'value="200"' in page.html and review_rules.rules_of(ours).share == 0
    missing = client.post(address, {"share": "", "low_score": "5", "double": "x", "minutes": "1"})
    assert missing.content.decode().count("Enter a whole number.") == 2
    assert browser(member(ours)).get(address).status_code == 403


def test_the_api_tells_and_adds(ours: Team):
    ann = member(ours)
    client = browser(ann)
    first, second = item(ours, "1"), item(ours, "2")
    judge(first, ann)
    compaction(ours, "3")
    added = client.post(
        "/api/v1/reviews",
        {"session": "3", "run": "recorded", "revision": 1},
        "application/json",
    )
    assert added.status_code == 201 and added.json()["reason"] == "hand"
    page = client.get("/api/v1/reviews?limit=2").json()
    assert [one["session"] for one in page["reviews"]] == ["3", "2"]
    rest = client.get(f"/api/v1/reviews?limit=2&after={page['next']}").json()
    assert [one["session"] for one in rest["reviews"]] == ["1"] and rest["next"] is None
    assert rest["reviews"][0]["reviews"][0]["verdict"] == "pass"
    done = client.get("/api/v1/reviews?finished=true").json()["reviews"]
    assert [one["id"] for one in done] == [str(first.pk)]
    waits = client.get("/api/v1/reviews?finished=false").json()["reviews"]
    assert str(second.pk) in [one["id"] for one in waits] and len(waits) == 2
    gone = client.post("/api/v1/reviews", {"session": "3", "revision": 1}, "application/json")
    assert gone.status_code == 404, "it has no managed run"
    assert audit.AuditEntry.objects.filter(action="review.submitted").count() == 1
