"""API errors: RFC 9457 problems that name the invalid field."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from django.core.exceptions import SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from sessions.access import KEYS_MAY, NotAllowed, note_missed, note_refused
from sessions.actions.archives.packed import UnreadableArchive
from sessions.actions.archives.unpack import Unpacking
from sessions.actions.live.managed import StillReading
from sessions.actions.live.requests.pausing import RETRY_SECONDS, SessionPaused
from sessions.actions.web.apart import NotInTime
from sessions.importers.delivered.delivered import Unacceptable
from sessions.models import Session
from sessions.models.accounts.teams import ROLE_MAY, Right
from sessions.models.erasure.kept import SessionErased
from sessions.models.record.objects import ObjectsAway
from sessions.models.record.values import ContentErased

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
BUSY_SECONDS = 2
"""Retry-After in seconds while the database is busy."""


class Refusal(Exception):
    """An error response; raising it rolls back the request's transaction."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(title)
        self.status, self.title, self.detail, self.field = status, title, detail, field
        self.headers, self.more = dict(headers or {}), dict(more or {})


def problem(
    status: int,
    title: str,
    detail: str,
    *,
    field: str | None = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> HttpResponse:
    """A problem+json response: what was wrong, where, and in `detail` what to do."""
    body: dict[str, Any] = {"type": "about:blank", "title": title, "status": status}
    body["detail"] = detail
    if field is not None:
        body["errors"] = [{"pointer": field, "detail": detail}]
    try:
        encoded = msgspec.json.encode(body | more)
    except UnicodeEncodeError:  # it quotes a lone surrogate
        encoded = json.dumps(body | more).encode()
    return HttpResponse(
        encoded,
        status=status,
        content_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def refused(request: HttpRequest, error: Refusal) -> HttpResponse:
    """The response for a Refusal."""
    return problem(
        error.status,
        error.title,
        error.detail,
        field=error.field,
        headers=error.headers,
        **error.more,
    )


def not_allowed(request: HttpRequest, error: NotAllowed) -> HttpResponse:
    """A 403 response for a missing right, which the team's audit log notes."""
    note_refused(request, error)
    return refused(request, refusal_of(error.right, by_key=error.by_key))


def refusal_of(right: Right, *, by_key: bool) -> Refusal:
    """A 403 refusal that names the roles or scopes required."""
    roles = " or ".join(role for role, rights in ROLE_MAY.items() if right in rights)
    if not by_key:
        text = f"Your role in this team does not include this; it requires {roles}."
        return Refusal(
            403, "Not allowed", f"{text} Ask an owner to change your role under Settings, Members."
        )
    if right in KEYS_MAY:
        text = f"This key lacks the scope {right}."
        if right == "erase":
            how = "`contextlab token create --scope erase --team NAME`"
            return Refusal(403, "Not allowed", f"{text} Create one with {how} on the server.")
        return Refusal(403, "Not allowed", f"{text} Create another with `contextlab token create "
        "--team NAME` or under Settings, Keys.")  # fmt: skip
    text = "API keys cannot do this"
    return Refusal(403, "Not allowed", f"{text}. Sign in to the web pages with the role {roles}.")


def paused(request: HttpRequest, error: SessionPaused) -> HttpResponse:
    """A 423 response to the agent of a paused session."""
    headers = {"Retry-After": str(RETRY_SECONDS)}
    return problem(423, "Paused", str(error), headers=headers)


def missing(request: HttpRequest, error: Exception | None = None) -> HttpResponse:
    """A 404 response; identical for missing objects, other teams' objects and unknown URLs."""
    note_missed(request)
    return problem(
        404,
        "Not found",
        "This key has access to no such object. Check the id and the URL.",
    )


def erased(request: HttpRequest, error: SessionErased) -> HttpResponse:
    """A 410 response for a session of the requester's teams that was erased."""
    return problem(410, "Erased", str(error))


def content_erased(request: HttpRequest, error: ContentErased) -> HttpResponse:
    """A 410 response for content that retention erased."""
    return problem(410, "Content erased", str(error))


def unpacking(request: HttpRequest, error: Unpacking) -> HttpResponse:
    """A 503 response while an archived session is unpacked."""
    detail = f"{error} Retry the request, with the same Idempotency-Key if it has one."
    return problem(503, "Being unpacked", detail, headers={"Retry-After": str(error.seconds)})


def unreadable(request: HttpRequest, error: UnreadableArchive) -> HttpResponse:
    """A 500 response for a session whose archive cannot be read."""
    log.error("%s needs an archive that cannot be read", _name(request))
    return problem(500, "Unreadable archive", f"{error} Restore it from a backup.")


def unacceptable(request: HttpRequest, error: Unacceptable) -> HttpResponse:
    """A 422 response for input that an action refuses, with the field it names."""
    sentence = f"{error.problem[:1].upper()}{error.problem[1:]}".removesuffix(".") + "."
    errors = [{"pointer": error.pointer, "detail": sentence}]
    detail = f"{error.pointer or 'The body'} {error.problem.removesuffix('.')}."
    return problem(422, "Not acceptable", detail, errors=errors)


def _name(request: HttpRequest) -> str:
    """The operation's name; the URL itself may contain an agent's words."""
    return request.resolver_match.view_name if request.resolver_match else "a request"


def busy(request: HttpRequest, error: Exception) -> HttpResponse:
    """A 503 response while the database or object storage is locked, down or restarting."""
    what = "Object storage" if isinstance(error, ObjectsAway) else "The database"
    log.warning("%s is away for %s: %s", what, _name(request), error)
    return problem(
        503,
        "Busy",
        f"{what} is not responding; nothing was stored. Retry the request, with the "
        "same Idempotency-Key if it has one.",
        headers={"Retry-After": str(BUSY_SECONDS)},
    )


def not_in_time(request: HttpRequest, error: NotInTime) -> HttpResponse:
    """A 503 response for content that took too long, or when too much of that is under way."""
    if error.busy:
        detail = "Other long contents are being processed. Retry the request."
    else:
        detail = (
            f"The content took longer than {error.seconds:g} s to process and was stopped; nothing "
            "was stored. Retry once; if it happens again, send shorter messages or blocks."
        )
    return problem(
        503, "Not done in time", detail, headers={"Retry-After": str(math.ceil(error.seconds))}
    )


def still_reading(request: HttpRequest, error: StillReading) -> HttpResponse:
    """A 503 response while the messages that came without a request for a context are read."""
    return problem(
        503,
        "Still reading the session",
        "So many messages came since the last context that one request cannot process them; what "
        "was sent is stored. Retry the request, with the same Idempotency-Key if it has one.",
        headers={"Retry-After": "1"},
    )


def failed(request: HttpRequest, error: Exception) -> HttpResponse:
    """A 500 response. The error's class and place are logged, but not its message, which may be
    content."""
    session = getattr(request, "found_session", None)
    if session is not None and not Session.objects.filter(pk=session.pk, erasing=None).exists():
        return erased(request, SessionErased(done=True))  # it was erased meanwhile
    log.error("%s failed", _name(request), exc_info=error)
    return problem(
        500,
        "Server error",
        "The server failed and nothing was stored. Its log has the details.",
    )


def unwritable(request: HttpRequest, error: UnicodeEncodeError) -> HttpResponse:
    """A 422 response for text that no database can store; what is read was stored by us."""
    if request.method == "GET":
        return failed(request, error)
    detail = "A text has half a surrogate pair, which cannot be stored. Send valid Unicode."
    return problem(422, "Not acceptable", detail)


def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """A 422 response with one entry per field: a JSON pointer into the body, or ?name of the
    query."""
    errors = [{"pointer": _pointer(e["loc"]), "detail": _sentence(e)} for e in error.errors]
    first = errors[0]
    return problem(
        422, "Not acceptable", f"{first['pointer'] or 'body'}: {first['detail']}", errors=errors
    )


def _pointer(loc: tuple[str | int, ...]) -> str:
    source, *path = loc
    if source == "body":  # the first element is our parameter's name
        parts = [str(part).replace("~", "~0").replace("/", "~1") for part in path[1:]]
        return "".join(f"/{part}" for part in parts)
    name = ".".join(str(part) for part in path)
    return {"query": "?", "header": "header ", "path": "path "}.get(str(source), "") + name


def _sentence(error: Mapping[str, Any]) -> str:
    if error["type"] == "missing":
        return "This field is required."
    # Pydantic's type errors name the expected type, never the value sent.
    message = str(error["msg"]).removeprefix("Value error, ")
    return message if message.endswith(".") else f"{message}."


def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error.__cause__, Refusal):  # ninja wraps exceptions raised by our parser
        return refused(request, error.__cause__)
    title = HTTPStatus(error.status_code).phrase
    return problem(error.status_code, title, f"{title}.")


def _unreadable(request: HttpRequest, error: Exception) -> HttpResponse:
    return problem(
        400, "Not readable", "The form is malformed or has too many parts. Check how it is built."
    )


_HANDLERS: dict[type[Exception], Callable[..., HttpResponse]] = {
    Refusal: refused,
    NotAllowed: not_allowed,
    SessionErased: erased,
    ContentErased: content_erased,
    Unpacking: unpacking,
    UnreadableArchive: unreadable,
    Http404: missing,
    Unacceptable: unacceptable,
    OperationalError: busy,
    InterfaceError: busy,
    NotInTime: not_in_time,
    StillReading: still_reading,
    SessionPaused: paused,
    UnicodeEncodeError: unwritable,
    ValidationError: invalid,
    HttpError: _http_error,
    MultiPartParserError: _unreadable,
    SuspiciousOperation: _unreadable,
    Exception: failed,
}


def register(api: NinjaAPI) -> None:
    """Register handlers so that the API answers every error with a problem."""
    for error, handler in _HANDLERS.items():
        api.add_exception_handler(error, handler)
