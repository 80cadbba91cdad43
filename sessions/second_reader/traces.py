"""Traces: every model call has its whole prompt, which continues a context or begins one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from sessions.second_reader.reread import (
    Billed,
    Json,
    Reread,
    RereadPiece,
    RereadStep,
    billed_whole,
    dicts,
    largest,
    piece,
    plain,
    within,
)
from sessions.second_reader.trace_messages import (
    SpanMessage,
    answer,
    instructions,
    messages,
    opened,
    prompt,
)
from sessions.second_reader.trace_spans import Spanned, spans_in


@dataclass(slots=True)
class _TracedAsk:
    """A model call; `is_tool` if it is a tool's, in a conversation without any of a model."""

    at: int
    group: str
    said: list[SpanMessage]
    answer: list[SpanMessage]
    tools: Json
    billed: Billed | None
    line: int
    is_tool: bool = False
    within: str = ""


def otlp(data: bytes) -> list[Reread]:
    """Spans as exporters send them, or as SDKs print them."""
    spans = list(spans_in(data))
    asked = [_of_span(one) for one in spans if one.is_model]
    known = {one.group for one in asked}
    tools = [_of_tool(one) for one in spans if one.is_tool]
    return _sessions([*asked, *(one for one in tools if one.group not in known)])


def langfuse(data: bytes) -> list[Reread]:
    """A trace of Langfuse; a generation that contains others repeats them."""
    value = json.loads(data)
    trace = str(within(value, "trace", "sessionId") or within(value, "trace", "id"))
    listed = list(enumerate(dicts(value.get("observations")), start=1))
    made = [(line, one) for line, one in listed if one.get("type") == "GENERATION"]
    outer = {one.get("parentObservationId") for _, one in made}
    return _sessions(_of_generation(o, trace, n) for n, o in made if o.get("id") not in outer)


def _of_span(span: Spanned) -> _TracedAsk:
    said = prompt(span.prompts())
    if not any(one.role == "system" for one in said):
        stated = opened(span.attributes.get("gen_ai.system_instructions"))
        said = [*(prompt([{"role": "system", "parts": stated}]) if stated else []), *said]
    answered = answer(span.answers())
    about = (span.tools(), span.billed(), span.line)
    return _TracedAsk(span.at, span.group, said, answered, *about, within=span.parent)


def _of_tool(span: Spanned) -> _TracedAsk:
    given = span.attributes
    call = {"name": given.get("gen_ai.tool.name"), "type": "tool_call"}
    call["arguments"] = given.get("gen_ai.tool.call.arguments") or {}
    result = {"role": "tool", "content": given.get("gen_ai.tool.call.result") or ""}
    said, asked = messages(result), messages(call)
    return _TracedAsk(span.at, span.group, said, asked, None, None, span.line, is_tool=True)


def _of_generation(one: dict[str, Json], group: str, line: int) -> _TracedAsk:
    given, output = opened(one.get("input")), opened(one.get("output"))
    items = given if isinstance(given, list) else [given]
    defined = [item["content"] for item in items if _is_definition(item)]
    said = prompt([[item for item in items if not _is_definition(item)]])
    if isinstance(output, dict) and not any(each.role == "system" for each in said):
        said = [*instructions(output), *said]
    stated = within(given, "tools") or within(given, "config", "tools")
    tools = stated or defined or within(output, "tools")
    moment = datetime.fromisoformat(one["startTime"])
    at, usage = int(moment.timestamp() * 1000), _counted(one.get("usageDetails") or {})
    around = str(one.get("parentObservationId") or "")
    return _TracedAsk(at, group, said, answer([output]), tools, usage, line, within=around)


def _is_definition(item: Json) -> bool:
    return bool(within(item, "content", "type") == "function")


def _counted(counts: dict[str, Json]) -> Billed | None:
    """Langfuse's counts; names with dots are parts of the others."""

    def most(*names: str) -> int:
        return largest(*(counts.get(name) for name in names))

    read = most("input_cache_read", "cache_read_input_tokens", "input_cached_tokens")
    written = most("input_cache_creation", "cache_creation_input_tokens")
    output = most("output") + most("output_reasoning", "output_reasoning_tokens")
    within_input = most("prompt_details.cache_read")
    return billed_whole(most("input") + read + written, read or within_input, written, output)


@dataclass(slots=True, eq=False)
class _TracedContext:
    """A context: its messages, and lists of tools (which are of no message) between them."""

    instructions: int
    within: str | None
    held: list[tuple[str, list[RereadPiece]]] = field(default_factory=list)
    tools: Json = None
    reread: Reread = field(default_factory=Reread)

    def shared(self, said: list[SpanMessage]) -> int:
        """How many messages of a prompt are those in the context."""
        standing = [name for name, _ in self.held if name]
        pairs = list(zip(standing, said, strict=False))
        return next((n for n, (one, two) in enumerate(pairs) if one != two.same), len(pairs))

    def take(self, asked: _TracedAsk) -> None:
        if asked.tools and asked.tools != self.tools:
            self.tools = asked.tools
            self.held.append(("", [piece("tools", plain(asked.tools), asked.line)]))
        is_rest = bool(asked.said) and asked.said[0].role == "tool"
        if not asked.is_tool:
            common = self.shared(asked.said)
            if not is_rest:
                self._leave(common)
            self._add(asked.said if is_rest else asked.said[common:], asked.line)
        self.reread.steps.append(RereadStep(asked.line, self._pieces(), asked.billed))
        self._add(asked.answer, asked.line)
        self._add(asked.said if asked.is_tool else [], asked.line)
        self.reread.end = self._pieces()

    def _leave(self, count: int) -> None:
        """Keep so many messages only."""
        kept, held = 0, []
        for name, pieces in self.held:
            kept += bool(name)
            if not name or kept <= count:
                held.append((name, pieces))
        self.held = held

    def _add(self, said: list[SpanMessage], line: int) -> None:
        self.held += [(one.same, one.pieces(line)) for one in said]

    def _pieces(self) -> list[RereadPiece]:
        return [each for _, pieces in self.held for each in pieces]


def _sessions(asked: Iterable[_TracedAsk]) -> list[Reread]:
    groups: dict[str, list[_TracedContext]] = {}
    for one in sorted(asked, key=lambda one: one.at):
        contexts = groups.setdefault(one.group, [])
        if one.is_tool or (one.said and one.said[0].role == "tool"):
            found = contexts[-1] if contexts else None
        elif not one.said:
            found = next((c for c in contexts if c.within == one.within), None)
        else:
            found = max(contexts, key=lambda c: c.shared(one.said), default=None)
            found = found if found and found.shared(one.said) > found.instructions else None
        if found is None:
            leading = [n for n, said in enumerate(one.said) if said.role != "system"]
            silent = None if one.said else one.within
            found = _TracedContext(leading[0] if leading else len(one.said), silent)
            contexts.append(found)
        found.take(one)
    return [one.reread for contexts in groups.values() for one in contexts]
