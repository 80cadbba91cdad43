"""Pause and resume a live agent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router, Schema
from pydantic import Field, StrictStr

from sessions.access import actor_of, session_of
from sessions.actions.accounts.audit import Actor
from sessions.actions.live.requests import pausing
from sessions.actions.live.requests.pausing import (
    REASON_CHARS,
    RETRY_SECONDS,
    NotPausable,
    paused_text,
)
from sessions.api.live.shapes import DeliveredOut
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once
from sessions.api.web.problems import Refusal, problem
from sessions.api.web.shapes import Problem
from sessions.models import Session

router = Router(tags=["Context"])


class PauseIn(Schema):
    """Why a person pauses or resumes the session; the audit log keeps it."""

    reason: Annotated[StrictStr, Field(min_length=1, max_length=REASON_CHARS)]


class PauseOut(Schema):
    """Who paused a session, why, and since when (ISO 8601)."""

    by: str
    reason: str
    at: str


class PausedSessionOut(Schema):
    """A session; `paused` is null if it may go on."""

    session: str
    paused: PauseOut | None


class PausedOut(Problem):
    """A paused session, and what the append did."""

    appended: DeliveredOut | None


def paused(session: Session, **more: Any) -> HttpResponse:
    """The 423 response to the agent of a paused session."""
    headers = {"Retry-After": str(RETRY_SECONDS)}
    return problem(423, "Paused", paused_text(session), headers=headers, **more)


def _answer(session: Session) -> HttpResponse:
    return json_answer({"session": session.external_id, "paused": session.paused})


Act = Callable[[Session, Actor, str, datetime], Session]


def _done(request: HttpRequest, session_id: str, reason: str, act: Act) -> HttpResponse:
    session = session_of(request, session_id, "accept")
    try:
        return _answer(act(session, actor_of(request), reason.strip(), timezone.now()))
    except NotPausable as error:
        raise Refusal(409, "Nothing to do", str(error)) from None


@router.post("sessions/{path:session_id}/pause", response=PausedSessionOut, url_name="pause")
@done_once
def pause(request: HttpRequest, session_id: str, wanted: PauseIn) -> HttpResponse:
    """Pause a live agent: its next context and call are refused (423) until a person resumes it.

    For people only. Messages and usage are still stored. 409 if it is paused already, or over.
    """
    return _done(request, session_id, wanted.reason, pausing.pause)


@router.post("sessions/{path:session_id}/resume", response=PausedSessionOut, url_name="resume")
@done_once
def resume(request: HttpRequest, session_id: str, wanted: PauseIn) -> HttpResponse:
    """Let a paused agent go on. For people only; 409 if it is not paused."""
    return _done(request, session_id, wanted.reason, pausing.resume)
