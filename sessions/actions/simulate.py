"""Simulate: what a policy would have made of a recorded session, stored as a run of its own."""

from __future__ import annotations

from typing import Any

import msgspec

from compaction.cache.run import CacheRun
from compaction.policies.policy import Policy, from_dict
from compaction.session import Session as SessionValue
from sessions.actions.attempts import Outcome, Refused, Running
from sessions.actions.figures import figures
from sessions.actions.policies import UnknownPolicy, named_version
from sessions.actions.runs import store_run
from sessions.actions.simulated_figures import Recording, Simulated, figures_of, recording_of
from sessions.live import hint
from sessions.models import Revision, Run, Session, delta, manifest


def simulate_session(session: Session, ref: str) -> Run:
    """Simulate a policy ("name", "name@3") over a stored session and store the run.

    Everything is computed with no transaction open. Raises UnknownPolicy.
    """
    version = named_version(session.team, ref)
    policy = from_dict(version.document)
    recording = recording_of(session)
    simulated = figures_of(recording, policy)
    run = store_run(session, version, simulated.run, recording.counted)
    run.figures = simulated.figures | _for_the_page(session, recording, policy, simulated)
    uses = {use.step: use for use in simulated.cache.uses}
    recited = {step.step: step.recited for step in simulated.run.steps}
    told = figures(session, run, recording.value.calls, uses, recited)
    run.columns = manifest.pack(msgspec.json.encode(told))
    delta.keep_entries(session, run)
    run.save(update_fields=["figures", "columns", "entries_packed", "entries_key"])
    _note_paybacks(run, simulated.cache)
    session.refresh_from_db(fields=["version"])
    hint(f"session:{session.pk}", session.version)
    return run


def simulate_job(running: Running) -> Outcome:
    """The job kind `simulate`: payload {session, policy}; the result names the run."""
    session = Session.objects.for_team(running.team).filter(pk=running.payload["session"]).first()
    if session is None:
        raise Refused("The session is gone", "It was deleted meanwhile.", "Nothing to do.")
    running.progress(0, 1, "session")
    try:
        run = simulate_session(session, running.payload["policy"])
    except UnknownPolicy as error:
        named = running.payload["policy"]
        raise Refused("No such policy", f"{named!r} {error}.", "Choose another policy.") from None
    running.progress(1, 1, "session")
    return Outcome({"session": str(session.pk), "run": str(run.pk)})


def _trigger_tokens(policy: Policy, value: SessionValue) -> int | None:
    """Tokens of prompt at which a policy compacts, for the line on the timeline."""
    for step in policy.steps:
        share = getattr(step.parameters, "trigger", None)
        if share is not None:
            budget = getattr(step.parameters, "budget", 0)
            # A budget is for the conversation alone; the line is drawn on whole prompts.
            return int(share * (budget or value.window - policy.kept_free(value.window))) + (
                value.hidden if budget else 0
            )
    return None


def _for_the_page(
    session: Session, recording: Recording, policy: Policy, simulated: Simulated
) -> dict[str, Any]:
    """What the replay page tells beside the figures; recorded tokens are as reported where every
    call reported them, else as we count them."""
    calls = recording.value.calls
    measured = session.usage_calls == session.step_count
    reported = sum(call.usage.prompt for call in calls if call.usage)
    return {
        "basis": "simulated",
        "tokens_sent_recorded": reported if measured else recording.lived_sent,
        "tokens_sent_measured": measured,
        "cost_recorded_microusd": recording.lived_cost,
        "refusals": len(simulated.run.refusals),
        "trigger_tokens": _trigger_tokens(policy, recording.value),
        "window_assumed": session.window is None,
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
