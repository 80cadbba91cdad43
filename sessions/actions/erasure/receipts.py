"""Receipts of erasures: made, signed, kept beside the database, and verified."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from uuid import UUID

import msgspec
from django.conf import settings
from django.utils.crypto import salted_hmac

from sessions.actions.erasure.rows import with_sub_agents
from sessions.actions.record.erased import CHUNK
from sessions.models import Blob, Block, Erasure, Replacement, Session, Team
from sessions.models.record import objects

VERSION = 1
FILE = "erasures.jsonl"
"""In the data directory: a receipt per line, only ever appended to."""

_SALT = "contextlab.erasure"

WITH_SUB_AGENTS = frozenset(Erasure.Kind) - {Erasure.Kind.RETENTION}
"""Erasures whose sessions go with their sub-agents. For retention each has an age of its own."""


class NoReceipt(ValueError):
    """The text is not a receipt."""


def hashed(salt: str, text: str) -> str:
    """The SHA-256 of a text with a receipt's salt: who has the text can find it in the receipt, and
    no table has it."""
    return hashlib.sha256(f"{salt}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


def canonical(value: Any) -> str:
    """JSON with sorted names and without blanks, in ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def make(erasure: Erasure, blobs: Iterable[str], kept: int, finished: datetime) -> dict[str, Any]:
    """The signed receipt of an erasure: what, when and by whom; ids, counts and hashes, never
    content. `blobs` are the hashes of erased content; `kept` others in use elsewhere."""
    rows = erasure.sessions.order_by("session")
    body: dict[str, Any] = {
        "version": VERSION,
        "erasure": str(erasure.pk),
        "team": {"id": str(erasure.team_id), "name": erasure.team.slug},
        "kind": erasure.kind,
        "rule": erasure.rule,
        "content_only": erasure.content_only,
        "by": {"via": erasure.via, "name": erasure.by},
        "reason": erasure.reason,
        "requested": _time(erasure.created),
        "finished": _time(finished),
        "salt": erasure.salt,
        "sessions": [{"id": str(one.session), "external_id": one.named} for one in rows],
        "rows": dict(sorted(erasure.counts.items())),
        "content": sorted(hashed(erasure.salt, sha) for sha in blobs),
        "kept": {"content_used_elsewhere": kept},
    }
    return {**body, "signature": {"key": _key_id(), "hmac_sha256": _signature(body)}}


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _signature(body: Mapping[str, Any]) -> str:
    made = salted_hmac(_SALT, canonical(body), settings.SECRET_KEY, algorithm="sha256")
    return made.hexdigest()


def _key_id() -> str:
    """Tells keys apart without saying anything about them."""
    return salted_hmac(_SALT, "key", settings.SECRET_KEY, algorithm="sha256").hexdigest()[:16]


def parse(text: str) -> dict[str, Any]:
    """A receipt from its JSON, or from a line of the file. Raises NoReceipt."""
    return parse_line(text).receipt


def parse_line(text: str) -> KeptReceipt:
    """A line of the file, or a receipt without the rest. Raises NoReceipt."""
    try:
        line = json.loads(text)
        said = line.get("receipt", line)
        names, member = line.get("names", {}), line.get("member")
        version = msgspec.convert(said, _Receipt).version
        msgspec.convert((names, member), tuple[dict[str, str], int | None])
    except (ValueError, AttributeError, RecursionError, msgspec.ValidationError):
        raise NoReceipt(
            "This is not a receipt of an erasure. Give the JSON as it was downloaded."
        ) from None
    if version != VERSION:
        raise NoReceipt("This receipt has another version than this release knows.")
    return KeptReceipt(said, names, member)


class _Team(msgspec.Struct):
    id: UUID


class _By(msgspec.Struct):
    via: str
    name: str


class _Erased(msgspec.Struct):
    id: UUID
    external_id: str


class _Signature(msgspec.Struct):
    hmac_sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]+$")]
    key: str


class _Receipt(msgspec.Struct):
    """What every receipt has, as `make` writes it."""

    version: int
    erasure: UUID
    team: _Team
    kind: str
    rule: dict[str, str]
    content_only: bool
    by: _By
    reason: str
    finished: Annotated[datetime, msgspec.Meta(tz=True)]
    salt: str
    sessions: list[_Erased]
    rows: dict[str, int]
    content: list[str]
    signature: _Signature


class KeptReceipt(NamedTuple):
    """A line of the file: a receipt, the keyed external id of each session by its id, and the user
    whose data was erased; what a restored backup must erase and refuse again."""

    receipt: dict[str, Any]
    names: dict[str, str]
    member: int | None


def keep(kept: KeptReceipt) -> None:
    """Append a receipt to the file, on disk on return; with object storage put it there too, as
    each machine has a file of its own. Raises ObjectsAway."""
    line = canonical(kept._asdict()) + "\n"
    if objects.is_shared():
        objects.put({f"{objects.ERASURES}{kept.receipt['erasure']}.json": line.encode()})
    path = receipts_file()
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(handle, "ab") as file:
        file.write(line.encode())
        file.flush()
        os.fsync(file.fileno())


def kept_lines(path: Path) -> list[str]:
    """The lines of a file, none if it is missing, and what object storage keeps beside it."""
    lines = path.read_text().splitlines() if path.exists() else []
    if objects.is_shared():
        for said in objects.read(objects.listed(objects.ERASURES), cached=False).values():
            lines += [one for one in said.decode().splitlines() if one not in lines]
    return lines


def receipts_file() -> Path:
    """Where receipts are kept beside the database."""
    return Path(settings.DATA_DIR) / FILE


@dataclass(frozen=True, slots=True)
class ReceiptVerdict:
    """What a receipt's verification found.

    `signature` is valid, changed, or of another key. Of what was erased, `sessions` and `content`
    are in the store; `stored_again` is content that only sessions hold that began later.
    """

    signature: str
    sessions: int
    content: int
    stored_again: int
    checked: int

    @property
    def holds(self) -> bool:
        """Whether the receipt is ours and everything in it is gone."""
        return self.signature == "valid" and not self.sessions and not self.content

    def __str__(self) -> str:
        if self.signature == "changed":
            return "The receipt was changed after it was signed, so it proves nothing."
        said = ""
        if self.signature == "another key":
            said = "Another CONTEXTLAB_SECRET_KEY made the signature: check it with that one. "
        said += f"{self.checked:,} sessions and contents looked for. "
        if self.sessions or self.content:
            said += (
                f"{self.sessions:,} sessions and {self.content:,} contents are in the store. If it "
                "was restored from a backup, run `contextlab erase --again`."
            )
        else:
            said += "None is in the store."
        if self.stored_again:
            said += f" {self.stored_again:,} contents were stored again by later sessions."
        return said


def verify(receipt: Mapping[str, Any]) -> ReceiptVerdict:
    """Check a receipt's signature, and that nothing it names is in the store. Reads the ids and
    hashes of the team, no content."""
    body = {name: value for name, value in receipt.items() if name != "signature"}
    signed = receipt["signature"]
    signature = "changed"
    if hmac.compare_digest(_signature(body), signed["hmac_sha256"]):
        signature = "valid"
    elif signed.get("key") != _key_id():
        signature = "another key"
    team = Team.objects.filter(pk=receipt["team"]["id"]).first()
    listed = len(receipt["sessions"]) + len(receipt["content"])
    if team is None:
        return ReceiptVerdict(signature, 0, 0, 0, listed)
    sessions = _sessions_left(team, receipt)
    present = _content_left(team, receipt)
    again = _stored_again(team, present, datetime.fromisoformat(receipt["finished"]))
    return ReceiptVerdict(signature, sessions, len(present) - len(again), len(again), listed)


def _sessions_left(team: Team, receipt: Mapping[str, Any]) -> int:
    rows = Session.objects.for_team(team)
    if receipt["content_only"]:
        rows = rows.filter(content_erased=None)
    wanted = {one["id"] for one in receipt["sessions"]}
    names = {one["external_id"] for one in receipt["sessions"]}
    salt = receipt["salt"]
    ids = rows.values_list("pk", "external_id").iterator()
    if receipt["content_only"]:
        return sum(str(pk) in wanted for pk, _ in ids)
    left = {pk for pk, name in ids if str(pk) in wanted or hashed(salt, name) in names}
    return len(left.union(sub_agents_left(team, receipt)))


def sub_agents_left(team: Team, receipt: Mapping[str, Any]) -> list[UUID]:
    """The stored sub-agents of a receipt's sessions, whichever it names, with theirs."""
    if receipt["kind"] not in WITH_SUB_AGENTS:
        return []
    names = {one["external_id"] for one in receipt["sessions"]}
    return with_sub_agents(team, sub_agents(team, receipt["salt"], names))


def sub_agents(team: Team, salt: str, names: Collection[str]) -> list[UUID]:
    """The stored sessions whose parents' external ids, hashed with the salt, are among the names;
    the parents need not be stored."""
    rows = Session.objects.for_team(team).exclude(parent_external_id="")
    made: dict[str, bool] = {}
    found = []
    for pk, parent in rows.values_list("pk", "parent_external_id").iterator():
        if parent not in made:
            made[parent] = hashed(salt, parent) in names
        if made[parent]:
            found.append(pk)
    return found


def _content_left(team: Team, receipt: Mapping[str, Any]) -> list[str]:
    erased, salt = set(receipt["content"]), receipt["salt"]
    if not erased:
        return []
    stored = Blob.objects.filter(team=team).values_list("sha", flat=True).iterator()
    return [sha for sha in stored if hashed(salt, sha) in erased]


def _stored_again(team: Team, shas: list[str], since: datetime) -> set[str]:
    """Those of these hashes that sessions use that began after the erasure."""
    later: set[str] = set()
    for start in range(0, len(shas), CHUNK):
        some = shas[start : start + CHUNK]
        blocks = Block.objects.filter(sha__in=some, session__team=team)
        later.update(blocks.filter(session__created__gte=since).values_list("sha", flat=True))
        replaced = Replacement.objects.filter(sha__in=some, run__session__team=team)
        newer = replaced.filter(run__session__created__gte=since)
        later.update(newer.values_list("sha", flat=True))
    return later
