"""Whether what a model answered is a summary that may be stored."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.plan import Count, Span
from compaction.spans import OVERRUN
from compaction.summary import WINDOW_HEAD, file_operations, problems


def read(answer: str, span: Span) -> str:
    """The summary in an answer: without the analysis before it, and what was said around it."""
    if span.form == "window":
        return answer[max(answer.rfind(WINDOW_HEAD), 0) :].strip()
    start = answer.find("<summary>", max(answer.find("</analysis>"), 0))
    end = answer.rfind("</summary>")
    return answer[start : end + len("</summary>")] if 0 <= start < end else answer.strip()


def faults(summary: str, span: Span, count: Count, size: int) -> list[str]:
    """Why a summary must not be stored, in sentences that quote nothing from it.

    `size` are the tokens of what it stands for: it has to be shorter, and to keep its budget but
    for the quarter that `spans` allows. A reference has to be one that the span holds.
    """
    found = [_unquoted(problem) for problem in problems(summary, span.form)]
    tokens = count(summary)
    if tokens > OVERRUN * span.budget:
        found.append(f"it has {tokens} tokens, {span.budget} are allowed")
    if tokens >= size:
        found.append(f"it has {tokens} tokens, what it stands for has {size}")
    known = references(span)
    unknown = [ref for _, _, ref in file_operations(summary) if ref and _id(ref) not in known]
    if unknown:
        found.append(f"{len(unknown)} references are not in the transcript")
    missing = [problem for problem in found if problem.endswith(" is missing")]
    if len(missing) > 2:
        found = [f"{len(missing)} sections are missing", *(f for f in found if f not in missing)]
    return list(dict.fromkeys(found))


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
