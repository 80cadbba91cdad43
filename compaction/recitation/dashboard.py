"""Dashboard: where the work stands, told from the session's own calls and their results."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

from compaction.context import Block
from compaction.hints import one_line
from compaction.recitation.browsing import Browser
from compaction.recitation.room import Room
from compaction.recitation.terminals import Terminals
from compaction.stubs import key_arguments

MARK = "dashboard"

GUIDANCE = (
    "Answer in the language of the user.",
    "Say what your last action came to before the next one.",
    "Run operations that do not depend on each other in parallel.",
)
"""What an agent is reminded of at every call (Dakou)."""

KEPT = 50
"""Operations that are kept in mind, the most that a dashboard can tell."""
FILES = 20
"""Edited files that are told by name; the others are counted."""
WIDTH = 160
"""Code points of a line about a call."""

_LATEST = 253_402_300_800_000
"""The year 10000, in ms since the epoch: what lies beyond is no time."""


@dataclass(slots=True)
class Panel:
    """What a dashboard is made of, learned call by call once their results are there.

    It can be made anew from the originals at any time; work per call does not grow.
    """

    operations: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT))
    terminals: Terminals = field(default_factory=Terminals)
    browser: Browser = field(default_factory=Browser)
    _edited: dict[str, tuple[int, str]] = field(default_factory=dict)

    def take_in(self, use: Block, result: Block) -> None:
        """A call, failed or not, with its result."""
        step = use.born - 1
        about = one_line(f"{use.tool or 'tool'} {key_arguments(use)}".rstrip(), WIDTH)
        self.operations.append(f"- step {step}: {about}: {'failed' if result.error else 'ok'}")
        if use.file is not None and not result.error and use.file.action in ("write", "edit"):
            times = self._edited.pop(use.file.path, (0, ""))[0] + 1
            said = "once" if times == 1 else f"{times} times"
            line = f"- {one_line(use.file.path, WIDTH)}: {said}, last at step {step}"
            self._edited[use.file.path] = times, line
        self.terminals.take_in(use, result)
        self.browser.take_in(use, result)

    def edited(self) -> Iterator[str]:
        """A line for each edited file, the newest first, and how many more there are."""
        for _, line in islice(reversed(self._edited.values()), FILES):
            yield line
        if len(self._edited) > FILES:
            yield f"- and {len(self._edited) - FILES} more files"


def dashboard(
    panel: Panel, at: int | None, operations: int, guidance: Iterable[str], room: Room
) -> str:
    """The `<dashboard>` block, each part between its own marks; empty before the first call was
    answered, and where there is no room.

    `at` is when the newest call began (ms since the epoch), None where nobody knows. Guidance
    takes its room first, then edited files, terminals, browser and operations. Source: Dakou.
    """
    if not panel.operations or not room.fits(f"<{MARK}>\n</{MARK}>"):
        return ""
    said = f"<time>{_time(at)}, when the last call began</time>"
    time = said if _time(at) and room.fits(said) else ""
    told = room.part("guidance", (f"- {one_line(one, WIDTH)}" for one in guidance),
                     newest_first=False)  # fmt: skip
    edited = room.part("edited_files", panel.edited())
    terminals = room.part("terminals", panel.terminals.lines())
    browser = room.part("browser", panel.browser.lines(), newest_first=False)
    newest = islice(reversed(panel.operations), operations)
    recent = room.part("recent_operations", newest) if operations else ""
    parts = [part for part in (time, recent, edited, terminals, browser, told) if part]
    return "\n".join([f"<{MARK}>", *parts, f"</{MARK}>"])


def _time(at: int | None) -> str:
    if at is None or not 0 <= at < _LATEST:
        return ""
    return datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
