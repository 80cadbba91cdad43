"""The context of a Codex session, used to compare a compaction's new history with the old one."""

from __future__ import annotations

import hashlib
import json

from sessions.importers.codex.items import Item, item_of
from sessions.importers.records import Json
from sessions.importers.wire import blocks_of, mapping, text_block

_ALWAYS = frozenset({"tools", "base-instructions"})
"""Keys that are sent outside the history and survive every compaction."""


class History:
    """Items in context by key, in order, each with a hash of what the model reads."""

    def __init__(self) -> None:
        self.standing: dict[str, str] = {}
        self._kinds: dict[str, str | None] = {}

    def add(self, key: str, item: Item) -> None:
        """Append an item to the context."""
        self.standing[key] = _hash(item)
        self._kinds[key] = "prompt" if item.role == "user" else item.kind

    def replace(self, replacement: list[Json]) -> tuple[tuple[str, ...], list[Item]]:
        """Apply a new history; return the keys that stay and the items that are new.

        Equal items are matched once each, latest first.
        """
        keys: dict[str, list[str]] = {}
        for key, digest in self.standing.items():
            keys.setdefault(digest, []).append(key)
        kept: set[str] = set(_ALWAYS)
        new: list[Item] = []
        for given in replacement:
            item = item_of(mapping(given)) or Item("user", blocks_of([given]))
            known = keys.get(_hash(item))
            if known:
                kept.add(known.pop())
            else:
                new.append(item)
        return self._keep(kept), new

    def summarize(self, summary: str) -> tuple[tuple[str, ...], list[Item]]:
        """Apply the implicit compaction of old versions: prompts stay, followed by their
        summary."""
        kept = {key for key, kind in self._kinds.items() if kind in {"prompt", "system"}}
        item = Item("user", [text_block(summary)], kind="summary")
        return self._keep(kept | _ALWAYS), [item] if summary else []

    def cut(self, length: int) -> tuple[str, ...]:
        """Remove and return all but the first items."""
        dropped = list(self.standing)[length:]
        for key in dropped:
            del self.standing[key]
        return tuple(dropped)

    def _keep(self, kept: set[str]) -> tuple[str, ...]:
        self.standing = {key: sha for key, sha in self.standing.items() if key in kept}
        self._kinds = {key: kind for key, kind in self._kinds.items() if key in self.standing}
        return tuple(self.standing)


def _hash(item: Item) -> str:
    # Hash only what the model reads, because items return with different bookkeeping fields.
    # Summaries are encrypted and can only be compared by id.
    read = [
        block.get("text") if block.get("type") == "text" else _plain(block, item.kind == "summary")
        for block in item.blocks
    ]
    text = json.dumps([item.role, read], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(block: dict[str, Json], with_id: bool) -> Json:
    beside = {"internal_chat_message_metadata_passthrough"} | (set() if with_id else {"id"})
    return {name: value for name, value in block.items() if name not in beside}
