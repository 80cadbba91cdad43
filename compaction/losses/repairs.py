"""Model calls that were made because text had left the context."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from compaction.context.blocks import Block
from compaction.context.edits import Entry
from compaction.context.stubs import arguments
from compaction.losses.corrections import is_correction
from compaction.losses.feasibility import plain_lines
from compaction.losses.looks import changes, looks, shows_work
from compaction.seen.checks import check_kinds
from compaction.seen.commands import commands_of
from compaction.tools.failures import alike, signature
from compaction.tools.read_tool import NAME as READ_BACK

WINDOW = 50
"""Steps from a revision on whose calls may have been made because of it (our choice)."""

_EXTENT = re.compile(
    r"(?:(?<![\w-])-[ABCcmn]?\s?"
    r"|(?<=\")(?:-[ABC]|context|head_limit|limit|max_results|offset)\"\s*:\s*)\d{1,9}(?![\w.])"
)
"""How much of what it finds a call shows: "-A": 20, grep -A 20, head -20."""

Kind = Literal["reread", "repeat", "error", "edit", "correction"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Repair:
    """A model call made because a revision removed something: a file read again, a read-only call
    repeated for the same result, a failure met again, an edit that failed because its file was no
    longer in context, or a person's correction.

    `block` shows it: the call, or the person's message. `earlier` is the call whose result had
    shown it; None for a correction, which is estimated from its wording. `result` is the entry of
    what the call showed.
    """

    kind: Kind
    step: int
    block: Block
    earlier: Block | None = None
    result: Entry | None = None


def repairs(entries: Iterable[Entry], removals: Mapping[int, int]) -> tuple[Repair, ...]:
    """Find the repairs of revisions in a run, each call once, in order.

    `entries` are those of a run, with texts; `removals` the steps of the revisions by number. The
    result of a read-only call repairs if at least half of its lines had been in results for the
    same file or the same call, whatever number of lines it asked for, have left the context, and
    were last removed by one of these revisions less than `WINDOW` steps before. A command that is
    run again because the work changed is no repair: tests, lint, a build, an edit, or `git status`
    after an edit. Fewer revisions never find more. Linear in the texts.
    """
    run = _RepairRun(entries, removals)
    found = [repair for block in run.blocks if (repair := run.judge(block)) is not None]
    once: dict[str, Repair] = {}
    for repair in found:
        once.setdefault(repair.block.id, repair)
    return tuple(once.values())


@dataclass(frozen=True, slots=True)
class _LastSight:
    """Until when something was in the context, the revision that removed it, and its call."""

    until: float
    revision: int | None
    use: Block


@dataclass(slots=True)
class _SameCalls:
    """What the results for one file or one call have shown so far: lines, failures, and whether a
    part of the file is in the context."""

    lines: dict[str, _LastSight] = field(default_factory=dict)
    last: _LastSight | None = None


class _RepairRun:
    """The originals of a run in order; judges each by what came before it."""

    def __init__(self, entries: Iterable[Entry], removals: Mapping[int, int]) -> None:
        self.removals = removals
        self.spans: dict[str, Entry] = {}
        for entry in entries:
            known = self.spans.get(entry.block.id)
            if entry.block.replaces is None and (known is None or _until(known) < _until(entry)):
                self.spans[entry.block.id] = entry
        self.blocks = sorted((one.block for one in self.spans.values()), key=_position)
        calls = (block for block in self.blocks if block.type == "tool_use" and block.tool_call)
        self.uses = {str(block.tool_call): block for block in calls}
        self.results: dict[str, _SameCalls] = {}
        self.errors: dict[str, _LastSight] = {}
        self.keys: dict[str, str] = {}
        self.changed = -1
        """The position of the last call that may have changed the work."""

    def judge(self, block: Block) -> Repair | None:
        """Return the repair that a block shows, and remember what it shows."""
        if block.kind == "user" and block.type == "text":
            return self._correction(block)
        if block.type != "tool_result":
            return None
        use = self.uses.get(block.tool_call or "", block)
        step, key = block.born - 1, self._key(block, use)
        self.keys[block.id] = key
        known = self.results.setdefault(key, _SameCalls())
        lines = frozenset(plain_lines(block.text))
        lost = [one for line in lines if (one := self._lost(known.lines.get(line), step))]
        entry = self.spans[block.id]
        shown = _LastSight(_until(entry), entry.closed_by, use)
        repair = None
        if lines and 2 * len(lost) >= len(lines):
            repair = self._again(step, use, max(lost, key=_last).use)
        if block.error and repair is None:
            repair = self._failure(block, use)
        if changes(use):
            self.changed = use.position
        for line in lines:
            known.lines[line] = _newer(known.lines.get(line), shown)
        if _reads(use) and not block.error:
            known.last = _newer(known.last, shown)
        if block.error and (met := alike(signature(block.text))):
            self.errors[met] = _newer(self.errors.get(met), shown)
        return replace(repair, result=entry) if repair is not None else None

    def _again(self, step: int, use: Block, earlier: Block) -> Repair | None:
        """The repair of a call that showed what an earlier one had shown; None if it does more
        than look, or looks at work that has changed since."""
        if not looks(use) or (shows_work(use) and self.changed > earlier.position):
            return None
        return Repair("reread" if _reads(use) else "repeat", step, use, earlier)

    def _failure(self, block: Block, use: Block) -> Repair | None:
        step = block.born - 1
        before = self._lost(self.errors.get(alike(signature(block.text))), step)
        if before is not None and not _runs_again(use, before.use):
            return Repair("error", step, use, before.use)
        if use.file is None or use.file.action not in ("edit", "write"):
            return None
        file = self.results.get(_file_key(use.file.path))
        read = self._lost(file.last, step) if file is not None else None
        return Repair("edit", step, use, read.use) if read is not None else None

    def _correction(self, block: Block) -> Repair | None:
        """A person reacts to what came of a context, so after its first call."""
        after = any(step < block.born < step + WINDOW for step in self.removals.values())
        if not after or block.role != "user" or not is_correction(block.text):
            return None
        return Repair("correction", block.born, block)

    def _lost(self, shown: _LastSight | None, step: int) -> _LastSight | None:
        """What left the context by one of the revisions and is missing at a step."""
        if shown is None or not shown.until <= step < shown.until + WINDOW:
            return None
        return shown if shown.revision in self.removals else None

    def _key(self, block: Block, use: Block) -> str:
        if use.tool and use.tool.rsplit("__", 1)[-1] == READ_BACK:
            ref = str((arguments(use) or {}).get("ref", "")).partition("@")[0]
            return self.keys.get(ref, ref)
        file = use.file or block.file
        if file is not None and file.action == "read":
            return _file_key(file.path)
        return json.dumps([use.tool, _EXTENT.sub("", use.text)])


def _reads(use: Block) -> bool:
    return use.file is not None and use.file.action == "read"


def _runs_again(use: Block, earlier: Block) -> bool:
    """Whether a failure comes from running the same command again, as one does after a change."""
    same = (use.tool, use.text) == (earlier.tool, earlier.text)
    return (same and not looks(use)) or bool(check_kinds(commands_of(use)))


def _file_key(path: str) -> str:
    return f"file {path}"


def _position(block: Block) -> tuple[int, str]:
    return block.position, block.id


def _until(entry: Entry) -> float:
    return float("inf") if entry.to_step is None else entry.to_step


def _last(shown: _LastSight) -> tuple[float, int]:
    return shown.until, shown.use.position


def _newer(known: _LastSight | None, shown: _LastSight) -> _LastSight:
    return shown if known is None or known.until <= shown.until else known
