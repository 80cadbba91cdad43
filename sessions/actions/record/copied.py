"""Model calls that two logs have: a resumed or forked session copies the lines of the first."""

from __future__ import annotations

import re
from dataclasses import replace

from sessions.importers import records
from sessions.models import ModelCall, Team

_PROVIDERS = re.compile(r"(msg|resp|chatcmpl|gen)[-_].{8,}")
"""Ids that providers give to responses; others are unique in their session only."""

_AT_ONCE = 400
"""Ids per query: below any database's limit on variables."""


def count_once(team: Team, incoming: records.Session) -> tuple[records.Session, int]:
    """Drop the usage of calls that another session of the team has; return how many these are.

    The session that came first keeps it, so sums over sessions count each call once.
    """
    ids = sorted(
        {
            one.call
            for one in incoming.records
            if isinstance(one, records.Call) and one.usage and _PROVIDERS.fullmatch(one.call)
        }
    )
    there: set[str] = set()
    for start in range(0, len(ids), _AT_ONCE):
        named = ids[start : start + _AT_ONCE]
        rows = ModelCall.objects.filter(session__team=team, call__in=named).exclude(output=None)
        rows = rows.exclude(session__external_id=incoming.external_id)
        there.update(rows.values_list("call", flat=True))
    if not there:
        return incoming, 0
    kept = [
        replace(one, usage=None, usage_raw=None)
        if isinstance(one, records.Call) and one.call in there
        else one
        for one in incoming.records
    ]
    meta = incoming.meta | {"copied_calls": len(there)}
    return replace(incoming, records=kept, meta=meta), len(there)
