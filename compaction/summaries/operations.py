"""Lines of a summary about files, failures, rejected calls, commands and checks."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.context.blocks import Block
from compaction.context.hints import LOOK_AT, hint, one_line
from compaction.seen.checks import CheckKind, CheckState, check_kinds, state_of
from compaction.seen.commands import commands_of
from compaction.seen.errors import error_lines, unwrapped
from compaction.seen.people import Rejection, rejections
from compaction.summaries.merge import (
    CHANGES,
    Merged,
    Trouble,
    about,
    by_weight,
    command_line,
    is_undone,
)
from compaction.summaries.shares import MENDED, OPEN
from compaction.summaries.summary import command, file_operation, quoted


def result_line(block: Block, width: int) -> str:
    """Return a result on one line."""
    # The text of a failed call is about the failure, not about the file.
    path = block.file.path if block.file is not None and not block.error else None
    return quoted(hint(unwrapped(block.text[:LOOK_AT]), path), width)


def check_lines(blocks: Sequence[Block]) -> list[str]:
    """Return the newest state of each kind of check, and whether files changed since."""
    uses = {block.tool_call: block for block in blocks if block.type == "tool_use"}
    newest: dict[CheckKind, tuple[str, CheckState, int]] = {}
    changed = -1
    for block in blocks:
        use = uses.get(block.tool_call)
        if block.type != "tool_result" or use is None or is_undone(block):
            continue
        if use.file is not None and use.file.action in CHANGES and not block.error:
            changed = block.position
        for kind in check_kinds(commands_of(use)):
            newest.pop(kind, None)
            line = command_line(use) or ""
            newest[kind] = line, state_of(block.text, block.error, kind), block.position
    return [
        f"{kind}: {quoted(line, 120)}: {quoted(str(state), 400)}"
        + ("; files changed since" if changed > position else "")
        for kind, (line, state, position) in newest.items()
    ]


def file_lines(ways: Merged, *, keys: bool = False) -> list[str]:
    return [
        file_operation(one.path, one.action, one.ref, one.first if keys else None, one.names)
        for one in by_weight(ways.files)
    ]


def failure_lines(ways: Merged, blocks: Sequence[Block]) -> list[str]:
    """Return failures, readings first because they matter least, then rejected calls, which no
    later success makes right.
    """
    troubles = sorted(ways.troubles, key=lambda way: not _reading(way))
    return [*map(trouble_line, troubles), *map(rejected_line, rejections(blocks))]


def _reading(way: Trouble) -> bool:
    return way.use.file is not None and way.use.file.action not in CHANGES


def rejected_line(one: Rejection) -> str:
    line = f"{about(one.use)}: rejected by the user"
    return f"{line}: “{quoted(one.words, 400)}”" if one.words else line


def trouble_line(way: Trouble) -> str:
    """Describe a failure on one line: the lines that tell each attempt from those before, the files
    changed, and the outcome.
    """
    known: set[str] = set()
    parts: list[str] = []
    for block in way.failures:
        lines = error_lines(block.text, 2, known)
        known.update(lines)
        line = " | ".join(quoted(one, 160) for one in lines)
        if not lines and not parts:
            line = _state(way.use, block) or result_line(block, 140)
        if line and line not in parts:
            parts.append(line)
    if way.times > len(parts):
        parts[-1:] = [f"{part} ({way.times} times)" for part in parts[-1:]]
    if way.fixes and way.mended:
        parts.append(f"changed {quoted(', '.join(way.fixes), 200)}")
    return f"{about(way.use)}: {' → '.join(parts)}" + (MENDED if way.mended else OPEN)


def _state(use: Block, result: Block) -> str:
    """Return what a failed check counts; "" if it counts nothing, and for other calls."""
    if use.file is not None or not check_kinds(commands_of(use)):
        return ""
    state = state_of(result.text, result.error)
    return quoted(str(state), 140) if state.counts or state.failing else ""


def command_lines(ways: Merged, *, keys: bool = False) -> tuple[list[str], list[str]]:
    """Return one element per command, those of read-only programs apart."""
    made: tuple[list[str], list[str]] = [], []
    for one in ways.commands:
        key = one.first if keys else None
        # The runs of a read-only program differ: only the last one is named.
        times = 1 if one.looks else one.times
        made[not one.looks].append(command(one_line(one.text, 120), one.status, times, key))
    return made
