"""After-effects of a compaction: files read again, calls, errors, corrections."""

from __future__ import annotations

import pytest

from compaction.losses.loss_cost import LossCost
from compaction.losses.repairs import WINDOW
from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.actions.reviews.after_effects import AfterEffects, Sign, after_effects
from sessions.actions.reviews.losses import stored_cost
from sessions.importers import records
from sessions.models import Block, Revision, Session
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


def again(call: str, path: str, text: str, key: str = "z") -> list[records.Record]:
    return [reads(call, f"t-{key}", path, key=key), result(f"t-{key}", text, key=f"{key}r")]


F1, F2 = ("content of file 1\n" * 3, "content of file 2\n" * 3)


def test_a_file_read_again_counts_once_though_the_call_is_the_same():
    assert effects(compacted(*again("c4", "src/f1.py", F1))) == [("reread", 4, 1)]


@pytest.mark.parametrize(
    ("text", "found"), [(f"7→{F1}new", True), ("a\nb\ncontent of file 1", False)]
)
def test_half_of_its_lines_must_have_been_removed(text: str, *, found: bool):
    shown = again("c4", "src/f1.py", text)
    shown[0].blocks[0]["input"]["offset"] = 5
    assert bool(effects(compacted(*shown))) == found


def test_a_text_that_came_back_is_no_longer_missing():
    made = compacted(*again("c4", "src/f1.py", F1), *again("c5", "src/f1.py", F1, "y"))
    assert effects(made) == [("reread", 4, 1)]


def test_the_same_call_again():
    def search(number: int, text: str, pattern: str = "x") -> list[records.Record]:
        given = {
            "type": "tool_use",
            "id": f"t{number}",
            "name": "Grep",
            "input": {"pattern": pattern},
        }
        return [
            records.Message("assistant", [given], key=f"g{number}", call=f"c{number}"),
            result(f"t{number}", text, f"r{number}"),
        ]

    made = [*search(1, "none"), *compacted()[-2:]]
    assert effects([*made, *search(2, "none"), *search(3, "none", "y")]) == [("repeat", 2, 1)]


def test_the_same_call_with_another_result_is_no_repair():
    run = reads("c4", "t9", "src/f2.py", key="x"), result("t9", "changed", key="y")
    assert effects(compacted(*run)) == []


def test_an_edit_that_fails_without_its_file():
    def edit(path: str) -> list[records.Record]:
        given = {"file_path": path, "old_string": "a", "new_string": "b"}
        use = {"type": "tool_use", "id": "t9", "name": "Edit", "input": given}
        return [
            records.Message("assistant", [use], key="e", call="c4"),
            result("t9", "String to replace not found", key="f", error=True),
        ]

    assert effects(compacted(*edit("src/f1.py"))) == [("edit", 4, 1)]
    Session.objects.all().delete()
    assert effects(compacted(*edit("src/other.py"))) == []


def test_a_file_that_was_not_taken_out_is_no_loss():
    assert effects(compacted(*again("c4", "src/new.py", F1))) == []


@pytest.mark.parametrize(("path", "found"), [("src/f1.py", []), ("src/f2.py", [("reread", 3, 2)])])
def test_a_file_with_a_reading_in_context_is_no_loss(
    path: str, found: list[tuple[str, int, int | None]]
):
    kept = records.Compaction("auto", key="compaction", keep=("k1a", "k1b"))
    text = F1 if path == "src/f1.py" else F2
    assert effects([*reading(2).records, kept, *again("c3", path, text)]) == found


def test_files_read_again_are_counted_apart_from_their_reads():
    paths = ("a.py", "b.py", "a.py")
    signs = [Sign("reread", Block(file_path=path), 4) for path in paths]
    found = AfterEffects(3, 9, (*signs, Sign("edit", Block(file_path="c.py"), 5)))
    assert (found.counts["reread"], found.files) == (3, 2)


def test_an_error_met_again_is_known_by_its_line_but_for_numbers():
    other = reads("c4", "t8", "b.py", key="y"), result("t8", "OSError: no file 7", "z", error=True)
    assert effects(compacted(*other)) == [("error", 4, 3)]


def test_another_error_is_none_met_again():
    other = reads("c4", "t8", "b.py", key="y"), result("t8", "OSError: locked", "z", error=True)
    assert effects(compacted(*other)) == []


def test_a_failed_reading_again_is_counted_once():
    read = reads("c4", "t8", "gone.py", key="y")
    failed = result("t8", "OSError: no file 12", "z", error=True)
    assert effects(compacted(read, failed)) == [("reread", 4, 3)]


def test_a_person_who_corrects_after_the_agent_has_spoken():
    made = compacted(says("c4", "done", "x"), user("No, the other file.", "y"), *thinks(5, 1))
    assert effects(made) == [("correction", 5, None)]


def test_what_a_person_said_before_the_agent_spoke_is_no_reaction():
    assert effects(compacted(user("No, the other file.", "y"), *thinks(4, 1))) == []


@pytest.mark.parametrize(("steps", "seen"), [(WINDOW - 1, True), (WINDOW, False)])
def test_only_the_next_steps_are_looked_at(steps: int, seen: bool):
    last = again(f"c{4 + steps}", "src/f1.py", F1)
    assert bool(effects(compacted(*thinks(4, steps), *last))) == seen


def test_how_a_ledger_keeps_them():
    found = stored(compacted(*again("c4", "src/f1.py", F1)))
    assert after_effects(found, Revision.objects.get()).stored() == {
        "first_step": 4,
        "last_step": 4,
        "reread": 1,
        "repeat": 0,
        "error": 0,
        "edit": 0,
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


@pytest.mark.parametrize(
    ("cost", "kept", "said"),
    [
        (LossCost((4,), 500, carried=20), {"microusd": 520, "at_least": False}, "≈$0.00052"),
        (LossCost((4, 5), 500, at_least=True), {"microusd": 500, "at_least": True}, "≥ $0.00050"),
        (LossCost((4,), None), {}, ""),
        (LossCost((), 0), {}, ""),
        (None, {}, ""),
    ],
)
def test_a_ledger_keeps_what_the_loss_cost(
    cost: LossCost | None, kept: dict[str, object], said: str
):
    found = AfterEffects(4, 4, (), cost).stored()
    assert {name: found[name] for name in ("microusd", "at_least") if name in found} == kept
    assert stored_cost(found) == said
