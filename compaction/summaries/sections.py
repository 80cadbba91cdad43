"""A summary's text in its sections, whoever wrote it."""

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
"""How Claude Code's summaries number their sections: "3. Files and Code Sections:" on a line."""

_FEWEST = 3
"""Numbered headings from which a text counts as divided; two may be a list."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a summary; the part before the first heading has no title."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether a section that a form asks for is there: with text, saying `None`, or not at all."""

    name: str
    state: Literal["present", "none", "missing"]


def form_of(text: str) -> Form:
    """The form that a summary has."""
    if summary.parse(text, "nine"):
        return "nine"
    if text.startswith("<summary>"):
        # Their sections have plain names, which any text may hold between such brackets.
        for form in ("progress", "done"):
            if len(summary.parse(text, form)) == len(FORMS[form]):
                return form
    if summary.parse(text, "window"):
        return "window"
    return "numbered" if _numbered(text) else "free"


def sections(text: str) -> list[Section]:
    """The summary's sections in order; one without title where none are recognised."""
    form = form_of(text)
    if form != "numbered" and form != "free":
        found = summary.parse(text, form)
        return [Section(title(name), "\n".join(lines)) for name, lines in found.items()]
    return _numbered(text) or [Section("", text.strip())]


def title(name: str) -> str:
    """The name of a section for people."""
    return name.replace("_", " ").capitalize()


def presence(text: str, form: Form) -> list[Presence]:
    """Of each section that a form asks for whether it is there; of a free text nothing is asked."""
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
    """Our name of a section by its first two words: Claude Code's titles end differently."""
    begin = "_".join(heading.casefold().split()[:2])
    return next((name for name in NINE if name.startswith(begin)), "") if begin else ""


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
