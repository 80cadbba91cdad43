"""Whether others can reach this server, and what must not be set then."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from contextlab import environment as env

SECRET_BITS = 96
"""Least entropy of a secret key, as estimated by `bits`."""
_SECRET_CHARS = 32
_KNOWN = re.compile(
    r"secret|password|passwd|change.?me|insecure|example|default|contextlab|replace|your.?key",
    re.IGNORECASE,
)


def how_public(
    host: str, names: Sequence[str], origins: Sequence[str], *, behind_proxy: bool
) -> str:
    """Return the setting by which others can reach a server at `host`; empty on loopback only."""
    if not env.is_loopback(host):
        return f"it listens on {host or 'every address'}"
    for name in names:
        if not env.is_loopback(name):
            return f"CONTEXTLAB_ALLOWED_HOSTS names {name}"
    for origin in origins:
        if not env.is_loopback(urlsplit(origin).hostname or origin):
            return f"CONTEXTLAB_ORIGINS names {origin}"
    return "CONTEXTLAB_BEHIND_TLS_PROXY is set" if behind_proxy else ""


def unsafe_settings(*, debug: bool, secret_key: str, folder: Path) -> list[str]:
    """Return what to do about each setting that is unsafe on a server that others can reach."""
    found = []
    if debug:
        found.append(
            "unset CONTEXTLAB_DEBUG outside development: its error pages show settings and content"
        )
    if is_weak(secret_key):
        how = (
            "replace CONTEXTLAB_SECRET_KEY"
            if env.text("SECRET_KEY")
            else f"delete {folder / 'secret_key'}"
        )
        found.append(
            f"{how}, because a guessed key lets anyone sign in as anyone "
            "(`openssl rand -hex 32` prints a strong one)"
        )
    if env.text("LOGIN_TOKEN"):
        found.append(
            "unset CONTEXTLAB_LOGIN_TOKEN, because a lasting token is no longer accepted "
            "(`contextlab login` prints an address that works once)"
        )
    return found


def is_weak(secret: str) -> bool:
    """Whether a secret is short, regular, or contains a word that stands in examples."""
    return len(secret) < _SECRET_CHARS or bits(secret) < SECRET_BITS or bool(_KNOWN.search(secret))


def bits(secret: str) -> float:
    """Estimate the entropy of a secret from its repeating part, its distinct characters and the
    distinct distances between neighbors; a row such as "abcdef" has one distance."""
    if not secret:
        return 0.0
    period = (secret + secret).find(secret, 1)
    codes = [ord(letter) for letter in secret]
    distances = {after - before for before, after in zip(codes, codes[1:], strict=False)}
    return period * math.log2(max(1, min(len(set(codes)), len(distances))))
