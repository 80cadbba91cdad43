"""The application Daphne runs: pages and API over HTTP, hints over websockets."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")

from django.core.asgi import get_asgi_application

http = get_asgi_application()  # sets Django up, so it stands before what needs models

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.urls import path

from sessions.consumers import Live


class SameOrigin:
    """Refuses websockets opened by another page: browsers send cookies along, whatever the port.

    The origin must be scheme, host and port of this server, or stand in CSRF_TRUSTED_ORIGINS.
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
    """Undoes the Daphne-Root-Path header, by which any client could move our addresses."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        root = settings.FORCE_SCRIPT_NAME or ""
        await self.application({**scope, "root_path": root}, receive, send)


application = FixedRoot(
    ProtocolTypeRouter(
        {
            "http": http,
            "websocket": SameOrigin(
                AuthMiddlewareStack(URLRouter([path("ws/live/", Live.as_asgi())]))
            ),
        }
    )
)
