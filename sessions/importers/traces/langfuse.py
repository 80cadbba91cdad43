"""Langfuse exports (JSON): a trace, and its observations as a flat list."""

from __future__ import annotations

from sessions.importers.importer import Importer
from sessions.importers.message_array import document
from sessions.importers.records import Json, Log, Skipped
from sessions.importers.reported import NOTHING, Reported, openai_usage
from sessions.importers.traces.said import answer_in, instructions_in, joined, said_in, unpacked
from sessions.importers.traces.traced_calls import TracedCall
from sessions.importers.traces.traced_contexts import write_sessions
from sessions.importers.wire import mapping, milliseconds, sequence, string

FORMAT = "langfuse-trace"

_READ = ("input_cache_read", "cache_read_input_tokens", "input_cached_tokens")
_READ_WITHIN = ("prompt_details.cache_read",)
"""Cache reads that are a part of `input`; Langfuse takes the others out of it."""
_WRITTEN = ("input_cache_creation", "cache_creation_input_tokens")
_REASONING = ("output_reasoning", "output_reasoning_tokens")
_REASONING_WITHIN = ("completion_details.reasoning",)


def recognises(value: Json) -> bool:
    """Whether a document is a trace with observations."""
    given = mapping(value)
    return isinstance(given.get("trace"), dict) and isinstance(given.get("observations"), list)


def read(data: bytes, name: str = "") -> Log:
    """Read an export. Generations that contain others repeat them, and are skipped."""
    del name
    given = mapping(document(data, "a Langfuse export"))
    trace = mapping(given.get("trace"))
    log = Log(FORMAT)
    group = string(trace.get("sessionId")) or string(trace.get("id")) or "trace"
    observed = [mapping(one) for one in sequence(given.get("observations"))]
    outer = {string(one.get("parentObservationId")) for one in observed if _is_generation(one)}
    calls = []
    for place, one in enumerate(observed, start=1):
        if _is_generation(one) and string(one.get("id")) not in outer - {""}:
            calls.append(_exchange(one, group, place))
        else:
            kind = string(one.get("type")) or "observation"
            log.skipped.append(Skipped(place, kind[:120], "not context"))
    write_sessions(log, calls)
    for session in log.sessions:
        session.title = session.title or string(trace.get("name"))
    return log


def _is_generation(one: dict[str, Json]) -> bool:
    return one.get("type") == "GENERATION"


def _exchange(one: dict[str, Json], group: str, place: int) -> TracedCall:
    prompt = unpacked(one.get("input"))
    raw = mapping(one.get("usageDetails"))
    response = mapping(unpacked(one.get("output")))
    said = joined(said_in([item for item in _items(prompt) if not _is_tool(item)]))
    if not any(message.role == "system" for message in said):
        # The Responses API repeats the instructions in its answer.
        said = instructions_in(response) + said
    return TracedCall(
        id=string(one.get("id")) or f"observation-{place}",
        group=group,
        said=said,
        answer=answer_in(one.get("output")),
        at=milliseconds(one.get("startTime")),
        model=string(one.get("model")),
        usage=_usage(raw),
        usage_raw=raw or None,
        tools=_tools(prompt) or sequence(response.get("tools")),
        line=place,
        parent=string(one.get("parentObservationId")),
    )


def _items(prompt: Json) -> list[Json]:
    return prompt if isinstance(prompt, list) else [prompt]


def _is_tool(item: Json) -> bool:
    """Whether a message is the definition of a tool, as LangChain's handler sends them."""
    return mapping(mapping(item).get("content")).get("type") == "function"


def _tools(prompt: Json) -> list[Json]:
    given = mapping(prompt)
    stated = sequence(given.get("tools")) or sequence(mapping(given.get("config")).get("tools"))
    return stated or [mapping(item)["content"] for item in _items(prompt) if _is_tool(item)]


def _usage(raw: dict[str, Json]) -> Reported:
    """Usage details as a chat-completions object: Langfuse's parts add up to `total`."""

    def count(*names: str) -> int:
        found = (raw.get(name) for name in names)
        return next((one for one in found if isinstance(one, int) and one > 0), 0)

    if not raw:
        return NOTHING
    cached, written = count(*_READ), count(*_WRITTEN)
    thought = count(*_REASONING)
    stated = {
        "prompt_tokens": count("input") + cached + written,
        "completion_tokens": count("output") + thought,
        "prompt_cache_hit_tokens": cached or count(*_READ_WITHIN),
        "cache_creation_input_tokens": written,
        "reasoning_output_tokens": thought or count(*_REASONING_WITHIN),
        "total_tokens": count("total"),
    }
    return openai_usage({name: value for name, value in stated.items() if value})


IMPORTER = Importer(
    name=FORMAT,
    order=54,
    title="Langfuse exports",
    files="a trace with its observations (JSON)",
    recognised_by="`trace` next to `observations`",
    read=read,
    knows_document=recognises,
)
