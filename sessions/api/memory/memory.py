"""Memory search, and its tool definition for models."""

from __future__ import annotations

from typing import Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from compaction.tools import memory_tool
from sessions.access import teams_of
from sessions.actions.memory.boards import board_of
from sessions.api.memory import shapes as board_shapes
from sessions.api.memory.boards import named_session
from sessions.api.web.exchange import json_answer
from sessions.models.memory.memory import board_query, search, terms

router = Router(tags=["Memory"])


@router.get("memory", response=board_shapes.MemoryOut, url_name="memory")
def memory(
    request: HttpRequest,
    q: str = Query(
        "", max_length=1_000, description="words; default: the task and plan on `session`'s board"
    ),
    task: str = Query("", max_length=300, description="only of this task"),
    session: str = Query("", max_length=300, description="the session whose board is the query"),
    limit: int = Query(20, ge=1, le=100),
) -> HttpResponse:
    """Search the team's boards and shared summaries.

    Full text: rare words weigh more, and an empty query finds nothing. Each hit has its source, and
    whether it may be outdated.
    """
    query = q
    if not q and session:
        found = named_session(request, session, "?session")
        query = board_query(board_of(found))
    rows = search(teams_of(request), query.replace("\x00", " "), task=task, limit=limit)
    return json_answer(
        {
            "query": terms(query),
            "found": [
                {
                    **{name: getattr(row, name) for name in _AS_THEY_ARE},
                    "board": {"kind": row.board[0], "name": row.board[1]},
                    "session": str(row.session) if row.session else None,
                    "created": row.created.isoformat(),
                }
                for row in rows
            ],
        }
    )


_AS_THEY_ARE = (
    *("kind", "text", "score", "stale", "untrusted", "agent", "task"),
    *("message", "note", "share", "demo"),
)


@router.get("memory/tool", response=dict, url_name="memory_tool")
def tool(
    request: HttpRequest,
    format: Literal["anthropic", "openai"] = Query("anthropic", description="provider format"),
) -> HttpResponse:
    """Get the definition of `search_memory`, with which a model searches the team's memory.

    Add it to your tools, and answer its calls with GET /memory.
    """
    return json_answer(memory_tool.definition(format))
