"""From records to rows-to-be: hashing, counting and naming, all outside any transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

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


class Preparation:
    """Prepares the messages of one session in order, remembering which tool call read which file.

    `tool_calls` may be given the calls that an earlier part of the session made.
    """

    def __init__(
        self, count: Count, tool_calls: dict[str, tuple[str, FileRef | None]] | None = None
    ) -> None:
        self._count = count
        self._tool_calls = {} if tool_calls is None else tool_calls

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
        tool, tool_call, file = self._tool(form, block)
        counted = self._count(f"{tool} {text}" if form == "tool_use" else text)
        media = wire.media_count(block)
        return PreparedBlock(
            data=data,
            sha=sha256(data),
            type=form,
            kind=self._kind(record, block, file),
            tool=tool[:120],
            tool_call=tool_call[:200],
            file=file,
            error=bool(block.get("is_error")),
            tokens=counted.tokens + media * MEDIA_TOKENS,
            estimated=counted.estimated or media > 0,
            chars=len(text),
            preview=wire.preview(block),
        )

    def _tool(self, form: str, block: wire.WireBlock) -> tuple[str, str, FileRef | None]:
        if form == "tool_use":
            tool, tool_call = str(block.get("name") or ""), str(block.get("id") or "")
            given = block.get("input")
            file = files.file_of(tool, given) if isinstance(given, dict) else None
            self._tool_calls[tool_call] = (tool, file)
            return tool, tool_call, file
        if form == "tool_result":
            tool_call = str(block.get("tool_use_id") or "")
            tool, file = self._tool_calls.get(tool_call, ("", None))
            return tool, tool_call, file
        return "", "", None

    def _kind(self, record: records.Message, block: wire.WireBlock, file: FileRef | None) -> Kind:
        if record.kind is not None:
            return record.kind
        kind = wire.kind_of(block, record.role)
        if kind == "result" and file is not None and file.action == "read":
            return "file"
        return kind
