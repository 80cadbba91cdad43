"""One entry in detail: its content, and every version at its place in the context."""

from __future__ import annotations

import json
from typing import Any

from compaction.context import wire
from sessions.api.replay.entry_costs import cost_in_context
from sessions.models import Block, Edit, Replacement, Revision, Run, Session
from sessions.models.record import manifest as manifests
from sessions.models.record.values import contents

SHOWN_CHARS = 256 * 1024
"""Code points of content sent to a page at once."""

VERSIONS_SHOWN = 20


def describe(session: Session, run: Run, standing: manifests.ManifestEntry) -> dict[str, Any]:
    """An entry as shown in the detail pane. Raises MissingBlob, DamagedBlob."""
    row = standing.block or standing.replacement
    assert row is not None
    wire_block = wire.decode(contents(session, [row.sha])[row.sha])
    text = wire.text_of(wire_block)
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
        "text": printable(text[:SHOWN_CHARS]),
        "truncated": len(text) > SHOWN_CHARS,
        "json": printable(json.dumps(wire_block, ensure_ascii=False, indent=2)[:SHOWN_CHARS]),
        "media": wire.media_count(wire_block),
        "versions": _versions(session, run, standing),
        "in_context": _cost_in_context(session, run, row),
        **_origin(row),
    }


def _cost_in_context(session: Session, run: Run, row: Block | Replacement) -> dict[str, Any]:
    entry = row.entries.filter(run=run).order_by("-from_step").first()
    start = entry.from_step if entry else (row.born if isinstance(row, Block) else 1)
    end = entry.to_step if entry else None
    return cost_in_context(session, run, session.scaled(row.tokens), start, end)


def printable(text: str) -> str:
    """The text without lone surrogates, which cannot be encoded."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _origin(row: Block | Replacement) -> dict[str, Any]:
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


def _versions(
    session: Session, run: Run, standing: manifests.ManifestEntry
) -> list[dict[str, Any]]:
    """The original and the replacements that followed it at this entry's place."""
    block = standing.block
    if block is None and standing.replacement is not None:
        block = _first_target(standing.replacement)
    if block is None:
        return []
    chain: list[tuple[Block | Replacement, Edit | None]] = [(block, None)]
    seen: set[int] = set()
    while len(chain) < VERSIONS_SHOWN:
        edit = _closing_edit(run, chain[-1][0])
        if edit is None or edit.pk in seen:
            break
        seen.add(edit.pk)
        following = edit.replacement or edit.summary
        if following is None:
            break
        chain.append((following, edit))
    data = contents(session, [row.sha for row, _ in chain])
    return [_version(session, run, row, edit, data[row.sha]) for row, edit in chain]


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


def _closing_edit(run: Run, row: Block | Replacement) -> Edit | None:
    entry = (
        row.entries.filter(run=run, closed_by__isnull=False)
        .select_related("closed_by__replacement", "closed_by__summary__message")
        .order_by("-to_step")
        .first()
    )
    return entry.closed_by if entry else None


def _version(
    session: Session, run: Run, row: Block | Replacement, edit: Edit | None, data: bytes
) -> dict[str, Any]:
    entry = row.entries.filter(run=run).order_by("-from_step").first()
    revision: Revision | None = edit.revision if edit else None
    started = entry.from_step if entry else (row.born if isinstance(row, Block) else 0)
    text = wire.text_of(wire.decode(data))
    noun = "original" if edit is None else ("summary" if row.kind == "summary" else "stub")
    return {
        "label": noun if revision is None else f"{noun} r{revision.number}",
        "origin": run.origin,
        "revision": revision.number if revision else None,
        "from": started,
        "to": entry.to_step if entry else None,
        "standing": entry is None or entry.to_step is None,
        "tokens": session.scaled(row.tokens),
        "reason": (edit.reason or (revision.reason if revision else "")) if edit else "",
        "strategy": edit.strategy if edit else None,
        "policy": str(run.policy_version) if edit and run.policy_version else None,
        "sha": row.sha,
        "text": printable(text[:SHOWN_CHARS]),
    }
