"""Schemas shared by all API operations."""

from __future__ import annotations

from typing import Annotated, Any

from ninja import Field, Schema
from pydantic import AfterValidator, ConfigDict, StrictStr

Json = Any


class Fault(Schema):
    """An invalid field: `pointer` is a JSON pointer into the body, or `?name`."""

    pointer: str
    detail: str


class Problem(Schema):
    """An error: what went wrong, and in `detail` what to do (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault] = []
    quota: str | None = Field(None, description="name of the team's quota that is used up")
    limit: int | None = Field(None, description="of the quota")
    used: int | None = Field(None, description="of the quota")
    resets: str | None = Field(None, description="when the quota does; null: storage never does")


BIGGEST = 2_147_483_647
"""Maximum value of an integer column."""


Text = StrictStr


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("contains the character U+0000, which PostgreSQL does not store")
    return text


StorableText = Annotated[StrictStr, AfterValidator(_storable)]
"""Text for a column or a comparison with one."""


class BodyIn(Schema):
    """A request body; unknown fields are allowed, and kept where possible."""

    model_config = ConfigDict(extra="allow")
