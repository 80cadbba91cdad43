"""Query parameters of pages: an unknown one gets a page that names the nearest known one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render

from sessions.access import CHOSEN_TEAM
from sessions.api.web.queries import unknown_in

View = Callable[..., HttpResponseBase]


def check_query(view: View, names: tuple[str, ...]) -> View:
    """Decorate a view to refuse query parameters other than `names` and the team."""
    known = frozenset((*names, CHOSEN_TEAM))

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **given: Any) -> HttpResponseBase:
        unknown = unknown_in(request.GET, known)
        if unknown is None:
            return view(request, *args, **given)
        rest = request.GET.copy()
        for name in request.GET.keys() - known:
            del rest[name]
        url = f"{request.path}?{rest.urlencode()}" if rest else request.path
        return render(request, "422.html", {"sentences": unknown.sentences, "url": url}, status=422)

    return checked
