"""Whether what a model answered is a summary that may be stored, and what of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.facts.vocabulary import Vocabulary
from compaction.plan import Count, Span
from compaction.summaries.extract import coded
from compaction.summaries.prompt import asked
from compaction.summaries.quotes import verbatim
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
from compaction.summaries.supported import known_to, unsupported, without

SHORT = 400
"""Code points up to which an answer that speaks of an error is taken for one (ours)."""

_ERROR_LIKE = re.compile(
    r"\b(?:api|internal server|overloaded|rate.?limit|timeout|invalid.request)[ _]?error\b"
    r"|\berror code:? ?\d{3}\b|\bservice unavailable\b|\btoo many requests\b"
    r"|\bI(?:'m| am) (?:sorry|unable|not able)\b|\bI (?:cannot|can't|can not)\b|\bas an AI\b",
    re.IGNORECASE,
)


def read(answer: str, span: Span) -> str:
    """The summary in an answer: without the analysis before it, and what was said around it."""
    if span.form == "window":
        return answer[max(answer.rfind(WINDOW_HEAD), 0) :].strip()
    start = answer.find("<summary>", max(answer.find("</analysis>"), 0))
    end = answer.rfind("</summary>")
    return answer[start : end + len("</summary>")] if 0 <= start < end else answer.strip()


@dataclass(frozen=True, slots=True)
class Checks:
    """What answers about one span are held against, made once for all of them.

    `size` are the tokens of what the summary stands for, `code` the sections that code writes,
    `known` all that a summary may name.
    """

    span: Span
    count: Count
    size: int
    code: Mapping[str, Sequence[str]]
    known: Vocabulary

    @classmethod
    def of(cls, span: Span, count: Count) -> Checks:
        """The checks for a span, in the session's counting."""
        size = sum(block.tokens for block in span.blocks) + count(span.previous or "")
        return cls(span, count, size, coded(span), known_to(span))

    @property
    def budget(self) -> int:
        """Tokens that are left to a model beside what code writes."""
        ours = "\n".join(line for lines in self.code.values() for line in lines)
        return max(self.span.budget - self.count(ours), self.span.budget // 4)

    def faults(self, text: str) -> list[str]:
        """Why an answer must not be used, in sentences that quote nothing from it.

        It has to have all sections that were asked for, to say something, to be shorter than what
        it stands for, and to keep its budget but for the quarter that `spans` allows. A reference
        has to be one that the span holds.
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
            found.append(f"it has {tokens} tokens, what it stands for has {self.size}")
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
            wrong.append("it speaks of an error instead of the transcript")
        return wrong

    def summary(self, text: str) -> str:
        """The summary that an answer makes together with the sections of code.

        A next step stays only with a quotation that stands in the span word for word.
        """
        return self._rendered(self._sections(text))

    def unsupported(self, text: str) -> list[str]:
        """Names, paths and numbers of an answer that nothing it was made from holds."""
        said = [line for lines in self._sections(text).values() for line in lines]
        return unsupported("\n".join(said), self.known)

    def without(self, text: str, facts: Sequence[str]) -> str | None:
        """The summary without the sentences that state these; None where nothing else is left."""
        sections = self._sections(text)
        left = {name: without(lines, facts) for name, lines in sections.items()}
        return self._rendered(left) if any(left.values()) else None

    def draft(self, summary: str) -> str:
        """Of a summary what a model wrote, as the next part's request quotes it."""
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
    """Ids that a summary may refer to: of blocks of the span, or named by what stands there."""
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
    # What a transcript says must not come back as our own words, nor stand in a note.
    return next((said for start, said in _QUOTING if problem.startswith(start)), problem)
