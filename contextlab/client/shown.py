"""Replies as an agent saw them, and what the model had said: it also read back what stubs name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]

NAME = "read_back"


@dataclass(frozen=True, slots=True)
class ShownReply:
    """A reply as the agent saw it, the messages that the model knows for it, and
    results that the agent lacks."""

    content: list[Message]
    messages: list[Message]
    results: list[Message]


class ShownReplies:
    """Replies that differ from what the model said, by their place in the agent's history."""

    def __init__(self) -> None:
        self._replies: dict[int, ShownReply] = {}

    def add(self, place: int, shown: ShownReply) -> None:
        """Remember a reply; later ones are gone, since the agent went back."""
        self._replies = {at: one for at, one in self._replies.items() if at < place}
        self._replies[place] = shown

    def rebuild(
        self,
        stored: Sequence[Message],
        messages: Sequence[Message],
        read: Callable[[Message], Message],
    ) -> None:
        """Find the replies that an agent does not see whole among the messages of its session,
        which may also contain what was taken back: the latest that fit.

        `read` gives the result of a call that is not stored yet: it comes with those of the agent.
        """
        stored = [one for one in stored if one["role"] != "system"]
        found = list(_replies_in(stored, read))
        for place in range(len(messages) - 1, 0, -1):
            if messages[place].get("role") != "assistant":
                continue
            said = _said(messages[place].get("content"))
            for index in range(len(found) - 1, -1, -1):
                at, shown = found[index]
                before = stored[at - 1] if at else {}
                if said == _said(shown.content) and _follows(_asked(messages, place), before):
                    if len(shown.messages) > 1 or shown.results:
                        self._replies[place] = shown
                    del found[index:]
                    break

    def restored(self, messages: Sequence[Message]) -> list[Message]:
        """The agent's history as the model knows it: with all calls of `read_back`, and results."""
        made: list[Message] = []
        results: list[Message] = []
        for place, message in enumerate(messages):
            if results and message.get("role") == "user":
                message = {**message, "content": [*results, *blocks_of(message["content"])]}
            results = []
            known = self._replies.get(place)
            if known is not None and _said(known.content) == _said(message.get("content")):
                made += known.messages
                results = known.results
            else:
                made.append(message)
        return made


def _replies_in(
    stored: Sequence[Message], read: Callable[[Message], Message]
) -> Iterator[tuple[int, ShownReply]]:
    """The replies among stored messages, each with the place where it begins."""
    begin = 0
    while begin < len(stored):
        at, content, made = begin, [], []
        results: list[Message] = []
        while at < len(stored) and stored[at]["role"] == "assistant":
            blocks = blocks_of(stored[at]["content"])
            calls = [one for one in blocks if _is_read_back(one)]
            content += [one for one in blocks if not _is_read_back(one)]
            made.append({"role": "assistant", "content": blocks})
            at += 1
            after = blocks_of(stored[at]["content"]) if at < len(stored) else [*map(read, calls)]
            ids = {one.get("id") for one in calls}
            results = [one for one in after if one.get("tool_use_id") in ids]
            is_alone = not any(one.get("type") == "tool_use" for one in content)
            if not (results and is_alone and len(results) == len(after)):
                break
            if at + 1 < len(stored) and stored[at + 1]["role"] == "assistant":
                made.append({"role": "user", "content": results})
                results = []
                at += 1
        if made:
            yield begin, ShownReply(content, made, results)
        begin = max(at, begin + 1)


def _asked(messages: Sequence[Message], place: int) -> Message:
    """The message that a reply answers: programs may add system messages after it."""
    before = (messages[at] for at in range(place - 1, -1, -1))
    return next((one for one in before if one.get("role") != "system"), {})


def _is_read_back(block: Message) -> bool:
    return block.get("type") == "tool_use" and block.get("name") == NAME


def _follows(before: Message, stored: Message) -> bool:
    """Whether the message before a reply is a stored one, which may have results of hidden
    calls."""
    ours, theirs = blocks_of(before.get("content")), blocks_of(stored.get("content"))
    ids = {one["tool_use_id"] for one in ours if "tool_use_id" in one}
    known = {one["tool_use_id"] for one in theirs if "tool_use_id" in one}
    return ids <= known and _said(ours)[0] == _said(theirs)[0]


def _said(content: Any) -> tuple[str, list[Any]]:
    """What an agent keeps of a reply, however it stores it: the text, and ids of calls."""
    blocks = blocks_of(content)
    text = "".join(str(block.get("text") or "") for block in blocks)
    return text.strip(), [block.get("id") for block in blocks if block.get("type") == "tool_use"]


def blocks_of(content: Any) -> list[Message]:
    """A message's content as blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in content or () if isinstance(block, dict)]
