"""What a process keeps of the last context of a session."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any
from uuid import UUID

from compaction import render
from compaction.context.wire import WireBlock
from sessions.actions.live.handing_out.offload_files import Named
from sessions.models import Session

SESSIONS = 16
"""Sessions whose last context a process keeps as blocks, which must not be changed."""


@dataclass(frozen=True, slots=True)
class LastContext:
    """What is kept of a session's last context, so that the next one costs only what is new.

    `wires` are its originals by id, `named` its files; `prefix` are turns of it, as
    rendered for a `model`; `sent` are its messages, each with its JSON and the hash of that.
    """

    wires: dict[str, WireBlock] = field(default_factory=dict)
    named: Named = field(default_factory=Named)
    model: str = ""
    said: dict[int, str] = field(default_factory=dict)
    prefix: render.Prefix | None = None
    sent: Sequence[tuple[Any, bytes, int]] = ()


_last: OrderedDict[UUID, LastContext] = OrderedDict()
_guard = Lock()


def last_of(session: Session) -> LastContext:
    """What this process keeps of a session's last context; nothing at first."""
    with _guard:
        return _last.get(session.pk, LastContext())


def keep_last(session: Session, **news: Any) -> None:
    """Replace fields of it; the session that was asked for longest ago is forgotten."""
    with _guard:
        _last[session.pk] = replace(_last.get(session.pk, LastContext()), **news)
        _last.move_to_end(session.pk)
        if len(_last) > SESSIONS:
            _last.popitem(last=False)
