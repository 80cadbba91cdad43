"""Markdown on boards: rendered; hostile input is neither rendered nor slow."""

from __future__ import annotations

import time
from html.parser import HTMLParser

import pytest

from sessions.templatetags.markdown import LONGEST, markdown, without_markdown

TAGS = {
    "a", "blockquote", "br", "code", "em", "hr", "li", "ol", "p", "pre", "s", "strong",
    "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {("a", "href"), ("a", "rel"), ("a", "title"), ("code", "class"), ("ol", "start")}


class Audit(HTMLParser):
    """Fails on every tag, attribute and address that Markdown must not bring."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        assert {(tag, name) for name, _ in attrs} <= ATTRIBUTES, attrs
        if tag == "a":
            given = dict(attrs)
            assert given["rel"] == "noreferrer noopener"
            self.links.append(given["href"] or "")

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    handle_decl = unknown_decl = handle_pi = handle_comment


@pytest.mark.parametrize(
    ("text", "html", "plain"),
    [
        ("## Goal ##\nDone", "<p><strong>Goal</strong></p>\n<p>Done</p>\n", "Goal\nDone"),
        ("a **bold `x`** b", "<p>a <strong>bold <code>x</code></strong> b</p>\n", "a bold x b"),
        ("one\ntwo", "<p>one<br>\ntwo</p>\n", "one\ntwo"),
        ("- one\n  - two", "<ul>\n<li>one\n<ul>\n<li>two</li>\n</ul>\n</li>\n</ul>\n",
         "• one\n• two"),
        ("3. c\n4. d", '<ol start="3">\n<li>c</li>\n<li>d</li>\n</ol>\n', "3. c\n4. d"),
        ("```\nx = 1\n```\n", "<pre><code>x = 1\n</code></pre>\n", "x = 1"),
        ("2 * 3 * 4, snake__case, #5", "<p>2 * 3 * 4, snake__case, #5</p>\n",
         "2 * 3 * 4, snake__case, #5"),
        ("[docs](https://a.example/)",
         '<p><a href="https://a.example/" rel="noreferrer noopener">docs</a></p>\n', "docs"),
    ],
)  # fmt: skip
def test_markdown_is_shown_and_read_as_plain_text(text: str, html: str, plain: str) -> None:
    assert (markdown(text), without_markdown(text)) == (html, plain)


@pytest.mark.fault("G2")
@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "a <b onclick=x>b</b> <!-- c --> <?php ?> <![CDATA[x]]>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](java&#115;cript:alert(1))",
        "[x](&#x6A;avascript:alert(1))",
        "[x](\tjavascript:alert(1))",
        "[x](vbscript:x)",
        "[x](file:///etc/passwd)",
        "[x](//evil.example/)",
        "[x](/logout/)",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "<javascript:alert(1)>",
        "[x]\n\n[x]: javascript:alert(1)",
        "![x](data:image/png;base64,iVBORw0KGgo=)",
        "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    ],
)
def test_hostile_markdown_becomes_neither_a_tag_nor_a_link(text: str) -> None:
    assert Audit(markdown(text)).links == []


@pytest.mark.fault("G2")
@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("![x](https://evil.example/pixel.png)", ["https://evil.example/pixel.png"]),
        ('[x](https://a.example/"onclick=alert(1))', ["https://a.example/%22onclick=alert(1)"]),
        ('[x](https://a.example "t\\" onclick=x")', ["https://a.example"]),
        ("<https://a.example>", ["https://a.example"]),
        ('|a|\n|:-:|\n|[x](http://b.example)|\n\n```py" onclick="x\n```', ["http://b.example"]),
    ],
)
def test_links_lead_to_the_web_and_images_are_links_at_most(text: str, links: list[str]) -> None:
    assert Audit(markdown(text)).links == links


LONG = {
    "quotes in each other": "> " * 10_000,
    "lists in each other": "- " * 10_000,
    "brackets in each other": "[" * 10_000 + "x" + "](y)" * 10_000,
    "stars in each other": "*" * 10_000 + "x" + "*" * 10_000,
    "marks in each other": "*_" * 10_000 + "x" + "_*" * 10_000,
    "rows of a table": "|a|b|\n|-|-|\n" + "x\n" * 20_000,
    "backticks": "`" * 1_000_000,
    "backticks of many lengths": " ".join("`" * (n % 300) for n in range(6_700)),
    "references": "[a]: x\n" * 140_000,
}


@pytest.mark.parametrize("text", [*LONG.values(), *(text[:LONGEST] for text in LONG.values())],
                         ids=[*LONG, *(f"{name}, cut" for name in LONG)])  # fmt: skip
def test_long_markdown_is_shown_in_bounded_time(text: str) -> None:
    began = time.process_time()
    Audit(markdown(text))
    without_markdown(text)
    assert time.process_time() - began < 3
