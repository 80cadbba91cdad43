"""A late span between others: what precedes it stays as it is stored, the rest is written again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from opentelemetry.sdk.trace import ReadableSpan

from sessions.actions.imports import traced, traced_cut
from sessions.actions.search import indexing
from sessions.api.replay.following import _mark
from sessions.models import ModelCall, Run, Session, Team
from sessions.models.memory.boards import Gathering
from tests.sessions.imports.traced_trees import (
    Said,
    Spans,
    Traced,
    asks,
    requests,
    result,
    send,
    stored,
    team,
    text,
)


def long_agent(made: Traced, unnamed: Mapping[int, str]) -> Spans:
    """Steps of one agent with a history, twice gone back in it, with other tool lists, and prompts
    of results alone, `unnamed` ones without the id of their call; and a sub-agent beside."""
    main = made.begin("invoke_agent", None)
    history: list[Said] = [text("system", "You lead."), text("user", "Find the kelp.")]
    for number in range(12):
        call = f"c{number}"
        tools = json.dumps([{"name": "look", "version": number // 5}])
        answer = asks(call)
        prompt = history if number not in (4, 9) else [*history[:3], text("user", "Again.")]
        if number in (6, 7):
            prompt = [result(f"c{number - 1}", f"Green {number - 1}.")]
        span = made.begin("chat", main, **{"tool.definitions": tools})
        made.used(span, number + 1)
        said = {"gen_ai.input.messages": prompt, "gen_ai.output.messages": [answer]}
        span.set_attributes({key: json.dumps(one) for key, one in said.items()})
        made.end(span)
        history = history if number not in (4, 9) else prompt
        history = [*history, answer, result(unnamed.get(number, call), f"Green {number}.")]
        if number % 4 == 0:
            dive = [text("system", "You lead."), text("user", "Dive.")]
            made.chat(main, dive, text("assistant", f"At {number}."))
    made.end(main)
    return made.ended()


AGENT = long_agent(Traced(), {})


def calls_in(spans: Sequence[ReadableSpan]) -> list[ReadableSpan]:
    """The spans of model calls of the agent itself, in order."""
    found = [one for one in spans if (one.attributes or {}).get("gen_ai.tool.definitions")]
    return sorted(found, key=lambda one: one.start_time or 0)


def more(ours: Team) -> dict[str, Any]:
    """What is recorded besides (see `stored`): revisions, errors, and what can be found."""
    found = {}
    for one in Session.objects.filter(team=ours):
        run = Run.objects.get(session=one, origin=Run.Origin.RECORDED)
        revisions = run.revisions.order_by("number").values_list("number", "step", "key", "at")
        tools = one.blocks.order_by("position").values_list("tool_call", "tool", "born", "index")
        usage = one.calls.order_by("step").values_list("usage_raw", "stop_reason", "response")
        counts = (one.error_count, one.compaction_count, run.head)
        found[one.external_id] = [list(revisions), list(tools), list(usage), counts]
    return found


def all_of(ours: Team) -> tuple[dict[str, Any], dict[str, Any]]:
    return stored(ours), more(ours)


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[traced_cut.TraceCut]]:
    """The cuts that are made."""
    made: list[traced_cut.TraceCut] = []

    def noted(session: Session, cut: traced_cut.TraceCut) -> None:
        made.append(cut)
        traced_cut.take_back(session, cut)

    monkeypatch.setattr(traced, "take_back", noted)
    yield made


@pytest.mark.django_db
@pytest.mark.store
def test_a_late_call_leaves_what_precedes_it(cuts: list[traced_cut.TraceCut]):
    whole = team()
    send(whole, [AGENT])
    for late, one in list(enumerate(calls_in(AGENT)))[1:-1]:
        ours = team()
        send(ours, [[span for span in AGENT if span is not one]])
        session = Session.objects.get(team=ours, parent=None)
        blocks = dict(session.blocks.values_list("position", "pk"))
        calls = dict(session.calls.values_list("step", "pk"))
        cuts.clear()
        send(ours, [[one]])
        assert all_of(ours) == all_of(whole), f"call {late}"
        if late in (5, 6):  # what follows it has no history, and was a session of its own
            continue
        (cut,) = cuts
        assert cut.step == late + 1
        now = dict(session.blocks.values_list("position", "pk"))
        kept = {position for position, pk in blocks.items() if now.get(position) == pk}
        assert kept == set(range(cut.position))
        assert calls[late] == session.calls.get(step=late).pk


@pytest.mark.django_db
@settings(max_examples=25, deadline=None)
@given(requests(trees=[AGENT]))
def test_any_order_and_any_requests_of_a_long_agent(sent: list[Spans]):
    ours, whole = team(), team()
    send(ours, sent)
    send(whole, [AGENT])
    assert all_of(ours) == all_of(whole)


@pytest.mark.django_db
def test_results_without_the_id_of_their_call_are_of_stored_ones():
    spans = long_agent(Traced(), {1: "look", 2: "", 7: "look", 8: "", 10: ""})
    ours, whole = team(), team()
    send(ours, [[one] for one in sorted(spans, key=lambda one: one.start_time or 0)])
    send(whole, [spans])
    assert all_of(ours) == all_of(whole)


@pytest.mark.django_db
def test_what_was_derived_from_the_steps_taken_back_goes():
    late, ours = calls_in(AGENT)[8], team()
    send(ours, [[span for span in AGENT if span is not late]])
    session = Session.objects.get(team=ours, parent=None)
    Gathering.objects.create(session=session, blocks=session.block_count)
    while indexing.index_some(ours):
        pass
    run = Run.objects.get(session=session)
    mark, generation = _mark(run), run.generation
    send(ours, [[late]])
    session.refresh_from_db()
    run.refresh_from_db()
    assert 0 < session.indexed_blocks < session.block_count
    assert not Gathering.objects.exists()
    assert _mark(run) != mark, "pages read all of it"
    assert run.generation > generation


@pytest.mark.django_db
def test_blocks_taken_back_while_they_were_read_are_not_indexed(monkeypatch: pytest.MonkeyPatch):
    late, ours = calls_in(AGENT)[8], team()
    send(ours, [[span for span in AGENT if span is not late]])
    session, entries = Session.objects.get(team=ours, parent=None), indexing._entries

    def meanwhile(team: Team, rows: Sequence[Any]) -> Any:
        found = entries(team, rows)
        if rows[0].session_id == session.pk:
            monkeypatch.setattr(indexing, "_entries", entries)
            send(ours, [[late]])
        return found

    monkeypatch.setattr(indexing, "_entries", meanwhile)
    indexing.index_some(ours)
    session.refresh_from_db()
    assert session.indexed_blocks == 0
    while indexing.index_some(ours):
        pass
    session.refresh_from_db()
    assert session.indexed_blocks == session.block_count


@pytest.mark.django_db
def test_calls_that_are_not_in_the_order_of_time_are_all_written_again(
    cuts: list[traced_cut.TraceCut],
):
    ours, calls = team(), calls_in(AGENT)
    send(ours, [[one for one in calls if one is not calls[8]]])
    session = Session.objects.get(team=ours, parent=None)
    other = session.calls.order_by("-step")[1]
    ModelCall.objects.filter(pk=other.pk).update(at=1)  # as a late one of a session with notes
    send(ours, [[calls[8]]])
    assert not cuts
    times = list(session.calls.order_by("step").values_list("at", flat=True))
    assert times == sorted(times)
