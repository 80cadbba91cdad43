"""What stands in a Codex context, so that a compaction's new history can be told from the old."""

from __future__ import annotations

import hashlib
import json

from sessions.importers.codex_items import Item, item_of
from sessions.importers.records import Json
from sessions.importers.wire import blocks_of, mapping, text_block

_ALWAYS = frozenset({"tools", "base-instructions"})
"""Keys that are sent beside the history and outlive every compaction."""


class History:
    """Standing items by key, in order, each with a hash of what the model reads of it."""

    def __init__(self) -> None:
        self.standing: dict[str, str] = {}
        self._kinds: dict[str, str | None] = {}

    def add(self, key: str, item: Item) -> None:
        """Let an item stand as the latest."""
        self.standing[key] = _hash(item)
        self._kinds[key] = "prompt" if item.role == "user" else item.kind

    def replace(self, replacement: list[Json]) -> tuple[tuple[str, ...], list[Item]]:
        """Take over a new history: the keys of those standing that stay, and the items not known.

        Equal items are matched once each, the latest first.
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
        """Take over what old versions did without saying: prompts stay, then their summary."""
        kept = {key for key, kind in self._kinds.items() if kind in {"prompt", "system"}}
        item = Item("user", [text_block(summary)], kind="summary")
        return self._keep(kept | _ALWAYS), [item] if summary else []

    def cut(self, length: int) -> tuple[str, ...]:
        """Let fall, and give back, all but the first items."""
        dropped = list(self.standing)[length:]
        for key in dropped:
            del self.standing[key]
        return tuple(dropped)

    def _keep(self, kept: set[str]) -> tuple[str, ...]:
        self.standing = {key: sha for key, sha in self.standing.items() if key in kept}
        self._kinds = {key: kind for key, kind in self._kinds.items() if key in self.standing}
        return tuple(self.standing)


def _hash(item: Item) -> str:
    # Only what the model reads counts: the same entry comes back with other bookkeeping fields.
    # Summaries are encrypted: two are the same only by their id.
    read = [
        block.get("text") if block.get("type") == "text" else _plain(block, item.kind == "summary")
        for block in item.blocks
    ]
    text = json.dumps([item.role, read], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(block: dict[str, Json], with_id: bool) -> Json:
    beside = {"internal_chat_message_metadata_passthrough"} | (set() if with_id else {"id"})
    return {name: value for name, value in block.items() if name not in beside}
