"""Spans in any order, and in any requests: what is stored is the same as if all came at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.imports import traced, traces
from sessions.actions.masking import rules
from sessions.importers.traces import traced_contexts
from sessions.models import Hold, Session, StepNote
from tests.conftest import Server, wait_until
from tests.sessions.imports.test_traces import sessions_of
from tests.sessions.imports.traced_trees import (
    SESSION,
    TREES,
    Spans,
    Traced,
    agent_with_sub_agents,
    made_of,
    requests,
    send,
    stored,
    team,
    tools_alone,
)


@pytest.mark.django_db
@pytest.mark.parametrize("tree", TREES)
def test_one_span_per_request_in_the_order_of_ends_and_against_it(tree: str):
    spans = TREES[tree]
    whole = made_of([spans])
    for order in (spans, spans[::-1]):
        each = [[one] for one in order]
        assert made_of(each) == whole
        assert made_of([*each, spans, spans[2:5]]) == whole, "sent again"


@pytest.mark.django_db
@pytest.mark.parametrize("tree", TREES)
def test_some_calls_per_transaction(tree: str, monkeypatch: pytest.MonkeyPatch):
    whole, sizes = made_of([TREES[tree]]), []
    append = traced.TracedGroup.append

    def counted_append(group: traced.TracedGroup, calls: Any, count: Any) -> Any:
        sizes.append(len(calls))
        return append(group, calls, count)

    monkeypatch.setattr(traced.TracedGroup, "append", counted_append)
    monkeypatch.setattr(traces, "AT_ONCE", 1)
    assert made_of([TREES[tree]]) == whole
    assert set(sizes) == {1}


@pytest.mark.django_db
def test_what_is_stored_masked_is_written_again_as_it_is():
    spans, ours, found = TREES["sub-agents"], team(), []
    rules.mask_incoming(ours, True, COMMAND)
    for sent in ([spans], [[one] for one in spans[::-1]]):
        send(ours, sent)
        found.append(stored(ours))
        Session.objects.filter(team=ours).delete()
    assert found[0] == found[1] != made_of([spans])


@pytest.mark.django_db
@settings(max_examples=20, deadline=None)
@given(requests())
def test_any_order_and_any_requests(sent: list[Spans]):
    assert made_of(sent) == made_of([[span for spans in sent for span in spans]])


@pytest.mark.django_db
def test_a_sub_agent_is_a_session_of_its_own():
    whole = made_of([TREES["sub-agents"]])
    (trace,) = [name for name in whole if "/" not in name]
    rows = {name: dict(zip(SESSION, one["session"], strict=True)) for name, one in whole.items()}
    main = rows.pop(trace)
    assert (main["step_count"], main["parent__external_id"]) == (3, None)
    assert {row["parent__external_id"] for row in rows.values()} == {trace}
    assert sorted(row["step_count"] for row in rows.values()) == [1, 2]
    assert [end for _, end in whole[trace]["left"]] == [3, 3, 3], "the prompt that changed"
    assert main["usage_calls"] == 3, "the SDK's own span counts once with the instrumentation's"


@pytest.mark.django_db
def test_a_response_counts_once_however_many_spans_and_requests_name_it():
    spans = TREES["responses"]
    for sent in ([spans], [[one] for one in spans], [[one] for one in spans[::-1]]):
        (found,) = made_of(sent).values()
        assert [(one[1], one[5]) for one in found["calls"]] == [(1, 10), (2, 30), (3, 50)]
        assert len(found["messages"]) == 6


@pytest.mark.django_db
def test_a_trace_has_a_bounded_number_of_sessions(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(traced_contexts, "MOST_CONTEXTS", 2)
    made = Traced()
    within = made.begin("invoke_agent", None)
    for _ in range(5):
        within = made.begin("chat", within)
        made.used(within, 2)
        made.end(within)
    spans = made.ended()
    for sent in ([spans], [[one] for one in spans]):
        found = made_of(sent)
        steps = SESSION.index("step_count")
        assert sorted(one["session"][steps] for one in found.values()) == [1, 4]


@pytest.mark.django_db
def test_what_is_on_hold_is_not_written_again():
    spans, ours = TREES["sub-agents"], team()
    Hold.objects.create(team=ours, kind=Hold.Kind.TEAM)
    send(ours, [spans[2:]])
    before = set(Session.objects.filter(team=ours).values_list("pk", "created"))
    send(ours, [[spans[1]]])
    assert before <= set(Session.objects.filter(team=ours).values_list("pk", "created"))


@pytest.mark.django_db
def test_an_erased_session_leaves_others_of_its_request_alone():
    spans, ours = TREES["sub-agents"], team()
    send(ours, [spans[:2]])
    session = Session.objects.get(team=ours, parent=None)
    Session.objects.filter(pk=session.pk).update(content_erased=session.created)
    other = tools_alone(Traced()).ended()
    (said,) = send(ours, [[*spans[2:], *other]])
    assert "was erased" in said and session.external_id not in said
    found = Session.objects.filter(team=ours).exclude(pk=session.pk)
    assert found.get().message_count == 6, "the other trace is stored"


@pytest.mark.django_db
def test_what_would_be_written_again_from_erased_content_is_left_out():
    spans, ours = TREES["sub-agents"], team()
    send(ours, [spans[2:]])
    Session.objects.filter(team=ours).update(content_erased=Session.objects.all()[0].created)
    (said,) = send(ours, [[spans[1]]])
    assert "was erased" in said
    assert sum(Session.objects.filter(team=ours).values_list("step_count", flat=True)) == 5


@pytest.mark.django_db
def test_what_people_left_at_a_session_stays():
    spans, ours = TREES["sub-agents"], team()
    own, first, *others = spans
    send(ours, [others])
    noted = Session.objects.get(team=ours, parent=None)
    note = StepNote.objects.create(session=noted, step=2, text="Look here.", author_name="Ada")
    (said,) = send(ours, [[first]])
    assert "has notes, pins, reviews or a hold" in said
    assert StepNote.objects.get() == note
    assert sum(Session.objects.filter(team=ours).values_list("step_count", flat=True)) == 6


@pytest.mark.django_db
def test_prompts_without_history_are_stored_once_in_any_order():
    spans = TREES["no history"]
    (found,) = made_of([[one] for one in (*spans[2:], *spans[:2])]).values()
    assert len(found["messages"]) == 8
    assert not found["left"], "the context went on"


def test_a_batch_processor_of_opentelemetry_sends_to_a_server(served: Server):
    key = served.new_key()
    exporter = OTLPSpanExporter(
        f"{served.address}/api/v1/traces", headers={"Authorization": f"Bearer {key}"}
    )
    processor = BatchSpanProcessor(exporter, max_export_batch_size=2, schedule_delay_millis=20)
    agent_with_sub_agents(Traced(processor))
    processor.shutdown()

    expected = [
        ("Dive at the pier.", 2, True),
        ("Find the kelp.", 3, False),
        ("Sail to the buoy.", 1, True),
    ]

    def shown() -> list[tuple[str, int, bool]]:
        listed = sessions_of(served, key)
        return sorted((one["title"], one["steps"], "/" in one["external_id"]) for one in listed)

    wait_until(lambda: shown() == expected, 60)
    assert len(sessions_of(served, key)) == len(expected), "nothing else was made of the spans"
