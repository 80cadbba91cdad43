"""The stage for a scripted agent: turns what it says and does into records, with times, ids and the
usage a provider would report."""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from compaction.context import wire
from compaction.context.blocks import Kind
from sessions.demo.provider import Count, Piece, Provider
from sessions.importers import records

PER_MESSAGE = 4
"""Tokens that a message costs in addition to its blocks."""

CLEARED_TOKENS = 14


@dataclass(frozen=True, slots=True)
class Done:
    """A completed tool call: input, output, and duration in ms."""

    tool: str
    given: dict[str, Any]
    output: str
    error: bool = False
    took: int = 400


class Stage:
    """A session being played; `at` is its clock (ms since the epoch).

    `hidden` are pieces before the first message that no record shows. Without a provider, no usage
    is reported. If `again` is set, the next call retries that step.
    """

    def __init__(
        self,
        session: records.Session,
        at: int,
        count: Count,
        provider: Provider | None,
        hidden: Sequence[Piece] = (),
    ) -> None:
        self.session = session
        self.at = at
        self.model = session.model
        self.prompt = 0
        self.output = 0
        self.steps = 0
        self.again: int | None = None
        self.said = ""
        self._count = count
        self._provider = provider
        self._ratio = provider.ratio if provider else 1.25
        self._pieces = list(hidden)
        self._layers = len(self._pieces)
        self._keys: list[str] = []
        self._results: dict[str, Piece] = {}
        self._numbers = 0
        self._random = random.Random(session.external_id)  # noqa: S311 (a script, not a secret)

    # Ids

    def _id(self, prefix: str, characters: int = 22) -> str:
        self._numbers += 1
        digest = hashlib.sha256(f"{self.session.external_id}:{self._numbers}".encode()).digest()
        return prefix + base64.b32encode(digest).decode().rstrip("=")[:characters].lower()

    # Prompt

    def _stand(self, block: dict[str, Any], name: str) -> int:
        text = wire.text_of(block)
        if block["type"] == "tool_use":
            text = f"{block['name']} {text}"
        tokens = round(self._count(text).tokens * self._ratio) + PER_MESSAGE
        piece = Piece(name, tokens)
        self._pieces.append(piece)
        if block["type"] == "tool_result":
            self._results[block["tool_use_id"]] = piece
        return tokens

    def _write(self, message: records.Message) -> int:
        message.key = self._id("", 26)
        message.at = self.at
        message.line = len(self.session.records) + 1
        self.session.records.append(message)
        self._keys.append(message.key)
        return sum(
            self._stand(block, f"{message.key}/{index}")
            for index, block in enumerate(message.blocks)
        )

    @property
    def standing(self) -> int:
        """Tokens of the prompt of the next call."""
        return sum(piece.tokens for piece in self._pieces)

    def idle(self, ms: int) -> None:
        """Advance the clock."""
        self.at += ms

    def system(self, blocks: list[dict[str, Any]]) -> None:
        """Show a system prompt or tool definitions in the log."""
        self._write(records.Message("system", blocks))

    def human(self, text: str) -> None:
        """Add a user message, at typing speed."""
        self.at += 4_000 + 45 * len(text) + self._random.randint(0, 6_000)
        self._write(records.Message("user", [{"type": "text", "text": text}], human=True))

    def ask(self, think: str, say: str, wishes: Sequence[Done]) -> list[str]:
        """Make one model call that uses tools; return the ids of the tool calls."""
        call, began = self._id("msg_01"), self.at
        known = records.Call(call, self.model, began, line=len(self.session.records) + 1)
        self.session.records.append(known)
        prompt = list(self._pieces)
        blocks: list[dict[str, Any]] = []
        if think:
            blocks.append({"type": "thinking", "thinking": think})
        if say:
            blocks.append({"type": "text", "text": say})
        ids = [self._id("toolu_01") for _ in wishes]
        for id_, wish in zip(ids, wishes, strict=True):
            blocks.append({"type": "tool_use", "id": id_, "name": wish.tool, "input": wish.given})
        size = sum(len(wire.text_of(block)) for block in blocks)
        self.at += 2_100 + 5 * size + self._random.randint(0, 4_200)
        messages = [records.Message("assistant", [block], call=call) for block in blocks]
        messages[0].retry_of, self.again = self.again, None
        output = sum(self._write(message) for message in messages)
        known.stop_reason = "tool_use" if wishes else "end_turn"
        self.prompt = sum(piece.tokens for piece in prompt)
        self.output = output
        if self._provider:
            known.usage, known.usage_raw = self._provider.bill(self.model, began, prompt, output)
        self.steps += 1
        self.said = say or self.said
        return ids

    def answer(self, tool_call: str, done: Done) -> None:
        """Add the result of a tool call."""
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": tool_call,
            "content": done.output,
        }
        if done.error:
            block["is_error"] = True
        self.at += done.took + self._random.randint(20, 300)
        self._write(records.Message("user", [block]))

    def step(self, think: str, say: str, wishes: Sequence[Done]) -> list[str]:
        """Make one model call and add the results of its tool calls."""
        ids = self.ask(think, say, wishes)
        for id_, wish in zip(ids, wishes, strict=True):
            self.answer(id_, wish)
        return ids

    # Context changes

    def compact(self, trigger: Literal["auto", "manual"], summary: str) -> None:
        """Replace all messages by a summary."""
        self.at += 38_000 + 9 * len(summary)
        del self._pieces[self._layers :]
        self._keys.clear()
        compaction = records.Compaction(
            trigger,
            tokens_before=self.prompt + self.output,
            at=self.at,
            key=self._id("compact-"),
            line=len(self.session.records) + 1,
        )
        self.session.records.append(compaction)
        kind: Kind = "summary"
        self._write(records.Message("user", [{"type": "text", "text": summary}], kind=kind))
        compaction.tokens_after = self.standing

    def clear(self, tool_calls: Sequence[str]) -> int:
        """Clear tool results, as an agent does to free space; return the tokens saved."""
        saved = 0
        for id_ in tool_calls:
            old = self._results[id_]
            new = Piece(f"{old.name}/cleared", CLEARED_TOKENS)
            self._pieces[self._pieces.index(old)] = new
            saved += old.tokens - new.tokens
        line = len(self.session.records) + 1
        self.session.records.append(
            records.Clear(tuple(tool_calls), self.at, self._id("clear-"), line)
        )
        return saved

    def largest_results(self, many: int) -> list[str]:
        """Ids of the tool calls with the largest results in context, in order."""
        standing = [id_ for id_, piece in self._results.items() if piece in self._pieces]
        largest = set(sorted(standing, key=lambda id_: -self._results[id_].tokens)[:many])
        return [id_ for id_ in standing if id_ in largest]

    def mark(self) -> int:
        """Mark a point to return to."""
        return len(self._keys)

    def rewind(self, mark: int) -> None:
        """Return to a mark: remove all messages since then."""
        dropped = tuple(self._keys[mark:])
        gone = set(dropped)
        self._pieces = [p for p in self._pieces if p.name.split("/")[0] not in gone]
        del self._keys[mark:]
        line = len(self.session.records) + 1
        self.session.records.append(records.Rewind(dropped, self.at, self._id("rewind-"), line))

    def reload(self, layers: Sequence[Piece]) -> None:
        """Change the hidden part of the prompt, such as tools or system prompt."""
        self._pieces[: self._layers] = layers
        self._layers = len(layers)
