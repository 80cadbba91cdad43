"""The review queue's pages, and the reviewer page's requests."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sessions.actions.reviews import reviews
from sessions.actions.reviews.after_effects import AfterEffects, Sign
from sessions.actions.reviews.reservations import take
from sessions.models import Block, FactLedger, Review, ReviewItem, Session, Team
from tests.sessions.pages import page_of
from tests.sessions.reviewing import (
    FACTS,
    SCORES,
    browser,
    item,
    judge,
    member,
)
from tests.sessions.reviews.queue_pages import WHOLE, props, send, shown
from tests.sessions.reviews.queued import rank_again

pytestmark = pytest.mark.django_db


def test_nothing_yet_and_all_done_are_two_states(ours: Team):
    ann = member(ours)
    client = browser(ann)
    assert "Nothing to review yet" in page_of(client, "/review/").text
    one = item(ours)
    page = page_of(client, "/review/")
    assert "Open for you 1" in page.text and "By hand 1" in page.text
    assert page.links["Start s"] == "/review/next/"
    judge(one, ann)
    page = page_of(client, "/review/")
    assert "All done." in page.text and "Nothing to review yet" not in page.text
    assert "Done today 1 by you, 1 by the team" in page.text
    assert "unknown: fewer than 5 double reviews (0)" in page.text
    assert client.get("/review/next/").url == "/review/"


def test_the_list_says_what_waits_and_why_the_needed_and_lost_first(ours: Team):
    old, lost = item(ours, "old"), item(ours, "lost")
    FactLedger.objects.filter(revision=old.revision).delete()
    ledger = FactLedger.objects.get(revision=lost.revision)
    ledger.after_effects = 3
    ledger.facts = [{**ledger.facts[0], "state": "lost", "needed": 9}]
    ledger.save()
    rank_again(ours)
    reader = browser(member(ours, role="viewer"))
    page = page_of(reader, "/review/")
    assert page.html.find(f"/review/items/{lost.pk}/") < page.html.find(f"/review/items/{old.pk}/")
    cells = re.findall(
        r'data-name="(?:reason|lost facts needed again|after-effects)">'
        r"\s*([^<]*?)\s*</td>",
        page.html,
    )
    assert cells == ["by hand", "1", "3", "by hand", "unknown", "unknown"]
    ReviewItem.objects.update(reason=ReviewItem.Reason.AFTER_EFFECTS)
    found = re.findall(
        reason := r'data-name="reason">\s*([^<]*?)\s*</td>', page_of(reader, "/review/").html
    )
    assert found == ["lost facts needed again"] * 2
    ledger.facts = []
    ledger.save()
    found = re.findall(reason, page_of(reader, "/review/").html)
    assert sorted(" ".join(one.split()) for one in found) == [
        "agent repeated work",
        "lost facts needed again",
    ], "as the columns say"
    assert not Review.objects.exists(), "looking reserves nothing"


def test_the_list_begins_with_what_cost_most(ours: Team):
    costs: dict[str, dict[str, Any]] = {
        "cheap": {"microusd": 90_000, "at_least": False},
        "dear": {"microusd": 1_100_000, "at_least": True},
        "unknown": {},
    }
    for name, after in costs.items():
        one = item(ours, name)
        missed = 9 if name == "unknown" else 0
        FactLedger.objects.filter(revision=one.revision).update(
            after=after, after_effects=2, missed=missed
        )
    rank_again(ours)
    page = page_of(browser(member(ours)), "/review/")
    cells = re.findall(r'data-name="cost of the loss">([^<]*)</td>', page.html)
    assert cells == ["≥ $1.10", "≈$0.090", "unknown"]


def test_of_many_that_wait_the_worst_are_listed(ours: Team, monkeypatch: pytest.MonkeyPatch):
    kept, left = item(ours, "cheap"), item(ours, "dear")
    kept, left = sorted((kept, left), key=lambda one: one.created)
    rank_again(ours)
    reader = browser(member(ours))
    assert "are listed" not in page_of(reader, "/review/").text
    monkeypatch.setattr("sessions.views.reviews.reviews.LISTED", 1)
    page = page_of(reader, "/review/")
    assert "Waiting 2 the worst 1 are listed" in page.text
    assert f"/review/items/{kept.pk}/" in page.html
    assert f"/review/items/{left.pk}/" not in page.html


def test_a_viewer_is_marked_read_only(ours: Team):
    client = browser(member(ours, role="viewer"))
    assert "Import sessions" not in page_of(client, "/review/").links
    item(ours)
    page = page_of(client, "/review/")
    assert "Open 1" in page.text and "You can look at everything here." in page.text
    assert "for you" not in page.text and "Start s" not in page.links


def test_what_was_missed_later_leads_into_the_replay(ours: Team, monkeypatch: pytest.MonkeyPatch):
    one, client = item(ours), browser(member(ours))
    read = Block.objects.filter(type="tool_use").order_by("position")[0]
    found = AfterEffects(3, 3, (Sign("reread", read, 3, read),))
    monkeypatch.setattr(
        "sessions.views.reviews.review_original.after_effects", lambda session, revision: found
    )
    missed = shown(client, one)["missed"]
    assert (missed["said"], missed["all"]) == ("1 read of 1 file repeated", 1)
    assert missed["signs"][0]["what"] == "File read again"
    assert missed["signs"][0]["url"] == f"/sessions/{read.session_id}/steps/{read.born}/?m=2"


def test_what_one_skipped_or_waits_for_is_said(ours: Team):
    ann = member(ours)
    client = browser(ann)
    skipped, half = item(ours, "1"), item(ours, "2", wanted=2)
    reviews.skip(skipped, ann)
    judge(half, ann)
    page = page_of(client, "/review/")
    assert "1 that you judged waits for another reviewer." in page.text
    assert "You skipped 1." in page.text
    assert client.post("/review/skipped/").url == "/review/next/"
    assert client.get("/review/next/").url == f"/review/items/{skipped.pk}/"


def test_the_next_is_reserved_and_stays_until_it_is_left(ours: Team):
    ann, bob = member(ours), member(ours, "bob")
    one, client = item(ours), browser(ann)
    address = client.get("/review/next/").url
    assert address == f"/review/items/{one.pk}/"
    found = shown(client, one)
    assert (found["mode"], found["seconds"]) == ("judge", None)
    assert shown(browser(bob), one)["mode"] == "judge", "to look at it reserves nothing"
    assert 1190 <= send(client, one, "renew", {}).json()["seconds"] <= 1200
    found = shown(client, one)
    assert 1190 <= found["seconds"] <= 1200
    assert "Reserved for you until" in page_of(client, "/review/").text
    other = shown(browser(bob), one)
    assert (other["mode"], other["seconds"]) == ("look", None)
    assert "Someone else" in other["why"]
    assert send(browser(bob), one, "renew", {}).status_code == 409
    held = send(client, one, "renew", {}).json()
    assert send(client, one, "release", {"until": found["until"]}).json() == {}
    assert shown(browser(bob), one)["mode"] == "look", "it was held longer since"
    for until in ("", "tomorrow", "2026-01-01T00:00:00"):
        assert send(client, one, "release", {"until": until}).status_code == 200
    assert shown(browser(bob), one)["mode"] == "look"
    send(client, one, "release", {"until": held["until"]})
    assert shown(browser(bob), one)["mode"] == "judge"


def test_a_page_holds_what_was_replaced_the_summary_and_the_ledger(ours: Team):
    one, client = item(ours), browser(member(ours))
    found = shown(client, one)
    assert [block["name"] for block in found["blocks"]] == ["1", "2", "3", "4", "5"]
    assert [block["kind"] for block in found["blocks"][:3]] == ["user", "assistant", "file"]
    part = {"title": "", "text": "So far of s1: src/f1.py, port 8765."}
    assert found["summaries"][0]["parts"] == [part]
    assert [size["tokens"] for size in found["sizes"]] == [999, 99]
    assert (found["missed"]["all"], found["missed"]["said"]) == (0, "")
    assert found["missed"]["signs"] == []
    assert found["ledger"]["facts"] == FACTS
    assert found["urls"]["back"] == "" and found["own"] is None and found["others"] == []
    at = ",".join(str(block["entry"]) for block in found["blocks"])
    texts = client.get(f"{found['urls']['blocks']}?at={at}").json()["texts"]
    result = [texts[str(block["entry"])]["text"] for block in found["blocks"]]
    assert result[0] == "Please read the files." and result[2] == "content of file 1\n" * 3


def test_texts_come_in_part_and_whole_and_of_this_item_alone(
    ours: Team, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sessions.views.reviews.review_items.FIRST_CHARS", 7)
    one, other, client = item(ours), item(ours, "2"), browser(member(ours))
    found, foreign = shown(client, one), shown(client, other)["blocks"][0]["entry"]
    first = found["blocks"][0]["entry"]
    address = f"{found['urls']['blocks']}?at={first},{foreign},x,,{'9' * 30},-1"
    assert client.get(address).json()["texts"] == {str(first): {"text": "Please ", "left": 15}}
    assert client.get(f"{address}&whole=1").json()["texts"] == {
        str(first): {"text": "Please read the files.", "left": 0}
    }


def test_a_review_is_kept_and_the_next_comes(ours: Team):
    ann = member(ours)
    one, second, client = item(ours, "1"), item(ours, "2"), browser(ann)
    client.get("/review/next/")
    given = {**WHOLE, "marks": {"b": "lost", "+no tabs": "lost"}, "note": " gone \x00 "}
    assert send(client, one, "submit", given).json() == {"next": "/review/next/?team=ours"}
    kept = Review.objects.get(item=one)
    assert (kept.verdict, kept.note, kept.scores) == ("fix", "gone ␀", SCORES)
    assert kept.marks == {"b": "lost", "+no tabs": "lost"}
    assert kept.reserved_until is None
    assert client.get("/review/next/").url == f"/review/items/{second.pk}/"
    found = shown(client, second)
    assert found["urls"]["back"] == f"/review/items/{one.pk}/" and found["today"] == 1
    before = shown(client, one)
    assert (before["mode"], before["urls"]["back"]) == ("change", "")
    assert before["own"]["note"] == "gone ␀"
    send(client, one, "submit", {**WHOLE, "verdict": "fail"})
    assert Review.objects.get(item=one).verdict == "fail"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"\xff", b'{"scores": 5, "marks": []}', b"[" * 100_000]
)
def test_what_is_no_review_is_refused_with_a_sentence(ours: Team, body: bytes):
    one, client = item(ours), browser(member(ours))
    client.get("/review/next/")
    answer = client.post(f"/review/items/{one.pk}/submit/", body, "application/json")
    assert answer.status_code == 409
    assert answer.json()["detail"].endswith(".")


def test_a_late_reviewer_gets_a_reason_and_may_no_longer_review(ours: Team):
    ann, bob = member(ours), member(ours, "bob")
    one, client = item(ours), browser(ann)
    client.get("/review/next/")
    one.reviews.update(reserved_until=None)
    judge(one, bob)
    answer = send(client, one, "submit", WHOLE)
    assert answer.status_code == 409
    assert "Copy your text" in answer.json()["detail"]
    ann.memberships.update(role="viewer")
    assert send(client, one, "submit", WHOLE).status_code == 403


def test_viewers_look_and_judge_nothing(ours: Team):
    one = item(ours)
    client = browser(member(ours, "vic", "viewer"))
    found = shown(client, one)
    assert (found["mode"], found["why"]) == ("look", "Its reviews are not finished yet.")
    assert not Review.objects.exists()
    judge(one, member(ours), "fail")
    found = shown(client, one)
    assert [other["verdict"] for other in found["others"]] == ["fail"]
    page = page_of(client, "/review/")
    assert "Take 10 more" not in page.text and "Rules" not in page.links
    assert page.links["Please read the files. · step 3"] == f"/review/items/{one.pk}/"


def test_hostile_content_stays_text(ours: Team):
    evil = "</script><script>alert(1)</script>\x00"
    ann = member(ours)
    one = item(ours, summary=evil)
    Session.objects.update(title=evil.replace("\x00", ""))
    client = browser(ann)
    page = page_of(client, f"/review/items/{one.pk}/")
    assert "<script>alert" not in page.html
    text = props(page)["summaries"][0]["parts"][0]["text"]
    assert text.startswith("</script><script>alert(1)</script>␀")
    judge(one, ann, note=evil)
    assert "<script>alert" not in page_of(client, "/review/").html


def test_the_page_takes_a_constant_number_of_queries(ours: Team, django_assert_max_num_queries):
    one, client = item(ours), browser(member(ours))
    client.get("/review/next/")
    assert Block.objects.count() > 5
    with django_assert_max_num_queries(32):
        client.get(f"/review/items/{one.pk}/")
    for number in range(8):
        judge(item(ours, f"x{number}"), member(ours, f"p{number}"), note="n")
    with django_assert_max_num_queries(40):
        client.get("/review/")


def test_what_waits_is_listed_and_what_was_missed_comes_first(ours: Team):
    ann = member(ours)
    quiet, missed = item(ours, "1"), item(ours, "2")
    for one, facts, signs in ((quiet, [], 0), (missed, [("lost", 9), ("lost", None)], 3)):
        FactLedger.objects.update_or_create(
            revision=one.revision,
            defaults={
                "facts": [{"state": state, "needed": needed} for state, needed in facts],
                "after_effects": signs,
            },
        )
    rank_again(ours)
    take(quiet, ann)
    page = page_of(browser(ann), "/review/")
    assert page.markup.index(f"/review/items/{missed.pk}/") < page.markup.index(
        f'data-open href="/review/items/{quiet.pk}/'
    )
    assert "by hand unknown 1 3 –" in page.text
    assert "by hand – 0 0 ann" in page.text
