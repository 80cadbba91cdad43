"""Single sign-on by OpenID Connect, as the environment configures it."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlsplit

from contextlab import environment as env

PROVIDER = "sso"
"""The provider's name in our addresses: /oidc/sso/login/callback/ is what it must know."""
ROLES = ("viewer", "reviewer", "editor", "owner")
"""From the least."""


class SignOn(NamedTuple):
    """Where people sign in, and what they may there: a team's slug and a role for each domain of a
    verified email address, and for each group."""

    url: str
    name: str
    domains: dict[str, tuple[str, str]]
    groups: dict[str, tuple[str, str]]
    claim: str
    seconds: int
    """After which a browser must sign in again, which is when a lost group ends access."""
    providers: dict[str, Any]
    """SOCIALACCOUNT_PROVIDERS of allauth."""


def sign_on() -> SignOn | None:
    """The settings, or None without CONTEXTLAB_OIDC_URL. Raises ValueError."""
    url = env.text("OIDC_URL").rstrip("/")
    if not url:
        return None
    parts = urlsplit(url)
    if parts.scheme != "https" and not env.is_loopback(parts.hostname or ""):
        raise ValueError(f"CONTEXTLAB_OIDC_URL must begin with https://, not {url!r}")
    client, secret = env.text("OIDC_CLIENT_ID"), env.text("OIDC_CLIENT_SECRET")
    if not client or not secret:
        raise ValueError(
            "CONTEXTLAB_OIDC_URL needs CONTEXTLAB_OIDC_CLIENT_ID and CONTEXTLAB_OIDC_CLIENT_SECRET"
        )
    env.needs("CONTEXTLAB_OIDC_URL", "sso", "oauthlib")
    domains, groups = _given("OIDC_DOMAINS"), _given("OIDC_GROUPS")
    if not domains and not groups:
        raise ValueError(
            "CONTEXTLAB_OIDC_URL needs CONTEXTLAB_OIDC_DOMAINS or CONTEXTLAB_OIDC_GROUPS: "
            "without one, no one may sign in"
        )
    app = {
        "provider_id": PROVIDER,
        "name": "Single sign-on",
        "client_id": client,
        "secret": secret,
        "settings": {"server_url": url},
    }
    scope = ["openid", "profile", "email", *env.words("OIDC_SCOPES")]
    provider = {"APPS": [app], "SCOPE": scope, "OAUTH_PKCE_ENABLED": True}
    name = env.text("OIDC_NAME", parts.hostname or "single sign-on")
    claim = env.text("OIDC_GROUPS_CLAIM", "groups")
    domains = {domain.casefold(): given for domain, given in domains.items()}
    seconds = int(env.number("OIDC_HOURS", 12) * 3600)
    return SignOn(url, name, domains, groups, claim, seconds, {"openid_connect": provider})


def _given(name: str) -> dict[str, tuple[str, str]]:
    """What each domain or group gives: `lab admins=ops:owner, lab=ops`; a viewer without a role."""
    found = {}
    for entry in filter(None, map(str.strip, env.text(name).split(","))):
        key, _, given = entry.rpartition("=")
        team, _, role = given.strip().partition(":")
        role = role or ROLES[0]
        if not key.strip() or not team or role not in ROLES:
            raise ValueError(
                f"CONTEXTLAB_{name} lists entries such as lab=ops:editor, with one of the roles "
                f"{', '.join(ROLES)}; not {entry!r}"
            )
        found[key.strip()] = (team, role)
    return found
