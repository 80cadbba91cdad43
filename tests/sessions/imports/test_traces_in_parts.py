"""Spans in any order, and in any requests: what is stored is the same as if all came at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import count as numbers
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span, set_span_in_context

from compaction.tokens import counted
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.assessments import assess
from sessions.actions.imports import traced, traces
from sessions.actions.imports.changed import IfChanged
from sessions.actions.imports.imports import import_file
from sessions.actions.masking import rules
from sessions.actions.record import measured
from sessions.actions.record.append import link_parents
from sessions.actions.record.measure import ROUNDS, measure, measure_imported
from sessions.importers.traces import traced_contexts
from sessions.models import Entry, Hold, Import, ImportFile, Job, Session, StepNote, Team
from tests.conftest import Server, wait_until
from tests.sessions.imports.test_traces import sessions_of, token

Said = dict[str, Any]
Spans = Sequence[ReadableSpan]


def text(role: str, said: str) -> Said:
    return {"role": role, "parts": [{"type": "text", "content": said}]}


def asks(call: str) -> Said:
    part = {"type": "tool_call", "id": call, "name": "look", "arguments": {"at": call}}
    return {"role": "assistant", "parts": [part]}


def result(call: str, said: str) -> Said:
    return {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": call, "result": said}],
    }


class Traced:
    """An agent's spans by the real SDK, in the order of their ends; each step takes a second."""

    def __init__(self, processor: SpanProcessor | None = None) -> None:
        kept = InMemorySpanExporter()
        provider = TracerProvider(resource=Resource({"service.name": "harbor"}))
        provider.add_span_processor(processor or SimpleSpanProcessor(kept))
        self._tracer = provider.get_tracer("test")
        self._seconds = numbers(1_790_000_000)
        self.ended = kept.get_finished_spans

    def begin(self, operation: str, within: Span | None, **attributes: Any) -> Span:
        around = None if within is None else set_span_in_context(within)
        at = next(self._seconds) * 10**9
        span = self._tracer.start_span(operation, around, start_time=at)
        span.set_attribute("gen_ai.operation.name", operation)
        span.set_attributes({f"gen_ai.{name}": value for name, value in attributes.items()})
        return span

    def end(self, span: Span) -> None:
        span.end(next(self._seconds) * 10**9)

    def chat(
        self, within: Span, prompt: Sequence[Said], answer: Said, *, doubled: bool = False
    ) -> None:
        span = self.begin("chat", within)
        self.used(span, len(prompt))
        said = {"gen_ai.input.messages": prompt, "gen_ai.output.messages": [answer]}
        span.set_attributes({name: json.dumps(one) for name, one in said.items()})
        if doubled:  # the SDK's own, without content
            own = self.begin("chat", span)
            self.used(own, len(prompt))
            self.end(own)
        self.end(span)

    @staticmethod
    def used(span: Span, length: int) -> None:
        span.set_attribute("gen_ai.request.model", "claude-sonnet-4-5")
        span.set_attribute("gen_ai.usage.input_tokens", 1000 * length)
        span.set_attribute("gen_ai.usage.output_tokens", 10 * length)


def agent_with_sub_agents(made: Traced) -> Traced:
    """An agent → model calls and a tool → a sub-agent → model calls; and beside it another."""
    main = made.begin("invoke_agent", None, **{"agent.name": "main"})
    rules, task = text("system", "You lead."), text("user", "Find the kelp.")
    made.chat(main, [rules, task], asks("m1"), doubled=True)
    tool = made.begin("execute_tool", main, **{"tool.name": "look", "tool.call.id": "m1"})
    first = made.begin("invoke_agent", tool, **{"agent.name": "diver"})
    second = made.begin("invoke_agent", tool, **{"agent.name": "sailor"})
    dive, sail = text("user", "Dive at the pier."), text("user", "Sail to the buoy.")
    made.chat(first, [rules, dive], asks("d1"))
    made.chat(second, [rules, sail], text("assistant", "Nothing at the buoy."))
    look = made.begin("execute_tool", first, **{"tool.name": "look", "tool.call.id": "d1"})
    made.end(look)
    made.chat(first, [result("d1", "Green.")], text("assistant", "Kelp at the pier."))
    for one in (first, second, tool):
        made.end(one)
    history = [rules, task, asks("m1"), result("m1", "Kelp, ada@example.com says.")]
    made.chat(main, history, text("assistant", "At the pier."))
    made.chat(main, [rules, task, text("user", "Shorter.")], text("assistant", "Pier."))
    made.end(main)
    return made


def one_response_by_two_spans(made: Traced) -> Traced:
    """Model calls with a span of the SDK and one of an instrumentation, which name the response."""
    main = made.begin("invoke_agent", None)
    history: list[Said] = [text("user", "Find the kelp.")]
    for number in range(3):
        name = f"msg_of_the_harbor_{number}"
        answer = text("assistant", f"At pier {number}.")
        outer = made.begin("chat", main, **{"response.id": name})
        within = outer if number == 1 else main
        inner = made.begin("chat", within, **{"response.id": name})
        own = made.begin("chat", inner)  # without content, within the span that repeats
        said = {"gen_ai.input.messages": history, "gen_ai.output.messages": [answer]}
        for span in (outer, inner, own):
            made.used(span, len(history))
        for span in (outer, inner)[number == 2 :]:
            span.set_attributes({key: json.dumps(one) for key, one in said.items()})
        for span in (own, inner, outer):
            made.end(span)
        history += [answer, text("user", "And then?")]
    made.end(main)
    return made


def usage_of_silent_spans(made: Traced) -> Traced:
    """Model calls whose usage only spans without content have: within the span of the call, or of
    the same response, or each a part; and one that has none around it."""
    main = made.begin("invoke_agent", None)
    history: list[Said] = [text("user", "Find the kelp.")]
    for number in range(4):
        named = {"response.id": f"msg_of_the_harbor_{number}"} if number % 2 else {}
        answer = text("assistant", f"At pier {number}.")
        call = made.begin("chat", main, **named)
        said = {"gen_ai.input.messages": history, "gen_ai.output.messages": [answer]}
        call.set_attributes({key: json.dumps(one) for key, one in said.items()})
        own = made.begin("chat", main if number == 1 else call, **named)
        made.used(own, number + 1)
        if number == 2:  # says less than its own
            call.set_attribute("gen_ai.usage.input_tokens", 1)
        if number == 3:
            own.set_attribute("gen_ai.usage.cache_read.input_tokens", 1500)
            made.used(call, number + 1)
        made.end(own)
        made.end(call)
        history += [answer, text("user", "And then?")]
    alone = made.begin("chat", main)
    made.used(alone, 9)
    made.end(alone)
    made.end(main)
    return made


def without_content(made: Traced) -> Traced:
    """An agent and a sub-agent whose instrumentation leaves messages out."""
    main = made.begin("invoke_agent", None)
    inner = made.begin("invoke_agent", main)
    for within in (main, inner, inner, main):
        span = made.begin("chat", within)
        made.used(span, 2)
        made.end(span)
    made.end(inner)
    made.end(main)
    return made


def tools_alone(made: Traced) -> Traced:
    """An agent whose model calls have no spans."""
    main = made.begin("invoke_agent", None)
    for call in ("a", "b", "c"):
        made.end(made.begin("execute_tool", main, **{"tool.name": "look", "tool.call.id": call}))
    made.end(main)
    return made


def without_history(made: Traced) -> Traced:
    """Model calls whose prompts are what is new alone, as with a response's id before it."""
    main = made.begin("invoke_agent", None)
    made.chat(main, [text("user", "Find the kelp.")], asks("a"))
    for call, following in pairwise(("a", "b", "c", "d")):
        made.chat(main, [result(call, f"Found {call}.")], asks(following))
    made.end(main)
    return made


def four_calls() -> Spans:
    """Calls of one conversation, without content."""
    made = Traced()
    for number in range(4):
        span = made.begin("chat", None, **{"conversation.id": "kelp"})
        made.used(span, number + 1)
        made.end(span)
    return made.ended()


TREES = {
    "sub-agents": agent_with_sub_agents(Traced()).ended(),
    "no content": without_content(Traced()).ended(),
    "tools": tools_alone(Traced()).ended(),
    "responses": one_response_by_two_spans(Traced()).ended(),
    "silent": usage_of_silent_spans(Traced()).ended(),
    "no history": without_history(Traced()).ended(),
}


def send(team: Team, requests: Iterable[Spans]) -> list[str]:
    """Import requests as the job does; return the problems of the last one."""
    file = ImportFile()
    for spans in requests:
        data = encode_spans(spans).SerializeToString()
        file = ImportFile(import_run=Import.objects.create(team=team), path="OTLP traces")
        import_file(team, file, lambda data=data: data, counted, IfChanged.KEEP)
        for parent in link_parents(team):
            measure(parent)
    return file.problems


SESSION = (
    *("external_id", "parent_external_id", "parent__external_id", "agent", "model", "title"),
    *("message_count", "block_count", "step_count", "turn_count", "tool_call_count"),
    *("usage_calls", "uncached_tokens", "output_tokens", "cost_microusd", "peak_tokens"),
    *("used_tokens", "token_ratio", "hidden_tokens", "started_at", "ended_at", "meta"),
)


def stored(team: Team) -> dict[str, Any]:
    """All that is recorded of a team's sessions, without ids of rows."""
    found: dict[str, Any] = {}
    for session in Session.objects.filter(team=team):
        ended = Entry.objects.filter(run__session=session)
        found[session.external_id] = {
            "session": Session.objects.filter(pk=session.pk).values_list(*SESSION).get(),
            "messages": list(
                session.messages.order_by("seq").values_list(
                    *("seq", "key", "digest", "role", "call", "born", "turn", "at", "late")
                )
            ),
            "blocks": list(session.blocks.order_by("position").values_list("sha", "tokens")),
            "calls": list(
                session.calls.order_by("step").values_list(
                    *("call", "step", "at", "model", "uncached", "output", "cost_microusd")
                )
            ),
            "left": list(ended.order_by("position").values_list("position", "to_step")),
        }
    return found


def team() -> Team:
    number = Team.objects.count()
    return Team.objects.create(slug=f"team-{number}", name=f"Team {number}")


def made_of(requests: Iterable[Spans]) -> dict[str, Any]:
    ours = team()
    send(ours, requests)
    return stored(ours)


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
    for requests in ([spans], [[one] for one in spans[::-1]]):
        send(ours, requests)
        found.append(stored(ours))
        Session.objects.filter(team=ours).delete()
    assert found[0] == found[1] != made_of([spans])


@st.composite
def requests(draw: st.DrawFn, trees: Sequence[Spans] = tuple(TREES.values())) -> list[Spans]:
    """The spans of a tree in any order, cut anywhere."""
    order = draw(st.permutations(draw(st.sampled_from(trees))))
    cuts = draw(st.sets(st.integers(1, len(order) - 1)))
    return [order[start:end] for start, end in pairwise([0, *sorted(cuts), len(order)])]


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
    for requests in ([spans], [[one] for one in spans]):
        found = made_of(requests)
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
@pytest.mark.parametrize(
    ("before", "now", "meanwhile"),
    [([], [1], [2, 3]), ([1], [5], [6, 7, 8, 9]), ([1], [2], [5]), ([1], [5], [2])],
    ids=["begins the group", "adds to it", "adds a sub-agent", "adds what was asked"],
)
def test_another_import_of_the_group_comes_first(
    before: list[int], now: list[int], meanwhile: list[int], monkeypatch: pytest.MonkeyPatch
):
    spans, ours = TREES["sub-agents"], team()
    append_all = traced.append_all

    def later(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(traced, "append_all", append_all)
        send(ours, [[spans[at] for at in meanwhile]])
        return append_all(*args, **kwargs)

    send(ours, [[spans[at] for at in before]])
    monkeypatch.setattr(traced, "append_all", later)
    send(ours, [[spans[at] for at in now]])
    assert stored(ours) == made_of([[spans[at] for at in (*before, *now, *meanwhile)]])


@pytest.mark.django_db
def test_prompts_without_history_are_stored_once_in_any_order():
    spans = TREES["no history"]
    (found,) = made_of([[one] for one in (*spans[2:], *spans[:2])]).values()
    assert len(found["messages"]) == 8
    assert not found["left"], "the context went on"


@pytest.mark.django_db
@pytest.mark.store
def test_another_import_writes_the_group_again_meanwhile(monkeypatch: pytest.MonkeyPatch):
    ours = team()
    first, second, third, last = four_calls()
    append_all = traced.append_all

    def later(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(traced, "append_all", append_all)
        send(ours, [[second]])
        return append_all(*args, **kwargs)

    send(ours, [[last], [third]])
    monkeypatch.setattr(traced, "append_all", later)
    send(ours, [[first]])
    assert stored(ours) == made_of([[first, second, third, last]])


@pytest.mark.django_db
@pytest.mark.store
def test_a_group_grows_while_it_is_read():
    made, ours = Traced(), team()
    main = made.begin("invoke_agent", None)
    said: list[Said] = [text("user", "Find the kelp.")]
    for number in range(3):
        answer = text("assistant", f"At pier {number}.")
        made.chat(main, said, answer)
        said += [answer, text("user", "And then?")]
    first, second, last = made.ended()
    waiting = [last]

    def meanwhile(execute: Any, sql: str, *rest: Any) -> Any:
        if waiting and sql.startswith('SELECT "agent_sessions_block"."message_id"'):
            send(ours, [[waiting.pop()]])
        return execute(sql, *rest)

    send(ours, [[second]])
    with connection.execute_wrapper(meanwhile):
        send(ours, [[first]])
    assert not waiting
    assert stored(ours) == made_of([[first, second, last]])


@pytest.mark.django_db
def test_a_group_is_written_again_while_it_is_measured():
    first, late, *others = four_calls()
    whole, before = made_of([[first, late, *others]]), 0
    while True:
        ours = team()
        send(ours, [[first, *others]])
        session, late_one = Session.objects.get(team=ours), Between(before, ours, late)
        with connection.execute_wrapper(late_one):
            measure_imported(session)
        if not late_one.sent:
            break
        assert stored(ours) == whole, f"before query {before}"
        before += 1
    assert before > 5


@pytest.mark.django_db
def test_a_session_that_is_written_all_the_time_is_left_to_a_job(monkeypatch: pytest.MonkeyPatch):
    ours, rounds = team(), list[int]()
    send(ours, [four_calls()])
    session = Session.objects.get(team=ours)

    def always_behind(session: Session) -> None:
        rounds.append(1)
        assert len(rounds) <= ROUNDS
        session.measured = False

    monkeypatch.setattr("sessions.actions.record.measure.measure", always_behind)
    assess.measure_now(session)
    assert len(rounds) == ROUNDS
    assert Job.objects.filter(kind="assess", payload__session=str(session.pk)).exists()


@pytest.mark.django_db
def test_a_session_written_again_while_its_lock_was_awaited(monkeypatch: pytest.MonkeyPatch):
    ours, version = team(), measured._VERSION

    def none_yet(**given: Any) -> None:  # as PostgreSQL answers: it waited for the row before
        monkeypatch.setattr(measured, "_VERSION", version)

    monkeypatch.setattr(measured, "_VERSION", SimpleNamespace(first=none_yet))
    send(ours, [four_calls()])
    assert measured._VERSION is version
    assert Session.objects.get(team=ours).usage_calls == 4


class Between:
    """Sends a span before the n-th query outside of transactions."""

    def __init__(self, number: int, ours: Team, span: ReadableSpan) -> None:
        self.left, self.ours, self.span = number, ours, span
        self.depth, self.sent = len(connection.savepoint_ids), False

    def __call__(self, execute: Any, *asked: Any) -> Any:
        if len(connection.savepoint_ids) == self.depth and not self.sent:
            self.sent = self.left == 0
            self.left -= 1
            if self.sent:
                send(self.ours, [[self.span]])
        return execute(*asked)


def test_a_batch_processor_of_opentelemetry_sends_to_a_server(served: Server):
    key = token(served)
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
