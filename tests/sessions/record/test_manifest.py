"""The manifest: columns in context order that give the context at any step."""

from __future__ import annotations

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction.context.composition import by_step, totals
from compaction.context.diff import diff
from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.importers import records
from sessions.models import Entry, Run
from sessions.models.record import manifest
from tests.sessions.made import count, reading, session, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def recorded_run() -> Run:
    return Run.objects.get(origin=Run.Origin.RECORDED)


def compacted(steps: int) -> records.Session:
    made = reading(steps)
    made.records += [
        records.Compaction("auto", key="compaction"),
        records.Message("user", [{"type": "text", "text": "So far."}], key="s", kind="summary"),
        user("go on", key="go"),
    ]
    return made


def test_columns_are_in_context_order_and_say_when_each_entry_stood():
    append(local_team(), compacted(2), count, source="test")
    columns = manifest.columns(recorded_run())
    assert list(columns["position"]) == [0, 1, 2, 3, 4, 5, 6]
    assert list(columns["from"]) == [1, 2, 2, 3, 3, 3, 3]
    assert list(columns["to"]) == [3, 3, 3, 3, 3, 0, 0]
    assert list(columns["closed"]) == [1, 1, 1, 1, 1, 0, 0]
    assert list(columns["message"]) == [1, 2, 3, 4, 5, 6, 7]


def test_a_run_without_entries_is_empty_columns():
    append(local_team(), session(), count, source="test")
    assert set(map(len, manifest.columns(recorded_run()).values())) == {0}


def test_previews_come_in_the_same_order():
    append(local_team(), compacted(2), count, source="test")
    run = recorded_run()
    assert manifest.previews(run.session, run, 0, 2) == [
        "Please read the files.",
        "Read src/f1.py",
    ]
    assert manifest.previews(run.session, run, 5, 99) == ["So far.", "go on"]


def test_an_entry_is_found_by_its_place():
    append(local_team(), compacted(1), count, source="test")
    (found,) = manifest.entries_between(recorded_run().session, recorded_run(), 3, 4)
    assert found.block is not None
    assert found.block.preview == "So far."
    assert manifest.entries_between(recorded_run().session, recorded_run(), 99, 100) == []


def test_a_cleared_result_stands_beside_its_replacement():
    made = reading(1)
    made.records.append(records.Clear(("t1",), key="clear"))
    append(local_team(), made, count, source="test")
    columns = manifest.columns(recorded_run())
    assert list(columns["position"]) == [0, 1, 2, 2]
    assert [bool(flags & manifest.REPLACEMENT) for flags in columns["flags"]] == [
        False, False, False, True,
    ]  # fmt: skip
    assert list(columns["message"]) == [1, 2, 3, 3], "a replacement goes by its first target"
    run = recorded_run()
    assert [manifest.previews(run.session, run, i, i + 1) for i in (2, 3)] == [
        ["Read src/f1.py → content of file 1 content of file 1 content of file 1"],
        ["Read [cleared by the agent; the log does not contain its replacement]"],
    ]
    rows = diff(columns, 1, 3, lambda tokens: tokens)
    assert [(row.op, row.a, row.b) for row in rows] == [
        ("same", [0], [0]),
        ("added", [], [1]),
        ("added", [], [3]),
    ]


intervals = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 500), st.integers(1, 12), st.integers(0, 14)),
    max_size=30,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=intervals, a=st.integers(1, 12), b=st.integers(1, 12))
def test_composition_and_diff_agree_with_a_plain_recount(
    rows: list[tuple[int, int, int, int]], a: int, b: int
):
    rows = [(k, t, f, 0 if e <= f and e else e) for k, t, f, e in rows]
    columns = {
        "kind": [r[0] for r in rows],
        "tokens": [r[1] for r in rows],
        "from": [r[2] for r in rows],
        "to": [r[3] for r in rows],
        "position": list(range(len(rows))),
        "edit": [0] * len(rows),
        "closed": [0] * len(rows),
    }

    def stands(step: int) -> list[int]:
        return [i for i, (_, _, f, e) in enumerate(rows) if f <= step and (e == 0 or step < e)]

    table = by_step(columns, 12)
    for step in (a, b):
        assert [row[step - 1] for row in table] == [
            sum(rows[i][1] for i in stands(step) if rows[i][0] == kind) for kind in range(10)
        ]
    assert totals(table)[a - 1] == sum(rows[i][1] for i in stands(a))
    found = diff(columns, a, b, lambda tokens: tokens)
    assert sorted(i for row in found for i in row.a) == stands(a)
    assert sorted(i for row in found for i in row.b) == stands(b)
    assert sum(row.tokens_a for row in found) == totals(table)[a - 1]
    assert sum(row.tokens_b for row in found) == totals(table)[b - 1]


def test_entries_that_revisions_opened_are_found_by_an_index():
    append(local_team(), compacted(2), count, source="test")
    opened = Entry.objects.filter(run=recorded_run(), opened_by__isnull=False)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
    assert "entry_opened" in opened.order_by("position").values_list("position").explain()
