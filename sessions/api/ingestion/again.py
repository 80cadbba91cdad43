"""Apply a refused request again, once its cause is fixed."""

from __future__ import annotations

import zlib
from datetime import timedelta
from io import BytesIO
from urllib.parse import unquote

import msgspec
from django.core.handlers.wsgi import WSGIRequest
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest
from django.urls import resolve
from django.utils import timezone

from sessions.access import Asker, actor_of
from sessions.actions.accounts import audit
from sessions.actions.ingestion import arrivals
from sessions.models import RefusedRequest, Team

LONGEST = timedelta(minutes=1)
"""How long applying may take; then its process has died, and another may try."""


class CannotApply(ValueError):
    """Why a refused request is not applied, as a sentence."""


def apply_again(request: HttpRequest, row: RefusedRequest) -> RefusedRequest:
    """Send a refused request through the API once more, as the person of `request`.

    It takes effect at most once, by its Idempotency-Key, however often this is tried. If it is
    refused again, the row has the new problem. Raises CannotApply.
    """
    if row.applied is not None:
        raise CannotApply("It was already applied.")
    if not row.body:
        raise CannotApply("Its body was not kept. Send the request again.")
    now = timezone.now()
    free = Q(claimed=None) | Q(claimed__lt=now - LONGEST)
    if not RefusedRequest.objects.filter(free, pk=row.pk, applied=None).update(claimed=now):
        raise CannotApply("It is being applied right now.")
    try:
        status, said = _send(request, row)
        with transaction.atomic():
            _conclude(request, row, status, said)
    finally:
        RefusedRequest.objects.filter(pk=row.pk).update(claimed=None)
    row.refresh_from_db()
    return row


def _send(request: HttpRequest, row: RefusedRequest) -> tuple[int, bytes]:
    # Not more than is kept, so that a page does no more than the refused request itself.
    body = zlib.decompressobj().decompress(row.body, arrivals.BODY_BYTES)
    path, _, query = row.path.partition("?")
    again = WSGIRequest(
        {
            "REQUEST_METHOD": row.method,
            "PATH_INFO": unquote(path).encode().decode("latin-1"),
            "QUERY_STRING": query,
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_IDEMPOTENCY_KEY": f"refused-{row.pk}",
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "REMOTE_ADDR": request.META.get("REMOTE_ADDR", ""),
            "wsgi.input": BytesIO(body),
            "wsgi.url_scheme": "http",
        }
    )
    again.user = request.user
    asker = getattr(request, "auth", None)
    # Only the team that it was sent to: another may have a session with the same name.
    team = Team.objects.get(pk=row.team_id)
    again.asker = Asker((team,), asker.key if isinstance(asker, Asker) else None)  # type: ignore[attr-defined]
    found = resolve(again.path_info)
    answer = found.func(again, *found.args, **found.kwargs)
    return answer.status_code, answer.content


def _conclude(request: HttpRequest, row: RefusedRequest, status: int, said: bytes) -> None:
    rows = RefusedRequest.objects.filter(pk=row.pk)
    if status < 400:
        rows.update(applied=timezone.now(), body=b"", kept="It was applied.")
        audit.note(
            row.team, actor_of(request), "refused_request.applied", row.session, kind=row.kind
        )
        return
    problem = msgspec.json.decode(said)
    errors = problem.get("errors") or [{}]
    rows.update(
        status=status,
        problem=arrivals.storable(problem.get("title", ""), 200),
        detail=arrivals.masked(problem.get("detail", ""), row.team_id),
        field=arrivals.storable(errors[0].get("pointer", ""), 300),
        last=timezone.now(),
    )


def erase(request: HttpRequest, row: RefusedRequest) -> None:
    """Delete a refused request with its body."""
    with transaction.atomic():
        audit.note(
            row.team, actor_of(request), "refused_request.erased", row.session, kind=row.kind
        )
        row.delete()
