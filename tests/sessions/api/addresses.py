"""Every address there is, from the URL configuration itself, and what is asked of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from sessions.api.urls import api

PUBLIC = {"healthz", "login/<str:token>/", "api/v1/openapi.json", "api/v1/docs"}
"""These ask nobody who they are: health, the door itself, and what the API is."""

NOTHING = "api/v1/<path:rest>"

AT_LARGE = {"", "start/", "start/demo/", "sessions/", "live/", "settings/keys/", "imports/",
            "jobs/", "logout/", "api/v1/sessions", "api/v1/imports"}  # fmt: skip
"""These name nothing, and show everybody their own."""

MAKES = {("PUT", "api/v1/sessions/<path:session_id>"),
         ("POST", "api/v1/sessions/<path:session_id>/messages")}  # fmt: skip
"""These make a session of that name in the asker's own team where he has none."""

BODIES: dict[str, Any] = {
    "messages": {"messages": [{"role": "user", "content": "more"}]},
    "calls": {"step": 1, "usage": {"input_tokens": 1, "output_tokens": 1}},
    "pins": {"seq": 1},
    "simulations": {"policy": "offload-first"},
}


@dataclass(frozen=True)
class Address:
    """A pattern of the URL configuration, and what is asked of it."""

    method: str
    route: str
    names: tuple[str, ...] = field(default=())

    def at(self, ids: dict[str, Any]) -> str:
        """A concrete address; fails for a parameter that no world has."""
        return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda found: str(ids[found[1]]), self.route)

    @property
    def body(self) -> Any:
        return BODIES.get(self.route.rpartition("/")[2], {})

    @property
    def is_api(self) -> bool:
        return self.route.startswith("api/v1/") and self.route not in PUBLIC


def walk(patterns: Any, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from walk(pattern.url_patterns, route)
        else:
            yield route, pattern


def addresses() -> list[Address]:
    methods: dict[str, set[str]] = {}
    for bound in api._get_bound_routers():
        for path, view in bound.path_operations.items():
            route = "api/v1/" + re.sub(r"{(\w+:)?(\w+)}", r"<\1\2>", path).lstrip("/")
            methods[route] = {method for one in view.operations for method in one.methods}
    found = dict.fromkeys(
        Address(method, route, tuple(re.findall(r"<(?:\w+:)?(\w+)>", route)))
        for route, _ in walk(get_resolver().url_patterns)
        for method in sorted(methods.get(route, {"GET", "POST"}))
    )
    assert set(methods) <= {address.route for address in found}, "an operation has no address"
    return list(found)


ADDRESSES = addresses()
PRIVATE = [address for address in ADDRESSES if address.route not in {*PUBLIC, NOTHING}]
