"""Measurement of stored records: sums, marks, and lower bounds."""

from __future__ import annotations

import json

import pytest

from compaction.context.session import Usage
from sessions.actions.accounts.teams import local_team
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.importers import records
from sessions.models import Run, Session
from sessions.models.record import manifest
from tests.sessions.made import count, reading, says, session, user

pytestmark = pytest.mark.django_db

MODEL = "claude-sonnet-4-5"


def measured(prompts: list[int], outputs: list[int], *extra: records.Record) -> Session:
    """A session of one call per prompt, all read from the cache, each writing 40 tokens."""
    made: list[records.Record] = [user("go", key="u")]
    for step, (prompt, output) in enumerate(zip(prompts, outputs, strict=True), 1):
        made.append(says(f"c{step}", "x" * 40, key=f"a{step}"))
        usage = Usage(cache_read=prompt, output=output)
        made.append(records.Call(f"c{step}", MODEL, 1_760_000_000_000 + step, usage))
    stored = append(local_team(), session(*made, *extra), count, source="test").session
    measure(stored)
    return stored


def marks(stored: Session) -> list[tuple[str, int, int | None, int | None]]:
    run = Run.objects.get(session=stored, origin=Run.Origin.RECORDED)
    events = json.loads(manifest.unpack(run.columns))["events"]
    return [(e["kind"], e["step"], e["before"], e["after"]) for e in events]


def test_a_prompt_that_shrinks_for_no_reason_in_the_log_is_marked():
    stored = measured([50_000, 60_000, 40_000, 41_000], [50] * 4)
    assert marks(stored) == [("clear", 3, 60_000, 40_000)]


def test_a_shrinking_that_the_log_explains_is_marked_once():
    compaction = records.Compaction("auto", key="x")
    stored = measured([50_000], [50], compaction, says("c2", "y", key="y"), records.Call(
        "c2", MODEL, 1_760_000_000_900, Usage(cache_write_5m=20_000, output=5)
    ))  # fmt: skip
    kinds = [mark for mark in marks(stored) if mark[0] != "break"]
    assert kinds == [("compaction", 2, 50_000, 20_000)]


@pytest.mark.parametrize(("outputs", "at_least"), [([40, 40], False), ([1, 1], True)])
def test_a_cost_is_a_lower_bound_where_outputs_are_placeholders(outputs: list[int], at_least: bool):
    assert measured([1_000, 1_100], outputs).cost_at_least is at_least


def test_what_was_sent_as_recorded_is_what_was_reported():
    stored = measured([1_000, 1_100], [40, 40])
    figures = simulate_session(stored, "offload-first").figures
    assert (figures["tokens_sent_reported"], figures["tokens_sent_measured"]) == (2_100, True)


def test_without_usage_it_is_counted_and_said_to_be():
    stored = append(local_team(), reading(3), count, source="test").session
    measure(stored)
    figures = simulate_session(stored, "offload-first").figures
    assert figures["tokens_sent_measured"] is False
    assert figures["tokens_sent_reported"] > 0
