"""Choose the sentences of a session that go on to matter: constraints, decisions, next steps."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compaction.context.blocks import Block
from compaction.facts.facts import COMMON, OUTSIDE, facts, facts_of
from compaction.facts.noise import built_in, is_noise, prose
from compaction.facts.paths import DEEPEST
from compaction.facts.vocabulary import is_name, kind_of

LONGEST = 8_000
"""Code points of a text in which sentences are looked for; longer ones are pasted."""

WIDTH = 400
"""Code points of a sentence that is quoted whole; a longer one is not quoted."""

PLAN = 1_500
"""Code points from which a message is a plan (our choice)."""

SHORTEST = 12
MOST_PER_MESSAGE = 5
MOST_CONSTRAINTS = 16
MOST_DECISIONS = 16
"""How many are kept of each, the newest (our choice)."""

MOST_NAMES = 120
"""Names listed at most: more add little (our choice, on real compactions)."""

LONGEST_NAME = 60

_VERSION = re.compile(r"v?\d|h1:|[0-9a-f]{12,}\Z|[A-Za-z0-9]{24,}\Z")
"""Names that say nothing by themselves: versions, hashes, ids."""

_ESCAPE = re.compile(r"\\[nrt]")
"""Of JSON that a result shows."""

_WEIGHTS = {"text": 3, "tool_use": 2, "tool_result": 1}
"""What an occurrence of a name in a block counts, by the block's type (our choice)."""

_SENTENCE = re.compile(r"(?<!\b\w\.)(?<=[.!?])\s+|(?<=[。！？；])|\n+")
"""Where sentences end; the letter of a list item ends none."""

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_MARKS = re.compile(r"(?:[-*•#>|✓✗✅❌→\s]|\d{1,3}[.)](?=\s))*")
"""What begins a line of a list, a table or a quotation."""

_CELLS = re.compile(r"\S \| ")
"""Between the cells of a table, which are no sentences."""

_ORDERS = (
    r"\b(?:don['’]?t|do not|(?<!is )(?<!are )(?<!was )(?:never|always)(?! \w+(?<!s)s\b)"
    r"|must(?:n['’]t)?|avoid|make sure|ensure|should(?:n['’]t| not| always)|not allowed"
    r"|let['’]s not|nicht|nie(?:mals)?|immer|muss|kein\w{0,2}|ne pas|jamais|toujours|nunca"
    r"|siempre)\b"
    r"|不要|不能|不用|别|必须|务必|禁止|ないで|必ず|しないで|하지 ?마|반드시"
)
_PREFERENCES = (
    r"\b(?:doesn['’]?t need|only|instead of|rather than|prefer(?:red)?|no need|should be"
    r"|without \w+ing|keep (?:it|the|in)|stick (?:to|with)|nur|seulement|solo)\b"
    r"|只|だけ|만 "
)
_CONSTRAINT = re.compile(f"{_ORDERS}|{_PREFERENCES}", re.IGNORECASE)
_ORDER = re.compile(_ORDERS, re.IGNORECASE)
_DECISION = re.compile(
    r"\b(?:because|instead of|rather than|root cause|decided|chose|the fix is|trade-?off"
    r"|(?:issue|problem|cause|bug|reason) (?:is|was)\b|turns? out|the culprit|so that"
    r"|won['’]t work|doesn['’]t work|not supported|we['’]ll use|going with"
    r"|weil|statt|parce que|porque)\b"
    r"|因为|所以|原因|根因|改用|决定|ため|原因",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"\b(?:next|let me|I['’]ll|I will|I['’]m going to|now I|let['’]s|should I|shall I"
    r"|would you like|do you want|want me to|remaining|todo|then I)\b"
    r"|接下来|下一步|现在|让我|要不要|次に|これから",
    re.IGNORECASE,
)


def constraints(messages: Iterable[str]) -> list[str]:
    """Return the sentences with which people limit the work or state a preference, verbatim.

    Of a plan only what it orders: "only" and the like describe it.
    """
    found: list[str] = []
    for message in messages:
        said = (one for one in _sentences(prose(message[:LONGEST])) if one[-1] not in "?？")
        limits = _CONSTRAINT if len(message) <= PLAN else _ORDER
        chosen = [one for one in said if limits.search(one)]
        found += chosen[:MOST_PER_MESSAGE]
    return list(dict.fromkeys(found))[-MOST_CONSTRAINTS:]


def decisions(texts: Iterable[str]) -> list[str]:
    """Return the sentences in which the agent gives a reason or a cause, verbatim.

    One that ends in a colon says it in the next sentence.
    """
    found: list[str] = []
    for text in texts:
        text, before = text[:LONGEST], ""
        for one in _sentences(text) if _DECISION.search(text) else ():
            whole = f"{before} {one}".lstrip()
            chosen = len(whole) <= WIDTH and _DECISION.search(whole) is not None
            before = whole if chosen and one.endswith(":") else ""
            found += [whole] if chosen and not before else []
    return list(dict.fromkeys(found))[-MOST_DECISIONS:]


def next_step(text: str) -> str:
    """Return where the agent announces or asks something last, word for word, else its last words.

    That is a whole paragraph if it is short, otherwise from that sentence on: a list may follow.
    """
    text = text[-LONGEST:].strip()
    paragraphs = [part for part in _PARAGRAPH.split(text) if part.strip()]
    chosen = next((one for one in reversed(paragraphs) if _NEXT.search(one)), "")
    if not chosen:
        return paragraphs[-1] if paragraphs else ""
    start = text.rindex(chosen)
    if len(chosen) > WIDTH:
        last = max(match.start() for match in _NEXT.finditer(chosen))
        ends = (match.end() for match in _SENTENCE.finditer(chosen))
        return text[start + max((end for end in ends if end <= last), default=0) :]
    return text[start:] if chosen.rstrip().endswith(":") else chosen


def _sentences(text: str) -> Iterable[str]:
    for part in _SENTENCE.split(text):
        sentence = " ".join(_MARKS.sub("", part, count=1).split())
        if sentence.count("**") % 2:
            sentence = sentence.replace("**", "", 1)
        if _CELLS.search(sentence):
            continue
        if SHORTEST <= len(sentence) <= WIDTH or (
            len(sentence) > 4 and not sentence.isascii() and len(sentence) <= WIDTH
        ):
            yield sentence


def telling_names(blocks: Iterable[Block]) -> list[str]:
    """Return the names that an agent is likely to need again, best last.

    Names in people's and the agent's own texts and in calls count more than names in results, and
    later ones more than earlier ones. Paths of files are left out: summaries list them.
    """
    worth: dict[str, float] = {}
    held: dict[str, int] = {}
    paths: set[str] = set()
    listed = list(blocks)
    for place, block in enumerate(listed, 1):
        if block.file is not None:
            paths.add(block.file.path.strip(OUTSIDE))
        weight = _WEIGHTS.get(block.type, 0) * (0.5 + place / len(listed))
        shown = facts(_ESCAPE.sub(" ", block.text)) if block.type == "tool_result" else None
        for fact in facts_of(block) if shown is None else shown:
            if len(fact) <= LONGEST_NAME and not fact.isdecimal():
                worth[fact] = worth.get(fact, 0) + weight
                held[fact] = held.get(fact, 0) + 1
    parts = [path.split("/")[-DEEPEST:] for path in paths]
    endings = {"/".join(one[start:]) for one in parts for start in range(len(one))} | paths
    names = [one for one in worth if held[one] <= COMMON and one not in endings and _tells(one)]
    names.sort(key=lambda one: (worth[one] / (len(one) + 8), one))
    return names[-MOST_NAMES:]


def _tells(name: str) -> bool:
    if name == "in_progress" or is_noise(name) or built_in(name) or _VERSION.match(name):
        return False
    return kind_of(name) != "identifier" or is_name(name)
