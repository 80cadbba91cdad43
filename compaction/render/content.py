"""The content of one block as a provider takes it: permitted fields, nothing that it refuses."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

from compaction.context import Block
from compaction.wire import WireBlock, text_of, type_of

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
NOTED = 12
"""Messages that a note names before it only counts."""

_NAME = re.compile(r"[a-zA-Z0-9_-]+\Z")
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}\Z")
_DATA_URL = re.compile(r"data:([a-z]+/[a-z0-9.+-]+);base64,", re.IGNORECASE)
_SOURCE_FIELDS = {"base64": "data", "url": "url", "file": "file_id", "text": "data"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a provider takes: code points in ids and in names of tools, and whether thinking."""

    ids: int
    names: int
    thinking: bool


@dataclass(slots=True)
class Notes:
    """What was changed so that the provider takes it, and in which messages."""

    found: dict[str, dict[int, None]] = field(default_factory=dict)

    def add(self, sentence: str, block: Block | None = None) -> None:
        """Note a change; of many in one message the first is enough."""
        messages = self.found.setdefault(sentence, {})
        if block is not None:
            messages[block.message] = None

    def sentences(self) -> list[str]:
        """A sentence for each kind of change, with the numbers of its messages."""
        return [_with_messages(sentence, list(where)) for sentence, where in self.found.items()]


def _with_messages(sentence: str, where: list[int]) -> str:
    if not where:
        return f"{sentence}."
    listed = ", ".join(str(number) for number in where[:NOTED])
    more = f" and {len(where) - NOTED} more" if len(where) > NOTED else ""
    return f"{sentence} (message{'s' if len(where) > 1 else ''} {listed}{more})."


def permitted(name: str, limit: int) -> str:
    """An id or name of letters, digits, - and _: itself, or the same other one every time."""
    if len(name) <= limit and _NAME.match(name):
        return name
    check = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_NO_NAME.sub('_', name)[: limit - 9]}_{check}"


def sendable(value: Any) -> Any:
    """A JSON value without what no request can carry: lone surrogates, numbers that are none."""
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
    """A block of text."""
    return {"text": sendable(text), "type": "text"}


def parts_of(
    block: Block, wire: WireBlock, speaker: str, dialect: Dialect, notes: Notes
) -> list[WireBlock]:
    """The content of a block that is no call and no paired result; empty where nothing can go.

    `speaker` is "user" or "assistant". Text goes as it is; thinking only where the provider can
    check it; media where the speaker may show them, else as a bracketed word; all else as text.
    """
    form = type_of(wire)
    if form == "thinking":
        return _thinking(block, wire, speaker, dialect, notes)
    if form in ("image", "document"):
        found = media(wire) if speaker == "user" else None
        if found is not None:
            return [found]
        notes.add("An image or document that cannot be sent was named instead", block)
    # What is written out here has no order of its own: the same content makes the same bytes.
    text = text_of(dict(sorted(wire.items())))
    if not text.strip():
        notes.add("Empty text was left out", block)
        return []
    if form not in ("text", "image", "document"):
        kind = wire.get("type")
        notes.add(f"What the provider does not take here ({kind}) was sent as text", block)
    part = text_part(text)
    if part["text"] != text:
        notes.add("Characters that are none were replaced", block)
    return [part]


def _thinking(
    block: Block, wire: WireBlock, speaker: str, dialect: Dialect, notes: Notes
) -> list[WireBlock]:
    if not dialect.thinking or speaker != "assistant":
        notes.add("Thinking was left out: it is not taken here", block)
        return []
    fields = ("data",) if wire.get("type") == "redacted_thinking" else ("signature", "thinking")
    kept = {name: wire.get(name) for name in (*fields, "type")}
    signed = kept.get("data") or kept.get("signature")
    if not signed or not all(isinstance(value, str) for value in kept.values()):
        notes.add("Thinking was left out: it carries no signature", block)
        return []
    if sendable(kept) != kept:
        notes.add("Thinking was left out: it cannot be sent unchanged", block)
        return []
    return [kept]


def media(wire: WireBlock) -> WireBlock | None:
    """An image or document with the fields that are taken; None where its source is none."""
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
        # Where a chat completion put a file.
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
    """A tool call under the id given, its input as it came."""
    name = str(wire.get("name") or block.tool or "tool")
    known = permitted(name, dialect.names)
    if known != name:
        notes.add("Names of tools were changed to letters, digits, - and _", block)
    given = sendable(wire.get("input"))
    if not isinstance(given, dict):
        given = {} if given is None else {"input": given}
    return {"id": id, "input": given, "name": known, "type": "tool_use"}


def result_part(block: Block, wire: WireBlock, id: str, notes: Notes) -> WireBlock:
    """The result of a tool call under the id given."""
    made: WireBlock = {"content": result_content(block, wire, notes)}
    if isinstance(wire.get("is_error"), bool):
        made["is_error"] = wire["is_error"]
    if made.get("is_error"):
        if not made["content"]:
            made["content"] = "The tool failed and said nothing."
            notes.add("A failure without a word was given one", block)
        if not isinstance(made["content"], str) and any(
            part["type"] != "text" for part in made["content"]
        ):
            del made["is_error"]
            notes.add("A failure that shows an image is not marked as failure", block)
    return {**made, "tool_use_id": id, "type": "tool_result"}


def result_content(block: Block, wire: WireBlock, notes: Notes) -> str | list[WireBlock]:
    """What a tool gave back: text as it is, or a list of text, images and documents."""
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
            notes.add("Parts of a result that cannot be sent were named or sent as text", block)
        if (text := text_of(wrapped)).strip():
            parts.append(text_part(text))
    return parts or ""
