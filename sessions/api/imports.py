"""Logs that people already have, sent by a program."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router

from sessions.actions.uploads import FILES_AT_ONCE, Uploaded, begin_upload
from sessions.api import shapes
from sessions.api.access import actor_of, team_to
from sessions.api.answers import done_once
from sessions.api.bodies import expect_plain
from sessions.api.jobs import job_asked
from sessions.api.problems import Refusal

router = Router(tags=["Imports"])

_BYTES = {"schema": {"type": "string", "format": "binary"}}
FORMS = {
    "requestBody": {
        "required": True,
        "description": f"One log as it is, or a form with up to {FILES_AT_ONCE} files.",
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


class _Body:
    """The body of a request as a file."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name: str | None = name
        self._data = data

    def chunks(self) -> Iterable[bytes]:
        """The bytes, in one piece."""
        yield self._data


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
    name: str = Query("", max_length=300, description="what the log is called, if not in a form"),
) -> HttpResponse:
    """Imports logs of agents; their format is told by what they hold. A job reads them.

    Importing a log again adds what is new in it.
    """
    expect_plain(request)
    files: list[Uploaded]
    if (request.content_type or "").startswith("multipart/"):
        files = [file for _, several in request.FILES.lists() for file in several]
    else:
        files = [_Body(name, request.body)] if request.body else []
    if not files:
        raise Refusal(
            422,
            "No file arrived",
            "Send a log as the body, or a form with files: curl -F files=@session.jsonl.",
            field="",
        )
    made = begin_upload(team_to(request, "write"), files, actor_of(request))
    assert made.job is not None
    page = request.build_absolute_uri(reverse("import", args=[made.pk]))
    return job_asked(made.job, **{"import": str(made.pk), "files": len(files), "url": page})
