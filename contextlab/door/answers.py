"""Answers that the door gives itself, without Django: problems, health, readiness."""

from __future__ import annotations

import json
from http import HTTPStatus

from sessions.views.web.headers import security_headers

PROBLEM = "application/problem+json"


def problem(status: int, detail: str) -> bytes:
    """A problem as JSON."""
    title = phrase(status)
    return json.dumps(
        {"type": "about:blank", "title": title, "status": status, "detail": detail}
    ).encode()


def phrase(status: int) -> str:
    """The phrase of a status, as RFC 9110 has it; Python 3.11 has an older one of 413."""
    return "Content Too Large" if status == 413 else HTTPStatus(status).phrase


def raw(status: int, kind: str, body: bytes, *more: tuple[str, str]) -> bytes:
    """A whole HTTP/1.1 answer that ends its connection."""
    headers = (
        ("Content-Type", kind),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        ("Connection", "close"),
        *more,
        *security_headers(),
    )
    head = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {status} {phrase(status)}\r\n{head}\r\n".encode("latin-1") + body
