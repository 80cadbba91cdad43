"""Assessments of sessions: after an import, while running, and at startup."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from compaction import tokens
from compaction.context.session import Usage
from compaction.policies.policy import Policy, Step, to_dict
from compaction.strategies.compact_settings import Compact
from sessions.actions.accounts.teams import local_team
from sessions.actions.assessments import assess, assessments
from sessions.actions.assessments.assessments import REST, SOONEST, assessment_due, keep_assessment
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.live import folds
from sessions.actions.live.live_sessions import SessionFields, put_session
from sessions.actions.live.managed import catch_up, record_context
from sessions.actions.policies.policies import version_of
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.importers import records
from sessions.models import Assessment, Blob, FactLedger, Job, Run, Session, Team
from sessions.models.record import tail
from sessions.models.record.sessions import SOURCE_LIVE
from tests.sessions.made import count, reads, result, says, session, user
from tests.sessions.pages import other_team

pytestmark = pytest.mark.django_db

COMPACT = Policy(
    "compact", steps=(Step("compact", Compact(trigger=0.05, summary_tokens=400, user_tokens=0)),)
)

MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def forgetting() -> Iterator[None]:
    folds.forget_all()
    yield
    folds.forget_all()


def stored(*made: records.Record, external_id: str = "s1", team: Team | None = None) -> Session:
    of = session(*made, external_id=external_id)
    found = append(team or local_team(), of, count, source="test").session
    measure(found)
    return found


def usage(call: str, uncached: int, read: int = 0, write: int = 0) -> records.Call:
    return records.Call(
        call,
        model="claude-sonnet-4-5",
        at=1_795_000_000_000,
        usage=Usage(uncached, read, write, 0, 50),
    )


def work(job: Job | None) -> None:
    """Run the worker's part."""
    claimed = jobs.claim(job.pk) if job is not None else None
    assert claimed is not None and claimed.token is not None
    assert attempt(claimed.pk, claimed.token)


def bash(call: str, tool_call: str, command: str) -> records.Message:
    given = {"type": "tool_use", "id": tool_call, "name": "Bash", "input": {"command": command}}
    return records.Message("assistant", [given], key=f"{call}{tool_call}", call=call)


def test_money_by_where_it_went():
    calls = [usage("c1", 10, 0, 5_000), usage("c2", 10, 5_000, 900), usage("c3", 10, 0, 6_000)]
    made = [says(f"c{n}", "yes", key=f"k{n}") for n in (1, 2, 3)]
    found = stored(user("Go.", key="u"), *made, *calls)
    row = keep_assessment(found)
    parts = (row.uncached_microusd, row.write_microusd, row.read_microusd, row.output_microusd)
    # $3 a million uncached, $3.75 written, $0.30 read, $15 of output.
    assert parts == (90, 44_625, 1_500, 2_250)
    assert sum(part or 0 for part in parts) == found.cost_microusd
    # The third call writes what the second left in the cache, instead of reading it.
    assert row.unexplained_microusd is not None
    assert 5_800 <= row.unexplained_microusd * 1_000 / (3_750 - 300) <= 5_900
    assert row.avoidable_microusd == 0, "unknown whether that could be avoided"


def test_which_causes_are_avoidable():
    low, high = usage("c1", 10, 0, 5_000), usage("c2", 10, 0, 6_000)
    low.settings, high.settings = "low", "high"
    made = [says(f"c{n}", "yes", key=f"k{n}") for n in (1, 2)]
    row = keep_assessment(stored(user("Go.", key="u"), *made, low, high))
    assert row.avoidable_microusd and row.unexplained_microusd == 0


def test_what_is_not_reported_is_null():
    row = keep_assessment(stored(user("Go.", key="u"), says("c1", "yes", key="k")))
    names = ("uncached", "write", "read", "output", "avoidable", "unexplained")
    assert {getattr(row, f"{name}_microusd") for name in names} == {None}
    assert {row.needs, row.in_context, row.named, row.retrievable, row.lost} == {None}
    call = records.Call("c1", model="unknown-model", usage=Usage(10, 0, 0, 0, 5))
    other = stored(user("Go.", key="u"), says("c1", "yes", key="k"), call, external_id="s2")
    assert keep_assessment(other).uncached_microusd is None, "a model without a price"


def test_failures_and_those_that_were_mended():
    found = stored(
        user("Test it.", key="u"),
        bash("c1", "t1", "pytest -q a"), result("t1", "1 failed", key="r1", error=True),
        bash("c2", "t2", "ruff check"), result("t2", "bad", key="r2", error=True),
        bash("c3", "t3", "pytest -q b"), result("t3", "ok", key="r3"),
        reads("c4", "t4", "a.py", key="x"), result("t4", "gone", key="r4", error=True),
        reads("c5", "t5", "a.py", key="y"), result("t5", "here", key="r5"),
    )  # fmt: skip
    row = keep_assessment(found)
    assert (row.failures, row.recovered) == (3, 2)


def test_recall_of_what_was_served():
    made: list[records.Record] = [user("Find the port.", key="k")]
    for step in range(1, 9):
        body = "".join(f"def handler_{step}_{line}():\n    return {line}\n" for line in range(50))
        made.append(reads(f"c{step}", f"t{step}", f"src/f{step}.py", key=f"a{step}"))
        made.append(result(f"t{step}", body, key=f"b{step}"))
    found = append(local_team(), session(*made), tokens.counted, source=SOURCE_LIVE).session
    found.policy_version = version_of(found.team, "compact", to_dict(COMPACT), preset=False)
    found.window = 60_000
    found.save()
    assert any(block.kind == "summary" for block in catch_up(found).blocks)
    assess.assess_session(found)
    ledger = FactLedger.objects.get(revision__run__origin="managed")
    assert ledger.unsupported == 0, "the extractive summary makes nothing up"
    assert ledger.retrievable or ledger.kept
    search = {"type": "tool_use", "id": "t9", "name": "Grep", "input": {"pattern": "handler_1_7"}}
    later = records.Message("assistant", [search], key="z", call="c9")
    append(local_team(), session(*made, later), tokens.counted, source=SOURCE_LIVE)
    found.refresh_from_db()
    plan = catch_up(found)
    assert keep_assessment(found).needs is None, "no context was requested"
    record_context(plan, "anthropic")
    row = keep_assessment(found)
    assert row.needs is not None and row.needs >= 1
    states = (row.in_context, row.named, row.retrievable, row.lost)
    assert sum(state or 0 for state in states) == row.needs
    assert row.in_context != row.needs, "handler_1_7 had left"


def test_recall_of_recorded_contexts_that_lost_a_text():
    body = "".join(f"def handler_1_{line}():\n    return {line}\n" for line in range(50))
    made: list[records.Record] = [
        user("Find the port.", key="k"),
        reads("c1", "t1", "src/f1.py", key="a1"), result("t1", body, key="b1"),
        usage("c2", 10, 0, 5_000), says("c2", "done", key="s2"),
    ]  # fmt: skip
    found = stored(*made)
    row = keep_assessment(found)
    assert (row.needs, row.losses_microusd) == (None, None), "nothing left the context"
    search = {"type": "tool_use", "id": "t9", "name": "Grep", "input": {"pattern": "handler_1_7"}}
    made += [
        records.Message("assistant", [search], key="z", call="c3"), usage("c3", 10, 0, 5_000),
        reads("c4", "t4", "src/f1.py", key="a4"), usage("c4", 10, 0, 5_000),
        result("t4", body, key="b4"), says("c5", "done", key="s5"), usage("c5", 10, 0, 5_000),
    ]  # fmt: skip
    found = stored(*made, external_id="s2")
    run = Run.objects.get(session=found, origin="recorded")
    block = found.blocks.get(type="tool_result", tool_call="t1")
    run.entries.create(position=block.position, block=block, from_step=block.born, to_step=3)
    row = keep_assessment(found)
    states = (row.in_context, row.named, row.retrievable, row.lost)
    assert row.needs and sum(state or 0 for state in states) == row.needs
    assert row.lost == row.needs - (row.in_context or 0) > 0, "handler_1_7 had left"
    assert row.missing[0] == {"fact": "handler_1_7", "step": 3, "state": "lost", "uses": 1}
    assert row.losses_microusd == 0, "no revision removed it"


@pytest.mark.parametrize(
    ("before", "now", "outcome", "again"),
    [
        (10, 10 + SOONEST - 1, "", False),
        (10, 10 + SOONEST, "", True),
        (1_000, 1_999, "", False),
        (1_000, 2_000, "", True),
        (10, 11, "failed", True),
        (10, 10, "failed", False),
    ],
)
def test_when_a_live_session_is_assessed_again(before: int, now: int, outcome: str, again: bool):
    found = stored(user("Go.", key="u"))
    assert assessment_due(found)
    keep_assessment(found)
    assert not assessment_due(found)
    Assessment.objects.update(steps=before)
    found.source, found.step_count, found.outcome = SOURCE_LIVE, now, outcome
    assert assessment_due(found) == again


def test_a_live_session_at_rest_is_assessed_as_it_stands():
    found = stored(user("Go.", key="u"), says("c1", "yes", key="k"))
    keep_assessment(found)
    now = timezone.now()
    Session.objects.update(source=SOURCE_LIVE, step_count=2, changed=now - REST)
    for moment, asked in ((now - REST, 0), (now, 0), (now + MINUTE, 1), (now + 9 * MINUTE, 0)):
        assess.ask_resting(moment, 3 * MINUTE)
        assert Job.objects.filter(kind="assess").delete()[0] == asked
    Session.objects.update(changed=now - REST - MINUTE)
    assert assess.is_due(Session.objects.get())
    Assessment.objects.update(steps=2)
    assess.ask_resting(now, 3 * MINUTE)
    assert not Job.objects.exists()


def test_the_job_leaves_no_row_and_asks_for_nothing_twice():
    found = stored(user("Go.", key="u"), says("c1", "yes", key="k"))
    job = assess.ask(found)
    assert assess.ask(found) == job
    work(job)
    assert Assessment.objects.get().steps == 1
    assert not Job.objects.exists()
    assert not assess.is_due(found)


def test_a_session_that_is_gone_is_refused():
    found = stored(user("Go.", key="u"))
    job = assess.ask(found)
    found.delete()
    work(job)
    assert Job.objects.get().state == Job.State.FAILED


def test_what_earlier_versions_stored_is_walked_through(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(assess, "AT_ONCE", 2)
    other = other_team()
    for number in range(5):
        stored(user("Go.", key="u"), external_id=f"s{number}")
    stored(user("Go.", key="u"), external_id="x", team=other)
    assess.ask_everywhere()
    for left in (3, 1, 0):
        work(Job.objects.get(team=local_team()))
        mine = Session.objects.for_team(local_team()).filter(assessment=None)
        assert mine.count() == left
    assert [job.team for job in Job.objects.all()] == [other]
    assert Assessment.objects.filter(session__team=other).count() == 0
    assert assess.ask_all(local_team()) is None
    monkeypatch.setattr(assess, "ENGINE", assessments.ENGINE + 1)
    assert assess.ask_all(local_team()) is not None, "the rules have changed"


def test_figures_of_an_older_release_are_measured_again():
    calls = [usage("c1", 10, 0, 5_000), usage("c2", 10, 0, 6_000)]
    made = [says(f"c{n}", "yes", key=f"k{n}") for n in (1, 2)]
    found = stored(user("Go.", key="u"), *made, *calls)
    work(assess.ask(found))
    assert assess.ask_all(local_team()) is None
    Run.objects.update(engine=0, columns=b"")
    Session.objects.update(break_count=9)
    work(assess.ask_all(local_team()))
    found.refresh_from_db()
    (card,) = tail.causes(tail.stored(Run.objects.get()))
    assert (card["kind"], found.break_count) == ("unexplained", 1)
    assert assess.ask_all(local_team()) is None


def test_damaged_bytes_of_one_session_keep_no_other_from_it():
    made = [
        user("Keep MAX_ROWS", key="u"),
        says("c1", "yes", key="k"),
        records.Compaction("auto", key="c"),
        records.Message("user", [{"type": "text", "text": "So."}], key="s", kind="summary"),
    ]
    damaged = stored(*made, external_id="s1")
    stored(user("Something else.", key="u"), external_id="s2")
    shas = damaged.blocks.filter(message__seq=1).values_list("sha", flat=True)
    Blob.objects.filter(sha__in=list(shas)).delete()
    work(assess.ask_all(local_team()))
    assert list(Assessment.objects.values_list("session__external_id", flat=True)) == ["s2"]
    assert not Job.objects.exists()


def test_a_session_without_a_message_keeps_no_other_from_it():
    put_session(local_team(), "opened", SessionFields())
    stored(user("Something else.", key="u"), external_id="s2")
    work(assess.ask_all(local_team()))
    assert not Job.objects.exists()
    assert Assessment.objects.filter(session__external_id="s2").exists()


def test_an_ended_session_is_tended_once_more():
    put_session(local_team(), "run", SessionFields(outcome="abandoned"))
    assert not Job.objects.exists(), "there is nothing of it"
    found = stored(user("Go.", key="u"), says("c1", "yes", key="k"), external_id="live")
    put_session(local_team(), "live", SessionFields(outcome="succeeded"))
    work(Job.objects.get(kind="tend"))
    work(Job.objects.get(kind="assess"))
    assert Assessment.objects.get().session == found
    Job.objects.filter(kind="index").delete()
    put_session(local_team(), "live", SessionFields(outcome="succeeded"))
    assert not Job.objects.exists()
