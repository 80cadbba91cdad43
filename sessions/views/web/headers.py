"""Security headers that are the same with every answer."""

from __future__ import annotations

from functools import cache

from csp.utils import build_policy
from django.conf import settings


@cache
def security_headers() -> tuple[tuple[str, str], ...]:
    """The headers that `SecurityMiddleware`, `XFrameOptionsMiddleware` and `CSPMiddleware` send
    with pages, for answers that do not pass them."""
    return (
        ("Content-Security-Policy", build_policy()),
        ("Cross-Origin-Opener-Policy", settings.SECURE_CROSS_ORIGIN_OPENER_POLICY),
        ("Referrer-Policy", settings.SECURE_REFERRER_POLICY),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", settings.X_FRAME_OPTIONS),
    )
