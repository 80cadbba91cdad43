"""Simulate one policy over one recorded session, stored as a run."""

from __future__ import annotations

from copy import copy
from typing import Any

import msgspec

from compaction.policies.policy import Policy, from_dict
from compaction.simulation import simulate as simulation
from compaction.simulation.recording import Recording
from compaction.simulation.run import CacheRun
from sessions.actions.jobs.attempts import JobOutcome, PermanentFailure, Running
from sessions.actions.lab.simulated_figures import Simulated, figures_of, recording_of
from sessions.actions.live.runs import RunWriter, UnsavedRows
from sessions.actions.policies.policies import UnknownPolicy, named_version
from sessions.actions.record.figures import figures
from sessions.live import hint
from sessions.models import PolicyVersion, Revision, Run, Session
from sessions.models.erasure.kept import while_kept
from sessions.models.record import delta, manifest
from sessions.models.record.values import summary_positions


def simulate_session(session: Session, ref: str) -> Run:
    """Simulate a policy ("name", "name@3") over a stored session and store the run.

    Computes without an open transaction. Raises UnknownPolicy.
    """
    version = named_version(session.team, ref)
    policy = from_dict(version.document)
    recording = recording_of(session)
    simulated = figures_of(recording, policy)
    counted = copy(session)
    counted.count_with(recording.permille, recording.value.hidden)
    run = _store_run(counted, version, simulated.run, recording.counted)
    run.figures = simulated.figures | _for_the_page(session, recording, policy, simulated)
    uses = {use.step: use for use in simulated.cache.uses}
    recited = {step.step: step.recited for step in simulated.run.steps}
    computed = figures(counted, run, recording.value.calls, uses, recited)
    run.columns = manifest.pack(msgspec.json.encode(computed))
    delta.keep_entries(counted, run)
    with while_kept(session.pk):
        run.save(update_fields=["figures", "columns", "entries_packed", "entries_key"])
    _note_paybacks(run, simulated.cache)
    session.refresh_from_db(fields=["version"])
    hint(f"session:{session.pk}", session.version)
    return run


def _store_run(
    session: Session, version: PolicyVersion, simulated: simulation.Run, unscaled: dict[str, int]
) -> Run:
    """Store a simulated run, replacing an older one of the same policy version.

    `unscaled` has the o200k tokens of every replacement's text. Originals that the policy never
    changed get no row: they are in context from their birth.
    """
    with while_kept(session.pk):
        Run.objects.filter(
            session=session, policy_version=version, origin=Run.Origin.SIMULATED
        ).delete()
        run = Run.objects.create(
            session=session,
            origin=Run.Origin.SIMULATED,
            policy_version=version,
            summarizer="extractive",
            token_ratio=session.token_ratio,
            steps=session.step_count,
            head=len(simulated.revisions),
        )
        news = UnsavedRows(
            revisions=simulated.revisions,
            places={entry.block.id: entry.block.position for entry in simulated.entries},
            late={
                entry.block.position: entry.from_step
                for entry in simulated.entries
                if entry.opened_by is None and entry.from_step != entry.block.born
            },
            left_out=summary_positions(session),
        )
        RunWriter(run, session, version, unscaled).write(news, fresh=True)
    return run


def simulate_job(running: Running) -> JobOutcome:
    """Run the `simulate` job: payload {session, policy}; the result names the run."""
    session = Session.objects.for_team(running.team).filter(pk=running.payload["session"]).first()
    if session is None:
        raise PermanentFailure("The session no longer exists", "It was deleted.", "Nothing to do.")
    running.progress(0, 1, "session")
    try:
        run = simulate_session(session, running.payload["policy"])
    except UnknownPolicy as error:
        named = running.payload["policy"]
        raise PermanentFailure(
            "No such policy", f"{named!r} {error}.", "Choose another policy."
        ) from None
    running.progress(1, 1, "session")
    return JobOutcome({"session": str(session.pk), "run": str(run.pk)})


def _trigger_tokens(policy: Policy, window: int, prelude: int) -> int | None:
    """The prompt size in tokens at which a policy compacts, for the line on the timeline."""
    for step in policy.steps:
        share = getattr(step.parameters, "trigger", None)
        if share is not None:
            budget = getattr(step.parameters, "budget", 0)
            # A budget covers only the conversation; the line is drawn on whole prompts.
            whole = budget or window - policy.kept_free(window)
            return int(share * whole) + (prelude if budget else 0)
    return None


def _for_the_page(
    session: Session, recording: Recording, policy: Policy, simulated: Simulated
) -> dict[str, Any]:
    """Additional figures for the replay page. Recorded tokens are as reported if every call
    reported them, else as we count them; `added_tokens` are those of our `read_back` definition
    if each context lists it."""
    calls = recording.value.calls
    measured = session.usage_calls == session.step_count
    reported = sum(call.usage.prompt for call in calls if call.usage)
    run, window = simulated.run, recording.value.window
    added = run.steps[0].added if run.steps else 0
    return {
        "basis": "simulated",
        "tokens_sent_reported": reported if measured else recording.lived_sent,
        "tokens_sent_measured": measured,
        "refusals": len(simulated.run.refusals),
        "trigger_tokens": _trigger_tokens(policy, window, run.hidden + added),
        "added_tokens": added,
        "window_assumed": session.window is None,
        "hidden_tokens": recording.value.hidden,
    }


def _note_paybacks(run: Run, cache: CacheRun) -> None:
    rows = {row.number: row for row in run.revisions.all()}
    for payback in cache.revisions:
        row = rows.get(payback.revision)
        if row is not None:
            row.cache_rewritten = payback.rewritten
            row.cost_microusd = payback.cost
            row.payback_steps = payback.steps
    Revision.objects.bulk_update(
        rows.values(), ["cache_rewritten", "cost_microusd", "payback_steps"], batch_size=200
    )
