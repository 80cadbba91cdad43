"""Every address there is, from the URL configuration itself, and what is asked of it.

Who adds an address that changes something adds a line to NEEDS: the right it asks for in the team
of what it names; likewise for a page that one must be allowed to see. One that names nothing, but
shows or makes what is the asker's own, stands in AT_LARGE. A new parameter of an address gets its
value in world.py, and the body that an address of the API wants stands in BODIES, by its last part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from sessions.actions.rollout_rules import FROM
from sessions.api.urls import api
from sessions.models.teams import Right

PUBLIC = {"healthz", "login/", "login/<str:token>/", "invitations/<str:token>/",
          "api/v1/openapi.json", "api/v1/docs"}  # fmt: skip
"""These ask nobody who they are: health, the door itself, and what the API is."""

NOTHING = "api/v1/<path:rest>"

AT_LARGE = {"", "dashboard/", "api/v1/dashboard",
            "start/", "start/demo/", "tools/", "sessions/", "live/", "settings/", "settings/keys/",
            "settings/members/", "settings/team/", "settings/audit/", "settings/audit/export/",
            "account/", "imports/",
            "rollouts/", "api/v1/rollouts", "policies/", "policies/new/", "api/v1/policies",
            "budgets/", "api/v1/budgets", "api/v1/approvals",
            "memory/", "api/v1/memory", "api/v1/memory/tool", "api/v1/subscriptions",
            "jobs/", "logout/", "api/v1/sessions", "api/v1/imports",
            "api/v1/simulations", "api/v1/simulations/curves", "api/v1/tunings",
            "api/v1/cache/check",
            "lab/searches/",
            "api/v1/reviews", "review/", "review/next/",
            "review/more/", "review/skipped/", "review/rules/", "lab/", "lab/draft/"}  # fmt: skip
"""These name nothing, and show everybody their own."""

MAKES = {("PUT", "api/v1/sessions/<path:session_id>"), ("PUT", "api/v1/policies/<name>"),
         ("POST", "api/v1/sessions/<path:session_id>/messages")}  # fmt: skip
"""These make a session, or a policy, of that name in the asker's own team where he has none."""

SESSION = "api/v1/sessions/<path:session_id>"
ROLLOUT = "rollouts/<uuid:rollout_id>"
ITEM = "review/items/<uuid:item_id>"

OWN = None
"""Nothing of a team: it concerns the one who asks."""

NEEDS: dict[tuple[str, str], Right | None] = {
    ("POST", "logout/"): OWN,
    ("POST", "account/"): OWN,
    ("POST", "account/teams/<slug:slug>/leave/"): OWN,
    ("POST", "settings/members/"): "members",
    ("POST", "settings/members/<int:member_id>/role/"): "members",
    ("POST", "settings/members/<int:member_id>/remove/"): "members",
    ("POST", "settings/members/invitations/<int:invitation_id>/withdraw/"): "members",
    ("POST", "settings/team/"): "members",
    ("GET", "settings/audit/"): "audit",
    ("POST", "settings/audit/export/"): "audit",
    ("POST", "start/demo/"): "write",
    ("POST", "imports/"): "write",
    ("POST", "jobs/<uuid:job_id>/cancel/"): "write",
    ("POST", "jobs/<uuid:job_id>/retry/"): "write",
    ("POST", "settings/keys/"): "keys",
    ("POST", "settings/keys/<str:prefix>/revoke/"): "keys",
    ("POST", "sessions/<uuid:session_id>/revisions/<str:run>/<int:number>/undo/"): "write",
    ("GET", "review/next/"): "review",
    ("GET", "review/rules/"): "write",
    ("POST", "review/rules/"): "write",
    ("POST", "review/more/"): "review",
    ("POST", "review/skipped/"): "review",
    ("POST", "review/add/"): "review",
    ("POST", f"{ITEM}/submit/"): "review",
    ("POST", f"{ITEM}/renew/"): "review",
    ("POST", f"{ITEM}/skip/"): "review",
    ("POST", f"{ITEM}/release/"): "review",
    ("POST", "api/v1/reviews"): "review",
    ("GET", "policies/new/"): "write",
    ("POST", "policies/new/"): "write",
    ("GET", "policies/<str:name>/edit/"): "write",
    ("POST", "policies/<str:name>/edit/"): "write",
    ("PUT", "api/v1/policies/<name>"): "write",
    ("GET", "policies/<str:name>/<int:number>/propose/"): "write",
    ("POST", "policies/<str:name>/<int:number>/propose/"): "write",
    ("POST", f"{ROLLOUT}/check/"): "write",
    **{("POST", f"{ROLLOUT}/{act}/"): "accept" for act in FROM},
    **{("POST", f"api/v1/rollouts/<uuidstr:rollout_id>/{act}"): "accept" for act in FROM},
    ("POST", "api/v1/rollouts"): "write",
    ("PUT", SESSION): "write",
    ("POST", f"{SESSION}/messages"): "write",
    ("POST", f"{SESSION}/calls"): "write",
    ("POST", f"{SESSION}/pins"): "write",
    ("PUT", f"{SESSION}/tools"): "write",
    ("DELETE", f"{SESSION}/pins/<seq>"): "write",
    ("POST", f"{SESSION}/anchors"): "write",
    ("DELETE", f"{SESSION}/anchors/<anchor_id>"): "write",
    ("POST", f"{SESSION}/shares"): "write",
    ("POST", "api/v1/subscriptions"): "write",
    ("DELETE", "api/v1/subscriptions/<subscription_id>"): "write",
    ("POST", "memory/anchors/<int:anchor_id>/remove/"): "write",
    ("POST", f"{SESSION}/revisions/<number>/undo"): "write",
    ("POST", f"{SESSION}/compactions"): "write",
    ("POST", f"{SESSION}/simulations"): "write",
    ("POST", "budgets/"): "accept",
    ("POST", "budgets/<uuid:budget_id>/remove/"): "accept",
    ("POST", "budgets/approvals/<uuid:approval_id>/"): "accept",
    ("POST", f"{SESSION}/budgets/check"): "write",
    ("DELETE", f"{SESSION}/reservations"): "write",
    ("PUT", "api/v1/budgets"): "accept",
    ("DELETE", "api/v1/budgets/<uuidstr:budget_id>"): "accept",
    ("POST", "api/v1/approvals/<uuidstr:approval_id>"): "accept",
    ("POST", "lab/draft/"): "read",
    ("POST", "api/v1/cache/check"): "read",
    ("POST", "api/v1/simulations"): "write",
    ("POST", "api/v1/tunings"): "write",
    ("POST", "api/v1/tunings/<uuidstr:tuning_id>/cancel"): "write",
    ("POST", "lab/searches/"): "write",
    ("POST", "lab/searches/<uuid:tuning_id>/cancel/"): "write",
    ("POST", "lab/searches/<uuid:tuning_id>/trials/<int:number>/save/"): "write",
    ("POST", "api/v1/simulations/<uuidstr:simulation_id>/cancel"): "write",
    ("POST", "api/v1/imports"): "write",
}
"""What each address asks for that changes something, or shows what not everybody may see. The rest
of the pages take no POST, and show themselves to all of the team."""

BODIES: dict[str, Any] = {
    "messages": {"messages": [{"role": "user", "content": "more"}]},
    "calls": {"step": 1, "usage": {"input_tokens": 1, "output_tokens": 1}},
    "pins": {"seq": 1},
    "check": {"previous": {"system": "a"}, "current": {"system": "b"}},
    "tools": {"tools": ["Read"]},
    "anchors": {"kind": "knowledge", "text": "the port is 8080"},
    "shares": {"summary": "what we know"},
    "subscriptions": {"session": "run", "kind": "team"},
    "budgets": {"scope": "agent", "tokens": 5},
    "<uuidstr:approval_id>": {"granted": True},
    "rollouts": {"version": "recitation"},
    "<name>": {"document": {"reserve": 7}},
    "widen": {"share": 50},
    "tunings": {"base": "offload-first", "sessions": {"by": "query"}},
    "reviews": {"session": "run", "run": "served", "revision": 1},
    "simulations": {
        "policy": "offload-first",
        "sessions": {"by": "query"},
        "draft": "offload-first",
    },
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
    def needs(self) -> Right | None:
        """The right it asks for."""
        return NEEDS.get((self.method, self.route), "read")

    @property
    def takes(self) -> bool:
        """Whether it does anything but say that it takes no such request."""
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
