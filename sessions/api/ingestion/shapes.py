"""API schemas for ingestion."""

from __future__ import annotations

from ninja import Schema


class ArrivalOut(Schema):
    """Accepted requests of one key, agent, kind and format; `sessions` are distinct.

    `key` is a prefix, empty for a person in a browser.
    """

    key: str
    agent: str
    kind: str
    format: str
    requests: int
    messages: int
    bytes: int
    sessions: int
    last: str


class IngestionOut(Schema):
    """What was accepted within `hours`, newest first, and how many requests were refused."""

    hours: int
    accepted: list[ArrivalOut]
    refused: int


class RefusedOut(Schema):
    """A refused request, without its body.

    `times` counts equal ones. `applicable`: its body is kept, so it can be applied again.
    """

    id: str
    key: str
    kind: str
    session: str
    status: int
    problem: str
    detail: str
    field: str
    bytes: int
    times: int
    first: str
    last: str
    applicable: bool
    applied: str | None


class RefusedList(Schema):
    """The newest refused requests."""

    refused: list[RefusedOut]
