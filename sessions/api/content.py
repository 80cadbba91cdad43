"""Reading back what left a context: by the reference that stands there, or as a tool."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from compaction.excerpt import BadSelection, selection_of
from compaction.tools import read_tool
from sessions.actions.read_back import NothingThere, read_back
from sessions.api import incoming, shapes
from sessions.api.access import session_of
from sessions.api.answers import told
from sessions.api.problems import Refusal

router = Router(tags=["Context"])


@router.get(
    "sessions/{path:session_id}/content/{ref}", response=shapes.ReadBack, url_name="content"
)
def content(
    request: HttpRequest,
    session_id: str,
    ref: str,
    wanted: Query[incoming.SelectionWanted],
) -> HttpResponse:
    """Gives the original text of what was moved out of a context, all of it or some lines.

    `ref` stands in the stub; a message's number does too. At most one of lines, grep, head and
    tail. A long text comes in parts: `rest` holds the parameters of the next.
    """
    session = session_of(request, session_id)
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
        "truncated": found.truncated,
        "rest": found.rest,
    }
    return told(body)


@router.get("sessions/{path:session_id}/content-tool", response=dict, url_name="content_tool")
def content_tool(
    request: HttpRequest,
    session_id: str,
    format: Literal["anthropic", "openai"] = Query("anthropic", description="whose form it has"),
) -> HttpResponse:
    """Gives the definition of a tool by which a model reads back itself.

    Put it into your tools, and answer its calls with GET …/content/{ref}.
    """
    session_of(request, session_id)
    return told(read_tool.definition(format))
