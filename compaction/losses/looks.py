"""Which calls only look at something, and which may change the work."""

from __future__ import annotations

import re

from compaction.context.blocks import Block
from compaction.seen.commands import commands_of
from compaction.seen.reading import READING, reads

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_LOOKS = frozenset(
    _WORD.findall("describe fetch find get glob grep list lookup ls query read search show view")
)
_CHANGES = frozenset(
    _WORD.findall(
        "add apply build create delete edit execute insert install move patch post put remove "
        "rename replace run send set submit test todo update write"
    )
)
_STATE = re.compile(r"\bgit\b[^|;&\n]{0,80}\b(?:status|diff)\b")


def looks(use: Block) -> bool:
    """Return whether a call only shows something: a file, a search, a listing, a page.

    A shell command must consist of programs that only read; another tool must be known to, or say
    so by its name, as `get_order` and `WebFetch` do (our choice).
    """
    if use.file is not None:
        return use.file.action in ("read", "list")
    if reads(use, READING):
        return True
    if not use.tool or commands_of(use):
        return False
    words = {word.lower() for word in _WORD.findall(use.tool.rsplit("__", 1)[-1])}
    return bool(words & _LOOKS) and not words & _CHANGES


def shows_work(use: Block) -> bool:
    """Return whether a call shows the state of the work, as `git status` does."""
    return _STATE.search(commands_of(use)) is not None


def changes(use: Block) -> bool:
    """Return whether a call may change the work: it edits a file, or runs more than a look."""
    if use.file is not None:
        return use.file.action in ("write", "edit", "delete")
    return bool(commands_of(use)) and not looks(use)
