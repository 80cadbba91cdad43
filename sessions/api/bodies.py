"""Bodies of requests: what kinds we take, and JSON read so that hostile bytes do no harm."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser

from sessions.api.problems import Refusal
from sessions.importers import decoded


class CarefulParser(Parser):
    """Reads JSON bodies; raises Refusal 400 for no JSON, 415 for another kind, 422 for depth."""

    def parse_body(self, request: HttpRequest) -> Any:
        """The value of a body, exact to the last NUL and lone surrogate."""
        expect_plain(request)
        kind = request.content_type or "application/json"
        if kind != "application/json" and not kind.endswith("+json"):
            raise Refusal(
                415,
                "Not JSON",
                "The body must be JSON, and say so: send `Content-Type: application/json`.",
            )
        try:
            value = decoded.exact(request.body)
        except decoded.Unreadable as error:
            raise Refusal(400, "Not JSON", f"The body is no JSON: {error}.") from None
        if decoded.depth(value) > decoded.MAX_DEPTH:
            raise Refusal(
                422,
                "Nested too deep",
                f"Lists and objects may be nested {decoded.MAX_DEPTH} levels deep.",
                field="",
            )
        request.json_value = value  # type: ignore[attr-defined]
        return value


def value_of(request: HttpRequest) -> Any:
    """The body as it came, once its form was checked; an empty object where there was none."""
    return getattr(request, "json_value", {})


def expect_plain(request: HttpRequest) -> None:
    """Refuses a packed body: what it unpacks to is not known before it is unpacked."""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Refusal(415, "Packed body", "Send the body as it is, without Content-Encoding.")
