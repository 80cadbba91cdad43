"""What comes out of the API about policies, for its document."""

from __future__ import annotations

from typing import Any, Literal

from ninja import Schema
from pydantic import Field

Json = Any


class PolicyListed(Schema):
    """A policy: the number of its newest version, and of the active one if that is among them."""

    name: str
    preset: bool = Field(description="ships with the product and cannot be changed")
    based_on: str = Field(description="a preset, or empty")
    newest: int
    active: int | None = Field(description="what new sessions begin with that name no policy")
    sessions: int = Field(description="that run under any of its versions")
    url: str


class PolicyList(Schema):
    """All that a session may name: presets, then the team's own by name."""

    policies: list[PolicyListed]


class Changed(Schema):
    """One value that differs; true and false where a whole step came or went."""

    path: str
    name: str
    before: Json
    after: Json


class VersionHead(Schema):
    """One version; `ref` is what a session names it by."""

    ref: str
    number: int
    note: str
    author: str | None
    created: str
    url: str


class VersionListed(VersionHead):
    """The same with where it is in use, and what it changed against the one before."""

    in_use: list[str]
    sessions: int
    changes: list[Changed]


class PolicyTold(PolicyListed):
    """A policy with its versions, newest first."""

    versions: list[VersionListed]


class RemarkTold(Schema):
    """One thing to think about: what happens with a value, and what to do."""

    path: str
    text: str
    severity: Literal["warning", "note"]


class SuggestionTold(Schema):
    """A value of compaction as it is, and as it might be by the compactions that were made."""

    path: str
    name: str
    now: Json
    value: Json = Field(description="null where nothing is proposed; `reason` says why")
    reason: str


class VersionTold(VersionHead):
    """What a version says; `origins` has for every value whether policy, preset or default."""

    based_on: str
    document: dict[str, Json]
    origins: dict[str, Literal["policy", "preset", "default"]]
    remarks: list[RemarkTold]
    suggestions: list[SuggestionTold] = Field(
        description="from the team's newest compactions under it; empty where it compacts nothing"
    )
