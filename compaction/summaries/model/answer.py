"""Validate what a model answered, and extract the summary from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.facts.vocabulary import Vocabulary
from compaction.proposals.plan import Count, Span
from compaction.summaries.extract import coded
from compaction.summaries.model.prompt import asked
from compaction.summaries.model.quotes import verbatim
from compaction.summaries.model.supported import known_to, unsupported, without
from compaction.summaries.spans import OVERRUN
from compaction.summaries.summary import (
    WINDOW_HEAD,
    file_operations,
    malformed,
    named_by,
    parse,
    problems,
    render,
)

SHORT = 400
"""Code points up to which an answer that mentions an error counts as one (our choice)."""

_ERROR_LIKE = re.compile(
    r"\b(?:api|internal server|overloaded|rate.?limit|timeout|invalid.request)[ _]?error\b"
    r"|\berror code:? ?\d{3}\b|\bservice unavailable\b|\btoo many requests\b"
    r"|\bI(?:'m| am) (?:sorry|unable|not able)\b|\bI (?:cannot|can't|can not)\b|\bas an AI\b",
    re.IGNORECASE,
)


def read(answer: str, span: Span) -> str:
    """Extract the summary from an answer, without the analysis and text around it."""
    if span.form == "window":
        return answer[max(answer.rfind(WINDOW_HEAD), 0) :].strip()
    start = answer.find("<summary>", max(answer.find("</analysis>"), 0))
    end = answer.rfind("</summary>")
    return answer[start : end + len("</summary>")] if 0 <= start < end else answer.strip()


@dataclass(frozen=True, slots=True)
class Checks:
    """What answers about one span are checked against, built once per span.

    `size` is the number of tokens the summary replaces, `code` holds the sections that code writes,
    `known` everything that a summary may name.
    """

    span: Span
    count: Count
    size: int
    code: Mapping[str, Sequence[str]]
    known: Vocabulary

    @classmethod
    def of(cls, span: Span, count: Count) -> Checks:
        """Build the checks for a span, in the session's counting."""
        size = sum(block.tokens for block in span.blocks) + count(span.previous or "")
        return cls(span, count, size, coded(span), known_to(span))

    @property
    def budget(self) -> int:
        """Tokens left for a model besides the sections that code writes."""
        ours = "\n".join(line for lines in self.code.values() for line in lines)
        return max(self.span.budget - self.count(ours), self.span.budget // 4)

    def faults(self, text: str) -> list[str]:
        """Return why an answer must not be used, in sentences that do not quote it.

        An answer must have all requested sections, say something, be shorter than what it replaces,
        and keep its budget within the quarter that `spans` allows. Its references must occur in the
        span.
        """
        found = [_unquoted(problem) for problem in self._broken(text)]
        if found:
            return list(dict.fromkeys(found))
        summary = self.summary(text)
        found = [_unquoted(problem) for problem in problems(summary, self.span.form)]
        tokens = self.count(summary)
        if tokens > OVERRUN * self.span.budget:
            found.append(f"it has {tokens} tokens, {self.span.budget} are allowed")
        if tokens >= self.size:
            found.append(f"it has {tokens} tokens, what it replaces has {self.size}")
        known = references(self.span)
        unknown = [ref for _, _, ref in file_operations(summary) if ref and _id(ref) not in known]
        if unknown:
            found.append(f"{len(unknown)} references are not in the transcript")
        return list(dict.fromkeys(found))

    def _broken(self, text: str) -> list[str]:
        form = self.span.form
        if form == "window" and not text.startswith(WINDOW_HEAD):
            return problems(text, form)
        sections = parse(text, form)
        missing = [name for name in asked(form) if name not in sections]
        wrong = [f"section {name} is missing" for name in missing]
        if len(wrong) > 2:
            wrong = [f"{len(wrong)} sections are missing"]
        if form != "window":
            if not text.startswith("<summary>") or not text.rstrip().endswith("</summary>"):
                wrong.append("it is not enclosed in <summary>")
            places = [text.find(f"<{name}>") for name in asked(form) if name in sections]
            if places != sorted(places):
                wrong.append("sections are not in order")
            wrong += malformed(text)
        said = [line for name in asked(form) for line in sections.get(name, ())]
        if not said:
            wrong.append("no section says anything")
        elif sum(map(len, said)) <= SHORT and any(map(_ERROR_LIKE.search, said)):
            wrong.append("it reports an error instead of the transcript")
        return wrong

    def summary(self, text: str) -> str:
        """Combine an answer with the sections that code writes.

        A next step is kept only if it quotes the span word for word.
        """
        return self._rendered(self._sections(text))

    def unsupported(self, text: str) -> list[str]:
        """Return names, paths and numbers of an answer that none of its sources contain."""
        said = [line for lines in self._sections(text).values() for line in lines]
        return unsupported("\n".join(said), self.known)

    def without(self, text: str, facts: Sequence[str]) -> str | None:
        """Remove the sentences that state these facts; None if nothing else is left."""
        sections = self._sections(text)
        left = {name: without(lines, facts) for name, lines in sections.items()}
        return self._rendered(left) if any(left.values()) else None

    def draft(self, summary: str) -> str:
        """Return the part of a summary that a model wrote, for the next request to quote."""
        sections = parse(summary, self.span.form)
        if self.span.form == "window":
            return summary
        lines = ["<summary>"]
        for name in asked(self.span.form):
            lines += [f"<{name}>", *(sections.get(name) or ["None"]), f"</{name}>"]
        return "\n".join([*lines, "</summary>"])

    def _sections(self, text: str) -> dict[str, list[str]]:
        sections = parse(text, self.span.form)
        found = {name: sections.get(name, []) for name in asked(self.span.form)}
        if "final_state" in found:
            found["final_state"] = [x for x in found["final_state"] if named_by(x) is None]
        if "optional_next_step" in found:
            found["optional_next_step"] = verbatim(found["optional_next_step"], self.span)
        return found

    def _rendered(self, sections: Mapping[str, Sequence[str]]) -> str:
        whole = {name: list(lines) for name, lines in sections.items()}
        for name, lines in self.code.items():
            whole[name] = [*whole.get(name, ()), *lines]
        return render(whole, self.span.form)


def references(span: Span) -> frozenset[str]:
    """Return the ids that a summary may reference: blocks of the span, and ids they reference."""
    known = {block.id for block in span.originals}
    known.update(ref for block in span.blocks for ref in block.refs)
    known.update(_id(ref) for _, _, ref in file_operations(span.previous or ""))
    return frozenset(known)


def _id(ref: str) -> str:
    return ref.rsplit("@", 1)[0]


_QUOTING: Sequence[tuple[str, str]] = (
    ("malformed element", "a file or command element is malformed"),
    ("unknown action", "an action is none of the five"),
    ("unknown status", "a status is neither succeeded nor failed"),
)


def _unquoted(problem: str) -> str:
    # Text of a transcript must not appear in our messages or notes.
    return next((said for start, said in _QUOTING if problem.startswith(start)), problem)
