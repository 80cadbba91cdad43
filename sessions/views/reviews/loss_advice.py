"""What to do about a summary that lost what was needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from compaction.facts.facts import OUTSIDE
from compaction.facts.paths import normal
from compaction.policies.resolve import paths_of
from sessions.actions.replay.why import is_too_long
from sessions.actions.reviews.compaction_verdicts import is_missed
from sessions.models import PolicyVersion, Revision, Run, Session
from sessions.models.policies.policy_documents import readable
from sessions.views.web.names import run_name

KEEP_FAILURES = "compact.keep_failures"


@dataclass(frozen=True, slots=True)
class LossAdvice:
    """What to do, in a sentence, the page where it is done, and the session in the lab."""

    text: str
    button: str
    url: str
    lab_url: str


def loss_advice(
    session: Session, revision: Revision, facts: Sequence[Mapping[str, Any]], *, may_write: bool
) -> LossAdvice | None:
    """The setting that keeps a failed call verbatim, if its error was lost and needed under a
    policy without it; else the simulation of what would have kept the first such fact. None if no
    lost fact was needed again, or the session is too long to simulate."""
    lab_url = f"{reverse('lab')}?{urlencode({'by': 'hand', 'ids': str(session.pk)})}"
    missed = sorted(filter(is_missed, facts), key=itemgetter("needed"))
    version = revision.run.policy_version
    if (
        may_write
        and version is not None
        and revision.run.origin == Run.Origin.MANAGED
        and any(fact["kind"] == "error" for fact in missed)
        and _summarizes_failures(version)
    ):
        url = reverse("policy_edit", args=[version.policy.name])
        return LossAdvice(
            "An error that was needed again is lost. With “Keep failed calls verbatim”, a failed "
            "call stays out of summaries until the same operation succeeds.",
            f"Set it in {version.policy.name}",
            f"{url}?{urlencode({'set': KEEP_FAILURES})}",
            lab_url,
        )
    first = next((fact for fact in missed if fact["kind"] != "error"), None)
    if first is None or is_too_long(session):
        return None
    return LossAdvice(
        f"To lose less next time, see which policies would have kept “{first['fact']}” in context, "
        "and at what cost, or try settings on this session in the lab.",
        "What would have kept it",
        f"{why_url(session, revision.run, first)}#policies",
        lab_url,
    )


def why_url(session: Session, run: Run, fact: Mapping[str, Any]) -> str:
    """The page on why a fact was forgotten when a later call named it. The call may have named
    other lines of a file."""
    asked = urlencode({"text": asked_text(fact), "run": run_name(run), "step": fact["needed"]})
    return f"{reverse('why', args=[session.pk])}?{asked}"


def asked_text(fact: Mapping[str, Any]) -> str:
    """The text by which that page is asked about a fact."""
    text: str = fact["fact"].strip(OUTSIDE)[: len(normal(fact["fact"]))]
    return text


def _summarizes_failures(version: PolicyVersion) -> bool:
    if readable(version) is None or not paths_of(version.document, KEEP_FAILURES):
        return False
    return not any(
        step["parameters"].get("keep_failures")
        for step in version.document["steps"]
        if step["strategy"] == "compact"
    )
