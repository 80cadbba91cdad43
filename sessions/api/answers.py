"""Answers of the API: JSON to the last NUL and lone surrogate, done once however often asked."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, RawPostDataException

from sessions.actions.advance import serving
from sessions.actions.folds import ready
from sessions.actions.once import AnotherRequest, Once
from sessions.api.access import session_of, team_to
from sessions.api.problems import Refusal
from sessions.models import Team

LONGEST_KEY = 255
AGAIN = {"Idempotent-Replay": "true"}

Operation = Callable[..., HttpResponse]


def told(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> HttpResponse:
    """A JSON answer, which nobody keeps on the way.

    Escapes what is not ASCII: of all encoders only those that do so carry lone surrogates.
    """
    return _json(json.dumps(body, separators=(",", ":")).encode(), status, headers)


def _json(data: bytes, status: int, headers: dict[str, str] | None = None) -> HttpResponse:
    return HttpResponse(
        data,
        status=status,
        content_type="application/json",
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def once_of(request: HttpRequest) -> Once | None:
    """The request's Idempotency-Key with what it is sent with; None without one. Raises Refusal."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not (0 < len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()):
        raise Refusal(
            422,
            "No Idempotency-Key",
            f"It must have 1 to {LONGEST_KEY} printable ASCII characters, such as a UUID.",
            field="header Idempotency-Key",
        )
    # Two people who chose the same key ask for two things: neither gets the other's answer.
    who = "" if request.user.is_anonymous else f" {request.user.pk}"
    said = hashlib.sha256(f"{request.method} {request.get_full_path()}{who}\n".encode())
    try:
        said.update(request.body)
    except RawPostDataException:  # a form that was read already, to find the page's token
        raise Refusal(
            422,
            "No Idempotency-Key here",
            "A form from a browser cannot have one. Leave it out.",
            field="header Idempotency-Key",
        ) from None
    return Once(key, said.hexdigest())


def done_once(operation: Operation) -> Operation:
    """Makes an operation that writes do so once per Idempotency-Key, and answer the same again.

    Its answer is kept in the transaction of what it does; what is refused is not kept. An answer
    that was kept is given only to who may still do it, in the team of the session it names.
    """

    @wraps(operation)
    def wrapped(request: HttpRequest, **given: Any) -> HttpResponse:
        once = once_of(request)
        if once is None:
            return operation(request, **given)
        team = _concerned(request, given)
        try:
            with transaction.atomic():
                return _again(once, team) or _kept(once, team, operation(request, **given))
        except IntegrityError:
            # Another request of this key was faster, or it has nothing to do with keys.
            known = _again(once, team)
            if known is None:
                raise
            return known

    # Names in annotations are those of the operation's module, which ninja would not look in.
    wrapped.__signature__ = inspect.signature(operation, eval_str=True)  # type: ignore[attr-defined]
    return wrapped


def fold_ready(operation: Operation) -> Operation:
    """Makes an operation that changes a served run have its fold before a transaction begins.

    Goes around `done_once`, whose transaction would lock the others out while the fold is made
    from nothing, and would wait for who has it and wants to write.
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
    return _json(bytes(known.body), known.status, AGAIN) if known else None


def _kept(once: Once, team: Team, response: HttpResponse) -> HttpResponse:
    kept = once.keep(team, response.status_code, json.loads(response.content))
    response.content = bytes(kept.body)
    return response


def another_request(error: AnotherRequest) -> Refusal:
    """422 for a key that was used for something else."""
    return Refusal(422, "Another request", str(error), field="header Idempotency-Key")
