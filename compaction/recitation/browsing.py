"""The browser of a session: its page and tabs, as browser tools report them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from compaction.context.blocks import Block
from compaction.context.hints import one_line
from compaction.context.stubs import arguments

TABS = 8
"""Maximum tabs listed."""
WIDTH = 160
LOOK_AT = 20_000
"""Code points read from the start of a result or an input."""

_NAMES = ("goto", "navigate", "visit", "open_url", "visit_page", "web_navigate")
_URL = re.compile(r"^\W{0,4}(?:Page|Current) URL:\W{0,2}\s*([^\s\]]{4,2000})", re.MULTILINE)
_TITLE = re.compile(r"^\W{0,4}(?:Page )?Title:\W{0,2}\s*([^\n]{1,300})", re.MULTILINE)
_TAB = re.compile(r"^- \d{1,4}: (\(current\) )?\[([^\]\n]{0,300})\] ?\(([^)\s]{0,2000})\)", re.M)
_GOTO = re.compile(r"\bgoto\(\s*[\"']([^\"']{4,2000})[\"']")


@dataclass(slots=True)
class Browser:
    """The page that a browser shows, and its tabs; empty if none was used."""

    url: str = ""
    title: str = ""
    tabs: tuple[str, ...] = ()

    def take_in(self, use: Block, result: Block) -> None:
        """Process a call with its result; ignored if it is not about a browser, or failed."""
        tool = (use.tool or "").lower().rsplit("__", 1)[-1]
        if result.error or not ("browser" in tool or tool in _NAMES):
            return
        text = result.text[:LOOK_AT]
        given = (arguments(use) or {}) if len(use.text) <= LOOK_AT else {}
        code = given.get("code")
        went = _GOTO.findall(code)[-1:] if isinstance(code, str) else []
        shown = _URL.search(text)
        asked = given.get("url")
        if shown is not None:
            self._at(shown.group(1), text)
        elif went:
            self._at(went[0], text)
        elif isinstance(asked, str) and asked:
            self._at(asked, text)
        if tabs := _TAB.findall(text):
            self.tabs = tuple(one_line(f"{url} {title}", WIDTH) for _, title, url in tabs)
        if "close" in tool and "tab" not in tool:
            self.url, self.title, self.tabs = "", "", ()

    def _at(self, url: str, text: str) -> None:
        title = _TITLE.search(text)
        if title is not None or url != self.url:
            self.title = title.group(1).strip() if title is not None else ""
        self.url = url

    def lines(self) -> Iterator[str]:
        """Yield the page, then the tabs in order."""
        if self.url:
            title = f" {self.title}" if self.title else ""
            yield f"- page {one_line(self.url + title, WIDTH)}"
        for tab in self.tabs[:TABS]:
            yield f"- tab {tab}"
        if len(self.tabs) > TABS:
            yield f"- and {len(self.tabs) - TABS} more tabs"
