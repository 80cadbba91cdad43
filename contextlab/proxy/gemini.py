"""Gemini's generateContent, streamed as server-sent events or not."""

from __future__ import annotations

import re
from typing import Any

from contextlab.client.agent_call import AgentCall
from contextlab.client.events import encoded, sent
from contextlab.client.forms.form import ApiForm, Json, turns
from sessions.importers.gemini_wire import gemini_blocks, gemini_messages

PATH = re.compile(r"v1(?:alpha|beta)?/models/([\w.-]+):(generateContent|streamGenerateContent)")
_OF_THE_PATH = ("model", "stream")
_INSTRUCTION = ("systemInstruction", "system_instruction")
"""The API takes names in both forms, and its SDKs mix them."""
_PARTS = frozenset(
    {
        *("text", "thought", "thoughtSignature", "functionCall", "functionResponse", "inlineData"),
        *("thought_signature", "function_call", "function_response", "inline_data"),
    }
)
"""Fields of parts that a managed context has, too."""


def of_the_path(path: str, query: str) -> Json | None:
    """The model of a request's path and whether its answer is streamed, which are fields of other
    APIs' requests; None if it is none of this API."""
    found = PATH.fullmatch(path)
    streamed = found is not None and found[2] == "streamGenerateContent"
    if found is None or (streamed and "alt=sse" not in query.split("&")):
        return None
    return {"model": found[1], "stream": streamed}


def _asked(request: Json) -> Json:
    contents = [one for one in _list(request, "contents") if isinstance(one, dict)]
    if not contents:
        raise ValueError("no contents")
    return {
        "model": request.get("model"),
        "system": gemini_blocks(_instruction(request).get("parts")),
        "tools": [tool for tool in _list(request, "tools") if _functions(tool)],
        "messages": turns(_messages(contents)),
    }


def _messages(contents: list[Json]) -> list[Json]:
    made = [one for one in gemini_messages(contents) if isinstance(one, dict)]
    return [one for one in made if one.get("content")]


def _unmanaged(request: Json) -> str:
    if request.get("cachedContent") or request.get("cached_content"):
        return "it uses `cachedContent`"
    contents = request["contents"]
    parts = [part for one in contents if isinstance(one, dict) for part in _list(one, "parts")]
    if not all(isinstance(one, dict) for one in (*contents, *parts)):
        return "it has contents that are no objects"
    other = sorted({name for part in parts for name in part} - _PARTS)
    return f"it has parts with {other[0]}" if other else ""


def _sent(request: Json, managed: Json) -> Json:
    ours = (*_OF_THE_PATH, *_INSTRUCTION) if managed.get("system") else _OF_THE_PATH
    made = {name: value for name, value in request.items() if name not in ours}
    made["contents"] = managed["messages"]
    if managed.get("system"):
        made["systemInstruction"] = {**_instruction(request), "parts": managed["system"]}
    if tools := _tools(request, managed):
        made["tools"] = tools
    return made


def _tools(request: Json, managed: Json) -> list[Json]:
    """The tools of a managed context, each as the agent declared it, and other kinds of tools."""
    own = {str(one.get("name")): one for one in _declared(request)}
    declared = [own.get(str(one.get("name")), one) for one in _declared(managed)]
    other = [tool for tool in _list(request, "tools") if not _functions(tool)]
    return [*([{"functionDeclarations": declared}] if declared else []), *other]


def _declared(body: Json) -> list[Json]:
    return [one for tool in _list(body, "tools") for one in _functions(tool)]


def _functions(tool: Json) -> list[Json]:
    found = _list(tool, "functionDeclarations") or _list(tool, "function_declarations")
    return [one for one in found if isinstance(one, dict)]


def _instruction(request: Json) -> Json:
    return next((found for name in _INSTRUCTION if (found := _dict(request, name))), {})


def _list(given: Json, name: str) -> list[Any]:
    value = given.get(name)
    return value if isinstance(value, list) else []


def _dict(given: Json, name: str) -> Json:
    value = given.get(name)
    return value if isinstance(value, dict) else {}


def _candidate(answer: Json) -> Json:
    first = next(iter(_list(answer, "candidates")), None)
    return first if isinstance(first, dict) else {}


def _parts(answer: Json) -> list[Json]:
    parts = _list(_dict(_candidate(answer), "content"), "parts")
    return [part for part in parts if isinstance(part, dict)]


def _with_parts(answer: Json, parts: list[Json]) -> Json:
    first, *others = answer["candidates"]
    content = {"role": "model", **_dict(first, "content"), "parts": parts}
    return {**answer, "candidates": [{**first, "content": content}, *others]}


def _reply(answer: Json) -> Json | None:
    content = gemini_blocks(_parts(answer))
    names = {"id": "responseId", "model": "modelVersion", "usage": "usageMetadata"}
    known = {name: answer[field] for name, field in names.items() if answer.get(field)}
    return {"role": "assistant", "content": content, **known} if content else None


def _visible(answer: Json, call: AgentCall) -> list[Json]:
    def hides(part: Json) -> bool:
        name = _dict(part, "functionCall").get("name")
        return call.hides({"type": "tool_use", "name": name})

    return [part for part in _parts(answer) if not hides(part)]


def _shown(answers: list[Json], call: AgentCall) -> Json:
    *_, last = answers
    if not call.has_hidden:
        return last
    return _with_parts(last, [part for one in answers for part in _visible(one, call)])


class _WholeAnswer:
    """The answer that the chunks of a stream add up to."""

    def __init__(self) -> None:
        self._last: Json = {}
        self._made: list[Json] = []

    def take(self, chunk: Json) -> None:
        """Take a chunk: text goes on where it stopped."""
        self._last = {**self._last, **chunk}
        for part in _parts(chunk):
            last = self._made[-1] if self._made else {}
            if set(last) == {"text"} == set(part) - {"thoughtSignature"}:
                self._made[-1] = {**part, "text": last["text"] + part["text"]}
            else:
                self._made.append(part)

    @property
    def answer(self) -> Json | None:
        """The answer; None if the stream ended early."""
        if not _candidate(self._last).get("finishReason"):
            return None
        return _with_parts(self._last, self._made)


class _JoinedAnswer:
    """The chunks of an answer and of those that continue it, as those of one answer."""

    def __init__(self, call: AgentCall, _: Json) -> None:
        self._call = call
        self._end: Json | None = None
        self._before: list[Json] = []

    def take(self, chunk: Json | None, data: bytes) -> list[bytes]:
        """What the agent sees of a chunk; the end is deferred."""
        if chunk is None or not _candidate(chunk):
            return [sent(data)]
        visible = _with_parts(chunk, _visible(chunk, self._call))
        if _candidate(chunk).get("finishReason"):
            self._end = visible
            return []
        return [sent(encoded(visible))] if _parts(visible) else []

    def goes_on(self) -> None:
        """Another answer follows: what ended this one comes with the last."""
        self._before += _parts(self._end or {})
        self._end = None

    def end(self) -> list[bytes]:
        """The end of the last answer."""
        if self._end is None:
            return []
        parts = [*(one for one in self._before if one != {"text": ""}), *_parts(self._end)]
        return [sent(encoded(_with_parts(self._end, parts)))]

    def refused(self, body: Json) -> bytes:
        """The provider's refusal as an event."""
        return sent(encoded(body))


def _error(kind: str, message: str) -> Json:
    return {"error": {"message": message, "status": kind.upper()}}


FORM = ApiForm(
    format="gemini",
    asked=_asked,
    unmanaged=_unmanaged,
    sent=_sent,
    reply=_reply,
    shown=_shown,
    collected=_WholeAnswer,
    joined=_JoinedAnswer,
    error=_error,
)
