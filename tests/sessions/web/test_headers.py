"""Every answer carries security headers, and nothing keeps what it says."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from sessions.actions.accounts.teams import local_team, local_user
from sessions.views.web.headers import security_headers
from tests.sessions.people import browser

pytestmark = pytest.mark.django_db

MANIFEST = "/static/contextlab/manifest.json"


def asked(method: str, path: str, **headers: str) -> Any:
    client = Client(SERVER_NAME=headers.pop("host", "127.0.0.1"), enforce_csrf_checks=True)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.generic(method, path, b"{", "application/json", headers=given)


@pytest.mark.fault("G10")
@pytest.mark.parametrize(
    ("method", "path", "status", "headers"),
    [
        ("GET", "/sessions/", 403, {}),
        ("GET", "/login/", 200, {}),
        ("GET", "/nowhere/", 404, {}),
        ("POST", "/login/", 403, {}),
        ("PUT", "/login/", 403, {}),
        ("GET", "/login/", 400, {"host": "rebound.example"}),
        ("GET", MANIFEST, 200, {}),
        ("GET", "/api/v1/docs", 200, {}),
        ("GET", "/api/v1/sessions/x", 401, {}),
        ("TRACE", "/api/v1/openapi.json", 405, {}),
        ("GET", "/api/v1/sessions/x", 401, {"authorization": "Bearer clk_missing"}),
        ("PUT", "/api/v1/sessions/x", 401, {"authorization": "Bearer clk_missing"}),
        ("GET", "/api/v1/sessions/x", 400, {"authorization": "Bearer x", "host": "evil.example"}),
    ],
)
def test_on_every_answer(method: str, path: str, status: int, headers: dict[str, str]):
    answer = asked(method, path, **headers)
    assert answer.status_code == status
    for name, value in security_headers():
        assert answer[name] == value, name
    assert "Access-Control-Allow-Origin" not in answer
    assert ("no-store" in answer["Cache-Control"]) is (path != MANIFEST)
    answer.close()


@pytest.mark.fault("G10")
def test_they_forbid_frames_sniffing_and_foreign_content():
    found = dict(security_headers())
    assert "default-src 'none'" in found["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in found["Content-Security-Policy"]
    assert found["X-Frame-Options"] == "DENY"
    assert found["X-Content-Type-Options"] == "nosniff"
    assert found["Referrer-Policy"] == found["Cross-Origin-Opener-Policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/sessions/", "/settings/", "/settings/keys/", "/start/"])
def test_pages_with_content_are_not_kept(path: str):
    local_team()
    assert "no-store" in browser(local_user()).get(path)["Cache-Control"]


def test_https_is_kept_once_it_was_used(settings: Any):
    assert "Strict-Transport-Security" not in asked("GET", "/login/")
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    answer = asked("GET", "/login/", x_forwarded_proto="https")
    assert answer["Strict-Transport-Security"] == "max-age=31536000"
