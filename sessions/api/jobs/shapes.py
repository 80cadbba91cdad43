"""API schemas for jobs."""

from __future__ import annotations

from typing import Literal

from ninja import Schema

from sessions.api.web.shapes import Json


class JobAsked(Schema):
    """A queued job and its URL."""

    job: str
    job_url: str


class JobOut(Schema):
    """A job with its progress and result."""

    id: str
    kind: str
    state: Literal["queued", "running", "done", "partial", "failed", "cancelled"]
    attempts: int
    done_units: int
    total_units: int | None
    unit: str
    result: dict[str, Json] | None
    problem: dict[str, Json] | None
    version: int
    created: str
    started: str | None
    finished: str | None
