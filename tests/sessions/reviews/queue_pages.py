"""Pages of the review queue, and what is sent from them."""

from __future__ import annotations

import json
import re
from typing import Any

from django.http import HttpResponse
from django.test import Client

from sessions.models import ReviewItem
from tests.sessions.pages import Page, page_of
from tests.sessions.reviewing import (
    SCORES,
)

WHOLE: dict[str, Any] = {"scores": SCORES, "verdict": "fix", "note": "port is gone", "marks": {}}


def props(page: Page) -> dict[str, Any]:
    """The props of the page's component."""
    found = re.search(r'<script id="review-props"[^>]*>(.*?)</script>', page.html, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def shown(client: Client, one: ReviewItem) -> dict[str, Any]:
    return props(page_of(client, f"/review/items/{one.pk}/"))


def send(client: Client, one: ReviewItem, act: str, body: Any) -> HttpResponse:
    return client.post(f"/review/items/{one.pk}/{act}/", json.dumps(body), "application/json")


def results(page: Page) -> list[str]:
    return [name for name in ("note of 1", "note of 2", "note of 3") if name in page.text]
