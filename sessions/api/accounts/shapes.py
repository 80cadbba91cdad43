"""API schemas for keys."""

from __future__ import annotations

from typing import Literal

from ninja import Schema


class KeyOut(Schema):
    """A key without its token; `current` marks the one that sent the request."""

    prefix: str
    name: str
    team: str
    scopes: list[Literal["read", "write", "erase"]]
    owner: str | None
    created: str
    used: str | None
    expires: str | None
    ended: str | None
    current: bool


class KeysOut(Schema):
    """The keys of a team, newest first."""

    keys: list[KeyOut]
