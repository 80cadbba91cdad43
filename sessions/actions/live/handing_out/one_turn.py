"""System messages that earlier contexts of a run ended with: a model that binds thinking to what
was before it must be sent them again, unchanged."""

from __future__ import annotations

from zlib import compress, decompress

from compaction.prices.binding import binds_thinking
from sessions.actions.live.managed import Plan
from sessions.models import SentRecitation


def sent_before(plan: Plan, known: dict[int, str]) -> dict[int, str]:
    """The texts sent before a plan's step, by step; `known` are those a process has."""
    if not binds_thinking(plan.session.model) or not (plan.ending.text or known):
        return {}
    # The newest may have been sent again with another text.
    rows = SentRecitation.objects.filter(run=plan.run, step__gte=max(known, default=0))
    new = {step: decompress(data).decode() for step, data in rows.values_list("step", "data")}
    return {step: text for step, text in (known | new).items() if step < plan.step}


def keep_sent(plan: Plan, text: str) -> None:
    """Store the text that a step's context ends with; the newest counts."""
    if binds_thinking(plan.session.model):
        data = compress(text.encode("utf-8", "replace"))
        SentRecitation.objects.update_or_create(
            run=plan.run, step=plan.step, defaults={"data": data}
        )
