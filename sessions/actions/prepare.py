"""From records to rows-to-be: hashing, counting and naming, all outside any transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from compaction import wire
from compaction.context import FileRef, Kind
from compaction.files import calls
from compaction.tokens import Counted
from sessions.importers import records
from sessions.importers.decoded import clean
from sessions.models.blobs import pack, sha256

MEDIA_TOKENS = 1200
"""Tokens of an image or document that nobody counted; pi's published figure, marked estimated."""

LAST_LINE = 2**31 - 1
"""Line numbers beyond this fit no column, and are no line numbers."""

Count = Callable[[str], Counted]
"""Text to its o200k tokens, and whether any of them were estimated."""


@dataclass(slots=True)
class PreparedBlock:
    """A block with everything that needs its content, so that rows can be written quickly.

    `stored` are its bytes as the blob holds them, compressed where `packed`; `size` is theirs
    before. Texts fit their columns.
    """

    stored: bytes
    packed: bool
    size: int
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


class ToolCall(NamedTuple):
    """What later results need to know of a call; `label` is a line that says what it was about."""

    tool: str
    label: str
    file: FileRef | None


NO_CALL = ToolCall("", "", None)


def _bare(block: records.Json, data: bytes) -> bytes:
    """A block, encoded as `data`, without what may differ each time that it is sent."""
    said = sorted(k for k, v in block.items() if v is not None and k != "cache_control")
    return data if said == list(block) else wire.encode({name: block[name] for name in said})


class PreparedMessage:
    """A message as the store sees it; `digest` tells it from others of the session.

    Its blocks are counted and compressed when they are first asked for, once: of messages that are
    known already, nobody asks.
    """

    __slots__ = ("_asked", "_blocks", "_count", "_encoded", "digest", "record")

    def __init__(
        self, record: records.Message, count: Count, asked: list[_Asked | None], *, live: bool
    ) -> None:
        self.record = record
        self._count, self._asked = count, asked
        self._encoded = [wire.encode(block) for block in record.blocks]
        self._blocks: list[PreparedBlock] | None = None
        self.digest = self._digest_as_sent() if live else self._digest(record.call, self._encoded)

    def _digest_as_sent(self) -> str:
        """A live sender names a call, and asks to cache up to a block, at one time and not at
        another; a provider's library writes nulls that were left out, and fields in an order of
        its own. Its messages are the same for all that."""
        blocks = zip(self.record.blocks, self._encoded, strict=True)
        bare = [_bare(block, data) for block, data in blocks]
        return self._digest(None, bare)

    def _digest(self, call: str | None, encoded: list[bytes]) -> str:
        digest = hashlib.sha256(f"{self.record.role}\n{call or ''}\n".encode())
        for data in encoded:
            digest.update(sha256(data).encode())
        return digest.hexdigest()

    @property
    def orphans(self) -> list[str]:
        """Ids that its tool results answer and that no tool call has."""
        results = zip(self.record.blocks, self._asked, strict=True)
        return [
            asked.id
            for block, asked in results
            if asked is not None and block.get("type") == "tool_result" and asked.call is NO_CALL
        ]

    @property
    def blocks(self) -> list[PreparedBlock]:
        """The blocks, prepared."""
        return self.prepare()

    def prepare(self) -> list[PreparedBlock]:
        """Do the work now, where no transaction waits for it."""
        if self._blocks is None:
            parts = zip(self.record.blocks, self._encoded, self._asked, strict=True)
            self._blocks = [self._block(*part) for part in parts]
        return self._blocks

    def _block(self, block: wire.WireBlock, data: bytes, asked: _Asked | None) -> PreparedBlock:
        form = wire.type_of(block)
        text = wire.text_of(block)
        call = asked.call if asked is not None else NO_CALL
        counted = self._count(f"{call.tool} {text}" if form == "tool_use" else text)
        media = wire.media_count(block)
        stored, packed = pack(data)
        return PreparedBlock(
            stored=stored,
            packed=packed,
            size=len(data),
            sha=sha256(data),
            type=form,
            kind=self._kind(block, call.file),
            tool=column(call.tool, 120),
            tool_call=column(asked.id, 200) if asked is not None else "",
            file=call.file,
            error=bool(block.get("is_error")),
            tokens=counted.tokens + media * MEDIA_TOKENS,
            estimated=counted.estimated or media > 0,
            chars=len(text),
            preview=call.label if form == "tool_use" else wire.preview(block, call.label),
        )

    def _kind(self, block: wire.WireBlock, file: FileRef | None) -> Kind:
        if self.record.kind is not None:
            return self.record.kind
        kind = wire.kind_of(block, self.record.role)
        if kind == "result" and file is not None and file.action == "read":
            return "file"
        return kind


class _Asked:
    """A tool call that a block makes or answers; read when somebody asks."""

    __slots__ = ("_block", "_call", "id")

    def __init__(self, id: str, block: wire.WireBlock | None, call: ToolCall = NO_CALL) -> None:
        self.id, self._block, self._call = id, block, call

    @property
    def call(self) -> ToolCall:
        """What it was about."""
        if self._block is not None:
            tool, given = str(self._block.get("name") or ""), self._block.get("input")
            file = calls.file_of(tool, given) if isinstance(given, dict) else None
            self._call = ToolCall(tool, wire.preview(self._block), _stored_file(file))
            self._block = None
        return self._call


class Preparation:
    """Prepares the messages of one session in order; results learn of the calls before them.

    `calls` are calls that were stored earlier, by id. `live` says that the messages are sent as
    they come about: their digests leave the call out.
    """

    def __init__(
        self, count: Count, calls: Mapping[str, ToolCall] | None = None, *, live: bool = False
    ) -> None:
        self._count, self._live = count, live
        self._asked = {id: _Asked(id, None, call) for id, call in (calls or {}).items()}

    def messages(self, incoming: Iterable[records.Record]) -> dict[int, PreparedMessage]:
        """Prepared messages by the index of their record."""
        return {
            index: self.message(record)
            for index, record in enumerate(incoming)
            if isinstance(record, records.Message)
        }

    def message(self, record: records.Message) -> PreparedMessage:
        """The next message, prepared."""
        asked = [self._ask(block) for block in record.blocks]
        return PreparedMessage(record, self._count, asked, live=self._live)

    def _ask(self, block: wire.WireBlock) -> _Asked | None:
        form = wire.type_of(block)
        if form == "tool_use":
            made = _Asked(str(block.get("id") or ""), block)
            self._asked[made.id] = made
            return made
        if form == "tool_result":
            answered = str(block.get("tool_use_id") or "")
            return self._asked.get(answered) or _Asked(answered, None)
        return None


def answered_before(incoming: Iterable[records.Record]) -> list[str]:
    """Ids of tool calls that these records answer and do not make."""
    made: set[str] = set()
    found: dict[str, None] = {}
    for record in incoming:
        for block in record.blocks if isinstance(record, records.Message) else ():
            form = block.get("type")
            if form == "tool_use":
                made.add(str(block.get("id") or ""))
            elif form == "tool_result":
                answered = str(block.get("tool_use_id") or "")
                if answered not in made:
                    found[answered] = None
    return list(found)


def column(text: str, width: int) -> str:
    """A text as any column takes it: cut, and without NUL and lone surrogates."""
    cut = text[:width]
    return cut if cut.isprintable() else str(clean(cut))


def _stored_file(file: FileRef | None) -> FileRef | None:
    if file is None:
        return None
    ends = (file.start, file.end)
    start, end = (n if n is not None and 0 <= n <= LAST_LINE else None for n in ends)
    return FileRef(column(file.path, 600), file.action, start, end)
