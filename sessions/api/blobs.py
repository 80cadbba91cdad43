"""Content by its address, as the bytes that were stored."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Path, Router

from sessions.api.access import teams_of
from sessions.models import Blob

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
    """Gives the bytes of a block as they were stored: its JSON."""
    found = Blob.objects.filter(team__in=teams_of(request), sha=sha).first() if _is(sha) else None
    if found is None:
        raise Http404("no such blob")
    etag = f'"{sha}"'
    if request.headers.get("If-None-Match") == etag:
        return HttpResponse(status=304, headers={"ETag": etag})
    # Never shown by a browser as what it may say it is.
    return HttpResponse(
        found.content(),
        content_type="application/octet-stream",
        headers={
            "ETag": etag,
            "Cache-Control": "private, no-cache",
            "Content-Disposition": f'attachment; filename="{sha[:12]}.json"',
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
        },
    )


def _is(sha: str) -> bool:
    return len(sha) == 64 and set(sha) <= set("0123456789abcdef")
