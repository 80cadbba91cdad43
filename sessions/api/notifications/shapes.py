"""API schemas for notifications."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field, StrictInt, StrictStr

from sessions.actions.notifications.channels import MOST_MINUTES, MOST_THRESHOLD, NAME_CHARS

Kind = Literal["webhook", "slack", "email"]
EventName = Literal["approval", "budget", "guardrail", "rollback", "break", "lost", "job"]


class ChannelIn(Schema):
    """A new channel; `address` is a URL, or email addresses separated by spaces."""

    kind: Kind
    name: Annotated[StrictStr, Field(min_length=1, max_length=NAME_CHARS)]
    address: Annotated[StrictStr, Field(min_length=1, max_length=500)]


class ChannelOut(Schema):
    """A channel; of a webhook's address only scheme and host are shown."""

    id: str
    kind: Kind
    name: str
    address: str
    created: str


class ChannelMade(ChannelOut):
    """A new channel; `secret` signs a webhook's requests and is returned only here."""

    secret: str | None


class ChannelList(Schema):
    """The channels of a team, by name."""

    channels: list[ChannelOut]


class NotificationRuleIn(Schema):
    """The rule of an event and a channel.

    `threshold` is in micro-dollars (break), percent of the limit (budget) or facts (lost); other
    events have none. The same cause is notified at most once in `quiet_minutes`;
    each entry of the audit log is sent, with 0.
    """

    event: EventName
    channel: StrictStr
    threshold: Annotated[StrictInt, Field(ge=0, le=MOST_THRESHOLD)] | None = None
    quiet_minutes: Annotated[StrictInt, Field(ge=0, le=MOST_MINUTES)] = 60


class NotificationRuleOut(Schema):
    """A rule; `channel` is an id."""

    id: str
    event: EventName
    channel: str
    threshold: int | None
    quiet_minutes: int


class NotificationRuleList(Schema):
    """The rules of a team."""

    rules: list[NotificationRuleOut]


class NotificationOut(Schema):
    """A line of the delivery log. `quiet` ones were not sent; `problem` says why.

    `facts` are names and numbers, as sent. `status` is the HTTP status of the last answer.
    """

    id: str
    channel: str
    event: str
    title: str
    facts: dict[str, Any]
    url: str
    state: Literal["waiting", "sent", "failed", "quiet"]
    attempts: int
    status: int | None
    took_ms: int | None
    problem: str
    created: str
    sent: str | None
    next_attempt: str | None


class NotificationList(Schema):
    """The newest lines of the delivery log."""

    notifications: list[NotificationOut]
