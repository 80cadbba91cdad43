"""The chat board: the shared memory of a task, collected from its agents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Literal, get_args

from compaction.proposals.plan import Count

EntryKind = Literal["task", "plan", "agent", "knowledge", "task_done"]
KINDS: tuple[EntryKind, ...] = get_args(EntryKind)

MOST_ENTRIES = 1_000
"""Maximum entries of a board; the oldest is dropped (Dakou)."""

LONGEST = 4_000
"""Maximum code points of an entry (our choice)."""

HEAD, TAIL = "<chat_board>", "</chat_board>"

_STEPS = (
    *((1_600, 1_600), (800, 800), (400, 400), (400, 160), (240, 160), (240, 100)),
    *((240, 60), (160, 60), (100, 60)),
)
"""Code points to which entries are shortened before any is left out: the most valuable ones, and
the others (our choice)."""

_NEAR = 12
"""Number of most valuable entries (our choice)."""

_BARE = 60
"""At this length an entry omits author and time, which would be longer than its text."""

_TASK = 4
"""How many times longer than others the task may be, because it must not drift (our choice)."""

_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class BoardNote:
    """One entry; `key` identifies it on its board, where it replaces an earlier one with that key.

    `at` is in ms since the epoch, None if unknown. `message` and `block` are its source in the
    session. `origin` is another session that it came from, `stale` says why it may be outdated,
    empty otherwise. `untrusted`: it quotes content from outside the task.
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
    """The maximum size of a board in a context. 500 to 2,000 tokens: Dakou."""

    tokens: int = field(
        default=2_000,
        metadata={"min": 200, "max": 50_000, "help": "Maximum size of the board, in tokens."},
    )


@dataclass(frozen=True, slots=True)
class Rendered:
    """A board as text, empty without entries; `kept` holds the keys of the entries it shows."""

    text: str
    kept: tuple[str, ...] = ()
    tokens: int = 0


def put(board: dict[str, BoardNote], entry: BoardNote) -> None:
    """Put an entry on a board: replace the task, append anything else, drop the oldest.

    An entry with a known key keeps its place.
    """
    board[entry.key] = entry
    while len(board) > MOST_ENTRIES:
        del board[next(key for key, one in board.items() if one.kind != "task")]


def plain(text: str) -> str:
    """Replace characters that stores and XML cannot hold by U+FFFD."""
    return _NO_XML.sub("\ufffd", text.replace("\r\n", "\n"))


def render(entries: Iterable[BoardNote], size: BoardSize, count: Count) -> Rendered:
    """Render the board as XML, in the order of its entries, the task first.

    Entries are shortened before any is left out, the newest last. Dropped first are plans replaced
    by a newer one of the same agent, then stale knowledge, then the oldest findings, knowledge and
    reports, then plans, and last the task. Deterministic, always well-formed, and linear in the
    entries.
    """
    listed = list(entries)[-MOST_ENTRIES:]
    if not listed:
        return Rendered("")
    ranked = _ranked(listed)
    room = size.tokens - count(f"{HEAD}\n{TAIL}") - 1
    chosen: dict[int, str] = {}
    for near, far in _STEPS:
        chosen = _fitting(listed, ranked, (near, far), room, count)
        if len(chosen) == len(listed):
            break
    # Lines were counted one by one; the count of the whole text decides.
    while chosen:
        text = "\n".join([HEAD, *_in_order(listed, chosen), TAIL])
        tokens = count(text)
        if tokens <= size.tokens:
            return Rendered(text, tuple(listed[i].key for i in sorted(chosen)), tokens)
        del chosen[next(reversed(chosen))]
    return Rendered("")


def _in_order(listed: Sequence[BoardNote], chosen: dict[int, str]) -> Iterator[str]:
    for place in sorted(chosen, key=lambda place: (listed[place].kind != "task", place)):
        yield chosen[place]


def _ranked(listed: Sequence[BoardNote]) -> list[int]:
    """Return the indexes of entries, most valuable first."""
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
    listed: Sequence[BoardNote], ranked: Sequence[int], longest: tuple[int, int], room: int,
    count: Count,
) -> dict[int, str]:  # fmt: skip
    """Return as many shortened entries as fit, in order of value."""
    chosen: dict[int, str] = {}
    for number, place in enumerate(ranked):
        line = element(listed[place], longest[number >= _NEAR])
        cost = count(f"{line}\n") + 1
        if cost > room:
            break
        room -= cost
        chosen[place] = line
    return chosen


def element(entry: BoardNote, longest: int = LONGEST) -> str:
    """Render an entry as an XML element with at most `longest` code points of text."""
    most = longest * (_TASK if entry.kind == "task" else 1)
    text = shortened(plain(entry.text).strip(), most)
    name = "task_done_summary" if entry.kind == "task_done" else entry.kind
    named = _attributes(entry) if longest > _BARE or entry.untrusted or entry.stale else ()
    given = [f'{key}="{_attribute(value)}"' for key, value in named if value]
    return f"<{' '.join([name, *given])}>{escape(text, quote=False)}</{name}>"


def _attributes(entry: BoardNote) -> Iterator[tuple[str, str]]:
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
    """Format milliseconds since the epoch as a time in UTC; empty if unknown."""
    if at is None or not 0 <= at < 253_402_300_800_000:
        return ""
    return datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def shortened(text: str, most: int) -> str:
    """Cut a text to at most `most` code points, with a mark at the end."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
