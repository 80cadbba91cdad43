"""Cache check: find what breaks the cached prefix between two requests. Nothing is stored."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import Field

from compaction.cache.prefix_lint import Finding, check
from sessions.access import team_of
from sessions.actions.web.apart import call_apart
from sessions.api.web.exchange import json_answer, value_of
from sessions.api.web.problems import Refusal
from sessions.api.web.shapes import BodyIn

router = Router(tags=["Replay"])

CHECK_SECONDS = 10.0
"""How long a check may take, in a process of its own: many tiny values take some seconds."""


class CacheCheckIn(BodyIn):
    """Two consecutive requests, as sent to Anthropic's or OpenAI's API."""

    previous: dict[str, Any] = Field(description="the earlier request, with tools and messages")
    current: dict[str, Any] = Field(
        description="the later request, which should have read the prefix"
    )


class CacheFinding(Schema):
    """A difference that ends the common prefix; `tokens` estimates what is paid again."""

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
    """Findings, in prompt order; `bytes` is the size of the earlier request."""

    bytes: int
    findings: list[CacheFinding]


@router.post("cache/check", response=CacheChecked, url_name="cache_check")
def cache_check(request: HttpRequest, wanted: CacheCheckIn) -> HttpResponse:
    """Find what breaks the cached prefix between two requests: where, why, and how to fix it.

    No findings means that the second request only extends the first. Nothing is stored.
    """
    team = team_of(request)
    body = value_of(request)
    checked = call_apart(team.pk, CHECK_SECONDS, check, body["previous"], body["current"])
    for name, size in zip(("previous", "current"), checked.sizes, strict=True):
        if not size:
            raise Refusal(
                422,
                "Not acceptable",
                f"/{name} contains no prompt. Send the request as it goes to the provider, "
                "with tools, system or messages.",
                field=f"/{name}",
            )
    findings = [_describe_finding(one) for one in checked.findings]
    return json_answer({"bytes": checked.sizes[0], "findings": findings})


def _describe_finding(finding: Finding) -> dict[str, Any]:
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
