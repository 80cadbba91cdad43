"""Kimi: the history is a list of messages; events add to its last one, compactions cut it."""

from __future__ import annotations

from dataclasses import dataclass

from sessions.second_reader.arrays import part_of
from sessions.second_reader.reread import (
    Billed,
    Json,
    Reread,
    RereadPiece,
    RereadStep,
    answered,
    billed,
    dicts,
    objects,
    piece,
    pieces,
    used,
    within,
)


@dataclass(slots=True, eq=False)
class _Said:
    """A message of the history; `by` is who or what it comes from."""

    by: str
    pieces: list[RereadPiece]
    text: str = ""


def read(data: bytes) -> list[Reread]:
    """Read the events of Kimi CLI, which wraps each, or of Kimi Code."""
    reader = _Kimi()
    for line, given in objects(data):
        form = given.get("type")
        event = given.get("event") if form == "context.append_loop_event" else given
        if form is None:
            form, event = within(given, "message", "type"), within(given, "message", "payload")
        elif form == "context.append_loop_event":
            form = within(event, "type")
        reader.take(line, str(form), event if isinstance(event, dict) else {})
    reader.reread.end = reader.context()
    return [reader.reread]


class _Kimi:
    def __init__(self) -> None:
        self.reread = Reread()
        self.history: list[_Said] = []
        self.open: _Said | None = None
        self.by_events: _Said | None = None
        self.answered: list[Json] = []

    def context(self) -> list[RereadPiece]:
        """What is in context now."""
        return [one for said in self.history for one in said.pieces]

    def take(self, line: int, form: str, event: dict[str, Json]) -> None:
        """Read an event."""
        match form:
            case "TurnBegin" | "SteerInput":
                self._asked("user", event.get("user_input"), line)
            case "StepBegin" | "TurnEnd" | "step.begin":
                self.open = None
            case "ContentPart" | "content.part":
                part = event.get("part", event)
                self._respond(_parts([part], line), line, part.get("text"))
            case "ToolCall":
                self._respond([_call(event, line)], line)
            case "tool.call":
                self._respond([used(event.get("name"), event.get("args"), line)], line)
            case "StatusUpdate" | "step.end":
                tokens = _usage(event.get("token_usage") or event.get("usage") or {})
                if tokens and self.reread.steps:
                    self.reread.steps[-1].billed = tokens
            case _:
                self._change(line, form, event)

    def _change(self, line: int, form: str, event: dict[str, Json]) -> None:
        match form:
            case "ToolResult":
                result = event.get("return_value") or event.get("result")
                self._result(_of_tool(result), line)
            case "tool.result":
                self.answered.append(event.get("toolCallId"))
                self._result(within(event, "result", "output"), line)
            case "context.append_message":
                self._whole(event.get("message") or {}, line)
            case "CompactionEnd" | "context.apply_compaction":
                self._compacted(event, line)
            case "context.clear":
                self._compacted({}, line)
            case "context.undo":
                self._undo(event.get("count") or 0)

    def _asked(self, by: str, content: Json, line: int) -> None:
        self.open = self.by_events = None
        self.answered = []
        self.history.append(_Said(by, _parts(content, line)))

    def _respond(self, read: list[RereadPiece], line: int, text: Json = "") -> None:
        if self.open is None:
            self.reread.steps.append(RereadStep(line, self.context()))
            self.open = self.by_events = _Said("assistant", [])
            self.history.append(self.open)
        self.open.pieces += read
        self.open.text += text or ""

    def _result(self, output: Json, line: int) -> None:
        self.history.append(_Said("tool", [answered(output, line)]))

    def _whole(self, message: dict[str, Json], line: int) -> None:
        """A message that stands in one line; it may repeat what events said."""
        content = message.get("content")
        if message.get("role") == "assistant":
            calls = [_call(one, line) for one in dicts(message.get("toolCalls"))]
            text = "".join(part.get("text") or "" for part in dicts(content))
            told, self.by_events = self.by_events, None
            if told is None or told.text != text or _calls(told.pieces) != _calls(calls):
                self.open = None
                self._respond([*_parts(content, line), *calls], line)
                self.open = self.by_events = None
        elif message.get("role") != "tool":
            by = within(message, "origin", "kind") or "user"
            if content:
                self._asked(by, content, line)
        elif message.get("toolCallId") in self.answered:
            self.answered.remove(message["toolCallId"])
        else:
            self._result(content, line)

    def _compacted(self, event: dict[str, Json], line: int) -> None:
        """A summary follows the prompts that are kept, or in older logs precedes the rest."""
        self.reread.compactions += 1
        self.open = None
        kept, head = event.get("keptUserMessageCount"), event.get("keptHeadUserMessageCount") or 0
        cut = event.get("compactedCount")
        if kept is not None:
            typed = [said for said in self.history if said.by == "user"]
            self.history = [*typed[:head], *typed[max(head, len(typed) - kept + head) :]]
        else:
            self.history = self.history[cut:] if cut else []
        summary = event.get("contextSummary") or event.get("summary")
        text = summary if isinstance(summary, str) else within(summary, "content")
        if text:
            self.history.append(_Said("compaction_summary", _parts(text, line)))

    def _undo(self, count: int) -> None:
        """Take back the last prompts and what followed, but for what the client put in."""
        kept: list[_Said] = []
        while self.history and count > 0 and self.history[-1].by != "compaction_summary":
            last = self.history.pop()
            kept += [last] if last.by == "injection" else []
            count -= last.by == "user"
        self.history += kept[::-1]
        self.open = self.by_events = None


def _parts(content: Json, line: int) -> list[RereadPiece]:
    if not isinstance(content, list):
        return pieces(content, line)
    return [
        piece("thinking", str(part.get("think") or ""), line)
        if within(part, "type") == "think"
        else part_of(part, line)
        for part in content
    ]


def _call(call: dict[str, Json], line: int) -> RereadPiece:
    asked = call.get("function") or call
    return used(asked.get("name"), asked.get("arguments"), line)


def _calls(read: list[RereadPiece]) -> list[tuple[str, str]]:
    return [one.same for one in read if one.form == "tool_use"]


def _of_tool(result: Json) -> Json:
    """What Kimi CLI sends of a result: its message in a tag, before the output."""
    message, output = within(result, "message"), within(result, "output")
    if not message:
        return output
    failed = "ERROR: " if within(result, "is_error") else ""
    rest = output if isinstance(output, list) else [output] if output else []
    return [f"<system>{failed}{message}</system>", *rest]


def _usage(tokens: dict[str, Json]) -> Billed | None:
    """Counts beside each other, in the names of either log."""
    names = (
        ("input_other", "inputOther"),
        ("input_cache_read", "inputCacheRead"),
        ("input_cache_creation", "inputCacheCreation"),
        ("output",),
    )
    return billed(*(next((tokens[n] for n in both if n in tokens), None) for both in names))
