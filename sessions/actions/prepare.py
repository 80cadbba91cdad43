"""From records to rows-to-be: hashing, counting and naming, all outside any transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from compaction import files, wire
from compaction.context import FileRef, Kind
from compaction.tokens import Counted
from sessions.importers import records
from sessions.models.blobs import sha256

MEDIA_TOKENS = 1200
"""Tokens of an image or document that nobody counted; pi's published figure, marked estimated."""

Count = Callable[[str], Counted]
"""Text to its o200k tokens, and whether any of them were estimated."""


@dataclass(slots=True)
class PreparedBlock:
    """A block with everything that needs its content, so that rows can be written quickly."""

    data: bytes
    sha: str
    type: str
    kind: Kind
    tool: str
    tool_call: str
    file: FileRef | None
    error: bool
    tokens: int
    estimated: bool
    chars: int
    preview: str


@dataclass(slots=True)
class PreparedMessage:
    """A message with its prepared blocks; `digest` tells it from others of the session."""

    record: records.Message
    digest: str
    blocks: list[PreparedBlock] = field(default_factory=list)


class _ToolCall(NamedTuple):
    """What later results need to know of a call."""

    tool: str
    about: str
    file: FileRef | None


_NO_CALL = _ToolCall("", "", None)


class Preparation:
    """Prepares the messages of one session in order; results learn of the calls before them."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._tool_calls: dict[str, _ToolCall] = {}

    def messages(self, incoming: Iterable[records.Record]) -> dict[int, PreparedMessage]:
        """Prepared messages by the index of their record."""
        return {
            index: self._message(record)
            for index, record in enumerate(incoming)
            if isinstance(record, records.Message)
        }

    def _message(self, record: records.Message) -> PreparedMessage:
        blocks = [self._block(record, block) for block in record.blocks]
        digest = hashlib.sha256(f"{record.role}\n{record.call or ''}\n".encode())
        for block in blocks:
            digest.update(block.sha.encode())
        return PreparedMessage(record, digest.hexdigest(), blocks)

    def _block(self, record: records.Message, block: wire.WireBlock) -> PreparedBlock:
        data = wire.encode(block)
        form = wire.type_of(block)
        text = wire.text_of(block)
        tool_call, call = self._call(form, block)
        counted = self._count(f"{call.tool} {text}" if form == "tool_use" else text)
        media = wire.media_count(block)
        return PreparedBlock(
            data=data,
            sha=sha256(data),
            type=form,
            kind=self._kind(record, block, call.file),
            tool=call.tool[:120],
            tool_call=tool_call[:200],
            file=call.file,
            error=bool(block.get("is_error")),
            tokens=counted.tokens + media * MEDIA_TOKENS,
            estimated=counted.estimated or media > 0,
            chars=len(text),
            preview=wire.preview(block, f"{call.tool} {call.about}".strip()),
        )

    def _call(self, form: str, block: wire.WireBlock) -> tuple[str, _ToolCall]:
        """The tool call that a block makes or answers."""
        if form == "tool_use":
            tool, tool_call = str(block.get("name") or ""), str(block.get("id") or "")
            given = block.get("input")
            file = files.file_of(tool, given) if isinstance(given, dict) else None
            call = self._tool_calls[tool_call] = _ToolCall(tool, wire.about(given), file)
            return tool_call, call
        if form == "tool_result":
            tool_call = str(block.get("tool_use_id") or "")
            return tool_call, self._tool_calls.get(tool_call, _NO_CALL)
        return "", _NO_CALL

    def _kind(self, record: records.Message, block: wire.WireBlock, file: FileRef | None) -> Kind:
        if record.kind is not None:
            return record.kind
        kind = wire.kind_of(block, record.role)
        if kind == "result" and file is not None and file.action == "read":
            return "file"
        return kind
