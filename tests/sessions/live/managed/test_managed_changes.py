"""Changes to a managed run by people and workers: pins, undo, requested compaction."""

from __future__ import annotations

import pytest

from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.live import folds
from sessions.actions.live.folds import serving
from sessions.actions.live.managed import catch_up, plan_of, record_context
from sessions.actions.live.requests.on_request import (
    CannotCompact,
    CannotUndo,
    request_compaction,
    undo_revision,
)
from sessions.actions.live.requests.pins import CannotPin, pin, unpin
from sessions.models import Artefact, Entry, Job, Pin, Run, Session
from sessions.models.record import manifest
from tests.sessions.live.managed.test_managed import grown, send, stored_run, talk
from tests.sessions.made import user

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.fixture(autouse=True)
def no_folds():
    folds.forget_all()
    yield
    folds.forget_all()


def run_of(session: Session) -> Run:
    run = serving(session)
    assert run is not None
    return run


def do(job: Job) -> Job | None:
    """Do a job as a worker would; its row afterwards."""
    taken = jobs.claim(job.pk)
    assert taken is not None and taken.token is not None
    attempt(taken.pk, taken.token)
    return Job.objects.filter(pk=job.pk).first()


def standing(run: Run, step: int) -> list[tuple[int, int]]:
    """(position, opened by) of the entries at a step, as the page draws them."""
    return [
        (row[0], row[7])
        for row in stored_run(run)
        if row[1] <= step and (not row[2] or step < row[2])
    ]


# Undo


def test_an_undone_revision_leaves_the_originals_byte_for_byte():
    stored = grown(12)
    run = run_of(stored)
    before = catch_up(stored)
    handed = record_context(before, "blocks")
    newest = run.revisions.order_by("-number").first()
    assert newest is not None
    replaced = [e.position for e in Entry.objects.filter(closed_by__revision=newest)]
    made = undo_revision(stored, newest.number)
    assert (made.number, made.trigger) == (newest.number + 1, "undo")
    after = catch_up(stored)
    assert {b.position: b for b in after.blocks if b.position in replaced and not b.replaces}
    originals = {b.position: b.sha for b in stored.blocks.all()}
    for block in after.blocks:
        if block.position in replaced:
            assert block.sha == originals[block.position]
    folds.forget_all()
    assert catch_up(stored).blocks == after.blocks
    assert plan_of(handed).blocks == before.blocks
    run.refresh_from_db()
    assert [place for place, _ in standing(run, run.steps)] == [b.position for b in after.blocks]


def test_a_reopened_block_has_two_entries_in_context_order():
    stored = grown(12)
    run = run_of(stored)
    number = run.revisions.count()
    undo_revision(stored, number)
    run.refresh_from_db()
    rows = stored_run(run)
    assert rows == sorted(rows, key=lambda row: (row[0], row[1], row[7]))
    twice = [place for place, opened in standing(run, run.steps) if opened == number + 1]
    assert twice
    for index, row in enumerate(rows):
        if row[0] in twice:
            (found,) = manifest.entries_between(stored, run, index, index + 1)
            assert (found.replacement is None) == (row[7] != number)
    undo_revision(stored, number + 1)
    assert tuple(b.id for b in catch_up(stored).blocks if b.position in twice)
    with pytest.raises(CannotUndo, match=f"Revision {number + 2} depends on it"):
        undo_revision(stored, number + 1)


def test_undo_is_refused_in_a_sentence():
    stored = grown(12)
    with pytest.raises(CannotUndo, match="no revision 99"):
        undo_revision(stored, 99)
    assert catch_up(stored).revision == run_of(stored).head
    with pytest.raises(CannotUndo, match="no policy"):
        undo_revision(bare(), 1)


def bare() -> Session:
    """A session without a policy."""
    stored = Session.objects.get()
    return Session.objects.create(team=stored.team, external_id="bare")


# Pins


def test_a_pin_brings_back_what_had_left_and_holds_it():
    stored = grown(12)
    run = run_of(stored)
    stub = next(b for b in catch_up(stored).blocks if b.replaces and b.type == "tool_result")
    version = stored.version
    assert pin(stored, stub.message) == pin(stored, stub.message)
    back = {b.position: b for b in catch_up(stored).blocks}[stub.position]
    assert back.replaces is None
    assert back.sha == stored.blocks.get(position=stub.position).sha
    stored.refresh_from_db()
    assert stored.version > version, "open pages look again"
    assert run.revisions.order_by("-number")[0].trigger == "pin"
    folds.forget_all()
    for batch in talk(30)[len(talk(12)) :]:
        stored = send(*batch)
        plan = catch_up(stored)
    held = {b.position: b for b in plan.blocks}[stub.position]
    assert (held.pinned, held.text) == (True, back.text)
    assert unpin(stored, stub.message)
    assert not unpin(stored, stub.message)
    folds.forget_all()
    assert not {b.position: b for b in catch_up(stored).blocks}[stub.position].pinned


def test_what_is_pinned_before_it_is_served_never_leaves():
    stored = send(*talk(1)[0], *talk(1)[1])
    pin(stored, 3)
    for batch in talk(20)[2:]:
        plan = catch_up(send(*batch))
    assert plan.revision > 2
    assert next(b for b in plan.blocks if b.message == 3).replaces is None


def test_a_message_that_is_not_there_cannot_be_pinned():
    stored = grown(1)
    with pytest.raises(CannotPin, match="no message 77"):
        pin(stored, 77)
    assert not Pin.objects.exists()


# Compaction by request


def test_a_compaction_by_request_is_made_by_a_job():
    stored = grown(5)
    job = request_compaction(stored, "Keep the port.")
    assert request_compaction(stored, "Keep the port.") == job
    assert request_compaction(stored, "Keep the port.", done=True) != job
    assert "port" not in str(job.payload)
    done = do(job)
    assert done is not None
    assert (done.state, done.problem) == (Job.State.DONE, None)
    plan = catch_up(stored)
    assert any(block.kind == "summary" for block in plan.blocks)
    revision = plan.run.revisions.get(number=done.result["revision"])
    assert revision.trigger == "request"
    assert Artefact.objects.filter(session=stored).exists()


def test_a_compaction_that_wins_nothing_is_refused():
    stored = send(user("hi", key="1"))
    done = do(request_compaction(stored))
    assert done is not None
    assert done.state == Job.State.FAILED
    assert "Only 0 tokens" in done.problem["detail"]
    with pytest.raises(CannotCompact, match="no policy"):
        request_compaction(bare())
