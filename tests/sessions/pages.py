"""Pages for a signed-in browser, with checks that apply to every page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from django.contrib.auth import get_user_model
from django.test import Client

from sessions.actions.accounts.teams import local_user
from sessions.models import Membership, Team
from tests.sessions.answers import ApiClient

EMPTY = {"meta", "link", "input", "br", "img", "hr"}

APART = {"dt", "dd", "th", "td", "li", "p", "h1", "h2", "h3", "option", "summary", "div"}
"""Elements that stand apart from the next one, however the template is laid out."""


class Page(HTMLParser):
    """A response: text, links by label, and forms.

    Creating one fails if it violates our content security policy.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.links: dict[str, str] = {}
        self.forms: dict[str, bool] = {}
        self.ids: list[str] = []
        self.classes: list[str] = []
        self.title = ""
        self._open: list[tuple[str, dict[str, str]]] = []
        self._text: list[str] = []
        self._link: list[str] = []
        self._headings = 0
        self.feed(html)
        assert self._headings == 1, "a page has one h1"
        assert len(set(self.ids)) == len(self.ids), "an id occurs twice"
        assert all(self.forms.values()), "a form that posts carries no token"

    @property
    def text(self) -> str:
        """Visible text, with whitespace collapsed."""
        return " ".join("".join(self._text).split())

    @property
    def markup(self) -> str:
        """The HTML on one line, without the whitespace that only lays it out."""
        flat = re.sub(r"(?<=>)\s*\n\s*|\s*\n\s*(?=<)", "", self.html)
        return " ".join(flat.split()).replace(" >", ">")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert "style" not in given, f"inline style on {tag}"
        assert not any(name.startswith("on") for name in given), f"inline handler on {tag}"
        if tag == "script":
            assert "src" in given or given.get("type") == "application/json", "inline script"
        self._headings += tag == "h1"
        if tag == "a":
            self._link = []
        self.ids += [given["id"]] if "id" in given else []
        self.classes += given.get("class", "").split()
        if tag == "form" and given.get("method") == "post":
            self.forms[given["action"]] = False
        if given.get("name") == "csrfmiddlewaretoken":
            self.forms[next(reversed(self.forms))] = True
        if tag not in EMPTY:
            self._open.append((tag, given))

    def handle_endtag(self, tag: str) -> None:
        if tag in APART:
            self._text.append(" ")
        while self._open:
            closed, given = self._open.pop()
            if closed == "a":
                self.links.setdefault(" ".join("".join(self._link).split()), given.get("href", ""))
            if closed == tag:
                return

    def handle_data(self, data: str) -> None:
        if any(tag == "title" for tag, _ in self._open) and not self.title:
            self.title = data
        self._text.append(data)
        self._link.append(data)


def signed_in(team: Team | None = None) -> Client:
    """A browser of the local user, or of a new member of another team."""
    client = ApiClient()
    if team is None:
        client.force_login(local_user())
    else:
        user = get_user_model().objects.create_user(username=f"member of {team.slug}")
        Membership.objects.create(user=user, team=team, role=Membership.Role.OWNER)
        client.force_login(user)
    return client


def other_team() -> Team:
    """A team that the local user is not in."""
    return Team.objects.create(name="Other", slug="other")


def page_of(client: Client, address: str, status: int = 200) -> Page:
    """The page at an address; fails on another status."""
    response = client.get(address)
    assert response.status_code == status, response
    return Page(response.content.decode())
