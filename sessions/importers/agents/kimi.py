"""Wire logs of Kimi CLI and Kimi Code (JSONL): events, a message each.

Kimi CLI wraps each event (`TurnBegin`, `ContentPart`, `ToolCall`, …); Kimi Code writes them flat,
beside whole messages of restored sessions (`context.append_message`).
"""

from __future__ import annotations

from collections.abc import Iterable

from sessions.importers.agents.kimi_history import (
    SUMMARY,
    KimiMessage,
    kept_by,
    sent_result,
    without_last,
)
from sessions.importers.codex.items import parsed
from sessions.importers.decoded import Faults, NotALog, lines
from sessions.importers.importer import Importer
from sessions.importers.openai_wire import content_blocks
from sessions.importers.records import (
    Call,
    Compaction,
    Json,
    Log,
    Message,
    Rewind,
    Session,
    Skipped,
)
from sessions.importers.reported import NOTHING, Reported, anthropic_usage
from sessions.importers.wire import Block, mapping, milliseconds, sequence, string

FORMAT = "kimi"

_MOST_KEPT = 500_000
"""Keys of messages that all compactions of a log may keep: each lists its own."""

_WRAPPED = frozenset({"TurnBegin", "StepBegin", "ContentPart", "ToolCall", "StatusUpdate"})


def recognises(objects: Iterable[dict[str, Json]]) -> bool:
    """Whether the first objects of a JSONL file are events of Kimi."""
    return any(
        string(given.get("type")).startswith(("context.append_", "turn.prompt"))
        or (given.get("type") == "metadata" and "protocol_version" in given)
        or ("payload" in mapping(given.get("message")) and _form(given) in _WRAPPED)
        for given in objects
    )


def _form(given: dict[str, Json]) -> str:
    return string(mapping(given.get("message")).get("type"))


def read(data: bytes, name: str = "") -> Log:
    """Read the events of one agent."""
    del name
    log = Log(FORMAT)
    faults = Faults("Lines that are not readable JSON")
    reader = _Events()
    for line in lines(data):
        given = mapping(line.value)
        if line.fault:
            log.skipped.append(faults.line(line))
            continue
        reader.line = line.number
        reader.at = milliseconds(given.get("timestamp", given.get("time")))
        form = _form(given) if "type" not in given else string(given.get("type"))
        before = len(reader.session.records)
        if "type" in given:
            reader.flat(form, given)
        else:
            reader.wrapped(form, mapping(mapping(given.get("message")).get("payload")))
        if len(reader.session.records) == before:
            log.skipped.append(Skipped(line.number, form, "not context", line.raw))
    log.problems += faults.sentences()
    return log.close([reader.session])


class _Events:
    """Writes a message per event; those of one step belong to one model call."""

    def __init__(self) -> None:
        self.session = Session("", agent="kimi")
        self.line = 0
        self.at: int | None = None
        self._calls = 0
        self._in_step = False
        self._model = ""
        self._standing: list[KimiMessage] = []
        self._open: KimiMessage | None = None
        self._kept = 0
        # What events said since the last prompt, and a whole message may repeat once.
        self._answered: set[str] = set()
        self._said: list[Block] = []

    def wrapped(self, form: str, payload: dict[str, Json]) -> None:
        """Process an event of Kimi CLI."""
        if form in {"TurnBegin", "SteerInput"}:
            self._say(content_blocks(payload.get("user_input")), human=True)
        elif form in {"StepBegin", "TurnEnd"}:
            self._in_step = False
        elif form == "ContentPart":
            self._answer(content_blocks([payload]))
        elif form == "ToolCall":
            self._answer([_used(payload)])
        elif form == "ToolResult":
            value = mapping(payload.get("return_value") or payload.get("result"))
            failed = bool(value.get("is_error"))
            self._result(payload.get("tool_call_id"), sent_result(value), failed)
        elif form == "StatusUpdate" and isinstance(payload.get("token_usage"), dict):
            self._usage(payload["token_usage"])
        elif form == "CompactionEnd":
            self._compaction({})

    def flat(self, form: str, given: dict[str, Json]) -> None:
        """Process an event of Kimi Code."""
        if form == "context.append_message":
            self._whole(mapping(given.get("message")))
        elif form == "context.append_loop_event":
            self._loop(mapping(given.get("event")))
        elif form == "context.apply_compaction":
            self._compaction(given)
        elif form == "context.clear":
            self._replace(Compaction("manual", at=self.at, line=self.line), [])
        elif form == "context.undo" and isinstance(given.get("count"), int):
            self._undo(given["count"])
        elif form == "usage.record" and self._calls:
            self._model = string(given.get("model")) or self._model
            self.session.model = self._model
            self._call()

    def _loop(self, event: dict[str, Json]) -> None:
        form = event.get("type")
        if form == "content.part":
            self._answer(content_blocks([event.get("part")]))
        elif form == "tool.call":
            function = {"name": event.get("name"), "arguments": event.get("args")}
            self._answer([_used({"id": event.get("toolCallId"), "function": function})])
        elif form == "tool.result":
            result = mapping(event.get("result"))
            failed = bool(result.get("isError"))
            self._answered.add(string(event.get("toolCallId")))
            self._result(event.get("toolCallId"), result.get("output"), failed)
        elif form == "step.end" and isinstance(event.get("usage"), dict):
            self._usage(event["usage"])
        elif form == "step.begin":
            self._in_step = False

    def _whole(self, given: dict[str, Json]) -> None:
        """A message that was written whole; one that repeats the events before it is left out."""
        role = string(given.get("role"))
        blocks = content_blocks(given.get("content"))
        if role == "assistant":
            blocks += [_used(mapping(one)) for one in sequence(given.get("toolCalls"))]
            said, self._said = self._said, []
            if not said or _essence(blocks) != _essence(said):
                self._in_step = False
                self._answer(blocks)
                self._in_step = False
                self._said = []
        elif role == "tool":
            called = string(given.get("toolCallId"))
            if called in self._answered:
                self._answered.discard(called)
            else:
                self._result(called, given.get("content"), failed=False)
        elif blocks:
            origin = string(mapping(given.get("origin")).get("kind")) or "user"
            self._say(blocks, human=origin == "user", origin=origin)

    def _answer(self, blocks: list[Block]) -> None:
        blocks = [_thought(block) for block in blocks]
        if not self._in_step:
            self._in_step = True
            self._calls += 1
            self._said = []
            self._open = None
            self._call()
        self._said += blocks
        call = f"call-{self._calls}"
        response = Message("assistant", blocks, call=call, at=self.at, line=self.line)
        self._open = self._add(response, "assistant", self._open)

    def _call(self, reported: Reported = NOTHING, raw: Json = None) -> None:
        """Write the call of the latest step, or add to it."""
        call = Call(f"call-{self._calls}", model=self._model, usage=reported.usage)
        call.at, call.line, call.usage_raw = self.at, self.line, raw if reported.usage else None
        self.session.records.append(call)

    def _result(self, called: Json, output: Json, failed: bool) -> None:
        content = output if isinstance(output, str) else content_blocks(output)
        block: Block = {
            "type": "tool_result",
            "tool_use_id": string(called),
            "content": content,
            "is_error": failed,
        }
        self._add(Message("tool", [block], at=self.at, line=self.line), "tool")

    def _say(self, blocks: list[Block], human: bool, origin: str = "user") -> None:
        self._in_step = False
        self._said, self._answered = [], set()
        self._add(Message("user", blocks, at=self.at, human=human, line=self.line), origin)

    def _usage(self, raw: Json) -> None:
        given = mapping(raw)
        reported = anthropic_usage(
            {
                "input_tokens": given.get("input_other", given.get("inputOther")),
                "cache_read_input_tokens": given.get(
                    "input_cache_read", given.get("inputCacheRead")
                ),
                "cache_creation_input_tokens": given.get(
                    "input_cache_creation", given.get("inputCacheCreation")
                ),
                "output_tokens": given.get("output"),
            }
        )
        if self._calls:
            self._call(reported, raw)

    def _compaction(self, given: dict[str, Json]) -> None:
        """Replace messages by a summary: all of them, but for what the event says is kept."""
        kept = kept_by(given, self._standing)
        self._kept += sum(len(one.keys) for one in kept)
        if self._kept > _MOST_KEPT:
            raise NotALog(
                f"Line {self.line}: the compactions keep more than {_MOST_KEPT:,} messages in all. "
                "Import the part of the log before that line."
            )
        before, after = given.get("tokensBefore"), given.get("tokensAfter")
        compaction = Compaction(
            keep=tuple(key for one in kept for key in one.keys),
            tokens_before=before if isinstance(before, int) else None,
            tokens_after=after if isinstance(after, int) else None,
            at=self.at,
            line=self.line,
        )
        self._replace(compaction, kept)
        stated = given.get("contextSummary") or given.get("summary")
        if summary := content_blocks(mapping(stated).get("content", stated)):
            message = Message("user", summary, kind="summary", at=self.at, line=self.line)
            self._add(message, SUMMARY)

    def _replace(self, compaction: Compaction, kept: list[KimiMessage]) -> None:
        self.session.records.append(compaction)
        self._standing, self._in_step = kept, False

    def _undo(self, count: int) -> None:
        """Take back the last prompts with all that followed, but for what the client put in."""
        self._standing, gone = without_last(self._standing, count)
        self._in_step = False
        if drop := tuple(key for one in gone for key in one.keys):
            self.session.records.append(Rewind(drop, at=self.at, line=self.line))

    def _add(self, message: Message, origin: str, of: KimiMessage | None = None) -> KimiMessage:
        """Write a message, which may be a part `of` a response."""
        message.key = f"message-{message.line}.{len(self.session.records)}"
        self.session.records.append(message)
        if of is None:
            of = KimiMessage(origin)
            self._standing.append(of)
        of.keys.append(message.key)
        return of


def _thought(block: Block) -> Block:
    if block.get("type") == "think":
        return {"type": "thinking", "thinking": string(block.get("think", block.get("text")))}
    return block


def _essence(blocks: list[Block]) -> Json:
    """What an answer says, however it was cut into parts."""
    texts = "".join(string(one.get("text")) for one in blocks)
    return [texts, *(one for one in blocks if one.get("type") == "tool_use")]


def _used(call: dict[str, Json]) -> Block:
    function = mapping(call.get("function")) or call
    given = function.get("arguments")
    named = {"id": string(call.get("id")), "name": string(function.get("name"))}
    inputs = given if isinstance(given, dict) else parsed(given)
    return {"type": "tool_use", **named, "input": inputs}


IMPORTER = Importer(
    name=FORMAT,
    order=19,
    title="Kimi",
    files="`wire.jsonl` of Kimi CLI and Kimi Code",
    recognised_by="a first line with `protocol_version`, or events with a `payload`",
    read=read,
    knows_lines=recognises,
    folder="~/.kimi/sessions",
)
