"""Operations that take effect once per Idempotency-Key and repeat their response."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, RawPostDataException

from sessions.access import session_of, team_to
from sessions.actions.live.folds import ready, serving
from sessions.actions.web.once import AnotherRequest, Once
from sessions.api.web.exchange import json_bytes
from sessions.api.web.problems import Refusal
from sessions.models import Team

LONGEST_KEY = 255
AGAIN = {"Idempotent-Replay": "true"}

Operation = Callable[..., HttpResponse]


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
