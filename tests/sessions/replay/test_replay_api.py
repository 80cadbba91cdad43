"""Data of the replay page: correct, compressed, and only for the own team."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sessions.actions.accounts.teams import local_team, local_user
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.importers import records
from sessions.models import Job, Membership, Session, Team
from tests.sessions.made import count, reading, user

pytestmark = pytest.mark.django_db


@pytest.fixture
def stored() -> Session:
    made = reading(4)
    made.records += [
        records.Clear(("t1",), key="clear"),
        records.Compaction("manual", key="compaction"),
        records.Message("user", [{"type": "text", "text": "So far."}], key="s", kind="summary"),
        user("<script>alert(1)</script>\u202e and on", key="go"),
    ]
    session = append(local_team(), made, count, source="test").session
    measure(session)
    return session


@pytest.fixture
def browser() -> Client:
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(local_user())
    return client


@pytest.fixture
def stranger() -> Client:
    """Signed in, and owner of another team."""
    person = get_user_model().objects.create_user("stranger")
    team = Team.objects.create(name="Other", slug="other")
    Membership.objects.create(user=person, team=team, role="owner")
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(person)
    return client


def get(client: Client, name: str, session: Session, **query: Any) -> dict[str, Any]:
    response = client.get(reverse(f"api:{name}", args=[session.pk]), query)
    assert response.status_code == 200, response.content
    result: dict[str, Any] = response.json()
    return result


def test_the_manifest_gives_the_context_at_every_step(browser: Client, stored: Session):
    body = get(browser, "manifest", stored)
    entries = body["entries"]
    assert len({len(column) for column in entries.values()}) == 1
    assert body["session"]["steps"] == 4
    assert [len(body["steps"][name]) for name in ("at", "prompt", "turn")] == [4, 4, 4]

    def stands(step: int) -> list[int]:
        return [
            message
            for message, a, b in zip(
                entries["message"], entries["from"], entries["to"], strict=True
            )
            if a <= step and (b == 0 or step < b)
        ]

    assert stands(1) == [1]
    assert stands(4) == [1, 2, 3, 4, 5, 6, 7]
    assert stands(5) == [10, 11]
    assert [(e["kind"], e["step"]) for e in body["events"]] == [("clear", 5), ("compaction", 5)]


def test_an_unchanged_manifest_is_not_sent_again(browser: Client, stored: Session):
    address = reverse("api:manifest", args=[stored.pk])
    first = browser.get(address)
    again = browser.get(address, headers={"if-none-match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    Session.objects.filter(pk=stored.pk).update(version=stored.version + 1)
    assert browser.get(address, headers={"if-none-match": first["ETag"]}).status_code == 200


def test_answers_are_packed_when_that_is_asked_for(browser: Client, stored: Session):
    address = reverse("api:manifest", args=[stored.pk])
    plain = browser.get(address)
    packed = browser.get(address, headers={"accept-encoding": "gzip"})
    assert packed["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(packed.content)) == plain.json()


def test_an_entry_shows_every_version_of_its_place(browser: Client, stored: Session):
    body = get(browser, "entry", stored, i=2)
    assert body["text"] == "content of file 1\n" * 3
    assert body["counts"] == {
        "basis": "estimated",
        "o200k": 54,
        "ratio": body["counts"]["ratio"],
    }
    assert body["in_context"] == {
        "steps": 3,
        "tokens": 3 * body["tokens"],
        "cost_microusd": None,
    }, "it stood at S2, S3 and S4; nothing is known of what they cost"
    assert body["file"] == {"path": "src/f1.py", "action": "read", "start": None, "end": None}
    assert [version["label"] for version in body["versions"]] == [
        "original", "stub r1", "summary r2",
    ]  # fmt: skip
    assert [version["standing"] for version in body["versions"]] == [False, False, True]


def test_a_summary_is_the_version_that_follows_what_it_stands_for(browser: Client, stored: Session):
    labels = [version["label"] for version in get(browser, "entry", stored, i=0)["versions"]]
    assert labels == ["original", "summary r2"]


def test_hostile_text_comes_as_text(browser: Client, stored: Session):
    last = len(get(browser, "manifest", stored)["entries"]["from"]) - 1
    assert get(browser, "entry", stored, i=last)["text"].startswith("<script>")
    page = browser.get(reverse("replay", args=[stored.pk])).content.decode()
    assert "<script>alert" not in page


def test_previews_come_by_place(browser: Client, stored: Session):
    rows = get(browser, "previews", stored)["rows"]
    found = get(browser, "previews", stored, at="2,0,999999999")
    assert found == {"at": [2, 0, 999_999_999], "rows": [rows[2], rows[0], None]}
    assert get(browser, "previews", stored, at="")["rows"] == rows


def test_a_diff_says_what_left_and_what_came(browser: Client, stored: Session):
    rows = get(browser, "diff", stored, a=4, b=5)["rows"]
    assert {row["op"] for row in rows} == {"removed", "added"}
    assert {row["revision"] for row in rows if row["op"] == "removed"} == {1, 2}
    assert get(browser, "diff", stored, a=2, b=2)["rows"][0]["op"] == "same"


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("previews", {"from": "-1"}),
        ("previews", {"to": "x"}),
        ("previews", {"at": ",1"}),
        ("previews", {"at": "-1"}),
        ("entry", {"i": "1e3"}),
        ("diff", {"a": "9" * 12}),
    ],
)
def test_bad_numbers_are_named(browser: Client, stored: Session, name: str, query: dict[str, str]):
    response = browser.get(reverse(f"api:{name}", args=[stored.pk]), query)
    assert (response.status_code, response["Content-Type"]) == (422, "application/problem+json")
    assert response.json()["errors"][0]["pointer"] == "?" + next(iter(query))


def test_asking_for_a_simulation_twice_gives_one_job(browser: Client, stored: Session):
    address = reverse("api:simulate", args=[stored.pk])
    answers = [
        browser.post(address, {"policy": "offload-first"}, content_type="application/json")
        for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert len({answer.json()["job"] for answer in answers}) == 1
    assert Job.objects.get().payload == {"session": str(stored.pk), "policy": "offload-first@1"}


def test_a_session_without_a_call_is_not_simulated(browser: Client):
    made = Session.objects.create(team=local_team(), external_id="quiet")
    address = reverse("api:simulate", args=[made.pk])
    answer = browser.post(address, {"policy": "offload-first"}, content_type="application/json")
    assert answer.status_code == 422
    assert "'quiet' has no model call" in answer.json()["detail"]
    assert not Job.objects.exists()


def test_a_session_lists_its_own_simulations_that_wait(browser: Client, stored: Session):
    other = Session.objects.create(team=stored.team, external_id="other", step_count=1)
    for one in (stored, other):
        address = reverse("api:simulate", args=[one.pk])
        browser.post(address, {"policy": "offload-first"}, content_type="application/json")
    with CaptureQueriesContext(connection) as asked:
        runs = get(browser, "manifest", stored)["runs"]
    (own,) = [run for run in runs if run["state"] == "running"]
    assert Job.objects.get(pk=own["job"]).payload["session"] == str(stored.pk)
    (sql,) = [one["sql"] for one in asked if "simulate:" in one["sql"]]
    assert str(stored.pk) in sql, "the database picks them"


@pytest.mark.parametrize(
    ("body", "status"), [(b"{", 400), (b'{"policy": 1}', 422), (b'{"policy": "none"}', 422)]
)
def test_an_impossible_request_gets_a_reason(
    browser: Client, stored: Session, body: bytes, status: int
):
    address = reverse("api:simulate", args=[stored.pk])
    response = browser.post(address, body, content_type="application/json")
    assert response.status_code == status
    assert response.json()["detail"]
    assert not Job.objects.exists()


def test_only_what_came_since_is_sent(browser: Client, stored: Session):
    address = reverse("api:manifest", args=[stored.pk])
    whole = get(browser, "manifest", stored)
    nothing = get(browser, "manifest", stored, since=whole["next"])
    assert (nothing["delta"], nothing["next"]) == (True, whole["next"])
    assert nothing["from_step"] == 5
    assert {len(rows) for rows in nothing["steps"].values()} == {0}
    made = reading(5)
    made.records += [records.Clear(("t5",), key="again")]
    append(local_team(), made, count, source="test")
    grown = get(browser, "manifest", stored, since=whole["next"])
    before = len(whole["entries"]["from"])
    assert grown["entries"]["at"] == [before, before + 1, before + 2]
    assert grown["entries"]["edit"] == [0, 0, 3]
    assert grown["changed"] == {"at": [], "to": [], "closed": []}
    again = get(browser, "manifest", stored)
    for name, column in grown["entries"].items():
        if name != "at":
            assert again["entries"][name] == whole["entries"][name] + column
    etag = browser.get(address, {"since": whole["next"]})["ETag"]
    unchanged = browser.get(address, {"since": whole["next"]}, headers={"if-none-match": etag})
    assert unchanged.status_code == 304


@pytest.mark.parametrize("since", ["x", "0", "a.1.2.3.4.5.6", "1" * 300, "a.b.c.d.e.f.g"])
def test_what_we_never_said_gives_the_whole(browser: Client, stored: Session, since: str):
    body = get(browser, "manifest", stored, since=since)
    assert "delta" not in body
    assert body["next"]


def test_another_counting_gives_the_whole(browser: Client, stored: Session):
    since = get(browser, "manifest", stored)["next"]
    Session.objects.filter(pk=stored.pk).update(token_ratio=1234, version=stored.version + 1)
    assert "delta" not in get(browser, "manifest", stored, since=since)


def test_texts_begin_what_the_transcript_shows(browser: Client, stored: Session):
    lines = get(browser, "previews", stored, at="0,1,9999")
    body = get(browser, "texts", stored, at="0,1,9999")
    assert body["at"] == [0, 1, 9999]
    assert body["rows"][0] and body["rows"][0].startswith(lines["rows"][0][:20])
    assert body["rows"][2] is None


def test_sources_name_the_tool_or_file_of_every_entry(browser: Client, stored: Session):
    entries = get(browser, "manifest", stored)["entries"]
    body = get(browser, "sources", stored)
    assert len(body["of"]) == len(entries["from"])
    named = {body["names"][of] for of in body["of"]}
    assert "" in named and len(named) > 1


@pytest.mark.parametrize(("name", "query"), [("texts", {"at": "0"}), ("sources", {})])
def test_texts_and_sources_stay_in_the_team(
    stranger: Client, stored: Session, name: str, query: dict[str, str]
):
    assert stranger.get(reverse(f"api:{name}", args=[stored.pk]), query).status_code == 404
