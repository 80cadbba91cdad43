"""What breaks a cached prefix, of two requests that somebody sends us; nothing is kept of them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import Field

from compaction.cache.prefix_lint import Finding, check
from compaction.cache.prefix_pieces import canonical
from sessions.api import incoming
from sessions.api.access import team_of
from sessions.api.answers import told
from sessions.api.bodies import value_of
from sessions.api.problems import Refusal

router = Router(tags=["Replay"])


class CacheCheckWanted(incoming.Wanted):
    """Two requests as they are sent to Anthropic's or OpenAI's API, one after the other."""

    previous: dict[str, Any] = Field(description="the request before, with tools and messages")
    current: dict[str, Any] = Field(description="the one that should have read its prefix")


class CacheFinding(Schema):
    """One thing that ends the common prefix; `tokens` is an estimate of what is paid again."""

    kind: str
    cause: str
    layer: str
    path: str
    offset: int
    tokens: int
    basis: str
    before: str
    now: str
    how: str


class CacheChecked(Schema):
    """What was found, the first in the prompt first; `bytes` are those of the request before."""

    bytes: int
    findings: list[CacheFinding]


@router.post("cache/check", response=CacheChecked, url_name="cache_check")
def cache_check(request: HttpRequest, wanted: CacheCheckWanted) -> HttpResponse:
    """Finds what breaks the cached prefix between two requests: where, why, and how to mend it.

    No findings: the second only adds to the first. Nothing is stored.
    """
    team_of(request)
    body = value_of(request)
    for name in ("previous", "current"):
        if not canonical(body[name]):
            raise Refusal(
                422,
                "Not acceptable",
                f"/{name} holds no prompt: give the request as it is sent, with tools, system or "
                "messages.",
                field=f"/{name}",
            )
    found = check(body["previous"], body["current"])
    size = len(canonical(body["previous"]))
    return told({"bytes": size, "findings": [_told(one) for one in found]})


def _told(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "cause": finding.cause,
        "layer": finding.layer,
        "path": finding.path,
        "offset": finding.offset,
        "tokens": finding.tokens,
        "basis": "estimated",
        "before": finding.before,
        "now": finding.now,
        "how": finding.how,
    }
