"""Import of existing logs."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router

from sessions.access import actor_of, team_to
from sessions.actions.imports.uploads import FILES_AT_ONCE, Uploaded, begin_upload
from sessions.api.jobs.jobs import job_asked
from sessions.api.record import shapes
from sessions.api.web.exchange import done_once, expect_plain
from sessions.api.web.problems import Refusal

router = Router(tags=["Imports"])

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


class _Body:
    """A request body as an uploaded file."""

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
    name: str = Query(
        "", max_length=300, description="file name of the log, if not sent as a form"
    ),
) -> HttpResponse:
    """Import agent logs; their format is detected. A job reads them.

    Importing a log again adds only what is new.
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
            "No file received",
            "Send a log as the body, or a form with files: curl -F files=@session.jsonl.",
            field="",
        )
    made = begin_upload(team_to(request, "write"), files, actor_of(request))
    assert made.job is not None
    page = request.build_absolute_uri(reverse("import", args=[made.pk]))
    return job_asked(made.job, **{"import": str(made.pk), "files": len(files), "url": page})
