"""The lab's recorded baseline costs what its session costs on every other page."""

from __future__ import annotations

import pytest

from compaction.context.session import Usage
from compaction.policies.presets import PRESETS
from sessions.actions.accounts.teams import local_team
from sessions.actions.lab.simulated_figures import figures_of, lived_figures, recording_of
from sessions.actions.record.append import append
from sessions.actions.record.copied import count_once
from sessions.actions.record.measure import measure
from sessions.importers.records import Call, Message
from sessions.importers.records import Session as Incoming
from sessions.models import Session
from tests.sessions.imports.test_exports_restored import OFTEN, managed
from tests.sessions.made import count

pytestmark = pytest.mark.django_db

WORDS = "The quick brown fox jumps over the lazy dog. " * 40


def incoming(name: str, usages: list[Usage | None], steps: int = 4) -> Incoming:
    """A session of some steps, each with its usage, under ids of a provider."""
    session = Incoming(name, agent="coder", model="claude-sonnet-4-5")
    for step in range(1, steps + 1):
        call = f"msg_of_a_provider_{step}"
        session.records += [
            Message("user", [{"type": "text", "text": WORDS}], key=f"u{step}", human=True),
            Call(call, model=session.model, at=step * 60_000, usage=usages[step - 1]),
            Message("assistant", [{"type": "text", "text": "Yes."}], key=f"a{step}", call=call),
        ]
    return session


USAGES = [Usage(10, 0, 30_000 + 500 * step, 0, 50) for step in range(4)]


def stored(one: Incoming) -> Session:
    session = append(local_team(), one, count, source="test").session
    measure(session)
    return Session.objects.get(pk=session.pk)


def test_the_recorded_cost_and_peak_are_those_of_the_session() -> None:
    session = stored(incoming("a", [*USAGES]))
    figures = lived_figures(recording_of(session))
    assert figures["cost_microusd"] == session.cost_microusd > 0
    assert figures["cost_reported"]
    assert figures["peak_tokens"] == session.peak_tokens == 31_510


def test_a_policy_that_changes_nothing_costs_what_was_recorded() -> None:
    session = stored(incoming("a", [*USAGES]))
    figures = figures_of(recording_of(session), PRESETS["passthrough"]).figures
    assert figures["cost_recorded_microusd"] == session.cost_microusd
    # The rules of a simulation set one breakpoint more.
    assert figures["cost_microusd"] == pytest.approx(session.cost_microusd, rel=0.01)


def test_calls_without_usage_cost_nothing_beside_calls_with_it() -> None:
    session = stored(incoming("a", [USAGES[0], None, USAGES[2], None]))
    recording = recording_of(session)
    assert lived_figures(recording)["cost_microusd"] == session.cost_microusd
    assert [use.step for use in recording.paid(recording.lived_uses)] == [1, 3]


def test_a_copied_call_is_paid_in_its_own_session_only() -> None:
    first = stored(incoming("a", [*USAGES]))
    fork, copied = count_once(local_team(), incoming("b", [*USAGES]))
    assert copied == 4
    second = stored(fork)
    assert second.cost_microusd is None
    found = [lived_figures(recording_of(one))["cost_microusd"] for one in (first, second)]
    assert found == [first.cost_microusd, None]


def test_without_any_usage_the_cost_is_an_estimate() -> None:
    figures = lived_figures(recording_of(stored(incoming("a", [None] * 4))))
    assert figures["cost_microusd"] > 0
    assert not figures["cost_reported"]


def test_a_session_under_a_policy_is_compared_with_what_its_model_saw() -> None:
    session = managed(local_team())
    recording = recording_of(session)
    lived = lived_figures(recording)
    again, whole = (figures_of(recording, one) for one in (OFTEN, PRESETS["passthrough"]))
    assert again.figures["tokens_sent_recorded"] == lived["tokens_sent"]
    assert again.figures["tokens_sent"] == pytest.approx(lived["tokens_sent"], rel=0.03)
    assert whole.figures["tokens_sent"] > 1.5 * lived["tokens_sent"]
    # The same replacements stand, so the breakpoint after them is at the same place.
    places = [[step.frontier > 0 for step in one.steps] for one in (recording.lived, again.run)]
    assert places[0] == places[1] and any(places[0])
    assert lived["compactions"] == 0, "an offload summarizes nothing"
