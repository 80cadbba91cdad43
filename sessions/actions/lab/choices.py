"""Select the sessions of a simulation: by filters, as a sample, or by id."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Case, Q, QuerySet, When
from django.utils import timezone

from sessions.models import Session, Team
from sessions.models.dashboard.matching import FACETS, FLAGS, matching
from sessions.models.record.demo_data import counts
from sessions.models.record.sessions import QUIET_AFTER, SOURCE_LIVE

MOST = 500
"""Maximum number of sessions in one simulation."""
USUAL = 60
"""Default number of sessions for a query or sample."""
USUAL_SESSIONS, USUAL_STEPS = 20, 5
"""What a page begins with: number of sessions, and fewest steps if any session has that many."""
TEXT_CHARS = 200


class NoChoice(ValueError):
    """Why no sessions could be selected, as a sentence; `field` names the invalid part of the
    choice."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


def read_choice(given: Mapping[str, Any]) -> dict[str, Any]:
    """Validate a choice and fill in defaults, as stored in `Simulation.chosen`. Raises NoChoice.

    {"by": "query", q, agent, model, source, flags, min_steps, limit}: matching sessions, newest
    first, running ones last. {"by": "sample", the same filters, n, seed}: a random sample of
    matching sessions, reproducible as long as the same sessions match. {"by": "hand", ids}:
    external ids or UUIDs.
    """
    by = given.get("by")
    if by == "hand":
        return {"by": by, "ids": _ids(given.get("ids"))}
    if by not in ("query", "sample"):
        raise NoChoice("by", "must be query, sample or hand")
    if given.get("ids"):
        raise NoChoice("ids", "is for `by` hand only: add it, or leave out the ids")
    read: dict[str, Any] = {"by": by}
    for name in ("q", *FACETS):
        read[name] = _text(given.get(name), name)
    read["flags"] = _flags(given.get("flags"))
    read["min_steps"] = _whole(given.get("min_steps"), "min_steps", 1, 1_000_000, 1)
    if by == "query":
        return read | {"limit": _whole(given.get("limit"), "limit", 1, MOST, USUAL)}
    return read | {
        "n": _whole(given.get("n"), "n", 1, MOST, USUAL),
        "seed": _whole(given.get("seed"), "seed", 0, 2**31 - 1, 0),
    }


def _text(value: Any, field: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise NoChoice(field, "must be text")
    return value.replace("\x00", "").strip()[:TEXT_CHARS]


def _flags(value: Any) -> list[str]:
    wanted = [] if value is None else value
    if not isinstance(wanted, list) or any(one not in FLAGS for one in wanted):
        raise NoChoice("flags", f"must be a list of {', '.join(FLAGS)}")
    return [flag for flag in FLAGS if flag in wanted]


def _whole(value: Any, field: str, low: int, high: int, usual: int) -> int:
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise NoChoice(field, f"must be a whole number from {low} to {high}")
    return value


def _ids(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise NoChoice("ids", "must be a list of session ids")
    wanted = list(dict.fromkeys(value))
    if not wanted:
        raise NoChoice("ids", "No session selected. Name at least one.")
    if len(wanted) > MOST:
        raise NoChoice(
            "ids",
            f"{len(wanted)} sessions selected, but a simulation takes at most {MOST}. Select "
            "fewer.",
        )
    return wanted


def usual_choice(team: Team) -> dict[str, Any]:
    """The choice a page begins with: the newest sessions, without very short ones if there are
    longer ones."""
    found = Session.objects.for_team(team).filter(counts(team.pk), step_count__gte=USUAL_STEPS)
    steps = USUAL_STEPS if found.exists() else 1
    return {"by": "query", "limit": USUAL_SESSIONS, "min_steps": steps}


def chosen_sessions(team: Team, choice: Mapping[str, Any], *, empty: bool = False) -> list[Session]:
    """Load the sessions of a validated choice, in its order.

    Raises NoChoice for unknown ids and, unless `empty` is allowed, if nothing matches. Sessions
    without a model call cannot be simulated: filters skip them, and naming one is refused. Demo
    sessions count as in the team's figures, unless they are named. A sample keeps its random order.
    """
    if choice["by"] == "hand":
        return _named(team, choice["ids"])
    rows = matching(
        team,
        q=choice["q"],
        flags=choice["flags"],
        facets={name: choice[name] for name in FACETS},
    ).filter(counts(team.pk), step_count__gte=choice["min_steps"])
    found = (
        list(_newest(rows)[: choice["limit"]]) if choice["by"] == "query" else _sample(rows, choice)
    )
    if not found and not empty:
        raise NoChoice("by", "No session with a model call matches. Widen the filters.")
    return found


def _newest(rows: QuerySet[Session]) -> QuerySet[Session]:
    # Running sessions come last: they may be short, and will be different tomorrow.
    still = Q(source=SOURCE_LIVE, outcome="", changed__gt=timezone.now() - QUIET_AFTER)
    runs = Case(When(still, then=1), default=0)
    return rows.order_by(runs, "-ended_at", "external_id")


def _sample(rows: QuerySet[Session], choice: Mapping[str, Any]) -> list[Session]:
    # The sender's ids, because ours change with every import.
    names = sorted(rows.values_list("external_id", flat=True))
    drawn = random.Random(choice["seed"]).sample(  # noqa: S311 - to be drawn again the same
        names, min(choice["n"], len(names))
    )
    found = _by_name(rows, drawn)
    return [found[name] for name in drawn]


def _by_name(rows: QuerySet[Session], names: Sequence[str]) -> dict[str, Session]:
    return {row.external_id: row for row in rows.filter(external_id__in=names)}


def _named(team: Team, ids: Sequence[str]) -> list[Session]:
    uuids = [UUID(one) for one in ids if _is_uuid(one)]
    names = [one for one in ids if "\x00" not in one]  # PostgreSQL rejects NUL characters
    rows = Session.objects.for_team(team).filter(Q(external_id__in=names) | Q(pk__in=uuids))
    found: dict[str, Session] = {}
    for row in rows:
        found[str(row.pk)] = row
    for row in rows:
        found[row.external_id] = row
    chosen = []
    for number, one in enumerate(ids):
        row_named = found.get(one) or found.get(str(UUID(one)) if _is_uuid(one) else "")
        if row_named is None:
            raise NoChoice(f"ids/{number}", "There is no such session. Check the id.")
        if not row_named.step_count:
            raise NoChoice(
                f"ids/{number}", "This session has no model call to simulate. Choose another one."
            )
        chosen.append(row_named)
    return list(dict.fromkeys(chosen))


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
