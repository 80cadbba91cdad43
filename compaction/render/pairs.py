"""Render a context as pairs of action and observation in one text, for models without tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from compaction.context.blocks import Block, Ending
from compaction.context.wire import WireBlock, text_of
from compaction.render.content import Dialect, Notes, WireOf
from compaction.render.normalise import normalise
from compaction.render.prefix import ContentPart, Turn

DIALECT = Dialect(ids=200, names=128)

ATTRIBUTE = 200
"""Maximum code points of an argument written as an attribute; longer ones become elements."""

_ENDS = re.compile(r"</(user|assistant|action|observation)>")
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")


def pairs(blocks: Iterable[Block], wire_of: WireOf, ending: Ending | None = None) -> dict[str, Any]:
    """Return {messages, notes}: the system prompt, and one user message with everything else.

    Each call is an `<action>`, followed by the `<observation>` that answers it. The text only grows
    at its end, apart from the recitation. Tools are not listed: the sender has to describe them to
    the model. Source: MaybeAi.
    """
    notes = Notes()
    made = normalise(blocks, wire_of, DIALECT, notes)
    made.recite(ending or Ending())
    after = [*made.turns[1:], Turn("user")]
    said = [
        piece
        for turn, then in zip(made.turns, after, strict=False)
        for piece in _pieces(turn, then, notes)
    ]
    # The recitation ends the text, even if the assistant spoke last.
    said.sort(key=lambda piece: piece[0])
    messages: list[WireBlock] = []
    if made.system:
        system = "\n\n".join(part.wire["text"] for part in made.system)
        messages.append({"content": system, "role": "system"})
    if said:
        messages.append({"content": "\n\n".join(text for _, text in said), "role": "user"})
    return {"messages": messages, "notes": notes.sentences()}


def _pieces(turn: Turn, then: Turn, notes: Notes) -> Iterator[tuple[bool, str]]:
    """Yield the pieces of a turn and whether each is recited; results follow their calls."""
    answers = {
        part.wire["tool_use_id"]: part for part in then.parts if part.wire["type"] == "tool_result"
    }
    for part in turn.parts:
        form = part.wire["type"]
        if form == "tool_use":
            yield False, f"<action>\n{_call(part.wire)}\n</action>"
            if answer := answers.get(part.wire["id"]):
                yield False, _observation(answer, notes)
        elif part.recited:
            yield True, part.wire["text"]
        elif form != "tool_result":
            yield False, f"<{turn.role}>\n{_text(part, part.wire, notes)}\n</{turn.role}>"


def _call(wire: WireBlock) -> str:
    """Render a call as an element: short arguments as attributes, one long text as content."""
    short, long = "", []
    for name, value in wire["input"].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if len(text) <= ATTRIBUTE and "\n" not in text:
            short += f' {_name(name)}="{escape(text)}"'
        else:
            long.append((_name(name), _harmless(text)))
    tool = _name(wire["name"])
    if not long:
        return f"<{tool}{short} />"
    inner = [f"<{name}>\n{text}\n</{name}>" for name, text in long]
    body = long[0][1] if len(long) == 1 else "\n".join(inner)
    return f"<{tool}{short}>\n{body}\n</{tool}>"


def _observation(part: ContentPart, notes: Notes) -> str:
    content = part.wire["content"]
    parts = [content] if isinstance(content, str) else [_text(part, one, notes) for one in content]
    failed = ' status="failed"' if part.wire.get("is_error") else ""
    text = _harmless("\n".join(parts))
    return f"<observation{failed}>\n{text}\n</observation>"


def _text(part: ContentPart, wire: WireBlock, notes: Notes) -> str:
    if wire["type"] != "text":
        notes.add("Images and documents became bracketed words", part.block)
    return _harmless(text_of(wire))


def _name(name: str) -> str:
    return _NO_NAME.sub("_", str(name)) or "_"


def _harmless(text: str) -> str:
    """Escape a text so that it cannot close the element around it."""
    return _ENDS.sub(r"<\\/\1>", text)
