"""Errors as the API says them: RFC 9457 problems that name the field."""

from __future__ import annotations

from typing import Any

import msgspec
from django.http import HttpResponse


def problem(
    status: int, title: str, detail: str, *, field: str | None = None, **more: Any
) -> HttpResponse:
    """A problem+json answer: what was wrong, where, and in `detail` what to do."""
    body: dict[str, Any] = {"type": "about:blank", "title": title, "status": status}
    body["detail"] = detail
    if field is not None:
        body["errors"] = [{"pointer": field, "detail": detail}]
    return HttpResponse(
        msgspec.json.encode(body | more), status=status, content_type="application/problem+json"
    )
