"""The verdict on a draft in the lab, while it is tuned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sessions.actions.lab.simulation_verdicts import simulation_verdict
from sessions.actions.policies.bounds import Guardrail
from sessions.actions.policies.guardrail_findings import reason
from sessions.actions.policies.simulated_limits import broken_by
from sessions.figures import finely, money
from sessions.models.lab.charged_sums import charged_cost

Sums = Mapping[str, Any]


def draft_verdict(
    draft: Sums,
    active: Sums,
    recorded: Sums,
    done: tuple[int, int],
    guardrail: Guardrail,
    *,
    active_name: str = "",
    over: bool,
) -> dict[str, Any]:
    """Judge a draft by its sums over the first of `done` of the second number of sessions.

    `active_name` is set if the draft has the values of the active version. Returns {tone, sentence,
    detail, propose}: `propose` if the draft differs, is not dominated and breaks no limit of the
    guardrail. Not before it is `over`.
    """
    through, total = done
    if active_name and through:
        sentence = f"Same as {active_name}, the active policy. Move a setting to try a change."
        detail = (
            f"Recorded: {_amounts(recorded)}. Active, reading back included: {_amounts(active)}."
        )
        return {"tone": "neutral", "sentence": sentence, "detail": detail, "propose": False}
    found = simulation_verdict(draft, active, recorded, through, total, over=over)
    broken = broken_by(draft, active, guardrail) if over and through else ()
    said = {name: value for name, value in asdict(found).items() if name != "dominated"}
    if broken:
        limits = "; ".join(map(reason, broken))
        said["detail"] = f"Breaks the guardrail. {limits}. {found.detail}"
        said["tone"] = "bad"
    return said | {"propose": over and bool(through) and not found.dominated and not broken}


def _amounts(sums: Sums) -> str:
    return f"{money(charged_cost(sums))}, {finely(sums['in_context'])} recall"
