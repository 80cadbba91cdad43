"""Parsing of live agents' input (JSON values) into records; invalid input is reported with its
place.

Each message may be in Anthropic's, OpenAI's, Gemini's or our own format.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sessions.importers.decoded import MAX_DEPTH, clean, depth
from sessions.importers.delivered.messages import (
    Unacceptable,
    identifier,
    message,
    time_of,
    usage_of,
)
from sessions.importers.gemini_wire import gemini_messages, gemini_tools
from sessions.importers.records import Call, Json, Message, Record
from sessions.importers.wire import blocks_of

__all__ = ["Batch", "Unacceptable", "call_report", "delivery"]

_FIELDS = {
    *("messages", "tools", "system", "model", "usage", "call", "context_id"),
    *("history", "format", "stop_reason", "input_transformations", "after"),
    "recorded_revision",
}


@dataclass(slots=True)
class Batch:
    """A batch from an agent, ready for the store.

    `records` are messages and their calls, in order; a Call with id "" belongs to the preceding
    assistant message. `tools` (definitions) and `system` (text blocks) are None if not given, empty
    if there are none. `history` says whether the batch is a whole conversation; None means to
    recognize it. `after` is the number of the last message that the agent knows of,
    `recorded_revision` that of the last revision of the recorded context.
    """

    records: list[Record] = field(default_factory=list)
    tools: list[Json] | None = None
    system: list[dict[str, Json]] | None = None
    model: str = ""
    history: bool | None = None
    after: int | None = None
    recorded_revision: int | None = None

    @property
    def messages(self) -> list[Message]:
        """The messages only."""
        return [record for record in self.records if isinstance(record, Message)]


def delivery(body: Json) -> Batch:
    """Parse the body of an append: {"messages": […], "tools", "system", "usage", …}.

    Raises Unacceptable at the first error; then nothing may be stored.
    """
    if not isinstance(body, dict):
        raise Unacceptable("", 'must be an object: {"messages": […]}')
    made = Batch(
        tools=_tools(body),
        system=_system(body),
        model=_text(body, "model"),
        history=_history(body),
        after=_number(body, "after"),
        recorded_revision=_number(body, "recorded_revision"),
    )
    _messages(body, made)
    _of_the_call(body, made)
    if made.messages:
        # Keep unknown fields with the last message.
        rest = {name: value for name, value in body.items() if name not in _FIELDS}
        if rest:
            last = made.messages[-1]
            last.extra = {**(last.extra or {}), "delivery": rest}
    elif made.tools is None and made.system is None and not made.records:
        raise Unacceptable("/messages", "is missing; send at least one message")
    return made


def call_report(body: Json) -> tuple[Call, int | None]:
    """Parse {call?, step?, model?, usage, context_id?, started_at?, stop_reason?} into a record and
    its step. Raises Unacceptable."""
    if not isinstance(body, dict):
        raise Unacceptable("", 'must be an object: {"usage": {…}}')
    if body.get("usage") is None:
        raise Unacceptable("/usage", "is missing")
    reported = usage_of(body["usage"], "/usage")
    if reported.usage is None:
        raise Unacceptable(
            "/usage", "has no known token count, such as input_tokens or prompt_tokens"
        )
    step = body.get("step")
    if step is not None and (isinstance(step, bool) or not isinstance(step, int) or step < 1):
        raise Unacceptable("/step", "must be a whole number from 1")
    call = Call(
        call=identifier(body, "call", ""),
        model=_text(body, "model"),
        at=time_of(body, "started_at", ""),
        usage=reported.usage,
        usage_raw=body["usage"],
        reconciles=reported.reconciles,
        stop_reason=_text(body, "stop_reason"),
        context=identifier(body, "context_id", ""),
        dropped=_dropped(body),
    )
    return call, step


def _messages(body: dict[str, Json], made: Batch) -> None:
    seen: dict[str, int] = {}
    for index, item in enumerate(gemini_messages(_list(body, "messages") or [])):
        read, reported = message(item, f"/messages/{index}")
        key = read.key
        if key is not None:
            if key in seen:
                first = f"/messages/{seen[key]}"
                raise Unacceptable(f"/messages/{index}/id", f"is also the id of {first}")
            seen[key] = index
        made.records.append(read)
        if reported is not None:
            made.records.append(reported)


def _of_the_call(body: dict[str, Json], made: Batch) -> None:
    """Add the fields about the call of the batch's last assistant message."""
    call, context = identifier(body, "call", ""), identifier(body, "context_id", "")
    raw = body.get("usage")
    reported = None if raw is None else usage_of(raw, "/usage")
    stopped = _text(body, "stop_reason")
    last = next((one for one in reversed(made.messages) if one.role == "assistant"), None)
    if last is not None and call:
        last.call = call
    if last is None and not call and (reported is not None or context):
        where = "/usage" if reported is not None else "/context_id"
        raise Unacceptable(
            where,
            "needs an assistant message in the batch, or the id of its call",
        )
    usage = reported.usage if reported else None
    if call or usage or context or stopped:
        made.records.append(
            Call(
                call=call or (last.call if last and last.call else ""),
                model=made.model,
                at=last.at if last else None,
                usage=usage,
                usage_raw=raw if usage else None,
                reconciles=reported.reconciles if reported else True,
                stop_reason=stopped,
                context=context,
                dropped=_dropped(body),
            )
        )


def _dropped(body: dict[str, Json]) -> int | None:
    """Thinking blocks that the provider dropped, of the changes that it reports."""
    listed = _list(body, "input_transformations")
    if listed is None:
        return None
    return sum(isinstance(one, dict) and one.get("type") == "thinking_dropped" for one in listed)


def _list(body: dict[str, Json], name: str) -> list[Json] | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, list):
        raise Unacceptable(f"/{name}", "must be a list")
    if name == "tools":
        for index, tool in enumerate(value):
            if not isinstance(tool, dict):
                raise Unacceptable(f"/tools/{index}", "must be an object: a tool definition")
            if depth(tool) > MAX_DEPTH:
                raise Unacceptable(f"/tools/{index}", f"is nested over {MAX_DEPTH} levels deep")
    return value


def _tools(body: dict[str, Json]) -> list[Json] | None:
    tools = _list(body, "tools")
    return None if tools is None else [one for tool in tools for one in gemini_tools(tool)]


def _system(body: dict[str, Json]) -> list[dict[str, Json]] | None:
    value = body.get("system")
    if value is None:
        return None
    for index, block in enumerate(value if isinstance(value, list) else []):
        if not isinstance(block, dict) or not isinstance(block.get("text"), str):
            raise Unacceptable(f"/system/{index}", 'must be a text block: {"type", "text"}')
    if not isinstance(value, str | list):
        raise Unacceptable("/system", "must be text or a list of text blocks")
    return blocks_of(value)


def _text(body: dict[str, Json], name: str) -> str:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise Unacceptable(f"/{name}", "must be text")
    return str(clean(value or ""))


def _history(body: dict[str, Json]) -> bool | None:
    value = body.get("history")
    if value is not None and not isinstance(value, bool):
        raise Unacceptable("/history", "must be true, false or omitted")
    return value


def _number(body: dict[str, Json], name: str) -> int | None:
    value = body.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise Unacceptable(f"/{name}", "must be a whole number")
    return value
