"""Sharing: deliver a session's findings to subscribed sessions, once to each."""

from __future__ import annotations

import re
from contextlib import suppress
from html import unescape
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Max, Q
from django.utils import timezone

from compaction.board.board import LONGEST, plain, shortened
from compaction.redaction.redact import Masker
from sessions.actions.accounts import audit
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import Running
from sessions.actions.memory import boards
from sessions.actions.web.changed import publish
from sessions.models import (
    Delivery,
    Edit,
    Gathering,
    Note,
    Revision,
    Run,
    Session,
    Share,
    Subscription,
    Team,
)
from sessions.models.erasure.kept import SessionErased, while_kept
from sessions.models.masking.masking import rules_of
from sessions.models.record.replaced import SUMMARISING, replaced, summarised
from sessions.models.record.sessions import SOURCE_LIVE
from sessions.models.record.values import block_id
from sessions.models.web.statements import Statement, given_int, given_uuid

KIND = "share"
AT_ONCE = 100
REFS = 50
"""Most references to tool results in a share, newest first."""

LATELY = 500
"""Steps in which compactions are looked for that are not shared yet; each append looks."""

LONGEST_SUMMARY = 40_000

MOST_SUBSCRIPTIONS = 100
"""Per session."""

_TAG = re.compile(r"</?([a-z_]{2,40})>")
_ELEMENT = re.compile(r"<(?:file_operation|command) ([^<>]*)/>")
_VALUE = re.compile(r'\b\w+="([^"]*)"')


class CannotSubscribe(ValueError):
    """Why a session cannot subscribe, as a sentence; `field` is the invalid input."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


# Sharing


def share_due(session: Session) -> None:
    """Share a live session's compactions since its last share, and its outcome."""
    if session.source != SOURCE_LIVE:
        return
    compacted = _COMPACTED.column(session=session.pk, step=session.step_count - LATELY)
    known = set(_SHARED.column(session=session.pk)) if compacted else ()
    for number in compacted:
        if (key := f"revision:{number}") not in known:
            made = summarised(session).filter(run__origin=Run.Origin.MANAGED, number=number)
            _of_revision(session, made.get(), key)
    if session.outcome in ("succeeded", "failed"):
        done = Share.objects.filter(session=session, key="done").exists()
        if not done:
            share(session, "done", Share.Cause.TASK_DONE)


_SHARED = Statement(
    lambda: Share.objects.filter(
        session_id=given_uuid("session"), cause=Share.Cause.COMPACTION
    ).values_list("key")
)
_COMPACTED = Statement(
    lambda: (
        Edit.objects.filter(
            SUMMARISING,
            revision__run__session_id=given_uuid("session"),
            revision__run__origin=Run.Origin.MANAGED,
            revision__step__gte=given_int("step"),
        )
        .order_by("revision__number")
        .values_list("revision__number")
        .distinct()
    )
)


def _of_revision(session: Session, revision: Revision, key: str) -> None:
    made = replaced(session, revision)
    if made is not None:
        share(session, key, Share.Cause.COMPACTION, summary=made.summary, step=revision.step)


def share(
    session: Session,
    key: str,
    cause: str,
    *,
    summary: str = "",
    step: int | None = None,
    actor: audit.Actor | None = None,
) -> tuple[Share, bool]:
    """Share what a session knows now; also return whether the key is new.

    Without a summary, uses the newest report on its board, else its last shared summary. The row is
    the event: a worker delivers it to all subscribers exactly once.
    """
    found = Share.objects.filter(session=session, key=key).first()
    if found is not None:
        return found, False
    masker = Masker(rules_of(session.team_id))
    board = boards.board_of(session)
    text = summary or _report(session, board.pk)
    row = Share(
        team_id=session.team_id, session=session, key=key, cause=cause,
        agent=session.agent, task=session.task,
        step=session.step_count if step is None else step,
        summary=masker.mask(plain(text[:LONGEST_SUMMARY])),
        board=masker.mask(boards.rendered(session, board).text),
        refs=_refs(session), files=_files(session),
    )  # fmt: skip
    row.masked = dict(masker.masked)
    try:
        with while_kept(session.pk):
            # The team's share job ends under this lock: it finds this row, or is queued again.
            Team.objects.select_for_update(no_key=True).only("pk").get(pk=session.team_id)
            last = Share.objects.filter(session=session).aggregate(last=Max("number"))["last"]
            row.number = (last or 0) + 1
            row.save(force_insert=True)
            jobs.enqueue(session.team, KIND, {}, f"{KIND}:{session.team_id}")
            if actor is not None:
                audit.note(session.team, actor, "share.made", session.external_id, cause=cause)
            publish(session)
    except IntegrityError:
        return Share.objects.get(session=session, key=key), False
    return row, True


def _report(session: Session, board: int) -> str:
    reports = Note.objects.filter(board=board, session=session, kind="task_done", removed=None)
    found = reports.order_by("pk").values_list("text", flat=True).last()
    before = Share.objects.filter(session=session).exclude(summary="").order_by("number")
    return found or before.values_list("summary", flat=True).last() or ""


def _refs(session: Session) -> list[dict[str, str]]:
    rows = session.blocks.filter(type="tool_result").order_by("-position")
    fields = ("message__seq", "index", "sha", "tool", "file_path")
    return [
        {"ref": f"{block_id(seq, index)}@{sha[:8]}", "tool": tool, "path": path}
        for seq, index, sha, tool, path in rows.values_list(*fields)[:REFS]
    ][::-1]


def _files(session: Session) -> dict[str, str]:
    row = Gathering.objects.filter(session=session).first()
    return dict(row.remembered.get("notes", {}).get("files", {})) if row is not None else {}


# Delivery


def subscribe(session: Session, kind: str, value: str, actor: audit.Actor) -> Subscription:
    """Subscribe a session to future shares of an agent, a task, or its team.

    Raises CannotSubscribe.
    """
    value = plain(value).strip()
    if kind == Subscription.Kind.TEAM:
        value = ""
    elif not value:
        raise CannotSubscribe("/value", f"must name the {kind}")
    found = Subscription.objects.filter(session=session, kind=kind, value=value).first()
    if found is not None:
        return found
    if Subscription.objects.filter(session=session).count() >= MOST_SUBSCRIPTIONS:
        raise CannotSubscribe(
            "", f"The session already has {MOST_SUBSCRIPTIONS} subscriptions; delete one first"
        )
    with transaction.atomic():
        row, made = Subscription.objects.get_or_create(session=session, kind=kind, value=value)
        if made:
            audit.note(session.team, actor, "subscription.made", session.external_id, to=kind)
    return row


def unsubscribe(row: Subscription, actor: audit.Actor) -> None:
    """End a subscription; notes already received stay."""
    with transaction.atomic():
        audit.note(
            row.session.team, actor, "subscription.removed", row.session.external_id, to=row.kind
        )
        row.delete()


def bring(running: Running) -> None:
    """Run the `share` job: deliver a team's shares to subscribers. Leaves no row on success."""
    done = 0
    while True:
        waiting = Share.objects.filter(team=running.team, sent=None).order_by("pk")
        for row in waiting.select_related("session")[:AT_ONCE]:
            running.progress(done, None, "shares")
            deliver(row)
            done += 1
        with transaction.atomic():
            Team.objects.select_for_update(no_key=True).only("pk").get(pk=running.team.pk)
            if not waiting.exists():
                jobs.remove(running.job.id, running.token)
                return


def deliver(row: Share) -> int:
    """Deliver one share to all sessions subscribed before it, once to each; return how many."""
    about = Q(kind=Subscription.Kind.TEAM)
    about |= Q(kind=Subscription.Kind.AGENT, value=row.agent)
    about |= Q(kind=Subscription.Kind.TASK, value=row.task)
    subscribed = Subscription.objects.filter(
        about, session__team=row.team_id, created__lte=row.created
    ).exclude(session=row.session_id)
    wanted = Session.objects.filter(
        pk__in=subscribed.values("session"), team=row.team_id, outcome="", erasing=None,
        content_erased=None,
    )  # fmt: skip
    brought = 0
    with suppress(SessionErased), while_kept(row.session_id):
        for session in wanted.order_by("pk").select_for_update(of=("self",), no_key=True):
            _, new = Delivery.objects.get_or_create(share=row, session=session)
            if new:
                _put_down(row, session)
                brought += 1
    Share.objects.filter(pk=row.pk, sent=None).update(sent=timezone.now())
    return brought


def _put_down(row: Share, session: Session) -> None:
    """Add a share as knowledge to a subscriber's board; it may already be stale."""
    board = boards.board_of(session)
    path = boards.changed_of(row.files, _files(row.session))
    values: dict[str, Any] = {
        "kind": "knowledge",
        "text": shortened(readable(row.summary) or row.board, LONGEST),
        "agent": row.agent,
        "task": row.task,
        "at": int(row.created.timestamp() * 1000),
        "by": Note.By.SHARE,
        "session_id": row.session_id,
        "share": row,
        "untrusted": True,
        "files": row.files,
        "stale": f"{path} changed"[:300] if path else "",
    }
    Note.objects.get_or_create(board=board, key=f"share:{row.pk}", defaults=values)
    boards.trim(board)
    Session.objects.filter(pk=session.pk).update(version=F("version") + 1)


def readable(summary: str) -> str:
    """Strip a summary's markup, which would be escaped on a board."""
    text = _ELEMENT.sub(lambda found: ": ".join(_VALUE.findall(found[1])[:2]), summary)
    text = _TAG.sub(
        lambda found: "" if found[0][1] == "/" else f"{found[1].replace('_', ' ').capitalize()}:",
        text,
    )
    lines = (line.rstrip() for line in unescape(text).splitlines())
    return "\n".join(line for line in lines if line)
