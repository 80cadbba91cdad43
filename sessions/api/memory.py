"""The search in what a team remembers, and the tool by which a model asks for it."""

from __future__ import annotations

from typing import Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from compaction.tools import memory_tool
from sessions.actions.boards import board_of
from sessions.api import board_shapes
from sessions.api.access import teams_of
from sessions.api.answers import told
from sessions.api.boards import named_session
from sessions.models.memory import board_query, search, terms

router = Router(tags=["Memory"])


@router.get("memory", response=board_shapes.MemoryTold, url_name="memory")
def memory(
    request: HttpRequest,
    q: str = Query("", max_length=1_000, description="words; left out, those of `session`'s board"),
    task: str = Query("", max_length=300, description="only of this task"),
    session: str = Query("", max_length=300, description="whose board is the question"),
    limit: int = Query(20, ge=1, le=100),
) -> HttpResponse:
    """Searches the team's boards, and the summaries that its sessions shared.

    Full text: rare words count more, and without a word nothing is found. Each answer says
    where it comes from, and whether it may be out of date.
    """
    query = q
    if not q and session:
        found = named_session(request, session, "?session")
        query = board_query(board_of(found))
    rows = search(teams_of(request), query.replace("\x00", " "), task=task, limit=limit)
    return told(
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
    *("message", "anchor", "share"),
)


@router.get("memory/tool", response=dict, url_name="memory_tool")
def tool(
    request: HttpRequest,
    format: Literal["anthropic", "openai"] = Query("anthropic", description="whose form it has"),
) -> HttpResponse:
    """Gives the definition of a tool by which a model searches the team's memory itself.

    Put it into your tools, and answer its calls with GET /memory.
    """
    return told(memory_tool.definition(format))
