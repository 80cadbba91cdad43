"""What is made of a session's content in the second of its erasure is not stored after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compaction.proposals.plan import Span
from sessions.actions.accounts.audit import COMMAND, person
from sessions.actions.assessments import assess, assessments
from sessions.actions.erasure.requests import ErasureRule, begin
from sessions.actions.ingestion import arrivals
from sessions.actions.jobs import attempts, jobs
from sessions.actions.lab import simulate, simulations
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.live import advance, artefacts
from sessions.actions.memory import boards, gathering, shares
from sessions.actions.policies.policies import active_version
from sessions.actions.record import measure, measured
from sessions.actions.replay import step_notes
from sessions.actions.reviews import fact_ledgers, reviews
from sessions.actions.search import indexing
from sessions.models import (
    Assessment,
    Delivery,
    Erasure,
    FactLedger,
    Job,
    Note,
    RefusedRequest,
    Review,
    Run,
    Session,
    Share,
)
from sessions.models.erasure.kept import SessionErased
from sessions.models.record.values import blocks_of
from tests.sessions.erasure.erasing import MARK, do_jobs, stored_bytes, talk
from tests.sessions.erasure.test_retention import all_texts
from tests.sessions.programs import Program, assert_problem
from tests.sessions.reviewing import compaction, item, judgement, member

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.store,
    pytest.mark.usefixtures("jobs_wait"),
]

RULE = ErasureRule(Erasure.Kind.RETENTION, content_only=True)


def erase(session: Session) -> None:
    begin(session.team, RULE, [session.pk], COMMAND)
    do_jobs()


@pytest.fixture
def then_erased(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Erases a session's content when a function has just answered, once."""

    def set_up(session: Session, place: Any, name: str) -> None:
        real, done = getattr(place, name), []

        def answering(*args: Any, **given: Any) -> Any:
            found = real(*args, **given)
            if not done:
                done.append(True)
                erase(session)
            return found

        monkeypatch.setattr(place, name, answering)

    return set_up


def summarize(session: Session) -> None:
    blocks = tuple(blocks_of(session, with_text=True))
    artefacts.make(session, Span("nine", blocks, blocks, None, budget=200))


CASES: dict[str, tuple[Any, str, Callable[[Session], Any]]] = {
    "summary": (artefacts, "_summary", summarize),
    "board": (gathering._FoundNotes, "read", gathering.gather),
    "share": (shares, "_files", lambda one: shares.share(one, "late", Share.Cause.TASK_DONE)),
    "note": (boards, "redact", lambda one: boards.put_note(one, "knowledge", f"a {MARK}")),
    "simulated run": (simulate, "figures_of", lambda one: simulate_session(one, "offload-first")),
    "entries of a simulated run": (
        simulate.delta,
        "keep_entries",
        lambda one: simulate_session(one, "offload-first"),
    ),
    "assessment": (assessments, "outcomes", assessments.keep_assessment),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_job_has_made_is_not_stored(
    case: str, program: Program, then_erased: Callable[..., None]
):
    place, name, work = CASES[case]
    session = talk(program, "old", calls="call")
    with pytest.raises(SessionErased):
        then_erased(session, place, name)
        if case == "board":
            said = [{"role": "user", "content": f"And the {MARK}s of the north."}]
            program.post("/sessions/old/messages", {"messages": said})
        session.refresh_from_db()
        work(session)
    assert case != "simulated run" or not Run.objects.filter(origin="simulated").exists()
    assert MARK not in all_texts()
    assert MARK.encode() not in stored_bytes()


def test_a_context_is_not_stored(program: Program, then_erased: Callable[..., None]):
    session = talk(program, "old", calls="call")
    said = [{"role": "user", "content": f"And the {MARK}s of the north."}]
    program.post("/sessions/old/messages", {"messages": said})
    then_erased(session, advance, "marks_of")
    assert_problem(program.ask("GET", "/sessions/old/context"), 410)
    assert Run.objects.get(session=session, origin="managed").fold == {}
    assert MARK not in all_texts()


def test_a_measurement_that_read_it_before_does_not_write(
    program: Program, then_erased: Callable[..., None]
):
    session = talk(program, "old", calls="call")
    said = [{"role": "user", "content": f"And the {MARK}s of the north."}]
    program.post("/sessions/old/messages", {"messages": said})
    session.refresh_from_db()
    then_erased(session, measured, "sub_agents")
    kept: list[bool] = []
    real = measured.keep
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "keep", lambda made: kept.append(real(made)) or kept[-1])
        measure.measure(session)
    assert kept[0] is False
    assert MARK not in all_texts()


def test_a_ledger_is_not_stored(program: Program, then_erased: Callable[..., None]):
    revision = compaction(program.team, "old", summary=f"So far: src/{MARK}.py, port 8765.")
    session = revision.run.session
    then_erased(session, fact_ledgers, "judge")
    with pytest.raises(SessionErased):
        fact_ledgers.keep_ledger(session, revision)
    assert FactLedger.objects.get().facts == [] and MARK not in all_texts()


def test_the_replacements_of_a_run_are_not_indexed(
    program: Program, then_erased: Callable[..., None]
):
    session = talk(program, "old", calls="call")
    Run.objects.filter(session=session, origin="managed").update(indexed_head=0)
    then_erased(session, indexing, "_entries")
    indexing.index_replacements(program.team)
    assert Run.objects.get(session=session, origin="managed").indexed_head == 0


def test_a_share_is_delivered_neither_from_it_nor_to_it(program: Program):
    session, other = talk(program, "old", calls="call"), talk(program, "new", marked="heron")
    for one in (session, other):
        shares.subscribe(one, "team", "", COMMAND)
    mine, theirs = (shares.share(one, "late", Share.Cause.TASK_DONE)[0] for one in (session, other))
    erase(session)
    assert shares.deliver(mine) == shares.deliver(theirs) == 0
    assert not Delivery.objects.filter(share=theirs).exists()
    assert not Note.objects.filter(by=Note.By.SHARE, board__session=session).exists()
    theirs.refresh_from_db()
    assert theirs.sent is not None, "or its job would try for ever"


def test_what_people_wrote_on_a_page_from_before_is_refused(program: Program):
    one = item(program.team, "old")
    session, ann = one.revision.run.session, member(program.team, "reviewer")
    reviews.take(one, ann)
    erase(session)
    with pytest.raises(SessionErased):
        reviews.submit(one, ann, judgement(note=f"the {MARK}"), person(ann))
    with pytest.raises(SessionErased):
        step_notes.add_note(session, 1, f"why the {MARK}?", COMMAND)
    assert not Review.objects.exclude(note="").exists()
    assert MARK not in all_texts()


def test_facts_that_removals_lost_go_too(program: Program):
    session = talk(program, "old", calls="call")
    line = {"fact": f"src/{MARK}.py", "state": "lost", "needed": 5}
    assess.assess_session(session)
    Assessment.objects.filter(session=session).update(dropped={"1": [line]}, lost_facts=1)
    assert MARK in all_texts()
    erase(session)
    assert MARK not in all_texts()
    assert Assessment.objects.get().lost_facts == 1


def test_the_job_ends_as_cancelled(program: Program, monkeypatch: pytest.MonkeyPatch):
    session = talk(program, "old", calls="call")
    Job.objects.all().delete()
    claimed = jobs.claim(assess.ask(session).pk)
    assert claimed is not None and claimed.token is not None

    def gone(session: Session) -> None:
        raise SessionErased(done=False)

    monkeypatch.setattr(assess, "assess_session", gone)
    assert attempts.attempt(claimed.pk, claimed.token)
    claimed.refresh_from_db()
    assert (claimed.state, claimed.problem) == (Job.State.CANCELLED, None)


@pytest.mark.parametrize("whole", [False, True])
def test_what_was_refused_before_is_not_stored_after(program: Program, *, whole: bool):
    """A refused request waits for some seconds in the memory of its server."""
    session = talk(program, "old", calls="call")
    said = {"messages": [{"role": "robot", "content": f"Feed the {MARK}."}]}
    assert program.ask("POST", "/sessions/old/messages", said).status_code == 422
    if whole:
        begin(session.team, ErasureRule(Erasure.Kind.SESSION), [session.pk], COMMAND)
        do_jobs()
    else:
        erase(session)
    arrivals.flush()
    assert not RefusedRequest.objects.exists()


def test_what_is_sent_of_an_erased_session_is_not_kept(program: Program):
    session = talk(program, "old", calls="call")
    begin(session.team, ErasureRule(Erasure.Kind.SESSION), [session.pk], COMMAND)
    do_jobs()
    said = {"messages": [{"role": "user", "content": f"Feed the {MARK}."}]}
    assert program.ask("POST", "/sessions/old/messages", said).status_code == 410
    arrivals.flush()
    assert not RefusedRequest.objects.exists()


def test_a_simulation_of_several_goes_on(program: Program, monkeypatch: pytest.MonkeyPatch):
    session = talk(program, "old", calls="call")
    talk(program, "other", marked="heron")
    draft = active_version(program.team)
    made = simulations.ask(program.team, {"by": "query"}, draft, [], "", COMMAND)
    real = simulations.recording_of

    def recording(of: Session) -> Any:
        found = real(of)
        if of.pk == session.pk:
            begin(session.team, ErasureRule(Erasure.Kind.SESSION), [session.pk], COMMAND)
            do_jobs()
        return found

    monkeypatch.setattr(simulations, "recording_of", recording)
    assert made.job is not None
    claimed = jobs.claim(made.job.pk)
    assert claimed is not None and claimed.token is not None
    attempts.attempt(claimed.pk, claimed.token)
    claimed.refresh_from_db()
    assert (claimed.state, claimed.attempts) == (Job.State.PARTIAL, 1)
    assert [one.session.external_id for one in made.results.filter(version=None)] == ["other"]
    assert MARK.encode() not in stored_bytes()
