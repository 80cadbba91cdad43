"""API schemas for masking."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field, StrictBool

from sessions.api.web.shapes import StorableText


class MaskingRuleIn(Schema):
    """A rule: `text` is an RE2 pattern, or literal words, one a line. Each match becomes
    `replacement`, by default the name in brackets."""

    name: Annotated[StorableText, Field(max_length=30)]
    kind: Literal["words", "pattern"]
    text: Annotated[StorableText, Field(max_length=50_000)]
    replacement: Annotated[StorableText, Field(max_length=60)] = ""


class MaskingSampleIn(MaskingRuleIn):
    """A rule to try on a sample; nothing is stored."""

    sample: Annotated[str, Field(max_length=10_000)]


class MaskingRuleOut(Schema):
    """A rule in force."""

    id: str
    name: str
    kind: Literal["words", "pattern"]
    text: str
    replacement: str
    by: str
    added: str


class MaskedByRule(Schema):
    """How many places a rule or kind of secret masked, in how many sessions."""

    name: str
    places: int
    sessions: int


class MaskingOut(Schema):
    """The rules in force, whether what comes in is masked, whether content is shown masked, and
    what was masked of sessions that were masked in the last 30 days."""

    rules: list[MaskingRuleOut]
    incoming: bool
    show_masked: bool
    masked: list[MaskedByRule]


class MaskingIn(Schema):
    """Whether to mask what comes in before it is stored, and whether to show content masked; what
    is left out stays."""

    incoming: StrictBool | None = None
    show_masked: StrictBool | None = None


class SampleOut(Schema):
    """A sample as the rule leaves it, and the number of its matches."""

    masked: str
    matches: int


class DryRunOut(Schema):
    """The newest dry run, null without one: the state of its job, how many sessions it searched,
    whether there are more, and by rule the matches, sessions, and ids of some of them."""

    job: str | None
    state: str | None
    sessions: int | None
    more: bool | None
    rules: dict[str, Any] | None


class MaskedOut(Schema):
    """How many places of a session were masked before it was stored, by rule."""

    masked: dict[str, int]
