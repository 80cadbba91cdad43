"""MCP server: what agents may ask about their own sessions, as tools over our API.

Over stdio it has one key; over HTTP each request brings its own, and no state is kept between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from contextlab.client.connection import (
    Connection,
    Misaddressed,
    Refused,
    Unreachable,
    path,
)
from contextlab.version import version

PATIENCE = 20.0
"""Seconds for which a tool tries again while our server is away."""
SCHEME = "bearer "

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)

SessionName = Annotated[
    str, Field(description="id of the session; empty for the one that this server was started for")
]


@dataclass(frozen=True, slots=True)
class McpTools:
    """The tools, over the API of the server on `url`; `usual` is the session they mean by default.

    Without `key`, each HTTP request brings its own.
    """

    url: str
    key: str
    usual: str

    def read_back(
        self,
        context: Context,
        ref: Annotated[str, Field(description="the ref in a stub, such as m12.0@ab12cd34")],
        session: SessionName = "",
        lines: Annotated[str, Field(description="such as 10-40")] = "",
        grep: Annotated[str, Field(description="RE2")] = "",
        offset: Annotated[int, Field(description="where the last part ended", ge=0)] = 0,
    ) -> str:
        """Return content that was moved out of a context, unchanged: whole, or the lines named or
        matched. A long text comes in parts; what ends a part says how to get the next."""
        wanted = {"lines": lines or None, "grep": grep or None, "offset": offset or None}
        address = self._session(session, f"/content/{path(ref)}")
        return str(self._ask(context, "GET", address, **wanted)["text"])

    def search_memory(
        self,
        context: Context,
        query: Annotated[str, Field(description="words; rare ones weigh more")],
        task: Annotated[str, Field(description="only of this task")] = "",
        limit: Annotated[int, Field(ge=1, le=100)] = 10,
    ) -> dict[str, Any]:
        """Search the notes and shared summaries of the team's agents, best hits first. Each has its
        source, and whether it may be outdated."""
        return self._ask(context, "GET", "memory", q=query, task=task or None, limit=limit)

    def why_forgotten(
        self,
        context: Context,
        text: Annotated[str, Field(description="a path, name, number or phrase")],
        session: SessionName = "",
        run: Annotated[
            str, Field(description="seen: what the model saw; managed: what we built; or recorded")
        ] = "seen",
        step: Annotated[
            int, Field(description="a step that needed it; 0 for the first that did", ge=0)
        ] = 0,
    ) -> dict[str, Any]:
        """Say where the model first saw a text, what removed it from its context, when it was
        needed again, and what that cost."""
        wanted = {"text": text, "run": run, "step": step or None}
        return self._ask(context, "GET", self._session(session, "/why"), **wanted)

    def session_status(self, context: Context, session: SessionName = "") -> dict[str, Any]:
        """Get the state of a session: steps, tokens, how full its window is, its policy, and
        whether it is paused."""
        return self._ask(context, "GET", self._session(session))

    def compact_now(
        self,
        context: Context,
        session: SessionName = "",
        instructions: Annotated[str, Field(description="what the summary must keep")] = "",
    ) -> dict[str, Any]:
        """Compact the context of a session now, whatever its policy's trigger says. A job does it:
        later contexts are smaller."""
        address = self._session(session, "/compactions")
        return self._ask(context, "POST", address, {"instructions": instructions})

    def _session(self, given: str, rest: str = "") -> str:
        if not (name := given or self.usual):
            raise ToolError("Which session? Pass its id as `session`.")
        return f"sessions/{path(name)}{rest}"

    def _ask(
        self, context: Context, method: str, address: str, body: Any = None, **query: Any
    ) -> dict[str, Any]:
        key = self.key or _key_of(context.headers)
        try:
            with Connection(self.url, key, patience=PATIENCE) as connection:
                return connection.request(method, address, body, query)
        except Refused as refused:
            said = refused.problem
            raise ToolError(str(said.get("detail") or said.get("title") or refused)) from None
        except Misaddressed as error:
            raise ToolError(f"{error}.") from None
        except Unreachable:
            away = f"ContextLab does not answer on {self.url}. Try again later."
            raise ToolError(away) from None


def mcp_server(url: str, key: str = "", session: str = "") -> MCPServer:
    """A server with the tools."""
    server = MCPServer("contextlab", version=version(), instructions=_INSTRUCTIONS)
    tools = McpTools(url, key, session)
    server.add_tool(tools.read_back, annotations=READS, structured_output=False)
    for reads in (tools.search_memory, tools.why_forgotten, tools.session_status):
        server.add_tool(reads, annotations=READS)
    server.add_tool(tools.compact_now, annotations=WRITES)
    return server


_INSTRUCTIONS = """\
ContextLab records agent sessions and builds their contexts. Use read_back for what a stub names, \
search_memory for what other agents found out, why_forgotten for what is missing from a context."""


def http_app(url: str, session: str = "", host: str = "127.0.0.1") -> Starlette:
    """Streamable HTTP on /mcp: every request has a key of the server on `url` as bearer token."""
    app = mcp_server(url, session=session).streamable_http_app(
        stateless_http=True, json_response=True, host=host
    )
    app.add_middleware(_OnlyWithKey)
    return app


class _OnlyWithKey:
    """Answers 401 to requests without a key, before reading them; our API checks the key."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _key_of(Headers(scope=scope)):
            said = "An API key is needed: `Authorization: Bearer KEY`. Settings → Keys creates one."
            refusal = JSONResponse({"error": said}, 401, {"WWW-Authenticate": "Bearer"})
            return await refusal(scope, receive, send)
        await self._app(scope, receive, send)


def _key_of(headers: Any) -> str:
    """The bearer token of a request, empty without."""
    said = str((headers or {}).get("authorization") or "")
    return said[len(SCHEME) :].strip() if said[: len(SCHEME)].lower() == SCHEME else ""
