"""After-effects of a compaction: files read again, calls, errors, corrections."""

from __future__ import annotations

import pytest

from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.actions.reviews.after_effects import STEPS, after_effects
from sessions.importers import records
from sessions.models import Revision, Session
from tests.sessions.made import count, reading, reads, result, says, session, user

pytestmark = pytest.mark.django_db


def compacted(*after: records.Record) -> list[records.Record]:
    """Two files read and a failed call, all of it compacted, then the given messages."""
    made = reading(2).records
    made += [
        reads("c3", "t3", "gone.py", key="k3a"),
        result("t3", "Traceback:\nOSError: no file 12", key="k3b", error=True),
    ]
    made.append(records.Compaction("auto", key="compaction"))
    made.append(
        records.Message("user", [{"type": "text", "text": "So far."}], key="s", kind="summary")
    )
    return [*made, *after]


def stored(made: list[records.Record]) -> Session:
    found = append(local_team(), session(*made), count, source="test").session
    measure(found)
    return found


def effects(made: list[records.Record]) -> list[tuple[str, int, int | None]]:
    """Kind, step, and step of the earlier block."""
    found = after_effects(stored(made), Revision.objects.get())
    return [
        (sign.kind, sign.step, sign.earlier.born - 1 if sign.earlier else None)
        for sign in found.signs
    ]


def thinks(first: int, many: int) -> list[records.Record]:
    return [says(f"c{step}", "thinking", key=f"z{step}") for step in range(first, first + many)]


def test_a_file_read_again_counts_once_though_the_call_is_the_same():
    assert effects(compacted(reads("c4", "t8", "src/f1.py", key="z"))) == [("reread", 4, 1)]


def test_other_lines_of_the_file_are_a_reading_again():
    again = reads("c4", "t8", "src/f1.py", key="z")
    again.blocks[0]["input"]["offset"] = 5
    assert effects(compacted(again)) == [("reread", 4, 1)]


def test_the_same_call_again():
    def search(call: str, tool_call: str, key: str, pattern: str = "x") -> records.Message:
        given = {"type": "tool_use", "id": tool_call, "name": "Grep", "input": {"pattern": pattern}}
        return records.Message("assistant", [given], key=key, call=call)

    made = [search("c1", "t1", "a"), result("t1", "none", "b"), *compacted()[-2:]]
    assert effects([*made, search("c2", "t2", "c"), search("c3", "t3", "d", "y")]) == [
        ("repeat", 2, 1)
    ]


def test_a_file_that_was_not_taken_out_is_no_loss():
    assert effects(compacted(reads("c4", "t8", "src/new.py", key="z"))) == []


@pytest.mark.parametrize(("path", "found"), [("src/f1.py", []), ("src/f2.py", [("reread", 3, 2)])])
def test_a_file_with_a_reading_in_context_is_no_loss(
    path: str, found: list[tuple[str, int, int | None]]
):
    kept = records.Compaction("auto", key="compaction", keep=("k1a", "k1b"))
    assert effects([*reading(2).records, kept, reads("c3", "t8", path, key="z")]) == found


def test_an_error_met_again_is_known_by_its_line_but_for_numbers():
    other = reads("c4", "t8", "b.py", key="y"), result("t8", "OSError: no file 7", "z", error=True)
    assert effects(compacted(*other)) == [("error", 4, 3)]


def test_another_error_is_none_met_again():
    other = reads("c4", "t8", "b.py", key="y"), result("t8", "OSError: locked", "z", error=True)
    assert effects(compacted(*other)) == []


def test_a_failed_reading_again_is_counted_once():
    again = reads("c4", "t8", "gone.py", key="y")
    failed = result("t8", "OSError: no file 12", "z", error=True)
    assert effects(compacted(again, failed)) == [("reread", 4, 3)]


def test_a_person_who_corrects_after_the_agent_has_spoken():
    made = compacted(says("c4", "done", "x"), user("No, the other file.", "y"), *thinks(5, 1))
    assert effects(made) == [("correction", 5, None)]


def test_what_a_person_said_before_the_agent_spoke_is_no_reaction():
    assert effects(compacted(user("No, the other file.", "y"), *thinks(4, 1))) == []


@pytest.mark.parametrize(("steps", "seen"), [(STEPS - 1, True), (STEPS, False)])
def test_only_the_next_steps_are_looked_at(steps: int, seen: bool):
    last = reads(f"c{4 + steps}", "t8", "src/f1.py", key="y")
    assert bool(effects(compacted(*thinks(4, steps), last))) == seen


def test_how_a_ledger_keeps_them():
    found = stored(compacted(reads("c4", "t8", "src/f1.py", key="z")))
    assert after_effects(found, Revision.objects.get()).stored() == {
        "first_step": 4,
        "last_step": 4,
        "reread": 1,
        "repeat": 0,
        "error": 0,
        "correction": 0,
        "signs": [
            {
                "what": "reread",
                "step": 4,
                "entry": "9",
                "earlier": "2",
                "preview": "Read src/f1.py",
            }
        ],
    }
