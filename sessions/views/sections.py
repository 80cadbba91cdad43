"""A summary's text in its sections, whoever wrote it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compaction import summary

_HEADING = re.compile(
    r"^[ \t]*(?:#+[ \t]*)?(\d)\.[ \t]+\**([A-Z][^\n:]{3,60}?)\**:\**[ \t]*$", re.MULTILINE
)
"""How Claude Code's summaries number their sections: "3. Files and Code Sections:" on a line."""

_FEWEST = 3
"""Numbered headings from which a text counts as divided; two may be a list."""

LONG = 1500
"""Characters from which a section begins folded."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a summary; the part before the first heading has no title."""

    title: str
    text: str

    @property
    def long(self) -> bool:
        """Whether it would push the rest of the page out of sight."""
        return len(self.text) > LONG


def sections(text: str) -> list[Section]:
    """The summary's sections in order; one without title where none are recognised."""
    for form in ("nine", "window"):
        found = summary.parse(text, form)
        if found:
            return [
                Section(name.replace("_", " ").capitalize(), "\n".join(lines))
                for name, lines in found.items()
            ]
    return _numbered(text) or [Section("", text.strip())]


def _numbered(text: str) -> list[Section]:
    """The longest run of headings numbered 1, 2, 3 … to the end of the text."""
    headings: list[re.Match[str]] = []
    for match in _HEADING.finditer(text):
        number = int(match.group(1))
        if number == 1:
            headings = [match]
        elif headings and number == len(headings) + 1:
            headings.append(match)
    if len(headings) < _FEWEST:
        return []
    before = text[: headings[0].start()].strip()
    found = [Section("", before)] if before else []
    ends = [match.start() for match in headings[1:]] + [len(text)]
    for match, end in zip(headings, ends, strict=True):
        found.append(Section(match.group(2).strip(), text[match.end() : end].strip()))
    return found
