"""Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

from contextlab.client.agent_call import AgentCall
from contextlab.client.events import encoded, sent
from contextlab.client.forms.form import ApiForm, Json, arguments_of, of_type

_TEXTS = {"text_delta": "text", "thinking_delta": "thinking"}
"""Fields that a delta continues."""
_WHOLES = {
    "signature_delta": ("signature",),
    "compaction_delta": ("content", "encrypted_content"),
}
"""Fields that a delta brings as a whole."""
_LATE = ("context_management", "input_transformations")


def _asked(request: Json) -> Json:
    if not isinstance(request.get("messages"), list) or not request["messages"]:
        raise ValueError("no messages")
    # An agent has its own headers; a field of this name would become one.
    return {name: value for name, value in request.items() if name != "extra_headers"}


def _unmanaged(request: Json) -> str:
    if request.get("thread"):
        return "the provider keeps the history (`thread`; tool runners take `thread=False`)"
    return ""


def _sent(_: Json, managed: Json) -> Json:
    return {name: value for name, value in managed.items() if name != "extra_headers"}


def _reply(answer: Json) -> Json | None:
    return answer if isinstance(answer.get("content"), list) else None


def _shown(answers: list[Json], call: AgentCall) -> Json:
    *_, last = answers
    if not call.has_hidden:
        return last
    reason = call.stop_reason(last.get("stop_reason"))
    return {**last, "content": call.shown, "stop_reason": reason}


class _WholeMessage:
    """The message that the events of a stream add up to."""

    def __init__(self) -> None:
        self.answer: Json | None = None
        self._message: Json = {}
        self._blocks: dict[int, Json] = {}
        self._inputs: dict[int, str] = {}

    def take(self, event: Json) -> None:
        """Take an event."""
        form, at = event.get("type"), event.get("index", 0)
        if form == "message_start":
            self._message = {**event["message"]}
        elif form == "content_block_start":
            self._blocks[at] = {**event["content_block"]}
            if self._blocks[at].get("type") == "fallback":
                self._message["model"] = self._blocks[at]["to"]["model"]
        elif form == "content_block_delta" and at in self._blocks:
            self._grow(at, event["delta"])
        elif form == "message_delta":
            self._end(event)
        elif form == "message_stop":
            for place, given in self._inputs.items():
                self._blocks[place]["input"] = arguments_of(given)
            self.answer = {**self._message, "content": list(self._blocks.values())}

    def _grow(self, at: int, delta: Json) -> None:
        block, form = self._blocks[at], delta.get("type")
        if form == "input_json_delta":
            if delta["partial_json"]:
                self._inputs[at] = self._inputs.get(at, "") + delta["partial_json"]
        elif form == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        elif name := _TEXTS.get(str(form)):
            block[name] = (block.get(name) or "") + delta[name]
        for name in _WHOLES.get(str(form), ()):
            block[name] = delta.get(name)

    def _end(self, event: Json) -> None:
        ends = {**event, **event["delta"]}
        names = ("stop_reason", "stop_sequence", "stop_details", "container", *_LATE)
        self._message |= {name: ends[name] for name in names if ends.get(name) is not None}
        # Counts are totals so far; those left out are as they were at the start.
        usage = event.get("usage") or {}
        known = {name: count for name, count in usage.items() if count is not None}
        self._message["usage"] = {**(self._message.get("usage") or {}), **known}


class _JoinedMessages:
    """Streams without calls of `read_back`, as the stream of one message."""

    def __init__(self, call: AgentCall) -> None:
        self._call = call
        self._end: list[Json] = []
        self._places: dict[int, int] = {}
        self._blocks = 0
        self._began = False

    def take(self, event: Json | None, data: bytes) -> list[bytes]:
        """What the agent sees of an event; the end is deferred."""
        if event is None or not isinstance(event.get("type"), str):
            return [sent(data)]
        form = event["type"]
        if form == "message_start":
            began, self._began = self._began, True
            return [] if began else [sent(data, form)]
        if form in ("message_delta", "message_stop"):
            self._end.append(event)
            return []
        if form.startswith("content_block_"):
            return self._of_block(event)
        return [sent(data, form)]

    def _of_block(self, event: Json) -> list[bytes]:
        starts = event["type"] == "content_block_start"
        if starts and not self._call.hides(event["content_block"]):
            self._places[event["index"]] = self._blocks
            self._blocks += 1
        place = self._places.get(event["index"])
        return [] if place is None else [of_type({**event, "index": place})]

    def goes_on(self) -> None:
        """Another stream follows."""
        self._end, self._places = [], {}

    def end(self) -> list[bytes]:
        """The end of the last stream."""
        return [of_type(self._ended(event)) for event in self._end]

    def _ended(self, event: Json) -> Json:
        if event["type"] != "message_delta":
            return event
        given = event.get("delta")
        delta = given if isinstance(given, dict) else {}
        reason = self._call.stop_reason(delta.get("stop_reason"))
        return {**event, "delta": {**delta, "stop_reason": reason}}

    def refused(self, body: Json) -> bytes:
        """The provider's refusal as an event."""
        return sent(encoded(body), "error")


def _joined(call: AgentCall, _: Any) -> _JoinedMessages:
    return _JoinedMessages(call)


def _error(kind: str, message: str) -> Json:
    return {"type": "error", "error": {"type": kind, "message": message}}


FORM = ApiForm(
    format="anthropic",
    asked=_asked,
    unmanaged=_unmanaged,
    sent=_sent,
    reply=_reply,
    shown=_shown,
    collected=_WholeMessage,
    joined=_joined,
    error=_error,
)
