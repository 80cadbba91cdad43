"""A notification as JSON, as a Slack message and as an email."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from sessions.actions.notifications.events import fact_lines, title_of
from sessions.actions.web.addresses import base_url
from sessions.models import Notification

SECRET_PREFIX = "whsec_"  # noqa: S105 (not a secret)
"""Of a webhook's secret, as in the Standard Webhooks specification."""


def page_url(row: Notification) -> str:
    """The address of the page that shows more."""
    return f"{base_url()}{row.path}"


def as_json(row: Notification) -> bytes:
    """The body of a webhook's request."""
    return json.dumps(
        {
            "id": str(row.pk),
            "event": row.event,
            "at": row.created.isoformat(),
            "team": row.team.slug,
            "title": row.title,
            "facts": row.facts,
            "url": page_url(row),
        }
    ).encode()


def as_slack(row: Notification) -> bytes:
    """A message with blocks, for Slack and what is compatible with it."""
    lines = "\n".join(f"*{label}:* {_escaped(text)}" for label, text in fact_lines(row.facts))
    about = f"{_escaped(row.team.name)} · {title_of(row.event)}"
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": row.title[:150]}},
        {"type": "section", "text": {"type": "mrkdwn", "text": (lines or about)[:3000]}},
        {
            "type": "context",
            "elements": [{"type": "mrkdwn", "text": f"{about} · <{page_url(row)}|Open>"}],
        },
    ]
    return json.dumps({"text": _escaped(row.title), "blocks": blocks}).encode()


def _escaped(text: str) -> str:
    """Slack's three control characters."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def subject(row: Notification) -> str:
    """The subject of an email, on one line."""
    return " ".join(f"[ContextLab] {row.title}".split())[:200]


def as_text(row: Notification) -> str:
    """The text of an email."""
    lines = [row.title, ""]
    lines += [f"{label}: {text}" for label, text in fact_lines(row.facts)]
    lines += ["", page_url(row), "", f"Team {row.team.name}. Rules: Settings, Notifications."]
    return "\n".join(lines)


def signature_headers(secret: str, name: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of a signed request, as in the Standard Webhooks specification.

    The signature covers id, time and body, so that neither can be replaced, and an old request
    sent again is recognized.
    """
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = hmac.new(key, f"{name}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": name,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }
