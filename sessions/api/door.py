"""The door before the API: how many requests one asker may have under way, and what every
refusal looks like, whoever it comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from threading import Lock

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from sessions.api import problems

BELOW = "/api/v1/"

_SENTENCES = {
    400: "The request could not be read. Look at its headers and its form.",
    403: "This is not allowed.",
    404: "There is nothing at this address. GET /api/v1/openapi.json lists them.",
    405: "This address takes {allow}.",
    413: "The request is too large. Send it in several.",
    500: "The server could not do this. Its log says where it failed.",
}


class Door:
    """Middleware, before all others."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._under_way: Counter[int] = Counter()
        self._lock = Lock()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Lets a request of the API in, and sees to it that a refusal is a problem."""
        if not request.path_info.startswith(BELOW):
            return self.get_response(request)
        # Of a token its hash: nothing here outlives the request.
        who = hash(request.headers.get("Authorization") or request.headers.get("Cookie") or "")
        if not self._enter(who):
            return problems.problem(
                429,
                "Too many at once",
                f"This key has {settings.API_AT_ONCE} requests under way. Wait for one to end, "
                "then send this one again.",
                headers={"Retry-After": "1"},
            )
        try:
            response = self.get_response(request)
        finally:
            self._leave(who)
        return _as_problem(response)

    def _enter(self, who: int) -> bool:
        with self._lock:
            if self._under_way[who] >= settings.API_AT_ONCE:
                return False
            self._under_way[who] += 1
            return True

    def _leave(self, who: int) -> None:
        with self._lock:
            self._under_way[who] -= 1
            if not self._under_way[who]:
                del self._under_way[who]


def _as_problem(response: HttpResponse) -> HttpResponse:
    """The same refusal as problem+json, where it is something else."""
    status = response.status_code
    if status < 400 or response.headers.get("Content-Type") == problems.MEDIA_TYPE:
        return response
    allow = response.headers.get("Allow", "")
    title = HTTPStatus(status).phrase
    detail = _SENTENCES.get(status, f"{title}.").format(allow=allow)
    answer = problems.problem(status, title, detail, headers={"Allow": allow} if allow else None)
    answer.cookies = response.cookies
    return answer
