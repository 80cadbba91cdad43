"""The main navigation: entries that clash or cannot be drawn are refused at the start."""

from __future__ import annotations

import pytest
from django.http import HttpRequest

from sessions.views.jobs.jobs import jobs
from sessions.views.web.pages import Link, Page, check_links, navigation, pages

FREE = Link(1, "New", "jobs", "g 1", "new")


def page(link: Link) -> Page:
    return Page(route=f"{link.section}/", view=jobs, name=link.section, link=link)


@pytest.mark.parametrize(
    ("link", "refusal"),
    [
        (FREE._replace(order=100), "Jobs and New have the same order, 100"),
        (FREE._replace(keys="g j"), "Jobs and New have the same shortcut, 'g j'"),
        (FREE._replace(icon="jbos"), "New has no icon 'jbos'. Known icons: brand, dashboard,"),
    ],
)
def test_an_entry_that_clashes_or_has_no_icon_is_refused(link: Link, refusal: str) -> None:
    check_links([*pages(), page(FREE)])
    with pytest.raises(ValueError, match=refusal):
        check_links([*pages(), page(link)])


def test_every_entry_stands_in_one_group_in_order() -> None:
    groups = dict(navigation(HttpRequest())["navigation"])
    assert list(groups) == ["", "Diagnose", "Improve", "Manage"]
    orders = [link.order for links in groups.values() for link, _, _ in links]
    assert orders == sorted(orders), "groups follow each other as their entries do"
    listed = [name for links in groups.values() for _, name, _ in links]
    assert sorted(listed) == sorted(page.name for page in pages() if page.link is not None)
