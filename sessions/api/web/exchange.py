"""Exchange of an API request: authentication, body parsing, and idempotent responses."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, RawPostDataException
from ninja.parser import Parser
from ninja.utils import check_csrf

from sessions.access import SAFE, Asker, NotAllowed, session_of, team_to, teams_of
from sessions.actions.accounts.keys import check_key
from sessions.actions.accounts.second_factor import must_set_up
from sessions.actions.live.folds import ready, serving
from sessions.actions.operations.quotas import OverQuota, admit
from sessions.actions.web.once import AnotherRequest, Once
from sessions.api.web.problems import Refusal
from sessions.api.web.sizes import OversizedBody, check_blocks, check_values
from sessions.importers import decoded
from sessions.models import Team

CHALLENGE = 'Bearer realm="ContextLab"'
LONGEST_KEY = 255
AGAIN = {"Idempotent-Replay": "true"}

Operation = Callable[..., HttpResponse]


# Authentication


class KeyOrPerson:
    """Authenticate API requests; raises Refusal 401 or 403."""

    openapi_security_schema = {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "clk_…",
        "description": "A key of a team; create one with `contextlab token create --team NAME`.",
    }

    def __call__(self, request: HttpRequest) -> Asker:
        asker: Asker | None = getattr(request, "asker", None)
        if asker is not None:  # a refused request that is applied again (api/ingestion/again)
            return asker
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        # Other schemes belong to a proxy in front.
        known = scheme.lower() == "bearer"
        asker = _with_key(request, token.strip()) if known else _in_browser(request)
        if request.method not in SAFE and asker.key and "write" not in asker.key.scopes:
            request.auth = asker  # type: ignore[attr-defined]
            raise NotAllowed(asker.key.team, "write", by_key=True)
        return asker


def _with_key(request: HttpRequest, token: str) -> Asker:
    key = check_key(token)
    if key is None:
        raise Refusal(
            401,
            "Invalid key",
            "The key is unknown, revoked or expired. Create one with `contextlab token create "
            "--team NAME`.",
            headers={"WWW-Authenticate": f'{CHALLENGE}, error="invalid_token"'},
        )
    try:
        # What is too much must remain erasable.
        erases = request.method == "DELETE" or request.path_info.endswith("/erasures")
        admit(key.team_id, stores=request.method not in SAFE and not erases)
    except OverQuota as over:
        raise _over(over) from None
    return Asker((key.team,), key)


def _over(over: OverQuota) -> Refusal:
    """507 for storage, 429 for the others, with the quota, its limit and when it resets."""
    until = over.resets.isoformat() if over.resets else None
    how = f"It resets at {until}." if until else "Erase sessions, or ask the operator for more."
    return Refusal(
        429 if until else 507,
        "Quota used up",
        f"{over} {how}",
        headers={"Retry-After": str(math.ceil(over.seconds))} if until else None,
        more={"quota": over.quota, "limit": over.limit, "used": over.used, "resets": until},
    )


def _in_browser(request: HttpRequest) -> Asker:
    if not request.user.is_authenticated:
        raise Refusal(
            401,
            "Key required",
            "Send `Authorization: Bearer clk_…`. Create a key with `contextlab token create "
            "--team NAME`.",
            headers={"WWW-Authenticate": CHALLENGE},
        )
    if must_set_up(request.user.pk):
        raise Refusal(
            403,
            "Second factor required",
            "A team of yours requires a second factor. Set it up under Your account.",
        )
    if request.method not in SAFE and check_csrf(request) is not None:
        raise Refusal(
            403,
            "CSRF token missing",
            "A request with a browser cookie needs the page's X-CSRFToken. Reload the page; "
            "programs should send a key instead.",
        )
    return Asker(tuple(teams_of(request)))


# What the body says


class CarefulParser(Parser):
    """Parse JSON bodies; raises Refusal 400 for invalid JSON, 413 for too many values or blocks,
    415 for other types, 422 for excessive depth."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Parse the body, preserving NUL and lone surrogates."""
        expect_plain(request)
        kind = request.content_type or "application/json"
        if kind != "application/json" and not kind.endswith("+json"):
            raise Refusal(
                415,
                "Not JSON",
                "The body must be JSON. Send it with `Content-Type: application/json`.",
            )
        if (request.content_params or {}).get("charset", "utf-8").lower() not in ("utf-8", "utf8"):
            raise Refusal(415, "Not UTF-8", "JSON must be UTF-8. Send it without a charset.")
        try:
            check_values(request.body)
            value = decoded.exact(request.body)
            check_blocks(value)
        except OversizedBody as error:
            raise Refusal(413, "Too much at once", str(error), field=error.pointer) from None
        except decoded.Unreadable as error:
            raise Refusal(
                400,
                "Not JSON",
                f"The body is not valid JSON: {error}. Correct it and send it again.",
            ) from None
        if decoded.depth(value) > decoded.MAX_DEPTH:
            raise Refusal(
                422,
                "Nested too deeply",
                f"Lists and objects can be nested at most {decoded.MAX_DEPTH} levels deep. "
                "Flatten the body.",
                field="",
            )
        request.json_value = value  # type: ignore[attr-defined]
        return value


def value_of(request: HttpRequest) -> Any:
    """The parsed body as received; an empty object without a body."""
    return getattr(request, "json_value", {})


def expect_plain(request: HttpRequest) -> None:
    """Refuse compressed bodies, because their decompressed size is unknown."""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Refusal(
            415,
            "Compressed body",
            "Compressed bodies are not supported. Send the body without Content-Encoding.",
        )


# The answer


def json_answer(
    body: Any, status: int = 200, headers: dict[str, str] | None = None
) -> HttpResponse:
    """A JSON response that caches must not store.

    Escapes non-ASCII characters, because only then can JSON carry lone surrogates.
    """
    return json_bytes(json.dumps(body, separators=(",", ":")).encode(), status, headers)


def json_bytes(
    data: bytes, status: int = 200, headers: dict[str, str] | None = None
) -> HttpResponse:
    """A response with a JSON text that caches must not store."""
    return HttpResponse(
        data,
        status=status,
        content_type="application/json",
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def bytes_answer(data: bytes, name: str, headers: dict[str, str] | None = None) -> HttpResponse:
    """A response with bytes to save as a file, which no browser renders and no cache stores."""
    return HttpResponse(
        data,
        content_type="application/octet-stream",
        headers={
            "Cache-Control": "no-store",
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
            **(headers or {}),
        },
    )


def once_of(request: HttpRequest) -> Once | None:
    """The request's Idempotency-Key with a digest of the request; None without one. Raises
    Refusal."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not (0 < len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()):
        raise Refusal(
            422,
            "Invalid Idempotency-Key",
            f"It must have 1 to {LONGEST_KEY} printable ASCII characters. Use a UUID, for example.",
            field="header Idempotency-Key",
        )
    # Include the user: two people who choose the same key must not get each other's response.
    who = "" if request.user.is_anonymous else f" {request.user.pk}"
    said = hashlib.sha256(f"{request.method} {request.get_full_path()}{who}\n".encode())
    try:
        said.update(request.body)
    except RawPostDataException:  # a form that was already read for its CSRF token
        raise Refusal(
            422,
            "Idempotency-Key not supported here",
            "Forms sent by a browser cannot have one. Omit the header.",
            field="header Idempotency-Key",
        ) from None
    return Once(key, said.hexdigest())


def done_once(operation: Operation) -> Operation:
    """Decorate a writing operation to take effect once per Idempotency-Key and repeat its response.

    The response is stored in the transaction of the operation; refusals are not stored. A stored
    response is returned only to those who may still perform the operation in that team.
    """

    @wraps(operation)
    def wrapped(request: HttpRequest, **given: Any) -> HttpResponse:
        once = once_of(request)
        if once is None:
            return operation(request, **given)
        team = _concerned(request, given)
        try:
            with transaction.atomic():
                return _again(once, team) or _kept(request, once, team, operation(request, **given))
        except IntegrityError:
            # A concurrent request with this key was faster, or the error is unrelated to keys.
            known = _again(once, team)
            if known is None:
                raise
            return known

    # Resolve annotations in the operation's module, because ninja would look in this one.
    wrapped.__signature__ = inspect.signature(operation, eval_str=True)  # type: ignore[attr-defined]
    return wrapped


def fold_ready(operation: Operation) -> Operation:
    """Decorate an operation on a managed run to prepare its fold before a transaction begins.

    Apply outside `done_once`: inside, its transaction would block others while the fold is built,
    and could deadlock with another holder of the fold.
    """

    @wraps(operation)
    def wrapped(request: HttpRequest, **given: Any) -> HttpResponse:
        session = session_of(request, given["session_id"], "write")
        run = serving(session)
        if run is None:
            return operation(request, **given)
        with ready(session, run):
            return operation(request, **given)

    return wrapped


def _concerned(request: HttpRequest, given: dict[str, Any]) -> Team:
    named = given.get("session_id")
    if named is None:
        return team_to(request, "write")
    return session_of(request, named, "write").team


def _again(once: Once, team: Team) -> HttpResponse | None:
    try:
        known = once.answered(team)
    except AnotherRequest as error:
        raise another_request(error) from None
    return json_bytes(bytes(known.body), known.status, AGAIN) if known else None


def _kept(request: HttpRequest, once: Once, team: Team, response: HttpResponse) -> HttpResponse:
    about = getattr(request, "found_session", None)
    said = json.loads(response.content)
    response.content = once.keep(
        team, response.status_code, said, None if about is None else about.pk
    )
    return response


def another_request(error: AnotherRequest) -> Refusal:
    """A 422 refusal for a key that was used for a different request."""
    return Refusal(422, "Different request", str(error), field="header Idempotency-Key")
