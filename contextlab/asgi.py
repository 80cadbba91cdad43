"""The ASGI application: hints over WebSockets. HTTP goes to Django's WSGI application
(contextlab/door/gateway.py), which needs fewer changes of thread."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")

import django

django.setup()  # must come before imports of models

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.urls import path, re_path

from sessions.consumers import Live


class SameOrigin:
    """Rejects WebSockets opened by other sites, because browsers send cookies regardless of port.

    The origin must match scheme, host and port of this server, or be in CSRF_TRUSTED_ORIGINS.
    """

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if self._is_ours(dict(scope["headers"]), scope.get("scheme", "ws")):
            await self.application(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 4403})

    @staticmethod
    def _is_ours(headers: dict[bytes, bytes], scheme: str) -> bool:
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if origin in settings.CSRF_TRUSTED_ORIGINS:
            return True
        known = validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS)
        return known and origin == f"{'https' if scheme == 'wss' else 'http'}://{host}"


class FixedRoot:
    """Removes CONTEXTLAB_ROOT_PATH, which a proxy in front may keep or remove, and ignores the
    Daphne-Root-Path header, with which any client could change our URLs."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        route, root = scope["path"], settings.FORCE_SCRIPT_NAME
        if root and route.startswith(f"{root}/"):
            route = route.removeprefix(root)
        await self.application({**scope, "path": route, "root_path": ""}, receive, send)


async def nothing_here(_scope: dict[str, Any], _receive: Any, send: Any) -> None:
    """Refuse a WebSocket of no page."""
    await send({"type": "websocket.close", "code": 4404})


application = FixedRoot(
    ProtocolTypeRouter(
        {
            "websocket": SameOrigin(
                URLRouter(
                    [
                        path("ws/live/", AuthMiddlewareStack(Live.as_asgi())),
                        re_path("", nothing_here),  # type: ignore[arg-type]
                    ]
                )
            ),
        }
    )
)
