"""Export: a session with its sub-agents as JSON lines, with secrets masked by default."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from django.db.models import QuerySet

from compaction.context.wire import ABOUT_CHARS
from compaction.redaction.redact import Masker
from compaction.redaction.together import Masks, masked_in_order
from compaction.redaction.values import masked_block, masked_value
from sessions.actions.imports.exported import BY_NAME, TABLES, Line, Table, own, value_of
from sessions.actions.masking.incoming import RuleSet
from sessions.importers.exported import VERSION
from sessions.models import PolicyVersion, Review, Revision, Run, Session
from sessions.models.record.values import contents

AT_ONCE = 200
"""Rows whose contents are in memory at the same time."""

CUT = ("preview", "title", "reason")
"""Columns with the beginning of a longer text: half a secret at its end is not recognized."""
FORM = frozenset(
    {
        *(
            "type",
            "kind",
            "role",
            "origin",
            "digest",
            "sha",
            "call",
            "tool_call",
            "tool",
            "key",
            "id",
        ),
        *(
            "strategy",
            "trigger",
            "token_basis",
            "source",
            "external_id",
            "parent_external_id",
            "model",
        ),
        *("parent_call", "format", "policy_from", "outcome", "context", "file_action", "verdict"),
        *("stop_reason", "iterations", "usage_raw", "overrides", "fold", "document", "habits"),
        *("scores", "summarizer", "settings", "client", "response"),
    }
)
"""Columns that programs read: the team's rules leave them."""
_CUT_WORD = re.compile(r"""(?<![^\s"'`\\])[^\s"'`\\]*…[^\s"'`\\/]*""")


def export(
    session: Session,
    masker: Masker | None,
    *,
    pending_reviews: bool = True,
    sub_agents: bool = True,
) -> Iterator[Line]:
    """Return a line for the file, for each policy that the sessions refer to, and for each row of
    the session and of its sub-agents (`exported.TABLES`).

    `import` makes the same session of it. With a masker every string is masked; its `masked`
    counts the findings. `pending_reviews`: also of compactions that others still review. Raises
    MissingBlob, DamagedBlob.
    """
    family = list(_family(session)) if sub_agents else [session]
    lines = _lines(family, sealed=masker is None, pending_reviews=pending_reviews)
    return lines if masker is None else masked_in_order(masker, lines, masked_line)


def _lines(family: list[Session], *, sealed: bool, pending_reviews: bool) -> Iterator[Line]:
    yield {"is": "export", "version": VERSION, "masked": not sealed}
    numbers: dict[tuple[type, Any], int] = {}
    for number, version in enumerate(_policies(family), 1):
        numbers[PolicyVersion, version.pk] = number
        yield {"is": "policy", "id": number, "name": version.policy.name,
               "note": version.note, "document": version.document}  # fmt: skip
    for number, one in enumerate(family, 1):
        numbers[Session, one.pk] = number
        for table in TABLES:
            rows = own(table, one)
            if table.model is Review and not pending_reviews:
                rows = rows.filter(item__finished__isnull=False)
            yield from _rows(table, one, rows, numbers, sealed=sealed)


def _family(session: Session) -> Iterator[Session]:
    yield session
    for child in session.children.order_by("created", "external_id"):
        yield from _family(child)


def _policies(family: list[Session]) -> list[PolicyVersion]:
    """The versions of policies that rows of the sessions refer to."""
    found = {one.policy_version_id for one in family}
    runs = Run.objects.filter(session__in=family).exclude(origin=Run.Origin.SIMULATED)
    found |= set(runs.values_list("policy_version_id", flat=True))
    revisions = Revision.objects.filter(run__in=runs).order_by()
    found |= set(revisions.values_list("policy_version_id", flat=True).distinct())
    rows = PolicyVersion.objects.filter(pk__in=[one for one in found if one])
    return list(rows.select_related("policy").order_by("pk"))


def _rows(
    table: Table,
    session: Session,
    found: QuerySet[Any],
    numbers: dict[tuple[type, Any], int],
    *,
    sealed: bool,
) -> Iterator[Line]:
    columns = table.columns()
    rows = found.iterator(AT_ONCE)
    number = 0
    while batch := list(islice(rows, AT_ONCE)):
        shas = [
            sha
            for name, one in table.contents
            if one.is_blob
            for row in batch
            if (sha := getattr(row, name))
        ]
        data = contents(session, shas)
        for row in batch:
            number = numbers.setdefault((table.model, row.pk), number + 1)
            line = {column.name: value_of(column, row, numbers) for column in columns}
            for name, one in table.contents:
                stored = getattr(row, name)
                line[name] = stored if one.is_blob and sealed else None
                held = data.get(stored) if one.is_blob else bytes(stored)
                line[f"{name}_content"] = None if held is None else one.read(held)
            if isinstance(row, Review):
                line["reviewer"] = row.reviewer.get_username()
            yield {"is": table.name, "id": number, **line}


def masked_line(masker: Masks, line: Line) -> Line:
    """A line of an export with its texts masked, not what programs read."""

    def column(name: str, value: Any) -> Any:
        # Numbers of columns are figures, and `is` says which row it is.
        if name == "is" or isinstance(value, int):
            return value
        if name == "sha_content" and isinstance(value, dict):
            return masked_block(masker, value)
        text = _without_cut_word(line, name) if name in CUT else value
        return masked_value(masker, text, is_form=name in FORM)

    return {name: column(name, value) for name, value in line.items()}


def mask_lines(tables: Iterable[list[tuple[int, Line]]], masks: RuleSet) -> dict[str, int]:
    """Mask the lines of a session, with their numbers, as what comes in; return how many places
    were, by rule."""
    if masks.rules is None:
        return {}
    masker = masks.masker()
    for lines in tables:
        for place, (number, line) in enumerate(lines):
            made = masked_line(masker, line)
            if made.get("sha_content") != line.get("sha_content"):
                made["sha"] = None
            lines[place] = (number, made)
    return masker.masked


def _without_cut_word(line: Line, name: str) -> Any:
    """A column without a word that is there in part only."""
    text = line[name]
    if not isinstance(text, str):
        return text
    columns = BY_NAME[line["is"]].columns()
    longest = next(column.max_length for column in columns if column.name == name)
    return without_cut_word(text, longest)


def without_cut_word(text: str, longest: int | None = None) -> str:
    """The beginning of a longer text without a word that is there in part only. `longest`: how
    long it is if it was cut without a mark."""
    if len(text) < ABOUT_CHARS:
        return text
    return _CUT_WORD.sub("…", f"{text}…" if len(text) == longest else text)[:longest]
