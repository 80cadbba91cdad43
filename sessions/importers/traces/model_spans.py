"""Model calls in spans: GenAI semantic conventions, OpenInference, Vercel's AI SDK, Monocle."""

from __future__ import annotations

from sessions.importers.records import Json
from sessions.importers.reported import NOTHING, Reported, openai_usage
from sessions.importers.traces.said import TraceMessage, answer_in, joined, said_in, unpacked
from sessions.importers.traces.spans import TraceSpan
from sessions.importers.traces.traced_calls import TracedCall
from sessions.importers.wire import mapping, sequence, string

_CONVERSATION = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "scope.agentic.session",
    "ai.telemetry.metadata.sessionId",
    "traceloop.association.properties.session_id",
)
_AGENT = ("gen_ai.agent.name", "agent.name", "service.name", "workflow.name")
_MODEL = (
    "gen_ai.response.model",
    "ai.response.model",
    "llm.model_name",
    "gen_ai.request.model",
    "ai.model.id",
    "entity.2.name",
)
_CHATS = frozenset({"chat", "text_completion", "generate_content", "completion"})
_USAGE = {
    "prompt_tokens": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "ai.usage.inputTokens",
        "ai.usage.promptTokens",
        "prompt_tokens",
    ),
    "completion_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "ai.usage.outputTokens",
        "ai.usage.completionTokens",
        "completion_tokens",
    ),
    "prompt_cache_hit_tokens": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.details.cache_read_tokens",
        "llm.token_count.prompt_details.cache_read",
        "ai.usage.cachedInputTokens",
    ),
    "cache_creation_input_tokens": (
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_write.input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.details.cache_write_tokens",
        "llm.token_count.prompt_details.cache_write",
    ),
    "reasoning_output_tokens": (
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.details.reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
        "ai.usage.reasoningTokens",
    ),
}
"""Attributes of token counts, by the name in a chat-completions usage object."""

SHORTEST, LONGEST = 16, 200
"""Characters of a response's id that no other response has (our choice), and that are stored."""


def traced_call_of(span: TraceSpan) -> TracedCall | None:
    """A span as a model call, or as a call of a tool; None for any other span."""
    if _is_model_call(span):
        said, answer = _messages(span)
        usage, raw = _usage(span)
        reasons = span.attributes.get("gen_ai.response.finish_reasons")
        reason = (sequence(reasons) or [reasons])[0]
        call = _begun(span, said, answer)
        call.model = span.text(*_MODEL)
        call.usage, call.usage_raw = usage, raw
        call.stop_reason = string(reason) or span.text("ai.response.finishReason")
        call.tools = _tools(span)
        call.response = _response(span)
        return call
    return _tool_call(span) if _is_tool_call(span) else None


def is_call(span: TraceSpan) -> bool:
    """Whether a span is a call of a model or tool."""
    return _is_model_call(span) or _is_tool_call(span)


def group_of(span: TraceSpan) -> str:
    """The conversation or trace of a span."""
    return span.text(*_CONVERSATION) or span.trace or "trace"


def _response(span: TraceSpan) -> str:
    """The provider's id of a response; empty if unknown, or short enough to come again: Ollama's
    are a number below 1000."""
    stated = span.text("gen_ai.response.id")
    stated = stated or string(mapping(unpacked(span.attributes.get("output.value"))).get("id"))
    return stated if SHORTEST <= len(stated) <= LONGEST and stated.isprintable() else ""


def _begun(span: TraceSpan, said: list[TraceMessage], answer: list[TraceMessage]) -> TracedCall:
    return TracedCall(
        id=span.id or f"span-{span.at}",
        group=group_of(span),
        said=said,
        answer=answer,
        at=span.at,
        agent="" if (agent := span.text(*_AGENT)).startswith("unknown_service") else agent,
        line=span.line,
        parent=span.parent,
    )


def _is_model_call(span: TraceSpan) -> bool:
    # Outer spans of the AI SDK, and Monocle's spans of the HTTP client, repeat the call.
    return (
        span.text("openinference.span.kind").upper() == "LLM"
        or span.text("gen_ai.operation.name") in _CHATS
        or span.text("ai.operationId").endswith((".doGenerate", ".doStream"))
        or span.text("llm.request.type") in _CHATS
        or span.text("span.type") in {"inference", "inference.framework"}
    )


def _is_tool_call(span: TraceSpan) -> bool:
    return span.text("gen_ai.operation.name") == "execute_tool"


def _tool_call(span: TraceSpan) -> TracedCall:
    """A tool's span, for traces without spans of model calls."""
    named = span.text("gen_ai.tool.call.id") or span.id
    stated = unpacked(span.attributes.get("gen_ai.tool.call.arguments"))
    asked = {"type": "tool_call", "id": named, "name": span.text("gen_ai.tool.name")}
    result = {"role": "tool", "tool_call_id": named}
    content = span.attributes.get("gen_ai.tool.call.result")
    call = _begun(span, said_in({**result, "content": content or ""}), [])
    call.answer = answer_in({**asked, "arguments": stated if stated is not None else {}})
    call.is_model = False
    return call


def _messages(span: TraceSpan) -> tuple[list[TraceMessage], list[TraceMessage]]:
    """Prompt and answer, from the first convention that has any."""
    given = span.attributes
    events = _of_events(span)
    prompts: list[Json] = [
        given.get("gen_ai.input.messages"),
        span.nested("llm.input_messages"),
        given.get("ai.prompt.messages"),
        span.nested("gen_ai.prompt"),
        given.get("gen_ai.prompt"),
        events[0],
        given.get("input.value"),
    ]
    answers: list[Json] = [
        given.get("gen_ai.output.messages"),
        span.nested("llm.output_messages"),
        _vercel(given),
        span.nested("gen_ai.completion"),
        given.get("gen_ai.completion"),
        events[1],
        given.get("output.value"),
    ]
    said = next((found for one in prompts if (found := said_in(one))), [])
    answer = next((found for one in answers if (found := answer_in(one))), [])
    system = given.get("gen_ai.system_instructions")
    if system and not any(one.role == "system" for one in said):
        parts = {"role": "system", "parts": unpacked(system)}
        said = [*said_in(parts), *said]
    return joined(said), answer


def _vercel(given: dict[str, Json]) -> Json:
    """The answer in attributes of the AI SDK, as a message."""
    calls = sequence(unpacked(given.get("ai.response.toolCalls")))
    text = string(given.get("ai.response.text")) or string(given.get("ai.response.object"))
    thought = string(given.get("ai.response.reasoning"))
    if not calls and not text and not thought:
        return None
    parts = [{"type": "reasoning", "text": thought}, {"type": "text", "text": text}]
    return {"role": "assistant", "content": parts, "tool_calls": calls}


def _of_events(span: TraceSpan) -> tuple[list[Json], list[Json]]:
    """Messages in a span's events: old GenAI conventions, and Monocle's."""
    prompt: list[Json] = []
    answer: list[Json] = []
    for name, given in span.events:
        if name == "data.input":
            prompt += [_monocle(one) for one in sequence(given.get("input"))]
        elif name == "data.output":
            answer.append(_monocle(given.get("response")))
        elif name == "gen_ai.choice":
            answer.append(unpacked(given.get("message")) or given)
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            prompt.append({"role": name.split(".")[1], **given})
        elif "gen_ai.input.messages" in given or "gen_ai.output.messages" in given:
            prompt += sequence(unpacked(given.get("gen_ai.input.messages")))
            answer += sequence(unpacked(given.get("gen_ai.output.messages")))
    return prompt, answer


_MONOCLE = {"human": "user", "ai": "assistant", "assistant": "assistant", "tool": "tool"}


def _monocle(given: Json) -> Json:
    """One message of Monocle, `{"human": "…"}` or `{"ai": a tool call}`, with role and content."""
    inner = mapping(unpacked(given))
    for role, content in inner.items():
        speaker = _MONOCLE.get(role, role)
        called = unpacked(content)
        calls = called if isinstance(called, list) else [called]
        if speaker == "assistant" and all("args" in mapping(one) for one in calls):
            return {"role": speaker, "content": "", "tool_calls": calls}
        return {"role": speaker, "content": content}
    return given


def _usage(span: TraceSpan) -> tuple[Reported, Json]:
    given = dict(span.attributes)
    for name, event in span.events:
        if name == "metadata":
            given |= event
    raw = {}
    for name, attributes in _USAGE.items():
        counts = (given.get(attribute) for attribute in attributes)
        count = next((one for one in counts if isinstance(one, int | float)), None)
        if count is not None and not isinstance(count, bool):
            raw[name] = int(count)
    return (openai_usage(raw), raw) if raw else (NOTHING, None)


def _tools(span: TraceSpan) -> list[Json]:
    stated = unpacked(span.attributes.get("gen_ai.tool.definitions"))
    listed = sequence(stated) or sequence(span.attributes.get("ai.prompt.tools"))
    if listed:
        return [unpacked(one) for one in listed]
    nested = (mapping(one) for one in sequence(span.nested("llm.tools")))
    return [unpacked(mapping(one.get("tool")).get("json_schema")) for one in nested]
