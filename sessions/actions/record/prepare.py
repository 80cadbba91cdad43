"""Preparation of rows: hashing, counting and naming, outside any transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from compaction.context import wire
from compaction.context.blocks import FileRef, Kind
from compaction.seen import calls
from compaction.tokens import Counted
from sessions.importers import records
from sessions.importers.decoded import clean
from sessions.models.record.blobs import stored_form

MEDIA_TOKENS = 1200
"""Assumed tokens of an image or document; pi's published figure, marked as estimated."""

LAST_LINE = 2**31 - 1
"""Larger line numbers fit no column and are dropped."""

Count = Callable[[str], Counted]
"""Counts the o200k tokens of a text; also whether any were estimated."""


@dataclass(slots=True)
class PreparedBlock:
    """A block with everything derived from its content, so that rows can be written quickly.

    `data` are its bytes in the blob, compressed if `packed`; `size` is the size before. Texts fit
    their columns.
    """

    data: bytes
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
    """A tool call, as needed for its results; `label` describes it in one line."""

    tool: str
    label: str
    file: FileRef | None


NO_CALL = ToolCall("", "", None)


class Masking(Protocol):
    """Masks what comes in before it is stored."""

    def stored(self, record: records.Message) -> tuple[records.Message, dict[str, int]]:
        """The message as it is stored now, and the number masked by rule."""

    def before(self, record: records.Message) -> Iterable[records.Message]:
        """The message as it may be stored since earlier."""


def _bare(block: records.Json, data: bytes) -> bytes:
    """Encode a block without what may differ between sends."""
    said = sorted(k for k, v in block.items() if v is not None and k != "cache_control")
    given = block.get("input")
    if isinstance(given, dict):
        # Claude Code sends a call's input back in the order of the tool's schema.
        return wire.encode({name: block[name] for name in said} | {"input": _ordered(given)})
    return data if said == list(block) else wire.encode({name: block[name] for name in said})


def _ordered(value: Any) -> Any:
    """A value with the fields of all its objects sorted."""
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value)}
    return [_ordered(one) for one in value] if isinstance(value, list) else value


class PreparedMessage:
    """A message as the store sees it; `digest` identifies it within the session.

    Blocks are counted and compressed once, on first access, because known messages do not need it.
    `masked` is the number of places by rule, of `masks`.
    """

    __slots__ = (
        *("_asked", "_blocks", "_count", "_encoded", "_former", "_live", "_sent"),
        *("digest", "masked", "masks", "record"),
    )

    def __init__(
        self,
        record: records.Message,
        count: Count,
        asked: list[_Asked | None],
        *,
        live: bool,
        masks: Masking | None = None,
        sent: records.Message | None = None,
        masked: Mapping[str, int] | None = None,
    ) -> None:
        self.record, self.masks, self.masked = record, masks, masked or {}
        self._count, self._asked, self._live, self._sent = count, asked, live, sent or record
        self._encoded = [wire.encode(block) for block in record.blocks]
        self._blocks: list[PreparedBlock] | None = None
        self._former: frozenset[str] | None = None
        self.digest = _digest(record, self._encoded, live=live)

    def has_digest(self, digest: str) -> bool:
        """Whether the message is stored with this digest: now, or before rules of masking
        changed."""
        if digest == self.digest or self.masks is None:
            return digest == self.digest
        if self._former is None:
            self._former = frozenset(
                _digest(one, [wire.encode(block) for block in one.blocks], live=self._live)
                for one in self.before()
            )
        return digest in self._former

    def before(self) -> Iterable[records.Message]:
        """The message as it may be stored since before rules of masking changed."""
        return () if self.masks is None else self.masks.before(self._sent)

    @property
    def orphans(self) -> list[str]:
        """Tool call ids answered by its results that belong to no known call."""
        results = zip(self.record.blocks, self._asked, strict=True)
        return [
            asked.id
            for block, asked in results
            if asked is not None and block.get("type") == "tool_result" and asked.call is NO_CALL
        ]

    @property
    def blocks(self) -> list[PreparedBlock]:
        """The prepared blocks."""
        return self.prepare()

    def prepare(self) -> list[PreparedBlock]:
        """Prepare the blocks now, outside any transaction."""
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
        stored, packed = stored_form(data)
        return PreparedBlock(
            data=stored,
            packed=packed,
            size=len(data),
            sha=hashlib.sha256(data).hexdigest(),
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


def _digest(record: records.Message, encoded: list[bytes], *, live: bool) -> str:
    """The digest of a message. That of a `live` one ignores differences between sends: call ids,
    cache_control, nulls and field order vary with the sender's library."""
    call = "" if live else record.call or ""
    digest = hashlib.sha256(f"{record.role}\n{call}\n".encode())
    for block, data in zip(record.blocks, encoded, strict=True):
        digest.update(hashlib.sha256(_bare(block, data) if live else data).hexdigest().encode())
    return digest.hexdigest()


class _Asked:
    """A tool call made or answered by a block; parsed on demand."""

    __slots__ = ("_block", "_call", "id")

    def __init__(self, id: str, block: wire.WireBlock | None, call: ToolCall = NO_CALL) -> None:
        self.id, self._block, self._call = id, block, call

    @property
    def call(self) -> ToolCall:
        """The call's description."""
        if self._block is not None:
            tool, given = str(self._block.get("name") or ""), self._block.get("input")
            file = calls.file_of(tool, given) if isinstance(given, dict) else None
            self._call = ToolCall(tool, wire.preview(self._block), _stored_file(file))
            self._block = None
        return self._call


class Preparation:
    """Prepares the messages of a session in order; results refer to earlier calls.

    `calls` are stored calls by id. `live` means that digests exclude the call. With `masks`,
    messages are masked first.
    """

    def __init__(
        self,
        count: Count,
        calls: Mapping[str, ToolCall] | None = None,
        *,
        live: bool = False,
        masks: Masking | None = None,
    ) -> None:
        self._count, self._live, self._masks = count, live, masks
        self._asked = {id: _Asked(id, None, call) for id, call in (calls or {}).items()}

    def messages(self, incoming: Iterable[records.Record]) -> dict[int, PreparedMessage]:
        """Prepared messages by the index of their record."""
        return {
            index: self.message(record)
            for index, record in enumerate(incoming)
            if isinstance(record, records.Message)
        }

    def message(self, record: records.Message) -> PreparedMessage:
        """Prepare the next message."""
        stored, masked = (record, {}) if self._masks is None else self._masks.stored(record)
        asked = [self._ask(block) for block in stored.blocks]
        return PreparedMessage(
            stored,
            self._count,
            asked,
            live=self._live,
            masks=self._masks,
            sent=record,
            masked=masked,
        )

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
    """Ids of tool calls that these records answer but do not contain."""
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
    """Truncate a text for a column, and replace NUL and lone surrogates."""
    cut = text[:width]
    return cut if cut.isprintable() else str(clean(cut))


def _stored_file(file: FileRef | None) -> FileRef | None:
    if file is None:
        return None
    ends = (file.start, file.end)
    start, end = (n if n is not None and 0 <= n <= LAST_LINE else None for n in ends)
    return FileRef(column(file.path, 600), file.action, start, end)
