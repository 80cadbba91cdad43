"""What the next page says once, of what the last one did."""

from __future__ import annotations

from django.http import HttpRequest

_SAID = "said"


def say(request: HttpRequest, sentence: str) -> None:
    """Has the page to which the answer leads say it."""
    request.session[_SAID] = sentence


def said(request: HttpRequest) -> str:
    """What is to be said, this once; empty where nothing is."""
    return str(request.session.pop(_SAID, ""))
