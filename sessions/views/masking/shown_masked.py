"""Middleware that shows content masked to members and to keys that only read, where a team wants
it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase

from sessions.access import API, SAFE, by_key, may_write, teams_of
from sessions.models import Team
from sessions.models.masking.masked_views import ReaderView
from sessions.models.web.shown import shown_to

READING = ("/lab/figures/", "/lab/searches/", "/budgets/", "/export/", "/step-notes")
"""Ends of paths that store nothing of the content that they read, by whatever method. Other
requests that write read content as it is stored, so that no mask is stored in its place."""
REVEALS = "/reveal"
ABOUT_SESSIONS = f"{API}sessions/"


class ShownMasked:
    """Reads content as the requester sees it, also for what is streamed after the view returned;
    masks what the API answers to requests that write."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Handle a request."""
        view = ReaderView(lambda: _teams(request))
        path = request.path_info
        if request.method not in SAFE and not path.endswith(READING):
            response: Any = self.get_response(request)
            if path.startswith(ABOUT_SESSIONS) and not path.endswith(REVEALS) and view.on:
                _mask(view, response)
            return response
        with shown_to(view):
            response = self.get_response(request)
        if isinstance(response, StreamingHttpResponse) and not response.is_async:
            response.streaming_content = _streamed(view, iter(response))
        return response


@contextmanager
def as_reader(request: HttpRequest) -> Iterator[None]:
    """Read content as the requester sees it, for a page that shows why a change was refused: what
    was read before for the change is as stored."""
    with shown_to(ReaderView(lambda: _teams(request))):
        yield


def _mask(view: ReaderView, response: Any) -> None:
    if response.streaming or "json" not in response.headers.get("Content-Type", ""):
        return
    said = msgspec.json.decode(response.content)
    if (masked := view.value(said)) != said:
        response.content = msgspec.json.encode(masked)


def _streamed(view: ReaderView, pieces: Iterable[Any]) -> Iterator[bytes]:
    rest = iter(pieces)
    while True:
        with shown_to(view):
            piece = next(rest, None)
        if piece is None:
            return
        yield piece


def _teams(request: HttpRequest) -> list[Team] | None:
    """The teams whose content is masked for the requester if they want it; None if the requester is
    not known yet."""
    if by_key(request) and not hasattr(request, "auth"):
        return None
    return [] if may_write(request) else teams_of(request)
