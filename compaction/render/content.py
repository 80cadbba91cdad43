"""Convert the content of one block to a provider's form: permitted fields only."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from compaction.context.blocks import Block
from compaction.context.wire import WireBlock, text_of, type_of

WireOf = Callable[[Block], WireBlock]
"""Returns the stored wire block of an original or a replacement; never modified here."""

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
EFFORT = "output_config"
"""Type of the block that a system message's field of this name is stored as."""
NOTED = 12
"""Messages that a note lists; further ones are counted."""

_NAME = re.compile(r"[a-zA-Z0-9_-]+\Z")
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}\Z")
_DATA_URL = re.compile(r"data:([a-z]+/[a-z0-9.+-]+);base64,", re.IGNORECASE)
_SOURCE_FIELDS = {"base64": "data", "url": "url", "file": "file_id", "text": "data"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """A provider's limits: code points of ids and tool names, the thinking it accepts, the types of
    blocks that it ran itself and takes back unchanged, and those that it takes from a user or from
    the system."""

    ids: int
    names: int
    thinking: Literal["none", "signed", "encrypted"] = "none"
    own: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()
    directed: frozenset[str] = frozenset()


@dataclass(slots=True)
class Notes:
    """What was changed for the provider: sentences, and the message by position of each block."""

    found: dict[str, dict[int, int]] = field(default_factory=dict)

    def add(self, sentence: str, block: Block | None = None) -> None:
        """Note a change."""
        messages = self.found.setdefault(sentence, {})
        if block is not None:
            messages[block.position] = block.message

    def extend(self, other: Notes) -> None:
        """Add the notes of another part of the context."""
        for sentence, messages in other.found.items():
            self.found.setdefault(sentence, {}).update(messages)

    def among(self, blocks: Iterable[Block]) -> Notes:
        """Return the notes about these blocks alone."""
        if not self.found:
            return Notes()
        places = {block.position for block in blocks}
        kept = (
            (sentence, {place: messages[place] for place in messages if place in places})
            for sentence, messages in self.found.items()
        )
        return Notes({sentence: messages for sentence, messages in kept if messages})

    def sentences(self) -> list[str]:
        """Return a sentence for each kind of change, with the numbers of its messages, by the
        first one."""
        found = [(sorted(set(where.values())), sentence) for sentence, where in self.found.items()]
        return [_with_messages(sentence, where) for where, sentence in sorted(found)]


def _with_messages(sentence: str, where: list[int]) -> str:
    if not where:
        return f"{sentence}."
    listed = ", ".join(str(number) for number in where[:NOTED])
    more = f" and {len(where) - NOTED} more" if len(where) > NOTED else ""
    return f"{sentence} (message{'s' if len(where) > 1 else ''} {listed}{more})."


def permitted(name: str, limit: int) -> str:
    """Return a valid id or name (letters, digits, - and _): itself, or a stable substitute."""
    if len(name) <= limit and _NAME.match(name):
        return name
    check = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_NO_NAME.sub('_', name)[: limit - 9]}_{check}"


def sendable(value: Any) -> Any:
    """Strip a JSON value of what no request can carry: lone surrogates and non-finite numbers."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [sendable(one) for one in value]
    if isinstance(value, dict):
        return {sendable(name): sendable(one) for name, one in value.items()}
    return value


def text_part(text: str) -> WireBlock:
    """Build a text block."""
    return {"text": sendable(text), "type": "text"}


def parts_of(
    block: Block, wire: WireBlock, speaker: str, dialect: Dialect, notes: Notes
) -> list[WireBlock]:
    """Convert a block that is neither a call nor a paired result; empty if nothing can be sent.

    `speaker` is "user", "assistant" or "system". Text is sent as it is; thinking only if the
    provider can verify it; media if the speaker may show them, else as a bracketed word; everything
    else as text.
    """
    form = type_of(wire)
    if form == "thinking":
        return _thinking(block, wire, speaker, dialect, notes)
    taken = {"assistant": dialect.own, "user": dialect.given, "system": dialect.directed}
    if wire.get("type") in taken[speaker] and sendable(wire) == wire:
        return [wire if speaker != "system" else _directive(wire)]
    if wire.get("type") == EFFORT:
        notes.add("The effort for later turns was left out: it cannot be sent here", block)
        return []
    if form in ("image", "document"):
        found = media(wire) if speaker == "user" else None
        if found is not None:
            return [found]
        notes.add("An image or document that cannot be sent became a bracketed word", block)
    # Sorted, because equal content must give equal bytes.
    text = text_of(dict(sorted(wire.items())))
    if not text.strip():
        notes.add("Empty text was left out", block)
        return []
    if form not in ("text", "image", "document"):
        kind = wire.get("type")
        notes.add(
            f"Content that the provider does not accept here ({kind}) was sent as text", block
        )
    part = text_part(text)
    if part["text"] != text:
        notes.add("Invalid characters were replaced", block)
    return [part]


def _directive(wire: WireBlock) -> WireBlock:
    """A block that changes what holds from here on, without a breakpoint that its agent set."""
    return {name: wire[name] for name in sorted(wire) if name != "cache_control"}


def _thinking(
    block: Block, wire: WireBlock, speaker: str, dialect: Dialect, notes: Notes
) -> list[WireBlock]:
    if dialect.thinking == "none" or speaker != "assistant":
        notes.add("Thinking was left out: the provider does not accept it here", block)
        return []
    if dialect.thinking == "encrypted":
        return _encrypted(block, wire, notes)
    fields = ("data",) if wire.get("type") == "redacted_thinking" else ("signature", "thinking")
    kept = {name: wire.get(name) for name in (*fields, "type")}
    signed = kept.get("data") or kept.get("signature")
    if not signed or not all(isinstance(value, str) for value in kept.values()):
        notes.add("Thinking was left out: it has no signature", block)
        return []
    if sendable(kept) != kept:
        notes.add("Thinking was left out: it cannot be sent unchanged", block)
        return []
    return [kept]


def _encrypted(block: Block, wire: WireBlock, notes: Notes) -> list[WireBlock]:
    if not isinstance(wire.get("encrypted_content"), str):
        notes.add("Reasoning was left out: it is not encrypted", block)
        return []
    kept: WireBlock = {name: wire[name] for name in ("encrypted_content", "id") if name in wire}
    summary = wire.get("summary")
    return [{**kept, "summary": summary if isinstance(summary, list) else [], "type": "thinking"}]


def media(wire: WireBlock) -> WireBlock | None:
    """Return an image or document with its permitted fields; None if its source is invalid."""
    form = str(wire.get("type"))
    source = _source(form, wire)
    if source is None:
        return None
    made: WireBlock = {"source": source, "type": form}
    if form == "document":
        made |= {n: wire[n] for n in ("context", "title") if isinstance(wire.get(n), str)}
        if isinstance(wire.get("citations"), dict):
            made["citations"] = wire["citations"]
    return {name: sendable(made[name]) for name in sorted(made)}


def _source(form: str, wire: WireBlock) -> WireBlock | None:
    source = wire.get("source")
    if not isinstance(source, dict):
        # The place of a file in chat completions.
        file = wire.get("file")
        given = file.get("file_data") if isinstance(file, dict) else None
        source = {"type": "url", "url": given}
    kind = source.get("type")
    name = _SOURCE_FIELDS.get(str(kind))
    if name is None or not isinstance(source.get(name), str) or not source[name]:
        return None
    if kind == "url":
        found = _DATA_URL.match(source["url"])
        if found is None:
            known = source["url"].startswith(("http://", "https://"))
            return {"type": "url", "url": source["url"]} if known else None
        kind, source = "base64", {"data": source["url"][found.end() :], "media_type": found[1]}
    if kind == "file":
        return {"file_id": source["file_id"], "type": "file"}
    if not _is_media(form, str(kind), source):
        return None
    return {"data": source["data"], "media_type": source["media_type"], "type": kind}


def _is_media(form: str, kind: str, source: WireBlock) -> bool:
    if kind == "text":
        return form == "document" and source.get("media_type") == "text/plain"
    types = IMAGE_TYPES if form == "image" else ("application/pdf",)
    return source.get("media_type") in types and _BASE64.match(source["data"]) is not None


def call_part(block: Block, wire: WireBlock, id: str, dialect: Dialect, notes: Notes) -> WireBlock:
    """Build a tool call with the given id and its original input."""
    name = str(wire.get("name") or block.tool or "tool")
    known = permitted(name, dialect.names)
    if known != name:
        notes.add("Names of tools were changed to letters, digits, - and _", block)
    given = sendable(wire.get("input"))
    if not isinstance(given, dict):
        given = {} if given is None else {"input": given}
    return {"id": id, "input": given, "name": known, "type": "tool_use"}


def result_part(block: Block, wire: WireBlock, id: str, notes: Notes) -> WireBlock:
    """Build the result of a tool call with the given id."""
    made: WireBlock = {"content": result_content(block, wire, notes)}
    if isinstance(wire.get("is_error"), bool):
        made["is_error"] = wire["is_error"]
    if made.get("is_error"):
        if not made["content"]:
            made["content"] = "The tool failed without a message."
            notes.add("A failure without text was given one", block)
        if not isinstance(made["content"], str) and any(
            part["type"] != "text" for part in made["content"]
        ):
            del made["is_error"]
            notes.add("A failure with an image is not marked as a failure", block)
    return {**made, "tool_use_id": id, "type": "tool_result"}


def result_content(block: Block, wire: WireBlock, notes: Notes) -> str | list[WireBlock]:
    """Return the content of a result: text as it is, or a list of text, images and documents."""
    content = wire.get("content")
    if content is None:
        return ""
    if not isinstance(content, (str, list)):
        content = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    if isinstance(content, str):
        text: str = sendable(content)
        return text if text.strip() else ""
    parts: list[WireBlock] = []
    for part in content:
        wrapped = part if isinstance(part, dict) else {"type": "text", "text": str(part)}
        found = media(wrapped) if type_of(wrapped) in ("image", "document") else None
        if found is not None:
            parts.append(found)
            continue
        if type_of(wrapped) != "text":
            notes.add("Parts of a result that cannot be sent became text", block)
        if (text := text_of(wrapped)).strip():
            parts.append(text_part(text))
    return parts or ""
