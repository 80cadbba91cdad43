"""Blobs by their SHA-256."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Path, Router

from sessions.access import teams_of
from sessions.api.web.exchange import bytes_answer
from sessions.models import Blob
from sessions.models.record.values import content_of, stored_forms
from sessions.models.web import shown

router = Router(tags=["Replay"])

BYTES = {
    "responses": {
        200: {
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
            }
        },
        304: {"description": "Not Modified"},
    }
}


@router.get("blobs/{sha}", url_name="blob", openapi_extra=BYTES)
def blob(
    request: HttpRequest,
    sha: str = Path(..., description="SHA-256 of the bytes, 64 hex digits"),
) -> HttpResponse:
    """Get the stored bytes of a block: its JSON. They are others if they are shown masked."""
    blobs = Blob.objects.filter(team__in=teams_of(request), sha=sha if _is(sha) else "")
    found = list(blobs.values_list("team", "sha", "packed", "data", "object_name")[:1])
    if not found:
        raise Http404("no such blob")
    etag = f'"{".".join(filter(None, (sha, shown.seal())))}"'
    if request.headers.get("If-None-Match") == etag:
        return HttpResponse(status=304, headers={"ETag": etag})
    for stored in stored_forms(row[1:] for row in found):
        data = shown.contents(found[0][0], {sha: content_of(*stored)})[sha]
        return bytes_answer(data, f"{sha[:12]}.json", {"ETag": etag})
    raise Http404("The blob is missing from object storage. Restore it from a backup.")


def _is(sha: str) -> bool:
    return len(sha) == 64 and set(sha) <= set("0123456789abcdef")
