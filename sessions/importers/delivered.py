"""What a live agent sends, as JSON values, brought into records; wrong input is named by its place.

Each message is Anthropic-shaped, OpenAI-shaped, or our own; which, is seen message by message.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sessions.importers.decoded import MAX_DEPTH, clean, depth
from sessions.importers.delivered_messages import (
    Unacceptable,
    identifier,
    message,
    time_of,
    usage_of,
)
from sessions.importers.records import Call, Json, Message, Record
from sessions.importers.wire import blocks_of

__all__ = ["Delivery", "Unacceptable", "call_report", "delivery"]

_FIELDS = {
    *("messages", "tools", "system", "model", "usage", "call", "context_id"),
    *("history", "format", "stop_reason"),
}


@dataclass(slots=True)
class Delivery:
    """One batch of an agent, ready for the store.

    `records` are messages and what is known of their calls, in order; a Call of id "" belongs to
    the assistant message before it. `tools` (a list of definitions) and `system` (text blocks) are
    None where the batch says nothing of them, empty where there are none. `history` says whether
    the batch is the whole conversation again; None: to be recognised.
    """

    records: list[Record] = field(default_factory=list)
    tools: list[Json] | None = None
    system: list[dict[str, Json]] | None = None
    model: str = ""
    history: bool | None = None

    @property
    def messages(self) -> list[Message]:
        """The messages alone."""
        return [record for record in self.records if isinstance(record, Message)]


def delivery(body: Json) -> Delivery:
    """Read the body of an append: {"messages": […], "tools", "system", "usage", …}.

    Raises Unacceptable at the first thing that is wrong; then nothing of it is to be stored.
    """
    if not isinstance(body, dict):
        raise Unacceptable("", 'must be an object: {"messages": […]}')
    made = Delivery(
        tools=_list(body, "tools"),
        system=_system(body),
        model=_text(body, "model"),
        history=_history(body),
    )
    _messages(body, made)
    _of_the_call(body, made)
    if made.messages:
        # Fields that are none of ours are kept with what they came with.
        rest = {name: value for name, value in body.items() if name not in _FIELDS}
        if rest:
            last = made.messages[-1]
            last.extra = {**(last.extra or {}), "delivery": rest}
    elif made.tools is None and made.system is None and not made.records:
        raise Unacceptable("/messages", "is missing: there is nothing to append")
    return made


def call_report(body: Json) -> tuple[Call, int | None]:
    """Read {call?, step?, model?, usage, context_id?, started_at?, stop_reason?}: the record, and
    the step that it names. Raises Unacceptable."""
    if not isinstance(body, dict):
        raise Unacceptable("", 'must be an object: {"usage": {…}}')
    if body.get("usage") is None:
        raise Unacceptable("/usage", "is missing")
    reported = usage_of(body["usage"], "/usage")
    if reported.usage is None:
        raise Unacceptable("/usage", "holds no count that we know (input_tokens, prompt_tokens, …)")
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
    )
    return call, step


def _messages(body: dict[str, Json], made: Delivery) -> None:
    seen: dict[str, int] = {}
    for index, item in enumerate(_list(body, "messages") or []):
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


def _of_the_call(body: dict[str, Json], made: Delivery) -> None:
    """What the batch says of the call that gave its last assistant message."""
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
            "belongs to the call of an assistant message, and the batch has none: name the call",
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
            )
        )


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
        raise Unacceptable("/history", "must be true, false or left out")
    return value
