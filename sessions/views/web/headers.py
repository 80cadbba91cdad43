"""Headers of every answer: what browsers may do with it, and that nothing keeps it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from csp.utils import build_policy
from django.conf import settings
from django.http import HttpRequest, HttpResponse

ROUTE = "contextlab.route"
"""Where the name of a request's route is left for its server, in the environment."""


@cache
def security_headers() -> tuple[tuple[str, str], ...]:
    """The security headers of every answer, also of those that Django does not give."""
    return (
        ("Content-Security-Policy", build_policy()),
        ("Cross-Origin-Opener-Policy", settings.SECURE_CROSS_ORIGIN_OPENER_POLICY),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Referrer-Policy", settings.SECURE_REFERRER_POLICY),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", settings.X_FRAME_OPTIONS),
    )


class Headers:
    """Middleware that must come first: adds headers to every answer, also to refusals."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._static = settings.STATIC_URL.removeprefix(settings.FORCE_SCRIPT_NAME or "")

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """The next answer, with headers."""
        response = self.get_response(request)
        for name, value in security_headers():
            response.headers.setdefault(name, value)
        if request.is_secure():
            age = f"max-age={settings.SECURE_HSTS_SECONDS}"
            response.headers.setdefault("Strict-Transport-Security", age)
        if request.path_info.startswith(self._static):
            request.META[ROUTE] = "static"
        else:
            response.headers.setdefault("Cache-Control", "no-store")
            if request.resolver_match is not None:
                request.META[ROUTE] = request.resolver_match.route
        return response
