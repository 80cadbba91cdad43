"""The size of the context before and after a revision; one rule for all pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compaction.context.blocks import KINDS
from sessions.figures import tokens
from sessions.models import ModelCall, Revision, Run, Session
from sessions.models.record import manifest

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


def reported(session: Session, run: Run, step: int) -> int | None:
    """The prompt that the provider reported for a step of the recorded run; None without one."""
    call = call_of(session, run, step)
    return None if call is None else _prompt(call)


def sizes_of(session: Session, revision: Revision) -> tuple[Size, Size] | tuple[None, None]:
    """The sizes before and after, from the same source so that they are comparable; None if
    unknown.

    Reported prompts are preferred. Sizes stated by a log leave the hidden prompt out of the second,
    so it is added there.
    """
    before_call = call_of(session, revision.run, revision.step - 1)
    after_call = call_of(session, revision.run, revision.step)
    if before_call is not None and after_call is not None:
        steps = f"steps {revision.step - 1} and {revision.step}"
        source = f"prompts reported by the provider for {steps}"
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


@dataclass(frozen=True, slots=True)
class TakenOut:
    """Tokens that a revision took out: what the log shows, and how many of these must have left
    before, because the provider's prompt before it was smaller than our count of it."""

    logged: int
    left_before: int

    @property
    def tokens(self) -> int:
        """What it took out of the prompt that the provider counted; estimated."""
        return self.logged - self.left_before


def taken_out(counted: int, before: Size | None, logged: int) -> TakenOut:
    """What a revision took out, of `logged` tokens that it closed. `counted` is our count of the
    whole context right before it."""
    over = off_by(counted, before)
    return TakenOut(logged, min(over, logged) if over is not None and over > 0 else 0)


def off_by(counted: int, before: Size | None) -> int | None:
    """The difference between our count and the provider's; None if within 5 %."""
    if before is None or before.basis != MEASURED:
        return None
    off = counted - before.tokens
    return off if abs(off) > before.tokens / 20 else None


def counted_at(session: Session, run: Run, step: int) -> int:
    """Our count of the whole context of a step."""
    return sum(sums_at(session, manifest.columns(run), step)) + session.hidden_tokens


def sums_at(session: Session, table: dict[str, Any], step: int) -> list[int]:
    """Tokens of a step's context by kind, in the order of `KINDS`, from the columns of its run."""
    sums = [0] * len(KINDS)
    rows = zip(table["from"], table["to"], table["kind"], table["tokens"], strict=True)
    for start, end, kind, tokens_of in rows:
        if start <= step and (end == 0 or step < end):
            sums[kind] += session.scaled(tokens_of)
    return sums


def _stated(revision: Revision, hidden: int) -> tuple[str, str]:
    if revision.run.origin == Run.Origin.SIMULATED:
        return SIMULATED, "as the policy would have built it"
    if not revision.tokens_stated:
        return ESTIMATED, "counted by us"
    if hidden:
        return ESTIMATED, f"as stated in the log, the second with {tokens(hidden)} not in the log"
    return MEASURED, "as stated in the log"
