"""Note what agents send, without making them wait.

A request only adds to counters in memory; a thread of the server writes them every few seconds
(`flush`). A crash loses the counts of these seconds, never what was sent.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Length
from django.utils import timezone

from compaction.redaction.redact import redact
from sessions import metrics
from sessions.actions.masking.incoming import incoming
from sessions.actions.record.erased import refuse_named
from sessions.models import AcceptedRequests, RefusedRequest, Session, Team
from sessions.models.erasure.kept import SessionErased, while_kept
from sessions.models.masking.masking import rules_of

log = logging.getLogger(__name__)

BODY_BYTES = 1024 * 1024
"""Largest refused body that is kept."""

WAITING_BYTES = 16 * 1024 * 1024
WAITING_ROWS = 500
"""Refused requests that wait for `flush`, per process."""

TEAM_ROWS, TEAM_BYTES = 500, 20 * 1024 * 1024
"""Refused requests of a team that are kept, and their bodies, compressed; the newest."""

KEPT, REFUSED_KEPT = timedelta(days=7), timedelta(days=14)
DETAIL_CHARS = 500


class ArrivalKey(NamedTuple):
    """What the counts of an accepted request belong to; `session` is an id or an external id."""

    team: UUID
    session: UUID | str
    hour: datetime
    key: str
    kind: str
    form: str


@dataclass(slots=True)
class ArrivalCounts:
    """Requests, messages and bytes, and when the last came."""

    requests: int = 0
    messages: int = 0
    size: int = 0
    last: datetime = field(default_factory=timezone.now)


class RefusalKey(NamedTuple):
    """What makes two refused requests the same."""

    team: UUID
    key: str
    kind: str
    method: str
    path: str
    session: str
    status: int
    problem: str
    field: str
    sha: str


@dataclass(slots=True)
class WaitingRefusal:
    """A refused request that waits to be written."""

    detail: str
    size: int
    body: bytes
    kept: str
    first: datetime
    last: datetime
    times: int = 1


_lock = threading.Lock()
_accepted: dict[ArrivalKey, ArrivalCounts] = {}
_refused: dict[RefusalKey, WaitingRefusal] = {}


def note_accepted(
    team: UUID, session: UUID | str, key: str, kind: str, form: str, messages: int, size: int
) -> None:
    """Count an accepted request."""
    metrics.MESSAGES.labels(kind).inc(messages)
    metrics.MESSAGE_BYTES.labels(kind).inc(size)
    now = timezone.now()
    which = ArrivalKey(
        team, session, now.replace(minute=0, second=0, microsecond=0), key, kind, form
    )
    with _lock:
        counts = _accepted.get(which)
        if counts is None:
            counts = _accepted[which] = ArrivalCounts()
        counts.requests += 1
        counts.messages += messages
        counts.size += size
        counts.last = now


def storable(text: str, most: int) -> str:
    """Text that PostgreSQL stores: without NUL and lone surrogates."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()[:most]


def masked(detail: str, team: UUID) -> str:
    """An answer's detail as it is stored: it may quote what was sent, so secrets are masked."""
    return redact(storable(detail, DETAIL_CHARS), rules_of(team)).text[:DETAIL_CHARS]


def _body(body: bytes, team: UUID) -> bytes:
    """A body as it is stored: masked if the team masks what comes in."""
    masks = incoming(team)
    if not body or masks is None:
        return body
    try:
        return json.dumps(masks.now.value(json.loads(body))).encode()
    except (ValueError, RecursionError):
        return masks.now.raw(body)


def digest_of(body: bytes) -> str:
    """What recognizes a body."""
    return hashlib.sha256(body).hexdigest()


def note_refused(which: RefusalKey, detail: str, size: int, body: bytes, kept: str) -> None:
    """Keep a refused request until the next `flush`; `kept` says why `body` is empty."""
    now = timezone.now()
    with _lock:
        known = _refused.get(which)
        if known is not None:
            known.times += 1
            known.last = now
            return
        if len(_refused) >= WAITING_ROWS:
            return
        if sum(len(one.body) for one in _refused.values()) + len(body) > WAITING_BYTES:
            body, kept = b"", "Too many requests were refused at once."
        _refused[which] = WaitingRefusal(detail, size, body, kept, now, now)


def flush() -> None:
    """Write what was noted since the last time, and delete what is old. Raises DatabaseError."""
    with _lock:
        accepted, refused = dict(_accepted), dict(_refused)
        _accepted.clear()
        _refused.clear()
    if accepted:
        with transaction.atomic():
            _write_accepted(accepted)
    there = Team.objects.in_bulk({which.team for which in refused}) if refused else {}
    for which, one in refused.items():
        if which.team in there:  # not deleted since
            with suppress(SessionErased), _kept(there[which.team], which.session):
                _write_refused(which, one)
    for team in there:
        _shorten(team)


@contextmanager
def _kept(team: Team, name: str) -> Iterator[None]:
    """A transaction that stores what was sent for a session. Raises SessionErased."""
    session = Session.objects.named_in(team, name)
    if session is not None:
        with while_kept(session.pk):
            yield
        return
    refuse_named([team], name)
    with transaction.atomic():
        yield


def _write_accepted(accepted: dict[ArrivalKey, ArrivalCounts]) -> None:
    ids = _session_ids(accepted)
    # In one order, or two servers that write the same rows lock against each other.
    for which, counts in sorted(accepted.items(), key=lambda item: str(item[0])):
        session = ids.get((which.team, which.session))
        if session is None:  # deleted since
            continue
        columns = which._asdict() | {"session_id": session, "team_id": which.team}
        del columns["session"], columns["team"]
        more = {
            "requests": F("requests") + counts.requests,
            "messages": F("messages") + counts.messages,
            "bytes": F("bytes") + counts.size,
            "last": counts.last,
        }
        # Most rows are there already; another server may just make the same one.
        if not AcceptedRequests.objects.filter(**columns).update(**more):
            AcceptedRequests.objects.get_or_create(**columns, defaults={"last": counts.last})
            AcceptedRequests.objects.filter(**columns).update(**more)


def _session_ids(accepted: Iterable[ArrivalKey]) -> dict[tuple[UUID, UUID | str], UUID]:
    """The sessions that exist, by team and how they were named."""
    pairs = {(which.team, which.session) for which in accepted}
    pks = [name for _, name in pairs if isinstance(name, UUID)]
    names = [name for _, name in pairs if isinstance(name, str)]
    teams = {team for team, _ in pairs}
    found: dict[tuple[UUID, UUID | str], UUID] = {}
    for pk, team in Session.objects.filter(pk__in=pks).values_list("pk", "team"):
        found[team, pk] = pk
    rows = Session.objects.filter(team__in=teams, external_id__in=names)
    for pk, team, name in rows.values_list("pk", "team", "external_id"):
        found[team, name] = pk
    return found


def _write_refused(which: RefusalKey, one: WaitingRefusal) -> None:
    columns = which._asdict()
    columns["team_id"] = columns.pop("team")
    known = RefusedRequest.objects.filter(**columns, applied=None)
    if known.update(times=F("times") + one.times, last=one.last):
        return
    RefusedRequest.objects.create(
        **columns,
        detail=masked(one.detail, which.team),
        bytes=one.size,
        body=zlib.compress(_body(one.body, which.team)) if one.body else b"",
        kept=one.kept,
        times=one.times,
        first=one.first,
        last=one.last,
    )


def _shorten(team: UUID) -> None:
    """Delete what is old, or more than a team may keep."""
    now = timezone.now()
    rows = RefusedRequest.objects.filter(team_id=team)
    rows.filter(last__lt=now - REFUSED_KEPT).delete()
    sizes = rows.annotate(size=Length("body")).order_by("-last").values_list("pk", "size")
    total, without, beyond = 0, [], []
    for number, (pk, size) in enumerate(sizes):
        total += size
        if number >= TEAM_ROWS:
            beyond.append(pk)
        elif size and total > TEAM_BYTES:
            without.append(pk)
    rows.filter(pk__in=beyond).delete()
    rows.filter(pk__in=without).update(body=b"", kept="Newer refused requests took its place.")


def forget_old() -> None:
    """Delete rows past their time, of all teams."""
    now = timezone.now()
    AcceptedRequests.objects.filter(last__lt=now - KEPT).delete()
    RefusedRequest.objects.filter(last__lt=now - REFUSED_KEPT).delete()
