"""What aider inserts in a conversation: example turns, files with replies of its own, reminders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from os.path import commonprefix
from typing import Any

from contextlab.client.shown import blocks_of

Message = dict[str, Any]

INSERTED = "memory"
"""The kind of messages that neither a person nor the model wrote."""

_AFTER_EXAMPLES = "I switched to a new code base."
_OF_AIDER = (
    _AFTER_EXAMPLES,
    "Here are summaries of some files present in my git repo",
    "Here are some READ ONLY files",
    "Here are the READ ONLY image files",
    "I have *added these files to the chat*",
    "I am not sharing any files that you can edit yet",
    "Don't try and edit any existing code without asking me",
    "I committed the changes with git hash",
    "I updated the files.",
    "I didn't see any properly formatted edits in your reply",
    "I edited the files myself.",
)
"""How aider's own messages begin, to which it also writes the reply."""
_REPLY, _LONGEST_REPLY = "Ok", 200
_SHORTEST_REMINDER = 40


def with_inserted(body: Message) -> Message:
    """A request, as for the Messages API, in which messages that aider inserted are marked; its
    reminder at the end of the last message is one of its own.

    Without the marks its replies would be steps, and its first example the session's task.
    """
    messages: list[Message] = body["messages"]
    texts = [_text(message) for message in messages]
    inserted = set(_pairs(messages, texts))
    if not inserted:
        return body
    ends = next((at for at, text in enumerate(texts) if text.startswith(_AFTER_EXAMPLES)), 0)
    inserted |= {at for at in range(ends) if messages[at].get("role") != "system"}
    made = [_marked(one) if at in inserted else one for at, one in enumerate(messages)]
    system = _text({"content": body.get("system")}) or texts[0]
    return {**body, "messages": [*made[:-1], *_parted(made[-1], texts[-1], system)]}


def _pairs(messages: Sequence[Message], texts: Sequence[str]) -> Iterator[int]:
    """The places of aider's own messages and of their replies."""
    for at, (said, reply) in enumerate(pairwise(texts)):
        roles = [one.get("role") for one in messages[at : at + 2]]
        is_reply = reply.startswith(_REPLY) and len(reply) <= _LONGEST_REPLY
        if is_reply and roles == ["user", "assistant"] and said.startswith(_OF_AIDER):
            yield from (at, at + 1)


def _parted(message: Message, text: str, system: str) -> list[Message]:
    """A message, and what it repeats from the end of the system prompt."""
    shared = len(commonprefix([text[::-1], system[::-1]]))
    at = text.find("\n\n", max(len(text) - shared - 2, 0)) if message.get("role") == "user" else 0
    if at <= 0 or len(text) - at < _SHORTEST_REMINDER:
        return [message]
    said, reminder = ([{"type": "text", "text": one}] for one in (text[:at], text[at + 2 :]))
    # Of the same form as it will be sent without its reminder.
    content = said if isinstance(message["content"], list) else text[:at]
    return [{**message, "content": content}, _marked({"role": "user", "content": reminder})]


def _marked(message: Message) -> Message:
    person = {"human": False} if message.get("role") == "user" else {}
    return {**message, "kind": INSERTED, **person}


def _text(message: Message) -> str:
    """A message's text; empty if it has anything else."""
    blocks = blocks_of(message.get("content"))
    if any(block.get("type") != "text" for block in blocks):
        return ""
    return "".join(str(block.get("text") or "") for block in blocks)
