"""Reveal one block where a team shows content masked."""

from __future__ import annotations

from typing import Annotated, Any

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import Field

from sessions.access import actor_of, run_named, session_of
from sessions.actions.accounts import audit
from sessions.api.replay.entries import describe
from sessions.api.replay.heads import run_label
from sessions.api.replay.replay import LAST, answer
from sessions.api.web.problems import Refusal
from sessions.api.web.shapes import StorableText
from sessions.models.record import manifest as manifests
from sessions.models.record.values import entry_name

router = Router(tags=["Replay"])


class RevealIn(Schema):
    """The entry to reveal: its run, index in context order, and `sha` as its masked answer has
    it."""

    run: Annotated[StorableText, Field(max_length=200)] = "recorded"
    i: Annotated[int, Field(ge=0, le=LAST)]
    sha: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


@router.post("sessions/{path:session_id}/reveal", response=dict, url_name="reveal")
def reveal(request: HttpRequest, session_id: str, wanted: RevealIn) -> HttpResponse:
    """Get one entry of a run without masks. For members whose role includes it, not for keys.

    The fields of `GET …/entry`. The audit log gets who asked, the session and the block, not its
    content. 409 if content is not shown masked, or the entry at that index is another.
    """
    session = session_of(request, session_id, "reveal")
    run = run_named(session, wanted.run)
    if not session.team.show_masked:
        raise Refusal(409, "Not masked", "The team shows content as it is stored.")
    standing = manifests.entries_between(session, run, wanted.i, wanted.i + 1)
    if not standing:
        raise Http404("no such entry")
    with transaction.atomic():
        found = describe(session, run, standing[0])
        if found["sha"] != wanted.sha:
            said = "The entry at this place is another by now. Open it again."
            raise Refusal(409, "Another entry", said)
        actor, detail = actor_of(request), {"block": _name(standing[0]), "run": run_label(run)}
        audit.note(session.team, actor, "content.revealed", session.external_id, **detail)
    return answer(request, {"i": wanted.i, **found})


def _name(entry: manifests.ManifestEntry) -> Any:
    if entry.block is not None:
        return entry_name(entry.block)
    assert entry.replacement is not None
    return entry.replacement.name or f"p{entry.replacement.pk}"
