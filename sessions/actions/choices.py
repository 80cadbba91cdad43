"""Which sessions a simulation is over: those that match, a sample of them, or named ones."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Case, Q, QuerySet, When
from django.utils import timezone

from sessions.models import Session, Team
from sessions.models.matching import FACETS, FLAGS, matching
from sessions.models.sessions import QUIET_AFTER, SOURCE_LIVE

MOST = 500
"""Sessions of one simulation at most."""
USUAL = 60
"""Sessions that a query or a sample takes where nobody says how many."""
TEXT_CHARS = 200


class NoChoice(ValueError):
    """Why no sessions were chosen, as a sentence; `field` names what of the choice is wrong."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


def read_choice(given: Mapping[str, Any]) -> dict[str, Any]:
    """A choice with every value written out, as `Simulation.chosen` keeps it. Raises NoChoice.

    {"by": "query", q, agent, model, source, flags, min_steps, limit}: what matches, the newest
    first, those whose agents still run last. {"by": "sample", the same filters, n, seed}: a draw
    from what matches; the same
    sessions, whenever the same match. {"by": "hand", ids}: external ids or UUIDs.
    """
    by = given.get("by")
    if by == "hand":
        return {"by": by, "ids": _ids(given.get("ids"))}
    if by not in ("query", "sample"):
        raise NoChoice("by", "must be query, sample or hand")
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
        raise NoChoice("ids", "must be a list of ids of sessions")
    wanted = list(dict.fromkeys(value))
    if not wanted:
        raise NoChoice("ids", "No session is chosen: name one at least.")
    if len(wanted) > MOST:
        raise NoChoice("ids", f"{len(wanted)} sessions are chosen; {MOST} go into one simulation.")
    return wanted


def chosen_sessions(team: Team, choice: Mapping[str, Any], *, empty: bool = False) -> list[Session]:
    """The sessions of a choice that `read_choice` gave, in its order.

    Raises NoChoice for names that are none, and unless `empty` may be, where nothing matches.

    Sessions without a model call have nothing to simulate: a query passes over them, and naming
    one is refused. The order of a sample is that of its draw.
    """
    if choice["by"] == "hand":
        return _named(team, choice["ids"])
    rows = matching(
        team,
        q=choice["q"],
        flags=choice["flags"],
        facets={name: choice[name] for name in FACETS},
    ).filter(step_count__gte=choice["min_steps"])
    found = (
        list(_newest(rows)[: choice["limit"]]) if choice["by"] == "query" else _sample(rows, choice)
    )
    if not found and not empty:
        raise NoChoice("by", "No session with a model call matches: widen the filters.")
    return found


def _newest(rows: QuerySet[Session]) -> QuerySet[Session]:
    # What an agent still adds to would be another session tomorrow, and may have hardly begun.
    still = Q(source=SOURCE_LIVE, outcome="", changed__gt=timezone.now() - QUIET_AFTER)
    runs = Case(When(still, then=1), default=0)
    return rows.order_by(runs, "-ended_at", "external_id")


def _sample(rows: QuerySet[Session], choice: Mapping[str, Any]) -> list[Session]:
    # Ids of the sender, as ours are made anew by every import.
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
    names = [one for one in ids if "\x00" not in one]  # PostgreSQL cannot even be asked
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
            raise NoChoice(f"ids/{number}", "There is no such session.")
        if not row_named.step_count:
            raise NoChoice(f"ids/{number}", "This session has no model call to simulate.")
        chosen.append(row_named)
    return list(dict.fromkeys(chosen))


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
