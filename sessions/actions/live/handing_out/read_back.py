"""Read back: the original text of something removed from a context, by the reference in its
stub."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from compaction.context import wire
from compaction.context.excerpt import BadSelection, Excerpt, Selection, attempt, excerpt
from compaction.redaction.redact import redact
from compaction.render.content import media, sendable, text_part
from sessions.actions.memory import received, shares
from sessions.actions.web.apart import call_apart
from sessions.models import Block, Edit, Entry, Replacement, Run, Session
from sessions.models.masking.masking import rules_of
from sessions.models.record.values import block_id, contents

APART, SECONDS = 100_000, 10.0
"""Code points from which a text is searched in a process of its own, and how long it may take."""

LISTED = 500
"""Most originals listed for a summary."""

_BLOCK = re.compile(r"m([0-9]{1,9})\.([0-9]{1,9})(?:@([0-9a-f]{4,64}))?\Z")
_MESSAGE = re.compile(r"m?([0-9]{1,9})\Z")
_HASH = re.compile(r"[0-9a-f]{8,64}\Z")
_SHARE = re.compile(r"share:([0-9]{1,18})(?::(.{1,100}))?\Z")
_REPLACEMENT = re.compile(r"[a-z_-]{1,20}:[a-z0-9_.:-]{1,180}\Z")


class NothingThere(LookupError):
    """The reference names nothing in this session; the message is a sentence for the agent."""


@dataclass(frozen=True, slots=True)
class ReadBack:
    """A text that was read back: lines `first` to `last` of `total_lines`.

    If `rest` is set, the text is truncated: it ends with a line that says so, and `rest` holds the
    arguments for the next part. `images` are the images of the originals, unless lines were
    selected; `worded` says whether there is more to read than these.
    """

    ref: str
    text: str
    first: int
    last: int
    total_lines: int
    rest: dict[str, Any] | None = None
    images: tuple[wire.WireBlock, ...] = ()
    worded: bool = True

    @property
    def content(self) -> list[wire.WireBlock]:
        """The blocks of a tool result: the text, and images as images."""
        return [*([text_part(self.text)] if self.worded and self.text else []), *self.images]

    @property
    def truncated(self) -> bool:
        """Whether there is more."""
        return self.rest is not None


def read_back(session: Session, ref: str, selection: Selection) -> ReadBack:
    """Read all or part of what a reference names in this session.

    References: that of a stub ("m12.0@ab12cd34", with the hash checked), a block ("m12.0"), a
    message ("12"), the first 8 or more digits of a block's hash, the name of a replacement, which
    gives the original of a stub or the list of what a summary replaced, or a share that the session
    received ("share:12") or one of its results ("share:12:m3.0@ab12cd34"). Raises NothingThere,
    BadSelection, MissingBlob, DamagedBlob.
    """
    ref = ref.strip().removeprefix("ref ").strip()
    text, parts = original_of(session, ref)
    found = _excerpt(session, sendable(text), selection)
    answer = found.text
    if found.rest is not None:
        given = ", ".join(f"{name}={json.dumps(value)}" for name, value in found.rest.items())
        lines = f"lines {found.first}-{found.last} of {found.total}"
        answer += f"\n[truncated: {lines}; continue with {given}]"
    pictures = [part for part in parts if wire.type_of(part) == "image"]
    images = [made for part in pictures if (made := media(part)) is not None]
    if selection != Selection() or not images:
        return ReadBack(ref, answer, found.first, found.last, found.total, found.rest)
    worded = len(images) < len(parts)
    return ReadBack(
        ref, answer, found.first, found.last, found.total, found.rest, tuple(images), worded
    )


_Found = tuple[str, list[wire.WireBlock]]
"""The text of what a reference names, and the pieces of content in it."""


def original_of(session: Session, ref: str) -> _Found:
    """What a reference names, whole. Raises as `read_back`."""
    if found := _SHARE.match(ref):
        return _of_share(session, int(found[1]), found[2])
    if found := _BLOCK.match(ref):
        return _of_blocks(session, [_block(session, int(found[1]), int(found[2]), found[3] or "")])
    if found := _MESSAGE.match(ref):
        rows = session.blocks.filter(message__seq=int(found[1])).order_by("index")
        if blocks := list(rows.select_related("message")):
            return _of_blocks(session, blocks)
    if _HASH.match(ref):
        return _of_blocks(session, [_by_hash(session, ref)])
    return _of_replacement(session, ref)


def _of_share(session: Session, number: int, ref: str | None) -> _Found:
    """The text of a share that the session received, or of one of its results; secrets are
    masked."""
    row = received.received(session, number)
    if row is None:
        raise NothingThere(f"No share {number} was delivered to this session.")
    if ref is None:
        listed = [f"[{name}] {about}" for name, about in received.results(row)]
        parts = (shares.readable(row.summary), row.board, *listed)
        return "\n".join(part for part in parts if part), []
    found = _BLOCK.match(ref)
    known = {one["ref"].partition("@")[0] for one in row.refs}
    if found is None or f"m{found[1]}.{found[2]}" not in known:
        raise NothingThere(
            f"Share {number} has no result {sendable(ref)}. Copy the reference from the context."
        )
    theirs = row.session
    block = _block(theirs, int(found[1]), int(found[2]), found[3] or "")
    text, pieces = _of_blocks(theirs, [block])
    return redact(text, rules_of(session.team_id)).text, pieces


def _block(session: Session, seq: int, index: int, check: str) -> Block:
    rows = session.blocks.select_related("message")
    block = rows.filter(message__seq=seq, index=index).first()
    if block is None:
        raise NothingThere(
            f"This session has no block {block_id(seq, index)}. Copy the reference "
            "from the context."
        )
    if not block.sha.startswith(check):
        raise NothingThere(
            f"The reference does not match block {block_id(seq, index)}: its hash begins "
            f"with {block.sha[:8]}, not {check}. Copy the reference exactly."
        )
    return block


def _by_hash(session: Session, head: str) -> Block:
    rows = session.blocks.select_related("message")
    found = rows.filter(sha__startswith=head).order_by("sha", "position")[:2]
    if not found:
        raise NothingThere(
            f"This session has no block with a hash that begins with {head}. Copy "
            "the reference exactly."
        )
    if len({block.sha for block in found}) > 1:
        raise NothingThere(f"Several blocks have a hash that begins with {head}. Use more digits.")
    return found[0]


def _of_blocks(session: Session, blocks: list[Block]) -> _Found:
    """The text of blocks; several are each preceded by a line with their name."""
    data = contents(session, [block.sha for block in blocks])
    wires = [wire.decode(data[block.sha]) for block in blocks]
    texts = [readable(one) for one in wires]
    parts = [part for one in wires for part in pieces(one)]
    for place, block in enumerate(blocks):
        if block.kind == "summary" and (edit := Edit.objects.filter(summary=block).first()):
            texts[place] += f"\n\n{_replaced(session, [edit])}"
    if len(blocks) == 1:
        return texts[0], parts
    pairs = zip(blocks, texts, strict=True)
    return "\n\n".join(f"[{_named(block)}]\n{text}" for block, text in pairs), parts


def pieces(block: wire.WireBlock) -> list[wire.WireBlock]:
    """A block, or the parts of a result; the text of a result is their lines."""
    content = block.get("content")
    if wire.type_of(block) != "tool_result" or not isinstance(content, list):
        return [block]
    return [part if isinstance(part, dict) else text_part(str(part)) for part in content]


def readable(block: wire.WireBlock) -> str:
    """The text of an original; a tool call is shown argument by argument, with long texts as lines.

    A call's input is one line of JSON, which could not be read in parts.
    """
    given = block.get("input")
    if wire.type_of(block) != "tool_use" or not isinstance(given, dict):
        return wire.text_of(block)
    return "\n".join(_argument(name, value) for name, value in given.items())


def _argument(name: str, value: Any) -> str:
    if isinstance(value, str):
        return f"{name}:\n{value}" if "\n" in value else f"{name}: {value}"
    indent = 1 if isinstance(value, (dict, list)) and value else None
    return f"{name}: {json.dumps(value, ensure_ascii=False, indent=indent)}"


def _named(block: Block) -> str:
    about = f"{block.type} {block.tool}".strip()
    return f"{block_id(block.message.seq, block.index)}@{block.sha[:8]} {about}"


def _of_replacement(session: Session, name: str) -> _Found:
    # Other names are not looked up: input from outside may be invalid text for the database.
    known = name if _REPLACEMENT.match(name) else None
    named = Replacement.objects.filter(run__session=session, name=known)
    # Simulated runs use the same names: prefer the managed one.
    managed = named.filter(run__origin=Run.Origin.MANAGED)
    found = managed.last() or named.last()
    if found is None:
        raise NothingThere(
            f"This session has no content {sendable(name[:100])}. Copy the "
            "reference from the context."
        )
    edits = list(Edit.objects.filter(replacement=found))
    if found.kind == "summary":
        return _replaced(session, edits), []
    return _of_blocks(session, _originals(session, edits))


def _replaced(session: Session, edits: list[Edit]) -> str:
    """One line for each original replaced by a summary, with its reference."""
    blocks = _originals(session, edits)
    head = f"[This summary replaced {len(blocks)} blocks. Read any of them by its reference.]"
    lines = [f"{_named(block)}: {block.preview}" for block in blocks[:LISTED]]
    if len(blocks) > LISTED:
        lines.append(f"[{len(blocks) - LISTED} more, up to {_named(blocks[-1])}]")
    return "\n".join([head, *lines])


def _originals(session: Session, edits: list[Edit]) -> list[Block]:
    """The originals replaced by these edits, including through earlier replacements."""
    places: set[int] = set()
    seen: set[int] = set()
    while edits:
        seen.update(edit.pk for edit in edits)
        closed = Entry.objects.filter(closed_by__in=edits)
        places.update(closed.filter(block__isnull=False).values_list("position", flat=True))
        earlier = closed.filter(replacement__isnull=False).values("replacement")
        edits = list(Edit.objects.filter(replacement__in=earlier).exclude(pk__in=seen))
    rows = session.blocks.filter(position__in=places) if len(places) < LISTED else session.blocks
    listed = rows.select_related("message").order_by("position")
    return [block for block in listed if block.position in places]


def _excerpt(session: Session, text: str, selection: Selection) -> Excerpt:
    """The selected part of a text; a pattern is looked for line by line, which takes its time."""
    if selection.grep is None or len(text) < APART:
        return excerpt(text, selection)
    found = call_apart(session.team_id, SECONDS, attempt, text, selection)
    if isinstance(found, str):
        raise BadSelection(found)
    return found
