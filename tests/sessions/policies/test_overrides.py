"""Overrides of a session: from its request or the environment; frozen when it began."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from compaction.policies.presets import PRESETS
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs.attempts import attempt
from sessions.actions.jobs.jobs import claim
from sessions.actions.live.answer import standing_of
from sessions.actions.live.live_sessions import put_session, session_fields
from sessions.actions.live.managed import catch_up
from sessions.actions.policies.policies import save_version
from sessions.importers.delivered.delivered import Unacceptable
from sessions.models import Budget, Job, Revision, Session
from sessions.models.policies.policy_documents import effective
from tests.sessions.live.appends import send, user
from tests.sessions.pages import page_of, signed_in

pytestmark = pytest.mark.django_db


def put(body: dict[str, Any], name: str = "run") -> Session:
    return put_session(local_team(), name, session_fields(body))[0]


def sources(session: Session) -> dict[str, tuple[Any, str]]:
    return {one.field.name: (one.field.value, one.source) for one in effective(session)}


@pytest.mark.parametrize("case", ["qa", "debugging", "long-task"])
def test_a_case_of_shannons_is_a_preset(case: str) -> None:
    session = put({"use_case_preset": case})
    assert session.policy_version is not None
    assert session.policy_version.policy.name == f"sliding-window-{case}"
    assert session.policy_from == "request"
    assert sources(session)["messages"][1] == "request"
    assert sources(session)["target"] == (0.375, "default")


def test_the_request_of_the_source_is_understood() -> None:
    body = {
        "use_case_preset": "debugging",
        "history_window_size": 100,
        "token_budget_per_agent": 60_000,
    }
    session = put(body)
    result = sources(session)
    assert (result["messages"], result["budget"]) == ((100, "request"), (60_000, "request"))
    assert standing_of(session).trigger == int(0.85 * 60_000)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"use_case_preset": "qa"}, "/use_case_preset"),
        ({"use_case_preset": "debugging", "history_window_size": 7}, "/history_window_size"),
        ({"history_window_size": 0}, "/history_window_size"),
        ({"token_budget_per_agent": 0}, "/token_budget_per_agent"),
        ({"policy_overrides": {"window.recents": 2}}, "/policy_overrides"),
        ({"policy_overrides": {"window.recents": 3, "window.primers": 0}}, "/policy_overrides"),
    ],
)
def test_once_there_are_messages_the_field_that_would_change_is_named(
    body: dict[str, Any], pointer: str
) -> None:
    made = {
        "use_case_preset": "debugging",
        "history_window_size": 100,
        "policy_overrides": {"window.recents": 3},
    }
    session = put(made)
    send(session, user("hello"))
    for again in (made, {}, *({name: value} for name, value in made.items())):
        assert put(again).overrides == session.overrides
    with pytest.raises(Unacceptable) as caught:
        put(body)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_may_be_asked_for_again(name: str) -> None:
    session = put({"use_case_preset": name})
    send(session, user("hello"))
    assert put({"use_case_preset": name}).policy_version == session.policy_version


def test_every_source_shows_and_the_managed_context_follows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CONTEXTLAB_POLICY__WINDOW__TARGET", "0.25")
    monkeypatch.setenv("CONTEXTLAB_POLICY__WINDOW__RECENTS", "1")
    monkeypatch.setenv("CONTEXTLAB_POLICY__WINDOW__PRIMERS", "no number")
    document = {"steps": [{"strategy": "window", "parameters": {"recents": 7}}]}
    save_version(local_team(), "ours", document, "sliding-window", "", None, COMMAND)
    session = put({"policy": "ours", "policy_overrides": {"window.trigger": 0.5}})
    result = sources(session)
    assert result["budget"] == (32_000, "preset")
    assert result["recents"] == (7, "policy")
    assert result["trigger"] == (0.5, "request")
    assert result["target"] == (0.25, "environment")
    assert result["primers"] == (3, "default")
    by_name = {one.field.name: one for one in effective(session)}
    assert (by_name["trigger"].overrides, by_name["trigger"].version_has) == (True, 0.75)
    assert not by_name["recents"].overrides
    monkeypatch.delenv("CONTEXTLAB_POLICY__WINDOW__TARGET")
    session.refresh_from_db()
    assert sources(session)["target"] == (0.25, "environment")
    assert standing_of(session).trigger == 16_000


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"use_case_preset": "coding"}, "/use_case_preset"),
        ({"use_case_preset": 3}, "/use_case_preset"),
        ({"use_case_preset": "qa", "policy": "offload-first"}, "/use_case_preset"),
        ({"history_window_size": "9"}, "/history_window_size"),
        ({"history_window_size": True}, "/history_window_size"),
        ({"use_case_preset": "qa", "history_window_size": -1}, "/history_window_size"),
        ({"policy": "recitation", "token_budget_per_agent": 5}, "/token_budget_per_agent"),
        ({"policy_overrides": []}, "/policy_overrides"),
        ({"policy_overrides": {"a/b": 1}}, "/policy_overrides/a~1b"),
        ({"policy_overrides": {"offload.age": "x"}}, "/policy_overrides/offload.age"),
        ({"policy_overrides": {f"k{n}": 1 for n in range(200)}}, "/policy_overrides"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_made(body: dict[str, Any], pointer: str) -> None:
    with pytest.raises(Unacceptable) as caught:
        put({"policy": "offload-first", **body} if "policy_overrides" in body else body)
    assert caught.value.pointer == pointer
    assert not Session.objects.exists()


def test_a_policy_chosen_at_the_first_append_keeps_the_environments_values(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.DEFAULT_POLICY = "sliding-window"
    session = put({})
    Session.objects.filter(pk=session.pk).update(policy_version=None)
    monkeypatch.setenv("CONTEXTLAB_POLICY__WINDOW__TARGET", "0.25")
    send(Session.objects.get(pk=session.pk), user("Hello."))
    assert sources(Session.objects.get(pk=session.pk))["target"] == (0.25, "environment")


def test_without_an_override_nothing_is_kept() -> None:
    session = put({"policy": "offload-first"})
    assert session.overrides is None
    assert session.policy_version is not None
    assert session.policy_document == session.policy_version.document


@pytest.mark.store
def test_a_revision_is_made_with_the_sessions_own_values() -> None:
    session = put({"use_case_preset": "qa", "history_window_size": 4, "policy_overrides": {
        "window.summary_tokens": 100, "window.primers": 1, "window.recents": 2}})  # fmt: skip
    said = "We talk about tickets and their prices in some detail, as people do. " * 30
    messages = [
        user(said) if n % 2 == 0 else {"role": "assistant", "content": said} for n in range(9)
    ]
    send(session, *messages)
    catch_up(Session.objects.get(pk=session.pk))
    revision = Revision.objects.filter(run__session=session).first()
    assert revision is not None
    assert "messages, at most 4" in revision.reason
    assert revision.parameters["steps"][0]["parameters"]["messages"] == 4


@pytest.mark.store
def test_an_outcome_compacts_where_the_policy_says_so() -> None:
    session = put({"policy": "offload-first", "policy_overrides": {"compact.on_task_done": True}})
    said = "We talk about tickets and their prices in some detail, as people do. " * 60
    messages = [
        user(said) if n % 2 == 0 else {"role": "assistant", "content": said} for n in range(12)
    ]
    send(session, *messages)
    put({"outcome": "succeeded"})
    job = Job.objects.get(kind="compact")
    assert job.payload["done"] is True
    claimed = claim(job.pk)
    assert claimed is not None
    attempt(claimed.pk, claimed.token)
    triggers = Revision.objects.filter(run__session=session).values_list("trigger", flat=True)
    assert "task_done" in list(triggers)


def test_the_page_and_the_api_tell_it(client: Client) -> None:
    session = put({"use_case_preset": "qa", "token_budget_per_agent": 9_000})
    asker = signed_in()
    page = page_of(asker, f"/sessions/{session.pk}/policy/")
    assert "9,000 tokens the policy: 25,000 tokens" in page.text
    assert "1 setting differs from sliding-window-qa@1" in page.text
    assert page.html.count("origin-request") == 1, "what says the same overrides nothing"
    assert "request" in page.text
    result = asker.get(f"/api/v1/sessions/{session.external_id}/policy").json()
    assert result["policy"] == "sliding-window-qa@1"
    values = {one["name"]: (one["value"], one["source"]) for one in result["values"]}
    assert values["budget"] == (9_000, "request")
    assert result["document"]["steps"][0]["parameters"]["budget"] == 9_000
    assert PRESETS["sliding-window-qa"].steps[0].parameters.budget == 25_000


def test_a_session_without_a_policy_says_so() -> None:
    session = Session.objects.create(team=local_team(), external_id="imported")
    asker = signed_in()
    assert "No policy manages" in page_of(asker, f"/sessions/{session.pk}/policy/").text
    assert asker.get("/api/v1/sessions/imported/policy").json()["values"] == []


def test_a_small_hard_limit_is_shown_on_the_budgets_page() -> None:
    Budget.objects.create(team=local_team(), scope="agent", mode="hard", tokens=9_000)
    Budget.objects.create(team=local_team(), scope="task", mode="soft", tokens=9_000)
    text = page_of(signed_in(), "/budgets/").text
    assert text.count("A hard limit of 9,000 tokens") == 1
