"""A team with reviewers, and compactions for them to judge."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.test import Client

from sessions.actions.accounts import audit
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.actions.reviews import reviews
from sessions.importers import records
from sessions.models import FactLedger, Membership, Review, ReviewItem, Revision, Team
from tests.sessions.made import count, reading, says, session

FACTS = [
    {"key": "a", "fact": "src/f1.py", "kind": "path", "state": "kept", "weight": 9, "block": "2",
     "needed": None},
    {"key": "b", "fact": "src/f2.py", "kind": "path", "state": "lost", "weight": 8, "block": "4",
     "needed": 5},
    {"key": "c", "fact": "8765", "kind": "number", "state": "unsupported", "weight": 7,
     "block": None, "needed": None},
]  # fmt: skip
"""Facts replaced by `compaction`: a path kept, one lost, and an invented number."""

SCORES = {"goal": 4, "constraints": 3, "state": 5, "next": 2, "invention": True}


def team(slug: str = "ours") -> Team:
    return Team.objects.create(slug=slug, name=slug)


def member(of: Team, name: str = "ann", role: str = "reviewer") -> User:
    person = get_user_model().objects.create_user(name)
    Membership.objects.create(user=person, team=of, role=role)
    return person


def browser(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def compaction(
    of: Team, name: str = "s1", *, score: int | None = 900, after: int = 0, summary: str = ""
) -> Revision:
    """A session that reads two files and compacts them, with its ledger."""
    text = summary or f"So far of {name}: src/f1.py, port 8765."
    made: list[records.Record] = [
        *reading(2).records,
        records.Compaction("auto", key="compaction", tokens_before=999, tokens_after=99),
        records.Message("user", [{"type": "text", "text": text}], key="s", kind="summary"),
        says("c3", "on it", key="z"),
    ]
    found = append(of, session(*made, external_id=name), count, source="test").session
    measure(found)
    revision = Revision.objects.get(run__session=found)
    FactLedger.objects.create(
        revision=revision, kept=1, lost=1, unsupported=1, score=score, facts=FACTS,
        after_effects=after,
    )  # fmt: skip
    return revision


def item(of: Team, name: str = "s1", *, wanted: int = 1, **ledger: Any) -> ReviewItem:
    """A compaction in the queue."""
    return ReviewItem.objects.create(
        team=of, revision=compaction(of, name, **ledger), reason="hand", wanted=wanted
    )


def judgement(verdict: str = "pass", note: str = "", **given: Any) -> reviews.Judgement:
    """A whole one; scores and marks as given."""
    marks = given.pop("marks", {})
    return reviews.Judgement({**SCORES, **given}, verdict, note, marks)


def judge(one: ReviewItem, person: User, verdict: str = "pass", **given: Any) -> Review:
    """Reserve and review an item."""
    if not one.reviews.filter(reviewer=person, submitted__isnull=False).exists():
        reviews.take(one, person)
    said = judgement(verdict, **given)
    return reviews.submit(one, person, said, audit.person(person))
