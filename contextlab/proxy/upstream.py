"""Providers that the proxy forwards to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http.cookiejar import DefaultCookiePolicy
from urllib.parse import unquote

import httpx2
from starlette.requests import Request

PROVIDERS = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
"""Addresses of providers, by the name in the proxy's own address."""

_OF_ONE_HOP = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te"),
        *("trailer", "transfer-encoding", "upgrade", "host", "content-length"),
    )
)
_TIMEOUT = httpx2.Timeout(600, connect=20)
"""Seconds without a byte of an answer; models think for minutes."""


class Upstream:
    """Connections to a provider."""

    def __init__(self, address: str) -> None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
        self._http = httpx2.AsyncClient(base_url=address, timeout=_TIMEOUT, limits=limits)
        # Cookies of one caller's answer are not for the next caller, who may be of another team.
        self._http.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))

    async def send(
        self, request: Request, path: str, headers: Iterable[tuple[str, str]], body: bytes
    ) -> httpx2.Response:
        """Forward a request; the answer's body is not read yet. Raises httpx2.TransportError, and
        httpx2.InvalidURL for a path that leaves the provider's address."""
        if {".", ".."} & set(unquote(path).replace("\\", "/").split("/")):
            raise httpx2.InvalidURL("a path with . or ..")
        query = request.url.query
        url = f"/{path}?{query}" if query else f"/{path}"
        # Headers are bytes; Starlette reads them as Latin-1.
        own = httpx2.Headers(list(headers), encoding="latin-1")
        made = self._http.build_request(request.method, url, headers=own, content=body)
        return await self._http.send(made, stream=True)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()


def forwarded(headers: Mapping[str, str], key: str) -> list[tuple[str, str]]:
    """Headers of a request for the provider: all but those of this hop and ours, and those that
    contain our key.

    No compression, since answers are read on their way.
    """
    kept = [
        (name, value)
        for name, value in headers.items()
        if name not in _OF_ONE_HOP and not name.startswith("x-contextlab-")
        if name not in ("accept-encoding", "cookie") and key not in value
    ]
    return [*kept, ("accept-encoding", "identity")]


def returned(headers: httpx2.Headers, *, decoded: bool = False) -> dict[str, str]:
    """Headers of an answer for the agent; `decoded` if its compression was undone."""
    left = _OF_ONE_HOP | {"content-encoding"} if decoded else _OF_ONE_HOP
    same = httpx2.Headers(headers.raw, encoding="latin-1")
    return {name: value for name, value in same.items() if name not in left}
