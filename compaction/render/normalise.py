"""Turn blocks in recorded order into turns that a provider accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from compaction.context.blocks import Block, Ending
from compaction.context.wire import WireBlock
from compaction.proposals.shards import READ_ON, parts_of_shard
from compaction.render.content import (
    Dialect,
    Notes,
    call_part,
    parts_of,
    permitted,
    result_content,
    result_part,
    sendable,
    text_part,
)

WireOf = Callable[[Block], WireBlock]
"""Returns the stored wire block of an original or a replacement; never modified here."""

NO_RESULT = "[No result of this call was recorded.]"
OPENING = "[The conversation as it is kept begins with the assistant.]"


@dataclass(slots=True)
class ContentPart:
    """A piece of content ready to be sent, and its block (None for text that we insert)."""

    wire: WireBlock
    block: Block | None
    recited: bool = False


@dataclass(slots=True)
class Turn:
    """A message to build: its parts, and for the assistant the blocks of its tool calls."""

    role: Literal["user", "assistant"]
    parts: list[ContentPart] = field(default_factory=list)
    calls: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class Normalised:
    """A context in request order: newest tools, system text, turns starting with the user."""

    tools: Block | None
    system: list[ContentPart]
    turns: list[Turn]

    def recite(self, ending: Ending) -> None:
        """Append the recitation to the end of the newest user message, if there is one."""
        turn = next((one for one in reversed(self.turns) if one.role == "user"), None)
        if ending.text and turn is not None:
            turn.parts.append(ContentPart(text_part(ending.text), None, recited=True))


def normalise(
    blocks: Iterable[Block], wire_of: WireOf, dialect: Dialect, notes: Notes
) -> Normalised:
    """Bring a context into the order and form that a provider accepts.

    System text comes first, and neighboring messages of one role are merged. Of several tool lists
    the newest counts. The blocks of one model response stay together, even if results of its
    earlier calls were recorded between them. Every tool call is answered once, at the start of the
    next user turn: by its result wherever that was recorded, or by a default text. A result without
    its call becomes text. Changes are listed in `notes`.
    """
    listed = list(blocks)
    setup = [block for block in listed if block.type == "tools"]
    if len(setup) > 1:
        notes.add("Older tool lists were left out", setup[0])
    system: list[ContentPart] = []
    speech: list[Block] = []
    for block in listed:
        if block.type == "tools":
            continue
        if block.kind != "summary" and (block.role == "system" or block.kind == "system"):
            parts = parts_of(block, wire_of(block), "system", dialect, notes)
            system.extend(ContentPart(part, block) for part in parts)
        else:
            speech.append(block)
    turns = _Turns(speech, wire_of, dialect, notes).made()
    return Normalised(setup[-1] if setup else None, system, turns)


class _Pairs:
    """Which result answers which call, by position, and the id of both."""

    def __init__(self, blocks: Iterable[Block], limit: int) -> None:
        self.ids: dict[int, str] = {}
        self.answers: dict[int, Block] = {}
        self.calls: dict[int, Block] = {}
        self.repeated: set[int] = set()
        waiting: dict[str, list[Block]] = {}
        taken: dict[str, int] = {}
        for block in blocks:
            call = block.tool_call or ""
            if _is_call(block):
                waiting.setdefault(call, []).append(block)
                self.ids[block.position] = _free(call or f"call_{block.id}", limit, taken)
            elif block.type == "tool_result":
                if waiting.get(call):
                    use = waiting[call].pop()
                    self.answers[use.position], self.calls[block.position] = block, use
                elif call in waiting:
                    self.repeated.add(block.position)


def _is_call(block: Block) -> bool:
    return block.type == "tool_use" and block.role == "assistant"


def _free(name: str, limit: int, taken: dict[str, int]) -> str:
    """Return an id for a call; a second call with the same id gets a stable new one.

    `taken` counts for each id how often it was asked for, so that thousands of equal ids stay
    cheap.
    """
    first = found = permitted(name, limit)
    while found in taken:
        taken[first] += 1
        found = permitted(f"{name}#{taken[first]}", limit)
    taken[found] = 1
    return found


def _parts(result: Block) -> list[str]:
    """The text of a result; of a sharded one, each part."""
    return parts_of_shard(result) if result.id.startswith("shard:") else [result.text]


class _Turns:
    def __init__(
        self, blocks: list[Block], wire_of: WireOf, dialect: Dialect, notes: Notes
    ) -> None:
        self.wire_of, self.dialect, self.notes = wire_of, dialect, notes
        self.pairs = _Pairs(blocks, dialect.ids)
        self.turns: list[Turn] = []
        self.assistant: Turn | None = None
        self.asked: dict[int, Turn] = {}
        self.call: str | None = None
        for block in blocks:
            self._take(block)

    def made(self) -> list[Turn]:
        """Return the turns in strict alternation, with every call answered."""
        merged: list[Turn] = []
        for turn in self.turns:
            answers = bool(merged and merged[-1].calls)
            if turn.role == "assistant":
                self._cut_thinking(turn)
            if not turn.parts and not (turn.role == "user" and answers):
                continue
            if merged and merged[-1].role == turn.role:
                merged[-1].parts.extend(turn.parts)
                merged[-1].calls.extend(turn.calls)
            else:
                merged.append(turn)
        if merged and merged[-1].calls:
            merged.append(Turn("user"))
        if merged and merged[0].role == "assistant":
            merged.insert(0, Turn("user", [ContentPart(text_part(OPENING), None)]))
            self.notes.add("The context begins with the assistant: a line was inserted before it")
        for before, turn in zip(merged, merged[1:], strict=False):
            turn.parts[:0] = [self._answer(use) for use in before.calls]
        self._end(merged)
        return [one for turn in merged for one in self._in_parts(turn)]

    def _take(self, block: Block) -> None:
        if block.position in self.pairs.calls:
            self._place_result(block)
        elif block.type == "tool_result":
            self._turn("user").parts.extend(ContentPart(part, block) for part in self._stray(block))
        elif _is_call(block):
            self._call(block)
        else:
            role: Literal["user", "assistant"] = "user"
            if block.role == "assistant" and block.kind != "summary":
                role = "assistant"
            wire = self.wire_of(block)
            parts = parts_of(block, wire, role, self.dialect, self.notes)
            turn = self._response(block) if role == "assistant" else self._turn("user")
            turn.parts.extend(ContentPart(part, block) for part in parts)

    def _turn(self, role: Literal["user", "assistant"]) -> Turn:
        if not self.turns or self.turns[-1].role != role:
            self.turns.append(Turn(role))
        return self.turns[-1]

    def _response(self, block: Block) -> Turn:
        """Return the turn of a model response, which may be recorded in pieces between results."""
        if self.assistant is None or block.call is None or block.call != self.call:
            self.assistant, self.call = self._turn("assistant"), block.call
        return self.assistant

    def _call(self, block: Block) -> None:
        id = self.pairs.ids[block.position]
        if id != block.tool_call:
            self.notes.add("Ids of tool calls were changed to valid ones", block)
        part = call_part(block, self.wire_of(block), id, self.dialect, self.notes)
        turn = self._response(block)
        turn.parts.append(ContentPart(part, block))
        turn.calls.append(block)
        self.asked[block.position] = turn

    def _place_result(self, block: Block) -> None:
        """End the assistant's turn; the result is inserted with its call."""
        use = self.pairs.calls[block.position]
        if self.assistant is not None and self.asked.get(use.position) is not self.assistant:
            self.notes.add("A late result was moved up to its call", block)
        self._turn("user")

    def _answer(self, use: Block) -> ContentPart:
        id, result = self.pairs.ids[use.position], self.pairs.answers.get(use.position)
        if result is None:
            self.notes.add("A call without a result was given a default result", use)
            wire = {"content": NO_RESULT, "tool_use_id": id, "type": "tool_result"}
            return ContentPart(wire, None)
        wire = result_part(result, self.wire_of(result), id, self.notes)
        first, *more = _parts(result)
        if more:
            wire["content"] = sendable(first)
            self.notes.add("A long result is followed by its other parts", result)
        return ContentPart(wire, result)

    def _in_parts(self, turn: Turn) -> Iterator[Turn]:
        """Split a turn with sharded results.

        Each further part becomes a message of its own, after a short assistant message; the rest of
        the turn comes with the last part.
        """
        more = [
            (part.block, one)
            for part in turn.parts
            if part.block is not None and part.wire["type"] == "tool_result"
            for one in _parts(part.block)[1:]
        ]
        answers = [part for part in turn.parts if part.wire["type"] == "tool_result"]
        if not more:
            yield turn
            return
        others = turn.parts[len(answers) :]
        yield Turn("user", answers)
        for block, text in more[:-1]:
            yield Turn("assistant", [ContentPart(text_part(READ_ON), None)])
            yield Turn("user", [ContentPart(text_part(text), block)])
        yield Turn("assistant", [ContentPart(text_part(READ_ON), None)])
        yield Turn("user", [ContentPart(text_part(more[-1][1]), more[-1][0]), *others])

    def _stray(self, block: Block) -> list[WireBlock]:
        """Turn a result that answers no call here into text and media."""
        about = f" of {block.tool}" if block.tool else ""
        if block.position in self.pairs.repeated:
            head = f"[Another result{about}, for a call that already has one.]"
            self.notes.add("A second result of a call was sent as text", block)
        else:
            head = f"[A result{about}, whose call is no longer in this context.]"
            self.notes.add("A result without its call was sent as text", block)
        content = result_content(block, self.wire_of(block), self.notes)
        if isinstance(content, str):
            return [text_part(f"{head}\n{content}".rstrip("\n"))]
        return [text_part(head), *content]

    def _cut_thinking(self, turn: Turn) -> None:
        """Drop thinking at the end of a message, left by a response that was cut off."""
        while turn.parts and "thinking" in turn.parts[-1].wire["type"]:
            self.notes.add("Thinking at the end was left out", turn.parts.pop().block)

    def _end(self, turns: list[Turn]) -> None:
        if not turns or turns[-1].role != "assistant":
            return
        last = turns[-1].parts[-1]
        self.notes.add("The context ends with the assistant: not every model can continue it")
        if last.wire["type"] == "text" and last.wire["text"] != last.wire["text"].rstrip():
            last.wire["text"] = last.wire["text"].rstrip()
            self.notes.add("Whitespace at the end of the last message was cut", last.block)
