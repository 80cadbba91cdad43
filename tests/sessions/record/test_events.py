"""Marks of revisions: their kind and reason."""

from __future__ import annotations

import pytest

from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.actions.record.events import Marked, event_marks
from sessions.models import Edit, Revision, Run
from tests.sessions.made import count, reading

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("trigger", "strategies", "kind", "label"),
    [
        ("pays", ["payback"], "offload", "it pays: 3 blocks"),
        ("cold", ["payback"], "offload", "cache cold: 3 blocks"),
        ("batch", ["offload"], "offload", "batch full: 3 blocks"),
        ("entry", ["externalise", "dedupe"], "entry", "3 blocks"),
        ("window", ["compact"], "compaction", "window full: 3 blocks"),
        ("new_topic", ["payback", "compact"], "compaction", "new topic: 3 blocks"),
        ("window", ["window"], "window", "3 blocks"),
        ("rewind", ["rewind"], "rewind", "3 blocks"),
    ],
)
def test_a_mark_says_what_was_done_and_why(
    trigger: str, strategies: list[str], kind: str, label: str
):
    run = Run.objects.create(
        session=append(local_team(), reading(2), count, source="test").session,
        origin=Run.Origin.SIMULATED,
    )
    row = Revision.objects.create(run=run, number=1, step=2, trigger=trigger, reason="3 blocks")
    for index, strategy in enumerate(strategies):
        Edit.objects.create(revision=row, index=index, strategy=strategy)
    (made,) = event_marks(Marked(run, [], {}, [row], [], []))
    assert (made["kind"], made["label"]) == (kind, label)
