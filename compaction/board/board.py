"""The chat board: what must not be lost from view in a task, collected from its agents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Literal, get_args

from compaction.plan import Count

EntryKind = Literal["task", "plan", "agent", "knowledge", "task_done"]
KINDS: tuple[EntryKind, ...] = get_args(EntryKind)

MOST_ENTRIES = 1_000
"""Entries of a board; of more the oldest goes (Dakou)."""

LONGEST = 4_000
"""Code points of one entry (ours)."""

HEAD, TAIL = "<chat_board>", "</chat_board>"

_STEPS = (
    *((1_600, 1_600), (800, 800), (400, 400), (400, 160), (240, 160), (240, 100)),
    *((240, 60), (160, 60), (100, 60)),
)
"""Code points to which entries are shortened before any is left out: those that are worth most,
and the others (ours)."""

_NEAR = 12
"""So many entries are worth most (ours)."""

_BARE = 60
"""At this length an entry stands without who and when, which would be longer than what it says."""

_TASK = 4
"""So many times as long as the others may the task be: it is what must not drift (ours)."""

_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry; `key` names it on its board: another of the same key takes its place.

    `at` is ms since the epoch, None where nobody knows. `message` and `block` say what of its
    session it was read from. `origin` names another session that it came from, `stale` says why it
    may no longer hold; empty where it does. `untrusted`: it quotes what no agent of the task wrote.
    """

    kind: EntryKind
    text: str
    key: str
    agent: str = ""
    task: str = ""
    at: int | None = None
    message: int | None = None
    block: str = ""
    origin: str = ""
    stale: str = ""
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class BoardSize:
    """How large a board may be where a model reads it. 500 to 2,000 tokens: Dakou."""

    tokens: int = field(
        default=2_000,
        metadata={"min": 200, "max": 50_000, "help": "Tokens that all of it may take at most."},
    )


@dataclass(frozen=True, slots=True)
class Rendered:
    """A board as text, empty without entries; `kept` are the keys of the entries that it tells."""

    text: str
    kept: tuple[str, ...] = ()
    tokens: int = 0


def put(board: dict[str, Entry], entry: Entry) -> None:
    """Put an entry on a board: the task is set, all else is appended, the oldest goes.

    An entry that is known by its key keeps its place.
    """
    board[entry.key] = entry
    while len(board) > MOST_ENTRIES:
        del board[next(key for key, one in board.items() if one.kind != "task")]


def plain(text: str) -> str:
    """A text that every store and XML can hold: what they cannot is replaced by U+FFFD."""
    return _NO_XML.sub("\ufffd", text.replace("\r\n", "\n"))


def render(entries: Iterable[Entry], size: BoardSize, count: Count) -> Rendered:
    """The board as XML, in the order of its entries, the task first.

    Entries are shortened before any is left out, the newest last. What leaves first: plans that a
    newer one of the same agent took the place of, then stale knowledge, then the oldest of
    findings, knowledge and reports, then the plans; last of all the task. The same entries give
    the same text; well-formed whatever they hold. Linear in the entries.
    """
    listed = list(entries)[-MOST_ENTRIES:]
    if not listed:
        return Rendered("")
    ranked = _ranked(listed)
    room = size.tokens - count(f"{HEAD}\n{TAIL}") - 1
    told: dict[int, str] = {}
    for near, far in _STEPS:
        told = _fitting(listed, ranked, (near, far), room, count)
        if len(told) == len(listed):
            break
    # Lines were counted one by one; what a tokenizer makes of all of them is what counts.
    while told:
        text = "\n".join([HEAD, *_in_order(listed, told), TAIL])
        tokens = count(text)
        if tokens <= size.tokens:
            return Rendered(text, tuple(listed[i].key for i in sorted(told)), tokens)
        del told[next(reversed(told))]
    return Rendered("")


def _in_order(listed: Sequence[Entry], told: dict[int, str]) -> Iterator[str]:
    for place in sorted(told, key=lambda place: (listed[place].kind != "task", place)):
        yield told[place]


def _ranked(listed: Sequence[Entry]) -> list[int]:
    """Places of entries, what is worth most first."""
    planned: set[str] = set()
    ranks: list[tuple[int, int]] = []
    for place in reversed(range(len(listed))):
        entry = listed[place]
        rank = 2
        if entry.kind == "task":
            rank = 0
        elif entry.kind == "plan":
            rank = 4 if entry.agent in planned else 1
            planned.add(entry.agent)
        elif entry.stale:
            rank = 3
        ranks.append((rank, -place))
    return [-place for _, place in sorted(ranks)]


def _fitting(
    listed: Sequence[Entry], ranked: Sequence[int], longest: tuple[int, int], room: int,
    count: Count,
) -> dict[int, str]:  # fmt: skip
    """As many entries as fit, shortened; in order of their worth."""
    told: dict[int, str] = {}
    for number, place in enumerate(ranked):
        line = element(listed[place], longest[number >= _NEAR])
        cost = count(f"{line}\n") + 1
        if cost > room:
            break
        room -= cost
        told[place] = line
    return told


def element(entry: Entry, longest: int = LONGEST) -> str:
    """An entry as an XML element of at most so many code points of text."""
    most = longest * (_TASK if entry.kind == "task" else 1)
    text = shortened(plain(entry.text).strip(), most)
    name = "task_done_summary" if entry.kind == "task_done" else entry.kind
    named = _attributes(entry) if longest > _BARE or entry.untrusted or entry.stale else ()
    given = [f'{key}="{_attribute(value)}"' for key, value in named if value]
    return f"<{' '.join([name, *given])}>{escape(text, quote=False)}</{name}>"


def _attributes(entry: Entry) -> Iterator[tuple[str, str]]:
    if entry.kind == "agent":
        yield "id", entry.agent
    if entry.kind == "task_done":
        yield "task", entry.task
    if entry.kind in ("agent", "task_done"):
        yield "time", stamp(entry.at)
    yield "from", entry.origin
    yield "trust", "unchecked" if entry.untrusted else ""
    yield "stale", entry.stale


def _attribute(value: str) -> str:
    return escape(" ".join(plain(value)[:200].split()))


def stamp(at: int | None) -> str:
    """Milliseconds since the epoch as a time of day in UTC; empty where unknown."""
    if at is None or not 0 <= at < 253_402_300_800_000:
        return ""
    return datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def shortened(text: str, most: int) -> str:
    """A text of at most so many code points, cut at the end and marked."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
