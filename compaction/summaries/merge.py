"""Merge repeated file operations and commands into one entry each, with its final state.

Dakou's rule: intermediate attempts are irrelevant once they are over, but the way from a failure to
its fix is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compaction.context.blocks import Block, FileAction
from compaction.context.groups import failure_key
from compaction.context.hints import LOOK_AT, symbols
from compaction.context.stubs import key_arguments, reference
from compaction.facts.facts import OUTSIDE, RUN, is_fact
from compaction.seen.changes import change_of
from compaction.seen.checks import check_kinds, state_of
from compaction.seen.commands import commands_of
from compaction.seen.errors import never_ran, unwrapped
from compaction.seen.people import is_rejected
from compaction.seen.reading import READING, reads
from compaction.summaries.summary import quoted

CHANGES = frozenset({"write", "edit", "delete"})
"""Actions that outlast later readings."""

MOST_FAILURES = 4
"""Failures kept per way from failure to success: the first, and the last ones (our choice)."""

MOST_FIXES = 6
"""Changed files named per way, the last ones (our choice)."""

MOST_NAMES = 8
"""Names of changed code kept per file, the last ones (our choice)."""

LONGEST_NAME = 60

_CD = re.compile(r"^\s*cd\s+\S+\s*(?:&&|;|\n)\s*")
_TRIMMED = re.compile(r"(?: ?2>&1)?(?: ?\| ?(?:tail|head)(?: -n? ?\d{1,9})?)?$")
"""Of a command on one line, with single spaces."""
_TEMPORARY = re.compile(
    r"(?:^|[\\/])(?:te?mp|\.cache|node_modules|__pycache__)[\\/]|\.(?:tmp|bak)$"
)


@dataclass(slots=True)
class FileState:
    """The operations on one file, merged into its final state.

    `first` is the position at which it was first touched. `names` are what its changes define, or
    else mention, in order.
    """

    path: str
    action: FileAction
    ref: str
    first: int
    times: int = 1
    names: list[str] = field(default_factory=list)

    @property
    def temporary(self) -> bool:
        """Whether its path looks like that of a scratch file."""
        return _TEMPORARY.search(self.path) is not None


@dataclass(slots=True)
class CommandState:
    """All runs of one command, or of one read-only program, with the last run's status."""

    text: str
    status: str
    first: int
    times: int = 1
    looks: bool = False


@dataclass(slots=True)
class Trouble:
    """A failure, what was changed after it, and whether the same operation succeeded then.

    `failures` are the failed results in order, each with its call; `fixes` are the paths written or
    edited between the first failure and the success.
    """

    use: Block
    failures: list[Block] = field(default_factory=list)
    fixes: list[str] = field(default_factory=list)
    mended: bool = False
    times: int = 0


@dataclass(frozen=True, slots=True)
class Merged:
    """Merged entries, ordered by last use; `operations` and `runs` count them before merging."""

    files: tuple[FileState, ...]
    commands: tuple[CommandState, ...]
    troubles: tuple[Trouble, ...]
    operations: int = 0
    runs: int = 0


def merge(blocks: Sequence[Block]) -> Merged:
    """Merge a span into one entry per file and command, plus each failure with its fix.

    A file's last change outlasts later readings. Commands count as equal if they differ only in
    their folder or in how much of their output was shown; all runs of a read-only program count as
    one. A failed operation on a file is a failure, not a state of the file; a call that a person
    rejected, or that never ran, is neither. Linear in the blocks.
    """
    uses = {block.tool_call: block for block in blocks if block.type == "tool_use"}
    results = [block for block in blocks if block.type == "tool_result"]
    rejected = {block.tool_call for block in results if is_undone(block)}
    undone = rejected | {block.tool_call for block in results if block.error}
    made = _Merging()
    for block in blocks:
        listed = block.file is not None and block.file.action != "list"
        if listed and (block.tool_call is None or block.tool_call not in undone):
            made.file(block)
        use = uses.get(block.tool_call)
        if block.type == "tool_result" and use is not None and block.tool_call not in rejected:
            made.result(block, use)
    return Merged(
        tuple(made.files.values()),
        tuple(made.commands.values()),
        tuple(made.troubles.values()),
        made.operations,
        made.runs,
    )


class _Merging:
    def __init__(self) -> None:
        self.files: dict[str, FileState] = {}
        self.commands: dict[str, CommandState] = {}
        self.troubles: dict[str, Trouble] = {}
        self.operations = self.runs = 0
        self._open: dict[str, Trouble] = {}
        self._called: set[str | None] = set()

    def file(self, block: Block) -> None:
        assert block.file is not None
        path, action = block.file.path, block.file.action
        once = block.tool_call is None or block.tool_call not in self._called
        self._called.add(block.tool_call)
        self.operations += once
        names = _changed(block) if block.type == "tool_use" and action in CHANGES else []
        earlier = self.files.pop(path, None)
        if earlier is None:
            state = FileState(path, action, reference(block), block.position, names=names)
            self.files[path] = state
            return
        earlier.times += once
        earlier.names = [*(one for one in earlier.names if one not in names), *names][-MOST_NAMES:]
        if not (action == "read" and earlier.action in CHANGES):
            earlier.action, earlier.ref = action, reference(block)
        self.files[path] = earlier

    def result(self, block: Block, use: Block) -> None:
        key = failure_key(use)
        line = command_line(use) if use.file is None else None
        failed = has_failed(use, block)
        if failed:
            self._fail(key, block, use)
        elif key in self._open:
            self._open.pop(key).mended = True
        elif use.file is not None and use.file.action in CHANGES:
            for trouble in self._open.values():
                if use.file.path in trouble.fixes:
                    trouble.fixes.remove(use.file.path)
                trouble.fixes = [*trouble.fixes, use.file.path][-MOST_FIXES:]
        if line is not None:
            self._command(line, block, use, failed)

    def _fail(self, key: str, block: Block, use: Block) -> None:
        trouble = self._open.get(key)
        if trouble is None:
            # This operation failed before and was fixed: the newer failure replaces it.
            self.troubles.pop(key, None)
            trouble = self.troubles[key] = self._open[key] = Trouble(use)
        trouble.times += 1
        trouble.failures.append(block)
        if len(trouble.failures) > MOST_FAILURES:
            del trouble.failures[1]

    def _command(self, line: str, block: Block, use: Block, failed: bool) -> None:
        self.runs += 1
        looks = not failed and reads(use, READING)
        key = f"looks {line.split(' ', 1)[0]}" if looks else line
        earlier = self.commands.pop(key, None)
        made = CommandState(line, "failed" if failed else "succeeded", block.position)
        if earlier is not None:
            made.first, made.times = earlier.first, earlier.times + 1
        made.looks = looks
        self.commands[key] = made


def _changed(use: Block) -> list[str]:
    """Return the names that a change defines, or else those it mentions, the longest first."""
    change = change_of(use)
    if change is None:
        return []
    texts = [change.whole or "", *(_added(swap.old, swap.new) for swap in change.swaps)]
    text = "\n".join(texts)[:LOOK_AT]
    defined = [name for name in symbols(text) if len(name) <= LONGEST_NAME]
    if defined:
        return defined[-MOST_NAMES:]
    runs = dict.fromkeys(run.strip(OUTSIDE) for run in RUN.findall(text))
    named = [one for one in runs if is_fact(one) and len(one) <= LONGEST_NAME]
    return sorted(named, key=len, reverse=True)[: MOST_NAMES // 2]


def _added(old: str, new: str) -> str:
    before = set(old.splitlines())
    return "\n".join(line for line in new.splitlines() if line not in before)


def about(use: Block) -> str:
    """Return the beginning of a line about a call, tool and key arguments.

    It has no `: ` of its own, which ends it: later summaries know the line by it.
    """
    given = command_line(use) if use.file is None else None
    words = quoted(f"{use.tool} {given or key_arguments(use)}".strip(), 100).split(" ")
    return " ".join(word.rstrip(":") for word in words)


def is_undone(result: Block) -> bool:
    """Return whether a call was not done: a person rejected it, or the client cancelled it."""
    return is_rejected(result) or (result.error and never_ran(result.text))


def has_failed(use: Block, result: Block) -> bool:
    """Return whether a call failed, or ran a check that reports failures.

    A pipe hides the exit status of what is before it. A search that finds nothing has an exit
    status of its own, but no output.
    """
    if result.error and reads(use, READING) and not unwrapped(result.text):
        return False
    if result.error or use.file is not None:
        return result.error
    return bool(check_kinds(commands_of(use))) and state_of(result.text, error=False).failed


def command_line(use: Block) -> str | None:
    """Return the command of a call on one line, without its folder and output filters, or None."""
    run = commands_of(use)[:4_000]
    line = " ".join(_CD.sub("", run).split())
    return _TRIMMED.sub("", line, count=1).strip() or " ".join(run.split()) or None


def by_weight(files: Iterable[FileState]) -> list[FileState]:
    """Sort files, most relevant last: changed after read, scratch files first."""
    return sorted(files, key=lambda one: (one.action in CHANGES, not one.temporary))
