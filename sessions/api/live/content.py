"""Read back content removed from a context, by reference or as a tool."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router

from compaction.context.excerpt import BadSelection, selection_of
from compaction.tools import read_tool
from sessions.access import session_of
from sessions.actions.live.handing_out.offload_files import file_of, reference_in
from sessions.actions.live.handing_out.read_back import NothingThere, read_back
from sessions.api.live import shapes
from sessions.api.web.exchange import bytes_answer, json_answer
from sessions.api.web.problems import Refusal

router = Router(tags=["Context"])

BYTES = {
    "responses": {
        200: {
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
            }
        }
    }
}


@router.get(
    "sessions/{path:session_id}/content/{ref}", response=shapes.ReadBackOut, url_name="content"
)
def content(
    request: HttpRequest,
    session_id: str,
    ref: str,
    wanted: Query[shapes.SelectionIn],
) -> HttpResponse:
    """Read back what was removed from a context, whole or in part.

    `ref` is the reference in the stub, the name of its file, a message number, or
    the reference of a received share or one of its results (`share:12`, `share:12:m3.0@ab12cd34`;
    secrets are masked). Use at most one of lines, grep, head and tail. Long texts come in parts:
    `rest` has the parameters for the next one. `content` is that as a tool result of the
    Messages API, with images as images.
    """
    session = session_of(request, session_id)
    ref = reference_in(ref)
    try:
        found = read_back(session, ref, selection_of(wanted.model_dump()))
    except NothingThere as error:
        raise Refusal(404, "Not found", str(error)) from None
    except BadSelection as error:
        raise Refusal(422, "Not acceptable", str(error), field=f"?{wanted.first()}") from None
    body: dict[str, Any] = {
        "ref": found.ref,
        "lines": [found.first, found.last],
        "total_lines": found.total_lines,
        "text": found.text,
        "content": found.content,
        "truncated": found.truncated,
        "rest": found.rest,
    }
    return json_answer(body)


@router.get(
    "sessions/{path:session_id}/offloads/{file}", url_name="offload_file", openapi_extra=BYTES
)
def offload_file(
    request: HttpRequest,
    session_id: str,
    file: str = Path(..., description="its name, from `files` of a context"),
) -> HttpResponse:
    """Get a file that a context with `offloads` names, whole: a text in UTF-8, or an
    image."""
    try:
        data = file_of(session_of(request, session_id), file)
    except NothingThere as error:
        raise Refusal(404, "Not found", str(error)) from None
    return bytes_answer(data, file)


@router.get("sessions/{path:session_id}/content-tool", response=dict, url_name="content_tool")
def content_tool(
    request: HttpRequest,
    session_id: str,
    format: Literal["anthropic", "openai"] = Query("anthropic", description="provider format"),
) -> HttpResponse:
    """Get the definition of `read_back`, with which a model reads back content.

    Contexts of a policy that edits list it already. Answer its calls with GET …/content/{ref}.
    """
    session_of(request, session_id)
    return json_answer(read_tool.definition(format))
