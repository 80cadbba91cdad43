"""What a summary claims that nothing it was made from holds, and the summary without that."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from compaction.context import Block
from compaction.facts.facts import OUTSIDE, RUN, is_fact, texts_of
from compaction.facts.vocabulary import LONGEST, Vocabulary, is_name, kind_of, normal
from compaction.plan import Span
from compaction.summaries.summary import FORMS

_WRITTEN_AROUND = re.compile(r"read the full transcript at: \S{1,400}")
"""Of Claude Code's frame around a summary: the place of its log, which no model wrote."""

_OURS = frozenset({name for names in FORMS.values() for name in names} | {"file_operation"})
"""Words of the summarizer's own markup."""

_KEY = re.compile(r"(?:fileOp|cmd)_\d+(?:_(?:path|action|text))?\Z")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


def known_from(sources: Iterable[Block]) -> Vocabulary:
    """All that blocks hold: their texts, the names of arguments, tools and files."""
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
    """All that whoever summarises a span can know: what stands in it and stood, its earlier
    summary, the messages beside it, the board, and the team's instructions."""
    known = known_from([*span.originals, *span.blocks, *span.kept])
    for text in (span.previous, span.board, span.instructions):
        known.add(text or "")
        known.add(plain(text or ""))
    return known


def unsupported(summary: str, known: Vocabulary) -> list[str]:
    """The facts of a summary that nothing known holds, even in parts; each once, in order."""
    found: dict[str, str] = {}
    for fact in claims(plain(summary)):
        token = normal(fact)
        if token not in found and not known.knows(fact, kind_of(fact)):
            found[token] = fact
    return list(found.values())


def plain(summary: str) -> str:
    """A summary with the entities undone that our forms write; `&amp;` last, or it undoes two."""
    for entity, letter in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        summary = summary.replace(entity, letter)
    return summary


def claims(summary: str) -> Iterator[str]:
    """The facts that a summary states: without its markup, references, masks of secrets, names that
    an ellipsis cuts, and words that only capitals set apart."""
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
    """Whether it is one of ours to an original: its id, and the head of its hash."""
    name, at, check = token.partition("@")
    return bool(at) and len(check) == 8 and name[:1] in "mb" and name[1:2].isdecimal()


def without(lines: Iterable[str], facts: Collection[str]) -> list[str]:
    """Lines without the sentences that state one of these facts; elements go as a whole."""
    tokens = {normal(fact) for fact in facts}
    kept = []
    for line in lines:
        # A path of one component fewer is another: what counts is the whole token.
        parts = [line] if line.startswith("<") else _SENTENCE.split(line)
        left = [part for part in parts if tokens.isdisjoint(map(normal, claims(plain(part))))]
        if len(left) == len(parts):
            kept.append(line)
        elif any(part.strip(" -*") for part in left):
            kept.append(" ".join(left).strip())
    return kept
