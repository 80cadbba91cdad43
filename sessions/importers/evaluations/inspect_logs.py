"""Evaluation logs of Inspect (JSON, and the content of `.eval` files): one session per sample."""

from __future__ import annotations

from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession, document
from sessions.importers.openai_messages import MessageReader
from sessions.importers.records import Json, Log, Skipped
from sessions.importers.wire import mapping, sequence, string

FORMAT = "inspect-log"

_ATTACHED = "attachment://"


def recognises(value: Json) -> bool:
    """Whether a document is an evaluation log."""
    given = mapping(value)
    return isinstance(given.get("eval"), dict) and ("samples" in given or "plan" in given)


def read(data: bytes, name: str = "") -> Log:
    """Read a log: each sample and epoch is a session."""
    given = mapping(document(data, "an evaluation log of Inspect"))
    about = mapping(given.get("eval"))
    log = Log(FORMAT)
    for place, sample in enumerate(map(mapping, sequence(given.get("samples"))), start=1):
        _sample(log, sample, about, place, name)
    sessions, log.sessions = log.sessions, []
    return log.close(sessions)


def _sample(
    log: Log, sample: dict[str, Json], about: dict[str, Json], place: int, name: str
) -> None:
    attached = mapping(sample.get("attachments"))
    writer = ArraySession(string(about.get("task")) or "inspect")
    reader = MessageReader(writer, string(about.get("model")))
    outputs = _Outputs(sequence(sample.get("events")))
    for index, item in enumerate(sequence(sample.get("messages")), start=1):
        message = mapping(_resolved(item, attached))
        if isinstance(message.get("role"), str):
            reader.take(_wire(message, outputs), index)
        else:
            writer.no_message(index)
    writer.skipped += [Skipped(0, "model call beside the sample", "not context")] * outputs.left
    identity, epoch = sample.get("id", place), sample.get("epoch", 1)
    title = f"{string(about.get('task')) or 'Sample'}: {identity}, epoch {epoch}"
    one = writer.log(FORMAT, {"title": title}, name)
    run = string(about.get("run_id")) or string(about.get("eval_id")) or "inspect"
    one.sessions[0].external_id = f"{run}/{identity}/{epoch}"[:300]
    log.sessions += one.sessions
    log.skipped += one.skipped
    log.problems += one.problems


def _resolved(value: Json, attached: dict[str, Json]) -> Json:
    """A value with its attachments in place."""
    if isinstance(value, str) and value.startswith(_ATTACHED):
        return attached.get(value.removeprefix(_ATTACHED), value)
    if isinstance(value, list):
        return [_resolved(item, attached) for item in value]
    if isinstance(value, dict):
        return {name: _resolved(item, attached) for name, item in value.items()}
    return value


class _Outputs:
    """Model calls in a sample's events: by the id of the response, or by its text without ids.

    Calls of scorers answer no message of the sample.
    """

    def __init__(self, events: list[Json]) -> None:
        self._by_id: dict[str, dict[str, Json]] = {}
        models = [one for one in map(mapping, events) if one.get("event") == "model"]
        for event in models:
            output = mapping(event.get("output"))
            choice = mapping((sequence(output.get("choices")) or [None])[0])
            answer = mapping(choice.get("message"))
            key = string(answer.get("id")) or repr(answer.get("content"))
            self._by_id[key] = {**output, "at": event.get("timestamp")}

    @property
    def left(self) -> int:
        """How many calls answered no message."""
        return len(self._by_id)

    def of(self, message: dict[str, Json]) -> dict[str, Json]:
        """The output that is this message; empty if none."""
        for key in (string(message.get("id")), repr(message.get("content"))):
            if key in self._by_id:
                return self._by_id.pop(key)
        return {}


def _wire(message: dict[str, Json], outputs: _Outputs) -> dict[str, Json]:
    """A message of Inspect in the form of chat completions."""
    content = [_part(part) for part in map(mapping, sequence(message.get("content")))]
    wire = {**message, **({"content": content} if content else {})}
    if message.get("role") == "tool":
        error = mapping(message.get("error")).get("message")
        return {**wire, "content": wire.get("content") or string(error)}
    if message.get("role") != "assistant":
        return wire
    output = outputs.of(message)
    wire["tool_calls"] = [
        {"id": call.get("id"), "function": {"name": call.get("function"), **_given(call)}}
        for call in map(mapping, sequence(message.get("tool_calls")))
    ]
    model = string(output.get("model")) or string(message.get("model"))
    return {
        **wire,
        "model": model,
        "timestamp": output.get("at"),
        "usage": _usage(mapping(output.get("usage"))),
    }


def _part(part: dict[str, Json]) -> Json:
    if part.get("type") == "reasoning":
        return {"type": "thinking", "thinking": string(part.get("reasoning"))}
    if part.get("type") == "image":
        return {"type": "image_url", "image_url": part.get("image")}
    return part


def _given(call: dict[str, Json]) -> dict[str, Json]:
    return {"arguments": call.get("arguments")}


def _usage(raw: dict[str, Json]) -> Json:
    """Inspect's counts as a chat-completions object.

    Some providers' input includes the cache, others' does not: the total tells which.
    """
    counts = {name: value for name, value in raw.items() if isinstance(value, int)}
    if not counts:
        return None
    read = counts.get("input_tokens_cache_read", 0)
    written = counts.get("input_tokens_cache_write", 0)
    given, output = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
    total = counts.get("total_tokens")
    prompt = given if total in {None, given + output} else given + read + written
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "prompt_cache_hit_tokens": read,
        "cache_creation_input_tokens": written,
        "reasoning_output_tokens": counts.get("reasoning_tokens", 0),
        **({"total_tokens": total} if total is not None else {}),
    }


IMPORTER = Importer(
    name=FORMAT,
    order=52,
    title="Inspect",
    files="evaluation logs, JSON and `.eval`",
    recognised_by="`eval` next to `samples` or `plan`",
    read=read,
    knows_document=recognises,
)
