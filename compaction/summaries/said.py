"""What people and the agent said to each other, as lines of a summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from compaction.context.blocks import Block
from compaction.proposals.plan import Span
from compaction.seen.people import NOT_ANSWERED, message_of, rejections
from compaction.seen.statements import constraints
from compaction.summaries.shares import CONSTRAINT, LATEST
from compaction.summaries.summary import quoted

SHORT, FEW = 24, 4
"""Code points and words of a message that says nothing without the question it answers (our
choice)."""

MOST_REPORTS = 6
"""Reports kept, the newest (our choice)."""

SHORTEST_REPORT = 60
"""Code points below which a text says too little (our choice)."""

LOOK_AT = 8_000
"""Code points of a text in which a question is looked for, from its end."""

_SENTENCE = re.compile(r"(?<=[.!])\s|(?<=[?？])|\n")
_OPTION = re.compile(
    r"^[ \t>*•-]*(?:option )?([A-Z]|\d{1,2})[.):]\**[ \t]+(\S[^\n]*)",
    re.MULTILINE | re.IGNORECASE,
)


class Said(NamedTuple):
    """A person's words, where they are, and the agent's text before them."""

    position: int
    text: str
    before: str

    @property
    def whole(self) -> str:
        """The words, and the question that they answer."""
        return f"{self.text}{self.answers}"

    @property
    def answers(self) -> str:
        """The question that short words answer, in parentheses; "" without one."""
        short = len(self.text) <= SHORT and len(self.text.split()) <= FEW
        asks = self.text.endswith(("?", "？")) or self.text.startswith("/")
        question = asked_by(self.before, self.text) if short and not asks else ""
        return f" (answers: {question})" if question else ""


def asked_by(text: str, answer: str) -> str:
    """Return the option of a text that an answer names, else the last question; "" without one."""
    text = text[-LOOK_AT:]
    named = answer.strip(" .)").casefold()
    options = {mark.casefold(): said for mark, said in _OPTION.findall(text)}
    asked = (one for one in reversed(_SENTENCE.split(text)) if one.endswith(("?", "？")))
    found = options.get(named) or next(asked, "")
    return " ".join(found.replace("**", "").split())[:160]


def words_of_people(span: Span) -> list[Said]:
    """Return what people said, refusals and messages that stay included, in order."""
    refused = {one.result.position: one.words for one in rejections(span.originals)}
    found: list[Said] = []
    before = ""
    for block in sorted([*span.originals, *span.kept], key=lambda block: block.position):
        text = refused.get(block.position) or message_of(block)
        if text and not (found and found[-1].text == text):
            found.append(Said(block.position, text, before))
        if is_said(block):
            before = block.text
    return found


def is_said(block: Block) -> bool:
    """Return whether an agent said this to a person."""
    spoken = block.kind == "assistant" and block.type == "text" and block.text.strip()
    return bool(spoken) and not block.text.startswith(NOT_ANSWERED)


def request(span: Span, people: Sequence[Said]) -> list[str]:
    """Return what was asked first and last, and the constraints between, word for word."""
    first = [quoted(one.whole, 1_000) for one in people[:1]]
    latest = [f"{LATEST}{quoted(people[-1].whole, 600)}"] if len(people) > 1 else []
    limits = [quoted(one, 400) for one in constraints(one.text for one in people)]
    # The first line stays in later summaries, the latest does not.
    shown = "" if span.previous else "".join(first)
    return [*first, *(f"{CONSTRAINT}“{one}”" for one in limits if one not in shown), *latest]


def messages(span: Span, people: Iterable[Said]) -> list[str]:
    """Return a line per message: short if the message stays; with pictures and refusals."""
    kept = {block.position for block in span.kept}
    lines = {
        one.position: quoted(one.text, 160) if one.position in kept else quoted(one.whole, 700)
        for one in people
    }
    for block in span.originals:
        if block.type == "image" and block.role == "user" and block.position not in kept:
            lines[block.position] = quoted(block.text, 160)
    return list(dict.fromkeys(line for _, line in sorted(lines.items())))


def reports(blocks: Iterable[Block]) -> list[str]:
    """Return what the agent said last before each message of a person."""
    found: list[str] = []
    last = ""
    for block in blocks:
        if is_said(block):
            last = block.text.strip()
        elif last and message_of(block):
            found += [last] if len(last) >= SHORTEST_REPORT else []
            last = ""
    return [f"Reported: “{quoted(text, 240)}”" for text in found[-MOST_REPORTS:]]
