"""URLs of the replay; keep in sync with `frontend/src/replay/manifest/address.ts`."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse

from sessions.models import Block, Run, Session
from sessions.models.record.sessions import SOURCE_LIVE
from sessions.models.record.values import entry_name


def query(run: Run | None, entry: str = "") -> str:
    """The query string that selects a run and an entry; empty for the defaults.

    Live sessions open in their managed run unless another is named.
    """
    pairs = []
    if run is not None and run.origin != Run.Origin.RECORDED:
        pairs.append(("run", str(run.pk)))
    elif run is not None and run.session.source == SOURCE_LIVE:
        pairs.append(("run", "recorded"))
    if entry:
        pairs.append(("m", entry))
    return f"?{urlencode(pairs)}" if pairs else ""


def step_url(session: Session, step: int, run: Run | None = None, entry: str = "") -> str:
    """The replay URL at a step, clamped to the session's steps."""
    inside = max(1, min(step, session.step_count or 1))
    return reverse("replay_step", args=[session.pk, inside]) + query(run, entry)


def entry_url(
    session: Session, block: Block, step: int | None = None, run: Run | None = None
) -> str:
    """The replay URL with a block selected, at a step or where it first appears."""
    return step_url(session, block.born if step is None else step, run, entry_name(block))


def diff_url(session: Session, a: int, b: int, run: Run) -> str:
    """The URL of the diff between two steps of a run."""
    return reverse("diff", args=[session.pk, max(a, 1), max(b, 1)]) + query(run)
