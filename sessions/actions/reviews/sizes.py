"""The size of the context before and after a revision; one rule for all pages."""

from __future__ import annotations

from dataclasses import dataclass

from sessions.figures import tokens
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


def sizes_of(session: Session, revision: Revision) -> tuple[Size, Size] | tuple[None, None]:
    """The sizes before and after, from the same source so that they are comparable; None if
    unknown.

    Reported prompts are preferred. Sizes stated by a log leave the hidden prompt out of the second,
    so it is added there.
    """
    before_call = call_of(session, revision.run, revision.step - 1)
    after_call = call_of(session, revision.run, revision.step)
    if before_call is not None and after_call is not None:
        source = f"prompts reported by the provider for S{revision.step - 1} and S{revision.step}"
        return (
            Size(_prompt(before_call), MEASURED, source),
            Size(_prompt(after_call), MEASURED, source),
        )
    before, after = revision.tokens_before, revision.tokens_after
    if before is None or after is None:
        return None, None
    hidden = session.hidden_tokens if revision.tokens_stated else 0
    basis, source = _stated(revision, hidden)
    return Size(before, basis, source), Size(after + hidden, basis, source)


def _stated(revision: Revision, hidden: int) -> tuple[str, str]:
    if revision.run.origin == Run.Origin.SIMULATED:
        return SIMULATED, "as the policy would have built it"
    if not revision.tokens_stated:
        return ESTIMATED, "counted by us"
    if hidden:
        return ESTIMATED, f"as stated in the log, the second with {tokens(hidden)} not in the log"
    return MEASURED, "as stated in the log"
