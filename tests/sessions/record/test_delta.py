"""Deltas: merging one into known columns gives the current columns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.importers import records
from sessions.models import Edit, Entry, Revision, Run, Session
from sessions.models.record import delta, manifest
from sessions.models.record.packing import packed, packed_events, packed_steps, unpacked
from tests.sessions.made import count, reads, result, user
from tests.sessions.made import session as session_of

pytestmark = [pytest.mark.django_db, pytest.mark.store]

Snapshot = tuple[manifest.Extent, dict[str, list[int]]]


class Growing:
    """A session that is appended to and edited, with its columns after each change."""

    def __init__(self) -> None:
        self.steps = 0
        self.session = Session()
        self.add(user("Please read the files.", key="k0"))

    @property
    def run(self) -> Run:
        return Run.objects.get(session=self.session, origin=Run.Origin.RECORDED)

    def add(self, *new: records.Record) -> None:
        appended = append(local_team(), session_of(*new), count, source="test")
        self.session = appended.session

    def change(self, what: str, number: int) -> None:
        """Make one change; `number` selects its target."""
        key = f"{what}{self.session.version}"
        match what:
            case "step":
                self.steps += 1
                n = self.steps
                self.add(
                    reads(f"c{n}", f"t{n}", f"src/f{n}.py", key=f"k{n}a"),
                    result(f"t{n}", f"content of file {n}", key=f"k{n}b", error=number % 3 == 0),
                )
            case "clear":
                self.add(records.Clear((f"t{number % (self.steps + 1)}",), key=key))
            case "compact":
                self.add(records.Compaction("auto", keep=(f"k{number}b",), key=key))
            case "rewind":
                self.add(records.Rewind((f"k{self.steps}b",), key=key))
            case "restore":
                self.restore(number)

    def restore(self, number: int) -> None:
        """The rows of an undo: an entry returns at its own place."""
        run = self.run
        closed = list(run.entries.exclude(to_step=None).order_by("pk"))
        if not closed:
            return
        back = closed[number % len(closed)]
        run.head += 1
        run.save(update_fields=["head"])
        step = self.session.step_count + 1
        revision = Revision.objects.create(run=run, number=run.head, step=step, trigger="undo")
        edit = Edit.objects.create(revision=revision, index=0, strategy="undo")
        run.entries.filter(position=back.position, to_step=None).update(
            to_step=step, closed_by=edit
        )
        Entry.objects.create(
            run=run,
            position=back.position,
            block=back.block,
            replacement=back.replacement,
            from_step=step,
            opened_by=edit,
        )

    def snapshot(self) -> Snapshot:
        run = self.run
        found = manifest.columns(run)
        return manifest.extent_of(self.session, run), {
            name: list(column) for name, column in found.items() if name != "position"
        }


changes = st.lists(
    st.tuples(
        st.sampled_from(["step", "step", "step", "clear", "compact", "rewind", "restore"]),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=changes, between=st.tuples(st.integers(0, 12), st.integers(0, 12)))
def test_known_columns_with_the_delta_are_the_new_columns(
    made: list[tuple[str, int]], between: tuple[int, int]
):
    Session.objects.all().delete()
    growing = Growing()
    snapshots = [growing.snapshot()]
    for what, number in made:
        growing.change(what, number)
        snapshots.append(growing.snapshot())
    a, b = sorted(min(one, len(made)) for one in between)
    (old, known), (new, wanted) = snapshots[a], snapshots[b]
    found = delta.delta(growing.run, old, new, len(known["from"]))
    assert delta.merged(known, found) == wanted
    assert unpacked(packed(wanted)) == wanted
    places = found.entries["at"]
    assert sorted(set(places)) == list(places)


def kept(session: Session, run: Run) -> dict[str, Any]:
    return dict(delta.columns_of(session, run))


def test_kept_columns_are_true_for_rows_that_came_later():
    growing = Growing()
    growing.change("step", 0)
    run = growing.run
    delta.keep_entries(growing.session, run)
    run.save()
    for what in ("step", "clear", "restore", "step", "compact", "restore"):
        growing.change(what, 1)
        assert kept(growing.session, growing.run) == growing.snapshot()[1]
    assert not delta.is_stale(growing.session, growing.run)
    run.entries_key = "7-8"  # as an older release wrote it
    assert delta.is_stale(growing.session, run)
    assert kept(growing.session, growing.run) == growing.snapshot()[1]


def test_rows_that_come_while_others_are_read_are_left_to_the_next_time():
    growing = Growing()
    growing.change("step", 0)
    before, columns = growing.snapshot()
    growing.change("clear", 1)
    growing.change("step", 1)
    early = manifest.columns(growing.run, before)
    assert {name: list(column) for name, column in early.items() if name != "position"} == columns


def test_previews_and_entries_are_found_by_place_after_any_change():
    growing = Growing()
    for what in ("step", "step", "clear", "restore", "step", "compact", "restore"):
        growing.change(what, 1)
    run = growing.run
    rows = manifest.previews(growing.session, run, 0, 99)
    assert len(rows) == len(growing.snapshot()[1]["from"])
    for index, row in enumerate(rows):
        assert manifest.previews(growing.session, run, index, index + 1) == [row]
        (found,) = manifest.entries_between(growing.session, run, index, index + 1)
        assert (found.block or found.replacement).preview == row
    indexes = [len(rows) - 1, 0, *range(len(rows)), len(rows)]
    expected = [rows[-1], rows[0], *rows, None]
    assert manifest.previews_at(growing.session, run, indexes) == expected


def test_steps_and_events_are_packed_as_the_page_unpacks_them():
    """The numbers are those of frontend/tests/replay/packing.test.ts."""
    steps = {
        "at": [1000, None, 1050],
        "prompt": [103, None, 124],
        "uncached": [3, None, 3],
        "read": [0, None, 100],
        "write": [100, None, 20],
        "recited": [0, 0, 0],
    }
    found = packed_steps(steps)
    assert found["at"] == [1000, None, 50]
    assert (found["read"], found["prompt"]) == ([0, None, 100], [0, None, 1])
    assert found["recited"] == []
    event = {"kind": "offload", "basis": "measured", "label": "x", "revision": 2, "step": 3}
    sizes = {"before": 7, "after": 124}
    events = packed_events([event | sizes, event | sizes], steps["prompt"], labeled=4)
    assert (events["step"], events["revision"]) == ([3, 0], [2, 0])
    assert (events["before"], events["after"]) == ([7, 7], [0, 0])
    assert events["label"] == ["", ""]
