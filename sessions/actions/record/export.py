"""Export: a session with its sub-agents as JSON lines, with secrets masked by default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.db.models import QuerySet

from compaction.context.wire import ABOUT_CHARS
from compaction.redaction.redact import Masker
from compaction.redaction.together import Masks, masked_in_order
from sessions.actions.record.exported import BY_NAME, TABLES, Line, Table, own, value_of
from sessions.importers.exported import VERSION
from sessions.models import PolicyVersion, Review, Revision, Run, Session
from sessions.models.record.values import contents

AT_ONCE = 200
"""Rows whose contents are in memory at the same time."""

CUT = ("preview", "title", "reason")
"""Columns with the beginning of a longer text: half a secret at its end is not recognized."""
_CUT_WORD = re.compile(r"""(?<![^\s"'`\\])[^\s"'`\\]*…[^\s"'`\\/]*""")
_NAMES = ("name", "key", "header")
"""Fields that say what `value` beside them is, as in lists of headers."""
_TYPES_OF_MEDIA = ("media_type", "mediaType", "mime_type", "mimeType", "mime")
_MEDIA = r"(?:(?:image|audio|video)/[\w.+-]{1,60}|application/pdf)"
_BASE64 = r"[A-Za-z0-9+/\r\n]*(?:={1,2}\s*)?"
_BINARY = re.compile(_BASE64)
_DATA_URL = re.compile(f"data:{_MEDIA};base64,{_BASE64}")
_MEDIA_TYPE = re.compile(_MEDIA)


def export(
    session: Session, masker: Masker | None, *, pending_reviews: bool = True
) -> Iterator[Line]:
    """Return a line for the file, for each policy that the sessions refer to, and for each row of
    the session and of its sub-agents (`exported.TABLES`).

    `import` makes the same session of it. With a masker every string is masked; its `masked`
    counts the findings. `pending_reviews`: also of compactions that others still review. Raises
    MissingBlob, DamagedBlob.
    """
    lines = _lines(session, sealed=masker is None, pending_reviews=pending_reviews)
    return lines if masker is None else masked_in_order(masker, lines, _masked_line)


def _lines(session: Session, *, sealed: bool, pending_reviews: bool) -> Iterator[Line]:
    yield {"is": "export", "version": VERSION, "masked": not sealed}
    family = list(_family(session))
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


def _masked_line(masker: Masks, line: Line) -> Line:
    def column(name: str, value: Any) -> Any:
        # Numbers of columns are figures, and `is` says which row it is.
        if name == "is" or isinstance(value, int):
            return value
        return masked_value(masker, _without_cut_word(line, name) if name in CUT else value)

    return {name: column(name, value) for name, value in line.items()}


def masked_value(masker: Masks, value: Any, name: str = "") -> Any:
    """A JSON value with secrets masked, also those that are secrets because of a `name`.

    Binary data of images and other media stays: its base64 looks like a long random token.
    """
    if isinstance(value, str):
        if _DATA_URL.fullmatch(value):
            return value
        return _masked_text(masker, name, value) if name else masker.mask(value)
    if isinstance(value, list):
        made = [masked_value(masker, item, name) for item in value]
        if len(value) == 2 and all(isinstance(one, str) for one in value):  # as of headers
            made[1] = _masked_text(masker, value[0], made[1])
        return made
    if isinstance(value, dict):
        beside = ""
        if "value" in value:
            beside = next((one for n in _NAMES if isinstance(one := value.get(n), str)), "value")
        return {
            masker.mask(key): item
            if _is_binary(value, key)
            else masked_value(masker, item, beside if key == "value" else key)
            for key, item in value.items()
        }
    if type(value) is int and (masked := masked_value(masker, str(value), name)) != str(value):
        return masked
    return value


def _is_binary(given: dict[str, Any], key: str) -> bool:
    """Whether a field of a media block, or of its source, has the media in base64."""
    if key == "result":
        is_media = given.get("type") == "image_generation_call"
    else:
        types = (given.get(name) for name in _TYPES_OF_MEDIA)
        is_media = key == "data" and any(
            isinstance(one, str) and _MEDIA_TYPE.fullmatch(one) for one in types
        )
    return is_media and isinstance(given[key], str) and bool(_BINARY.fullmatch(given[key]))


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


def _masked_text(masker: Masks, name: str, value: str) -> str:
    """A value that may be a secret only because of its name, as in `{"password": "…"}`."""
    before = f'"{name}": "'
    masked = masker.mask(f'{before}{value}"')
    if not masked.startswith(before):  # the name was masked, too
        return masker.mask(value)
    return masked[len(before) :].removesuffix('"')
