"""What the README and docs say exists: pages, headings, commands with their options, operations."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from uuid import UUID

import pytest
import yaml
from django.core.management import CommandError
from markdown_it import MarkdownIt
from markdown_it.token import Token

from contextlab.cli import available, loaded
from contextlab.docs.references import commands, operations
from sessions.api.urls import api
from sessions.api.web.documents import document
from tests.conftest import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for name in ("benchmarks", "docs") for page in sorted((ROOT / name).rglob("*.md"))),
]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


@cache
def tokens(page: Path) -> list[Token]:
    return MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))


@cache
def headings(page: Path) -> frozenset[str]:
    """Anchors of a page's headings, as GitHub and the site make them."""
    found = tokens(page)
    texts = [
        "".join(
            part.content for part in inline.children or () if part.type in ("text", "code_inline")
        )
        for heading, inline in zip(found, found[1:], strict=False)
        if heading.type == "heading_open"
    ]
    return frozenset(re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts)


def inlines(page: Path, kind: str) -> Iterator[Token]:
    for token in tokens(page):
        yield from (part for part in token.children or () if part.type == kind)


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_pages_and_headings(name: str) -> None:
    page = ROOT / name
    targets = [str(link.attrs["href"]) for link in inlines(page, "link_open")]
    targets += [str(image.attrs["src"]) for image in inlines(page, "image")]
    broken = []
    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        if not place.exists() or (anchor and anchor not in headings(place)):
            broken.append(target)
    assert broken == []


def lines(page: Path) -> Iterator[str]:
    """Commands: lines of code blocks and code in sentences that begin with ours."""
    for token in tokens(page):
        if token.type in ("fence", "code_block"):
            yield from token.content.replace("\\\n", " ").splitlines()
    yield from (code.content for code in inlines(page, "code_inline"))


def _filled(placeholder: re.Match[str]) -> str:
    return {"SIMULATION": str(UUID(int=0)), "DOLLARS": "1.50"}.get(placeholder[0], placeholder[0])


@pytest.mark.parametrize("name", NAMES)
def test_commands_are_accepted_as_written(name: str) -> None:
    refused = []
    for line in lines(ROOT / name):
        found = re.match(r"\s*(?:\.venv/bin/)?contextlab ([a-z]+)\b(.*)", line)
        if found is None or "…" in line:
            continue
        given = shlex.split(re.sub("[A-Z]{3,}", _filled, found[2]), comments=True)
        stopped = next((n for n, word in enumerate(given) if word[:1] in "|>;&"), len(given))
        if found[1] not in available():
            refused.append(line)
        elif given and "--help" not in given:
            try:
                loaded(found[1]).create_parser("contextlab", found[1]).parse_args(given[:stopped])
            except CommandError as error:
                refused.append(f"{line}: {error}")
    assert refused == []


ELSEWHERE = {"POST /v1/messages", "GET /healthz", "GET /readyz", "GET /metrics"}
"""Paths of providers, and ours that are not below /api/v1."""


@pytest.mark.parametrize("name", NAMES)
def test_operations_exist(name: str) -> None:
    operations = [
        f"{method.upper()} {re.sub('{[^}]*}', '[^/]+', path.removeprefix('/api/v1'))}"
        for path, methods in document(api)["paths"].items()
        for method in methods
    ]
    for code in inlines(ROOT / name, "code_inline"):
        said = code.content.replace("/api/v1", "").split("?")[0]
        if re.fullmatch("(GET|POST|PUT|DELETE|PATCH) /[^ …]*", said) and said not in ELSEWHERE:
            assert any(re.fullmatch(one, said) for one in operations), code.content


def test_every_page_is_in_the_navigation() -> None:
    entries = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    listed = [
        path
        for section in entries
        for page in next(iter(section.values()))
        for path in page.values()
    ]
    assert sorted(listed) == sorted(
        page.removeprefix("docs/") for page in NAMES if page.startswith("docs/")
    )


def test_numbers_of_decisions_ascend() -> None:
    text = (ROOT / "docs/decisions.md").read_text()
    numbers = [int(one) for one in re.findall(r"^## (\d+)\. ", text, re.MULTILINE)]
    assert numbers == sorted(set(numbers)) != []


def test_commands_are_listed_with_their_verbs() -> None:
    listed = commands().splitlines()
    assert "- `doctor`: Check the installation." in listed
    assert "- `token create|list|revoke`: Create, list and revoke API keys." in listed
    assert len(listed) == len(list(available()))


def test_operations_are_listed_by_group() -> None:
    listed = operations()
    assert "- **Pins**: `…/pins`, `…/pins/{seq}`\n" in listed
    assert len(re.findall("`[^`]+`", listed)) >= len(document(api)["paths"])
