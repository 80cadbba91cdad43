"""Hand-made logs, and what the second readers find in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sessions.actions.imports.verified import verify_log
from sessions.second_reader import READERS
from sessions.second_reader.reread import Reread, RereadPiece
from tests.sessions.made import count

SAMPLES = Path(__file__).parents[1] / "importers" / "samples"


def lines(*given: dict[str, Any]) -> bytes:
    """A file of one object per line."""
    return "\n".join(map(json.dumps, given)).encode()


def shown(pieces: list[RereadPiece]) -> str:
    """Pieces in one line."""
    return " | ".join(f"{one.form} {one.begins}" for one in pieces)


def contexts(reread: Reread) -> list[str]:
    """The context of every call, and the one at the end."""
    return [*(shown(one.context) for one in reread.steps), shown(reread.end)]


def read(form: str, data: bytes) -> list[Reread]:
    """What the second reader of a format finds."""
    return READERS[form](data)


def both(form: str, data: bytes) -> list[Reread]:
    """What it finds in a log that an import shows in the same way."""
    found = verify_log(data, "log", count)
    assert (found.format, found.differences) == (form, [])
    return read(form, data)
