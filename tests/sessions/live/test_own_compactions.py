"""Agents that summarize their own history: compactions, not rewinds, and managing goes on."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.context.edits import CannotUndo
from sessions.actions.accounts.teams import local_team
from sessions.actions.live import folds
from sessions.actions.live.managed import catch_up
from sessions.actions.live.requests.on_request import undo_revision
from sessions.actions.record.append import append
from sessions.actions.record.checks import parts
from sessions.actions.record.measure import measure
from sessions.actions.reviews.fact_ledgers import keep_ledger
from sessions.importers import records
from sessions.models import Revision, Run, Session
from sessions.models.record import tail
from sessions.models.record.values import recorded_session
from tests.sessions.live.appends import Json, live, reads, result, says, send, user
from tests.sessions.made import count, session
from tests.sessions.made import says as said_in_log
from tests.sessions.made import user as asked_in_log

pytestmark = [pytest.mark.django_db, pytest.mark.store]

REMINDER = user("<system-reminder>Use the context.</system-reminder>", human=False)
SUMMARY = user("They asked to fix src/kelp.py. Port 8417 is free.", kind="summary")
BY_HAND = user("<command-name>/compact</command-name>")


def talk() -> list[Json]:
    """A task with one file that was read."""
    shown = result("t1", "\n".join(f"def kelp_{number}(): ..." for number in range(40)))
    return [
        user("Fix src/kelp.py, never src/coral.py."),
        reads("t1", "src/kelp.py"),
        shown,
        says("It is in kelp_7."),
    ]


def compacted(*more: Json) -> Session:
    """A managed session whose agent summarized its history, and asked on."""
    made = live(policy="balanced", agent="claude-code")
    send(made, *talk(), history=True)
    catch_up(made)
    send(made, REMINDER, SUMMARY, *more, user("Go on."), history=True)
    return made


def texts(made: Session) -> list[str]:
    return [block.text for block in catch_up(made).blocks]


def triggers(made: Session, origin: Run.Origin) -> list[str]:
    rows = Revision.objects.filter(run__session=made, run__origin=origin)
    return list(rows.order_by("number").values_list("trigger", flat=True))


@pytest.mark.parametrize(("more", "trigger"), [((), "auto"), ((BY_HAND,), "manual")])
def test_a_history_that_begins_with_a_summary_is_a_compaction(more: Any, trigger: str):
    made = compacted(*more)
    begins = [REMINDER["content"], SUMMARY["content"], *(one["content"] for one in more)]
    assert texts(made) == [*begins, "Go on."]
    assert triggers(made, Run.Origin.RECORDED) == [trigger]
    assert triggers(made, Run.Origin.MANAGED) == [trigger]
    made.refresh_from_db()
    assert made.compaction_count == 1
    folds.forget_all()
    assert texts(made) == [*begins, "Go on."]
    with pytest.raises(CannotUndo):
        undo_revision(made, 1)


def test_managing_goes_on_after_it():
    made = compacted()
    history = [REMINDER, SUMMARY, user("Go on."), says("Done."), user("Thanks.")]
    again = send(made, *history, history=True)
    assert (again["known"], again["appended"]) == (3, 2)
    assert texts(made)[-2:] == ["Done.", "Thanks."]
    # Another one, then a change before the same summary: that is no compaction.
    newer = user("All is done.", kind="summary")
    send(made, REMINDER, newer, user("More?"), history=True)
    assert texts(made) == [REMINDER["content"], "All is done.", "More?"]
    send(made, user("<system-reminder>New.</system-reminder>"), newer, user("More?"), history=True)
    assert triggers(made, Run.Origin.RECORDED) == ["auto", "auto", "rewind"]
    assert texts(made)[1:] == ["All is done.", "More?"]
    assert triggers(made, Run.Origin.MANAGED) == ["auto", "auto", "rewind"]
    made.refresh_from_db()
    assert made.compaction_count == 2
    assert not [damage for part in parts() for damage in part.findings]


def test_its_facts_are_assessed_and_its_event_names_the_agent():
    made = compacted()
    catch_up(made)
    send(made, reads("t2", "src/kelp.py"), history=False)
    made.refresh_from_db()
    measure(made)
    for origin in (Run.Origin.RECORDED, Run.Origin.MANAGED):
        run = Run.objects.get(session=made, origin=origin)
        events = [one for one in tail.figures(tail.stored(run)).events if one["revision"] == 1]
        assert [(one["kind"], one["step"]) for one in events] == [("compaction", 3)]
        assert "automatic compaction by Claude Code" in events[0]["label"]
    revision = Revision.objects.get(run__session=made, run__origin=Run.Origin.RECORDED)
    ledger = keep_ledger(made, revision)
    assert ledger is not None and ledger.kept and ledger.lost


def test_simulations_have_what_was_summarized_but_not_the_summary():
    made = compacted()
    shown = [block.text for block in recorded_session(made, window=200_000).blocks]
    assert "Fix src/kelp.py, never src/coral.py." in shown
    assert SUMMARY["content"] not in shown


def test_a_log_whose_history_begins_with_a_summary_is_a_compaction_once():
    first = [asked_in_log("Fix src/kelp.py."), said_in_log("c1", "It is in kelp_7.")]
    summary = records.Message(
        "user", [{"type": "text", "text": "They asked to fix src/kelp.py."}], kind="summary"
    )
    made = append(local_team(), session(*first), count, source="test").session
    for more in ([], [said_in_log("c2", "On it.")], [said_in_log("c2", "On it.")]):
        log = session(summary, asked_in_log("Go on."), *more)
        append(local_team(), log, count, source="test")
    made.refresh_from_db()
    assert triggers(made, Run.Origin.RECORDED) == ["auto"]
    assert (made.message_count, made.compaction_count) == (5, 1)
