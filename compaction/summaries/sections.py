"""Split the text of a summary into its sections, for all known forms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from compaction.summaries import summary
from compaction.summaries.summary import FORMS, NINE, NONE

Form = Literal["nine", "progress", "done", "window", "numbered", "free"]
"""Our forms, Claude Code's numbered headings, and any other text."""

_HEADING = re.compile(
    r"^[ \t]*(?:#+[ \t]*)?(\d)\.[ \t]+\**([A-Z][^\n:]{3,60}?)\**:\**[ \t]*$", re.MULTILINE
)
"""A numbered heading in Claude Code's summaries: "3. Files and Code Sections:" on a line."""

_FEWEST = 3
"""Minimum numbered headings of a divided text; two may be a list."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a summary; text before the first heading has no title."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether a required section has text, says `None`, or is missing."""

    name: str
    state: Literal["present", "none", "missing"]


def form_of(text: str) -> Form:
    """Detect the form of a summary."""
    if summary.parse(text, "nine"):
        return "nine"
    if text.startswith("<summary>"):
        # Their sections have common names, which any text may contain in angle brackets.
        for form in ("progress", "done"):
            if len(summary.parse(text, form)) == len(FORMS[form]):
                return form
    if summary.parse(text, "window"):
        return "window"
    return "numbered" if _numbered(text) else "free"


def sections(text: str) -> list[Section]:
    """Return the sections in order; a single one without a title if none are recognized."""
    form = form_of(text)
    if form != "numbered" and form != "free":
        found = summary.parse(text, form)
        return [Section(title(name), "\n".join(lines)) for name, lines in found.items()]
    return _numbered(text) or [Section("", text.strip())]


def title(name: str) -> str:
    """Return the display name of a section."""
    return name.replace("_", " ").capitalize()


def presence(text: str, form: Form) -> list[Presence]:
    """Return whether each required section is there; a free text requires none."""
    if form == "free":
        return []
    asked: tuple[str, ...] = NINE
    if form == "numbered":
        found = {_name(part.title): part.text for part in _numbered(text)}
    else:
        asked = FORMS[form]
        parsed = summary.parse(text, form)
        found = {name: "\n".join(lines) for name, lines in parsed.items()}
    return [Presence(name, _state(found.get(name))) for name in asked]


def _state(text: str | None) -> Literal["present", "none", "missing"]:
    if text is None:
        return "missing"
    return "none" if text.strip(" -*.\n").casefold() in ("", NONE.casefold()) else "present"


def _name(heading: str) -> str:
    """Map a heading to our section by its first two words: Claude Code's titles end differently."""
    begin = "_".join(heading.casefold().split()[:2])
    return next((name for name in NINE if name.startswith(begin)), "") if begin else ""


def _numbered(text: str) -> list[Section]:
    """Return the longest run of headings numbered 1, 2, 3 … to the end of the text."""
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
