"""Recitation: the to-do list and key facts, repeated at the very end of a context."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice

from compaction.context.blocks import Block
from compaction.context.hints import IMAGES, LANGUAGES
from compaction.context.stubs import reference
from compaction.proposals.setting import setting
from compaction.recitation.dashboard import GUIDANCE, KEPT, Panel, dashboard
from compaction.recitation.room import LineTokens, Room, harmless
from compaction.seen.todo import FILE, Todo

DOES = "Repeats the to-do list and key facts at the very end of the context."
"""What recitation does, for the policy page."""

HEAD = "[Recited from this session's own events. Not a message of the user.]"

LINE = 240
"""Maximum code points of a recited line (our choice)."""

_DATA = frozenset({"csv", "tsv", "json", "jsonl", "xlsx", "xls", "parquet", "xml", "yaml", "yml"})
_NOTES = frozenset({"md", "txt", "rst", "pdf", "docx", "html"})
_LOG = re.compile(r"(?:^|[^a-z])(?:err(?:or)?s?|logs?)(?:$|[^a-z])")
_CHANGES = ("write", "edit", "delete")
_SAID = {"write": "written", "edit": "edited", "delete": "deleted", "read": "read"}


@dataclass(frozen=True, slots=True)
class Recite:
    """Settings of the recitation.

    10 tool calls and the reminder: MaybeAi; dashboard and guidance: Dakou; the other numbers are
    our choice.
    """

    tokens: int = setting(
        1_000,
        "Recite up to",
        "Maximum size of the recitation.",
        "Memory",
        "tokens",
        between=(100, 50_000),
    )
    observations: int = setting(
        8,
        "Recite key observations",
        "Maximum key observations listed, the newest.",
        "Memory",
        "observations",
        between=(0, 200),
        advanced=True,
        zero="none",
    )
    files: int = setting(
        8,
        "Recite key files",
        "Maximum key files listed.",
        "Memory",
        "files",
        between=(0, 200),
        advanced=True,
        zero="none",
    )
    stale: int = setting(
        10,
        "Flag the to-do list after",
        "Tool calls without an update after which the to-do list is flagged.",
        "Memory",
        "tool calls",
        between=(1, 10_000),
        advanced=True,
    )
    remind: bool = setting(
        True,
        "Remind the agent of a flagged to-do list",
        "Ask the agent to update it.",
        "Memory",
        advanced=True,
    )
    dashboard: int = setting(
        0,
        "Dashboard of at most",
        "Part of the recitation for the dashboard.",
        "Memory",
        "tokens",
        between=(0, 50_000),
        slider=(0, 5_000),
        zero="none",
    )
    operations: int = setting(
        5,
        "Operations on the dashboard",
        "Maximum operations on the dashboard, the newest.",
        "Memory",
        "operations",
        between=(0, KEPT),
        advanced=True,
        zero="none",
    )
    guidance: tuple[str, ...] = setting(
        GUIDANCE,
        "Reminders on the dashboard",
        "Texts shown on the dashboard, one per line.",
        "Memory",
        advanced=True,
    )


@dataclass(slots=True)
class _File:
    """The operations on a file, by action, and its recited line."""

    done: dict[str, int]
    line: str


@dataclass(slots=True)
class Recital:
    """The data of a recitation, learned from originals block by block in order of position.

    Can be rebuilt from the originals at any time; constant work per block.
    """

    todo: Todo = field(default_factory=Todo)
    panel: Panel = field(default_factory=Panel)
    calls: int = 0
    _changed: dict[str, _File] = field(default_factory=dict)
    _read: dict[str, _File] = field(default_factory=dict)
    _waiting: dict[str, tuple[Block, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, originals: Iterable[Block]) -> Recital:
        """Build from all originals at once."""
        made = cls()
        for block in originals:
            made.add(block)
        return made

    def add(self, block: Block) -> None:
        """Process the next original; a call counts as done once its result is there."""
        if block.type == "tool_use":
            self.calls += 1
            if block.tool_call is not None:
                self._waiting[block.tool_call] = block, self.calls
        elif block.type == "tool_result" and block.tool_call in self._waiting:
            use, number = self._waiting.pop(block.tool_call)
            self.panel.take_in(use, block)
            if not block.error:
                self.todo.take_in(use, block, number)
                self._note(block, use)
        elif block.kind == "file" and not block.error:
            self._note(block, block)

    def _note(self, block: Block, use: Block) -> None:
        file = block.file or use.file
        if file is None or file.action == "list":
            return
        if file.path.rsplit("/", 1)[-1].lower() == FILE:
            return
        old = self._changed.pop(file.path, None) or self._read.pop(file.path, None)
        done = dict(old.done) if old is not None else {}
        done[file.action] = done.get(file.action, 0) + 1
        noted = self._changed if any(name in done for name in _CHANGES) else self._read
        actions = ", ".join(_times(_SAID[name], done[name]) for name in _SAID if name in done)
        line = f"- {_group(file.path)} {file.path}: {actions}"
        noted[file.path] = _File(done, _cut(line, f" (ref {reference(block)})"))

    def files(self) -> Iterator[str]:
        """Yield a line for each file, newest first, changed files before files only read."""
        for file in chain(reversed(self._changed.values()), reversed(self._read.values())):
            yield file.line


def _times(said: str, count: int) -> str:
    return said if count == 1 else f"{said} {count} times"


def _group(path: str) -> str:
    """Return the group of a file: MaybeAi's groups, and code."""
    stem, _, ending = path.rsplit("/", 1)[-1].lower().rpartition(".")
    if ending in IMAGES:
        return "image"
    if ending in ("log", "err", "out") or (ending not in LANGUAGES and _LOG.search(stem)):
        return "error log"
    if ending in _DATA:
        return "data"
    if ending in _NOTES:
        return "notes"
    return "code" if ending in LANGUAGES else "file"


def _cut(line: str, end: str = "") -> str:
    """Cut a line to LINE code points; its end stays."""
    line = " ".join(line.split())
    room = LINE - len(end)
    return (line if len(line) <= room else f"{line[: room - 1]}…") + end


def observations(shortened: Iterable[Block]) -> Iterator[str]:
    """Yield a line for each result that a stub or an excerpt replaces, without repeats."""
    said: set[str] = set()
    for block in shortened:
        first = block.text.partition("\n")[0]
        subject, line = _observed(first, block.refs[0] if block.refs else "")
        if subject not in said:
            said.add(subject)
            yield line


@lru_cache(maxsize=1024)
def _observed(first: str, ref: str) -> tuple[str, str]:
    """Return the subject of a stub by its first line, and the recited line."""
    stub = first.strip().removeprefix("[").removesuffix("]")
    about, _, rest = stub.partition(": ")
    text = (rest or about).rsplit(" | ref ", 1)[0]
    return text.split(" | ", 1)[0], _cut(f"- {text}", f" (ref {ref})" if ref else "")


def recitation(
    recital: Recital,
    shortened: Iterable[Block],
    parameters: Recite,
    lines: LineTokens,
    at: int | None = None,
    *,
    own: bool = False,
) -> str:
    """Render the recitation, each part in its own element; empty if there is nothing to recite.

    `shortened` are the replacements of results in the context, newest first; `at` is when the
    newest call began (ms since the epoch). The to-do list takes what it needs, then the dashboard,
    key files and observations, each newest first, within `tokens`. `own`: only what the agent
    itself said, no word of a result, which could give orders in a system message. Deterministic for
    the same blocks and time. Source: MaybeAi, after Manus; the dashboard: Dakou.
    """
    room = Room(parameters.tokens - lines[HEAD], lines)
    todo = _todo(room, recital.todo, recital.calls, parameters, own=own)
    panel = _dashboard(room, recital.panel, at, parameters, own=own)
    files = room.part("key_files", islice(recital.files(), parameters.files))
    newest = islice(observations(() if own else shortened), parameters.observations)
    observed = room.part("recent_observations", newest)
    parts = [part for part in (observed, panel, files, todo) if part]
    return "\n".join([HEAD, *parts]) if parts else ""


def _dashboard(room: Room, panel: Panel, at: int | None, parameters: Recite, *, own: bool) -> str:
    if not parameters.dashboard:
        return ""
    part = Room(min(parameters.dashboard, room.left), room.lines)
    before = part.left
    text = dashboard(panel, at, parameters.operations, parameters.guidance, part, pages=not own)
    room.left -= before - part.left
    return text


def _todo(room: Room, todo: Todo, calls: int, parameters: Recite, *, own: bool) -> str:
    """Render the whole list; a list that is too long shows open items first."""
    if not todo.text.strip():
        return ""
    since = calls - todo.calls
    head, tail = f'<todo file="{FILE}">', "</todo>"
    if since >= parameters.stale:
        head = f'<todo file="{FILE}" updated="{since} tool calls ago">'
        if parameters.remind:
            tail += f"\nNot updated for {since} tool calls: bring the list up to date."
    lines = [harmless(line.rstrip()[:LINE]) for line in todo.text.strip().splitlines()]
    if own and todo.found:
        lines = ["[not written in this session: read the file]"]
    elif todo.behind:
        lines.append("[edited since: read the file for its newest text]")
    more = f"[and {len(lines)} more lines]"
    if not room.fits(f"{head}\n{more}\n{tail}"):
        return ""
    order = sorted(range(len(lines)), key=lambda place: _is_done(lines[place]))
    kept = set()
    for place in order:
        if not room.fits(lines[place]):
            break
        kept.add(place)
    shown = [line for place, line in enumerate(lines) if place in kept]
    if len(kept) < len(lines):
        shown.append(f"[and {len(lines) - len(kept)} more lines]")
    return "\n".join([head, *shown, tail])


def _is_done(line: str) -> bool:
    return line.lstrip(" \t-*+").lower().startswith("[x]")
