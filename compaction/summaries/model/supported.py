"""Find claims of a summary that none of its sources contain, and remove them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from compaction.context.blocks import Block
from compaction.facts.facts import OUTSIDE, RUN, is_fact, texts_of
from compaction.facts.paths import normal
from compaction.facts.vocabulary import LONGEST, Vocabulary, is_name, kind_of
from compaction.proposals.plan import Span
from compaction.summaries.summary import FORMS

_WRITTEN_AROUND = re.compile(r"read the full transcript at: \S{1,400}")
"""The path of the log in Claude Code's frame around a summary, which no model wrote."""

_OURS = frozenset({name for names in FORMS.values() for name in names} | {"file_operation"})
"""The summarizer's own markup."""

_KEY = re.compile(r"(?:fileOp|cmd)_\d+(?:_(?:path|action|text))?\Z")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


def known_from(sources: Iterable[Block]) -> Vocabulary:
    """Collect everything that blocks contain: texts and the names of arguments, tools and files."""
    known = Vocabulary()
    for block in sources:
        for text in texts_of(block):
            known.add(text)
        if block.type == "tool_use":
            known.add(block.text)
        for name in (block.tool, block.file.path if block.file is not None else None):
            known.add(name or "")
    return known


def known_to(span: Span) -> Vocabulary:
    """Collect everything that a summarizer of a span can know.

    That is the span's blocks and originals, its earlier summary, the messages next to it, the
    board, and the team's instructions.
    """
    known = known_from([*span.originals, *span.blocks, *span.kept])
    for text in (span.previous, span.board, span.instructions):
        known.add(text or "")
        known.add(plain(text or ""))
    return known


def unsupported(summary: str, known: Vocabulary) -> list[str]:
    """Return the facts of a summary that nothing known contains, in order, once each."""
    found: dict[str, str] = {}
    for fact in claims(plain(summary)):
        token = normal(fact)
        if token not in found and not known.knows(fact, kind_of(fact)):
            found[token] = fact
    return list(found.values())


def plain(summary: str) -> str:
    """Decode the entities that our forms write; `&amp;` last, or it would decode twice."""
    for entity, letter in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        summary = summary.replace(entity, letter)
    return summary


def claims(summary: str) -> Iterator[str]:
    """Yield the facts that a summary states.

    Skips its markup, references, masks of secrets, names cut by an ellipsis, and words that only
    their capitals distinguish.
    """
    summary = _WRITTEN_AROUND.sub("", summary)
    for match in RUN.finditer(summary):
        run, start, end = match.group(), match.start(), match.end()
        token = run.strip(OUTSIDE)
        around = summary[max(start - 1, 0) : start], summary[end : end + 1]
        if len(token) > LONGEST or not is_fact(token) or token in _OURS or _KEY.match(token):
            continue
        if "…" in around or ".." in run or around == ("[", "]") or _is_reference(token):
            continue
        if kind_of(token) != "identifier" or is_name(token):
            yield token


def _is_reference(token: str) -> bool:
    """Return whether a token is a reference to an original: its id and the start of its hash."""
    name, at, check = token.partition("@")
    return bool(at) and len(check) == 8 and name[:1] in "mb" and name[1:2].isdecimal()


def without(lines: Iterable[str], facts: Collection[str]) -> list[str]:
    """Remove the sentences that state one of these facts; elements are removed as a whole."""
    tokens = {normal(fact) for fact in facts}
    kept = []
    for line in lines:
        # A path with one component less is a different path: compare whole tokens.
        parts = [line] if line.startswith("<") else _SENTENCE.split(line)
        left = [part for part in parts if tokens.isdisjoint(map(normal, claims(plain(part))))]
        if len(left) == len(parts):
            kept.append(line)
        elif any(part.strip(" -*") for part in left):
            kept.append(" ".join(left).strip())
    return kept
