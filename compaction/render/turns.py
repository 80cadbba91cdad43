"""Turns of a context: speech in strict alternation, with every tool call answered once.

Work grows with what is new: turns that later blocks cannot change are kept as a `Prefix`, and a
context that begins with the same blocks goes on after them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from compaction.context.blocks import Block
from compaction.context.wire import WireBlock
from compaction.proposals.shards import READ_ON, parts_of_shard
from compaction.render.content import (
    Dialect,
    Notes,
    WireOf,
    call_part,
    parts_of,
    result_content,
    result_part,
    sendable,
    text_part,
)
from compaction.render.prefix import (
    ContentPart,
    Prefix,
    PrefixChanged,
    Turn,
    free_id,
    is_call,
    is_response,
    is_system,
    wanted_id,
)

NO_RESULT = "[No result of this call was recorded.]"
OPENING = "[The conversation as it is kept begins with the assistant.]"


def turns_of(
    speech: list[Block],
    wire_of: WireOf,
    dialect: Dialect,
    notes: Notes,
    before: Prefix,
    earlier: Mapping[int, str],
) -> tuple[list[Turn], Prefix]:
    """Return the turns of speech that begins with a prefix, and a longer prefix if there is one.

    `earlier` are system messages to send again, by the step whose response followed each. Raises
    PrefixChanged.
    """
    changes = Notes()
    new = _Turns(speech, wire_of, dialect, changes, before)
    merged = new.merged()
    split = [[*_again(turn, earlier), *_in_parts(turn)] for turn in merged]
    turns = [*before.turns, *(one for parts in split for one in parts)]
    at = new.seam(merged)
    kept = before
    if at:
        more = [one for parts in split[:at] for one in parts]
        kept = before.extended(speech[: merged[at].begin], more, new.answers, changes, dialect.ids)
    for found in (before.notes, changes):
        notes.extend(found)
    return turns, kept


def _parts(result: Block) -> list[str]:
    """The text of a result; of a sharded one, each part."""
    return parts_of_shard(result) if result.id.startswith("shard:") else [result.text]


class _Turns:
    """Builds the turns of the speech after a prefix.

    `waiting` holds calls without a result by their recorded id, `ids` the id of each call and
    `answers` its result, by position. `seams` are turns of the assistant which began when all
    before them were complete.
    """

    def __init__(
        self,
        speech: list[Block],
        wire_of: WireOf,
        dialect: Dialect,
        notes: Notes,
        before: Prefix,
    ) -> None:
        self.speech, self.wire_of, self.dialect, self.notes = speech, wire_of, dialect, notes
        self.before = before
        self.taken = dict(before.ids)
        self.waiting: dict[str, list[Block]] = {}
        self.ids: dict[int, str] = {}
        self.answers: dict[int, Block] = {}
        self.turns: list[Turn] = []
        self.seams: list[Turn] = []
        self.assistant: Turn | None = None
        self.response = before.response
        self.asked: dict[int, Turn] = {}
        self.opened = False
        for number in range(len(before.blocks), len(speech)):
            self._take(number, speech[number])

    def merged(self) -> list[Turn]:
        """Return the turns in strict alternation, with every call answered."""
        merged: list[Turn] = []
        for turn in self.turns:
            answers = bool(merged and merged[-1].calls)
            if turn.role == "assistant":
                self._cut_thinking(turn)
            elif not turn.parts and not answers:
                # A system message cannot follow the assistant: it becomes the user's.
                turn.parts, turn.system = turn.system, []
            if not turn.parts and not (turn.role == "user" and answers):
                continue
            if merged and merged[-1].role == turn.role:
                merged[-1].parts.extend(turn.parts)
                merged[-1].calls.extend(turn.calls)
                merged[-1].system.extend(turn.system)
            else:
                merged.append(turn)
        if self.before.turns and (not merged or merged[0].role != "assistant"):
            raise PrefixChanged
        if merged and merged[-1].calls:
            merged.append(Turn("user"))
        if not self.before.turns and merged and merged[0].role == "assistant":
            begins = "The context begins with the assistant: a line was inserted before it"
            self.notes.add(begins, merged[0].parts[0].block)
            merged.insert(0, Turn("user", [ContentPart(text_part(OPENING), None)]))
            self.opened = True
        for before, turn in zip(merged, merged[1:], strict=False):
            turn.parts[:0] = [self._answer(use) for use in before.calls]
        self._end(merged)
        return merged

    def seam(self, merged: list[Turn]) -> int:
        """The number of the last turn before which all are complete; 0 if there is none."""
        seams = {id(turn) for turn in self.seams if turn.begin > len(self.before.blocks)}
        # A line inserted at the beginning belongs to the assistant's turn after it.
        least = 1 if self.opened else 0
        numbers = range(len(merged) - 1, least, -1)
        return next((number for number in numbers if id(merged[number]) in seams), 0)

    def _take(self, number: int, block: Block) -> None:
        if block.type == "tool_result":
            self._take_result(number, block)
        elif is_call(block):
            self._call(number, block)
        elif is_system(block):
            parts = parts_of(block, self.wire_of(block), "system", self.dialect, self.notes)
            self._turn(number, "user").system.extend(ContentPart(part, block) for part in parts)
        else:
            role: Literal["user", "assistant"] = "assistant" if is_response(block) else "user"
            wire = self.wire_of(block)
            parts = parts_of(block, wire, role, self.dialect, self.notes)
            turn = (
                self._response(number, block) if role == "assistant" else self._turn(number, "user")
            )
            turn.parts.extend(ContentPart(part, block) for part in parts)

    def _turn(self, number: int, role: Literal["user", "assistant"]) -> Turn:
        if not self.turns or self.turns[-1].role != role:
            self.turns.append(Turn(role, begin=number))
            if role == "assistant":
                self.seams.append(self.turns[-1])
        return self.turns[-1]

    def _response(self, number: int, block: Block) -> Turn:
        """Return the turn of a model response, which may be recorded in pieces between results."""
        goes_on = block.call is not None and block.call == self.response
        if goes_on and self.assistant is None and self.before.turns:
            raise PrefixChanged
        if not goes_on or self.assistant is None:
            self.assistant, self.response = self._turn(number, "assistant"), block.call
        self._reach(self.assistant)
        return self.assistant

    def _reach(self, turn: Turn) -> None:
        """Note that a turn was not complete until now."""
        while self.seams and self.seams[-1].begin > turn.begin:
            self.seams.pop()

    def _call(self, number: int, block: Block) -> None:
        self.waiting.setdefault(block.tool_call or "", []).append(block)
        id = self.ids[block.position] = free_id(wanted_id(block), self.dialect.ids, self.taken)
        if id != block.tool_call:
            self.notes.add("Ids of tool calls were changed to valid ones", block)
        part = call_part(block, self.wire_of(block), id, self.dialect, self.notes)
        turn = self._response(number, block)
        turn.parts.append(ContentPart(part, block))
        turn.calls.append(block)
        self.asked[block.position] = turn

    def _take_result(self, number: int, block: Block) -> None:
        """End the assistant's turn; the result is inserted with its call."""
        call = block.tool_call or ""
        if not self.waiting.get(call):
            if self.before.asked.get(call):
                raise PrefixChanged
            stray = self._stray(block)
            self._turn(number, "user").parts.extend(ContentPart(part, block) for part in stray)
            return
        use = self.waiting[call].pop()
        self.answers[use.position] = block
        asked = self.asked[use.position]
        if self.assistant is not None and asked is not self.assistant:
            self.notes.add("A late result was moved up to its call", block)
        self._reach(asked)
        self._turn(number, "user")

    def _answer(self, use: Block) -> ContentPart:
        id, result = self.ids[use.position], self.answers.get(use.position)
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

    def _stray(self, block: Block) -> list[WireBlock]:
        """Turn a result that answers no call here into text and media."""
        about = f" of {block.tool}" if block.tool else ""
        call = block.tool_call or ""
        if call in self.waiting or call in self.before.asked:
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


def _again(turn: Turn, earlier: Mapping[int, str]) -> Iterator[Turn]:
    """Yield the system message that stood before a response when it was made, unchanged."""
    first = turn.parts[0].block if turn.role == "assistant" else None
    text = earlier.get(first.born - 1) if first is not None else None
    if text:
        yield Turn("system", [ContentPart(text_part(text), None)], clears=True)


def _in_parts(turn: Turn) -> Iterator[Turn]:
    """Split a turn with sharded results, or with system messages after it.

    Each further part of a result becomes a message of its own, after a short assistant message; the
    rest of the turn comes with the last part.
    """
    yield from _of_the_user(turn)
    if turn.system:
        yield Turn("system", turn.system)


def _of_the_user(turn: Turn) -> Iterator[Turn]:
    more = [
        (part.block, one)
        for part in turn.parts
        if part.block is not None and part.wire["type"] == "tool_result"
        for one in _parts(part.block)[1:]
    ]
    if not more:
        yield turn
        return
    answers = [part for part in turn.parts if part.wire["type"] == "tool_result"]
    others = turn.parts[len(answers) :]
    yield Turn("user", answers)
    for block, text in more[:-1]:
        yield Turn("assistant", [ContentPart(text_part(READ_ON), None)])
        yield Turn("user", [ContentPart(text_part(text), block)])
    yield Turn("assistant", [ContentPart(text_part(READ_ON), None)])
    yield Turn("user", [ContentPart(text_part(more[-1][1]), more[-1][0]), *others])
