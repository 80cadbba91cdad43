"""One entry in detail: its content, and every version at its place in the context."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.db.models import Q

from compaction.context import wire
from sessions.api.replay.entry_costs import StepCosts
from sessions.models import Block, Edit, Entry, Replacement, Revision, Run, Session
from sessions.models.record import manifest as manifests
from sessions.models.record.values import contents
from sessions.models.web.shown import is_masked

SHOWN_CHARS = 256 * 1024
"""Code points of content sent to a page at once."""

VERSIONS_SHOWN = 20

Row = Block | Replacement


def describe(session: Session, run: Run, standing: manifests.ManifestEntry) -> dict[str, Any]:
    """An entry as shown in the detail pane. Raises MissingBlob, DamagedBlob."""
    outline = Outlines(session, run).outline(standing)
    shas = [outline["sha"], *(version["sha"] for version in outline["versions"])]
    data = contents(session, shas)
    for version in outline["versions"]:
        version["text"] = shown_text(wire.decode(data[version["sha"]]))
    masked = {"masked": is_masked(shas)}
    return outline | content_of(wire.decode(data[outline["sha"]])) | masked


def content_of(block: wire.WireBlock) -> dict[str, Any]:
    """The content of an entry."""
    return {
        "text": shown_text(block),
        "truncated": len(wire.text_of(block)) > SHOWN_CHARS,
        "json": printable(json.dumps(block, ensure_ascii=False, indent=2)[:SHOWN_CHARS]),
        "media": wire.media_count(block),
        "masked": False,
    }


def shown_text(block: wire.WireBlock) -> str:
    """The beginning of a block's text."""
    return printable(wire.text_of(block)[:SHOWN_CHARS])


def printable(text: str) -> str:
    """The text without lone surrogates, which cannot be encoded."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Outlines:
    """Outlines of entries of one run: all of `describe` but the contents, which `sha` names. What
    several entries need is read once."""

    def __init__(self, session: Session, run: Run) -> None:
        self._session, self._run = session, run
        self._costs = StepCosts(session, run)
        self._intervals: dict[tuple[type, int], list[Entry]] = {}

    def read(self, rows: Iterable[Row]) -> None:
        """Read what the outlines of these rows need, in one query."""
        wanted: dict[tuple[type, int], list[Entry]] = {(type(row), row.pk): [] for row in rows}
        blocks = [pk for model, pk in wanted if model is Block]
        replacements = [pk for model, pk in wanted if model is Replacement]
        of_rows = Q(block__in=blocks) | Q(replacement__in=replacements)
        found = Entry.objects.filter(of_rows, run=self._run).select_related(
            "closed_by__revision", "closed_by__replacement", "closed_by__summary__message"
        )
        for one in found.order_by("pk"):
            key = (Replacement, one.replacement_id) if one.replacement_id else (Block, one.block_id)
            wanted[key].append(one)  # type: ignore[index]
        self._intervals |= wanted

    def _of(self, row: Row) -> list[Entry]:
        key = type(row), row.pk
        if key not in self._intervals:
            self.read([row])
        return self._intervals[key]

    def outline(self, standing: manifests.ManifestEntry) -> dict[str, Any]:
        """The outline of an entry."""
        row = standing.block or standing.replacement
        assert row is not None
        session = self._session
        return {
            "role": row.message.role if isinstance(row, Block) else row.role,
            "kind": row.kind,
            "type": row.type,
            "tool": row.tool,
            "tokens": session.scaled(row.tokens),
            "counts": {
                "basis": session.token_basis,
                "o200k": row.tokens,
                "ratio": session.token_ratio,
            },
            "chars": row.chars,
            "sha": row.sha,
            "versions": self._versions(standing),
            "in_context": self._cost_in_context(row),
            **_origin(row),
        }

    def _latest(self, row: Row) -> tuple[int | None, int | None]:
        """The first step of a row in the context and the step it left it, the last time."""
        entry = max(self._of(row), key=lambda one: one.from_step, default=None)
        if entry is not None:
            return entry.from_step, entry.to_step
        return (row.born if isinstance(row, Block) else None), None

    def _cost_in_context(self, row: Row) -> dict[str, Any]:
        start, end = self._latest(row)
        tokens = self._session.scaled(row.tokens)
        return self._costs.in_context(tokens, 1 if start is None else start, end)

    def _versions(self, standing: manifests.ManifestEntry) -> list[dict[str, Any]]:
        """The original and the replacements that followed it at this entry's place."""
        block = standing.block
        if block is None and standing.replacement is not None:
            block = _first_target(standing.replacement)
        if block is None:
            return []
        chain: list[tuple[Row, Edit | None]] = [(block, None)]
        seen: set[int] = set()
        while len(chain) < VERSIONS_SHOWN:
            edit = self._closing_edit(chain[-1][0])
            if edit is None or edit.pk in seen:
                break
            seen.add(edit.pk)
            following = edit.replacement or edit.summary
            if following is None:
                break
            chain.append((following, edit))
        return [self._version(row, edit) for row, edit in chain]

    def _closing_edit(self, row: Row) -> Edit | None:
        closed = [one for one in self._of(row) if one.closed_by is not None]
        return max(closed, key=lambda one: one.to_step or 0).closed_by if closed else None

    def _version(self, row: Row, edit: Edit | None) -> dict[str, Any]:
        revision: Revision | None = edit.revision if edit else None
        start, end = self._latest(row)
        noun = "original" if edit is None else ("summary" if row.kind == "summary" else "stub")
        return {
            "label": noun if revision is None else f"{noun} r{revision.number}",
            "origin": self._run.origin,
            "revision": revision.number if revision else None,
            "from": start or 0,
            "to": end,
            "standing": end is None,
            "tokens": self._session.scaled(row.tokens),
            "reason": (edit.reason or (revision.reason if revision else "")) if edit else "",
            "strategy": edit.strategy if edit else None,
            "policy": str(self._run.policy_version) if edit and self._run.policy_version else None,
            "sha": row.sha,
        }


def _origin(row: Row) -> dict[str, Any]:
    if isinstance(row, Replacement):
        return {"message": None, "index": None, "at": None, "step": None, "file": None}
    return {
        "message": row.message.seq,
        "index": row.index,
        "at": row.message.at,
        "step": row.born,
        "error": row.error,
        "estimated": row.estimated,
        "file": {
            "path": row.file_path,
            "start": row.file_start,
            "end": row.file_end,
            "action": row.file_action,
        }
        if row.file_path
        else None,
    }


def _first_target(replacement: Replacement) -> Block | None:
    edit = replacement.edits.first()
    while edit is not None:
        entry = edit.closed.order_by("position").select_related("block__message").first()
        if entry is None:
            return None
        if entry.block is not None:
            return entry.block
        edit = entry.replacement.edits.first() if entry.replacement else None
    return None
