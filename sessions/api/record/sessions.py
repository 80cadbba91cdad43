"""Sessions: create, update, list, and window usage."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Body, Query, Router

from sessions.access import find_session, session_of, team_of, team_to, teams_of
from sessions.actions.live.answer import standing_of
from sessions.actions.live.live_sessions import put_session, session_fields
from sessions.api.record import shapes
from sessions.api.web.exchange import json_answer, value_of
from sessions.api.web.problems import Refusal
from sessions.models import Session
from sessions.models.policies.policy_documents import effective
from sessions.models.record.demo_data import listed
from sessions.models.search.session_names import with_name

ROWS_AT_ONCE = 200
LONGEST_ID = 300
NAMED_UNKNOWN = 10
LONGEST_NAMED = 80

router = Router(tags=["Sessions"])


def describe_session(request: HttpRequest, session: Session) -> dict[str, Any]:
    """A session as JSON."""
    return {
        "id": str(session.pk),
        "external_id": session.external_id,
        "agent": session.agent,
        "model": session.model,
        "title": session.title,
        "task": session.task,
        "policy": str(session.policy_version) if session.policy_version else None,
        "policy_from": session.policy_from,
        "window": session.window_taken,
        "window_assumed": session.window is None,
        "steps": session.step_count,
        "messages": session.message_count,
        "turns": session.turn_count,
        "tokens": {
            "used": session.used_tokens,
            "peak": session.peak_tokens,
            "ratio": session.token_ratio,
            "learned_ratio": session.learned_ratio,
            "basis": session.token_basis,
        },
        "budget": asdict(standing_of(session)),
        "outcome": session.outcome,
        "running": session.live,
        "paused": session.paused,
        "url": request.build_absolute_uri(reverse("replay", args=[session.pk])),
        "demo": session.demo,
        "created": session.created.isoformat(),
        "version": session.version,
    }


_DEMO = Query(False, description="demo sessions too, where a team has others")


@router.get("sessions", response=shapes.SessionList, url_name="sessions")
def sessions(
    request: HttpRequest,
    cursor: str = Query("", description="`next` of the previous page"),
    limit: int = Query(50, ge=1, le=ROWS_AT_ONCE),
    q: str = Query("", max_length=200, description="part of a title, id, agent or model"),
    demo: bool = _DEMO,
) -> HttpResponse:
    """List sessions, newest first.

    Pages are stable: sessions added later appear before the first page. Demo sessions are left out
    beside real ones, unless `demo` asks for them.
    """
    teams = teams_of(request)
    rows: QuerySet[Session] = Session.objects.filter(
        listed(OuterRef("team"), demo=demo), team__in=teams
    ).select_related("policy_version__policy")
    if cursor:
        created, last = _place(cursor)
        rows = rows.filter(Q(created__lt=created) | Q(created=created, pk__lt=last))
    if q:
        rows = with_name(rows, [team.pk for team in teams], q, limit=limit)
    found = list(rows.order_by("-created", "-pk")[: limit + 1])
    shown, more = found[:limit], len(found) > limit
    return json_answer(
        {
            "sessions": [describe_session(request, row) for row in shown],
            "next": _cursor(shown[-1]) if more else None,
        }
    )


def _cursor(row: Session) -> str:
    place = json.dumps([row.created.isoformat(), row.pk.hex])
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _place(cursor: str) -> tuple[datetime, UUID]:
    try:
        text = base64.urlsafe_b64decode(cursor.encode() + b"==")
        created, row = json.loads(text)
        at = datetime.fromisoformat(created)
        if at.tzinfo is None:
            raise ValueError
        return at, UUID(row)
    except (ValueError, TypeError, AttributeError, binascii.Error, RecursionError):
        raise Refusal(
            422, "No such cursor", "Use `next` of the previous page.", field="?cursor"
        ) from None


@router.get("sessions/{path:session_id}/budget", response=shapes.WindowOut, url_name="budget")
def budget(request: HttpRequest, session_id: str) -> HttpResponse:
    """Get the fill of the window, with the recommended delay before the next call."""
    return json_answer(asdict(standing_of(session_of(request, session_id))))


@router.get(
    "sessions/{path:session_id}/policy", response=shapes.SessionPolicy, url_name="session_policy"
)
def policy(request: HttpRequest, session_id: str) -> HttpResponse:
    """Get the settings of a session, each with its source.

    Precedence: request, policy, preset, environment, default. Settings do not change after the
    session begins.
    """
    session = session_of(request, session_id)
    return json_answer(
        {
            "policy": str(session.policy_version) if session.policy_version else None,
            "policy_from": session.policy_from,
            "document": session.policy_document,
            "values": [
                {
                    "path": one.field.path,
                    "strategy": one.strategy,
                    "name": one.field.name,
                    "value": one.field.value,
                    "source": one.source,
                    "help": one.field.help,
                }
                for one in effective(session)
            ],
        }
    )


last = Router(tags=["Sessions"])
"""Routes that end in a session id, which may contain slashes; they must come last."""


@last.get("sessions/{path:session_id}", response=shapes.SessionOut, url_name="session")
def session(request: HttpRequest, session_id: str) -> HttpResponse:
    """Get a session."""
    return json_answer(describe_session(request, session_of(request, session_id, packed=True)))


@last.put(
    "sessions/{path:session_id}",
    response={200: shapes.SessionPut, 201: shapes.SessionPut},
    url_name="session",
)
def put(
    request: HttpRequest,
    session_id: str,
    wanted: shapes.SessionIn = Body(None),
) -> HttpResponse:
    """Create a session under your own id (201), or update it (200).

    All fields are optional. The policy cannot change once there are messages. Idempotent. `notes`
    lists unknown fields.
    """
    fields = session_fields(value_of(request))
    made, created = put_session(team_to(request, "write"), own_id(request, session_id), fields)
    answer = {**describe_session(request, made), "notes": _notes(fields.unknown)}
    return json_answer(answer, 201 if created else 200)


def _notes(unknown: Sequence[str]) -> list[str]:
    names = [json.dumps(name[:LONGEST_NAMED]) for name in unknown[:NAMED_UNKNOWN]]
    notes = [f"{name} is not a session field and was added to metadata" for name in names]
    if len(unknown) > NAMED_UNKNOWN:
        notes.append(f"{len(unknown) - NAMED_UNKNOWN} more unknown fields were added to metadata")
    return notes


def own_id(request: HttpRequest, name: str) -> str:
    """The external id for a path: that of an existing session, else the path itself. Raises
    Refusal."""
    found = find_session(request, name)
    if found is not None and found.team_id == team_of(request).pk:
        return found.external_id
    if not name.isprintable() or len(name) > LONGEST_ID:
        raise Refusal(
            422,
            "Invalid id",
            f"An id must have 1 to {LONGEST_ID} printable characters. Shorten it or remove "
            "other characters.",
            field="path session_id",
        )
    return name
