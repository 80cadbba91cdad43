"""Exchange of an API request: authentication, body parsing, and responses."""

from __future__ import annotations

import json
import math
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja.parser import Parser
from ninja.utils import check_csrf

from sessions.access import SAFE, Asker, NotAllowed, teams_of
from sessions.actions.accounts.keys import check_key
from sessions.actions.accounts.second_factor import must_set_up
from sessions.actions.operations.quotas import OverQuota, admit
from sessions.api.web.problems import Refusal
from sessions.api.web.sizes import OversizedBody, check_blocks, check_values
from sessions.importers import decoded

CHALLENGE = 'Bearer realm="ContextLab"'


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
