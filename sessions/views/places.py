"""Places in a replay, as `frontend/src/islands/replay/address.ts` reads them."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse

from sessions.models import Block, Run, Session
from sessions.models.sessions import SOURCE_LIVE
from sessions.models.values import entry_name


def query(run: Run | None, entry: str = "") -> str:
    """The query string that chooses a run and an entry; empty for the usual one and none.

    What agents report here opens in its served run unless another is named.
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
    """The replay at a step, within the steps that the session has."""
    inside = max(1, min(step, session.step_count or 1))
    return reverse("replay_step", args=[session.pk, inside]) + query(run, entry)


def entry_url(
    session: Session, block: Block, step: int | None = None, run: Run | None = None
) -> str:
    """The replay with this block selected, at a step or where it is first seen."""
    return step_url(session, block.born if step is None else step, run, entry_name(block))


def diff_url(session: Session, a: int, b: int, run: Run) -> str:
    """The contexts of two steps of a run against each other."""
    return reverse("diff", args=[session.pk, max(a, 1), max(b, 1)]) + query(run)
