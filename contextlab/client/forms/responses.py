"""OpenAI's Responses API, with the history in the request."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import takewhile
from typing import Any

from contextlab.client.agent_call import AgentCall
from contextlab.client.events import sent
from contextlab.client.forms.form import ApiForm, Json, of_type, openai_error, turns
from contextlab.client.forms.items import BY_PROVIDER, KEPT, items_of, message_of, type_of

MessageOf = Callable[[Json], Json | None]
"""An item as a message of blocks; None if its type is not known."""

_ENDS = frozenset({"response.completed", "response.incomplete"})
_STORED = ("previous_response_id", "conversation")
_ADDED = "additional_tools"
"""Items with tools. Codex begins with one for models that know tools only from there."""
_SETTINGS = "configuration_update"
"""Items that set reasoning and format of later responses; no part of what the model reads."""
_CREDENTIALS = frozenset({"authorization", "headers"})
"""Fields of tools of type `mcp` that must not be stored."""


def _asked(message_of: MessageOf, request: Json) -> Json:
    items = items_of(request.get("input"))
    if not items:
        raise ValueError("no input")
    return {
        "model": request.get("model"),
        "system": request.get("instructions") or [],
        "tools": [
            {name: value for name, value in one.items() if name not in _CREDENTIALS}
            for one in _tools(request)
        ],
        "messages": turns([made for item in items if (made := message_of(item)) is not None]),
        "prompt_cache_key": request.get("prompt_cache_key"),
        "metadata": request.get("metadata"),
    }


def _tools(request: Json) -> list[Json]:
    lists = [request.get("tools"), *(item.get("tools") for item in _added(request))]
    return [one for listed in lists for one in listed or () if isinstance(one, dict)]


def _added(request: Json) -> list[Json]:
    """The items with tools that the input begins with; others are not known."""
    return list(takewhile(lambda item: type_of(item) == _ADDED, items_of(request.get("input"))))


def _with_ours(request: Json, made: Json) -> list[Json]:
    """The items with tools; if there are any, our own tools join the last one's."""
    added = _added(request)
    if added:
        known = _tools(request)
        ours = [one for one in made.pop("tools", ()) if one not in known]
        if "tools" in request:
            made["tools"] = request["tools"]
        added[-1] = {**added[-1], "tools": [*(added[-1].get("tools") or ()), *ours]}
    return added


def _stored(request: Json) -> str:
    """What says that the provider keeps the history."""
    named = next((name for name in _STORED if request.get(name)), "")
    forms = {type_of(item) for item in items_of(request.get("input"))}
    return named or ("item_reference" if "item_reference" in forms else "")


def _unmanaged(request: Json) -> str:
    if stored := _stored(request):
        return f"the provider keeps the history ({stored})"
    if request.get("background"):
        return "it runs in the background"
    if any(_CREDENTIALS & tool.keys() for tool in _tools(request)):
        return "its tools have credentials, which must not be stored"
    forms = {type_of(item) for item in items_of(request.get("input"))[len(_added(request)) :]}
    unknown = sorted(forms - KEPT.keys() - BY_PROVIDER - {_SETTINGS})
    return f"its items of type {unknown[0]} are not known" if unknown else ""


def _sent(request: Json, managed: Json) -> Json:
    items, made = managed["messages"], dict(request)
    instructions = request.get("instructions")
    if instructions and items:
        # Our server has them as the first developer message.
        said = "".join(part.get("text", "") for part in items[0]["content"])
        if said == instructions:
            items = items[1:]
        else:
            del made["instructions"]
    for name in ("tools", "tool_choice"):
        if managed.get(name):
            made[name] = managed[name]
    # Each stays in effect until a later one: in their order, they also are before all messages.
    settings = [item for item in items_of(request.get("input")) if type_of(item) == _SETTINGS]
    made["input"] = [*_with_ours(request, made), *settings, *items]
    return made


def _reply(message_of: MessageOf, answer: Json) -> Json | None:
    output = answer.get("output")
    if not isinstance(output, list) or answer.get("status", "completed") not in (
        "completed",
        "incomplete",
    ):
        return None
    made = [message_of(item) for item in output if isinstance(item, dict)]
    content = [block for message in made if message for block in message["content"]]
    names = ("id", "model", "usage")
    known = {name: answer[name] for name in names if answer.get(name)}
    return {"role": "assistant", "content": content, **known} if content else None


def _shown(answers: list[Json], call: AgentCall) -> Json:
    *_, last = answers
    if not call.has_hidden:
        return last
    visible: list[Json] = []
    for item in [item for answer in answers for item in answer["output"]]:
        if not _hides(call, item):
            visible.append(item)
        elif visible and visible[-1].get("type") == "reasoning":
            del visible[-1]
    return {**last, "output": visible}


def _hides(call: AgentCall, item: Any) -> bool:
    if not isinstance(item, dict) or item.get("type") != "function_call":
        return False
    return call.hides({"type": "tool_use", "name": item.get("name")})


class _WholeResponse:
    """The answer in a stream, once it is complete."""

    def __init__(self) -> None:
        self.answer: Json | None = None
        self._items: list[Json] = []

    def take(self, event: Json) -> None:
        """Take an event."""
        item = event.get("item")
        if event.get("type") == "response.output_item.done" and isinstance(item, dict):
            self._items.append(item)
        elif event.get("type") in _ENDS and isinstance(event.get("response"), dict):
            self.answer = {**event["response"]}
            self.answer["output"] = self._items or self.answer.get("output") or []


class _JoinedItems:
    """The events of an answer and of those that continue it, as those of one answer."""

    def __init__(self, call: AgentCall, _: Json) -> None:
        self._call = call
        self._places: dict[int, int] = {}
        self._items: list[Json] = []
        self._held: list[Json] = []
        self._thinks_at = -1
        self._end: Json | None = None
        self._id: Any = None
        self._number = 0
        self._is_first = True

    def take(self, event: Json | None, data: bytes) -> list[bytes]:
        """What the agent sees of an event; its end is deferred."""
        if event is None:
            return [sent(data)]
        form = event.get("type")
        if form in ("response.created", "response.in_progress", "response.queued"):
            self._id = self._id or (event.get("response") or {}).get("id")
            return [self._made(event)] if self._is_first else []
        if form in _ENDS:
            self._end = event
            return []
        place = event.get("output_index")
        if isinstance(place, int):
            return self._of_item(event, place)
        return [self._made(event)]

    def _of_item(self, event: Json, place: int) -> list[bytes]:
        form, item = event.get("type"), event.get("item")
        if form == "response.output_item.added" and isinstance(item, dict):
            # Without what followed it, an agent could not send its reasoning back.
            held, self._held = ([] if _hides(self._call, item) else self._held), []
            if item.get("type") == "reasoning":
                self._held, self._thinks_at = [event], place
                return self._flushed(held)
            if _hides(self._call, item):
                return []
            made = self._flushed(held)
            self._places[place] = len(self._items)
            self._items.append(item)
            return [*made, self._made({**event, "output_index": self._places[place]})]
        if self._held and place == self._thinks_at:
            self._held.append(event)
            return []
        at = self._places.get(place)
        if at is None:
            return []
        if form == "response.output_item.done" and isinstance(item, dict):
            self._items[at] = item
        return [self._made({**event, "output_index": at})]

    def _flushed(self, held: list[Json]) -> list[bytes]:
        """The events of an item that was deferred."""
        made = [self._made({**event, "output_index": len(self._items)}) for event in held]
        self._items += [event["item"] for event in held[-1:] if "item" in event]
        return made

    def _made(self, event: Json) -> bytes:
        if "sequence_number" in event:
            event = {**event, "sequence_number": self._number}
            self._number += 1
        return of_type(event)

    def goes_on(self) -> None:
        """Another answer follows."""
        self._places, self._held, self._end, self._is_first = {}, [], None, False

    def end(self) -> list[bytes]:
        """The end of the last answer, with all that the agent saw."""
        if self._end is None:
            return []
        made = self._flushed(self._held)
        response = self._end.get("response") or {}
        if self._call.has_hidden:
            named = {"id": self._id} if self._id else {}
            response = {**response, **named, "output": self._items}
        return [*made, self._made({**self._end, "response": response})]

    def refused(self, body: Json) -> bytes:
        """The provider's refusal as an event."""
        said = body.get("error") if isinstance(body.get("error"), dict) else {}
        named = {name: (said or {}).get(name) for name in ("code", "message", "param")}
        return self._made({"type": "error", "sequence_number": 0, **named})


def form(message_of: MessageOf) -> ApiForm:
    """The API, given how its items are read."""
    return ApiForm(
        format="responses",
        asked=partial(_asked, message_of),
        unmanaged=_unmanaged,
        sent=_sent,
        reply=partial(_reply, message_of),
        shown=_shown,
        collected=_WholeResponse,
        joined=_JoinedItems,
        error=openai_error,
    )


FORM = form(message_of)
