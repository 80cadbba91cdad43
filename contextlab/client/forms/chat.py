"""OpenAI's chat completions."""

from __future__ import annotations

from typing import Any

from contextlab.client.agent_call import AgentCall
from contextlab.client.events import encoded, sent
from contextlab.client.forms.form import ApiForm, Json, arguments_of, openai_error, turns
from contextlab.client.forms.restated import as_said
from contextlab.client.shown import blocks_of

_DONE = b"[DONE]"
_ROLES = {"developer": "system", "tool": "user", "function": "user"}


def _asked(request: Json) -> Json:
    given = request.get("messages")
    messages = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    if not messages:
        raise ValueError("no messages")
    return {
        "model": request.get("model"),
        "system": [],
        "tools": [one for one in request.get("tools") or () if isinstance(one, dict)],
        "messages": list(as_said(turns([_message(one) for one in messages]), request.get("stop"))),
        "metadata": request.get("metadata"),
        "prompt_cache_key": request.get("prompt_cache_key"),
    }


def _message(message: Json) -> Json:
    """A message with its calls and results as blocks; other parts as they are."""
    role = str(message.get("role"))
    if role == "assistant":
        blocks = _said(message)
    elif role in ("tool", "function"):
        named = str(message.get("tool_call_id") or message.get("name") or "")
        result = {"tool_use_id": named, "content": message.get("content")}
        blocks = [{"type": "tool_result", **result}]
    else:
        blocks = blocks_of(message.get("content"))
    return {"role": _ROLES.get(role, role), "content": blocks or [_text("")]}


def _said(message: Json) -> list[Json]:
    """Reasoning, text, refusal and calls of the model, in that order."""
    thought = message.get("reasoning_content") or message.get("reasoning")
    blocks = [{"type": "thinking", "thinking": thought}] if isinstance(thought, str) else []
    for part in blocks_of(message.get("content")):
        blocks.append(_text(part.get("refusal")) if part.get("type") == "refusal" else part)
    if isinstance(refusal := message.get("refusal"), str) and refusal:
        blocks.append(_text(refusal))
    calls = [one for one in message.get("tool_calls") or () if isinstance(one, dict)]
    if isinstance(single := message.get("function_call"), dict):
        calls.append({"function": single})
    return [*blocks, *(_call(one) for one in calls)]


def _text(text: Any) -> Json:
    return {"type": "text", "text": str(text or "")}


def _call(call: Json) -> Json:
    function = call.get("function") or call.get("custom") or {}
    given = arguments_of(function.get("arguments", function.get("input")))
    known = {"id": str(call.get("id") or ""), "name": str(function.get("name") or "")}
    return {"type": "tool_use", **known, "input": given}


def _unmanaged(request: Json) -> str:
    if request.get("functions"):
        return "it uses the older `functions`"
    if (request.get("n") or 1) != 1:
        return "it asks for several answers (`n`)"
    forms = {str(tool.get("type")) for tool in request.get("tools") or () if isinstance(tool, dict)}
    other = sorted(forms - {"function"})
    return f"it has tools of type {other[0]}" if other else ""


def _sent(request: Json, managed: Json) -> Json:
    made = {**request, "messages": managed["messages"]}
    for name in ("tools", "tool_choice"):
        if managed.get(name):
            made[name] = managed[name]
    if request.get("stream"):
        made["stream_options"] = {**(request.get("stream_options") or {}), "include_usage": True}
    return made


def _choice(answer: Json) -> Json:
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _reply(answer: Json) -> Json | None:
    message = _choice(answer).get("message")
    content = _said(message) if isinstance(message, dict) else []
    names = ("id", "model", "usage")
    known = {name: answer[name] for name in names if answer.get(name)}
    return {"role": "assistant", "content": content, **known} if content else None


def _hides(call: AgentCall, tool_call: Any) -> bool:
    function = tool_call.get("function") if isinstance(tool_call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return call.hides({"type": "tool_use", "name": name})


def _shown(answers: list[Json], call: AgentCall) -> Json:
    *_, last = answers
    if not call.has_hidden:
        return last
    said = [_choice(answer).get("message") or {} for answer in answers]
    calls = [one for message in said for one in message.get("tool_calls") or ()]
    visible = [one for one in calls if not _hides(call, one)]
    texts = [str(message["content"]) for message in said if message.get("content")]
    choice = _choice(last)
    message = {**choice["message"], "content": "".join(texts) or None}
    message.pop("tool_calls", None)
    message |= {"tool_calls": visible} if visible else {}
    reason = _reason(choice.get("finish_reason"), bool(visible))
    return {**last, "choices": [{**choice, "message": message, "finish_reason": reason}]}


def _reason(given: Any, has_calls: bool) -> Any:
    return "stop" if given == "tool_calls" and not has_calls else given


class _WholeCompletion:
    """The answer that the chunks of a stream add up to."""

    def __init__(self) -> None:
        self._is_complete = False
        self._known: Json = {}
        self._message: Json = {"role": "assistant"}
        self._calls: dict[int, Json] = {}
        self._reason: Any = None

    def take(self, chunk: Json) -> None:
        """Take a chunk."""
        self._known |= {name: chunk[name] for name in ("id", "model", "usage") if chunk.get(name)}
        choice = _choice(chunk)
        if choice.get("index", 0) != 0:
            return
        delta = choice.get("delta")
        for name, value in (delta if isinstance(delta, dict) else {}).items():
            if name == "tool_calls":
                for part in value or ():
                    self._call(part)
            elif name != "role" and isinstance(value, str):
                self._message[name] = self._message.get(name, "") + value
        if choice.get("finish_reason"):
            self._reason, self._is_complete = choice["finish_reason"], True

    def _call(self, part: Json) -> None:
        call = self._calls.setdefault(
            part.get("index", 0),
            {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
        )
        call["id"] = part.get("id") or call["id"]
        function = part.get("function") or {}
        for name in ("name", "arguments"):
            call["function"][name] += function.get(name) or ""

    @property
    def answer(self) -> Json | None:
        """The answer; None until it is complete."""
        if not self._is_complete:
            return None
        calls = {"tool_calls": list(self._calls.values())} if self._calls else {}
        choice = {"index": 0, "message": {**self._message, **calls}, "finish_reason": self._reason}
        return {**self._known, "choices": [choice]}


class _JoinedCompletions:
    """The chunks of an answer and of those that continue it, as those of one answer."""

    def __init__(self, call: AgentCall, request: Json) -> None:
        options = request.get("stream_options") or {}
        self._call, self._wants_usage = call, bool(options.get("include_usage"))
        self._places: dict[int, int | None] = {}
        self._calls, self._is_first = 0, True
        self._end: list[Json | bytes] = []
        self._id: Any = None

    def take(self, chunk: Json | None, data: bytes) -> list[bytes]:
        """What the agent sees of a chunk; the end is deferred."""
        if chunk is None:
            if data != _DONE:
                return [sent(data)]
            self._end.append(data)
            return []
        if chunk.get("id"):
            self._id = self._id or chunk["id"]
            chunk = {**chunk, "id": self._id}
        choice = _choice(chunk)
        if not choice:
            if self._wants_usage or chunk.get("usage") is None:
                self._end.append(chunk)
            return []
        if not self._wants_usage:
            chunk = {name: value for name, value in chunk.items() if name != "usage"}
        delta, is_empty = choice.get("delta") or {}, False
        if "role" in delta and not self._is_first:
            # OpenAI's SDK would make "assistantassistant" of two.
            delta = {name: value for name, value in delta.items() if name != "role"}
            chunk = {**chunk, "choices": [{**choice, "delta": delta}]}
        if delta.get("tool_calls"):
            visible = [made for part in delta["tool_calls"] if (made := self._part(part))]
            rest = {name: value for name, value in delta.items() if name != "tool_calls"}
            delta, is_empty = {**rest, **({"tool_calls": visible} if visible else {})}, not visible
            chunk = {**chunk, "choices": [{**choice, "delta": delta}]}
        if choice.get("finish_reason"):
            self._end.append(chunk)
            return []
        return [] if is_empty else [sent(encoded(chunk))]

    def _part(self, part: Json) -> Json | None:
        at = part.get("index", 0)
        if at not in self._places:
            hidden = _hides(self._call, part)
            self._places[at] = None if hidden else self._calls
            self._calls += not hidden
        place = self._places[at]
        return None if place is None else {**part, "index": place}

    def goes_on(self) -> None:
        """Another answer follows."""
        self._places, self._end, self._is_first = {}, [], False

    def end(self) -> list[bytes]:
        """The end of the last answer."""
        return [sent(one if isinstance(one, bytes) else encoded(self._ended(one)))
                for one in self._end]  # fmt: skip

    def _ended(self, chunk: Json) -> Json:
        choice = _choice(chunk)
        if not choice:
            return chunk
        reason = _reason(choice.get("finish_reason"), bool(self._calls))
        return {**chunk, "choices": [{**choice, "finish_reason": reason}]}

    def refused(self, body: Json) -> bytes:
        """The provider's refusal as an event."""
        return sent(encoded(body))


FORM = ApiForm(
    format="openai",
    asked=_asked,
    unmanaged=_unmanaged,
    sent=_sent,
    reply=_reply,
    shown=_shown,
    collected=_WholeCompletion,
    joined=_JoinedCompletions,
    error=openai_error,
)
