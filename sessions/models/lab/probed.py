"""What real models answered at steps of a simulation, summed by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sessions.models.lab.simulations import Simulation

SHARES = ("tool", "arguments", "read_backs", "imitates")
"""Means over steps; `read_backs` counts steps with any."""

SUMS = ("prompt_tokens", "output_tokens", "microusd")


def probed(simulation: Simulation, model: str) -> dict[str, dict[str, Any]]:
    """Return the sums of one model's answers under "recorded" and "managed".

    Only steps that were asked under both count. `tool` is the share of steps with the recorded
    tool, `arguments` that of equal arguments, `read_backs` and `imitates` shares of steps; tokens
    and micro-dollars are added. Empty without answers.
    """
    sides: dict[str, dict[tuple[Any, str], dict[str, Any]]] = {"recorded": {}, "managed": {}}
    for version, session, figures in _rows(simulation):
        side = sides["recorded" if version is None else "managed"]
        for step, answer in figures.get("probe", {}).get(model, {}).items():
            side[session, step] = answer
    both = sides["recorded"].keys() & sides["managed"].keys()
    if not both:
        return {}
    return {name: _summed([side[one] for one in both]) for name, side in sides.items()}


def probes(simulation: Simulation) -> list[dict[str, Any]]:
    """Return the sums of every model that was asked: {model, recorded, managed}."""
    models = {name for _, _, figures in _rows(simulation) for name in figures.get("probe", {})}
    found = [(model, probed(simulation, model)) for model in sorted(models)]
    return [{"model": model, **sides} for model, sides in found if sides]


def _rows(simulation: Simulation) -> Iterable[tuple[int | None, Any, Mapping[str, Any]]]:
    rows = simulation.results.filter(problem="")
    of = rows.filter(version=None) | rows.filter(version=simulation.draft_id)
    return of.values_list("version", "session", "figures")


def _summed(answers: list[dict[str, Any]]) -> dict[str, Any]:
    shares = {name: sum(min(float(one[name]), 1.0) for one in answers) for name in SHARES}
    return {
        "steps": len(answers),
        **{name: value / len(answers) for name, value in shares.items()},
        **{name: sum(one[name] for one in answers) for name in SUMS},
    }
