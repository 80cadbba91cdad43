"""Pages: each view module defines its own as `PAGES`; routes and navigation are derived."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any, Literal, NamedTuple, get_args

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template import Engine
from django.urls import URLPattern, path

from compaction.records import records_in, refuse_twins
from sessions import views
from sessions.models.accounts.teams import Right
from sessions.views.web.queries import check_query

Group = Literal["", "Diagnose", "Improve", "Manage"]
"""A part of the main navigation; the first has no heading, and is at hand on a narrow screen."""


class Link(NamedTuple):
    """A page's entry in the main navigation."""

    order: int
    title: str
    """One short word."""
    icon: str
    """An icon name in templates/web/icon.html."""
    keys: str
    """The keyboard shortcut, such as "g d"."""
    section: str
    """The `section` in template contexts of this entry's pages."""
    group: Group = ""


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
    about: str = ""
    """Words of its headings, by which the command palette finds a page of the navigation too."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments for the view besides those in the route."""

    @property
    def pattern(self) -> URLPattern:
        view = check_query(self.view, self.query)
        return path(self.route, view, dict(self.arguments), self.name)


@cache
def pages() -> tuple[Page, ...]:
    """All pages in route order: fixed paths before parameters.

    Raises ValueError if two have the same name, or entries of the navigation clash (`check_links`).
    """
    found = list(chain.from_iterable(records_in(views.__name__, views.__path__, "PAGES")))
    refuse_twins(found, "name", lambda page: page.name, lambda page: page.route)
    check_links(found)
    return tuple(sorted(found, key=_place))


def check_links(found: Iterable[Page]) -> None:
    """Raise ValueError if an icon is unknown, or an order or a shortcut is taken twice."""
    links = [page.link for page in found if page.link is not None]
    refuse_twins(links, "order", lambda link: link.order, lambda link: link.title)
    refuse_twins(links, "shortcut", lambda link: link.keys, lambda link: link.title)
    for link in links:
        if link.icon not in icons():
            known = ", ".join(icons())
            raise ValueError(f"{link.title} has no icon {link.icon!r}. Known icons: {known}")


@cache
def icons() -> tuple[str, ...]:
    """The names of templates/web/icon.html."""
    drawn = Engine.get_default().get_template("web/icon.html")
    return tuple(re.findall(r'if name == "(\w+)"', drawn.source))


def _place(page: Page) -> list[tuple[bool, str]]:
    return [("<" in part, part) for part in page.route.split("/")]


def navigation(_request: HttpRequest) -> dict[str, Any]:
    """Context processor: the main navigation."""
    return {"navigation": links()}


@cache
def links() -> tuple[tuple[Group, list[tuple[Link, str, str]]], ...]:
    """The entries of the main navigation by group, in order, each with the name of its page
    and what it is about."""
    found = sorted((page.link, page.name, page.about) for page in pages() if page.link is not None)
    return tuple(
        (group, [one for one in found if one[0].group == group]) for group in get_args(Group)
    )
