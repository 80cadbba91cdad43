"""Measurement of stored records: sums, marks, and lower bounds."""

from __future__ import annotations

import json
from typing import Any

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
LEFT = "something left that the log does not state"


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


def events(stored: Session) -> list[dict[str, Any]]:
    run = Run.objects.get(session=stored, origin=Run.Origin.RECORDED)
    found: list[dict[str, Any]] = json.loads(manifest.unpack(run.columns))["events"]
    return found


def marks(stored: Session) -> list[tuple[str, int, int | None, int | None]]:
    return [(e["kind"], e["step"], e["before"], e["after"]) for e in events(stored)]


@pytest.mark.parametrize(
    ("prompts", "labels"),
    [
        ([50_000, 50_100, 54_000, 54_100], {}),
        ([50_000, 50_100, 56_100, 56_200], {3: "The log hides ≈5.9k tokens here"}),
        ([50_000, 53_000, 50_000, 50_100], {3: f"The prompt shrank by 3.0k tokens: {LEFT}"}),
        ([50_000, 50_100, 40_000, 40_100], {3: f"The prompt shrank by 10.1k tokens: {LEFT}"}),
    ],
)
def test_a_prompt_that_changes_unlike_the_log_is_marked_at_that_step_only(
    prompts: list[int], labels: dict[int, str]
):
    found = events(measured(prompts, [50] * 4))
    assert {event["kind"] for event in found} <= {"unlogged"}
    assert {event["step"]: event["label"] for event in found} == labels


def test_what_the_log_says_and_the_prompt_lacks_is_marked_where_it_left():
    large = says("c2", "word " * 9_000, key="a2")
    calls = [
        records.Call(f"c{step}", MODEL, 1_760_000_000_000 + step, Usage(cache_read=prompt))
        for step, prompt in enumerate([20_000, 20_100, 20_200], 1)
    ]
    made = [says("c1", "x", key="a1"), calls[0], large, calls[1], says("c3", "x", key="a3")]
    stored = append(
        local_team(), session(user("go", key="u"), *made, calls[2]), count, source="test"
    ).session
    measure(stored)
    (mark,) = events(stored)
    assert (mark["kind"], mark["step"]) == ("unlogged", 3)
    assert mark["label"].endswith(f"tokens smaller than the log says: {LEFT}")


def test_a_shrinking_that_the_log_explains_is_marked_once():
    compaction = records.Compaction("auto", key="x")
    stored = measured([50_000], [50], compaction, says("c2", "y", key="y"), records.Call(
        "c2", MODEL, 1_760_000_000_900, Usage(cache_write_5m=20_000, output=5)
    ))  # fmt: skip
    kinds = [mark for mark in marks(stored) if mark[0] != "break"]
    # What the log hid at first is gone with the compaction, which needs no mark of its own.
    assert kinds == [("unlogged", 1, None, None), ("compaction", 2, 50_000, 20_000)]


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
