"""The rules that mask a team's content at one time, and what masks by them."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any
from uuid import UUID

from django.conf import settings

from compaction.context.wire import WireBlock, encode
from compaction.redaction.redact import Masker
from compaction.redaction.team_rules import TeamRule
from compaction.redaction.together import Masks, masked_in_order
from compaction.redaction.values import masked_block, masked_value
from sessions.importers import records

REMEMBERED = 50_000
"""Blocks that a process knows to have nothing to mask: histories are sent again."""

_clean: OrderedDict[bytes, None] = OrderedDict()
_lock = Lock()


class RuleSet:
    """The rules by which content was masked at a time; `rules` is None where it was not."""

    def __init__(self, team: UUID, rules: Sequence[TeamRule] | None) -> None:
        self.rules = rules
        self._key = mask_key(team)
        self._seal = hashlib.sha256(self._key + repr(rules).encode()).digest()

    def masked(self, record: records.Message, counts: dict[str, int]) -> records.Message:
        """The message as it is stored; adds to the counts by rule."""
        if self.rules is None:
            return record
        masker = self.masker()
        masker.masked = counts
        blocks = [self.block(masker, block) for block in record.blocks]
        extra = masked_value(masker, record.extra) if record.extra else record.extra
        if extra == record.extra and all(map(_is, blocks, record.blocks)):
            return record
        return replace(record, blocks=blocks, extra=extra)

    def block(self, masker: Masker, block: WireBlock) -> WireBlock:
        """A block with masks; the same object if it has none."""
        digest = hashlib.sha256(self._seal + encode(block)).digest()
        with _lock:
            if digest in _clean:
                _clean.move_to_end(digest)
                return block
        masked = masked_block(masker, block)
        if masked != block:
            return masked
        with _lock:
            _clean[digest] = None
            while len(_clean) > REMEMBERED:
                _clean.popitem(last=False)
        return block

    def value(self, value: Any) -> Any:
        """A JSON value with masks, such as a title or metadata."""
        return value if self.rules is None else masked_value(self.masker(), value)

    def raw(self, data: bytes) -> bytes:
        """Bytes of any kind with masks."""
        if self.rules is None:
            return data
        return (
            self.masker()
            .mask(data.decode("utf-8", "surrogateescape"))
            .encode("utf-8", "surrogateescape")
        )

    @property
    def seal(self) -> str:
        """Names the rules and the key."""
        return self._seal.hex()[:16]

    def contents(self, found: Mapping[str, bytes]) -> dict[str, bytes]:
        """Stored bytes by hash, with masks; those without any are the same objects."""
        made = dict(found)
        keys = {sha: self._seal + bytes.fromhex(sha) for sha in found}
        with _lock:
            unknown = [sha for sha, key in keys.items() if key not in _clean]
        blocks: dict[str, Any] = {}
        for sha in unknown:
            try:
                blocks[sha] = json.loads(found[sha].decode("utf-8", "surrogatepass"))
            except ValueError:
                made[sha] = self.raw(found[sha])
        masked = masked_in_order(self.masker(), blocks.values(), _masked)
        for (sha, block), seen in zip(blocks.items(), masked, strict=True):
            if seen != block:
                made[sha] = encode(seen)
        with _lock:
            _clean.update({keys[sha]: None for sha in unknown if made[sha] is found[sha]})
            while len(_clean) > REMEMBERED:
                _clean.popitem(last=False)
        return made

    def masker(self) -> Masker:
        """What masks by these rules."""
        return Masker(self.rules or (), self._key)


def _masked(masker: Masks, value: Any) -> Any:
    return masked_block(masker, value) if isinstance(value, dict) else masked_value(masker, value)


def _is(one: object, other: object) -> bool:
    return one is other


def mask_key(team: UUID) -> bytes:
    """The key of a team's masks: the same on every server with the same secret key."""
    return hashlib.sha256(f"masks {team} {settings.SECRET_KEY}".encode()).digest()
