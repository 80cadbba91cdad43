"""Spans by the real SDK, sent in any order, and all that is recorded of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import count as numbers
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span, set_span_in_context

from compaction.tokens import counted
from sessions.actions.imports.changed import IfChanged
from sessions.actions.imports.imports import import_file
from sessions.actions.record.append import link_parents
from sessions.actions.record.measure import measure
from sessions.models import Entry, Import, ImportFile, Session, Team

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


@st.composite
def requests(draw: st.DrawFn, trees: Sequence[Spans] = tuple(TREES.values())) -> list[Spans]:
    """The spans of a tree in any order, cut anywhere."""
    order = draw(st.permutations(draw(st.sampled_from(trees))))
    cuts = draw(st.sets(st.integers(1, len(order) - 1)))
    return [order[start:end] for start, end in pairwise([0, *sorted(cuts), len(order)])]
