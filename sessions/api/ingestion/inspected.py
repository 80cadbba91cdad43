"""Note every request that sends something: counted if accepted, kept if refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse, RawPostDataException
from ninja.operation import Operation

from sessions.access import Asker
from sessions.actions.ingestion import arrivals
from sessions.actions.operations import quotas
from sessions.models import Session, Team

KINDS = {
    ("POST", "messages"): "messages",
    ("POST", "steps"): "step",
    ("POST", "calls"): "usage",
    ("PUT", "session"): "session",
    ("POST", "imports"): "import",
}
"""Operations that send something, by method and name, and what they are called."""

NOT_KEPT = (401, 402, 403, 404, 410, 429, 503, 507)
"""Refusals that the body did not cause, or that the client repeats itself; and what is sent of an
erased session."""

SENT_WHOLE = ("/after", "/recorded_revision")
"""Fields of the rest of a history; where it is refused, the client sends the whole history."""


def inspect_arrivals(run: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorate operations ("view" mode) to note what they are sent."""
    operation: Operation = run.__self__  # type: ignore[attr-defined]
    kind = next(
        (KINDS[one, operation.url_name] for one in operation.methods
         if (one, operation.url_name) in KINDS),
        None,
    )  # fmt: skip
    if kind is None:
        return run

    @wraps(run)
    def inspected(request: HttpRequest, **given: Any) -> HttpResponse:
        response = run(request, **given)
        asker = getattr(request, "auth", None)
        # A request that is applied again was noted when it came.
        if isinstance(asker, Asker) and asker.teams and not hasattr(request, "asker"):
            _note(request, asker, kind, given.get("session_id", ""), response)
        return response

    return inspected


def _note(
    request: HttpRequest, asker: Asker, kind: str, named: str, response: HttpResponse
) -> None:
    team, key = asker.teams[0], asker.key.prefix if asker.key else ""
    size = int(request.META.get("CONTENT_LENGTH") or 0)
    if response.status_code < 400 or response.status_code in (402, 423):
        found: Session | None = getattr(request, "found_session", None)
        if not named and found is None:  # an import: its job says what it found
            return
        value = getattr(request, "json_value", None)
        sent = value.get("messages") if isinstance(value, dict) else None
        messages = sent if isinstance(sent, list) else []
        if isinstance(value, dict):
            quotas.spend(found.team_id if found else team.pk, value.get("usage"))
        arrivals.note_accepted(
            found.team_id if found else team.pk,
            found.pk if found else named,
            key,
            kind,
            form_of(messages),
            len(messages),
            size,
        )
    elif response.status_code not in NOT_KEPT:
        _note_refused(request, team, key, kind, named, size, response)


def form_of(messages: list[Any]) -> str:
    """The format of a batch, as far as its last message shows it."""
    last = messages[-1] if messages and isinstance(messages[-1], dict) else {}
    if last.get("role") == "tool" or "tool_calls" in last:
        return "openai"
    content = last.get("content")
    if isinstance(content, list) and content and isinstance(content[-1], dict):
        known = ("tool_use", "tool_result", "thinking", "redacted_thinking")
        if any(isinstance(one, dict) and one.get("type") in known for one in content[:3]):
            return "anthropic"
    return "text" if content is not None else ""


def _note_refused(
    request: HttpRequest,
    team: Team,
    key: str,
    kind: str,
    named: str,
    size: int,
    response: HttpResponse,
) -> None:
    said = msgspec.json.decode(response.content)
    errors = said.get("errors") or [{}]
    if errors[0].get("pointer") in SENT_WHOLE:
        return
    try:
        body = request.body
    except RawPostDataException:  # an upload, which was read as a form
        body = b""
    why = ""
    if not body:
        why = "It had none." if not size else "Uploads are not kept."
    elif len(body) > arrivals.BODY_BYTES:
        why = f"It was larger than {arrivals.BODY_BYTES >> 20} MB."
    path = request.get_full_path()
    if len(path) > 1000:
        why = "Its address was too long."
    which = arrivals.RefusalKey(
        team.pk,
        key,
        kind,
        request.method or "",
        arrivals.storable(path, 1000),
        arrivals.storable(named, 300),
        response.status_code,
        arrivals.storable(said.get("title", ""), 200),
        arrivals.storable(errors[0].get("pointer", ""), 300),
        arrivals.digest_of(body) if body else "",
    )
    arrivals.note_refused(which, said["detail"], size, b"" if why else body, why)
