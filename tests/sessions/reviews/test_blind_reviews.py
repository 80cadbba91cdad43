"""Double reviews are blind: no route reveals the first review before both are submitted."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from sessions.models import Review, ReviewItem
from tests.sessions.programs import Program
from tests.sessions.reviewing import judge, judgement, member
from tests.sessions.web.addresses import PRIVATE
from tests.sessions.web.world import browser_of, by_browser, by_program

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

SECRET, FOUND = "a-note-of-ann", "what-ann-found"
SHOWN = [address for address in PRIVATE if address.method == "GET"]


@pytest.fixture
def one(world: dict[str, Any], program: Program) -> ReviewItem:
    """A double review that Ann has submitted."""
    one = ReviewItem.objects.get(pk=world["item_id"])
    ReviewItem.objects.filter(pk=one.pk).update(wanted=2)
    ann = member(program.team, "ann")
    judge(one, ann, "fail", note=SECRET, goal=1, marks={f"+{FOUND}": "lost"})
    return one


def reported(body: bytes) -> bool:
    """Whether a response contains Ann's review."""
    return SECRET.encode() in body or FOUND.encode() in body


@pytest.mark.parametrize("role", ["owner", "editor", "reviewer", "viewer"])
def test_no_page_and_no_address_tells_it_to_anybody(
    one: ReviewItem, world: dict[str, Any], program: Program, role: str
):
    client = browser_of(program.team, role)
    for address in SHOWN:
        answer = by_browser(client, address, world)
        assert not reported(b"".join(answer)), address


def test_no_address_tells_it_to_a_program(one: ReviewItem, world: dict[str, Any], program: Program):
    for address in SHOWN:
        if address.is_api:
            assert not reported(by_program(program, address, world).getvalue()), address
    assert program.get(f"/reviews/{one.pk}")["reviews"] == []


def test_who_said_it_reads_it_and_nothing_else(one: ReviewItem, program: Program):
    ann, bob = User.objects.get(username="ann"), member(program.team, "bob")
    own = browser_of(program.team, "viewer")
    own.force_login(ann)
    (only,) = own.get(f"/api/v1/reviews/{one.pk}").json()["reviews"]
    assert (only["reviewer"], only["note"], only["verdict"]) == ("ann", SECRET, "fail")
    judge(one, bob, "pass", note="a note of bob")
    both = own.get(f"/api/v1/reviews/{one.pk}").json()["reviews"]
    assert [review["reviewer"] for review in both] == ["ann", "bob"]


def test_when_both_have_everybody_reads_it(
    one: ReviewItem, world: dict[str, Any], program: Program
):
    judge(one, member(program.team, "bob"))
    client = browser_of(program.team, "viewer")
    for address in ("/review/", f"/review/items/{one.pk}/", f"/api/v1/reviews/{one.pk}"):
        assert reported(client.get(address).content), address
    found = program.get(f"/reviews/{one.pk}")
    assert found["finished"] and [review["verdict"] for review in found["reviews"]] == [
        "fail", "pass",
    ]  # fmt: skip


def test_a_reservation_shows_nothing(one: ReviewItem, program: Program):
    """Neither does a review that was started and skipped."""
    bob = member(program.team, "bob")
    client = browser_of(program.team, "reviewer")
    client.force_login(bob)
    assert not reported(client.get(f"/review/items/{one.pk}/").content)
    assert client.post(f"/review/items/{one.pk}/skip/", b"{}", "application/json").json()
    assert not reported(client.get("/review/").content)
    assert Review.objects.filter(item=one, submitted__isnull=False).count() == 1


def test_a_review_that_is_refused_opens_nothing(one: ReviewItem, program: Program):
    bob = member(program.team, "bob")
    client = browser_of(program.team, "reviewer")
    client.force_login(bob)
    body = {"scores": judgement().scores, "verdict": ""}
    answer = client.post(f"/review/items/{one.pk}/submit/", body, "application/json")
    assert answer.status_code == 409 and answer.json()["field"] == "verdict"
    assert not reported(client.get(f"/review/items/{one.pk}/").content)
