"""The lab's exact figures: those of a stored simulation, kept in memory, of one team only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from compaction.policies.policy import from_dict, to_dict
from compaction.policies.presets import PRESETS
from sessions.actions.lab import draft_figures
from sessions.actions.lab.draft_figures import DraftFigures
from sessions.actions.lab.simulated_figures import figures_of, recorded_figures, recording_of
from sessions.actions.policies.bounds import defaults
from sessions.models import PolicyVersion, Session, Team
from sessions.models.lab.simulated_sums import sums
from sessions.views.lab import drafts
from tests.sessions.lab.simulated import log, store
from tests.sessions.pages import other_team
from tests.sessions.people import browser, member

BALANCED = to_dict(PRESETS["balanced"])
EAGER = {"name": "eager", "steps": [{"strategy": "offload", "parameters": {"age": 1, "batch": 1}}]}


def request(team: Team, rows: list[Session], **more: Any) -> dict[str, Any]:
    """What the page asks of a worker."""
    draft = to_dict(from_dict(EAGER))
    return {
        "team": str(team.pk),
        "sessions": [str(row.pk) for row in rows],
        "active": "balanced@1",
        "policies": {"draft": draft, "active": BALANCED},
        "effects": {},
        "points": {},
        "guardrail": defaults(),
        **more,
    }


def lines(kept: DraftFigures, asked: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The last line of each kind."""
    return {line["kind"]: line for line in kept.lines(asked) if line is not None}


def test_its_figures_are_those_of_a_stored_simulation(team):
    rows = store(team, log("one", 9), log("two", 5))
    found = lines(DraftFigures(), request(team, rows))
    recordings = [recording_of(row) for row in rows]
    last = found["figures"]
    assert (last["through"], last["total"], found["done"]["problems"]) == (2, 2, [])

    def same(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
        timed = {"ms_per_step", "oracle_microusd"}
        assert {k: v for k, v in mine.items() if k not in timed} == {
            k: v for k, v in theirs.items() if k not in timed
        }

    same(last["recorded"], sums([recorded_figures(one) for one in recordings]))
    for name, policy in (("active", PRESETS["balanced"]), ("draft", from_dict(EAGER))):
        same(last[name], sums([figures_of(one, policy).figures for one in recordings]))
    costs = [one.oracle_cost for one in recordings]
    assert found["oracle"]["cost_microusd"] == sum(costs)
    assert found["done"]["steps"] == sum(row.step_count for row in rows)


def test_partial_figures_compare_the_same_sessions(team, monkeypatch):
    monkeypatch.setattr(draft_figures, "LEAST_SECONDS", 0)
    rows = store(team, log("one", 9), log("two", 5))
    found = [
        line
        for line in DraftFigures().lines(request(team, rows))
        if line is not None and line["kind"] == "figures"
    ]
    assert [one["through"] for one in found] == [1, 2]
    assert {found[0][name]["steps"] for name in ("draft", "active")} == {rows[0].step_count}
    assert found[0]["verdict"]["sentence"].startswith("So far, 1 of 2 sessions.")
    assert not found[0]["verdict"]["propose"]
    assert [row["id"] for one in found for row in one["rows"]] == [str(row.pk) for row in rows]
    # Bars, and the verdict's amounts, are of one measure: the rows add up to it.
    costs = [row["cost"] for one in found for row in one["rows"]]
    for place, name in enumerate(("recorded", "active", "draft")):
        assert sum(cost[place] for cost in costs) == found[-1][name]["charged_microusd"]
    assert found[-1]["draft"]["charged_microusd"] > found[-1]["draft"]["cost_microusd"]
    assert found[-1]["recorded"]["charged_microusd"] == found[-1]["recorded"]["cost_microusd"]


def test_nothing_is_simulated_twice_and_a_changed_session_is(team, monkeypatch):
    rows = store(team, log("one", 5))
    kept = DraftFigures()
    before = lines(kept, request(team, rows))

    def never(*_: Any) -> None:
        raise AssertionError("simulated again")

    with monkeypatch.context() as patched:
        patched.setattr(draft_figures, "figures_of", never)
        assert lines(kept, request(team, rows))["figures"] == before["figures"]
    Session.objects.filter(pk=rows[0].pk).update(hidden_tokens=5000)
    after = lines(kept, request(team, rows))["figures"]
    assert after["draft"]["tokens_sent"] > before["figures"]["draft"]["tokens_sent"]


def test_erased_content_is_not_looked_at_in_memory(team):
    (session,) = store(team, log("one", 9))
    kept = DraftFigures()
    about = {"session": str(session.pk), "text": "step 3", "steps": [9], "policies": {}}
    assert lines(kept, {**about, "team": str(team.pk)})["kept"]["rows"]
    lines(kept, request(team, [session]))
    Session.objects.filter(pk=session.pk).update(content_erased=timezone.now())
    refused = lines(kept, {**about, "team": str(team.pk)})
    assert refused == {"failed": {"kind": "failed", "error": "ContentErased"}}
    assert lines(kept, request(team, [session]))["done"]["problems"] == [str(session.pk)]


def test_a_changed_setting_has_its_own_effect_and_presets_their_points(team):
    rows = store(team, log("one", 9))
    eager, other = to_dict(from_dict(EAGER)), to_dict(PRESETS["offload-first"])
    asked = request(team, rows, effects={"steps": eager}, points={"offload-first": other})
    found = lines(DraftFigures(), asked)
    last, effect = found["figures"], found["effect"]
    saved = last["draft"]["charged_microusd"] - last["active"]["charged_microusd"]
    assert (effect["path"], effect["charged_microusd"]) == ("steps", saved)
    assert effect["in_context"] == last["draft"]["in_context"] - last["active"]["in_context"]
    recording = recording_of(rows[0])
    figures = figures_of(recording, PRESETS["offload-first"]).figures
    assert found["point"] == {
        "kind": "point", "name": "offload-first",
        "charged_microusd": figures["cost_microusd"] + figures["read_backs_microusd"],
        "in_context": figures["in_context"],
    }  # fmt: skip


def test_an_unchanged_draft_is_no_proposal(team):
    rows = store(team, log("one", 5))
    asked = request(team, rows)
    asked["policies"]["draft"] = {**BALANCED, "name": "mine"}
    found = lines(DraftFigures(), asked)
    verdict = found["figures"]["verdict"]
    assert verdict["sentence"].startswith("Same as balanced@1, the active policy.")
    assert (verdict["propose"], found["done"]["worst"]) == (False, [])


def test_sessions_of_another_team_and_broken_ones_are_left_out(team, monkeypatch):
    mine, broken = store(team, log("one", 5), log("two", 5))
    [theirs] = store(other_team(), log("secret", 5))
    read = draft_figures.recording_of

    def reading(session: Session) -> Any:
        if session.pk == broken.pk:
            raise RuntimeError("content")
        return read(session)

    monkeypatch.setattr(draft_figures, "recording_of", reading)
    found = lines(DraftFigures(), request(team, [theirs, broken, mine]))
    assert found["figures"]["total"] == 2
    assert found["figures"]["draft"]["steps"] == mine.step_count
    assert found["done"]["problems"] == [str(broken.pk)]


def test_recordings_in_memory_are_bounded(team, monkeypatch):
    rows = store(team, log("one", 5), log("two", 5), log("three", 5))
    monkeypatch.setattr(draft_figures, "KEPT_STEPS", 12)
    kept = DraftFigures()
    lines(kept, request(team, rows))
    assert len(kept.recordings) == 2
    monkeypatch.setattr(draft_figures, "KEPT_CHARS", 1)
    lines(kept, {**request(team, rows), "points": {"passthrough": to_dict(PRESETS["passthrough"])}})
    assert len(kept.recordings) == 1


# The page's request


@pytest.fixture
def owner(team: Team, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A browser, whose requests are answered without a worker."""

    def stream(team: Any, _: str, asked: Mapping[str, Any]) -> Iterator[bytes]:
        for line in DraftFigures().lines({**asked, "team": str(team)}):
            if line is not None:
                yield json.dumps(line).encode() + b"\n"

    monkeypatch.setattr(drafts, "stream", stream)
    return browser(member(team, "ada"))


def post(client: Client, **body: Any) -> Any:
    return client.post("/lab/figures/", json.dumps(body), "application/json")


def test_the_page_gets_sessions_figures_and_effects(team, owner):
    store(team, log("one", 9), log("two", 5))
    document = to_dict(PRESETS["balanced"])
    document["reserve"] = 9_000
    answer = post(owner, page="p", document=document, sessions={"by": "query", "limit": 9})
    assert (answer["Content-Type"], answer["Cache-Control"]) == ("application/x-ndjson", "no-store")
    found = [json.loads(line) for line in b"".join(answer).splitlines()]
    head = found[0]
    assert (head["kind"], head["left_out"], head["active"]) == ("sessions", 0, "balanced@1")
    assert sorted(one["steps"] for one in head["sessions"]) == [6, 10]
    kinds = [line["kind"] for line in found]
    assert [kind for kind in ("figures", "done", "effect", "oracle") if kind not in kinds] == []
    assert [one["path"] for one in found if one["kind"] == "effect"] == ["reserve"]
    assert not PolicyVersion.objects.filter(document__reserve=9_000).exists()


def test_what_is_too_much_for_a_slider_is_left_to_a_run(team, owner, monkeypatch):
    store(team, log("one", 9), log("two", 5))
    monkeypatch.setattr(drafts, "MOST_STEPS", 10)
    answer = post(owner, document=BALANCED, sessions={"by": "query"})
    head = json.loads(next(iter(answer)))
    assert (len(head["sessions"]), head["left_out"]) == (1, 1)


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ({}, "Invalid request"),
        ({"document": {"steps": 7}}, "Invalid setting"),
        ({"document": BALANCED}, "No sessions chosen"),
        (
            {"document": BALANCED, "sessions": {"by": "hand", "ids": ["x"]}},
            "No sessions chosen",
        ),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_words(owner, body, title):
    answer = post(owner, **body)
    assert (answer.status_code, answer.json()["title"]) == (422, title)
    assert answer.json()["detail"].endswith(".")
