"""All routes, from the URL configuration itself, and the rights they require.

Pages declare their rights (`Page.needs`). A new API route that changes something needs a line in
NEEDS: the right it requires in the team of the object. Routes that name no object, but show or
create the requester's own, are in AT_LARGE. New path parameters need a value in world.py, and
request bodies an entry in BODIES, by the last part of the route.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from sessions.actions.policies.rollout_rules import FROM
from sessions.api.urls import api
from sessions.models.accounts.teams import Right
from sessions.views.web.pages import pages

PAGES = {page.route: page for page in pages()}

PUBLIC = {route for route, page in PAGES.items() if page.public} | {
    "api/v1/openapi.json", "api/v1/docs"
}  # fmt: skip
"""Routes without authentication: health, sign-in, and the API's document."""

NOTHING = "api/v1/<path:rest>"

IN_BODY = {"review/add/"}
"""Pages that name their object in the body."""

AT_LARGE = {route for route in PAGES if "<" not in route} - IN_BODY | {
    "api/v1/dashboard",
    "api/v1/rollouts",
    "api/v1/policies",
    "api/v1/budgets",
    "api/v1/approvals",
    "api/v1/keys",
    "api/v1/memory",
    "api/v1/memory/tool",
    "api/v1/search",
    "api/v1/subscriptions",
    "api/v1/sessions",
    "api/v1/imports",
    "api/v1/traces",
    "api/v1/simulations",
    "api/v1/tunings",
    "api/v1/cache/check",
    "api/v1/reviews",
    "api/v1/ingestion",
    "api/v1/ingestion/refused",
    "api/v1/notifications",
    "api/v1/notifications/channels",
    "api/v1/notifications/rules",
    "api/v1/erasures",
    "api/v1/retention",
    "api/v1/archiving",
    "api/v1/holds",
    "api/v1/masking",
    "api/v1/masking-rules",
    "api/v1/masking/samples",
    "api/v1/masking/dry-runs",
}
"""These name nothing, and show everybody their own."""

MAKES = {("PUT", "api/v1/sessions/<path:session_id>"), ("PUT", "api/v1/policies/<name>"),
         ("POST", "api/v1/sessions/<path:session_id>/messages"),
         ("POST", "api/v1/sessions/<path:session_id>/steps")}  # fmt: skip
"""Routes that create a session or policy with that name in the requester's own team if it is
missing."""

SESSION = "api/v1/sessions/<path:session_id>"

OWN = None
"""Routes that concern only the requester, not a team."""

NEEDS: dict[tuple[str, str], Right | None] = {
    **{
        (method, page.route): right
        for page in PAGES.values()
        for method, right in page.needs.items()
    },
    ("POST", "api/v1/reviews"): "review",
    ("PUT", "api/v1/policies/<name>"): "write",
    **{("POST", f"api/v1/rollouts/<uuidstr:rollout_id>/{act}"): "accept" for act in FROM},
    ("POST", "api/v1/rollouts"): "write",
    ("PUT", SESSION): "write",
    ("POST", f"{SESSION}/messages"): "write",
    ("POST", f"{SESSION}/steps"): "write",
    ("POST", f"{SESSION}/calls"): "write",
    ("POST", f"{SESSION}/pins"): "write",
    ("PUT", f"{SESSION}/tools"): "write",
    ("DELETE", f"{SESSION}/pins/<seq>"): "write",
    ("POST", f"{SESSION}/notes"): "write",
    ("DELETE", f"{SESSION}/notes/<note_id>"): "write",
    ("POST", f"{SESSION}/reveal"): "reveal",
    ("POST", f"{SESSION}/step-notes"): "review",
    ("DELETE", f"{SESSION}/step-notes/<step_note_id>"): "members",
    ("POST", f"{SESSION}/shares"): "write",
    ("POST", "api/v1/subscriptions"): "write",
    ("DELETE", "api/v1/subscriptions/<subscription_id>"): "write",
    ("POST", f"{SESSION}/revisions/<number>/undo"): "write",
    ("POST", f"{SESSION}/compactions"): "write",
    ("POST", f"{SESSION}/pause"): "accept",
    ("POST", f"{SESSION}/resume"): "accept",
    ("POST", f"{SESSION}/simulations"): "write",
    ("POST", f"{SESSION}/budgets/check"): "write",
    ("DELETE", f"{SESSION}/reservations"): "write",
    ("PUT", "api/v1/budgets"): "accept",
    ("DELETE", "api/v1/budgets/<uuidstr:budget_id>"): "accept",
    ("POST", "api/v1/approvals/<uuidstr:approval_id>"): "accept",
    ("POST", "api/v1/cache/check"): "read",
    ("POST", "api/v1/ingestion/refused/<uuidstr:refused_id>/apply"): "write",
    ("DELETE", "api/v1/ingestion/refused/<uuidstr:refused_id>"): "write",
    ("POST", "api/v1/notifications/<uuidstr:notification_id>/retry"): "accept",
    ("POST", "api/v1/notifications/channels"): "accept",
    ("DELETE", "api/v1/notifications/channels/<uuidstr:channel_id>"): "accept",
    ("POST", "api/v1/notifications/channels/<uuidstr:channel_id>/tests"): "accept",
    ("PUT", "api/v1/notifications/rules"): "accept",
    ("DELETE", "api/v1/notifications/rules/<uuidstr:rule_id>"): "accept",
    ("DELETE", SESSION): "erase",
    ("POST", "api/v1/erasures"): "erase",
    **{
        ("GET", f"api/v1/{route}"): "erase"
        for route in (
            "erasures",
            "erasures/<uuidstr:erasure_id>",
            "retention",
            "archiving",
            "holds",
            "masking",
            "masking/dry-runs",
        )
    },
    ("POST", "api/v1/erasures/<uuidstr:erasure_id>/verify"): "erase",
    ("PUT", "api/v1/retention"): "erase",
    ("PUT", "api/v1/archiving"): "erase",
    ("POST", "api/v1/holds"): "erase",
    ("PUT", "api/v1/masking"): "erase",
    ("POST", "api/v1/masking-rules"): "erase",
    ("POST", "api/v1/masking/samples"): "erase",
    ("POST", "api/v1/masking/dry-runs"): "erase",
    ("PUT", "api/v1/masking-rules/<uuidstr:masking_rule_id>"): "erase",
    ("DELETE", "api/v1/masking-rules/<uuidstr:masking_rule_id>"): "erase",
    ("POST", "api/v1/holds/<uuidstr:hold_id>/release"): "erase",
    ("POST", "api/v1/simulations"): "write",
    ("POST", "api/v1/tunings"): "write",
    ("POST", "api/v1/tunings/<uuidstr:tuning_id>/cancel"): "write",
    ("POST", "api/v1/simulations/<uuidstr:simulation_id>/cancel"): "write",
    ("POST", "api/v1/imports"): "write",
    ("POST", "api/v1/traces"): "write",
}
"""The right that each route requires, if it changes something or shows restricted data. All other
pages accept no POST and are visible to the whole team."""

BODIES: dict[str, Any] = {
    "messages": {"messages": [{"role": "user", "content": "more"}]},
    "steps": {"messages": [{"role": "user", "content": "more"}]},
    "calls": {"step": 1, "usage": {"input_tokens": 1, "output_tokens": 1}},
    "pins": {"seq": 1},
    "pause": {"reason": "look at the plan"},
    "resume": {"reason": "the plan is good"},
    "check": {"previous": {"system": "a"}, "current": {"system": "b"}},
    "tools": {"tools": ["Read"]},
    "notes": {"kind": "knowledge", "text": "the port is 8080"},
    "step-notes": {"step": 1, "text": "guessed the port"},
    "shares": {"summary": "what we know"},
    "subscriptions": {"session": "run", "kind": "team"},
    "budgets": {"scope": "agent", "tokens": 5},
    "<uuidstr:approval_id>": {"granted": True},
    "rollouts": {"version": "recitation"},
    "<name>": {"document": {"reserve": 7}},
    "widen": {"share": 50},
    "channels": {"kind": "slack", "name": "b", "address": "https://hooks.example.com/x"},
    "rules": {"event": "job", "channel": "x"},
    "tunings": {"base": "offload-first", "sessions": {"by": "query"}},
    "reviews": {"session": "run", "run": "managed", "revision": 1},
    "erasures": {"kind": "session", "value": "run"},
    "retention": {"content_days": 30, "session_days": None},
    "archiving": {"days": 30},
    "holds": {"kind": "session", "value": "run", "reason": "a lawsuit"},
    "release": {"reason": "settled"},
    "reveal": {"i": 0, "sha": "0" * 64},
    "masking": {"incoming": True},
    "masking-rules": {"name": "PORT", "kind": "words", "text": "port"},
    "samples": {"name": "PORT", "kind": "words", "text": "port", "sample": "a port"},
    "<uuidstr:masking_rule_id>": {"name": "HARBOR", "kind": "words", "text": "harbor"},
    "simulations": {
        "policy": "offload-first",
        "sessions": {"by": "query"},
        "draft": "offload-first",
    },
}


QUERIES = {"why": "?text=port", "texts": "?at=0", "compare": "?with=run"}
"""What a route must be asked for."""


@dataclass(frozen=True)
class Address:
    """A route, and what it requires."""

    method: str
    route: str
    names: tuple[str, ...] = field(default=())

    def at(self, ids: dict[str, Any]) -> str:
        """A concrete address; fails for a parameter that no world has."""
        path = re.sub(r"<(?:\w+:)?(\w+)>", lambda found: str(ids[found[1]]), self.route)
        return f"/{path}{QUERIES.get(self.route.rpartition('/')[2], '')}"

    @property
    def needs(self) -> Right | None:
        """The required right."""
        return NEEDS.get((self.method, self.route), "read")

    @property
    def takes(self) -> bool:
        """Whether it accepts the method at all."""
        return self.method == "GET" or (self.method, self.route) in NEEDS

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
