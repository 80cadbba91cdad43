"""Restore: rows of an export become a team's sessions again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from django.core.exceptions import ValidationError
from django.db import DatabaseError, transaction
from django.db.models import DateTimeField
from django.utils.crypto import get_random_string

from compaction.context.session import MOST_MICROUSD, MOST_TOKENS, Usage
from compaction.policies.policy import InvalidPolicy, from_dict
from sessions.actions.imports.export import mask_lines
from sessions.actions.imports.exported import BY_NAME, TABLES, Line, Table, read_value
from sessions.actions.masking.incoming import count_masked, incoming
from sessions.actions.policies.policies import imported_version
from sessions.actions.record.checks import RULES
from sessions.actions.record.erased import refuse_erased, refuse_under
from sessions.importers.decoded import NotALog, clean
from sessions.importers.kept_folds import fits
from sessions.models import (
    Blob,
    Block,
    ManagedContext,
    Membership,
    PolicyVersion,
    Review,
    ReviewItem,
    Run,
    Session,
    StepNote,
    Team,
)
from sessions.models.erasure.kept import SessionErased
from sessions.models.record.blobs import keep, sha256

BATCH = 400
"""Rows per statement."""

COPY = "export:"
"""Before the id of a session that the team has already, with other messages."""

IMPORTED = " (imported)"
"""After the author of a note in an uploaded export: the file alone does not prove who wrote it."""

USAGE = frozenset(one.name for one in fields(Usage)) - {"iterations"}

STEPS = frozenset(
    ("born", "step", "step_count", "steps", "of_step", "retry_of", "from_step", "to_step")
    + ("looked_until",)
)
"""Columns of steps: work grows with them, so there are no more than messages and model calls."""

Numbered = list[tuple[int, Line]]
"""Lines of a file with their numbers."""


@dataclass(slots=True)
class Restored:
    """The sessions of a file, those that are new among them, and what a person should know."""

    sessions: list[Session] = field(default_factory=list)
    new: set[Any] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def restore(team: Team, lines: Numbered, *, trusted: bool) -> Restored:
    """Store an export's sessions with all that belongs to them; all or nothing.

    A session that the team has with the same messages is left as it is. Its id in use for other
    messages: the sessions get the prefix `export:`. Reviews by people who are not members are
    left out. Anybody can write a file in a member's name: unless it is `trusted`, all reviews and
    their queue are left out, and notes are marked. Raises NotALog with the line, or the rule that
    the file breaks.
    """
    files = _by_session(lines)
    try:
        with transaction.atomic():
            return _Restoring(team, lines, trusted=trusted).all(files)
    except SessionErased:
        raise NotALog("A session in it was erased, and nothing more is stored for it.") from None
    except DatabaseError as error:
        raise NotALog(f"The export does not fit together: {error}. Export it again.") from None


def _by_session(lines: Numbered) -> list[dict[str, Numbered]]:
    """For each session its lines by table."""
    found: list[dict[str, Numbered]] = []
    for number, line in lines:
        name = line["is"]
        if name == "session":
            found.append({table.name: [] for table in TABLES})
        if name in BY_NAME:
            found[-1][name].append((number, line))
    return found


class _Restoring:
    def __init__(self, team: Team, lines: Numbered, *, trusted: bool) -> None:
        self.team, self.trusted = team, trusted
        self.most_blocks = sum(line["is"] == "block" for _, line in lines)
        self.most_steps = 1 + sum(line["is"] in ("message", "call") for _, line in lines)
        self.done = Restored()
        self.members = {
            one.user.get_username(): one.user
            for one in Membership.objects.filter(team=team).select_related("user")
        }
        referred = {one for _, line in lines if isinstance(one := line.get("policy_version"), int)}
        # What lines of any session may refer to; their own rows are added while they are made.
        self.rows: dict[tuple[type, Any], Any] = {
            (PolicyVersion, line["id"]): _policy(team, number, line).pk
            for number, line in lines
            if line["is"] == "policy" and line["id"] in referred
        }
        self.strangers = 0

    def all(self, files: list[dict[str, Numbered]]) -> Restored:
        known = [self._known(file) for file in files]
        for file in files:
            refuse_erased(self.team, file["session"][0][1]["external_id"])
        if all(known):
            self.done.sessions = [one for one in known if one is not None]
            return self.done
        prefix = COPY if any(self._taken(file) for file in files) else ""
        masks = incoming(self.team.pk)
        for file in files:
            counts = mask_lines(file.values(), masks.now) if masks is not None else {}
            self._session(file, prefix)
            count_masked(self.done.sessions[-1], counts)
        for rule, query in RULES.items():
            if query([one.pk for one in self.done.sessions]).exists():
                raise NotALog(f"In the export it does not hold that {rule}. Export it again.")
        if self.strangers:
            self.done.problems.append(
                f"{self.strangers} reviews are by people who are not members of this team, and "
                "were left out."
                if self.trusted
                else f"{self.strangers} reviews were left out: an upload does not prove who wrote "
                "them. `contextlab import` on the server takes them."
            )
        return self.done

    def _named(self, file: dict[str, Numbered], prefix: str) -> Session | None:
        number, line = file["session"][0]
        own = line.get("external_id")
        if not isinstance(own, str) or not own.strip() or clean(own) != own:
            raise NotALog(f"Line {number}, session.external_id: is not an id. Export it again.")
        name = f"{prefix}{own}"[:300]
        return Session.objects.for_team(self.team).filter(external_id=name).first()

    def _taken(self, file: dict[str, Numbered]) -> bool:
        return self._named(file, "") is not None

    def _known(self, file: dict[str, Numbered]) -> Session | None:
        """The team's session of that id, or of that of a copy, with the same messages."""
        wanted = [line.get("digest") for _, line in file["message"]]
        for prefix in ("", COPY):
            if (found := self._named(file, prefix)) is not None:
                has = found.messages.order_by("seq").values_list("digest", flat=True)
                if list(has) == wanted:
                    return found
        return None

    def _session(self, file: dict[str, Numbered], prefix: str) -> None:
        rows = dict(self.rows)
        _rename_contexts(file)
        blobs: dict[str, Blob] = {}
        for table in TABLES:
            made: list[Any] = [
                self._row(table, line, number, rows) for number, line in file[table.name]
            ]
            for row, (number, line) in zip(made, file[table.name], strict=True):
                blobs |= contents_of(table, row, line, number, self.team)
            if table.model is Session:
                self._place(made[0], prefix)
            insert([row for row in made if row is not None])
            for row, (_, line) in zip(made, file[table.name], strict=True):
                if row is not None:
                    rows[table.model, line["id"]] = row.pk
        keep(self.team.pk, blobs.values())
        self.rows |= {key: pk for key, pk in rows.items() if key[0] is Session}

    def _place(self, session: Session, prefix: str) -> None:
        session.team = self.team
        session.external_id = f"{prefix}{session.external_id}"[:300]
        if session.parent_external_id:
            refuse_under(self.team, session.parent_external_id)
            session.parent_external_id = f"{prefix}{session.parent_external_id}"[:300]
        self.done.sessions.append(session)
        self.done.new.add(session.pk)

    def _row(
        self, table: Table, line: Line, number: int, rows: dict[tuple[type, Any], Any]
    ) -> Any | None:
        """The row of a line, not stored yet; None for a review that is left out."""
        if not self.trusted and table.model in (ReviewItem, Review):
            self.strangers += table.model is Review
            return None
        row: Any = table.model()
        self._set_columns(row, table, line, number, rows)
        if isinstance(row, Session) and row.overrides is not None:
            _check_overrides(number, row.overrides)
        if isinstance(row, Run) and not fits(row.origin, row.fold, row.head, self.most_blocks):
            raise NotALog(f"Line {number}, run.fold: is not the state of a run. Export it again.")
        if isinstance(row, ReviewItem):
            row.team = self.team
        if isinstance(row, StepNote) and not self.trusted:
            kept = row.author_name.removesuffix(IMPORTED)[: 150 - len(IMPORTED)]
            row.author_name = f"{kept}{IMPORTED}"
        if isinstance(row, Review):
            member = self.members.get(str(line.get("reviewer")))
            self.strangers += member is None
            if member is None:
                return None
            row.reviewer = member
        return row

    def _set_columns(
        self, row: Any, table: Table, line: Line, number: int, rows: dict[tuple[type, Any], Any]
    ) -> None:
        for column in table.columns():
            if column.name not in line:
                continue
            try:
                value = read_value(column, line[column.name], rows)
                if column.name in STEPS and value is not None and value > self.most_steps:
                    raise ValueError("is beyond the messages and model calls of the file")
                if (most := _most(table, column.name)) and value is not None and value > most:
                    raise ValueError(f"is more than {most:,}")
            except (ValidationError, ValueError, OverflowError) as error:
                said = error.messages[0] if isinstance(error, ValidationError) else error
                raise NotALog(f"Line {number}, {table.name}.{column.name}: {said}") from None
            setattr(row, column.attname, value)


def _most(table: Table, name: str) -> int | None:
    """The largest figure that a column of a row may hold; a session's own are measured again."""
    if name.endswith("_microusd"):
        return MOST_MICROUSD
    is_count = name in USAGE or (table.model is not Session and "tokens" in name.split("_"))
    return MOST_TOKENS if is_count else None


def _policy(team: Team, number: int, line: Line) -> PolicyVersion:
    document = line.get("document")
    if not isinstance(document, dict):
        raise NotALog(f"Line {number}, policy.document: is not an object")
    try:
        return imported_version(team, str(line.get("name")), document)
    except InvalidPolicy as error:
        raise NotALog(f"Line {number}, policy.{error.field}: {error.problem}") from None


def _check_overrides(number: int, overrides: dict[str, Any]) -> None:
    if any(not isinstance(overrides.get(one), dict) for one in ("asked", "document", "sources")):
        raise NotALog(f"Line {number}, session.overrides: has no policy document")
    try:
        from_dict(overrides["document"])
    except InvalidPolicy as error:
        raise NotALog(f"Line {number}, session.overrides.{error.field}: {error.problem}") from None


def _rename_contexts(file: dict[str, Numbered]) -> None:
    """Give new ids to contexts whose ids are taken, in the file too: ids are of the server."""
    ids = [line["id"] for _, line in file["context"]]
    taken: set[Any] = set()
    for start in range(0, len(ids), BATCH):
        rows = ManagedContext.objects.filter(pk__in=ids[start : start + BATCH])
        taken |= set(rows.values_list("pk", flat=True))
    new = {one: f"ctx_{get_random_string(22)}" for one in taken}
    for _, line in file["context"]:
        line["id"] = new.get(line["id"], line["id"])
    for _, line in file["call"]:
        if (renamed := new.get(str(line.get("context")))) is not None:
            line["context"] = renamed


def contents_of(
    table: Table, row: Any, line: Line, number: int, team: Team
) -> Iterator[tuple[str, Blob]]:
    """Set the columns of bytes, and yield the blobs that they name. Raises NotALog."""
    for name, one in table.contents:
        value = line.get(f"{name}_content")
        if table.model is Block and value is not None and not _is_block(value):
            raise NotALog(f"Line {number}, block.{name}_content: is not a block. Export it again.")
        data = b"" if value is None else one.written(value)
        if not one.is_blob:
            setattr(row, name, data)
            continue
        sha = "" if value is None else sha256(data)
        if line.get(name) not in (None, sha):
            raise NotALog(f"Line {number}: the content is not what its SHA-256 says.")
        setattr(row, name, sha)
        if isinstance(row, Block):
            row.bytes = len(data)
        if sha:
            yield sha, Blob.of(team.pk, data, sha)


def _is_block(value: Any) -> bool:
    """Whether pages and contexts can read a value as a wire block."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("type", ""), str)
        and isinstance(value.get("text", ""), str)
    )


def insert(rows: list[Any]) -> None:
    """Store rows of one model with the times that they have."""
    if not rows:
        return
    model = type(rows[0])
    # Django sets these to the time of the insertion.
    timed = [
        one.name
        for one in model._meta.concrete_fields
        if isinstance(one, DateTimeField) and (one.auto_now or one.auto_now_add)
    ]
    times = [[getattr(row, name) for name in timed] for row in rows]
    model._default_manager.bulk_create(rows, batch_size=BATCH)
    kept = [name for place, name in enumerate(timed) if times[0][place] is not None]
    if kept:
        for row, of in zip(rows, times, strict=True):
            for name, value in zip(timed, of, strict=True):
                setattr(row, name, value or getattr(row, name))
        model._default_manager.bulk_update(rows, kept, batch_size=BATCH)
