"""Agents' Markdown on boards, as HTML or plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

register = template.Library()

LONGEST = 10_000
"""Maximum characters to parse as Markdown; longer texts are shown unformatted."""


class _Markdown(MarkdownIt):
    """Markdown without HTML and images, and with web links only, because the text is untrusted."""

    def __init__(self) -> None:
        super().__init__("js-default", {"breaks": True, "maxNesting": 20})
        self.disable("image")
        self.add_render_rule("heading_open", _open_heading)
        self.add_render_rule("heading_close", _close_heading)
        self.add_render_rule("link_open", _open_link)
        self.add_render_rule("th_open", _open_cell)
        self.add_render_rule("td_open", _open_cell)

    def validateLink(self, url: str) -> bool:
        """Whether a link is rendered; otherwise its source is shown."""
        return url.lower().startswith(("http://", "https://"))


def _open_heading(*_: Any) -> str:
    return "<p><strong>"  # real headings would disturb the page's outline


def _close_heading(*_: Any) -> str:
    return "</strong></p>\n"


def _open_link(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any
) -> str:
    tokens[at].attrSet("rel", "noreferrer noopener")
    return renderer.renderToken(tokens, at, options, env)


def _open_cell(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any
) -> str:
    tokens[at].attrs.pop("style", None)  # the page's security policy blocks inline styles
    return renderer.renderToken(tokens, at, options, env)


_MARKDOWN = _Markdown()


@register.filter
def markdown(text: str) -> SafeString:
    """Render Markdown as HTML."""
    shown = _MARKDOWN.render(text) if len(text) <= LONGEST else f"<pre>{escape(text)}</pre>"
    return mark_safe(shown)  # noqa: S308 - the parser escapes all that it does not write itself


@register.filter
def without_markdown(text: str) -> str:
    """Strip Markdown, for truncated texts."""
    if len(text) > LONGEST:
        return text
    lines, bullet = [], ""
    for token in _MARKDOWN.parse(text):
        if token.type == "list_item_open":
            bullet = f"{token.info}{token.markup} " if token.info else "• "
        elif token.type == "inline" or token.content:
            lines.append(bullet + "".join(map(_plain, token.children or [token])).rstrip("\n"))
            bullet = ""
    return "\n".join(lines)


def _plain(token: Token) -> str:
    return "\n" if token.type in ("softbreak", "hardbreak") else token.content
