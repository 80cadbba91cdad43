"""OpenHands: the events of a conversation, and the histories in results."""

from __future__ import annotations

import json

from sessions.second_reader.arrays import Said, sequence, usage_of
from sessions.second_reader.reread import (
    Json,
    Reread,
    RereadPiece,
    RereadStep,
    answered,
    objects,
    piece,
    pieces,
    used,
    within,
)

_ANSWERS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")


def events(data: bytes) -> list[Reread]:
    """Read a conversation: at each call, all events before it that were not forgotten."""
    found = Reread()
    held: list[tuple[Json, list[RereadPiece]]] = []
    responses: set[Json] = set()
    for line, given in objects(data):
        event = given.get("event") or given
        named = event.get("llm_response_id") or event.get("id") or line
        if event.get("kind") == "Condensation":
            forgotten = event.get("forgotten_event_ids") or []
            held = [each for each in held if each[0] not in forgotten]
            found.compactions += 1
            held.append((event.get("id"), pieces(event.get("summary") or [], line)))
        elif read := _event(event, line):
            if _is_response(event) and named not in responses:
                responses.add(named)
                found.steps.append(RereadStep(line, [one for _, each in held for one in each]))
            held.append((event.get("id"), read))
    found.end = [one for _, each in held for one in each]
    return [found]


def _is_response(event: dict[str, Json]) -> bool:
    said = within(event, "llm_message", "role") == "assistant" or event.get("source") == "agent"
    return event["kind"] == "ActionEvent" or (event["kind"] == "MessageEvent" and said)


def _event(event: dict[str, Json], line: int) -> list[RereadPiece]:
    kind = event.get("kind")
    if kind == "SystemPromptEvent":
        tools = event.get("tools")
        shown = [{"type": "tools", "tools": tools}] if tools else []
        texts = [event[n] for n in ("system_prompt", "dynamic_context") if event.get(n)]
        return pieces([*shown, *texts], line)
    if kind == "MessageEvent":
        said = event.get("llm_message") or {}
        more = event.get("extended_content") or []
        texts = [*_thought(said, line), *pieces(said.get("content"), line)]
        return [*texts, *pieces(more, line)]
    if kind == "ActionEvent":
        named = {n: one for n, one in (event.get("action") or {}).items() if n != "kind"}
        stated = within(event, "tool_call", "function", "arguments")
        given = json.loads(stated) if isinstance(stated, str) else stated
        asked = used(event.get("tool_name"), named if given is None else given, line)
        return [*_thought(event, line), *pieces(event.get("thought"), line), asked]
    return [answered(_answer(event), line)] if kind in _ANSWERS else []


def _thought(given: dict[str, Json], line: int) -> list[RereadPiece]:
    text = given.get("reasoning_content")
    return [piece("thinking", text, line)] if text else []


def _answer(event: dict[str, Json]) -> Json:
    if event["kind"] == "UserRejectObservation":
        return f"Action rejected: {event.get('rejection_reason') or event.get('reason')}"
    if event["kind"] == "AgentErrorEvent":
        return event.get("error")
    seen = event.get("observation") or {}
    listed = [seen.get(name) for name in ("content", "output", "text", "error")]
    return next((one for one in listed if one and one is not True), "")


# Results


_INPUTS = ("command", "code", "path", "url", "content", "browser_actions", "inputs", "outputs")
_UNSENT = ("change_agent_state", "agent_state_changed", "null", "recall", "system")


def results(data: bytes) -> list[Reread]:
    """Read the history of each task; a call is shown by the action that it became."""
    return [
        sequence(_history(line, one["history"])) for line, one in objects(data) if "history" in one
    ]


def _history(line: int, history: Json) -> list[Said]:
    listed = [one for each in history for one in (each if isinstance(each, list) else [each])]
    said: list[Said] = []
    for place, event in enumerate(listed):
        form = event.get("observation", event.get("action"))
        args = event.get("args") or event
        if form in _UNSENT or form is None:
            continue
        if "observation" in event:
            # What no tool was asked for, such as a notice, has no result to be.
            if said and said[-1][1] and said[-1][1][-1].form == "tool_use":
                said.append((line, [answered(event.get("content"), line)], False, None))
        elif form == "message" and event.get("source", "agent" if place else "user") == "user":
            said.append((line, pieces(args.get("content"), line), False, None))
        else:
            usage = within(event, "tool_call_metadata", "model_response", "usage")
            said.append((line, _action(form, args, line), True, usage_of(usage)))
    return said


def _action(form: str, args: dict[str, Json], line: int) -> list[RereadPiece]:
    thought = pieces(args.get("thought") or None, line)
    if form in ("message", "finish"):
        return [*thought, *pieces(args.get("content") or args.get("final_thought"), line)]
    given = {name: args[name] for name in _INPUTS if args.get(name) is not None}
    return [*thought, used(form, given, line)]
