"""Data of the transcript and treemap views: beginnings of texts, and where blocks came from."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from compaction.context import wire
from sessions.access import run_of, session_of
from sessions.api.replay.entries import printable
from sessions.api.replay.replay import RUN, answer
from sessions.models.record import manifest as manifests
from sessions.models.record.values import ContentErased, readable

TEXTS_AT_ONCE = 60
TEXT_CHARS = 1_200
"""Code points of a text in the transcript; a page shows fewer until a block is opened."""

router = Router(tags=["Replay"])


@router.get("sessions/{path:session_id}/texts", response=dict, url_name="texts")
def texts(
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),
    at: str = Query(..., pattern=r"^[0-9]{1,9}(,[0-9]{1,9})*$", description="indexes, at most 60"),
) -> HttpResponse:
    """Get the beginnings of entries, at most 1,200 characters of each; null if there is none."""
    session = session_of(request, session_id)
    indexes = [int(index) for index in at.split(",")[:TEXTS_AT_ONCE]]
    if session.content_erased is not None:
        raise ContentErased(session)
    shas = manifests.shas_at(session, run_of(request, session), indexes)
    data = readable(session.team_id, [sha for sha in shas if sha])
    found = [_beginning(data[sha]) if sha in data else None for sha in shas]
    return answer(request, {"at": indexes, "rows": found})


def _beginning(data: bytes) -> str:
    return printable(wire.text_of(wire.decode(data))[:TEXT_CHARS])


@router.get("sessions/{path:session_id}/sources", response=dict, url_name="sources")
def sources(
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),
) -> HttpResponse:
    """Get the file or tool of each entry of a run: `of` are indexes into `names`."""
    session = session_of(request, session_id)
    names: dict[str, int] = {}
    found: list[int] = [
        names.setdefault(name, len(names)) for name in manifests.sources(run_of(request, session))
    ]
    body: dict[str, Any] = {"names": [printable(name) for name in names], "of": found}
    return answer(request, body)
