"""The demo in the store: loaded, assessed, and easy to remove."""

from __future__ import annotations

import re
import uuid

import pytest

from sessions import demo
from sessions.actions.accounts.teams import local_team
from sessions.actions.demo.demo import SIMULATED, demo_job, load_demo, remove_demo, simulate_demo
from sessions.actions.demo.demo_live import DONE, RUNNING, TASKS, begin_live
from sessions.actions.demo.demo_tuning import work_now
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import Running
from sessions.actions.record.append import append
from sessions.importers import records
from sessions.models import (
    Approval,
    Blob,
    Block,
    Board,
    Budget,
    Delivery,
    Entry,
    Job,
    Message,
    Note,
    Retry,
    Session,
    Share,
    Subscription,
    Team,
    ToolGraph,
)
from sessions.models.record import tail
from tests.sessions.demo.played import NOW, count, messages
from tests.sessions.made import reading


@pytest.fixture
def small(monkeypatch):
    """Only the two sessions that are quickly loaded, one of them with sub-agents."""
    parts = tuple(part for part in demo.PARTS if part.name in ("agents", "codex"))
    monkeypatch.setattr(demo, "PARTS", parts)
    monkeypatch.setattr(demo, "EXTERNAL_IDS", tuple(part.external_id for part in parts))


def rows() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (Session, Message, Block, Blob, Entry))


@pytest.mark.django_db
@pytest.mark.usefixtures("small")
def test_loading_twice_adds_nothing():
    team = local_team()
    added = load_demo(team, count, NOW)
    assert len(added) == len(demo.EXTERNAL_IDS) + 3
    assert all(session.demo for session in Session.objects.all())
    assert Session.objects.exclude(parent=None).count() == 3
    before = rows()
    assert load_demo(team, count, NOW + 86_400_000) == []
    assert rows() == before


@pytest.mark.django_db
@pytest.mark.usefixtures("small")
def test_removing_takes_the_demo_and_nothing_else():
    team, other = local_team(), Team.objects.create(slug="other", name="Other")
    append(team, reading(3), count, source="test")
    append(other, reading(3), count, source="test")
    before = rows()
    load_demo(team, count, NOW)
    assert remove_demo(other) == 0
    assert remove_demo(team) == len(demo.EXTERNAL_IDS) + 3
    assert rows() == before
    assert remove_demo(team) == 0


@pytest.mark.django_db
@pytest.mark.usefixtures("small")
def test_a_text_that_others_use_too_stays():
    team = local_team()
    load_demo(team, count, NOW)
    shared = Block.objects.filter(type="text").order_by("pk")[0]
    mine = Session.objects.create(team=team, external_id="mine")
    message = Message.objects.create(session=mine, seq=1, digest="x", role="user", born=1, turn=1)
    Block.objects.create(
        session=mine, message=message, index=0, position=0, born=1, type="text", kind="user",
        tokens=1, chars=1, bytes=1, sha=shared.sha, preview="",
    )  # fmt: skip
    remove_demo(team)
    assert list(Blob.objects.values_list("sha", flat=True)) == [shared.sha]


@pytest.mark.django_db
def test_causes_are_found_in_what_was_reported():
    team = local_team()
    load_demo(team, count, NOW)
    by_name = {session.external_id: session for session in Session.objects.all()}
    assert by_name["demo:healthy"].break_count == 0
    assert by_name["demo:breaks"].break_count == 5
    assert by_name["demo:long"].compaction_count == 1
    cards = tail.causes(tail.stored(by_name["demo:long"].runs.get(origin="recorded")))
    assert {card["title"] for card in cards} == {"automatic compaction by Claude Code"}
    said = (
        r"Automatic compaction by Claude Code: 11,\d{3} tokens written again "
        r"\(\+\$0\.06\d+\), not avoidable\."
    )
    assert re.fullmatch(said, cards[0]["sentence"])
    assert not any("batches" in card["advice"] for card in cards)
    # The ratio inferred from prompt growth is close to the provider's.
    assert 1200 < by_name["demo:healthy"].token_ratio < 1330
    assert 20_000 < by_name["demo:healthy"].hidden_tokens < 39_000
    assert by_name["demo:recovers"].hidden_tokens < 400
    assert not by_name["demo:agents-limits"].peak_measured


@pytest.mark.django_db
@pytest.mark.usefixtures("small")
def test_presets_are_simulated_over_it():
    team = local_team()
    load_demo(team, count, NOW)
    one = Session.objects.get(external_id="demo:codex")
    seen = []
    presets = len(SIMULATED)
    assert simulate_demo([one], lambda done, total: seen.append((done, total))) == presets
    assert seen == [(number, presets) for number in range(1, presets + 1)]


@pytest.mark.django_db
@pytest.mark.usefixtures("small")
def test_the_job_names_what_it_added(monkeypatch):
    monkeypatch.setattr(
        "sessions.actions.demo.demo.simulate_demo", lambda added, report: len(added)
    )
    monkeypatch.setattr(jobs, "progress", lambda *answer: None)
    job = jobs.enqueue(local_team(), "demo", {})
    outcome = demo_job(Running(job, uuid.uuid4()))
    assert len(outcome.result["sessions"]) == len(demo.EXTERNAL_IDS) + 3 + 2


OF_LIVE = (Approval, Board, Note, Budget, Delivery, Retry, Share, Subscription, ToolGraph)


def live_rows() -> list[int]:
    """What sessions leave; words are taken out of the index by a job of its own."""
    jobs = Job.objects.exclude(kind="index")
    return [*rows(), *(model.objects.count() for model in OF_LIVE), jobs.count()]


def test_two_agents_play_by_the_same_rules():
    done, running = demo.play_live(NOW, count)
    for session in (done, running):
        times = [r.at for r in session.records if not isinstance(r, records.Call)]
        assert times == sorted(times)
        assert NOW - 1_800_000 < times[0] < times[-1] < NOW
    assert [one.retry_of for one in messages(running) if one.retry_of] == [7]


@pytest.mark.django_db(transaction=True)
def test_two_agents_are_at_work_and_leave_nothing():
    team = local_team()
    append(team, reading(3), count, source="test")
    before = live_rows()
    assert [one.external_id for one in begin_live(team, NOW, count)] == [DONE, RUNNING]
    work_now(team)
    assert begin_live(team, NOW, count) == []
    approval = Approval.objects.get()
    assert (approval.state, approval.session.external_id) == ("waiting", RUNNING)
    assert Delivery.objects.get().share.session.external_id == DONE
    knows = Board.objects.get(name=TASKS[RUNNING]).notes
    assert set(knows.values_list("kind", flat=True)) == {"task", "plan", "knowledge"}
    assert Retry.objects.get().of_step == 7
    assert remove_demo(team) == 2
    assert live_rows() == before


@pytest.mark.django_db
@pytest.mark.usefixtures("small")
def test_what_a_project_learned_of_others_stays():
    team = local_team()
    load_demo(team, count, NOW)
    board = Board.objects.get(name="/home/mara/ferry")
    one = board.notes.order_by("pk")[0]
    Note.objects.filter(pk=one.pk).update(evidence=one.evidence | {"theirs": 2})
    assert board.notes.count() > 1
    remove_demo(team)
    left = Note.objects.get()
    assert (left.board, left.evidence) == (board, {"theirs": 2})
