"""Which paths a text tells of: one rule for the fact ledger and for *Why did it forget?*"""

from __future__ import annotations

import re
from collections.abc import Set
from functools import lru_cache

from compaction.facts.facts import OUTSIDE, RUN

DEEPEST = 12
"""Path components compared, counted from the end."""

_LINES = re.compile(r":\d")
_OF_LINES = "0123456789:-"
_ABSOLUTE = re.compile(r"[:@-]*/")
ESCAPES = re.compile(r"\\[nrt]")


def normal(fact: str) -> str:
    """Normalize a fact for comparison: lowercase, and a path without line numbers."""
    bare = fact.strip(OUTSIDE).casefold()
    # A number after a host is a port, which is part of the fact.
    if "://" in bare or not ("/" in bare or "." in bare):
        return bare
    path = bare.rstrip(_OF_LINES)
    lines = _LINES.search(bare, len(path))
    return bare if lines is None else bare[: lines.start()]


def path_of(text: str) -> str | None:
    """Return the path that a text is, as `tells` compares it; None for any other text."""
    bare = text.strip().lstrip("~")
    path = normal(bare)
    return path if "/" in path and RUN.fullmatch(bare) is not None else None


def tells(run: str, path: str) -> bool:
    """Return whether a run of characters tells a model of a path (or of a URL).

    It does if it writes the path; a longer path that ends with it (`/repo/src/a.py` for
    `src/a.py`) or lies below it (`/repo/src/a.py` for `/repo/src`); or, where it is relative, the
    end of the path from two components on (`src/a.py` for `/repo/src/a.py`), or a path below that
    end. Components are compared whole, in any case, without line numbers: `/repo/src-old/a.py`
    and `/repo/src.py` do not tell of `/repo/src`. `path` is what `path_of` returns.
    """
    written, starts = paths_told(run)
    return tells_of(path, written, starts)


def tells_of(path: str, written: Set[str], starts: Set[str]) -> bool:
    """Return the same for many runs together, of the sets that `paths_told` returns."""
    if "://" in path:
        return path.partition("://")[2] in written
    parts = path.split("/")[-DEEPEST:]
    ends = ("/".join(parts[at:]).lstrip(".") for at in range(1, len(parts) - 1))
    return "/".join(parts) in written or any(end in starts for end in ends)


@lru_cache(maxsize=4096)
def paths_told(run: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the paths that a run of characters writes, with those in and above them, and those of
    these that may be the end of a longer path, as `tells` says."""
    written: set[str] = set()
    starts: set[str] = set()
    token = normal(run)
    absolute = _ABSOLUTE.match(run) is not None
    head, _, rest = token.partition("://")
    # What follows a colon is a line of the file, as grep writes it, or a path in a revision.
    pieces = [rest] if rest else [head, *(head.split(":") if ":" in head else ())]
    for piece in pieces:
        parts = piece.split("/")[-DEEPEST:]
        for end in range(2, len(parts) + 1):
            # Without a leading dot, which facts and `normal` leave out, too.
            written.update("/".join(parts[start:end]).lstrip(".") for start in range(end - 1))
            if not (rest or absolute or piece.startswith("/")):
                starts.add("/".join(parts[:end]))
    return frozenset(written), frozenset(starts)


def find_path(path: str, text: str) -> tuple[int, int] | None:
    """Return where a text first tells of a path: start and end of the run that does. Linear."""
    # Every run that tells of it holds its end; most runs are passed over by this alone.
    end = "/".join(path.split("/")[-2:]).lstrip(".")
    if end not in text.casefold():
        return None
    # Two blanks for an escape: places stay.
    for found in RUN.finditer(ESCAPES.sub("  ", text)):
        if end in found.group().casefold() and tells(found.group(), path):
            return found.span()
    return None
