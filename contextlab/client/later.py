"""The client for asynchronous agents: its requests run in threads, so that no event loop waits."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Awaitable, Callable
from functools import wraps
from os import PathLike
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from contextlab.client.connection import PATIENCE
from contextlab.client.sessions import ContextLab, Session

P = ParamSpec("P")
Result = TypeVar("Result")


def _awaited(
    method: Callable[Concatenate[Session, P], Result],
) -> Callable[Concatenate[AsyncSession, P], Awaitable[Result]]:
    @wraps(method)
    async def call(self: AsyncSession, *given: P.args, **named: P.kwargs) -> Result:
        return await to_thread(method, self.session, *given, **named)

    return call


class AsyncSession:
    """One agent's session, as `Session`; created by `AsyncContextLab.session`. Await each call
    before the next."""

    def __init__(self, session: Session) -> None:
        self.session = session

    append = _awaited(Session.append)
    context = _awaited(Session.context)
    step = _awaited(Session.step)
    answer = _awaited(Session.answer)
    reserve = _awaited(Session.reserve)
    release = _awaited(Session.release)
    read_back = _awaited(Session.read_back)
    read_back_result = _awaited(Session.read_back_result)
    pin = _awaited(Session.pin)
    note = _awaited(Session.note)
    board = _awaited(Session.board)
    share = _awaited(Session.share)
    subscribe = _awaited(Session.subscribe)
    search_memory = _awaited(Session.search_memory)
    why = _awaited(Session.why)
    verdict = _awaited(Session.verdict)
    finish = _awaited(Session.finish)


class AsyncContextLab:
    """A server and a key, as `ContextLab`; creates sessions. Raises ValueError without a token."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        patience: float = PATIENCE,
    ) -> None:
        self.lab = ContextLab(url, token, timeout=timeout, patience=patience)

    async def session(
        self, external_id: str, *, offloads: str | PathLike[str] | None = None, **fields: Any
    ) -> AsyncSession:
        """Create or update a session under your own id; see `ContextLab.session`."""
        made = await to_thread(self.lab.session, external_id, offloads=offloads, **fields)
        return AsyncSession(made)

    async def close(self) -> None:
        """Close all connections."""
        self.lab.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
