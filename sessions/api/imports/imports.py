"""Import of existing logs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router

from sessions.access import actor_of, team_to
from sessions.actions.imports.changed import IfChanged
from sessions.actions.imports.uploads import (
    FILES_AT_ONCE,
    MOST_WAITING,
    BodyFile,
    Uploaded,
    begin_upload,
    has_room,
)
from sessions.api.jobs.jobs import job_asked
from sessions.api.record import shapes
from sessions.api.web.exchange import expect_plain
from sessions.api.web.once import done_once
from sessions.api.web.problems import Refusal
from sessions.models import Team

router = Router(tags=["Imports"])

RETRY_SECONDS = 10
"""After which a full queue is worth another try."""

_BYTES = {"schema": {"type": "string", "format": "binary"}}
FORMS = {
    "requestBody": {
        "required": True,
        "description": f"One log, or a form with up to {FILES_AT_ONCE} files.",
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"files": {"type": "array", "items": _BYTES["schema"]}},
                    "required": ["files"],
                }
            },
            "application/octet-stream": _BYTES,
        },
    }
}


def team_with_room(request: HttpRequest) -> Team:
    """The requester's team, if it may import more now. Raises Refusal."""
    team = team_to(request, "write")
    if not has_room(team):
        raise Refusal(
            429,
            "Too many imports are waiting",
            f"{MOST_WAITING} uploads of this team wait for their jobs. Send it again later.",
            headers={"Retry-After": str(RETRY_SECONDS)},
        )
    return team


@router.post(
    "imports",
    response={202: shapes.ImportAsked},
    url_name="imports",
    by_alias=True,
    openapi_extra=FORMS,
)
@done_once
def imports(
    request: HttpRequest,
    name: str = Query(
        "", max_length=300, description="file name of the log, if not sent as a form"
    ),
    if_changed: IfChanged = Query(
        IfChanged.KEEP,
        description="for a log with other messages than are stored: keep these, replace the stored "
        "session (not with a key), or store the log as a new one",
    ),
) -> HttpResponse:
    """Import agent logs; their format is detected. A job reads them.

    Importing a log again adds only what is new.
    """
    expect_plain(request)
    if if_changed == IfChanged.REPLACE:
        team_to(request, "accept")
    files: list[Uploaded]
    if (request.content_type or "").startswith("multipart/"):
        files = [file for _, several in request.FILES.lists() for file in several]
    else:
        files = [BodyFile(name, request.body)] if request.body else []
    if not files:
        raise Refusal(
            422,
            "No file received",
            "Send a log as the body, or a form with files: curl -F files=@session.jsonl.",
            field="",
        )
    made = begin_upload(team_with_room(request), files, actor_of(request), if_changed)
    assert made.job is not None
    page = request.build_absolute_uri(reverse("import", args=[made.pk]))
    return job_asked(made.job, **{"import": str(made.pk), "files": len(files), "url": page})
