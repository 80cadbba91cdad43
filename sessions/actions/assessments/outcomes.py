"""Outcomes: drift from the task, schema violations, tool habits, and unused definitions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from compaction.context.blocks import Block
from compaction.seen.todo import is_shown_by
from compaction.tools.drift import Drift
from compaction.tools.habits import habits_of
from compaction.tools.schema_check import faults, schemas_of
from sessions.models import Session
from sessions.models.record.values import StoredBlock, blocks_of, summary_messages
from sessions.models.tools.definitions import definition_use, definitions
from sessions.models.tools.tool_use import steps_of
from sessions.models.tools.tooling import tooling


def outcomes(session: Session) -> dict[str, Any]:
    """Fields of an assessment; null if unknown. Linear in the session."""
    left_out = summary_messages(session)
    drift, schemas = Drift(), _Schemas()
    for block in blocks_of(session, with_text=_is_judged):
        if block.message not in left_out:
            drift.add(block)
            schemas.add(block)
    drift.close()
    steps = steps_of(session)
    return {
        "judged_steps": drift.judged or None,
        "adrift_steps": drift.adrift if drift.judged else None,
        "checked_calls": schemas.checked or None,
        "schema_violations": schemas.broken if schemas.checked else None,
        "tools": _habits(steps),
        **_definitions(session, {tool for step in steps for tool in step}),
    }


def _is_judged(row: StoredBlock) -> bool:
    """Whether a text says something of the outcome: of results, which are most of a session, only
    those that show the to-do list."""
    if row.type == "tool_result":
        return is_shown_by(row.tool, row.file_path)
    return row.type in ("text", "tool_use", "tools")


def _habits(steps: Iterable[list[str]]) -> dict[str, Any]:
    made = habits_of(steps)
    return made.stored() if made.uses else {}


def _definitions(session: Session, used: set[str]) -> dict[str, Any]:
    found = definitions(session)
    if not found.lists:
        return {"definitions": {}, "unused_tokens": None}
    use = definition_use(session, found, used, tooling(session))
    sent = [row for row in use.costs.rows if row.calls]
    known = use.costs.priced
    kept = {
        "tools": {row.tool: (row.tokens, row.microusd if known else None) for row in sent},
        "used": [row.tool for row in sent if row.tool in used],
        "basis": use.costs.basis,
    }
    return {"definitions": kept, "unused_tokens": use.unused_tokens}


class _Schemas:
    """Checks calls against the preceding definitions."""

    def __init__(self) -> None:
        self.known: dict[str, Mapping[str, Any]] = {}
        self.checked = self.broken = 0

    def add(self, block: Block) -> None:
        if block.type == "tools":
            self.known = schemas_of(_read(block.text))
        elif block.type == "tool_use" and block.tool in self.known:
            self.checked += 1
            self.broken += bool(faults(self.known[block.tool], _read(block.text)))


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
