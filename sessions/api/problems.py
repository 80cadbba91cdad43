"""Errors as the API says them: RFC 9457 problems that name the field."""

from __future__ import annotations

import logging
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

from sessions.importers.delivered import Unacceptable

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
BUSY_SECONDS = 2
"""What Retry-After says when the database has no time for us."""


class Refusal(Exception):
    """A request that gets an error for an answer; whatever it had begun to write is undone."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(title)
        self.status, self.title, self.detail, self.field = status, title, detail, field
        self.headers = dict(headers or {})


def problem(
    status: int,
    title: str,
    detail: str,
    *,
    field: str | None = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> HttpResponse:
    """A problem+json answer: what was wrong, where, and in `detail` what to do."""
    body: dict[str, Any] = {"type": "about:blank", "title": title, "status": status}
    body["detail"] = detail
    if field is not None:
        body["errors"] = [{"pointer": field, "detail": detail}]
    return HttpResponse(
        msgspec.json.encode(body | more),
        status=status,
        content_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def refused(request: HttpRequest, error: Refusal) -> HttpResponse:
    """The answer that a Refusal stands for."""
    return problem(
        error.status, error.title, error.detail, field=error.field, headers=error.headers
    )


def missing(request: HttpRequest, error: Exception | None = None) -> HttpResponse:
    """404, the same for what never was, what is another team's, and what has no such address."""
    return problem(
        404,
        "Not found",
        "There is nothing of that name that this key may see. Look at the id and at the address.",
    )


def unacceptable(request: HttpRequest, error: Unacceptable) -> HttpResponse:
    """422 for input that an action refuses; it says where itself."""
    sentence = f"{error.problem[:1].upper()}{error.problem[1:]}".removesuffix(".") + "."
    errors = [{"pointer": error.pointer, "detail": sentence}]
    detail = f"{error.pointer or 'The body'} {error.problem.removesuffix('.')}."
    return problem(422, "Not acceptable", detail, errors=errors)


def _name(request: HttpRequest) -> str:
    """The name of the operation: the address itself may hold an agent's own words."""
    return request.resolver_match.view_name if request.resolver_match else "a request"


def busy(request: HttpRequest, error: Exception) -> HttpResponse:
    """503: the database is locked, gone or restarting; the same request may work soon."""
    log.warning("no database for %s: %s", _name(request), type(error).__name__)
    return problem(
        503,
        "Busy",
        "The database does not answer at the moment, and nothing was stored. Send the request "
        "again; with the same Idempotency-Key it is done once.",
        headers={"Retry-After": str(BUSY_SECONDS)},
    )


def failed(request: HttpRequest, error: Exception) -> HttpResponse:
    """500: our fault. The log has the class of the error and its place, never its text."""
    log.error("%s failed", _name(request), exc_info=error)
    return problem(
        500,
        "Our fault",
        "The server could not do this, and nothing was stored. Its log says where it failed.",
    )


def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """422 with one entry per field: a JSON pointer into the body, or ?name of the query."""
    errors = [{"pointer": _pointer(e["loc"]), "detail": _sentence(e)} for e in error.errors]
    first = errors[0]
    return problem(
        422, "Not acceptable", f"{first['pointer'] or 'body'}: {first['detail']}", errors=errors
    )


def _pointer(loc: tuple[str | int, ...]) -> str:
    source, *path = loc
    if source == "body":  # whose first part is the name of our parameter
        parts = [str(part).replace("~", "~0").replace("/", "~1") for part in path[1:]]
        return "".join(f"/{part}" for part in parts)
    name = ".".join(str(part) for part in path)
    return {"query": "?", "header": "header ", "path": "path "}.get(str(source), "") + name


def _sentence(error: Mapping[str, Any]) -> str:
    if error["type"] == "missing":
        return "This must be given."
    # What pydantic says of a type names the type that is wanted, and never what was sent.
    message = str(error["msg"]).removeprefix("Value error, ")
    return message if message.endswith(".") else f"{message}."


def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error.__cause__, Refusal):  # ninja wraps what our parser raises
        return refused(request, error.__cause__)
    title = HTTPStatus(error.status_code).phrase
    return problem(error.status_code, title, f"{title}.")


def _unreadable(request: HttpRequest, error: Exception) -> HttpResponse:
    return problem(
        400, "Not readable", "The form is broken, or has too many parts. Look at how it is made."
    )


_HANDLERS: dict[type[Exception], Callable[..., HttpResponse]] = {
    Refusal: refused,
    Http404: missing,
    Unacceptable: unacceptable,
    OperationalError: busy,
    InterfaceError: busy,
    ValidationError: invalid,
    HttpError: _http_error,
    MultiPartParserError: _unreadable,
    SuspiciousOperation: _unreadable,
    Exception: failed,
}


def register(api: NinjaAPI) -> None:
    """Make an API answer every error with a problem."""
    for error, handler in _HANDLERS.items():
        api.add_exception_handler(error, handler)
