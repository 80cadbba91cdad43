"""Forwarded headers: kept from trusted proxies, with the address of one client."""

from __future__ import annotations

import functools
import logging
from ipaddress import ip_address

from django.conf import settings
from twisted.web.http_headers import Headers

log = logging.getLogger(__name__)

_FOR = b"X-Forwarded-For"
_NAMES = (_FOR, b"X-Forwarded-Proto", b"X-Forwarded-Host", b"X-Forwarded-Port", b"Forwarded")


def keep_trusted(headers: Headers, peer: str) -> None:
    """Remove forwarded headers that do not come from a trusted proxy. From one, leave in
    X-Forwarded-For only the last address that is not a trusted proxy itself."""
    if settings.SECURE_PROXY_SSL_HEADER is None or not any(map(headers.hasHeader, _NAMES)):
        return
    if not is_trusted(peer):
        _warn(peer)
        for name in _NAMES:
            headers.removeHeader(name)
        return
    values = b",".join(headers.getRawHeaders(_FOR) or []).split(b",")
    hops = [value.strip() for value in values if value.strip()]
    outside = (hop for hop in reversed(hops) if not is_trusted(hop.decode("latin-1")))
    if hops:
        headers.setRawHeaders(_FOR, [next(outside, hops[0])])


def is_trusted(address: str) -> bool:
    """Whether an address belongs to a proxy in CONTEXTLAB_TRUSTED_PROXIES."""
    try:
        known = ip_address(address)
    except ValueError:
        return False
    return any(known in network for network in settings.TRUSTED_PROXIES)


@functools.lru_cache(maxsize=100)
def _warn(peer: str) -> None:
    """Once per address."""
    log.warning(
        "X-Forwarded headers of %s are ignored: it is not in CONTEXTLAB_TRUSTED_PROXIES", peer
    )
