"""The size of the context before and after a revision; one rule for all pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sessions.models import ModelCall, Revision, Run, Session

MEASURED, ESTIMATED, SIMULATED = "measured", "estimated", "simulated"


@dataclass(frozen=True, slots=True)
class Size:
    """Tokens of a whole context, with basis and source."""

    tokens: int
    basis: str
    source: str


def call_of(session: Session, run: Run, step: int) -> ModelCall | None:
    """The real call at a step; None for simulated runs."""
    if run.origin != Run.Origin.RECORDED:
        return None
    return session.calls.filter(step=step).exclude(uncached=None).first()


def written(call: ModelCall) -> int:
    """Tokens that a call wrote to the provider's cache, with any TTL."""
    return (call.cache_write_5m or 0) + (call.cache_write_1h or 0)


def _prompt(call: ModelCall) -> int:
    return (call.uncached or 0) + (call.cache_read or 0) + written(call)


def sizes_of(session: Session, revision: Revision) -> dict[str, Any]:
    """The sizes before and after, from the same source so that they are comparable.

    Reported prompts are preferred, because logs omit the hidden prefix on one side only.
    """
    before_call = call_of(session, revision.run, revision.step - 1)
    after_call = call_of(session, revision.run, revision.step)
    if before_call is not None and after_call is not None:
        source = f"prompts reported by the provider for S{revision.step - 1} and S{revision.step}"
        before = Size(_prompt(before_call), MEASURED, source)
        after = Size(_prompt(after_call), MEASURED, source)
    elif revision.tokens_before is not None and revision.tokens_after is not None:
        basis, source = _stated(revision)
        before = Size(revision.tokens_before, basis, source)
        after = Size(revision.tokens_after, basis, source)
    else:
        return {"before": None, "after": None, "change": None}
    change = after.tokens / before.tokens - 1 if before.tokens else None
    share = abs(change) if change is not None else None
    return {"before": before, "after": after, "change": change, "change_share": share}


def _stated(revision: Revision) -> tuple[str, str]:
    if revision.run.origin == Run.Origin.SIMULATED:
        return SIMULATED, "as the policy would have built it"
    if revision.tokens_stated:
        return MEASURED, "as stated in the log"
    return ESTIMATED, "counted by us"
