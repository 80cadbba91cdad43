"""API schemas for policies."""

from __future__ import annotations

from typing import Annotated, Literal

from ninja import Schema
from pydantic import Field, StrictStr

from sessions.actions.policies.policies import NOTE_LENGTH
from sessions.api.web.shapes import BodyIn, Json, Text


class PolicyListed(Schema):
    """A policy: the number of its newest version, and of the active one if it is one of them."""

    name: str
    preset: bool = Field(description="whether it ships with the product and cannot be changed")
    based_on: str = Field(description="a preset, or empty")
    newest: int
    active: int | None = Field(description="version for new sessions that name no policy")
    sessions: int = Field(description="sessions using any of its versions")
    url: str


class PolicyList(Schema):
    """All policies available to sessions: presets, then the team's own by name."""

    policies: list[PolicyListed]


class Changed(Schema):
    """One changed value; true and false if a whole step was added or removed."""

    path: str
    name: str
    before: Json
    after: Json


class VersionHead(Schema):
    """One version; sessions refer to it by `ref`."""

    ref: str
    number: int
    note: str
    author: str | None
    created: str
    url: str


class VersionListed(VersionHead):
    """A version with where it is in use, and its changes against the previous one."""

    in_use: list[str]
    sessions: int
    changes: list[Changed]


class PolicyOut(PolicyListed):
    """A policy with its versions, newest first."""

    versions: list[VersionListed]


class RemarkOut(Schema):
    """A remark: the effect of a value, and what to do."""

    path: str
    text: str
    severity: Literal["warning", "note"]


class SuggestionOut(Schema):
    """A compaction setting, and the value suggested by past compactions."""

    path: str
    name: str
    now: Json
    value: Json = Field(description="null if nothing is suggested; `reason` says why")
    reason: str


class VersionOut(VersionHead):
    """A version with all values; `origins` maps each value to policy, preset or default."""

    based_on: str
    document: dict[str, Json]
    origins: dict[str, Literal["policy", "preset", "default"]]
    remarks: list[RemarkOut]
    suggestions: list[SuggestionOut] = Field(
        description="based on the team's newest compactions under it; empty if it does not compact"
    )


class PolicyIn(BodyIn):
    """A policy, either as a document or as YAML (or JSON)."""

    document: dict[str, Json] | None = Field(
        None,
        description="name, reserve, board, steps and recite; omitted values come from the preset",
        examples=[{"steps": [{"strategy": "offload", "parameters": {"age": 8}}]}],
    )
    yaml: Text | None = Field(None, description="the YAML document, at most 64 kB")
    based_on: Text | None = Field(
        None, description="a preset, or empty for none; default: the policy's current base"
    )
    note: Annotated[StrictStr, Field(max_length=NOTE_LENGTH)] = Field(
        "", description="the reason, in one line"
    )
