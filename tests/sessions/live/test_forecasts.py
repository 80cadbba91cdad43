"""Forecasts of live sessions: page, bar of the replay and API, from what agents reported."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.utils import timezone

from sessions.actions.accounts.teams import local_team
from sessions.actions.live import forecasts as action
from sessions.actions.live.forecasts import forecast
from sessions.actions.policies.policies import preset_version
from sessions.actions.web.apart import NotInTime
from sessions.models import AuditEntry, Run, Session
from sessions.models.live.recent import recent_calls
from tests.sessions.pages import page_of, signed_in
from tests.sessions.programs import Program

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

STEPS = 6


@pytest.fixture
def growing() -> Session:
    """An agent whose prompt grows by 1,000 tokens a step, of 31,000 at which its policy acts."""
    cache.clear()
    program = Program(local_team())
    about = {"model": "claude-sonnet-4-5", "window": 57_670, "policy": "offload-first"}
    program.ask("PUT", "/sessions/grows", about)
    program.post("/sessions/grows/messages", {"messages": [{"role": "user", "content": "Go."}]})
    for step in range(1, STEPS + 1):
        sent = program.get("/sessions/grows/context")
        use = {"type": "tool_use", "id": f"t{step}", "name": "Run", "input": {"n": step}}
        answer = {"messages": [{"role": "assistant", "content": [use]}], "call": f"c{step}"}
        usage = {"input_tokens": 10_000 + 1_000 * step, "output_tokens": 100}
        program.post("/sessions/grows/messages", answer | {
            "usage": usage, "context_id": sent["context_id"],
        })  # fmt: skip
        result = {"type": "tool_result", "tool_use_id": f"t{step}", "content": f"row {step}"}
        program.post(
            "/sessions/grows/messages", {"messages": [{"role": "user", "content": [result]}]}
        )
    found = Session.objects.get(external_id="grows")
    now = int(timezone.now().timestamp() * 1000)
    for call in found.calls.all():
        call.at, call.cost_microusd = now - 30_000 * (STEPS - call.step), 60_000
        call.save()
    began = timezone.now() - timedelta(minutes=3, seconds=30)
    Session.objects.filter(pk=found.pk).update(used_tokens=17_000, created=began)
    found.refresh_from_db()
    return found


def test_a_forecast_is_said_alike_everywhere(growing: Session) -> None:
    client = signed_in()
    found = forecast(growing)
    limit = action.budget_for(growing).trigger
    assert limit is not None and found.next is not None
    assert (found.next.growth, found.next.observed) == (1_000, STEPS)
    assert found.next.steps == -(-(limit - 17_000) // 1_000)
    sentence = f"First offload in about 4 steps. Compaction in about {found.next.steps} steps."
    assert found.sentence == sentence
    # Six calls in 3.5 minutes, of 11,000 to 16,000 tokens and 100 of output, 6 cents each.
    assert found.rate is not None and found.rate.calls == STEPS
    assert found.rate.microusd == pytest.approx(360_000 / 3.5, rel=0.05)
    assert found.rate.tokens == pytest.approx((81_000 + 600) / 3.5, rel=0.05)
    assert found.per_minute.endswith(" tokens/min over the last 3 minutes")
    answer = client.get("/api/v1/sessions/grows/forecast").json()
    assert answer["sentence"] == sentence and answer["limit"]["limit"] == limit
    assert answer["leaving"] is None and answer["offload"] == {"steps": 4, "every": None}
    for address in ("/live/", f"/sessions/{growing.pk}/forecast/", f"/sessions/{growing.pk}/"):
        html = client.get(address).content.decode()
        assert sentence in html and "$0.10/min" in html, address


def test_a_call_that_is_not_measured_yet_has_its_cost_per_minute(growing: Session) -> None:
    """Measuring follows some seconds after the answer: until then an agent that runs had none."""
    growing.calls.filter(step=STEPS).update(cost_microusd=None)
    rate = forecast(growing).rate
    # The last call: 16,000 tokens at $3 and 100 at $15 a million; five others at 6 cents.
    assert rate is not None
    assert rate.microusd == pytest.approx((5 * 60_000 + 49_500) / 3.5, rel=0.01)
    growing.calls.filter(step=STEPS).update(model="of no known price")
    rate = forecast(growing).rate
    assert rate is not None and rate.microusd is None, "a price that is not known stays so"


def test_contexts_sent_before_the_first_report_are_no_growth(growing: Session) -> None:
    """Their sizes lack the hidden prompt: a forecast from them would come too early."""
    growing.calls.filter(step__lte=2).update(uncached=None)
    recent = recent_calls([growing], 0)[growing.pk]
    assert min(recent.prompts) == 3
    assert (found := forecast(growing).next) is not None and found.growth == 1_000
    growing.calls.update(uncached=None)
    assert min(recent_calls([growing], 0)[growing.pk].prompts) == 1, "then all of them lack it"


def test_the_next_prompt_is_counted_as_the_reported_ones(growing: Session) -> None:
    """What logs hide is in every prompt: without it, a context that grows seems to shrink."""
    recent = recent_calls([growing], 0)[growing.pk]
    sent = recent.sent[STEPS]
    hidden = 16_000 - sent
    assert hidden > 0
    growing.used_tokens = sent + 600
    assert action._sizes(growing, recent)[-1] == 16_600
    assert forecast(growing).next is not None
    # Nothing was sent by us: what was reported is all that is known.
    recent.sent.clear()
    assert growing.used_tokens < 16_000
    assert action._sizes(growing, recent)[-1] == 16_000
    growing.used_tokens = 2_000
    assert action._sizes(growing, recent)[-1] == 2_000, "it was compacted"


def test_a_few_seconds_are_no_rate_and_an_idle_minute_counts(growing: Session) -> None:
    def seen(**ago: int) -> str:
        growing.created = timezone.now() - timedelta(**ago)
        return forecast(growing).per_minute

    assert not seen(seconds=50), "too short to say a minute"
    assert "over the last minute" in seen(seconds=70)
    longer = seen(minutes=30)
    assert "over the last 5 minutes" in longer and longer.startswith("$0.07")


def test_a_session_without_a_sign_for_minutes_has_no_rate(growing: Session) -> None:
    assert forecast(growing).per_minute
    growing.changed = timezone.now() - action.IDLE - timedelta(seconds=1)
    assert forecast(growing).per_minute == "" and forecast(growing).sentence


def test_a_page_left_open_asks_again_by_the_clock_while_its_session_runs(growing: Session) -> None:
    """An agent that stops changes nothing: its rate stood there until a reload."""
    client, url = signed_in(), f"/sessions/{growing.pk}/forecast/"
    assert 'hx-trigger="moved, every 60s"' in client.get(url).content.decode()
    Session.objects.filter(pk=growing.pk).update(outcome="succeeded")
    assert 'hx-trigger="moved"' in client.get(url).content.decode()


def test_what_cannot_be_forecast_says_so(growing: Session) -> None:
    client = signed_in()
    window = preset_version(growing.team, "sliding-window")
    Session.objects.filter(pk=growing.pk).update(used_tokens=1, policy_version=window)
    answer = client.get("/api/v1/sessions/grows/forecast?facts=true")
    assert answer.status_code == 422 and "does not grow" in answer.json()["detail"]
    part = client.get(f"/sessions/{growing.pk}/forecast/facts/")
    assert b"does not grow" in part.content
    bar = client.get(f"/sessions/{growing.pk}/forecast/").content.decode()
    assert "No forecast: its context did not grow in the last steps." in bar
    Session.objects.filter(pk=growing.pk).update(
        used_tokens=11_001, window=1_000_000, policy_version=growing.policy_version
    )
    bar = client.get(f"/sessions/{growing.pk}/forecast/").content.decode()
    assert "Compaction is more than 200 steps away at this growth." in bar
    Session.objects.filter(pk=growing.pk).update(used_tokens=17_000, outcome="succeeded")
    bar = client.get(f"/sessions/{growing.pk}/forecast/").content.decode()
    assert "Compaction in" not in bar and 'id="forecast"' in bar
    answer = client.get("/api/v1/sessions/grows/forecast").json()
    assert (answer["sentence"], answer["limit"], answer["rate"]) == ("", None, None)


def test_facts_at_risk_are_simulated_apart(growing: Session) -> None:
    client = signed_in()
    answer = client.get("/api/v1/sessions/grows/forecast?facts=true")
    assert answer.status_code == 200, answer.content
    part = client.get(f"/sessions/{growing.pk}/forecast/facts/").content.decode()
    assert ("removes nothing" in part) == (answer.json()["leaving"] is None)


def test_a_list_of_facts_at_risk_says_how_old_it_is(growing: Session) -> None:
    client = signed_in()
    url = f"/sessions/{growing.pk}/forecast/"

    def said(url: str) -> str:
        return " ".join(client.get(url).content.decode().split())

    listed = said(f"{url}facts/")
    assert (
        'name="listed_at" value="6"' in listed and "Up to date: the session is at step 6" in listed
    )
    Session.objects.filter(pk=growing.pk).update(step_count=7)
    assert "Listed 1 step ago; the session is at step 7." in said(f"{url}?listed_at=6")
    assert "Up to date" in said(f"{url}?listed_at=7")
    for wrong in ("", "-1", "six", "9" * 10):
        assert " ago;" not in said(f"{url}?listed_at={wrong}")


def test_a_policy_that_offloads_forecasts_its_next_offload(growing: Session) -> None:
    """Where the compaction is far away, facts are looked for until then."""
    run = Run.of(growing, Run.Origin.MANAGED)
    assert run is not None
    Run.objects.filter(pk=run.pk).update(head=3)
    for number, step in enumerate((41, 46, 51), 1):
        run.revisions.create(number=number, step=step, trigger="batch", tokens_before=10_000 + step)
    Session.objects.filter(pk=growing.pk).update(step_count=52, window=1_000_000)
    growing.refresh_from_db()
    found = forecast(growing)
    assert found.sentence.startswith("Offloads about every 5 steps; next in about 3 steps.")
    assert (found.until, found.level) == (("next offload", 3), 10_046)
    client = signed_in()
    part = client.get(f"/sessions/{growing.pk}/forecast/facts/").content.decode()
    assert "by the next offload the policy removes" in " ".join(part.split())
    live = client.get("/live/").content.decode()
    assert "offloaded lately at 10,046" in " ".join(live.split())
    assert 'line class="offload"' in live


def test_a_simulation_that_got_no_process_says_so(
    growing: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(*_given: object) -> None:
        raise NotInTime(1, busy=True)

    monkeypatch.setattr(action, "call_apart", taken)
    part = signed_in().get(f"/sessions/{growing.pk}/forecast/facts/")
    assert b"Other simulations are running." in part.content


def test_a_person_pauses_and_resumes_with_a_reason(growing: Session) -> None:
    client = signed_in()
    address = f"/sessions/{growing.pk}/pause/"
    client.post(address, {"act": "pause", "reason": "  ", "to": "live"})
    growing.refresh_from_db()
    assert growing.paused is None, "a reason is required"
    back = client.post(address, {"act": "pause", "reason": "look <b>here</b>", "to": "live"})
    assert back.headers["Location"].startswith("/live/")
    page = page_of(client, "/live/")
    assert "paused by" in page.text and "Resume…" in page.text
    again = client.post(address, {"act": "pause", "reason": "twice"})
    assert again.headers["Location"] == f"/sessions/{growing.pk}/"
    program = Program(local_team())
    refused = program.ask("GET", "/sessions/grows/context")
    assert refused.status_code == 423 and refused.headers["Retry-After"] == "5"
    assert "look <b>here</b>" in refused.json()["detail"]
    then = program.ask("GET", "/sessions/grows/context?at=2")
    assert then.status_code == 200, "what was sent before can be read"
    client.post(address, {"act": "resume", "reason": "looked"})
    assert program.ask("GET", "/sessions/grows/context").status_code == 200
    entries = AuditEntry.objects.filter(action__startswith="session.").order_by("pk")
    assert [(one.action, one.detail["reason"]) for one in entries] == [
        ("session.paused", "look <b>here</b>"),
        ("session.resumed", "looked"),
    ]
