"""The dashboard: the state of the work, from the session's own calls and results."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

from compaction.context.blocks import Block
from compaction.context.hints import one_line
from compaction.context.stubs import key_arguments
from compaction.recitation.browsing import Browser
from compaction.recitation.room import Room
from compaction.seen.terminals import Terminals

MARK = "dashboard"

GUIDANCE = (
    "Answer in the language of the user.",
    "State the result of your last action before the next one.",
    "Run operations that do not depend on each other in parallel.",
)
"""Reminders for the agent at every call (Dakou)."""

KEPT = 50
"""Maximum operations that a dashboard can list."""
FILES = 20
"""Edited files listed by name; the others are counted."""
WIDTH = 160
"""Code points of a line about a call."""

_LATEST = 253_402_300_800_000
"""The year 10000, in ms since the epoch: larger values are not times."""


@dataclass(slots=True)
class Panel:
    """The data of a dashboard, learned call by call once their results are there.

    Can be rebuilt from the originals at any time; constant work per call.
    """

    operations: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT))
    terminals: Terminals = field(default_factory=Terminals)
    browser: Browser = field(default_factory=Browser)
    _edited: dict[str, tuple[int, str]] = field(default_factory=dict)

    def take_in(self, use: Block, result: Block) -> None:
        """Process a call, failed or not, with its result."""
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
        """Yield a line for each edited file, newest first, and the number of further ones."""
        for _, line in islice(reversed(self._edited.values()), FILES):
            yield line
        if len(self._edited) > FILES:
            yield f"- and {len(self._edited) - FILES} more files"


def dashboard(
    panel: Panel,
    at: int | None,
    operations: int,
    guidance: Iterable[str],
    room: Room,
    *,
    pages: bool = True,
) -> str:
    """Render the `<dashboard>` block, each part in its own element.

    `at` is when the newest call began (ms since the epoch), None if unknown. Guidance gets its room
    first, then edited files, terminals, browser (unless not `pages`: their titles are a stranger's
    words) and operations. Empty before the first call was answered, and without room. Source:
    Dakou.
    """
    if not panel.operations or not room.fits(f"<{MARK}>\n</{MARK}>"):
        return ""
    said = f"<time>{_time(at)}, when the last call began</time>"
    time = said if _time(at) and room.fits(said) else ""
    reminders = room.part("guidance", (f"- {one_line(one, WIDTH)}" for one in guidance),
                     newest_first=False)  # fmt: skip
    edited = room.part("edited_files", panel.edited())
    terminals = room.part("terminals", panel.terminals.lines())
    shown = panel.browser.lines() if pages else ()
    browser = room.part("browser", shown, newest_first=False)
    newest = islice(reversed(panel.operations), operations)
    recent = room.part("recent_operations", newest) if operations else ""
    parts = [part for part in (time, recent, edited, terminals, browser, reminders) if part]
    return "\n".join([f"<{MARK}>", *parts, f"</{MARK}>"])


def _time(at: int | None) -> str:
    if at is None or not 0 <= at < _LATEST:
        return ""
    return datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
