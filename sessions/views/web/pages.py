"""Pages: each view module defines its own as `PAGES`; routes and navigation are derived."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path

from compaction.records import records_in
from sessions import views
from sessions.models.accounts.teams import Right
from sessions.views.web.queries import check_query


class Link(NamedTuple):
    """A page's entry in the main navigation."""

    order: int
    title: str
    icon: str
    """An icon name in templates/web/icon.html."""
    keys: str
    """The keyboard shortcut, such as "g d"."""
    section: str
    """The `section` in template contexts of this entry's pages."""
    last: bool = False
    """Whether it is set apart at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A route, its view, and who may use it."""

    route: str
    view: Callable[..., HttpResponseBase]
    name: str
    needs: Mapping[str, Right | None] = field(default_factory=dict)
    """Rights by method, checked in the team of the object; None if it concerns only the requester.
    Without methods, the page accepts GET and is visible to the whole team."""
    public: bool = False
    """Whether it needs no sign-in."""
    query: tuple[str, ...] = ()
    """Query parameters that the page or its script reads; others are refused. Every page has `team`
    (`access.CHOSEN_TEAM`)."""
    link: Link | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments for the view besides those in the route."""

    @property
    def pattern(self) -> URLPattern:
        view = check_query(self.view, self.query)
        return path(self.route, view, dict(self.arguments), self.name)


@cache
def pages() -> tuple[Page, ...]:
    """All pages in route order: fixed paths before parameters."""
    found = chain.from_iterable(records_in(views.__name__, views.__path__, "PAGES"))
    return tuple(sorted(found, key=_place))


def _place(page: Page) -> list[tuple[bool, str]]:
    return [("<" in part, part) for part in page.route.split("/")]


def navigation(_request: HttpRequest) -> dict[str, Any]:
    """Context processor: the main navigation."""
    return {"navigation": _links()}


@cache
def _links() -> tuple[tuple[Link, str], ...]:
    """The entries of the main navigation in order, each with the name of its page."""
    return tuple(sorted((page.link, page.name) for page in pages() if page.link is not None))
