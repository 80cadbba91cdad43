"""A live session in a few appends, in this process, and a dump of the store."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from compaction.policies.policy import Policy, Step, to_dict
from compaction.strategies.compact_settings import Compact
from compaction.strategies.offload import Offload
from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs.attempts import PermanentFailure, Running
from sessions.actions.jobs.jobs import Lost, claim, enqueue
from sessions.actions.live import managed, tend
from sessions.actions.live.deliver import Once, deliver, delivery
from sessions.actions.live.live_sessions import SessionFields, put_session
from sessions.actions.live.requests import on_request
from sessions.actions.policies.policies import version_of
from sessions.models import Entry, Job, ManagedContext, Message, Revision, Run, Session
from sessions.models.record.values import contents

BOTH = Policy(
    "both",
    steps=(
        Step("offload", Offload(age=2, batch=2)),
        Step("compact", Compact(trigger=0.05, summary_tokens=300, user_tokens=200)),
    ),
)
"""Offloads every few steps, and compacts at 2,000 of the 40,000 tokens of its window."""


def begin(name: str) -> Session:
    """An empty session under that policy."""
    made, _ = put_session(local_team(), name, SessionFields(model="claude-sonnet-4-5"))
    made.policy_version = version_of(made.team, BOTH.name, to_dict(BOTH), preset=False)
    made.window = 40_000
    made.save()
    return made


def send(session: Session, step: int, *, retries: bool = True) -> None:
    """Send a step's answer with its tool result, in one batch; the task at step 0."""
    if step == 0:
        messages: list[Any] = [{"role": "user", "content": "Weigh all parcels again."}]
        body: dict[str, Any] = {"messages": messages, "system": "You weigh parcels."}
    else:
        use = {"type": "tool_use", "id": f"t{step}", "name": "Read"}
        use |= {"input": {"file_path": f"/dock/{step}.csv"}}
        lines = "".join(f"{line} parcel {step * 100 + line}, 7 kg\n" for line in range(40))
        result = {"type": "tool_result", "tool_use_id": f"t{step}", "content": lines}
        messages = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        usage = {"input_tokens": 900 + step, "output_tokens": 20}
        body = {"messages": messages, "call": f"c{step}", "usage": usage}
    once = Once(f"{session.external_id}-{step}", f"{step:064d}") if retries else None
    deliver(session, delivery(body), once=once, now=1_700_000_000_000 + step)


def record_context(session: Session) -> ManagedContext:
    """Get a context, as an agent does before a call."""
    return managed.record_context(managed.catch_up(session), "anthropic")


def running(job: Job) -> Running:
    """A job in its own attempt, which is never counted."""
    Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED, attempts=0)
    claimed = claim(job.pk)
    assert claimed is not None and claimed.token is not None
    return Running(claimed, claimed.token)


def tended(session: Session) -> None:
    """Does the job that a worker does after each append."""
    with suppress(Lost):  # another attempt claimed the job, and runs it
        tend.tend(running(tend.ask(session)))


def compacted(session: Session, instructions: str = "") -> bool:
    """Run a requested compaction; False if there was nothing to gain."""
    payload = {"session": str(session.pk), "instructions": ""}
    job = enqueue(session.team, "compact", payload)
    try:
        on_request.compact(running(job))
    except PermanentFailure:
        return False
    finally:
        Job.objects.filter(pk=job.pk).delete()
    return True


def kept(session: Session) -> dict[str, list[Any]]:
    """All that the store holds of a session, without the ids and times that another has."""
    runs = Run.objects.filter(session=session)
    messages = Message.objects.filter(session=session).order_by("seq")
    revisions = Revision.objects.filter(run__in=runs).order_by("run__origin", "number")
    rows = Entry.objects.filter(run__in=runs).order_by(
        "run__origin", "position", "from_step", "opened_by__revision__number"
    )
    shas = list(session.blocks.order_by("position").values_list("sha", flat=True))
    contents(session, shas)  # raises if a byte changed
    names = ("run__origin", "number", "step", "trigger", "reason", "tokens_before", "tokens_after")
    entry = ("run__origin", "position", "block__sha", "replacement__sha", "from_step", "to_step")
    figures = ("origin", "steps", "head", "taken", "figures", "settled")
    return {
        "messages": list(messages.values_list("seq", "role", "call", "born", "at", "digest")),
        "blocks": list(session.blocks.order_by("position").values_list("position", "born", "sha")),
        "calls": list(session.calls.order_by("step").values_list("step", "uncached", "output")),
        "revisions": list(revisions.values_list(*names)),
        "entries": list(rows.values_list(*entry)),
        "runs": list(runs.order_by("origin").values_list(*figures)),
    }
